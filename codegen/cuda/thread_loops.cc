#include "thread_loops.h"

#include <algorithm>
#include <set>

#include "../cpu/loops.h"
#include "../reshape.h"
#include "../transform.h"
#include "chunks.h"
#include "columns.h"
#include "matches.h"
#include "row_chunks.h"
#include "squares.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kThreads = 256, kWarp = 32, kThreadsOfChunks = 128;
constexpr int64_t kManyElements = 65536;   // enough of them to fill a device with a thread each
constexpr int64_t kMaxNarrow = 1LL << 31;  // elements counted in 32 bits

// Symbols and extent of each outermost reduction.
struct Reduction {
  std::set<AtomId> symbols;
  int64_t extent = 1;
};

void outer_reductions(const Expr& e, std::vector<Reduction>& out, std::set<const Expr::Node*>& seen) {
  if (!seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::Reduce) {
    Reduction r;
    collect_symbols(e, r.symbols);
    for (const Binder& b : e->binders) r.extent *= b.extent.as_constant().value_or(1);
    out.push_back(std::move(r));
    return;
  }
  for (const Expr& a : e->args) outer_reductions(a, out, seen);
}

// What threads may do together: all of a device's; those of a cluster; of a block; nothing.
enum class Together { Device, Clusters, Blocks, Nothing };

class KernelPrinter {
 public:
  KernelPrinter(const KernelBody& body, bool overlaps, const std::set<int>& constants, Together together)
      : body_(overlaps || together == Together::Nothing ? body : with_whole_lines(body)),
        overlaps_(overlaps),
        together_(together),
        constants_(constants),
        writer_(body_) {
    writer_.pragmas = false;
    writer_.takes_short_functions = is_half(body_.output);
    divide();
  }

  CudaKernel print() {
    if (!overlaps_ && !is_step())
      if (const auto matches = matches_of(body_)) return print_matches(body_, *matches);
    if (!overlaps_ && !shared_ && lanes_.empty()) {
      if (const auto squares = is_step() ? std::nullopt : squares_of(body_)) return print_squares(body_, *squares);
      if (!is_step() || takes_chunks_as_step(body_))
        if (const auto chunks = chunks_of(body_)) return print_chunks(*chunks);
    }
    if (!overlaps_ && (shared_ || !lanes_.empty()) && !columns_ && !is_step())
      if (const auto row = row_chunks_of(body_, rows_, lanes_, most_blocks())) return print_row_chunks(*row);
    Scope& root = writer_.root();
    root.shared = shared_;
    Scope& rows = writer_.add_scope(root);
    rows.shared = shared_;
    const std::string decode_rows = decode(rows_, "row", rows);
    Scope& own = lanes_.empty() ? rows : writer_.add_scope(rows);
    const std::string decode_lanes = lanes_.empty() ? "" : decode(lanes_, "lane", own);
    std::string store = element(own);
    if (const std::string guard = guard_of_store(); !guard.empty()) store = "if (" + guard + ") {\n" + store + "}\n";
    std::string text = decode_rows + rows.code;
    if (lanes_.empty())
      text += store;
    else
      text += lane_loop() + decode_lanes + own.code + store + "}\n";
    const int64_t rows_count = cuda_count(rows_);
    const int64_t of_block = columns_ ? columns_->count : shared_ ? 1 : kernel_.threads;
    kernel_.blocks = std::min(kMostCudaBlocks, (rows_count + of_block - 1) / of_block);
    return finished(root.code + rows_loop(rows_count) + text + "}\n");
  }

