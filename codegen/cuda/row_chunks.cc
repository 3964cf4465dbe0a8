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
// What each of the blocks that share a row is to have of it: less takes no longer than they take to hear of each other.
constexpr int64_t kFewestElements = 6144;
constexpr int64_t kSector = 32, kMostBeside = 4;  // bytes that memory gives at once; rows of a block
constexpr int64_t kThreadsOfReaders = 512;        // of a block whose row is not kept

bool is_number(ElementType type) { return type == ElementType::Float32 || type == ElementType::Int32 || is_half(type); }

int64_t size_of(const KernelBody& body, int input) {
  return static_cast<int64_t>(size_bytes(body.inputs[static_cast<size_t>(input)]));
}

// What reads of elements say, each by the place within the row: along `lanes`, the last of them inside.
class Row {
 public:
  Row(const KernelBody& body, const std::vector<Loop>& rows, const std::vector<Loop>& lanes) : body_(body) {
    for (const Loop& loop : rows) of_rows_.insert(loop.symbol);
    chunks_.elements = lanes.empty() ? 0 : 1;
    for (const Loop& loop : lanes) {
      const int64_t extent = loop.extent().as_constant().value_or(0);
      chunks_.axes.push_back({loop.symbol, extent});
      chunks_.elements *= extent;
      is_row_ = is_row_ && loop.low == Index(0) && extent > 0;
      ranges_[loop.symbol] = {0, extent - 1};
    }
    is_row_ = is_row_ && lanes.size() <= kMostAxes && (lanes.size() != 1 || stores_chunks());
    if (is_row_) visit(body.value, nullptr, false);
    for (const int input : excluded_) chunks_.offsets.erase(input);
  }

  bool is_row() const { return is_row_ && chunks_.elements > 0 && !in_reductions_.empty(); }
  bool keeps_what_is_reduced() const {
    return std::ranges::all_of(in_reductions_, [&](int input) { return chunks_.offsets.contains(input); });
  }
  // Whether results are stored in chunks, too.
  bool stores_chunks() const {
    return !chunks_.axes.empty() && coefficient(body_.offset, chunks_.axes.back().symbol) == 1;
  }
  const RowChunks& chunks() const { return chunks_; }
  const std::set<int>& in_reductions() const { return in_reductions_; }

 private:
  static constexpr size_t kMostAxes = 2;

  // `reduction`: what it is in. What a condition on positions guards may not be there.
  void visit(const Expr& e, const Expr::Node* reduction, bool is_guarded) {
    if (e->kind == ExprKind::Read) return note(e->input, e->subscripts[0], reduction, is_guarded);
    if (e->kind == ExprKind::Reduce) return visit_reduction(e, is_guarded);
    for (const Expr& arg : e->args) visit(arg, reduction, is_guarded || e->kind == ExprKind::Select);
  }

  void visit_reduction(const Expr& e, bool is_guarded) {
    std::set<AtomId> free;
    collect_symbols(e, free);
    const int64_t extent = e->binders.size() == 1 ? e->binders[0].extent.as_constant().value_or(0) : 0;
    if (chunks_.axes.empty() && extent > 0) {
      chunks_.axes.push_back({e->binders[0].symbol, extent});
      chunks_.elements = extent;
    }
    is_row_ = is_row_ && extent > 0 && extent == chunks_.elements && std::ranges::includes(of_rows_, free) &&
              !has_guard(e->args[0]);
    if (is_row_) visit(e->args[0], e.get(), is_guarded);
  }

  // Of positions, which may become the bounds of a loop.
  static bool has_guard(const Expr& e) {
    return e->kind == ExprKind::Select || std::ranges::any_of(e->args, has_guard);
  }

  // What a reduction reads at its place, by the axes; `turns`: its place counts the first of two axes fastest.
  Index along_axes(const Index& offset, const Expr::Node& reduction, bool turns) const {
    const std::vector<RowChunks::Axis>& axes = chunks_.axes;
    Index place = Index::from_atom(axes.back().symbol);
    if (axes.size() == kMostAxes) {
      const Index first = Index::from_atom(axes[0].symbol);
      place = turns ? place * Index(axes[0].extent) + first : first * Index(axes[1].extent) + place;
    }
    return simplify(substitute(offset, Substitution{{reduction.binders[0].symbol, place}}), ranges_);
  }

