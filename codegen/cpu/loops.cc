#include "loops.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "../reshape.h"
#include "../sizes.h"
#include "../writer.h"
#include "shared_loops.h"
#include "transposition.h"

namespace gopt::codegen {
namespace {

// Scalar operations below which other threads, which are awake as a rule (codegen/loaded_model.cc), come and go in the
// time that they save; the least that an element counts for, since memory takes its time.
constexpr double kParallelWork = 3e5, kWorkOfElement = 8;
constexpr int64_t kChunksOfThread = 4;
constexpr int64_t kTile = 1024;                          // lanes of arrays where other loops are shared among threads
constexpr int64_t kMaxTile = 4096;                       // lanes of arrays at all
constexpr int64_t kFewLanes = 128;                       // fewer are shared where each takes long
constexpr double kLongLane = 2048, kLongReduction = 64;  // operations of an element

int64_t usual_extent(const Loop& loop, const KernelBody& body) { return usual(loop.extent(), body.open).value(); }

// Of one element.
class OperationCounter {
 public:
  explicit OperationCounter(const KernelBody& body) : body_(body) {}
  double run() { return count(body_.value) + kWorkOfElement; }

 private:
  double count(const Expr& e) {
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    double n = e->kind == ExprKind::Call ? 10 : 1;
    for (const Expr& a : e->args) n += count(a);
    for (const Binder& b : e->binders) n *= static_cast<double>(usual(b.extent, body_.open).value_or(1));
    return memo_[e.get()] = n;
  }

  const KernelBody& body_;
  std::unordered_map<const Expr::Node*, double> memo_;
};

Index element_count(const KernelBody& body) {
  Index count(1);
  for (const Loop& loop : body.loops) count = count * loop.extent();
  return count;
}

double total_work(const KernelBody& body) {
  double work = OperationCounter(body).run();
  for (const Loop& loop : body.loops) work *= static_cast<double>(usual_extent(loop, body));
  return work;
}

// Symbols of each outermost reduction.
void outer_reductions(const Expr& e, std::vector<std::set<AtomId>>& out, std::set<const Expr::Node*>& seen) {
  if (!seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::Reduce) {
    std::set<AtomId> symbols;
    collect_symbols(e, symbols);
    out.push_back(std::move(symbols));
    return;
  }
  for (const Expr& a : e->args) outer_reductions(a, out, seen);
}

// Those outermost ones that do not know the symbol, outside of guards.
void outer_reductions(const Expr& e, AtomId symbol, std::vector<Expr>& out, std::set<const Expr::Node*>& seen) {
  if (e->kind == ExprKind::Select || !seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::Reduce) {
    std::set<AtomId> symbols;
    collect_symbols(e, symbols);
    if (!symbols.contains(symbol)) out.push_back(e);
    return;
  }
  for (const Expr& a : e->args) outer_reductions(a, symbol, out, seen);
}

class BoxPrinter {
 public:
  // `keeps_rows`: rows whose length is open are taken to fit on the stack.
  BoxPrinter(KernelBody body, bool parallel, int threads, bool keeps_rows)
      : body_(std::move(body)), parallel_(parallel), keeps_rows_(keeps_rows), threads_(threads), writer_(body_) {
    std::set<const Expr::Node*> seen;
    outer_reductions(body_.value, reductions_, seen);
    order_loops();
  }

  std::string print() {
    Scope& root = writer_.root();
    if (body_.loops.empty()) {
      const std::string text = element(root);
      return alone() + "{\n" + root.code + text + "}\n";
    }
    for (const Loop& loop : body_.loops) names_.push_back(writer_.fresh("i")), (void)loop;
    choose_parallel_loops();
    const std::string loops = print_loops(root);
    return (collapse_ == 0 ? alone() : "") + "{\n" + root.code + loops + "}\n";
  }

  // The length that some row was taken to have at most kMaxRow of.
  std::optional<Index> kept_row() const {
    return writer_.keeps_row && !writer_.row->extent.is_constant() ? std::optional(writer_.row->extent) : std::nullopt;
  }

 private:
  // Loops that every reduction depends on go outside, so that a reduction is computed once and not again in loops that
  // it does not know. The innermost loop stays.
  void order_loops() {
    if (body_.loops.size() < 3 || reductions_.empty()) return;
    auto last = body_.loops.end() - 1;
    std::stable_partition(body_.loops.begin(), last, [&](const Loop& loop) {
      return std::all_of(reductions_.begin(), reductions_.end(),
                         [&](const auto& symbols) { return symbols.contains(loop.symbol); });
    });
  }

