#include "condition_atoms.h"

#include <algorithm>

#include "normal_form/normal_form.h"

namespace gopt::verifier {
namespace {

Cond is_residue(const Index& index, const Index& divisor, int64_t residue) {
  return equal(modulo(index, divisor), Index(residue));
}

// Ids depend on what was read before; what is found may not.
std::vector<AtomId> by_name(const std::set<AtomId>& symbols) {
  std::vector<AtomId> sorted(symbols.begin(), symbols.end());
  std::sort(sorted.begin(), sorted.end(), [](AtomId a, AtomId b) { return atom(a).name < atom(b).name; });
  return sorted;
}

bool is_over(const Index& index, const std::set<AtomId>& symbols) {
  std::set<AtomId> used;
  collect_symbols(index, used);
  return !used.empty() && std::includes(symbols.begin(), symbols.end(), used.begin(), used.end());
}

// Comparisons of a requirement, one by one: of a conjunction some may hold already.
void collect_literals(const Cond& cond, std::vector<Cond>& out) {
  if (cond.kind() == CondKind::NonNegative) out.push_back(cond);
  for (const Cond& part : cond.parts()) collect_literals(part, out);
}

class AtomList {
 public:
  void add(const Cond& cond, int weight) {
    if (!cond.is_true() && !cond.is_false()) atoms_.push_back({cond, weight});
  }
  std::vector<ConditionAtom> take() { return std::move(atoms_); }

  void about(const Index& a, const std::set<int64_t>& moduli) {
    add(at_least(a, Index(1)), 1);
    for (int64_t value : {0, 1, 2}) {
      add(equal(a, Index(value)), 2);
      add(at_least(Index(value), a), 3);
    }
    add(at_least(a, Index(2)), 3);
    add(at_least(a, Index(0)), 2);
    std::set<int64_t> divisors{2, 3};
    divisors.insert(moduli.begin(), moduli.end());
    for (int64_t divisor : divisors)
      for (int64_t residue = 0; residue < divisor; residue++)
        add(is_residue(a, Index(divisor), residue), 4 + static_cast<int>(divisor));
  }
  void about(const Index& a, const Index& b) {
    add(equal(a, b), 2);
    add(at_least(a, b), 3);
    add(at_least(b, a), 3);
    add(less(a, b), 4);
    add(less(b, a), 4);
    add(equal(a, b + Index(1)), 5);
    add(equal(b, a + Index(1)), 5);
    add(equal(a, b + b), 6);
    add(equal(b, a + a), 6);
    add(is_residue(a - b, Index(2), 0), 7);
    add(is_residue(a - b, Index(2), 1), 7);
    for (int64_t least : {0, 1, 2}) add(at_least(a + b, Index(least)), 4);
    add(at_least(Index(0), a + b), 5);
  }
  void about(const Index& a, const Index& b, const Index& sum) {
    add(equal(a + b, sum), 5);
    add(at_least(sum, a + b), 6);
    add(at_least(a + b, sum), 6);
  }
  void divided(const Index& a, const Index& divisor) {
    for (int64_t shift : {0, 1, -1}) add(is_residue(a + Index(shift), divisor, 0), shift == 0 ? 6 : 8);
  }

 private:
  std::vector<ConditionAtom> atoms_;
};

}  // namespace

std::vector<ConditionAtom> condition_atoms(const std::set<AtomId>& symbols, const std::set<AtomId>& divisors,
                                           const std::vector<Index>& extents,
                                           const std::vector<Requirement>& requirements,
                                           const std::set<int64_t>& moduli) {
  AtomList list;
  std::vector<Index> own;
  for (AtomId symbol : by_name(symbols)) own.push_back(Index::from_atom(symbol));
  constexpr size_t kMaxSummed = 5;  // symbols of which sums of two are looked at
  for (size_t i = 0; i < own.size(); i++) {
    list.about(own[i], moduli);
    for (AtomId divisor : by_name(divisors))
      if (Index::from_atom(divisor) != own[i]) list.divided(own[i], Index::from_atom(divisor));
    for (size_t j = i + 1; j < own.size(); j++) {
      list.about(own[i], own[j]);
      for (size_t k = 0; k < own.size() && own.size() <= kMaxSummed; k++)
        if (k != i && k != j) list.about(own[i], own[j], own[k]);
    }
  }
  for (size_t i = 0; i < extents.size(); i++) {
    if (!is_over(extents[i], symbols)) continue;
    for (size_t j = i + 1; j < extents.size(); j++)
      if (is_over(extents[j], symbols)) list.add(equal(extents[i], extents[j]), 9);
  }
  for (const Requirement& r : requirements) {
    std::vector<Cond> literals;
    collect_literals(r.cond, literals);
    for (const Cond& literal : literals) list.add(literal, 8);
    list.add(r.cond, 8);
  }
  return list.take();
}

std::vector<ConditionAtom> emptiness_atoms(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right) {
  std::vector<Index> extents;
  auto collect = [&extents](const Shape& shape) {
    for (const Index& extent : shape)
      if (!extent.is_constant() && std::find(extents.begin(), extents.end(), extent) == extents.end())
        extents.push_back(extent);
  };
  for (const RuleVariable& variable : rule.variables) collect(*variable.type.shape);
  for (const TensorExpr& output : left.outputs) collect(output.shape);
  std::vector<ConditionAtom> atoms;
  Cond defined;
  for (const Requirement& r : right.requirements) defined = defined && r.cond;
  for (size_t o = 0; o < left.outputs.size(); o++)
    for (size_t axis = 0; axis < left.outputs[o].shape.size(); axis++)
      defined = defined && equal(left.outputs[o].shape[axis], right.outputs[o].shape[axis]);
  for (const Index& extent : extents) {
    const Cond is_empty = equal(extent, Index(0));
    atoms.push_back({is_empty, extent.as_atom() ? 1 : 2});
    if (!defined.is_true()) atoms.push_back({is_empty && defined, 9});
  }
  return atoms;
}

std::vector<Index> inner_extents(const RewriteRule& rule) {
  constexpr size_t kMaxExtents = 16;
  std::vector<Index> extents;
  for (const Graph* side : {&rule.left, &rule.right})
    for (const NodePtr& node : side->nodes())
      for (const TensorType& type : node->outputs)
        for (const Index& extent : *type.shape)
          if (!extent.is_constant() && extents.size() < kMaxExtents &&
              std::find(extents.begin(), extents.end(), extent) == extents.end())
            extents.push_back(extent);
  return extents;
}

std::set<int64_t> moduli_of(const std::vector<Index>& extents) {
  constexpr int64_t kLargest = 8;
  std::set<int64_t> moduli;
  for (const Index& extent : extents) {
    for (const Index::Term& term : extent.terms()) {
      for (AtomId id : term.atoms) {
        const Atom& a = atom(id);
        if (a.kind != AtomKind::FloorDiv) continue;
        const Index& d = a.denominator;
        if (d.is_constant() && d.constant() >= 2 && d.constant() <= kLargest) moduli.insert(d.constant());
      }
    }
  }
  return moduli;
}

}  // namespace gopt::verifier
