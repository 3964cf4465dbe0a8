#include "taso_shapes.h"

#include <algorithm>
#include <iterator>

namespace gopt::rules {
namespace {

bool is_plainly_nonnegative(const Index& index) {
  return index.constant() >= 0 && std::all_of(index.terms().begin(), index.terms().end(),
                                              [](const Index::Term& term) { return term.coefficient > 0; });
}

// The value of `symbol` where `zero` is 0, if it occurs there once and alone.
std::optional<Index> solve_for(const Index& zero, AtomId symbol) {
  int64_t coefficient = 0;
  for (const Index::Term& term : zero.terms())
    if (term.atoms.size() == 1 && term.atoms[0] == symbol) coefficient = term.coefficient;
  if (coefficient != 1 && coefficient != -1) return std::nullopt;
  const Index rest = zero - Index(coefficient) * Index::from_atom(symbol);
  std::set<AtomId> others;
  collect_symbols(rest, others);
  if (others.count(symbol)) return std::nullopt;
  return coefficient == 1 ? -rest : rest;
}

}  // namespace

void TasoShapes::freeze() {
  age_.clear();
  frozen_ = true;
}

Index TasoShapes::fresh_group(const std::string& name) {
  groups_.try_emplace(symbol_atom(name), groups_.size());
  return fresh(name);
}

Index TasoShapes::fresh(const std::string& name) {
  const AtomId id = symbol_atom(name);
  age_.try_emplace(id, static_cast<int>(age_.size()));
  return Index::from_atom(id);
}

bool TasoShapes::is_open(const Index& index) const {
  const auto alone = resolve(index).as_atom();
  return alone && age_.count(*alone) > 0;
}

void TasoShapes::make_equal(const Index& a, const Index& b) {
  const Index zero = resolve(a) - resolve(b);
  std::set<AtomId> symbols;
  collect_symbols(zero, symbols);
  std::vector<AtomId> order;
  for (AtomId s : symbols)
    if (age_.count(s)) order.push_back(s);
  // What came later is said by what came first.
  std::sort(order.begin(), order.end(), [&](AtomId x, AtomId y) { return age_.at(x) > age_.at(y); });
  for (AtomId symbol : order) {
    const auto value = solve_for(zero, symbol);
    if (!value || !is_plainly_nonnegative(*value)) continue;
    solve(symbol, *value);
    return;
  }
  if (frozen_) make_groups_equal(zero);
}

// g c = h c, with h the later group: h = g.
bool TasoShapes::make_groups_equal(const Index& zero) {
  if (zero.terms().size() != 2 || zero.constant() != 0) return false;
  if (zero.terms()[0].coefficient != -zero.terms()[1].coefficient) return false;
  std::vector<AtomId> a = zero.terms()[0].atoms, b = zero.terms()[1].atoms, only_a, only_b;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(only_a));
  std::set_difference(b.begin(), b.end(), a.begin(), a.end(), std::back_inserter(only_b));
  if (only_a.size() != 1 || only_b.size() != 1) return false;
  auto rank = [&](AtomId id) {
    auto it = groups_.find(id);
    return it == groups_.end() ? -1 : static_cast<int>(it->second);
  };
  if (rank(only_a[0]) > rank(only_b[0])) std::swap(only_a, only_b);
  if (rank(only_b[0]) < 0 || solution_.count(only_b[0])) return false;
  solve(only_b[0], Index::from_atom(only_a[0]));
  return true;
}

void TasoShapes::narrow(const Index& symbol, const Index& value) {
  if (auto alone = symbol.as_atom(); alone && atom(*alone).kind == AtomKind::Symbol) solve(*alone, value);
}

void TasoShapes::reopen(AtomId symbol) {
  auto it = solution_.find(symbol);
  if (it == solution_.end()) return;
  reopened_[symbol] = it->second;
  solution_.erase(it);
}

void TasoShapes::solve(AtomId symbol, const Index& value) {
  const Substitution step{{symbol, value}};
  for (auto& [solved, known] : solution_) known = substitute(known, step);
  solution_[symbol] = value;
  changed_ = true;
}