 private:
  // A thread makes the elements of a chunk, side by side.
  CudaKernel print_chunks(const Chunks& chunks) {
    const std::string count = std::to_string(chunks.count);
    const Loop inner = rows_.back();
    rows_.pop_back();
    const int64_t of_line = inner.extent().constant() / chunks.count, all = cuda_count(rows_) * of_line;
    Scope& rows = writer_.add_scope(writer_.root());
    std::string text = decode(rows_, "(row / " + std::to_string(of_line) + ")", rows);
    const std::string first = writer_.fresh("i"), own = writer_.fresh("i"), lane = writer_.fresh("i");
    const std::string low = inner.low == Index(0) ? "" : " + " + std::to_string(inner.low.constant());
    text += "const int64_t " + first + " = row % " + std::to_string(of_line) + " * " + count + low + ";\n";
    Scope &at = writer_.add_scope(rows), &element_scope = writer_.add_scope(rows);
    at.bound.push_back({inner.symbol, first});
    element_scope.bound.push_back({inner.symbol, own});
    std::string head;
    for (const auto& [input, offset] : chunks.offsets) {
      const std::string name = "in" + std::to_string(input),
                        type = storage_name(body_.inputs[static_cast<size_t>(input)]);
      head += "const " + type + "* const all_" + name + " = " + name + ";\n";
      text += "const gopt_chunk<" + type + ", " + count + "> " + name + "(all_" + name + ", " +
              writer_.index_text(offset, at) + ");\n";
    }
    const std::string type = storage_name(body_.output);
    head += type + "* const all_out = out;\n";
    text += "gopt_chunk<" + type + ", " + count + "> out(" + writer_.index_text(body_.offset, at) + ");\n";
    const std::string store = element(element_scope);
    text += rows.code + "#pragma unroll\nfor (int " + lane + " = 0; " + lane + " < " + count + "; " + lane +
            "++) {\nconst int64_t " + own + " = " + first + " + " + lane + ";\n" + element_scope.code + store +
            "}\nout.store(all_out);\n";
    kernel_.threads = kThreadsOfChunks;
    kernel_.blocks = std::min(kMostCudaBlocks, (all + kernel_.threads - 1) / kernel_.threads);
    return finished(writer_.root().code + head + rows_loop(all) + text + "}\n");
  }

  int64_t most_blocks() const {
    return together_ == Together::Device ? kBlocksOfDevice : together_ == Together::Clusters ? kBlocksOfCluster : 1;
  }

  // The threads of a row, a part of a warp, one, or all of a block or of several, have its chunks.
  CudaKernel print_row_chunks(const RowChunks& row) {
    const bool is_of_warp = row.threads <= kWarp && row.blocks == 1;
    const std::string of_row = std::to_string(row.threads);
    writer_.threads.count = row.threads;
    if (is_of_warp) writer_.reduce = row.threads == kWarp ? "gopt_warp_reduce" : "gopt_part_reduce<" + of_row + ">";
    const bool meets = row.blocks > kBlocksOfCluster;
    if (meets)
      writer_.reduce = "meeting.reduce";
    else if (row.blocks > 1)
      writer_.reduce = "gopt_cluster_reduce<" + std::to_string(row.blocks) +
                       (row.beside > 1 ? ", " + std::to_string(row.beside) : "") + ">";
    Scope& root = writer_.root();
    root.shared = true;
    Scope& rows = writer_.add_scope(root);
    rows.shared = true;
    const std::string own = row.beside > 1 ? "threadIdx.x / " + std::to_string(row.beside) : "threadIdx.x",
                      thread = is_of_warp       ? "threadIdx.x % " + of_row
                               : row.blocks > 1 ? "(blockIdx.y * " + of_row + " + " + own + ")"
                                                : own;
    std::string head = "const int64_t of_thread = " + thread + " * " + std::to_string(row.count) + ";\n";
    std::string text = decode(rows_, "row", rows);
    const std::string ahead = kept(row, root, Kept::Ahead, head), once = kept(row, root, Kept::Once, head);
    text += kept(row, rows, Kept::ByRow, head);
    Scope& chunk = bound_to_chunk(row, rows);
    const std::string read_again = row.is_kept ? "" : reads_of(row, chunk);
    writer_.row_loop = [&, read_again](const std::string& name, const std::string& body) {
      return row_loop(row, place_in_reduction(row, name), body, read_again);
    };
    const std::string store = lanes_.empty() ? "if (" + thread + " == 0) {\n" + element(rows) + "}\n"
                                             : stored_row(row, rows, read_again, head);
    const int64_t count = cuda_count(rows_);
    kernel_.threads = row.threads * row.rows * row.beside;
    kernel_.of_each = row.blocks, kernel_.meets = meets;
    kernel_.blocks = std::min(kMostCudaBlocks, (count + row.rows - 1) / row.rows / row.beside);
    const std::string meeting = meets ? "gopt_meeting<" + std::to_string(row.blocks) + "> meeting(memory);\n" : "";
    return finished(meeting + once + root.code + loop_of_rows(row, count) + text + rows.code + store + "}\n",
                    head + ahead);
  }

