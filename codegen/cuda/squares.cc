#include "squares.h"

#include <algorithm>
#include <set>

#include "../transform.h"
#include "../writer.h"
#include "gopt/contains.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kSide = 32, kThreads = 256, kLines = kThreads / kSide;  // kLines: of a square that are moved at once
constexpr int64_t kPitch = kSide + 1;                                     // neighbouring lines begin in different banks
constexpr int64_t kFewest = 16;                                           // of either side, for which it is worth it
constexpr int64_t kFewestElements = 65536;

// What an element reads, wherever it is: under no condition.
bool collect_reads(const Expr& e, bool is_guarded, std::vector<Expr>& reads, std::vector<Expr>& guarded) {
  if (e->kind == ExprKind::Reduce) return false;
  if (e->kind == ExprKind::Read) {
    std::vector<Expr>& own = is_guarded ? guarded : reads;
    if (!contains(own, e)) own.push_back(e);
    return true;
  }
  return std::ranges::all_of(e->args, [&](const Expr& arg) {
    return collect_reads(arg, is_guarded || e->kind == ExprKind::Select, reads, guarded);
  });
}

// The loop along which a read lies together, if it does not along the last one.
std::optional<size_t> loop_across(const KernelBody& body, const Expr& read) {
  const Index& from = read->subscripts[0];
  if (has_load(from) || coefficient(from, body.loops.back().symbol).value_or(1) < kFewest) return std::nullopt;
  for (size_t l = 0; l + 1 < body.loops.size(); l++) {
    const Loop& loop = body.loops[l];
    const bool is_together = coefficient(from, loop.symbol) == 1 && coefficient(body.offset, loop.symbol).has_value();
    if (is_together && loop.extent().constant() >= kFewest) return l;
  }
  return std::nullopt;
}

// The text of one kernel, with the reads as inputs of their own, which are in shared memory.
class SquareText {
 public:
  SquareText(const KernelBody& body, const Squares& squares)
      : given_(body),
        body_(body),
        reads_(squares.reads),
        across_(squares.across),
        columns_(body.loops[across_]),
        rows_(body.loops.back()) {
    for (const Expr& read : reads_) body_.inputs.push_back(body.inputs[static_cast<size_t>(read->input)]);
    body_.value = replace_reads(body.value, [&](int input, const std::vector<Index>& subscripts) {
      for (size_t k = 0; k < reads_.size(); k++)
        if (input == reads_[k]->input && subscripts == reads_[k]->subscripts)
          return gopt::read(static_cast<int>(given_.inputs.size() + k), {Index::from_atom(place_)});
      return Expr();
    });
  }
  ~SquareText() { release_symbol(place_); }
  SquareText(const SquareText&) = delete;
  SquareText& operator=(const SquareText&) = delete;

  CudaKernel print() {
    Writer writer(body_);
    writer.pragmas = false;
    writer.takes_short_functions = is_half(body_.output);
    Scope& square = writer.add_scope(writer.root());
    const std::string decoded = decode(writer, square);
    Scope& from = writer.add_scope(square);
    from.bound = {{rows_.symbol, "row"}, {columns_.symbol, "column"}};
    std::string shared, reads;
    for (size_t k = 0; k < reads_.size(); k++) {
      const std::string tile = "in" + std::to_string(given_.inputs.size() + k);
      shared += "__shared__ " + storage_name(given_.inputs[static_cast<size_t>(reads_[k]->input)]) + " " + tile + "[" +
                std::to_string(kSide * kPitch) + "];\n";
      reads += tile + "[line * " + std::to_string(kPitch) + " + place] = in" + std::to_string(reads_[k]->input) + "[" +
               writer.index_text(reads_[k]->subscripts[0], from) + "];\n";
    }
    Scope& to = writer.add_scope(square);
    to.bound = from.bound;
    to.bound.emplace_back(place_, "(place * " + std::to_string(kPitch) + " + line)");
    const std::string store = cuda_element(writer, body_, to);
    const std::string text = writer.root().code + shared + "const int place = threadIdx.x % " + std::to_string(kSide) +
                             ";\n" + cuda_loop("square", count_, "blockIdx.x", "gridDim.x") + decoded + square.code +
                             lines("row", "column", from.code + reads) + "__syncthreads();\n" +
                             lines("column", "row", to.code + store) + "__syncthreads();\n}\n";
    CudaKernel kernel = cuda_kernel(given_, false, text);
    kernel.threads = kThreads;
    kernel.blocks = std::min(kMostCudaBlocks, count_);
    return kernel;
  }

