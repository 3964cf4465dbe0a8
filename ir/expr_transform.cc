#include <unordered_map>

#include "gopt/expr.h"
#include "gopt/result.h"

namespace gopt {
namespace {

template <class T, class Map>
auto mapped(const std::vector<T>& items, Map&& map) {
  std::vector<std::decay_t<decltype(map(items[0]))>> r;
  r.reserve(items.size());
  for (const T& item : items) r.push_back(map(item));
  return r;
}

// Rebuilds through the simplifying constructors, so that a decided guard disappears.
Expr rebuild(const Expr& e, std::vector<Expr> args) {
  switch (e->kind) {
    case ExprKind::Constant:
    case ExprKind::Size:
    case ExprKind::Read: return e;
    case ExprKind::Add: return args[0] + args[1];
    case ExprKind::Subtract: return args[0] - args[1];
    case ExprKind::Multiply: return args[0] * args[1];
    case ExprKind::Divide: return args[0] / args[1];
    case ExprKind::Maximum: return maximum(args[0], args[1]);
    case ExprKind::Minimum: return minimum(args[0], args[1]);
    case ExprKind::Less: return is_less(args[0], args[1]);
    case ExprKind::Equal: return is_equal(args[0], args[1]);
    case ExprKind::Call: return call(e->function, std::move(args));
    case ExprKind::Select: return select(e->cond, args[0], args[1]);
    case ExprKind::Choose: return choose(args[0], args[1], args[2]);
    case ExprKind::Convert: return convert(e->type, args[0]);
    case ExprKind::Reduce: break;
  }
  Expr::Node node = *e;
  node.args = std::move(args);
  node.height = 0;
  return Expr::make(std::move(node));
}

// Makes an expression anew, shared subexpressions once. What becomes of indexes, guards and reads, and below which
// terms the body of a reduction is visited, the derived class says.
template <class Derived>
class Rebuilder {
 public:
  Expr operator()(const Expr& e) {
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    Expr r = visit(e);
    memo_.emplace(e.get(), r);
    return r;
  }

 private:
  Expr visit(const Expr& e) {
    const Derived& derived = static_cast<const Derived&>(*this);
    switch (e->kind) {
      case ExprKind::Reduce: {
        // Goes through reduce(), which gives fresh binders first: what is put in may mention the old ones, and a
        // producer's own reductions may be as high as this one and use its names.
        const auto extents = mapped(e->binders, [&](const Binder& b) { return derived.of(b.extent); });
        return reduce(e->reduce, extents,
                      [&](const std::vector<Index>& subscripts) { return derived.body(e, extents, subscripts); });
      }
      case ExprKind::Read:
        return derived.read_of(e->input, mapped(e->subscripts, [&](const Index& i) { return derived.of(i); }));
      case ExprKind::Size: return size_of(derived.of(e->index));
      case ExprKind::Select: break;
      default: return rebuild(e, mapped(e->args, *this));
    }
    const Cond cond = derived.of(e->cond);
    if (cond.is_true()) return (*this)(e->args[0]);
    if (cond.is_false()) return (*this)(e->args[1]);
    return select(cond, (*this)(e->args[0]), (*this)(e->args[1]));
  }

  std::unordered_map<const Expr::Node*, Expr> memo_;
};

// Puts indexes in place of symbols, and what a producer gives in place of reads.
class Substituter : public Rebuilder<Substituter> {
 public:
  Substituter(const Substitution& substitution, const ReadFunction& producer)
      : substitution_(substitution), producer_(producer) {}

  Index of(const Index& index) const { return substitute(index, substitution_); }
  Cond of(const Cond& cond) const { return substitute(cond, substitution_); }
  Expr read_of(int input, std::vector<Index> subscripts) const {
    Expr replaced = producer_ ? producer_(input, subscripts) : Expr();
    return replaced ? replaced : read(input, std::move(subscripts));
  }
  Expr body(const Expr& e, const std::vector<Index>&, const std::vector<Index>& subscripts) const {
    Substitution inner = substitution_;
    for (size_t i = 0; i < subscripts.size(); i++) inner[e->binders[i].symbol] = subscripts[i];
    return Substituter(inner, producer_)(e->args[0]);
  }