  static std::string loop_of_rows(const RowChunks& row, int64_t count) {
    if (row.beside > 1) {
      const std::string beside = std::to_string(row.beside);
      return cuda_loop("first_row", count, "blockIdx.x * " + beside, "gridDim.x * " + beside) + "const " +
             cuda_index_type(count) + " row = first_row + threadIdx.x % " + beside + ";\n";
    }
    if (row.rows == 1) return cuda_loop("row", count, "blockIdx.x", "gridDim.x");
    const std::string of_block = std::to_string(row.rows);
    return cuda_loop("row", count, "blockIdx.x * " + of_block + " + threadIdx.x / " + std::to_string(row.threads),
                     "gridDim.x * " + of_block);
  }

  // Places along a row's axes from one that counts them all, the last fastest.
  static std::vector<std::string> places_of(const RowChunks& row, const std::string& place) {
    if (row.axes.size() == 1) return {place};
    const std::string inner = std::to_string(row.axes.back().extent);
    return {place + " / " + inner, place + " % " + inner};
  }

  // In it the axes are where a chunk begins, at `first`.
  Scope& bound_to_chunk(const RowChunks& row, Scope& rows) {
    Scope& at = writer_.add_scope(rows);
    const std::vector<std::string> places = places_of(row, "first");
    for (size_t a = 0; a < places.size(); a++)
      at.bound.push_back({row.axes[a].symbol, a + 1 == places.size() && a == 0 ? places[a] : "(" + places[a] + ")"});
    return at;
  }

  // A reduction's place of the element e of a chunk.
  static std::string place_in_reduction(const RowChunks& row, const std::string& name) {
    const std::string declared = "[[maybe_unused]] const int64_t " + name + " = ", place = "(first + e)";
    if (!row.turns) return declared + "first + e;\n";
    const std::vector<std::string> places = places_of(row, place);
    return declared + places[1] + " * " + std::to_string(row.axes[0].extent) + " + " + places[0] + ";\n";
  }

  // Makes the elements of a row and stores them, in chunks where results lie along the row.
  std::string stored_row(const RowChunks& row, Scope& rows, const std::string& read_again, std::string& head) {
    const std::string type = storage_name(body_.output),
                      chunk = "gopt_chunk<" + type + ", " + std::to_string(row.count) + ">";
    Scope &at = bound_to_chunk(row, rows), &own = writer_.add_scope(rows);
    std::string places;
    for (size_t a = 0; a < row.axes.size(); a++) {
      const std::string name = writer_.fresh("i");
      own.bound.push_back({row.axes[a].symbol, name});
      places += "[[maybe_unused]] const int64_t " + name + " = " +
                (row.axes.size() == 1 ? "first + e" : places_of(row, "(first + e)")[a]) + ";\n";
    }
    const std::string value = element(own);
    if (coefficient(body_.offset, row.axes.back().symbol) != 1)
      return row_loop(row, places, own.code + value, read_again);
    head += type + "* const all_out = out;\n";
    return row_loop(row, places, "const auto out = own_out.element(e);\n" + own.code + value,
                    read_again + chunk + " own_out(" + writer_.index_text(body_.offset, at) + ");\n",
                    "own_out.store(all_out);\n");
  }