  void choose_parallel_loops() {
    const size_t outer = body_.loops.size() - 1;
    const Loop& lanes = body_.loops.back();
    const bool lane_reduction =
        std::any_of(reductions_.begin(), reductions_.end(), [&](const auto& s) { return s.contains(lanes.symbol); });
    const bool is_open = !lanes.extent().is_constant();
    const int64_t extent = usual_extent(lanes, body_);
    tile_ = lane_reduction ? kTile : extent;
    if (parallel_) {
      const bool has_lanes = extent >= kFewLanes || (extent >= 2 * threads_ && takes(kLongLane));
      // What reductions keep for each lane is computed again in loops that they do not know: threads share no such
      // loop, but where there are too few lanes to share and reductions are short.
      const size_t known = loops_of_reductions();
      const bool is_kept = lane_reduction && known < outer && (has_lanes || takes(kLongReduction));
      size_t limit = is_kept ? known : outer;
      for (const auto& symbols : reductions_) {
        size_t prefix = 0;
        while (prefix < outer && symbols.contains(body_.loops[prefix].symbol)) prefix++;
        // A reduction that knows no outer loop is computed before them all.
        if (prefix > 0) limit = std::min(limit, prefix);
      }
      int64_t chunks = 1;
      while (collapse_ < limit && chunks < kChunksOfThread * threads_)
        chunks *= usual_extent(body_.loops[collapse_++], body_);
      if (chunks < 2 * threads_ && collapse_ == (is_kept ? limit : outer) && has_lanes)
        share_lanes(extent, chunks, lane_reduction);
    }
    tiled_ = is_open ? lane_reduction || tile_is_parallel_ : tile_ < extent;
  }

  // Whether an element takes so many operations. A thread's turn is worth a long lane: the mean of an image, for one.
  bool takes(double operations) const { return OperationCounter(body_).run() >= operations; }

  // Too few outer iterations: threads divide the lanes, each in as long a run as there is.
  void share_lanes(int64_t extent, int64_t chunks, bool lane_reduction) {
    const int64_t parts = std::max<int64_t>(1, (lane_reduction ? 1 : kChunksOfThread) * threads_ / chunks);
    const int64_t whole = extent >= 8 * kFewLanes ? 64 : extent >= kFewLanes ? 16 : 1;
    tile_ = std::min(((extent + parts - 1) / parts + whole - 1) / whole * whole, lane_reduction ? kMaxTile : extent);
    const bool is_open = !body_.loops.back().extent().is_constant();
    if (!is_open && tile_ >= extent) return;
    tile_is_parallel_ = true;
    collapse_++;
    if (is_open && !lane_reduction) open_parts_ = parts;
  }

  // Of what one thread does.
  std::string alone() const { return parallel_ ? "if (part == 0) " : ""; }

  std::string text_of(const Index& size) { return writer_.index_text(size, writer_.root()); }

  LoopHeader header(const std::string& name, const Loop& loop, const std::string& step = "1") {
    return {name, text_of(loop.low), text_of(loop.high), step};
  }

  // How many of the outer loops all reductions know: what those keep for a tile serves the loops within them.
  size_t loops_of_reductions() const {
    const auto knows = [&](AtomId symbol) {
      return [symbol](const std::set<AtomId>& symbols) { return symbols.contains(symbol); };
    };
    size_t count = 0;
    while (count + 1 < body_.loops.size() &&
           std::all_of(reductions_.begin(), reductions_.end(), knows(body_.loops[count].symbol)))
      count++;
    return count;
  }

  // The lanes of one tile; of open ones that threads divide, what is worked out before the loops.
  std::string tile_text(Scope& root) {
    if (open_parts_ == 0) return std::to_string(tile_);
    const std::string parts = std::to_string(open_parts_);
    root.code += "const int64_t tile_size = gopt_max<int64_t>(64, ((" + text_of(body_.loops.back().extent()) + " + " +
                 std::to_string(open_parts_ - 1) + ") / " + parts + " + 63) / 64 * 64);\n";
    return "tile_size";
  }

