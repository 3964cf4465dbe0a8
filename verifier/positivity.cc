#include "positivity.h"

#include <algorithm>
#include <optional>

namespace gopt {
namespace {

// Whether the term is seen to have a value of its binders, each at a lower bound, where it counts and no size in it
// is 0.
bool occurs(const Term& term, const Cond& context, ProofState& state) {
  Cond needed = term.guard;
  for (const Factor& f : term.factors)
    if (f.kind == FactorKind::Size) needed = needed && at_least(f.subscripts[0], Index(1));
  for (AtomId binder : term.binders) {
    std::optional<Index> lower;
    for (const Cond& literal : conjuncts(needed)) {
      if (literal.kind() != CondKind::NonNegative) continue;
      const auto split = split_linear(literal.index(), binder);
      if (split && split->coefficient == 1) lower = -split->rest;
    }
    if (!lower) return false;
    needed = substitute(needed, {{binder, *lower}});
  }
  return state.solver.entails(context, needed);
}

}  // namespace

bool is_positive(const NormalForm& form, const Cond& context, ProofState& state) {
  const bool nonnegative = std::all_of(form.begin(), form.end(), [&](const Term& term) {
    return term.coefficient.numerator() > 0 &&
           std::all_of(term.factors.begin(), term.factors.end(), [&](const Factor& f) {
             if (f.kind == FactorKind::Size) return state.solver.entails(context, at_least(f.subscripts[0], Index(0)));
             return f.kind == FactorKind::Call && (f.function == Function::Exp || f.function == Function::Cosh);
           });
  });
  return nonnegative &&
         std::any_of(form.begin(), form.end(), [&](const Term& term) { return occurs(term, context, state); });
}

bool is_positive_size(const Factor& factor, const Cond& context, ProofState& state) {
  if (factor.kind != FactorKind::Size) return false;
  const Cond positive = at_least(factor.subscripts[0], Index(1));
  const std::vector<Cond> given = conjuncts(context);
  return std::find(given.begin(), given.end(), positive) != given.end() || state.solver.entails(context, positive);
}
bool is_positive_size(const NormalForm& form, const Cond& context, ProofState& state) {
  if (form.size() != 1 || !form[0].binders.empty() || form[0].factors.empty()) return false;
  Factor product;
  product.kind = FactorKind::Size;
  product.subscripts = {Index(1)};
  for (const Factor& factor : form[0].factors) {
    if (factor.kind != FactorKind::Size || factor.exponent < 1) return false;
    for (int i = 0; i < factor.exponent; i++) product.subscripts[0] = product.subscripts[0] * factor.subscripts[0];
  }
  return is_positive_size(product, context, state);
}

bool is_never_zero(const Factor& factor, const Cond& context, ProofState& state) {
  if (factor.kind == FactorKind::Literal) return true;
  if (factor.kind != FactorKind::Call) return false;
  return factor.function == Function::Exp || factor.function == Function::Cosh ||
         (factor.function == Function::Sqrt && is_positive(factor.args[0], context, state));
}

}  // namespace gopt
