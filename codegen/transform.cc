#include "transform.h"

#include <algorithm>
#include <unordered_map>

namespace gopt::codegen {

Cond map_cond(const Cond& cond, const IndexMap& index) {
  switch (cond.kind()) {
    case CondKind::True:
    case CondKind::False: return cond;
    case CondKind::NonNegative: return at_least(index(cond.index()), Index(0));
    case CondKind::And:
    case CondKind::Or: break;
  }
  const bool all = cond.kind() == CondKind::And;
  Cond r = all ? Cond() : Cond::never();
  for (const Cond& part : cond.parts()) r = all ? r && map_cond(part, index) : r || map_cond(part, index);
  return r;
}

namespace {

class Mapper {
 public:
  Mapper(const IndexMap& index, const ReadFunction& read, const Known* known = nullptr)
      : index_(index), read_(read), known_(known) {}

  Expr operator()(const Expr& e) {
    if (auto it = memo_.find(e.get()); it != memo_.end()) return it->second;
    Expr r = visit(e);
    memo_.emplace(e.get(), r);
    return r;
  }

 private:
  Expr visit(const Expr& e) {
    if (e->kind == ExprKind::Read) {
      if (read_) return read_(e->input, e->subscripts);
      std::vector<Index> subscripts;
      for (const Index& s : e->subscripts) subscripts.push_back(index_(s));
      return read(e->input, std::move(subscripts));
    }
    if (e->kind == ExprKind::Size) return size_of(index_(e->index));
    if (e->kind == ExprKind::Select) {
      const Cond cond = known_ ? simplify(e->cond, *known_) : map_cond(e->cond, index_);
      if (cond.is_true()) return (*this)(e->args[0]);
      if (cond.is_false()) return (*this)(e->args[1]);
      return select(cond, (*this)(e->args[0]), (*this)(e->args[1]));
    }
    if (e->args.empty()) return e;
    Expr::Node node = *e;
    for (Expr& a : node.args) a = (*this)(a);
    for (Binder& b : node.binders) b.extent = index_(b.extent);
    node.height = 0;
    return Expr::make(std::move(node));
  }

  const IndexMap& index_;
  const ReadFunction& read_;
  const Known* known_;  // what decides guards, where given
  std::unordered_map<const Expr::Node*, Expr> memo_;
};

}  // namespace

Expr map_expr(const Expr& e, const IndexMap& index, const ReadFunction& read) { return Mapper(index, read)(e); }

Index map_loads(const Index& index, const std::function<Index(int, const std::vector<Index>&)>& load) {
  Index r(index.constant());
  for (const Index::Term& term : index.terms()) {
    Index product(term.coefficient);
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind == AtomKind::Load)
        product = product * load(a.input, a.subscripts);
      else if (a.kind == AtomKind::FloorDiv)
        product = product * floor_div(map_loads(a.numerator, load), map_loads(a.denominator, load));
      else
        product = product * Index::from_atom(id);
    }
    r += product;
  }
  return r;
}

namespace {

// Sibling reductions share names: what holds for both is the wider range.
void add_binder(const Binder& b, Known& known) {
  if (const auto extent = b.extent.as_constant()) {
    auto [it, inserted] = known.numbers.try_emplace(b.symbol, Range{0, *extent - 1});
    if (!inserted) it->second.high = std::max(it->second.high, *extent - 1);
  }
  if (!known.bounds) return;
  const Index last = b.extent - Index(1);
  const auto [it, inserted] = known.bounds->spans.try_emplace(b.symbol, SymbolBounds::Span{Index(0), last});
  if (inserted || it->second.high == last) return;
  const SymbolBounds sizes{known.bounds->sizes, known.bounds->counts, {}};
  if (gopt::is_surely_nonnegative(last - it->second.high, sizes))
    it->second.high = last;
  else if (!gopt::is_surely_nonnegative(it->second.high - last, sizes))
    it->second.high = it->second.high + last + Index(1);  // no less than either
}

void add_binders(const Expr& e, Known& known, std::set<const Expr::Node*>& seen) {
  if (!seen.insert(e.get()).second) return;
  for (const Binder& b : e->binders) add_binder(b, known);
  for (const Expr& a : e->args) add_binders(a, known, seen);
}

}  // namespace

