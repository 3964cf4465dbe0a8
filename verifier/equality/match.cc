#include "match.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "binder_change.h"
#include "covers.h"
#include "normal_form/expand_functions.h"
#include "normal_form/simplify.h"
#include "piecewise.h"
#include "pointwise.h"
#include "positivity.h"
#include "rearrange.h"
#include "shared_sums.h"
#include "sign_cases.h"

namespace gopt::verifier {
namespace {

class BinderMatcher {
 public:
  explicit BinderMatcher(ProofState& state) : state_(state), limits_(state.solver.limits().comparison) {}

  bool equal_forms(const NormalForm& left, const NormalForm& right, const Cond& context, int depth) {
    if (depth > limits_.depth) return false;
    std::vector<Summand> terms;
    for (const Summand& term : simplify(left, context, state_)) terms.push_back(freshen(term, state_.pool));
    for (Summand term : simplify(right, context, state_)) {
      term.coefficient = -term.coefficient;
      terms.push_back(freshen(std::move(term), state_.pool));
    }
    if (is_zero(left, right, terms, context, depth)) return true;
    const unsigned share = state_.solver.share();
    state_.solver.set_share(limits_.share_of_guesses);
    bool found = false;
    if (const auto sums = zero_inside(terms, context, depth)) {
      found = true;
      if (state_.log) state_.log->equal_inside(context, left, right, terms, *sums);
    } else if (const auto form = rearranged_to_zero(terms, context, depth)) {
      found = true;
      if (state_.log) state_.log->equal_rearranged(context, left, right, *form);
    } else if (const auto guard = zero_by_cases_of(terms, context, depth)) {
      found = true;
      if (state_.log) state_.log->equal_either_way(context, left, right, terms, *guard);
    } else if (const auto signs = zero_by_sign(terms, context, depth)) {
      found = true;
      if (state_.log) state_.log->equal_by_sign(context, left, right, terms, *signs);
    } else if (zero_pointwise(terms, context, depth)) {
      found = true;
      if (state_.log) state_.log->equal_pointwise(context, left, right, terms);
    }
    state_.solver.set_share(share);
    return found;
  }

 private:
  // Whether the terms, which are what left - right consists of, sum to 0.
  bool is_zero(const NormalForm& left, const NormalForm& right, const NormalForm& terms, const Cond& context,
               int depth) {
    std::vector<ProofLog::Class> classes;
    if (vanishes(terms, context, depth, classes)) {
      if (state_.log) state_.log->equal(context, left, right, terms, classes);
      return true;
    }
    if (!is_zero_piecewise(terms, context, state_)) return false;
    if (state_.log) state_.log->equal_by_cases(context, left, right, terms);
    return true;
  }

  // Sums over shared ranges of which each is 0 at every value of its binders.
  std::optional<std::vector<SharedSum>> zero_inside(const NormalForm& terms, const Cond& context, int depth) {
    if (depth > limits_.rearranged_depth) return std::nullopt;
    auto sums = shared_sums(terms);
    if (!sums || !std::all_of(sums->begin(), sums->end(), [&](const SharedSum& sum) {
          return equal_forms(sum.integrand, {}, context && sum.guard, depth + 1);
        }))
      return std::nullopt;
    return sums;
  }

  // Another way to write the sum (perhaps without its denominators) in which it is seen to be 0.
  std::optional<NormalForm> rearranged_to_zero(const NormalForm& terms, const Cond& context, int depth) {
    if (depth > limits_.rearranged_depth || rearrangements_ >= limits_.rearrangements) return std::nullopt;
    auto is_zero_now = [&](const NormalForm& form) {
      rearrangements_++;
      return rearrangements_ < limits_.rearrangements && is_zero(form, {}, form, context, depth);
    };
    const std::string before = key(terms);
    const NormalForm apart = with_alternatives_apart(terms, context, state_);
    if (key(apart) != before && is_zero_now(apart)) return apart;
    const NormalForm plain = without_denominators(with_functions_expanded(apart, context, state_), context, state_);
    if (key(plain) != key(apart) && is_zero_now(plain)) return plain;
    std::vector<NormalForm> forms{plain};
    for (const Index& inner : range_factors(plain)) {
      forms.push_back(with_ranges_split(plain, inner, context, state_));
      if (is_zero_now(forms.back())) return forms.back();
    }
    for (const NormalForm& form : forms) {
      const NormalForm written_out = with_short_sums_expanded(form, context, state_);
      if (key(written_out) != key(form) && is_zero_now(written_out)) return written_out;
    }
    if (const auto joined = with_logarithms_joined(plain, context, state_)) {
      const NormalForm powers = without_denominators(*joined, context, state_);
      if (is_zero_now(powers)) return powers;
    }
    return std::nullopt;
  }

