#include "row_chunks.h"

#include <algorithm>
#include <bit>
#include <set>

#include "../transform.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kWarp = 32, kBytes = 16, kMostThreads = 1024;
constexpr int64_t kMostElements = 32;   // of an input, that a thread keeps
constexpr int64_t kMostRegisters = 96;  // for all that it keeps; of so many threads it has fewer
constexpr int64_t kManyThreads = 1024, kMostRegistersOfMany = 32;
constexpr int64_t kManyRows = 1024;  // they fill a device with four to a block
constexpr int64_t kRowsOfBlock = 4;
constexpr int64_t kManyShortRows = 4096;  // of which a part of a warp for each fills a device

bool is_number(ElementType type) { return type == ElementType::Float32 || is_half(type); }

int64_t size_of(const KernelBody& body, int input) {
  return static_cast<int64_t>(size_bytes(body.inputs[static_cast<size_t>(input)]));
}

// What reads of elements say, each by the place within the row.
class Row {
 public:
  Row(const KernelBody& body, const std::vector<Loop>& rows, const std::vector<Loop>& lanes) : body_(body) {
    for (const Loop& loop : rows) of_rows_.insert(loop.symbol);
    if (!lanes.empty()) {
      chunks_.place = lanes[0].symbol;
      has_place_ = true;
      chunks_.elements = lanes[0].extent().as_constant().value_or(0);
      is_row_ = lanes.size() == 1 && lanes[0].low == Index(0) && coefficient(body.offset, lanes[0].symbol) == 1;
    }
    if (is_row_) visit(body.value, std::nullopt, false);
    for (const int input : excluded_) chunks_.offsets.erase(input);
  }

  bool is_row() const { return is_row_ && chunks_.elements > 0 && !in_reductions_.empty(); }
  const RowChunks& chunks() const { return chunks_; }
  const std::set<int>& in_reductions() const { return in_reductions_; }

 private:
  // `place`: the binder of the reduction that it is in. What a condition on positions guards may not be there.
  void visit(const Expr& e, std::optional<AtomId> place, bool is_guarded) {
    if (e->kind == ExprKind::Read) return note(e->input, e->subscripts[0], place, is_guarded);
    if (e->kind == ExprKind::Reduce) return visit_reduction(e, is_guarded);
    for (const Expr& arg : e->args) visit(arg, place, is_guarded || e->kind == ExprKind::Select);
  }

  void visit_reduction(const Expr& e, bool is_guarded) {
    std::set<AtomId> free;
    collect_symbols(e, free);
    const int64_t extent = e->binders.size() == 1 ? e->binders[0].extent.as_constant().value_or(0) : 0;
    if (!has_place_ && extent > 0) {
      chunks_.place = e->binders[0].symbol;
      chunks_.elements = extent;
      has_place_ = true;
    }
    is_row_ = is_row_ && extent > 0 && extent == chunks_.elements && std::ranges::includes(of_rows_, free) &&
              !has_guard(e->args[0]);
    if (is_row_) visit(e->args[0], e->binders[0].symbol, is_guarded);
  }

  // Of positions, which may become the bounds of a loop.
  static bool has_guard(const Expr& e) {
    return e->kind == ExprKind::Select || std::ranges::any_of(e->args, has_guard);
  }

  void note(int input, const Index& offset, std::optional<AtomId> binder, bool is_guarded) {
    const Index at = binder ? substitute(offset, Substitution{{*binder, Index::from_atom(chunks_.place)}}) : offset;
    if (!is_number(body_.inputs[static_cast<size_t>(input)]) || coefficient(at, chunks_.place) != 1) {
      excluded_.insert(input);
      return;
    }
    const auto [known, is_new] = chunks_.offsets.try_emplace(input, at);
    if (is_guarded || (!is_new && known->second != at)) excluded_.insert(input);
    if (binder) in_reductions_.insert(input);
  }

  const KernelBody& body_;
  RowChunks chunks_;
  std::set<AtomId> of_rows_;
  std::set<int> excluded_, in_reductions_;
  bool is_row_ = true, has_place_ = false;
};

// Four bytes each.
int64_t registers_of(const KernelBody& body, const RowChunks& chunks) {
  int64_t bytes = 0;
  for (const auto& [input, _] : chunks.offsets) bytes += size_of(body, input) * chunks.count * chunks.each;
  return bytes / 4;
}

// Rows of a few whole chunks, of which there are many: a thread a chunk, so that a warp has several rows.
std::optional<RowChunks> short_rows_of(const KernelBody& body, RowChunks chunks, int64_t most, int64_t count) {
  chunks.count = most;
  while (chunks.count > 1 && chunks.elements % chunks.count != 0) chunks.count /= 2;
  if (chunks.count == 1 || chunks.elements >= kWarp * chunks.count) return std::nullopt;
  chunks.threads = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(chunks.elements / chunks.count)));
  const bool are_whole_warps = chunks.threads < kWarp && count % (kWarp / chunks.threads) == 0;
  if (count < kManyShortRows || !are_whole_warps || registers_of(body, chunks) > kMostRegisters) return std::nullopt;
  chunks.rows = kWarp * kRowsOfBlock / chunks.threads;
  return chunks;
}

}  // namespace

std::optional<RowChunks> row_chunks_of(const KernelBody& body, const std::vector<Loop>& rows,
                                       const std::vector<Loop>& lanes) {
  if (!is_number(body.output)) return std::nullopt;
  const Row row(body, rows, lanes);
  if (!row.is_row()) return std::nullopt;
  RowChunks chunks = row.chunks();
  int64_t least = kBytes;
  for (const int input : row.in_reductions())
    if (chunks.offsets.contains(input)) least = std::min(least, size_of(body, input));
  int64_t count = 1;
  for (const Loop& loop : rows) count *= loop.extent().as_constant().value_or(1);
  if (!chunks.offsets.empty())
    if (const auto few = short_rows_of(body, chunks, kBytes / least, count)) return few;
  chunks.count = kBytes / least;
  while (chunks.count > 1 && (chunks.elements % chunks.count != 0 || chunks.elements / chunks.count < kWarp))
    chunks.count /= 2;
  if (chunks.count == 1) return std::nullopt;
  const auto chunks_of_row = chunks.elements / chunks.count;
  const auto each = [&] { return (chunks_of_row + chunks.threads - 1) / chunks.threads; };
  while (each() * chunks.count > kMostElements && chunks.threads < kMostThreads) chunks.threads *= 2;
  chunks.each = each();
  if (chunks.each * chunks.count > kMostElements) return std::nullopt;
  // What no reduction reads is first left where it is.
  const int64_t most = chunks.threads >= kManyThreads ? kMostRegistersOfMany : kMostRegisters;
  if (registers_of(body, chunks) > most)
    std::erase_if(chunks.offsets, [&](const auto& own) { return !row.in_reductions().contains(own.first); });
  if (registers_of(body, chunks) > most || chunks.offsets.empty()) return std::nullopt;
  if (chunks.threads == kWarp && count >= kManyRows) chunks.rows = kRowsOfBlock;
  return chunks;
}

}  // namespace gopt::codegen