  bool lies_along(const Index& at) const { return coefficient(at, chunks_.axes.back().symbol) == 1; }

  void note(int input, const Index& offset, const Expr::Node* reduction, bool is_guarded) {
    if (chunks_.axes.empty()) {  // a number beside a reduction of all
      excluded_.insert(input);
      return;
    }
    Index at = reduction ? along_axes(offset, *reduction, false) : offset;
    if (reduction && chunks_.axes.size() == kMostAxes) {
      const Index turned = along_axes(offset, *reduction, true);
      const bool turns = !lies_along(at) && lies_along(turned);
      // All of a row's elements are counted alike.
      is_row_ = is_row_ && (in_reductions_.empty() || turns == chunks_.turns);
      chunks_.turns = turns;
      if (turns) at = turned;
    }
    if (reduction) in_reductions_.insert(input);
    std::set<AtomId> symbols;
    collect_symbols(at, symbols);
    const bool is_of_all =
        std::ranges::all_of(chunks_.axes, [&](const RowChunks::Axis& axis) { return symbols.contains(axis.symbol); });
    if (!is_number(body_.inputs[static_cast<size_t>(input)]) || !lies_along(at) || !is_of_all) {
      excluded_.insert(input);
      return;
    }
    const auto [known, is_new] = chunks_.offsets.try_emplace(input, at);
    if (is_guarded || (!is_new && known->second != at)) excluded_.insert(input);
  }

  const KernelBody& body_;
  RowChunks chunks_;
  Ranges ranges_;
  std::set<AtomId> of_rows_;
  std::set<int> excluded_, in_reductions_;
  bool is_row_ = true;
};

// With two loops along a row, in the order in which memory has it.
std::optional<Row> row_of(const KernelBody& body, const std::vector<Loop>& rows, const std::vector<Loop>& lanes) {
  std::optional<Row> found;
  const auto take = [&](const std::vector<Loop>& order) {
    const Row row(body, rows, order);
    const auto worth = [](const Row& r) { return std::pair(r.keeps_what_is_reduced(), r.stores_chunks()); };
    if (row.is_row() && (!found || worth(row) > worth(*found))) found.emplace(row);
  };
  take(lanes);
  if (lanes.size() == 2) take({lanes[1], lanes[0]});
  return found;
}

// Four bytes each; a single element has one of its own.
int64_t registers_of(const KernelBody& body, const RowChunks& chunks) {
  int64_t bytes = 0;
  for (const auto& [input, _] : chunks.offsets)
    bytes += std::max<int64_t>(size_of(body, input) * chunks.count, 4) * chunks.each;
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

int64_t chunks_of_thread(const RowChunks& chunks) {
  const int64_t all = chunks.elements / chunks.count, threads = chunks.threads * chunks.blocks;
  return (all + threads - 1) / threads;
}

// With threads that keep the row; none where each would have to keep too much.
std::optional<RowChunks> keep(const KernelBody& body, const Row& row, RowChunks chunks) {
  const auto is_too_much = [&] { return chunks_of_thread(chunks) * chunks.count > kMostElements; };
  while (is_too_much() && chunks.threads * chunks.beside < kMostThreads) chunks.threads *= 2;
  if (is_too_much()) return std::nullopt;
  chunks.each = chunks_of_thread(chunks);
  // What no reduction reads is first left where it is.
  const int64_t most = chunks.threads * chunks.beside >= kManyThreads ? kMostRegistersOfMany : kMostRegisters;
  if (registers_of(body, chunks) > most)
    std::erase_if(chunks.offsets, [&](const auto& own) { return !row.in_reductions().contains(own.first); });
  if (registers_of(body, chunks) > most || chunks.offsets.empty()) return std::nullopt;
  return chunks;
}

}  // namespace

