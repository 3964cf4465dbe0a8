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
#include "row_chunks_kernel.h"
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
      if (const auto row = row_chunks_of(body_, rows_, lanes_, most_blocks()))
        return print_row_chunks(writer_, body_, *row, rows_, lanes_, constants_);
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

  CudaKernel finished(const std::string& text, const std::string& before = "") const {
    // A step reads what others of the same launch wrote: nothing says that it does not change.
    CudaKernel kernel = cuda_kernel(body_, overlaps_ || is_step(), text, before, constants_);
    kernel.blocks = kernel_.blocks, kernel.threads = kernel_.threads;
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
