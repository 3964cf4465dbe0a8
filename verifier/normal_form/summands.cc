#include "summands.h"

#include <algorithm>

#include "arithmetic.h"

namespace gopt::verifier {
namespace {

void collect_subscripts(const Factor& f, std::vector<std::pair<int, std::vector<Index>>>& out) {
  if (f.kind == FactorKind::Read) out.emplace_back(f.input, f.subscripts);
  for (const NormalForm& a : f.args)
    for (const Summand& term : a)
      for (const Factor& inner : term.factors) collect_subscripts(inner, out);
}

// The value of each of the binders that makes an element that is read one that the factors read.
std::optional<Substitution> binders_at(const std::vector<AtomId>& binders, const std::vector<Factor>& reading,
                                       const std::vector<Factor>& factors) {
  std::vector<std::pair<int, std::vector<Index>>> own, wanted;
  for (const Factor& f : reading) collect_subscripts(f, own);
  for (const Factor& f : factors) collect_subscripts(f, wanted);
  Substitution found;
  for (AtomId binder : binders) {
    for (const auto& [input, subscripts] : own) {
      for (size_t axis = 0; axis < subscripts.size(); axis++) {
        if (found.count(binder) || subscripts[axis] != Index::from_atom(binder)) continue;
        const auto it = std::find_if(wanted.begin(), wanted.end(), [&, number = input](const auto& w) {
          return w.first == number && w.second.size() > axis;
        });
        if (it != wanted.end()) found[binder] = it->second[axis];
      }
    }
    if (!found.count(binder)) return std::nullopt;
  }
  return found;
}

bool is_nonnegative_call(const Factor& f) {
  return f.kind == FactorKind::Call && (f.function == Function::Exp || f.function == Function::Sqrt);
}

}  // namespace

bool is_summand_of(const std::vector<Factor>& factors, const NormalForm& sum, const Cond& context, ProofState& state) {
  const bool are_nonnegative = std::all_of(sum.begin(), sum.end(), [](const Summand& term) {
    return term.coefficient.numerator() > 0 &&
           std::all_of(term.factors.begin(), term.factors.end(), is_nonnegative_call);
  });
  if (!are_nonnegative) return false;
  Summand wanted;
  wanted.factors = factors;
  const std::string text = key(NormalForm{wanted});
  return std::any_of(sum.begin(), sum.end(), [&](const Summand& term) {
    const auto at = binders_at(term.binders, term.factors, factors);
    if (!at || (term.coefficient + Rational(-1)).numerator() < 0) return false;
    Summand own;
    for (const Factor& f : term.factors) own.factors.push_back(substitute(f, *at));
    return key(NormalForm{own}) == text && state.solver.entails(context, substitute(term.guard, *at));
  });
}

std::optional<NormalForm> value_near(const Branch& branch, const std::vector<Factor>& factors, const Cond& context,
                                     ProofState& state) {
  std::vector<Factor> reading;
  for (const Summand& term : branch.value) reading.insert(reading.end(), term.factors.begin(), term.factors.end());
  const auto at = binders_at(branch.binders, reading, factors);
  if (!at || !state.solver.entails(context, substitute(branch.guard, *at))) return std::nullopt;
  return substitute(branch.value, *at);
}

bool is_logarithm_of_larger(const NormalForm& form, const Cond& context, ProofState& state) {
  for (size_t i = 0; i < form.size(); i++) {
    const Summand& own = form[i];
    const bool is_logarithm = own.factors.size() == 1 && own.factors[0].kind == FactorKind::Call &&
                              own.factors[0].function == Function::Log && own.factors[0].exponent == 1;
    if (!is_logarithm || own.coefficient.numerator() <= 0 || !own.binders.empty() || !own.guard.is_true()) continue;
    NormalForm rest = form;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
    std::erase_if(rest, [](const Summand& t) {
      return t.binders.empty() && t.factors.empty() && t.guard.is_true() && t.coefficient.numerator() > 0;
    });
    for (Summand& term : rest) term.coefficient = term.coefficient * -own.coefficient.inverse();
    const NormalForm power = exponential(rest, context, state);
    if (power.size() == 1 && power[0].coefficient == Rational(1) && power[0].binders.empty() &&
        power[0].guard.is_true() && is_summand_of(power[0].factors, own.factors[0].args[0], context, state))
      return true;
  }
  return false;
}

}  // namespace gopt::verifier
