#include "maximum.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "arithmetic.h"
#include "equality/covers.h"
#include "equality/positivity.h"
#include "functions.h"
#include "laws.h"
#include "maximum_parts.h"
#include "monotone_maximum.h"
#include "ranges.h"
#include "rebuild.h"
#include "simplify.h"
#include "truth_table.h"

namespace gopt::verifier {
namespace {

constexpr size_t kMaxDistributed = 8;  // branches of a maximum that a minimum is moved into

Branch plain_branch(NormalForm value) { return Branch{{}, Cond(), std::move(value)}; }

void scale(NormalForm& form, const Rational& by) {
  for (Summand& term : form) term.coefficient = term.coefficient * by;
}

// The maximum that the form is a positive multiple of, if it is one.
const Factor* scaled_maximum(const NormalForm& form, const Cond& context, ProofState& state) {
  if (form.size() != 1 || form[0].coefficient.numerator() <= 0) return nullptr;
  if (form[0].coefficient == Rational(1)) return sole_factor(form, FactorKind::Maximum, context, state);
  NormalForm unscaled = form;
  unscaled[0].coefficient = 1;
  return sole_factor(unscaled, FactorKind::Maximum, context, state) ? &form[0].factors[0] : nullptr;
}

// What it takes to tell branches apart, by their texts.
uint64_t work_of(const std::vector<Branch>& branches, const ProofLimits& limits) {
  uint64_t units = 0;
  const std::function<void(const NormalForm&)> count = [&](const NormalForm& form) {
    for (const Summand& term : form) {
      for (const Factor& f : term.factors) {
        units += limits.units_of_a_factor;
        for (const NormalForm& a : f.args) count(a);
        for (const Branch& b : f.branches) count(b.value);
      }
    }
  };
  for (const Branch& b : branches) count(b.value);
  return units;
}

// Of branches that are numbers only the largest counts.
void keep_largest_number(std::vector<Branch>& branches) {
  std::optional<Rational> largest;
  std::erase_if(branches, [&](const Branch& b) {
    const auto number = b.binders.empty() && b.guard.is_true() ? as_number(b.value) : std::nullopt;
    if (!number) return false;
    if (!largest || (*number + -*largest).numerator() > 0) largest = number;
    return true;
  });
  if (!largest) return;
  NormalForm value = one();
  value[0].coefficient = *largest;
  if (largest->is_zero()) value.clear();
  branches.push_back(plain_branch(std::move(value)));
}

// The largest positive number that divides all coefficients.
Rational content_of(const std::vector<Branch>& branches) {
  int64_t numerator = 0, denominator = 1;
  for (const Branch& b : branches) {
    for (const Summand& term : b.value) {
      numerator = std::gcd(numerator, term.coefficient.numerator());
      const int64_t own = term.coefficient.denominator();
      denominator = (Rational(denominator) * Rational(own / std::gcd(denominator, own))).numerator();
    }
  }
  return numerator == 0 ? Rational(1) : Rational(numerator, denominator);
}

// max_k (x_k + c) = c + max_k x_k over a non-empty range, which definitions ensure. Takes c out.
NormalForm taken_out(Branch& only) {
  NormalForm inside, outside;
  for (Summand& term : only.value) {
    std::set<AtomId> symbols;
    collect_symbols(NormalForm{term}, symbols);
    const bool depends =
        std::any_of(only.binders.begin(), only.binders.end(), [&](AtomId b) { return symbols.count(b) > 0; });
    (depends ? inside : outside).push_back(std::move(term));
  }
  only.value = std::move(inside);
  return outside;
}

// max_k y x_k = y max_k x_k, for a y that is not negative (an exponential, a square, ...) and the same for all values
// of the binders; ranges are not empty, so that 0 times the maximum is 0. Takes such factors out.
std::vector<Factor> shared_nonnegative(std::vector<Branch>& branches, ProofState& state) {
  std::vector<Factor> shared;
  const Summand* first = nullptr;
  std::set<AtomId> binders;
  for (const Branch& b : branches) {
    binders.insert(b.binders.begin(), b.binders.end());
    for (const Summand& term : b.value) {
      if (!first) first = &term;
      binders.insert(term.binders.begin(), term.binders.end());
    }
  }
  if (!first) return shared;
  for (const Factor& f : std::vector<Factor>(first->factors)) {
    const bool is_nonnegative_here = is_nonnegative(as_form(f), state.always, state);
    // A size that divides is not 0.
    const bool divides_by_size = f.kind == FactorKind::Size && is_nonnegative_here;
    const bool may_divide_by_zero =
        f.exponent < 0 && !divides_by_size && !range_of(f, state.always, state).is_positive();
    if (may_divide_by_zero) continue;
    const ptrdiff_t copies = is_nonnegative_here ? 1 : 2;
    std::set<AtomId> symbols;
    collect_symbols(f, symbols);
    if (std::any_of(symbols.begin(), symbols.end(), [&](AtomId s) { return binders.count(s) > 0; })) continue;
    const std::string text = key(f);
    auto is_it = [&](const Factor& other) { return key(other) == text; };
    const bool everywhere = std::all_of(branches.begin(), branches.end(), [&](const Branch& b) {
      return std::all_of(b.value.begin(), b.value.end(), [&](const Summand& term) {
        return std::count_if(term.factors.begin(), term.factors.end(), is_it) >= copies;
      });
    });
    if (!everywhere) continue;
    for (ptrdiff_t copy = 0; copy < copies; copy++) {
      for (Branch& b : branches)
        for (Summand& term : b.value) term.factors.erase(std::find_if(term.factors.begin(), term.factors.end(), is_it));
      shared.push_back(f);
    }
  }
  return shared;
}

bool is_number(const Summand& term) { return term.binders.empty() && term.factors.empty() && term.guard.is_true(); }

// max(x + c, y + c) = max(x, y) + c, for a number c. Takes it out.
NormalForm shared_number(std::vector<Branch>& branches) {
  std::optional<Rational> shared;
  for (const Branch& b : branches) {
    const auto own = std::find_if(b.value.begin(), b.value.end(), is_number);
    if (own == b.value.end() || (shared && !(*shared == own->coefficient))) return {};
    shared = own->coefficient;
  }
  if (!shared) return {};
  for (Branch& b : branches) b.value.erase(std::find_if(b.value.begin(), b.value.end(), is_number));
  NormalForm number = one();
  number[0].coefficient = *shared;
  return number;
}

// |f| for one factor; that of a product over a range is the product of the magnitudes.
NormalForm magnitude(Factor f, const Cond& context, ProofState& state) {
  if (f.kind == FactorKind::Product) {
    Branch& over = f.branches[0];
    over.value = maximum(over.value, negated(over.value), context && over.guard, state);
    return as_form(std::move(f));
  }
  if (f.exponent < 0 && !range_of(f, context, state).is_positive()) {
    // 1 / |y|; where y is 0, both are without a value, which was demanded.
    const DemandsSoFar demanded(state);
    NormalForm base = f.args.empty() ? NormalForm{} : f.args[0];
    int count = 1;
    if (f.kind != FactorKind::Reciprocal) {
      count = -std::exchange(f.exponent, 1);
      base = as_form(std::move(f));
    }
    const NormalForm inverse = reciprocal(maximum(base, negated(base), context, state), context, state);
    NormalForm r = one();
    for (int i = 0; i < count; i++) r = multiply(r, inverse, context, state);
    return r;
  }
  const NormalForm own = as_form(std::move(f));
  return maximum(own, negated(own), context, state);
}

// |x y| = |x| |y|, for the larger of a product and its opposite.
std::optional<NormalForm> magnitude_of_product(const NormalForm& a, const NormalForm& b, const Cond& context,
                                               ProofState& state) {
  if (a.size() != 1 || a[0].factors.empty() || !a[0].binders.empty() || !a[0].guard.is_true()) return std::nullopt;
  if (a[0].factors.size() == 1 && a[0].factors[0].kind != FactorKind::Product && a[0].factors[0].exponent > 0)
    return std::nullopt;
  if (key(negated(a)) != key(b)) return std::nullopt;
  NormalForm product = one();
  product[0].coefficient = a[0].coefficient.numerator() < 0 ? -a[0].coefficient : a[0].coefficient;
  for (const Factor& f : a[0].factors) product = multiply(product, magnitude(f, context, state), context, state);
  return product;
}

}  // namespace

NormalForm maximum(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state) {
  if (auto table = by_truth_table(
          {&a, &b}, [](const std::vector<Rational>& v) { return (v[0] + -v[1]).numerator() < 0 ? v[1] : v[0]; }))
    return *std::move(table);
  if (is_at_least(a, b, context, state)) return a;
  if (is_at_least(b, a, context, state)) return b;
  if (auto magnitude = magnitude_of_product(a, b, context, state)) return *std::move(magnitude);
  if (auto monotone = monotone_of_two(a, b, context, state)) return *std::move(monotone);
  std::vector<Branch> branches;
  for (const NormalForm* value : {&a, &b}) add_branch(branches, plain_branch(*value), context, state);
  return maximum_over(std::move(branches), state);
}

NormalForm minimum(const NormalForm& a, const NormalForm& b, const Cond& context, ProofState& state) {
  if (auto table = by_truth_table(
          {&a, &b}, [](const std::vector<Rational>& v) { return (v[0] + -v[1]).numerator() < 0 ? v[0] : v[1]; }))
    return *std::move(table);
  for (const auto& [first, second] : {std::pair{&a, &b}, std::pair{&b, &a}}) {
    const Factor* inner = scaled_maximum(*first, context, state);
    if (!inner || inner->branches.size() > kMaxDistributed) continue;
    std::vector<Branch> branches;
    for (const Branch& own : inner->branches) {
      // The other may be made of the same maximum.
      Branch branch = freshen(own, state.pool);
      scale(branch.value, (*first)[0].coefficient);
      branch.value = minimum(branch.value, *second, context && branch.guard, state);
      add_branch(branches, std::move(branch), context, state);
    }
    return maximum_over(std::move(branches), state);
  }
  return negated(maximum(negated(a), negated(b), context, state));
}

void add_branch(std::vector<Branch>& branches, Branch branch, const Cond& context, ProofState& state) {
  const Factor* inner = scaled_maximum(branch.value, context && branch.guard, state);
  if (!inner) {
    branches.push_back(std::move(branch));
    return;
  }
  for (Branch nested : inner->branches) {
    scale(nested.value, branch.value[0].coefficient);
    nested.binders.insert(nested.binders.end(), branch.binders.begin(), branch.binders.end());
    nested.guard = nested.guard && branch.guard;
    branches.push_back(std::move(nested));
  }
}

// The value is carried through as the argument of one factor. A maximum does not count: a sum would multiply by the
// size of an unused binder's range, which is allowed here only where that size is positive.
bool simplify_branch(Branch& branch, const Cond& context, ProofState& state) {
  Summand carrier;
  carrier.binders = branch.binders;
  carrier.guard = branch.guard;
  Factor value;
  value.kind = FactorKind::Opaque;
  value.args = {branch.value};
  carrier.factors = {value};
  if (!simplify(carrier, context, state)) return false;
  for (size_t i = 1; i < carrier.factors.size(); i++)
    if (!is_positive_size(carrier.factors[i], context, state)) return true;
  if (carrier.factors[0].kind != FactorKind::Opaque) return true;
  branch.binders = carrier.binders;
  branch.guard = carrier.guard;
  branch.value = carrier.factors[0].args[0];
  return true;
}

namespace {

// What is left of the branches may be maxima themselves, or functions of one element.
NormalForm maximum_of_rest(std::vector<Branch> branches, ProofState& state) {
  std::vector<Branch> flat;
  if (branches.size() == 1) take_monotone_out(branches[0], state.always, state);
  for (Branch& b : branches) add_branch(flat, std::move(b), state.always, state);
  return maximum_over(std::move(flat), state);
}

}  // namespace

NormalForm maximum_over(std::vector<Branch> branches, ProofState& state) {
  if (branches.empty()) throw NotExpressible("a maximum of nothing");
  state.solver.work(work_of(branches, state.solver.limits()));
  for (Branch& b : branches) b.value = with_like_terms_merged(b.value);
  keep_largest_number(branches);
  std::vector<Branch> distinct;
  std::set<std::string> seen;
  for (Branch& b : branches) {
    Factor alone;
    alone.kind = FactorKind::Maximum;
    alone.branches = {b};
    if (seen.insert(key(alone)).second) distinct.push_back(std::move(b));
  }
  drop_exceeded(distinct, state);
  if (distinct.size() == 1 && distinct[0].binders.empty() && distinct[0].guard.is_true()) return distinct[0].value;
  NormalForm outside;
  outside = distinct.size() == 1 ? taken_out(distinct[0]) : shared_number(distinct);
  // max c x = c max x, for c > 0.
  const Rational content = content_of(distinct);
  for (Branch& b : distinct) scale(b.value, content.inverse());
  auto monotone = monotone_taken_out(distinct, state);
  if (!monotone) monotone = monotone_but_for_a_number(distinct, state);
  if (monotone) {
    scale(*monotone, content);
    return add(*std::move(monotone), outside, state);
  }
  NormalForm form;
  if (const std::vector<Factor> taken = shared_nonnegative(distinct, state); !taken.empty()) {
    form = maximum_of_rest(std::move(distinct), state);
    for (const Factor& f : taken) form = multiply(form, as_form(f), state.always, state);
  } else if (auto sum = shared_sum_of(distinct, state)) {
    form = multiply(sum->sum, maximum_of_rest(std::move(sum->branches), state), state.always, state);
  } else if (auto roots = rooted(distinct, state)) {
    form = powered(maximum_of_rest(std::move(roots->branches), state), roots->exponent, state.always, state);
  } else {
    Factor factor;
    factor.kind = FactorKind::Maximum;
    factor.branches = std::move(distinct);
    form = as_form(std::move(factor));
  }
  scale(form, content);
  return add(std::move(form), outside, state);
}

}  // namespace gopt::verifier