  std::string print_loops(Scope& root) {
    const size_t outer = body_.loops.size() - 1;
    std::vector<std::string> open;  // text that opens each scope
    std::vector<Scope*> scopes{&root};
    const size_t plain_parallel = collapse_ - (tile_is_parallel_ ? 1 : 0);
    std::vector<LoopHeader> together;
    auto enter = [&](const std::string& text) -> Scope& {
      open.push_back(text);
      scopes.push_back(&writer_.add_scope(*scopes.back()));
      return *scopes.back();
    };
    Scope* parallel = nullptr;
    for (size_t l = 0; l < plain_parallel; l++) together.push_back(header(names_[l], body_.loops[l]));
    const Loop& lanes = body_.loops.back();
    const std::string tile = tile_text(root);
    if (tile_is_parallel_) together.push_back(header("tile", lanes, tile));
    if (collapse_ > 0) {
      parallel = &enter(opening_of(together, true));
      for (size_t l = 0; l < plain_parallel; l++) parallel->bound.push_back({body_.loops[l].symbol, names_[l]});
      parallel->tile = tile_is_parallel_;
      parallel->divided = true;
    }
    const auto enter_loops = [&](size_t first, size_t last) {
      for (size_t l = first; l < last; l++)
        enter(opening_of({header(names_[l], body_.loops[l])}, false)).bound = {{body_.loops[l].symbol, names_[l]}};
    };
    const size_t before_tile = tile_is_parallel_ ? outer : std::max(plain_parallel, loops_of_reductions());
    enter_loops(plain_parallel, before_tile);
    if (tiled_ && !tile_is_parallel_) enter(opening_of({header("tile", lanes, tile)}, false)).tile = true;
    if (tiled_)
      (tile_is_parallel_ ? parallel : scopes.back())->code +=
          "const int64_t tile_end = gopt_min<int64_t>(tile + " + tile + ", " + text_of(lanes.high) + ");\n";
    enter_loops(before_tile, outer);

    Scope& own = writer_.add_scope(*scopes.back());
    own.lanes = true;
    own.bound = {{lanes.symbol, names_.back()}};
    own.low = tiled_ ? "tile" : text_of(lanes.low);
    own.high = tiled_ ? "tile_end" : text_of(lanes.high);
    const int64_t untiled = lanes.extent().as_constant().value_or(0);  // 0: no arrays over them
    own.lane_count = !tiled_ ? untiled : open_parts_ == 0 ? tile_ : 0;
    const std::string store = element(own);
    // Few lanes that are only moved: without a word of ours the compiler makes vectors of several rounds of them.
    constexpr int64_t kFewMoved = 4;
    const bool are_few = is_move() && outer > 0 && lanes.extent().as_constant().value_or(kFewMoved + 1) <= kFewMoved;
    std::string inner = own.has_loop || are_few ? "" : "#pragma omp simd\n";
    inner += "for (int64_t " + names_.back() + " = " + own.low + "; " + names_.back() + " < " + own.high + "; " +
             names_.back() + "++) {\n" + own.code + store + "}\n";
    for (size_t s = scopes.size(); s-- > 1;) inner = open[s - 1] + scopes[s]->code + inner + "}\n";
    return inner;
  }

  // Reductions that the vector loop only reads come first, since they may leave a row behind that it needs.
  void write_reductions(Scope& scope) {
    const Loop& lanes = body_.loops.back();
    if (tiled_ || lanes.low != Index(0) || (!lanes.high.is_constant() && !keeps_rows_)) return;
    writer_.row = {lanes.symbol, lanes.high, lanes.high.as_constant().value_or(kMaxRow)};
    std::vector<Expr> found;
    std::set<const Expr::Node*> seen;
    outer_reductions(body_.value, lanes.symbol, found, seen);
    // Of constants alone they are of the result's type.
    const Scalar real = body_.output == ElementType::Float64 ? Scalar::Double : Scalar::Float;
    for (const Expr& e : found) (void)writer_.value(e, scope, writer_.type_of(e, real));
  }

  bool is_move() const { return body_.value->kind == ExprKind::Read && !has_load(body_.value->subscripts[0]); }

  std::string element(Scope& scope) {
    if (!body_.loops.empty()) write_reductions(scope);
    // Halves are moved as they are: to floats and back would round what is rounded.
    if (is_move() && is_half(body_.output) && body_.inputs[static_cast<size_t>(body_.value->input)] == body_.output)
      return "out[" + writer_.index_text(body_.offset, scope) + "] = in" + std::to_string(body_.value->input) + "[" +
             writer_.index_text(body_.value->subscripts[0], scope) + "];\n";
    const Scalar type = writer_.type_of(body_.value, scalar_of(body_.output));
    const std::string value = writer_.value(body_.value, scope, type);
    return "out[" + writer_.index_text(body_.offset, scope) + "] = " + stored(value, type, body_.output) + ";\n";
  }