  // Before the kernel before has ended, for all rows, or for one.
  enum class Kept { Ahead, Once, ByRow };
  Kept kept_of(int input, const RowChunks& row, const Index& offset) const {
    std::set<AtomId> symbols;
    collect_symbols(offset, symbols);
    if (!std::ranges::all_of(symbols, [&](AtomId symbol) { return row.is_along(symbol); })) return Kept::ByRow;
    return constants_.contains(input) ? Kept::Ahead : Kept::Once;
  }

  std::string chunk_type(const RowChunks& row, int input) const {
    return "gopt_chunk<" + storage_name(body_.inputs[static_cast<size_t>(input)]) + ", " + std::to_string(row.count) +
           ">";
  }
  std::string chunk_text(const RowChunks& row, int input, const Index& offset, const Scope& at) const {
    return chunk_type(row, input) + "(all_in" + std::to_string(input) + ", " + writer_.index_text(offset, at) + ")";
  }

  // Of a row that is not kept: its inputs' chunks at `first`.
  std::string reads_of(const RowChunks& row, const Scope& at) const {
    std::string text;
    for (const auto& [input, offset] : row.offsets)
      text += "[[maybe_unused]] const auto row_in" + std::to_string(input) + " = " +
              chunk_text(row, input, offset, at) + ";\n";
    return text;
  }

  // Reads these inputs' chunks, where they are kept; `head` names what they are read from.
  std::string kept(const RowChunks& row, Scope& rows, Kept when, std::string& head) {
    Scope& at = bound_to_chunk(row, rows);
    std::string text, reads;
    for (const auto& [input, offset] : row.offsets) {
      if (kept_of(input, row, offset) != when) continue;
      const std::string name = "in" + std::to_string(input),
                        type = storage_name(body_.inputs[static_cast<size_t>(input)]);
      head += "const " + type + "* const all_" + name + " = " + name + ";\n";
      text += chunk_type(row, input) + " row_" + name + "[" + std::to_string(row.each) + "];\n";
      reads += "row_" + name + "[k] = " + chunk_text(row, input, offset, at) + ";\n";
    }
    return reads.empty() || !row.is_kept ? "" : text + at.code + chunk_loop(row, reads);
  }

  // Over a thread's chunks: k, whose first element is `first`.
  static std::string chunk_loop(const RowChunks& row, const std::string& body) {
    const std::string step = std::to_string(row.threads * row.blocks * row.count),
                      guard = row.is_whole() ? "" : "if (first < " + std::to_string(row.elements) + ") {\n";
    return std::string(row.is_kept ? "#pragma unroll" : "#pragma unroll 4") + "\nfor (int k = 0; k < " +
           std::to_string(row.each) + "; k++) {\nconst int64_t first = of_thread + k * " + step + ";\n" + guard + body +
           (guard.empty() ? "" : "}\n") + "}\n";
  }

  // Over their elements: e, whose places are declared first.
  static std::string row_loop(const RowChunks& row, const std::string& places, const std::string& body,
                              const std::string& before, const std::string& after = "") {
    std::string elements;
    for (const auto& [input, _] : row.offsets) {
      const std::string own = "in" + std::to_string(input);
      elements +=
          "[[maybe_unused]] const auto " + own + " = row_" + own + (row.is_kept ? "[k]" : "") + ".element(e);\n";
    }
    return chunk_loop(row, before + "#pragma unroll\nfor (int e = 0; e < " + std::to_string(row.count) + "; e++) {\n" +
                               places + elements + body + "}\n" + after);
  }

  CudaKernel finished(const std::string& text, const std::string& before = "") const {
    // A step reads what others of the same launch wrote: nothing says that it does not change.
    CudaKernel kernel = cuda_kernel(body_, overlaps_ || is_step(), text, before, constants_);
    kernel.blocks = kernel_.blocks, kernel.threads = kernel_.threads;
    kernel.of_each = kernel_.of_each, kernel.meets = kernel_.meets;
    return kernel;
  }

