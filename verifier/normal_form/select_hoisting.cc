#include "select_hoisting.h"

#include <algorithm>
#include <optional>

namespace gopt::verifier {
namespace {

// A guard in `e` that is free of binders inside, and of `bound`.
std::optional<Cond> find_guard(const Expr& e, std::set<AtomId>& bound) {
  if (e->kind == ExprKind::Select) {
    std::set<AtomId> symbols;
    collect_symbols(e->cond, symbols);
    if (std::none_of(symbols.begin(), symbols.end(), [&](AtomId s) { return bound.count(s) > 0; })) return e->cond;
  }
  std::vector<AtomId> added;
  for (const Binder& b : e->binders)
    if (bound.insert(b.symbol).second) added.push_back(b.symbol);
  std::optional<Cond> found;
  for (const Expr& a : e->args)
    if (!found) found = find_guard(a, bound);
  for (AtomId b : added) bound.erase(b);
  return found;
}

Expr with_args(const Expr& e, std::vector<Expr> args) {
  if (std::equal(args.begin(), args.end(), e->args.begin(),
                 [](const Expr& a, const Expr& b) { return a.get() == b.get(); }))
    return e;
  if (e->kind == ExprKind::Select) return select(e->cond, args[0], args[1]);
  Expr::Node node = *e;
  node.args = std::move(args);
  node.height = 0;
  return Expr::make(std::move(node));
}

// `e` where the guard is known to hold, or not to hold.
Expr decided(const Expr& e, const Cond& guard, const Cond& negation, bool holds) {
  if (e->kind == ExprKind::Select) {
    if (e->cond == guard) return decided(e->args[holds ? 0 : 1], guard, negation, holds);
    if (e->cond == negation) return decided(e->args[holds ? 1 : 0], guard, negation, holds);
  }
  std::vector<Expr> args;
  for (const Expr& a : e->args) args.push_back(decided(a, guard, negation, holds));
  return with_args(e, std::move(args));
}

bool is_linear_context(ExprKind kind) {
  switch (kind) {
    case ExprKind::Add:
    case ExprKind::Subtract:
    case ExprKind::Multiply:
    case ExprKind::Select:
    case ExprKind::Constant:
    case ExprKind::Size:
    case ExprKind::Read: return true;
    case ExprKind::Divide:
    case ExprKind::Maximum:
    case ExprKind::Minimum:
    case ExprKind::Less:
    case ExprKind::Equal:
    case ExprKind::Call:
    case ExprKind::Choose:
    case ExprKind::Convert: return false;
    case ExprKind::Reduce: return false;
  }
  return false;
}

}  // namespace

Expr hoist_selects(const Expr& e) {
  std::vector<Expr> args;
  for (const Expr& a : e->args) args.push_back(hoist_selects(a));
  const Expr r = with_args(e, std::move(args));
  if (is_linear_context(r->kind) || (r->kind == ExprKind::Reduce && r->reduce == ReduceKind::Sum)) return r;
  std::set<AtomId> bound;
  for (const Binder& b : r->binders) bound.insert(b.symbol);
  for (const Expr& a : r->args) {
    const auto guard = find_guard(a, bound);
    if (!guard) continue;
    const Cond negation = !*guard;
    return select(*guard, hoist_selects(decided(r, *guard, negation, true)),
                  hoist_selects(decided(r, *guard, negation, false)));
  }
  return r;
}

std::vector<GuardedPart> guarded_parts(const Expr& body, const Cond& guard) {
  std::set<AtomId> bound;
  const auto found = find_guard(body, bound);
  if (!found) return {{guard, body}};
  const Cond negation = !*found;
  std::vector<GuardedPart> parts = guarded_parts(decided(body, *found, negation, true), guard && *found);
  for (GuardedPart& part : guarded_parts(decided(body, *found, negation, false), guard && negation))
    parts.push_back(std::move(part));
  return parts;
}

}  // namespace gopt::verifier