namespace {

// Rows of few bytes at each position, as groups of a few channels: how many a block may have at once.
int64_t rows_beside(const KernelBody& body, const std::vector<Loop>& rows, const RowChunks& chunks, int64_t bytes) {
  if (chunks.axes.size() != 2 || rows.size() != 1 || rows[0].low != Index(0)) return 1;
  const int64_t width = chunks.axes.back().extent, count = rows[0].extent().as_constant().value_or(0);
  const auto lies_beside = [&](const Index& offset) { return coefficient(offset, rows[0].symbol) == width; };
  if (!lies_beside(body.offset) ||
      !std::ranges::all_of(chunks.offsets, [&](const auto& own) { return lies_beside(own.second); }))
    return 1;
  int64_t beside = 1;
  while (beside < kMostBeside && 2 * beside * width * bytes <= kSector && count % (2 * beside) == 0 &&
         count / (2 * beside) * kBlocksOfCluster >= kBlocksOfDevice)
    beside *= 2;
  return beside;
}

// Among blocks, where there are fewer rows than blocks, or these cannot keep their rows alone.
void share(const KernelBody& body, const Row& row, const std::vector<Loop>& rows, int64_t count, int64_t most_blocks,
           int64_t least, RowChunks& chunks) {
  const auto is_long = [&] { return chunks.elements >= 2 * chunks.blocks * kFewestElements; };
  const auto has_blocks_to_do = [&] { return count * chunks.blocks < kBlocksOfDevice || !keep(body, row, chunks); };
  while (chunks.blocks < std::min(most_blocks, kBlocksOfCluster) && is_long() && has_blocks_to_do()) chunks.blocks *= 2;
  if (chunks.blocks == 1) return;
  chunks.beside = rows_beside(body, rows, chunks, least);
  if (chunks.beside > 1) {
    chunks.blocks = kBlocksOfCluster, chunks.threads = kWarp;
    return;
  }
  if (chunks.blocks < kBlocksOfCluster) return;
  while (chunks.blocks < most_blocks && is_long() && 2 * count * chunks.blocks <= kBlocksOfDevice) chunks.blocks *= 2;
}

}  // namespace

bool RowChunks::is_along(AtomId symbol) const {
  return std::ranges::any_of(axes, [&](const Axis& axis) { return axis.symbol == symbol; });
}

std::optional<RowChunks> row_chunks_of(const KernelBody& body, const std::vector<Loop>& rows,
                                       const std::vector<Loop>& lanes, int64_t most_blocks) {
  if (!is_number(body.output) && body.output != ElementType::Int64) return std::nullopt;
  const std::optional<Row> row = row_of(body, rows, lanes);
  if (!row) return std::nullopt;
  RowChunks chunks = row->chunks();
  int64_t least = kBytes;
  for (const int input : row->in_reductions())
    if (chunks.offsets.contains(input)) least = std::min(least, size_of(body, input));
  int64_t count = 1;
  for (const Loop& loop : rows) count *= loop.extent().as_constant().value_or(1);
  if (!chunks.offsets.empty() && chunks.axes.size() == 1)
    if (const auto few = short_rows_of(body, chunks, kBytes / least, count)) return few;
  chunks.count = kBytes / least;
  while (chunks.count > 1 && (chunks.axes.back().extent % chunks.count != 0 || chunks.elements / chunks.count < kWarp))
    chunks.count /= 2;
  // Element by element: long rows that no chunk divides, or of which nothing that lies along them is reduced.
  if (chunks.count == 1 && (chunks.axes.size() > 1 || chunks.elements < kFewestElements)) return std::nullopt;
  share(body, *row, rows, count, most_blocks, least, chunks);
  if (const auto kept = keep(body, *row, chunks)) {
    chunks = *kept;
  } else {
    if (chunks.offsets.empty() || chunks.elements < kFewestElements) return std::nullopt;
    chunks.is_kept = false;
    chunks.threads = kThreadsOfReaders / chunks.beside;
    chunks.each = chunks_of_thread(chunks);
  }
  if (chunks.threads == kWarp && chunks.blocks == 1 && count >= kManyRows) chunks.rows = kRowsOfBlock;
  return chunks;
}

}  // namespace gopt::codegen
