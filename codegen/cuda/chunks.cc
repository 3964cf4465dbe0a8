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

}  // namespace

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
  constexpr int64_t kBytes = 16;
  // Lines of a few elements that come from everywhere (channels that go to the end): one store for all of them.
  if (chunks.offsets.empty() && *extent * static_cast<int64_t>(widest) > kBytes) return std::nullopt;
  chunks.count = kBytes / static_cast<int64_t>(widest);
  while (chunks.count > 1 && *extent % chunks.count != 0) chunks.count /= 2;
  return chunks.count > 1 ? std::optional(chunks) : std::nullopt;
}

}  // namespace gopt::codegen