 private:
  const Substitution& substitution_;
  const ReadFunction& producer_;
};

// Decides what ranges decide. A reduction's own ranges hold below it alone.
class Simplifier : public Rebuilder<Simplifier> {
 public:
  explicit Simplifier(const Ranges& ranges) : ranges_(ranges) {}

  Index of(const Index& index) const { return simplify(index, ranges_); }
  Cond of(const Cond& cond) const { return in_lowest_terms(simplify(cond, ranges_)); }
  Expr read_of(int input, std::vector<Index> subscripts) const { return read(input, std::move(subscripts)); }
  Expr body(const Expr& e, const std::vector<Index>& extents, const std::vector<Index>& subscripts) const {
    Substitution names;
    Ranges inner = ranges_;
    for (size_t i = 0; i < subscripts.size(); i++) {
      names[e->binders[i].symbol] = subscripts[i];
      const auto symbol = subscripts[i].as_atom();
      if (symbol && extents[i].is_constant()) inner[*symbol] = {0, extents[i].constant() - 1};
    }
    return Simplifier(inner)(substitute(e->args[0], names));
  }

 private:
  const Ranges& ranges_;
};

}  // namespace

Expr simplify(const Expr& expr, const Ranges& ranges) { return Simplifier(ranges)(expr); }

Expr substitute(const Expr& expr, const Substitution& substitution) {
  if (substitution.empty()) return expr;
  return Substituter(substitution, nullptr)(expr);
}

Expr replace_reads(const Expr& expr, const ReadFunction& producer) { return Substituter({}, producer)(expr); }

namespace {

void collect(const Expr& e, std::set<AtomId>& out, std::set<const Expr::Node*>& seen) {
  if (!seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::Reduce) {
    std::set<AtomId> inner;
    collect_symbols(e->args[0], inner);
    for (const Binder& b : e->binders) inner.erase(b.symbol);
    for (const Binder& b : e->binders) collect_symbols(b.extent, inner);
    out.insert(inner.begin(), inner.end());
    return;
  }
  collect_symbols(e->index, out);
  for (const Index& s : e->subscripts) collect_symbols(s, out);
  collect_symbols(e->cond, out);
  for (const Expr& a : e->args) collect(a, out, seen);
}

std::string joined(const std::vector<Expr>& args) {
  std::string s;
  for (const Expr& a : args) s += (s.empty() ? "" : ", ") + to_string(a);
  return s;
}

}  // namespace

void collect_symbols(const Expr& expr, std::set<AtomId>& out) {
  std::set<const Expr::Node*> seen;
  collect(expr, out, seen);
}

std::string to_string(const Expr& e) {
  auto infix = [&e](const char* op) { return "(" + to_string(e->args[0]) + op + to_string(e->args[1]) + ")"; };
  switch (e->kind) {
    case ExprKind::Constant: {
      char text[32];
      snprintf(text, sizeof text, "%.17g", e->value);
      return text;
    }
    case ExprKind::Size: return "size(" + to_string(e->index) + ")";
    case ExprKind::Read: return "in" + std::to_string(e->input) + to_string(e->subscripts);
    case ExprKind::Add: return infix(" + ");
    case ExprKind::Subtract: return infix(" - ");
    case ExprKind::Multiply: return infix(" * ");
    case ExprKind::Divide: return infix(" / ");
    case ExprKind::Maximum: return "max(" + joined(e->args) + ")";
    case ExprKind::Minimum: return "min(" + joined(e->args) + ")";
    case ExprKind::Less: return infix(" < ");
    case ExprKind::Equal: return infix(" == ");
    case ExprKind::Call: return std::string(function_text(e->function)) + "(" + joined(e->args) + ")";
    case ExprKind::Select: return "select(" + to_string(e->cond) + ", " + joined(e->args) + ")";
    case ExprKind::Choose: return "choose(" + joined(e->args) + ")";
    case ExprKind::Convert: return to_string(e->type) + "(" + joined(e->args) + ")";
    case ExprKind::Reduce: {
      static constexpr const char* names[] = {"sum", "max", "min", "product"};
      std::string s = names[static_cast<int>(e->reduce)];
      for (const Binder& b : e->binders)
        s += "{" + to_string(Index::from_atom(b.symbol)) + "<" + to_string(b.extent) + "}";
      return s + "(" + to_string(e->args[0]) + ")";
    }
  }
  return "";
}

}  // namespace gopt
