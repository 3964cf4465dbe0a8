#include "covers.h"

#include <algorithm>

#include "normal_form/simplify.h"
#include "rearrange.h"

namespace gopt::verifier {
namespace {

constexpr size_t kMaxWitnesses = 64;
constexpr int64_t kMaxValues = 9;  // of a binder of a range of numbers

// Values of the binder to try: all of a short range, else its bounds, so that a branch whose value does not depend on
// it covers wherever its domain is seen not to be empty.
std::vector<Index> values_to_try(const Cond& guard, AtomId binder, const Cond& context, ProofState& state) {
  std::vector<Index> bounds;
  std::optional<int64_t> lowest, highest;
  for (const Cond& literal : conjuncts(guard)) {
    if (literal.kind() != CondKind::NonNegative || !depends_on(literal.index(), binder)) continue;
    const auto split = split_linear(literal.index(), binder);
    if (!split || (split->coefficient != 1 && split->coefficient != -1)) {
      if (auto multiple = largest_multiple(literal.index(), binder, context, state))
        bounds.push_back(*std::move(multiple));
      continue;
    }
    bounds.push_back(split->coefficient == 1 ? -split->rest : split->rest);
    if (!split->rest.is_constant()) continue;
    std::optional<int64_t>& end = split->coefficient == 1 ? lowest : highest;
    end = bounds.back().constant();
  }
  if (!lowest || !highest || *highest - *lowest >= kMaxValues) return bounds;
  std::vector<Index> all;
  for (int64_t value = *lowest; value <= *highest; value++) all.emplace_back(value);
  return all;
}

std::vector<Substitution> witnesses(const Branch& candidate, const Substitution& known, const std::vector<AtomId>& open,
                                    const Cond& context, ProofState& state) {
  std::vector<Substitution> result{known};
  const Cond guard = substitute(candidate.guard, known);
  for (AtomId binder : open) {
    const std::vector<Index> values = values_to_try(guard, binder, context, state);
    std::vector<Substitution> extended;
    for (const Substitution& partial : result) {
      for (const Index& value : values) {
        const Substitution step{{binder, substitute(value, partial)}};
        Substitution next = partial;
        for (auto& [other, solved] : next) solved = substitute(solved, step);
        next[binder] = step.at(binder);
        extended.push_back(std::move(next));
      }
    }
    result = std::move(extended);
    if (result.size() > kMaxWitnesses) result.resize(kMaxWitnesses);
  }
  return result;
}

Summand carrier_of(const Branch& branch) {
  Factor value;
  value.kind = FactorKind::Opaque;
  value.args = {branch.value};
  return Summand{Rational(1), branch.binders, branch.guard, {value}};
}

}  // namespace

std::vector<BinderCover> possible_covers(const Branch& candidate, const Branch& inner,
                                         const std::vector<Index>& equations, const InnerBinders& inside,
                                         const Cond& context, ProofState& state) {
  std::vector<BinderCover> covers;
  auto try_at = [&](const Substitution& binders) {
    const Cond guard = substitute(candidate.guard, binders);
    covers.push_back({binders, guard, guard});
    Cond same_reads = guard;
    for (const Index& equation : equations)
      if (!inside.is_held_by(equation)) same_reads = same_reads && equal(substitute(equation, binders), Index(0));
    if (!(same_reads == guard) && !same_reads.is_false()) covers.push_back({binders, same_reads, same_reads});
  };
  if (const auto change = solve_binders(equations, candidate.binders, inner.binders, inside, 0)) try_at(*change);
  const PartialSolution solution = solve_partially(equations, candidate.binders, inside);
  if (solution.open.empty()) return covers;
  if (!solution.values.empty()) {
    BinderCover open{solution.values, substitute(candidate.guard, solution.values), {}};
    open.where = open.guard;
    for (AtomId binder : solution.open) open.where = where_some(open.where, binder);
    covers.push_back(std::move(open));
    for (const Substitution& witness : witnesses(candidate, solution.values, solution.open, context, state))
      try_at(witness);
  }
  for (const Substitution& witness : witnesses(candidate, {}, candidate.binders, context, state)) try_at(witness);
  return covers;
}

Branch freshen(Branch branch, BinderPool& pool) {
  Summand renamed = freshen(carrier_of(branch), pool);
  return {std::move(renamed.binders), std::move(renamed.guard), std::move(renamed.factors[0].args[0])};
}

std::vector<Branch> with_ranges_split(std::vector<Branch> branches, const Index& inner, const Cond& context,
                                      ProofState& state) {
  if (!state.solver.entails(context, at_least(inner, Index(0)))) return branches;
  for (Branch& branch : branches) {
    Summand carrier = carrier_of(branch);
    split_ranges(carrier, inner, state);
    branch = {std::move(carrier.binders), std::move(carrier.guard), std::move(carrier.factors[0].args[0])};
  }
  return branches;
}

std::vector<Index> range_factors(const std::vector<Branch>& branches) {
  NormalForm carriers;
  for (const Branch& branch : branches) carriers.push_back(carrier_of(branch));
  return range_factors(carriers);
}

}  // namespace gopt::verifier