Known known_of(const KernelBody& body) {
  Known known;
  for (const Loop& loop : body.loops)
    if (loop.low.is_constant() && loop.high.is_constant())
      known.numbers[loop.symbol] = {loop.low.constant(), loop.high.constant() - 1};
  if (body.open.empty()) return known;
  known.bounds.emplace();
  for (const OpenExtent& extent : body.open)
    (body.filled.contains(extent.symbol) ? known.bounds->sizes : known.bounds->counts).insert(extent.symbol);
  for (const Loop& loop : body.loops) known.bounds->spans[loop.symbol] = {loop.low, loop.high - Index(1)};
  return known;
}

Known with_binders(const Expr& e, Known known) {
  std::set<const Expr::Node*> seen;
  add_binders(e, known, seen);
  return known;
}

Index simplify(const Index& index, const Known& known) {
  const Index r = gopt::simplify(index, known.numbers);
  return known.bounds ? gopt::simplify(r, *known.bounds) : r;
}
Cond simplify(const Cond& cond, const Known& known) {
  const Cond r = gopt::simplify(cond, known.numbers);
  return known.bounds ? gopt::simplify(r, *known.bounds) : r;
}
bool is_surely_nonnegative(const Index& index, const Known& known) {
  if (const auto range = range_of(index, known.numbers)) return range->low >= 0;
  return known.bounds && gopt::is_surely_nonnegative(index, *known.bounds);
}

Expr simplify(const Expr& e, const Known& known) {
  const Known all = with_binders(e, known);
  // A binder's symbol with a range of one value must stay a symbol of its loop, which reduce() has removed already.
  const IndexMap simplify_index = [&all](const Index& i) {
    Index r = simplify(i, all);
    for (int round = 0; round < 3; round++) {
      Index again = simplify(r, all);
      if (again == r) break;
      r = std::move(again);
    }
    return r;
  };
  const ReadFunction as_it_is;
  return Mapper(simplify_index, as_it_is, &all)(e);
}

bool depends_on(const Index& index, AtomId symbol) {
  std::set<AtomId> symbols;
  collect_symbols(index, symbols);
  return symbols.contains(symbol);
}

std::optional<int64_t> coefficient(const Index& index, AtomId symbol) {
  int64_t found = 0;
  for (const Index::Term& term : index.terms()) {
    bool here = false;
    for (AtomId id : term.atoms) here |= depends_on(Index::from_atom(id), symbol);
    if (!here) continue;
    if (term.atoms.size() != 1 || term.atoms[0] != symbol) return std::nullopt;
    found = term.coefficient;
  }
  return found;
}

void for_each_index(const Cond& cond, const std::function<void(const Index&)>& visit) {
  if (cond.kind() == CondKind::NonNegative) visit(cond.index());
  for (const Cond& part : cond.parts()) for_each_index(part, visit);
}

namespace {

void visit_indexes(const Expr& e, const std::function<void(const Index&)>& visit, std::set<const Expr::Node*>& seen) {
  if (!seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::Read)
    for (const Index& s : e->subscripts) visit(s);
  if (e->kind == ExprKind::Size) visit(e->index);
  if (e->kind == ExprKind::Select) for_each_index(e->cond, visit);
  for (const Expr& a : e->args) visit_indexes(a, visit, seen);
}

void visit_reads(const Expr& e, const std::function<void(const Expr&)>& visit, std::set<const Expr::Node*>& seen) {
  if (!seen.insert(e.get()).second) return;
  if (e->kind == ExprKind::Read) visit(e);
  for (const Expr& a : e->args) visit_reads(a, visit, seen);
}

}  // namespace

void for_each_index(const Expr& e, const std::function<void(const Index&)>& visit) {
  std::set<const Expr::Node*> seen;
  visit_indexes(e, visit, seen);
}
void for_each_read(const Expr& e, const std::function<void(const Expr&)>& visit) {
  std::set<const Expr::Node*> seen;
  visit_reads(e, visit, seen);
}

}  // namespace gopt::codegen
