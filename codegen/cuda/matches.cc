#include "matches.h"

#include <algorithm>
#include <set>

#include "../transform.h"
#include "gopt/wide_integers.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kFewestUpdates = 64;
constexpr int64_t kFewLanes = 32;         // which leave most of a block idle
constexpr int64_t kManyElements = 65536;  // each of which is as fast by a thread of its own

void outer_reductions(const Expr& e, std::vector<Expr>& out, std::set<const Expr::Node*>& seen) {
  if (!seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::Reduce) {
    if (std::ranges::find(out, e) == out.end()) out.push_back(e);
    return;
  }
  for (const Expr& arg : e->args) outer_reductions(arg, out, seen);
}

bool depends_on(const Expr& e, const std::vector<Loop>& loops) {
  std::set<AtomId> symbols;
  collect_symbols(e, symbols);
  return std::ranges::any_of(loops, [&](const Loop& loop) { return symbols.contains(loop.symbol); });
}

bool depends_on(const Expr& e, AtomId symbol) {
  std::set<AtomId> symbols;
  collect_symbols(e, symbols);
  return symbols.contains(symbol);
}

// Whether what is read of each update follows what is read of the one before.
bool lies_along(const Expr& e, AtomId update) {
  if (e->kind == ExprKind::Read && coefficient(e->subscripts[0], update) != 1) return false;
  return std::ranges::all_of(e->args, [&](const Expr& arg) { return lies_along(arg, update); });
}

bool is_constant(const Expr& e, double value) { return e->kind == ExprKind::Constant && e->value == value; }

// choose(a == b, then, otherwise) of one binder, a side of which is `is_own`.
template <class IsOwn>
bool chooses(const Expr& e, const IsOwn& is_own) {
  if (e->kind != ExprKind::Reduce || e->binders.size() != 1) return false;
  const Expr& chosen = e->args[0];
  if (chosen->kind != ExprKind::Choose || chosen->args[0]->kind != ExprKind::Equal) return false;
  const Expr& test = chosen->args[0];
  return is_own(test->args[0], test->args[1]) || is_own(test->args[1], test->args[0]);
}

bool is_search(const Expr& e) {
  const bool looks = chooses(e, [&](const Expr& place, const Expr& own) {
    const AtomId update = e->binders[0].symbol;
    return depends_on(place, update) && place->height == 0 && own->kind == ExprKind::Size && !depends_on(own, update);
  });
  if (!looks || e->args[0]->height > 0) return false;
  const Expr& nothing = e->args[0]->args[2];
  if (e->reduce == ReduceKind::Sum) return is_constant(nothing, 0);
  if (e->reduce == ReduceKind::Product) return is_constant(nothing, 1);
  return !depends_on(nothing, e->binders[0].symbol);
}

// Of the update whose number `search` is, which is below 0 where there is none.
bool is_pick(const Expr& e, const Expr& search) {
  const bool looks = chooses(e, [&](const Expr& number, const Expr& found) {
    return number == size_of(Index::from_atom(e->binders[0].symbol)) && found == search;
  });
  return looks && e->reduce == ReduceKind::Sum && search->reduce == ReduceKind::Max &&
         is_constant(search->args[0]->args[2], -1) && is_constant(e->args[0]->args[2], 0) &&
         e->args[0]->args[1]->height == 0 && e->binders[0].extent == search->binders[0].extent;
}

class MatchesPrinter {
 public:
  MatchesPrinter(const KernelBody& body, const Matches& matches) : body_(body), m_(matches), writer_(body) {
    writer_.pragmas = false;
    writer_.takes_short_functions = is_half(body.output);
  }

  CudaKernel print() {
    const int64_t lanes = cuda_count(m_.lanes), parts = (lanes + kThreads - 1) / kThreads,
                  count = cuda_count(m_.rows) * parts;
    const std::string of_row = std::to_string(parts);
    Scope& rows = writer_.add_scope(writer_.root());
    const std::string decoded_rows = decode(m_.rows, parts == 1 ? "part" : "(part / " + of_row + ")", rows);
    Scope& own = writer_.add_scope(rows);
    const std::string decoded = decode(m_.lanes, "lane", own);
    // What is the same for all elements of a place is looked for before them, where all that is made of it is computed.
    Scope& home = depends_on(m_.search, m_.lanes) ? own : rows;
    Scope& of_pick = m_.pick && depends_on(m_.pick, m_.lanes) ? own : rows;
    const std::string found = search(home), picked = m_.pick ? pick(of_pick) : "";
    const std::string before_rows = rows.code, before_own = own.code;
    know(home, m_.search, "found");
    if (m_.pick) know(of_pick, m_.pick, "picked");
    const std::string store = cuda_element(writer_, body_, own), type = cuda_index_type(lanes);
    const auto level = [&](const Scope& scope, const std::string& before) {
      return before + (&home == &scope ? found : "") + (&of_pick == &scope ? picked : "") +
             scope.code.substr(before.size());
    };
    const std::string text =
        cuda_loop("part", count, "blockIdx.x", "gridDim.x") + decoded_rows + level(rows, before_rows) + "const " +
        type + " own_lane = " + (parts == 1 ? "" : "part % " + of_row + " * " + std::to_string(kThreads) + " + ") +
        "threadIdx.x;\nconst " + type + " lane = gopt_min<" + type + ">(own_lane, " + std::to_string(lanes - 1) +
        ");\n" + decoded + level(own, before_own) + "if (own_lane < " + std::to_string(lanes) + ") {\n" + store +
        "}\n}\n";
    CudaKernel kernel = cuda_kernel(
        body_, false, "__shared__ int matched[" + std::to_string(kThreads) + "];\n" + writer_.root().code + text);
    kernel.threads = kThreads;
    kernel.blocks = std::min(kMostCudaBlocks, count);
    return kernel;
  }

