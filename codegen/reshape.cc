#include "reshape.h"

#include <algorithm>
#include <unordered_map>

#include "transform.h"

namespace gopt::codegen {

namespace {

// True where outer * extent + inner would serve every index as well as the two symbols do.
bool walk_together(const std::vector<Index>& indexes, AtomId outer, AtomId inner, const Index& extent) {
  for (const Index& i : indexes) {
    const auto a = slope(i, outer), b = slope(i, inner);
    if (!a || !b || *a != *b * extent) return false;
  }
  return true;
}

std::vector<Index> all_indexes(const Expr& e) {
  std::vector<Index> indexes;
  for_each_index(e, [&](const Index& i) { indexes.push_back(i); });
  return indexes;
}

Expr without_symbol(const Expr& e, AtomId symbol) {
  const Substitution zero{{symbol, Index(0)}};
  return map_expr(e, [&](const Index& i) { return substitute(i, zero); });
}

// Binders of each reduction, merged where they walk together.
Expr merge_binders(const Expr& e, std::unordered_map<const Expr::Node*, Expr>& memo) {
  if (auto it = memo.find(e.get()); it != memo.end()) return it->second;
  Expr r = e;
  if (!e->args.empty()) {
    Expr::Node node = *e;
    for (Expr& a : node.args) a = merge_binders(a, memo);
    for (size_t i = 0; i + 1 < node.binders.size();) {
      const Index outer = node.binders[i].extent, inner = node.binders[i + 1].extent;
      if (walk_together(all_indexes(node.args[0]), node.binders[i].symbol, node.binders[i + 1].symbol, inner)) {
        node.args[0] = without_symbol(node.args[0], node.binders[i].symbol);
        node.binders[i + 1].extent = outer * inner;
        node.binders.erase(node.binders.begin() + static_cast<long>(i));
      } else {
        i++;
      }
    }
    node.height = 0;
    r = Expr::make(std::move(node));
  }
  memo.emplace(e.get(), r);
  return r;
}

void merge_loops(KernelBody& body) {
  for (size_t i = body.loops.size(); i-- > 1;) {
    Loop &outer = body.loops[i - 1], &inner = body.loops[i];
    if (outer.low != Index(0) || inner.low != Index(0)) continue;
    std::vector<Index> indexes = all_indexes(body.value);
    indexes.push_back(body.offset);
    if (!walk_together(indexes, outer.symbol, inner.symbol, inner.high)) continue;
    const Substitution zero{{outer.symbol, Index(0)}};
    body.value = without_symbol(body.value, outer.symbol);
    body.offset = substitute(body.offset, zero);
    inner.high = inner.high * outer.high;
    body.loops.erase(body.loops.begin() + static_cast<long>(i - 1));
  }
}

void collect_divisions(const Index& index, std::vector<const Atom*>& out) {
  for (const Index::Term& term : index.terms())
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind != AtomKind::FloorDiv) continue;
      out.push_back(&a);
      collect_divisions(a.numerator, out);
    }
}

std::vector<const Atom*> divisions(const KernelBody& body) {
  std::vector<const Atom*> found;
  for_each_index(body.value, [&](const Index& i) { collect_divisions(i, found); });
  return found;
}

int64_t gcd(int64_t a, int64_t b) { return b == 0 ? a : gcd(b, a % b); }

// The body with a loop's symbol replaced.
KernelBody with_symbol(KernelBody body, AtomId symbol, const Index& value) {
  const Substitution parts{{symbol, value}};
  body.value = map_expr(body.value, [&](const Index& i) { return substitute(i, parts); });
  const Known known = known_of(body);
  body.value = simplify(body.value, known);
  body.offset = simplify(substitute(body.offset, parts), known);
  return body;
}

// Splits a loop in two by a tile that turns some floor division into a plain symbol, and what is left over into a body
// of its own. Empty: nothing to gain.
std::vector<KernelBody> split_loop(const KernelBody& body, int round) {
  const std::vector<const Atom*> before = divisions(body);
  for (const Atom* division : before) {
    if (!division->denominator.is_constant()) continue;
    for (size_t l = 0; l < body.loops.size(); l++) {
      const Loop loop = body.loops[l];
      const auto step = coefficient(division->numerator, loop.symbol);
      if (!step || *step == 0 || loop.low != Index(0) || !loop.high.is_constant()) continue;
      const int64_t tile = division->denominator.constant() / gcd(division->denominator.constant(), std::abs(*step)),
                    extent = loop.high.constant();
      if (tile <= 1 || tile >= extent) continue;
      KernelBody main = body;
      const Loop outer{symbol_atom("@s" + std::to_string(round)), Index(0), Index(extent / tile)},
          inner{loop.symbol, Index(0), Index(tile)};
      main.loops[l] = outer;
      main.loops.insert(main.loops.begin() + static_cast<long>(l) + 1, inner);
      main = with_symbol(std::move(main), loop.symbol,
                         Index(tile) * Index::from_atom(outer.symbol) + Index::from_atom(inner.symbol));
      if (divisions(main).size() >= before.size()) continue;
      if (extent % tile == 0) return {main};
      KernelBody rest = body;
      rest.loops[l] = {loop.symbol, Index(0), Index(extent % tile)};
      const int64_t start = extent / tile * tile;
      return {main, with_symbol(std::move(rest), loop.symbol, Index(start) + Index::from_atom(loop.symbol))};
    }
  }
  return {};
}