  // A condition of the sum's guards where it is 0 where the condition holds, and where it does not.
  std::optional<Cond> zero_by_cases_of(const NormalForm& terms, const Cond& context, int depth) {
    if (depth > limits_.rearranged_depth || cases_ >= limits_.cases) return std::nullopt;
    const auto guard = undecided_guard(terms, context, state_);
    if (!guard) return std::nullopt;
    cases_++;
    if (!equal_forms(terms, {}, context && *guard, depth) || !equal_forms(terms, {}, context && !*guard, depth))
      return std::nullopt;
    return guard;
  }

  // Whether the sum is 0 where a difference in it is above 0, where it is 0, and where it is below.
  std::optional<SignCases> zero_by_sign(const NormalForm& terms, const Cond& context, int depth) {
    if (depth > limits_.rearranged_depth || cases_ >= limits_.cases) return std::nullopt;
    const auto cases = sign_cases(terms, context, state_);
    const std::string before = key(terms);
    if (!cases || key(cases->where_positive) == before || key(cases->where_negative) == before) return std::nullopt;
    cases_++;
    const bool was_by_sign = std::exchange(is_by_sign_, true);
    const bool are_zero = equal_forms(cases->where_positive, {}, context, depth) &&
                          equal_forms(cases->where_zero, {}, context, depth) &&
                          equal_forms(cases->where_negative, {}, context, depth);
    is_by_sign_ = was_by_sign;
    return are_zero ? cases : std::nullopt;
  }

  // Whether the sum is 0 by what is known of functions and of maxima and sums over ranges. It looks at signs itself.
  bool zero_pointwise(const NormalForm& terms, const Cond& context, int depth) {
    return !is_by_sign_ && depth <= limits_.rearranged_depth && pointwise_++ < limits_.pointwise &&
           is_zero_pointwise(terms, context, state_);
  }

  struct Member {
    const Summand* term;
    std::vector<Substitution> changes;  // of its binders to the first member's
  };

  // Whether the terms sum to 0: they fall into classes of equal integrands, each of which sums to 0.
  bool vanishes(const std::vector<Summand>& terms, const Cond& context, int depth,
                std::vector<ProofLog::Class>& classes) {
    std::vector<bool> done(terms.size(), false);
    for (size_t i = 0; i < terms.size(); i++) {
      if (done[i]) continue;
      Substitution identity;
      for (AtomId binder : terms[i].binders) identity[binder] = Index::from_atom(binder);
      std::vector<Member> members{{&terms[i], {identity}}};
      for (size_t j = i + 1; j < terms.size(); j++) {
        if (done[j]) continue;
        std::vector<Substitution> changes = binder_changes(terms[i], terms[j], context, depth);
        if (changes.empty()) continue;
        members.push_back({&terms[j], std::move(changes)});
        done[j] = true;
      }
      done[i] = true;
      const auto choice = vanishing_choice(members, context);
      if (!choice) return false;
      ProofLog::Class chosen;
      for (size_t m = 0; m < members.size(); m++)
        chosen.push_back({static_cast<size_t>(members[m].term - terms.data()), members[m].changes[(*choice)[m]]});
      classes.push_back(std::move(chosen));
    }
    return true;
  }

  // Which change of each member makes the class sum to 0, if any do.
  std::optional<std::vector<size_t>> vanishing_choice(const std::vector<Member>& members, const Cond& context) {
    int64_t common = 1;
    for (const Member& m : members) {
      const int64_t denominator = m.term->coefficient.denominator();
      common = (Rational(common) * Rational(denominator / std::gcd(common, denominator))).numerator();
    }
    std::vector<size_t> choice(members.size(), 0);
    for (int tries = 0; tries < limits_.combinations; tries++) {
      std::vector<GuardedCount> counts;
      for (size_t m = 0; m < members.size(); m++) {
        const Rational scaled = members[m].term->coefficient * Rational(common);
        counts.push_back({scaled.numerator(), substitute(members[m].term->guard, members[m].changes[choice[m]])});
      }
      if (state_.solver.sums_to_zero(context, counts)) return choice;
      size_t m = 0;
      while (m < members.size() && ++choice[m] == members[m].changes.size()) choice[m++] = 0;
      if (m == members.size()) return std::nullopt;
    }
    return std::nullopt;
  }