 private:
  static int64_t sides(const Loop& loop) { return (loop.extent().constant() + kSide - 1) / kSide; }

  static std::string from_low(const Loop& loop) {
    return loop.low == Index(0) ? "" : " + " + std::to_string(loop.low.constant());
  }

  // A square's first row and column, and the loops around, from its number.
  std::string decode(Writer& writer, Scope& scope) {
    std::string text, rest = "square";
    const auto next = [&](int64_t extent) {
      const std::string own = rest + " % " + std::to_string(extent);
      rest = "(" + rest + " / " + std::to_string(extent) + ")";
      count_ *= extent;
      return own;
    };
    const auto first_of = [&](const char* name, const Loop& loop) {
      text += "const int64_t " + std::string(name) + " = " + next(sides(loop)) + " * " + std::to_string(kSide) +
              from_low(loop) + ";\n";
    };
    first_of("first_row", rows_);
    first_of("first_column", columns_);
    for (size_t l = body_.loops.size() - 1; l-- > 0;) {
      if (l == across_) continue;
      const Loop& loop = body_.loops[l];
      const std::string name = writer.fresh("i");
      text += "const int64_t " + name + " = " + next(loop.extent().constant()) + from_low(loop) + ";\n";
      scope.bound.emplace_back(loop.symbol, name);
    }
    return text;
  }

  // A warp goes along `along`, of all lines some at once.
  std::string lines(const std::string& down, const std::string& along, const std::string& body) const {
    const auto end = [&](const std::string& name) {
      return std::to_string((name == "row" ? rows_ : columns_).high.constant());
    };
    return "#pragma unroll\nfor (int k = 0; k < " + std::to_string(kSide / kLines) + "; k++) {\nconst int line = k * " +
           std::to_string(kLines) + " + threadIdx.x / " + std::to_string(kSide) + ";\nconst int64_t " + down +
           " = first_" + down + " + line, " + along + " = first_" + along + " + place;\nif (" + down + " < " +
           end(down) + " && " + along + " < " + end(along) + ") {\n" + body + "}\n}\n";
  }

  const KernelBody& given_;
  KernelBody body_;
  const std::vector<Expr> reads_;
  const size_t across_;
  const Loop columns_, rows_;
  const AtomId place_ = fresh_symbol();  // in a square, of what is turned over
  int64_t count_ = 1;
};

}  // namespace

std::optional<Squares> squares_of(const KernelBody& body) {
  constexpr size_t kMostReads = 4;
  if (body.loops.size() < 2 || body.value->height > 0) return std::nullopt;
  int64_t elements = 1;
  for (const Loop& loop : body.loops) elements *= loop.extent().as_constant().value_or(0);
  const Loop& last = body.loops.back();
  if (elements < kFewestElements || last.extent().constant() < kFewest || coefficient(body.offset, last.symbol) != 1)
    return std::nullopt;
  std::vector<Expr> reads, guarded;
  if (!collect_reads(body.value, false, reads, guarded)) return std::nullopt;
  std::optional<Squares> squares;
  for (const Expr& read : reads) {
    const auto across = loop_across(body, read);
    if (!across || (squares && squares->across != *across)) continue;
    if (!squares) squares = Squares{*across, {}};
    if (squares->reads.size() < kMostReads) squares->reads.push_back(read);
  }
  return squares;
}

CudaKernel print_squares(const KernelBody& body, const Squares& squares) { return SquareText(body, squares).print(); }

}  // namespace gopt::codegen