void split_loops(const KernelBody& body, int round, std::vector<KernelBody>& out) {
  const std::vector<KernelBody> parts = round < 4 ? split_loop(body, round) : std::vector<KernelBody>{};
  for (const KernelBody& part : parts) split_loops(part, round + 1, out);
  if (parts.empty()) out.push_back(body);
}

}  // namespace

std::vector<KernelBody> reshape_loops(const KernelBody& body) {
  std::vector<KernelBody> parts;
  split_loops(body, 0, parts);
  for (KernelBody& part : parts) {
    std::unordered_map<const Expr::Node*, Expr> memo;
    part.value = merge_binders(part.value, memo);
    merge_loops(part);
  }
  return parts;
}

namespace {

constexpr size_t kMaxBoxes = 16;
constexpr size_t kMaxBoxesOfOneLoop = 64;  // of tables that are put side by side, say: each is a short loop

void collect_guards(const Expr& e, std::vector<Index>& out, std::set<const Expr::Node*>& seen) {
  if (e->kind == ExprKind::Reduce || !seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::Select) for_each_index(e->cond, [&](const Index& i) { out.push_back(i); });
  for (const Expr& a : e->args) collect_guards(a, out, seen);
}

int64_t ceil_of(int64_t a, int64_t b) { return a / b + ((a % b != 0) && ((a < 0) == (b < 0))); }

// Positions of a loop over numbers at which some guard becomes decided, or changes.
std::set<int64_t> break_points(const std::vector<Index>& guards, const KernelBody& body, const Loop& loop) {
  Ranges others = known_of(body).numbers;
  others.erase(loop.symbol);
  std::set<int64_t> points;
  for (const Index& guard : guards) {
    const auto a = coefficient(guard, loop.symbol);
    if (!a || *a == 0) continue;
    const auto rest = range_of(guard - Index(*a) * Index::from_atom(loop.symbol), others);
    if (!rest) continue;
    for (int64_t r : {rest->low, rest->high}) {
      // a * s + r >= 0 from this s on (a > 0), or up to just before it (a < 0).
      const int64_t point = *a > 0 ? ceil_of(-r, *a) : ceil_of(r + 1, -*a);
      if (point > loop.low.constant() && point < loop.high.constant()) points.insert(point);
    }
  }
  return points;
}

// Those of a loop whose bounds are open, in their order, as far as it is seen that they lie in the loop, and in which
// order: of guards on nothing but the loop and sizes.
std::vector<Index> open_break_points(const std::vector<Index>& guards, const KernelBody& body, const Loop& loop) {
  std::vector<Index> points;
  SymbolBounds sizes = known_of(body).bounds.value_or(SymbolBounds{});
  sizes.spans.clear();
  const auto is_before = [&](const Index& a, const Index& b) { return gopt::is_surely_nonnegative(b - a, sizes); };
  for (const Index& guard : guards) {
    const auto a = coefficient(guard, loop.symbol);
    if (!a || std::abs(*a) != 1) continue;
    const Index rest = guard - Index(*a) * Index::from_atom(loop.symbol);
    const Index point = *a > 0 ? -rest : rest + Index(1);
    std::set<AtomId> symbols;
    collect_symbols(point, symbols);
    const bool is_of_sizes =
        std::ranges::all_of(symbols, [&](AtomId s) { return sizes.sizes.contains(s) || sizes.counts.contains(s); });
    if (!is_of_sizes || has_load(point) || std::ranges::find(points, point) != points.end()) continue;
    if (point == loop.low || point == loop.high || !is_before(loop.low, point) || !is_before(point, loop.high))
      continue;
    auto place = points.begin();
    while (place != points.end() && is_before(*place, point)) ++place;
    if (std::all_of(place, points.end(), [&](const Index& later) { return is_before(point, later); }))
      points.insert(place, point);
  }
  return points;
}

std::vector<Index> parts_of(const KernelBody& body, const Loop& loop) {
  std::vector<Index> guards;
  std::set<const Expr::Node*> seen;
  collect_guards(body.value, guards, seen);
  if (!loop.low.is_constant() || !loop.high.is_constant()) return open_break_points(guards, body, loop);
  const std::set<int64_t> points = break_points(guards, body, loop);
  return {points.begin(), points.end()};
}

void split_box(const KernelBody& body, size_t l, std::vector<KernelBody>& out) {
  if (l == body.loops.size()) {
    out.push_back(body);
    return;
  }
  std::vector<Index> points = parts_of(body, body.loops[l]);
  const bool is_first = out.empty();
  if (points.size() + 1 > (is_first ? kMaxBoxesOfOneLoop : kMaxBoxes) ||
      (!is_first && out.size() + points.size() + 1 > 2 * kMaxBoxes))
    points.clear();
  points.push_back(body.loops[l].high);
  Index low = body.loops[l].low;
  for (const Index& high : points) {
    KernelBody part = body;
    part.loops[l].low = low;
    part.loops[l].high = high;
    part.value = simplify(part.value, known_of(part));
    split_box(part, l + 1, out);
    low = high;
  }
}

}  // namespace

std::vector<KernelBody> split_into_boxes(const KernelBody& body) {
  std::vector<Index> guards;
  std::set<const Expr::Node*> seen;
  collect_guards(body.value, guards, seen);
  if (guards.empty()) return {body};
  std::vector<KernelBody> boxes;
  split_box(body, 0, boxes);
  return boxes;
}

}  // namespace gopt::codegen
