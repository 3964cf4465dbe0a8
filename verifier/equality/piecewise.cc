#include "piecewise.h"

#include <algorithm>

#include "real_encoder.h"

namespace gopt::verifier {
namespace {

bool has_cases(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Summand& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& f) {
      return f.kind == FactorKind::Maximum || f.kind == FactorKind::IsLess || f.kind == FactorKind::IsEqual ||
             std::any_of(f.args.begin(), f.args.end(), has_cases);
    });
  });
}

}  // namespace

bool is_zero_piecewise(const NormalForm& terms, const Cond& context, ProofState& state) {
  if (!has_cases(terms)) return false;
  return state.solver.is_zero(context, RealEncoder()(terms));
}

}  // namespace gopt::verifier