  KernelBody body_;
  bool parallel_, keeps_rows_;
  int threads_;
  int64_t tile_ = 0, open_parts_ = 0;  // open_parts_: of a vector loop whose length is open, where threads divide it
  Writer writer_;
  std::vector<std::set<AtomId>> reductions_;
  std::vector<std::string> names_;
  size_t collapse_ = 0;
  bool tiled_ = false, tile_is_parallel_ = false;
};

}  // namespace

namespace {

std::string print_box(const KernelBody& box, bool parallel, int threads) {
  if (const auto text = print_transposition(box, parallel)) return *text;
  BoxPrinter printer(box, parallel, threads, true);
  const std::string text = printer.print();
  const auto row = printer.kept_row();
  if (!row) return text;
  const std::string length = Writer(box).index_text(*row, Scope());
  return "if (" + length + " <= " + std::to_string(kMaxRow) + ") {\n" + text + "} else {\n" +
         BoxPrinter(box, parallel, threads, false).print() + "}\n";
}

// Where extents are open, whether threads share it is decided when it runs.
std::string threads_text(const KernelBody& body) {
  const Index count = element_count(body);
  const std::string all = "gopt_runtime::threads_now()";
  if (count.is_constant()) return all;
  return Writer(body).index_text(count, Scope()) + " > " +
         std::to_string(static_cast<int64_t>(kParallelWork / OperationCounter(body).run())) + " ? " + all + " : 1";
}

constexpr std::string_view kSimd = "#pragma omp simd";

// Whether the loop that begins at this place reads something under a condition.
bool has_guarded_read(const std::string& text, size_t loop) {
  size_t end = text.find('{', loop);
  for (int depth = 0; end < text.size(); end++) {
    depth += text[end] == '{' ? 1 : text[end] == '}' ? -1 : 0;
    if (depth == 0) break;
  }
  const std::string_view body = std::string_view(text).substr(loop, end - loop);
  const size_t condition = std::min(body.find(" ? "), body.find("if ("));
  return condition != std::string_view::npos && body.find("in", condition) != std::string_view::npos;
}

// Vector loops with guarded reads, each from a number on that is not known (gopt_first).
std::string with_hidden_begins(std::string text) {
  for (size_t at = text.find(kSimd); at != std::string::npos; at = text.find(kSimd, at + 1)) {
    const size_t loop = text.find("for (", at), begin = text.find(" = ", loop) + 3, end = text.find(';', begin);
    if (!has_guarded_read(text, loop)) continue;
    text.insert(end, ")");
    text.insert(begin, "gopt_first(");
  }
  return text;
}

}  // namespace

std::string print_cpu_kernel(const KernelBody& body, int threads) {
  std::string parameters;
  for (size_t i = 0; i < body.inputs.size(); i++)
    parameters += "const " + storage_name(body.inputs[i]) + "* __restrict in" + std::to_string(i) + ", ";
  parameters += storage_name(body.output) + "* __restrict out";
  if (!body.open.empty()) parameters += ", [[maybe_unused]] const int64_t* n";
  const bool is_open = !element_count(body).is_constant();
  const bool parallel = threads != 1 && !body.loops.empty() && (is_open || total_work(body) > kParallelWork);
  std::string loops;
  for (const KernelBody& part : reshape_loops(body))
    for (const KernelBody& box : split_into_boxes(part)) loops += print_box(box, parallel, threads > 0 ? threads : 16);
  loops = with_hidden_begins(std::move(loops));
  loops = declared_sizes(body.open, loops) + loops;
  if (parallel) {
    const std::string threads = threads_text(body);
    loops = declared_sizes(body.open, threads) + shared_body(parameters, loops, threads);
  }
  return indented("(" + parameters + ") {\n" + loops + "}\n");
}

std::string indented(const std::string& code) {
  std::string result;
  int depth = 0;
  size_t at = 0;
  while (at < code.size()) {
    const size_t end = std::min(code.find('\n', at), code.size());
    const std::string line = code.substr(at, end - at);
    const int closes = !line.empty() && line[0] == '}';
    if (!line.empty())
      result += (line[0] == '#' ? "" : std::string(static_cast<size_t>(2 * std::max(0, depth - closes)), ' ')) + line;
    result += '\n';
    for (char c : line) depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    at = end + 1;
  }
  return result;
}

}  // namespace gopt::codegen