  static bool alike(const Factor& a, const Factor& b) {
    return a.kind == b.kind && a.input == b.input && a.function == b.function && a.tag == b.tag &&
           a.exponent == b.exponent && a.literal == b.literal && a.subscripts.size() == b.subscripts.size() &&
           a.args.size() == b.args.size();
  }

  // Changes of t's binders to those of `first` under which the integrands are equal wherever t's guard holds.
  std::vector<Substitution> binder_changes(const Summand& first, const Summand& t, const Cond& context, int depth) {
    std::vector<Substitution> found;
    const size_t count = t.factors.size();
    if (first.factors.size() != count || first.binders.size() != t.binders.size()) return found;
    std::vector<size_t> partner(count);
    std::vector<bool> used(count, false);
    std::function<void(size_t)> assign = [&](size_t i) {
      if (found.size() >= limits_.changes) return;
      if (i == count) return try_assignment(first, t, partner, context, depth, found);
      for (size_t j = 0; j < count; j++) {
        if (used[j] || !alike(first.factors[i], t.factors[j])) continue;
        used[j] = true;
        partner[i] = j;
        assign(i + 1);
        used[j] = false;
      }
    };
    assign(0);
    return found;
  }

  void try_assignment(const Summand& first, const Summand& t, const std::vector<size_t>& partner, const Cond& context,
                      int depth, std::vector<Substitution>& found) {
    std::vector<Index> equations;
    InnerBinders inside;
    for (size_t i = 0; i < partner.size(); i++) {
      append_equations(first.factors[i], t.factors[partner[i]], equations);
      inside.add(first.factors[i], t.factors[partner[i]]);
    }
    for (int alternative = 0; alternative < limits_.alternatives && found.size() < limits_.changes; alternative++) {
      const auto change = solve_binders(equations, t.binders, first.binders, inside, alternative);
      if (!change) return;
      if (!is_unimodular(t.binders, first.binders, *change)) continue;
      const Cond inner = context && substitute(t.guard, *change);
      bool equal = true;
      for (size_t i = 0; i < partner.size() && equal; i++)
        equal = equal_factors(first.factors[i], substitute(t.factors[partner[i]], *change), inner, depth);
      if (equal) found.push_back(*change);
    }
  }

  bool equal_indexes(const Index& a, const Index& b, const Cond& context) {
    if (a == b) return true;
    const Index x = simplify(a, context, state_), y = simplify(b, context, state_);
    return x == y || are_equal_without_nesting(x, y, context) || state_.solver.entails(context, equal(x, y));
  }

  // Places in a tensor whose elements were numbered anew twice: solvers know little of divisions by products.
  bool are_equal_without_nesting(const Index& x, const Index& y, const Cond& context) {
    const Index difference = divided_by_factors(x, context, state_) - divided_by_factors(y, context, state_);
    if (without_nested_divisions(difference, context, state_.solver) != Index(0)) return false;
    if (state_.log) state_.log->entailed("divisions within divisions are one", context, equal(x, y));
    return true;
  }

  bool equal_factors(const Factor& a, const Factor& b, const Cond& context, int depth) {
    for (size_t i = 0; i < a.subscripts.size(); i++)
      if (!equal_indexes(a.subscripts[i], b.subscripts[i], context)) return false;
    if (key(a) == key(b)) return true;
    for (size_t i = 0; i < a.args.size(); i++)
      if (!equal_forms(a.args[i], b.args[i], context, depth + 1)) return false;
    if (a.kind == FactorKind::Maximum) return equal_maxima(a.branches, b.branches, context, depth);
    if (a.kind == FactorKind::Product) return equal_products(a.branches[0], b.branches[0], context, depth);
    return true;
  }

