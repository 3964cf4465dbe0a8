#include "chunks.h"

#include <algorithm>
#include <set>

#include "../transform.h"

namespace gopt::codegen {
namespace {

bool is_number(ElementType type) { return type == ElementType::Float32 || is_half(type); }

// Inputs that an element reads in one place alone, whatever its position.
class Reads {
 public:
  explicit Reads(const Expr& value) { visit(value, false); }
  const std::map<int, Index>& offsets() const { return offsets_; }

 private:
  void visit(const Expr& e, bool is_guarded) {
    if (e->kind == ExprKind::Read) {
      note(e->input, e->subscripts[0], is_guarded);
      return;
    }
    // What a condition on positions guards may not be there.
    for (const Expr& arg : e->args) visit(arg, is_guarded || e->kind == ExprKind::Select);
  }
  void note(int input, const Index& offset, bool is_guarded) {
    if (excluded_.contains(input)) return;
    const auto [known, is_new] = offsets_.try_emplace(input, offset);
    if (!is_guarded && (is_new || known->second == offset)) return;
    offsets_.erase(input);
    excluded_.insert(input);
  }

  std::map<int, Index> offsets_;
  std::set<int> excluded_;
};

constexpr int64_t kBytes = 16;  // of a chunk

// Whether the symbol is in what is read.
bool is_read_along(const Expr& value, AtomId symbol) {
  std::set<AtomId> symbols;
  collect_symbols(value, symbols);
  return symbols.contains(symbol);
}

}  // namespace

KernelBody with_whole_lines(const KernelBody& body) {
  if (body.loops.size() < 2 || !is_number(body.output) || body.value->height > 0) return body;
  const Loop &outer = body.loops[body.loops.size() - 2], &inner = body.loops.back();
  const auto lines = outer.extent().as_constant(), length = inner.extent().as_constant();
  const int64_t whole = kBytes / static_cast<int64_t>(size_bytes(body.output));
  const bool is_short = lines && length && *length > 1 && *length < whole && whole % *length == 0;
  if (!is_short || outer.low != Index(0) || inner.low != Index(0) || is_read_along(body.value, inner.symbol))
    return body;
  if (coefficient(body.offset, inner.symbol) != 1 || coefficient(body.offset, outer.symbol) != *length) return body;
  int64_t joined = whole / *length;
  while (*lines % joined != 0) joined /= 2;
  if (joined == 1) return body;
  const AtomId first = symbol_atom("@lines"), lane = symbol_atom("@lane");
  const Index line = floor_div(Index::from_atom(lane), Index(*length));
  const Substitution parts{{outer.symbol, Index(joined) * Index::from_atom(first) + line},
                           {inner.symbol, Index::from_atom(lane) - Index(*length) * line}};
  KernelBody wide = body;
  wide.loops[body.loops.size() - 2] = {first, Index(0), Index(*lines / joined)};
  wide.loops.back() = {lane, Index(0), Index(joined * *length)};
  const Known known = known_of(wide);
  wide.value = simplify(map_expr(body.value, [&](const Index& i) { return substitute(i, parts); }), known);
  wide.offset = simplify(substitute(body.offset, parts), known);
  return wide;
}

std::optional<Chunks> chunks_of(const KernelBody& body) {
  if (body.loops.empty() || !is_number(body.output) || body.value->height > 0) return std::nullopt;
  const Loop& inner = body.loops.back();
  const auto extent = inner.extent().as_constant();
  const auto is_along = [&](const Index& offset) { return coefficient(offset, inner.symbol) == 1; };
  if (!extent || !is_along(body.offset)) return std::nullopt;
  Chunks chunks;
  size_t widest = size_bytes(body.output);
  const Reads reads(body.value);
  for (const auto& [input, offset] : reads.offsets()) {
    const ElementType type = body.inputs[static_cast<size_t>(input)];
    if (!is_number(type) || !is_along(offset)) continue;
    chunks.offsets.emplace(input, offset);
    widest = std::max(widest, size_bytes(type));
  }
  // Lines of a few elements that come from everywhere (channels that go to the end): one store for all of them.
  if (chunks.offsets.empty() && *extent * static_cast<int64_t>(widest) > kBytes) return std::nullopt;
  chunks.count = kBytes / static_cast<int64_t>(widest);
  while (chunks.count > 1 && *extent % chunks.count != 0) chunks.count /= 2;
  return chunks.count > 1 ? std::optional(chunks) : std::nullopt;
}

}  // namespace gopt::codegen