 private:
  std::string decode(const std::vector<Loop>& loops, const std::string& from, Scope& scope) {
    return cuda_decode(writer_, loops, from, scope, "[[maybe_unused]] const int64_t");
  }

  void know(Scope& scope, const Expr& e, const std::string& name) {
    scope.known.emplace(e->hash, Scope::Entry{e, name, type_of(e), false});
  }
  Scalar type_of(const Expr& e) { return writer_.type_of(e, scalar_of(body_.output)); }

  std::string combined(const std::string& value) const {
    const std::string type = type_name(found_type_);
    switch (m_.search->reduce) {
      case ReduceKind::Sum: return "found = found + " + value + ";\n";
      case ReduceKind::Product: return "found = found * " + value + ";\n";
      case ReduceKind::Max: return "found = gopt_max<" + type + ">(found, " + value + ");\n";
      case ReduceKind::Min: return "found = gopt_min<" + type + ">(found, " + value + ");\n";
    }
    return "";
  }

  // What becomes of the updates: `found`.
  std::string search(Scope& own) {
    const Expr& chosen = m_.search->args[0];
    const AtomId update = m_.search->binders[0].symbol;
    const std::string updates = std::to_string(m_.search->binders[0].extent.constant()),
                      threads = std::to_string(kThreads);
    found_type_ = type_of(m_.search);
    Scope &looked = writer_.add_scope(own), &matching = writer_.add_scope(own);
    looked.bound.emplace_back(update, "looked");
    matching.bound.emplace_back(update, "match");
    const std::string test = writer_.value(chosen->args[0], looked, Scalar::Bool),
                      value = writer_.value(chosen->args[1], matching, found_type_);
    const bool adds = m_.search->reduce == ReduceKind::Sum || m_.search->reduce == ReduceKind::Product;
    std::string others;
    if (!adds)  // the number in place of an update that does not match, of which there is at least one
      others = "if (matches < " + updates + ") " + combined(writer_.value(chosen->args[2], own, found_type_));
    return type_name(found_type_) + " found = " + literal(neutral_element(m_.search->reduce), found_type_) +
           ";\n[[maybe_unused]] int64_t matches = 0;\n" +
           cuda_loop("first", m_.search->binders[0].extent.constant(), "0", threads) +
           "const int64_t looked = gopt_min<int64_t>(first + threadIdx.x, " + updates + " - 1);\n" + looked.code +
           "const int count = gopt_matches<" + threads + ">(first + threadIdx.x < " + updates + " && " + test +
           ", matched);\nmatches += count;\n#pragma unroll 4\nfor (int k = 0; k < count; k++) {\nconst int64_t match = "
           "first + matched[k];\n" +
           matching.code + combined(value) + "}\n}\n" + others;
  }

  // The update whose number was found: `picked`.
  std::string pick(Scope& own) {
    const Scalar type = type_of(m_.pick);
    Scope& at = writer_.add_scope(own);
    at.bound.emplace_back(m_.pick->binders[0].symbol, "last");
    const std::string value = writer_.value(m_.pick->args[0]->args[1], at, type);
    return type_name(type) + " picked = " + literal(0, type) +
           ";\nif (found >= 0) {\nconst int64_t last = (int64_t)found;\n" + at.code + "picked = " + value + ";\n}\n";
  }

  const KernelBody& body_;
  const Matches& m_;
  Writer writer_;
  Scalar found_type_ = Scalar::Float;
};

}  // namespace

std::optional<Matches> matches_of(const KernelBody& body) {
  std::vector<Expr> reductions;
  std::set<const Expr::Node*> seen;
  outer_reductions(body.value, reductions, seen);
  const auto found = std::ranges::find_if(reductions, is_search);
  if (found == reductions.end() || reductions.size() > 2) return std::nullopt;
  Matches matches{*found, {}, {}, {}};
  for (const Expr& e : reductions) {
    if (e == matches.search) continue;
    if (e->kind != ExprKind::Reduce || e->binders.size() != 1 || !is_pick(e, matches.search)) return std::nullopt;
    matches.pick = e;
  }
  // Integers of 64 bits without a sign are compared otherwise than as they are stored.
  const bool compares = matches.search->reduce == ReduceKind::Max || matches.search->reduce == ReduceKind::Min;
  if (compares && is_unsigned(matches.search->args[0], body.inputs)) return std::nullopt;
  const Expr& test = matches.search->args[0]->args[0];
  for (const Loop& loop : body.loops) (depends_on(test, loop.symbol) ? matches.rows : matches.lanes).push_back(loop);
  const int64_t updates = matches.search->binders[0].extent.as_constant().value_or(0),
                lanes = cuda_count(matches.lanes), rows = cuda_count(matches.rows);
  if (updates < kFewestUpdates || rows == 0 || lanes == 0) return std::nullopt;
  const bool has_few_lanes = lanes < kFewLanes;
  if (has_few_lanes && rows * lanes >= kManyElements) return std::nullopt;
  if (lanes == 1 && !lies_along(test, matches.search->binders[0].symbol)) return std::nullopt;
  return matches;
}

CudaKernel print_matches(const KernelBody& body, const Matches& matches) {
  return MatchesPrinter(body, matches).print();
}

}  // namespace gopt::codegen