  // One of the threads that divide a row stores what is one of it; of a block's last columns some may be no rows.
  std::string guard_of_store() const {
    const bool is_one = lanes_.empty() && shared_;
    if (!columns_) return is_one ? "threadIdx.x == 0" : "";
    const int64_t count = cuda_count(rows_);
    const std::string of_block = std::to_string(columns_->count);
    std::string guard = is_one ? "threadIdx.x < " + of_block : "";
    if (count % columns_->count != 0)
      guard += std::string(guard.empty() ? "" : " && ") + "first_row + threadIdx.x % " + of_block + " < " +
               std::to_string(count);
    return guard;
  }

  // A thread, a block or a block's columns take every so-manieth.
  std::string rows_loop(int64_t count) const {
    const std::string wide = cuda_index_type(count);
    if (columns_) {
      const std::string of_block = std::to_string(columns_->count);
      return cuda_loop("first_row", count, "blockIdx.x * " + of_block, "gridDim.x * " + of_block) + "const " + wide +
             " row = gopt_min<" + wide + ">(first_row + threadIdx.x % " + of_block + ", " + std::to_string(count - 1) +
             ");\n";
    }
    if (is_step() && !takes_chunks_as_step(body_))
      return "for (uint32_t own = threadIdx.x; own < units.count(); own += blockDim.x) {\nconst uint32_t row = "
             "units.number(own);\nif (row >= " +
             std::to_string(count) + ") continue;\n";
    const std::string block = is_step() ? "blockIdx.y" : "blockIdx.x", blocks = is_step() ? "gridDim.y" : "gridDim.x";
    const std::string of_block = shared_ ? "" : " * (" + wide + ")blockDim.x";
    return cuda_loop("row", count, block + of_block + (shared_ ? "" : " + threadIdx.x"), blocks + of_block);
  }

  bool is_step() const { return together_ == Together::Nothing; }

  // Rows are what some reduction depends on; the other loops are lanes within a row.
  void divide() {
    std::vector<Reduction> reductions;
    std::set<const Expr::Node*> seen;
    outer_reductions(body_.value, reductions, seen);
    int64_t longest = 1;
    for (const Reduction& r : reductions) longest = std::max(longest, r.extent);
    for (const Loop& loop : body_.loops) {
      const bool row = is_step() || reductions.empty() ||
                       std::any_of(reductions.begin(), reductions.end(),
                                   [&](const Reduction& r) { return r.symbols.contains(loop.symbol); });
      (row ? rows_ : lanes_).push_back(loop);
    }
    shared_ = longest >= kWarp && (!lanes_.empty() || cuda_count(rows_) < kManyElements);
    if (is_step()) shared_ = false;
    if (!shared_) return;
    columns_ = columns_of(body_, rows_, longest);
    if (columns_) {
      const std::string of_block = std::to_string(columns_->count);
      kernel_.threads = columns_->threads * columns_->count;
      writer_.threads = {columns_->threads, "threadIdx.x / " + of_block};
      writer_.reduce = "gopt_column_reduce<" + of_block + ">";
      return;
    }
    kernel_.threads = kWarp;
    while (kernel_.threads < kThreads && kernel_.threads < std::max(longest, cuda_count(lanes_))) kernel_.threads *= 2;
    writer_.threads.count = kernel_.threads;
  }

  std::string lane_loop() const {
    const int64_t count = cuda_count(lanes_);
    return shared_ ? thread_loop(cuda_index_type(count), "lane", count, writer_.threads)
                   : cuda_loop("lane", count, "0", "1");
  }

  std::string decode(const std::vector<Loop>& loops, const std::string& from, Scope& scope) {
    return cuda_decode(writer_, loops, from, scope);
  }

  std::string element(Scope& scope) { return cuda_element(writer_, body_, scope); }

