#include "thread_loops.h"

#include <algorithm>
#include <set>

#include "../cpu/loops.h"
#include "../reshape.h"
#include "../transform.h"
#include "../writer.h"
#include "chunks.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kThreads = 256, kWarp = 32, kThreadsOfChunks = 128;
constexpr int64_t kMaxBlocks = 16384;      // loops over the grid do the rest
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

int64_t count_of(const std::vector<Loop>& loops) {
  int64_t count = 1;
  for (const Loop& loop : loops) count *= loop.extent().constant();
  return count;
}

class KernelPrinter {
 public:
  KernelPrinter(const KernelBody& body, bool overlaps) : body_(body), overlaps_(overlaps), writer_(body_) {
    writer_.pragmas = false;
    writer_.takes_short_functions = is_half(body_.output);
    divide();
  }

  CudaKernel print() {
    if (!overlaps_ && !shared_ && lanes_.empty())
      if (const auto chunks = chunks_of(body_)) return print_chunks(*chunks);
    Scope& root = writer_.root();
    root.shared = shared_;
    Scope& rows = writer_.add_scope(root);
    rows.shared = shared_;
    const std::string decode_rows = decode(rows_, "row", rows);
    Scope& own = lanes_.empty() ? rows : writer_.add_scope(rows);
    const std::string decode_lanes = lanes_.empty() ? "" : decode(lanes_, "lane", own);
    std::string store = element(own);
    if (lanes_.empty() && shared_) store = "if (threadIdx.x == 0) {\n" + store + "}\n";
    std::string text = decode_rows + rows.code;
    if (lanes_.empty())
      text += store;
    else
      text += lane_loop() + decode_lanes + own.code + store + "}\n";
    const int64_t rows_count = count_of(rows_);
    kernel_.blocks = std::min(kMaxBlocks, shared_ ? rows_count : (rows_count + kernel_.threads - 1) / kernel_.threads);
    return finished(root.code + rows_loop(rows_count) + text + "}\n");
  }

 private:
  // A thread makes the elements of a chunk, side by side.
  CudaKernel print_chunks(const Chunks& chunks) {
    const std::string count = std::to_string(chunks.count);
    const Loop inner = rows_.back();
    rows_.pop_back();
    const int64_t of_line = inner.extent().constant() / chunks.count, all = count_of(rows_) * of_line;
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
    kernel_.blocks = std::min(kMaxBlocks, (all + kernel_.threads - 1) / kernel_.threads);
    return finished(writer_.root().code + head + rows_loop(all) + text + "}\n");
  }

  CudaKernel finished(const std::string& text) {
    kernel_.parameters = parameters();
    kernel_.body = indented("{\ngopt_let_next_begin();\ngopt_wait();\n" + text + "}\n");
    return std::move(kernel_);
  }

  // A thread or a block takes every so-manieth.
  std::string rows_loop(int64_t count) const {
    const std::string wide = index_type(count);
    const std::string first = shared_ ? "blockIdx.x" : "blockIdx.x * (" + wide + ")blockDim.x + threadIdx.x";
    return for_each("row", count, first, shared_ ? "gridDim.x" : "gridDim.x * (" + wide + ")blockDim.x");
  }

  // Rows are what some reduction depends on; the other loops are lanes within a row.
  void divide() {
    std::vector<Reduction> reductions;
    std::set<const Expr::Node*> seen;
    outer_reductions(body_.value, reductions, seen);
    int64_t longest = 1;
    for (const Reduction& r : reductions) longest = std::max(longest, r.extent);
    for (const Loop& loop : body_.loops) {
      const bool row = reductions.empty() || std::any_of(reductions.begin(), reductions.end(), [&](const Reduction& r) {
                         return r.symbols.contains(loop.symbol);
                       });
      (row ? rows_ : lanes_).push_back(loop);
    }
    shared_ = longest >= kWarp && (!lanes_.empty() || count_of(rows_) < kManyElements);
    if (!shared_) return;
    kernel_.threads = kWarp;
    while (kernel_.threads < kThreads && kernel_.threads < std::max(longest, count_of(lanes_))) kernel_.threads *= 2;
    writer_.threads = kernel_.threads;
  }

  static std::string index_type(int64_t count) { return count < kMaxNarrow ? "uint32_t" : "uint64_t"; }

  static std::string for_each(const std::string& name, int64_t count, const std::string& first,
                              const std::string& step) {
    return "for (" + index_type(count) + " " + name + " = " + first + "; " + name + " < " + std::to_string(count) +
           "; " + name + " += " + step + ") {\n";
  }

  std::string lane_loop() const {
    const int64_t count = count_of(lanes_);
    return shared_ ? thread_loop(index_type(count), "lane", count, kernel_.threads) : for_each("lane", count, "0", "1");
  }

  // The loops' symbols from one number, the last loop fastest.
  std::string decode(const std::vector<Loop>& loops, const std::string& from, Scope& scope) {
    std::string text, rest = from;
    for (size_t l = loops.size(); l-- > 0;) {
      const std::string name = writer_.fresh("i"), extent = std::to_string(loops[l].extent().constant());
      scope.bound.push_back({loops[l].symbol, name});
      const std::string low = loops[l].low == Index(0) ? "" : " + " + std::to_string(loops[l].low.constant());
      text += "const int64_t " + name + " = " + (l == 0 ? rest : rest + " % " + extent) + low + ";\n";
      rest = l == 0 ? rest : "(" + rest + " / " + extent + ")";
    }
    return text;
  }

  std::string element(Scope& scope) {
    const Scalar type = writer_.type_of(body_.value, scalar_of(body_.output));
    std::string value = writer_.value(body_.value, scope, type);
    // A bfloat16 has the range of a float.
    if (body_.narrows && body_.output == ElementType::Float16) value = "gopt_within_half(" + value + ")";
    return "out[" + writer_.index_text(body_.offset, scope) + "] = " + stored(value, type, body_.output) + ";\n";
  }

  std::string parameters() const {
    const std::string restrict = overlaps_ ? "" : " __restrict__";
    std::string text;
    for (size_t i = 0; i < body_.inputs.size(); i++)
      text += "const " + storage_name(body_.inputs[i]) + "*" + restrict + " in" + std::to_string(i) + ", ";
    return text + storage_name(body_.output) + "*" + restrict + " out";
  }

  const KernelBody& body_;
  bool overlaps_;
  Writer writer_;
  CudaKernel kernel_;
  std::vector<Loop> rows_, lanes_;
  bool shared_ = false;
};

}  // namespace

std::vector<CudaKernel> print_cuda_kernels(const KernelBody& body, bool overlaps) {
  std::vector<CudaKernel> kernels;
  for (const KernelBody& part : reshape_loops(body)) kernels.push_back(KernelPrinter(part, overlaps).print());
  return kernels;
}

}  // namespace gopt::codegen