  // Whether each covers the other, as they are or with their windows written as windows of windows.
  bool equal_maxima(const std::vector<Branch>& a, const std::vector<Branch>& b, const Cond& context, int depth) {
    if (covers(a, b, context, depth) && covers(b, a, context, depth)) return true;
    std::vector<Branch> all = a;
    all.insert(all.end(), b.begin(), b.end());
    for (const Index& inner : range_factors(all)) {
      if (rearrangements_++ >= limits_.rearrangements) return false;
      const auto x = with_ranges_split(a, inner, context, state_), y = with_ranges_split(b, inner, context, state_);
      if (covers(x, y, context, depth) && covers(y, x, context, depth)) return true;
    }
    return false;
  }

  // Whether no value of a branch of `inner` is above all values of branches of `outer`.
  bool covers(const std::vector<Branch>& outer, const std::vector<Branch>& inner, const Cond& context, int depth) {
    return std::all_of(inner.begin(), inner.end(),
                       [&](const Branch& b) { return covers_branch(outer, b, context, depth); });
  }
  bool covers_branch(const std::vector<Branch>& outer, const Branch& inner, const Cond& context, int depth) {
    const Cond own = context && inner.guard;
    if (state_.solver.is_infeasible(own)) return true;
    Factor known, other;
    known.kind = other.kind = FactorKind::Opaque;
    known.args = {inner.value};
    std::vector<Cond> covered;
    for (const Branch& branch : outer) {
      const Branch candidate = freshen(branch, state_.pool);
      other.args = {candidate.value};
      std::vector<Index> equations;
      append_equations(known, other, equations);
      InnerBinders inside;
      inside.add(known, other);
      for (const BinderCover& cover : possible_covers(candidate, inner, equations, inside, own, state_)) {
        const Cond here = own && cover.guard;
        if (state_.solver.is_infeasible(here)) continue;
        const NormalForm value = substitute(candidate.value, cover.binders);
        if (equal_forms(inner.value, value, here, depth + 1) || exceeds(value, inner.value, here))
          covered.push_back(cover.where);
      }
      if (is_one_of(own, covered)) return true;
    }
    return false;
  }

  // A value that is larger covers as well: the largest of the others is larger still, or this one.
  bool exceeds(const NormalForm& value, const NormalForm& other, const Cond& context) {
    const DemandsSoFar demanded(state_);
    return is_at_least(value, other, context, state_);
  }

  // Whether one of the conditions holds wherever the context does. Many are looked at case by case: one for each choice
  // of windows on each axis would be too much for one question.
  bool is_one_of(const Cond& context, const std::vector<Cond>& conditions) {
    if (conditions.size() > limits_.conditions_asked_at_once && is_one_of_in_cases(context, conditions, 0)) return true;
    Cond any = Cond::never();
    for (const Cond& cond : conditions) any = any || cond;
    return state_.solver.entails(context, any);
  }
  bool is_one_of_in_cases(const Cond& context, const std::vector<Cond>& conditions, int depth) {
    std::vector<Cond> open;
    for (const Cond& cond : conditions) {
      Cond rest;
      for (const Cond& literal : conjuncts(cond))
        if (!state_.solver.entails(context, literal)) rest = rest && literal;
      if (rest.is_true()) return true;
      if (!state_.solver.is_infeasible(context && rest)) open.push_back(std::move(rest));
    }
    if (open.empty() || depth == limits_.splits) return open.empty() && state_.solver.is_infeasible(context);
    const Cond split = conjuncts(open[0])[0];
    return is_one_of_in_cases(context && split, open, depth + 1) &&
           is_one_of_in_cases(context && !split, open, depth + 1);
  }

  // Products over equal multisets are equal; so are sums over them of any function of the values.
  bool equal_products(const Branch& a, const Branch& b, const Cond& context, int depth) {
    auto carried = [](const Branch& branch) {
      Factor any_function;
      any_function.kind = FactorKind::Opaque;
      any_function.args = {branch.value};
      return NormalForm{Summand{Rational(1), branch.binders, branch.guard, {any_function}}};
    };
    return equal_forms(carried(a), carried(b), context, depth + 1);
  }

  ProofState& state_;
  const ComparisonLimits& limits_;
  int rearrangements_ = 0, cases_ = 0, pointwise_ = 0;
  bool is_by_sign_ = false;  // one of the forms that a sum is by the sign of a difference
};

}  // namespace

bool are_equal(const NormalForm& left, const NormalForm& right, const Cond& context, ProofState& state) {
  return BinderMatcher(state).equal_forms(left, right, context, 0);
}

}  // namespace gopt::verifier