  const KernelBody body_;
  bool overlaps_;
  Together together_;
  const std::set<int>& constants_;
  Writer writer_;
  CudaKernel kernel_;
  std::vector<Loop> rows_, lanes_;
  bool shared_ = false;             // threads of a block divide the reductions of a row
  std::optional<Columns> columns_;  // of several rows
};

CudaKernel print_kernel(const KernelBody& body, bool overlaps, const std::set<int>& constants, Together together) {
  CudaKernel kernel = KernelPrinter(body, overlaps, constants, together).print();
  if (kernel.of_each > 1)
    kernel.otherwise = std::make_shared<CudaKernel>(
        print_kernel(body, overlaps, constants, kernel.meets ? Together::Clusters : Together::Blocks));
  return kernel;
}

}  // namespace

CudaKernel cuda_kernel(const KernelBody& body, bool overlaps, const std::string& text, const std::string& before,
                       const std::set<int>& constants) {
  const auto restrict = [&](bool is) { return std::string(is && !overlaps ? "* __restrict__ " : "* "); };
  std::string parameters;
  for (size_t i = 0; i < body.inputs.size(); i++)
    parameters += "const " + storage_name(body.inputs[i]) + restrict(constants.contains(static_cast<int>(i))) + "in" +
                  std::to_string(i) + ", ";
  return {parameters + storage_name(body.output) + restrict(true) + "out", before, text};
}

std::string CudaKernel::body() const {
  return indented("{\ngopt_let_next_begin();\n" + before + "gopt_wait();\n" + text + "}\n");
}

int64_t cuda_count(const std::vector<Loop>& loops) {
  int64_t count = 1;
  for (const Loop& loop : loops) count *= loop.extent().constant();
  return count;
}

std::string cuda_decode(Writer& writer, const std::vector<Loop>& loops, const std::string& from, Scope& scope,
                        const std::string& type) {
  std::string text, rest = from;
  for (size_t l = loops.size(); l-- > 0;) {
    const std::string name = writer.fresh("i"), extent = std::to_string(loops[l].extent().constant());
    scope.bound.push_back({loops[l].symbol, name});
    const std::string low = loops[l].low == Index(0) ? "" : " + " + std::to_string(loops[l].low.constant());
    text += type + " " + name + " = " + (l == 0 ? rest : rest + " % " + extent) + low + ";\n";
    rest = l == 0 ? rest : "(" + rest + " / " + extent + ")";
  }
  return text;
}

std::string cuda_index_type(int64_t count) { return count < kMaxNarrow ? "uint32_t" : "uint64_t"; }

std::string cuda_loop(const std::string& name, int64_t count, const std::string& first, const std::string& step) {
  return "for (" + cuda_index_type(count) + " " + name + " = " + first + "; " + name + " < " + std::to_string(count) +
         "; " + name + " += " + step + ") {\n";
}

std::string cuda_element(Writer& writer, const KernelBody& body, Scope& scope) {
  const Scalar type = writer.type_of(body.value, scalar_of(body.output));
  std::string value = writer.value(body.value, scope, type);
  // A bfloat16 has the range of a float.
  if (body.narrows && body.output == ElementType::Float16) value = "gopt_within_half(" + value + ")";
  return "out[" + writer.index_text(body.offset, scope) + "] = " + stored(value, type, body.output) + ";\n";
}

std::vector<CudaKernel> print_cuda_kernels(const KernelBody& body, bool overlaps, const std::set<int>& constants) {
  std::vector<CudaKernel> kernels;
  for (const KernelBody& part : reshape_loops(body))
    kernels.push_back(print_kernel(part, overlaps, constants, Together::Device));
  return kernels;
}

CudaKernel print_cuda_step(const KernelBody& body) { return KernelPrinter(body, false, {}, Together::Nothing).print(); }

bool takes_chunks_as_step(const KernelBody& body) {
  const auto chunks = chunks_of(body);
  return chunks && cuda_count(body.loops) >= kThreadsOfBlock * kBlocksOfChain * chunks->count;
}

}  // namespace gopt::codegen
