#include "gopt/expr.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "gopt/result.h"

namespace gopt {
namespace {

size_t mix(size_t seed, size_t value) { return (seed ^ value) * 0x9e3779b97f4a7c15ULL + (seed >> 29); }

size_t hash_of(const Index& index) {
  size_t h = mix(17, static_cast<size_t>(index.constant()));
  for (const Index::Term& term : index.terms()) {
    h = mix(h, static_cast<size_t>(term.coefficient));
    for (AtomId id : term.atoms) h = mix(h, static_cast<size_t>(id));
  }
  return h;
}
size_t hash_of(const Cond& cond) {
  size_t h = mix(hash_of(cond.index()), static_cast<size_t>(cond.kind()));
  for (const Cond& part : cond.parts()) h = mix(h, hash_of(part));
  return h;
}
size_t hash_of(const Expr::Node& node) {
  size_t h = mix(static_cast<size_t>(node.kind) + 1, std::bit_cast<uint64_t>(node.value));
  h = mix(h, hash_of(node.index));
  h = mix(h, static_cast<size_t>(node.input));
  for (const Index& s : node.subscripts) h = mix(h, hash_of(s));
  for (const Expr& a : node.args) h = mix(h, a->hash);
  h = mix(h, static_cast<size_t>(node.function));
  h = mix(h, hash_of(node.cond));
  h = mix(h, static_cast<size_t>(node.type) * 8 + static_cast<size_t>(node.reduce));
  for (const Binder& b : node.binders) h = mix(mix(h, static_cast<size_t>(b.symbol)), hash_of(b.extent));
  return h;
}

bool same(const Binder& a, const Binder& b) { return a.symbol == b.symbol && a.extent == b.extent; }

std::optional<double> constant_value(const Expr& e) {
  if (e->kind == ExprKind::Constant) return e->value;
  return std::nullopt;
}

Expr binary(ExprKind kind, const Expr& a, const Expr& b) { return Expr::make({.kind = kind, .args = {a, b}}); }

}  // namespace

std::string_view function_text(Function function) {
  static constexpr std::string_view texts[] = {
#define GOPT_FUNCTION(name, arity, text, numeric) text,
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  };
  return texts[static_cast<size_t>(function)];
}

Expr Expr::make(Node node) {
  for (const Expr& a : node.args) node.height = std::max(node.height, a->height);
  if (node.kind == ExprKind::Reduce) node.height++;
  node.hash = hash_of(node);
  return Expr(std::make_shared<const Node>(std::move(node)));
}

bool operator==(const Expr& a, const Expr& b) {
  if (a.get() == b.get()) return true;
  if (!a || !b) return false;
  return a->hash == b->hash && a->kind == b->kind &&
         std::bit_cast<uint64_t>(a->value) == std::bit_cast<uint64_t>(b->value) && a->index == b->index &&
         a->input == b->input && a->subscripts == b->subscripts && a->function == b->function && a->cond == b->cond &&
         a->type == b->type && a->reduce == b->reduce && a->args == b->args &&
         std::equal(a->binders.begin(), a->binders.end(), b->binders.begin(), b->binders.end(), same);
}

// ---- builders: they simplify only what is exact in floating-point arithmetic as well ----

Expr constant(double value) { return Expr::make({.kind = ExprKind::Constant, .value = value}); }
Expr size_of(const Index& index) {
  if (auto c = index.as_constant()) return constant(static_cast<double>(*c));
  return Expr::make({.kind = ExprKind::Size, .index = index});
}
Expr read(int input, std::vector<Index> subscripts) {
  return Expr::make({.kind = ExprKind::Read, .input = input, .subscripts = std::move(subscripts)});
}
Expr operator+(const Expr& a, const Expr& b) { return binary(ExprKind::Add, a, b); }
Expr operator-(const Expr& a, const Expr& b) { return binary(ExprKind::Subtract, a, b); }
Expr operator*(const Expr& a, const Expr& b) {
  if (constant_value(a) == 1.0) return b;
  if (constant_value(b) == 1.0) return a;
  return binary(ExprKind::Multiply, a, b);
}
Expr operator/(const Expr& a, const Expr& b) {
  if (constant_value(b) == 1.0) return a;
  return binary(ExprKind::Divide, a, b);
}
Expr maximum(const Expr& a, const Expr& b) { return a == b ? a : binary(ExprKind::Maximum, a, b); }
Expr minimum(const Expr& a, const Expr& b) { return a == b ? a : binary(ExprKind::Minimum, a, b); }
Expr is_less(const Expr& a, const Expr& b) { return binary(ExprKind::Less, a, b); }
Expr is_equal(const Expr& a, const Expr& b) { return binary(ExprKind::Equal, a, b); }
Expr call(Function function, std::vector<Expr> args) {
  return Expr::make({.kind = ExprKind::Call, .args = std::move(args), .function = function});
}
Expr select(const Cond& cond, const Expr& then, const Expr& otherwise) {
  if (cond.is_true() || then == otherwise) return then;
  if (cond.is_false()) return otherwise;
  return Expr::make({.kind = ExprKind::Select, .args = {then, otherwise}, .cond = cond});
}
Expr choose(const Expr& test, const Expr& then, const Expr& otherwise) {
  if (auto c = constant_value(test)) return *c != 0 ? then : otherwise;
  return Expr::make({.kind = ExprKind::Choose, .args = {test, then, otherwise}});
}
Expr convert(ElementType type, const Expr& a) {
  return Expr::make({.kind = ExprKind::Convert, .args = {a}, .type = type});
}

namespace {

// The binder that a reduction of this height names at this position. Text cannot spell it.
AtomId canonical_binder(int height, size_t position) {
  return symbol_atom("$" + std::to_string(height) + "_" + std::to_string(position));
}

// The height to name binders by: the reduction's own, above that of any binder of another reduction that is free in the
// body (an expression taken out of a reduction has such).
int free_height(const Expr& body, size_t binders) {
  std::set<AtomId> free;
  collect_symbols(body, free);
  int height = body->height + 1;
  auto taken = [&] {
    for (size_t position = 0; position < binders; position++)
      if (free.contains(canonical_binder(height, position))) return true;
    return false;
  };
  while (taken()) height++;
  return height;
}

}  // namespace

Expr reduce(ReduceKind kind, const std::vector<Index>& extents,
            const std::function<Expr(const std::vector<Index>&)>& body) {
  std::vector<Index> subscripts;
  std::vector<Binder> binders;
  for (const Index& extent : extents) {
    if (extent == Index(1)) {
      subscripts.emplace_back(0);
      continue;
    }
    binders.push_back({fresh_symbol(), extent});
    subscripts.push_back(Index::from_atom(binders.back().symbol));
  }
  Expr value = body(subscripts);
  if (binders.empty()) return value;
  Substitution canonical;
  const int height = free_height(value, binders.size());
  for (size_t i = 0; i < binders.size(); i++) {
    const AtomId name = canonical_binder(height, i);
    canonical[binders[i].symbol] = Index::from_atom(name);
    release_symbol(binders[i].symbol);
    binders[i].symbol = name;
  }
  return Expr::make({.kind = ExprKind::Reduce,
                     .args = {substitute(value, canonical)},
                     .reduce = kind,
                     .binders = std::move(binders)});
}

}  // namespace gopt