std::optional<Index> exact_quotient(const Index& a, const Index& b) {
  if (a == b && b != Index(0)) return Index(1);
  const bool single = (b.terms().size() == 1 && b.constant() == 0) || (b.is_constant() && b.constant() > 0);
  if (!single) return std::nullopt;
  const std::vector<AtomId> divisor = b.is_constant() ? std::vector<AtomId>() : b.terms()[0].atoms;
  const int64_t number = b.is_constant() ? b.constant() : b.terms()[0].coefficient;
  if (a.constant() % number != 0 || (a.constant() != 0 && !divisor.empty())) return std::nullopt;
  Index quotient(a.constant() / number);
  for (const Index::Term& term : a.terms()) {
    std::vector<AtomId> rest = term.atoms;
    for (AtomId factor : divisor) {
      auto it = std::find(rest.begin(), rest.end(), factor);
      if (it == rest.end()) return std::nullopt;
      rest.erase(it);
    }
    if (term.coefficient % number != 0) return std::nullopt;
    Index product(term.coefficient / number);
    for (AtomId factor : rest) product = product * Index::from_atom(factor);
    quotient += product;
  }
  return quotient;
}

std::set<int> variables_of(const TasoRule& rule) {
  std::set<int> variables;
  for (const auto* side : {&rule.source, &rule.target})
    for (const TasoOp& op : *side)
      for (const TasoRef& ref : op.inputs)
        if (ref.node < 0) variables.insert(ref.node);
  for (const auto& [source, target] : rule.outputs)
    for (const TasoRef& ref : {source, target})
      if (ref.node < 0) variables.insert(ref.node);
  return variables;
}

namespace {

class RankInference {
 public:
  explicit RankInference(const TasoRule& rule) : rule_(rule) {
    ranks_.of_variable = rule.ranks;
    ranks_.of_source.resize(rule.source.size());
    ranks_.of_target.resize(rule.target.size());
  }

  TasoRanks run() {
    do {
      changed_ = false;
      for (size_t i = 0; i < rule_.source.size(); i++) visit(rule_.source[i], ranks_.of_source, i);
      for (size_t i = 0; i < rule_.target.size(); i++) visit(rule_.target[i], ranks_.of_target, i);
      for (const auto& [source, target] : rule_.outputs) equal_outputs(source, target);
    } while (changed_);
    return ranks_;
  }

 private:
  std::optional<int> rank_of(const TasoRef& ref, const std::vector<std::optional<int>>& side) const {
    if (ref.node >= 0) return side[static_cast<size_t>(ref.node)];
    auto it = ranks_.of_variable.find(ref.node);
    return it == ranks_.of_variable.end() ? std::nullopt : std::optional(it->second);
  }
  void set(const TasoRef& ref, int rank, std::vector<std::optional<int>>& side) {
    if (rank_of(ref, side)) return;
    changed_ = true;
    if (ref.node >= 0)
      side[static_cast<size_t>(ref.node)] = rank;
    else
      ranks_.of_variable[ref.node] = rank;
  }

  void visit(const TasoOp& op, std::vector<std::optional<int>>& side, size_t position) {
    const TasoRef self{static_cast<int>(position), 0};
    std::optional<int> rank = rank_of(self, side);
    static const std::set<std::string> images{"conv2d",  "pool2d_max",  "pool2d_avg",  "batchnorm",
                                              "enlarge", "merge_gconv", "const_iconv", "const_pool"};
    if (images.count(op.name)) rank = 4;
    if (op.name == "const_imm") rank = 2;
    if (auto numdim = op.find("numdim")) rank = static_cast<int>(*numdim);
    for (size_t i = 0; i < op.inputs.size() && !rank; i++)
      if (!is_exempt(op, i)) rank = rank_of(op.inputs[i], side);
    if (!rank && (op.name == "matmul" || op.name == "linear")) rank = 2;
    for (size_t i = 0; i < op.inputs.size(); i++) {
      if (is_exempt(op, i))
        set(op.inputs[i], op.name == "batchnorm" ? 1 : 0, side);
      else if (rank)
        set(op.inputs[i], *rank, side);
    }
    if (rank) set(self, *rank, side);
  }
  // The scalar of scalar_mul and the vectors of batchnorm have ranks of their own.
  static bool is_exempt(const TasoOp& op, size_t input) {
    return (op.name == "scalar_mul" || op.name == "batchnorm") && input > 0;
  }

  void equal_outputs(const TasoRef& source, const TasoRef& target) {
    if (auto rank = rank_of(source, ranks_.of_source)) set(target, *rank, ranks_.of_target);
    if (auto rank = rank_of(target, ranks_.of_target)) set(source, *rank, ranks_.of_source);
  }

  const TasoRule& rule_;
  TasoRanks ranks_;
  bool changed_ = false;
};

}  // namespace

TasoRanks infer_taso_ranks(const TasoRule& rule) { return RankInference(rule).run(); }

}  // namespace gopt::rules
