// Factors of a term that are powers of one: sizes and exponentials.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

#include "simplify.h"

namespace gopt::verifier {

void multiply_by_size(Summand& term, const Index& index, int exponent) {
  auto append = [&](const Index& size) {
    Factor factor;
    factor.kind = FactorKind::Size;
    factor.subscripts = {size};
    factor.exponent = exponent;
    term.factors.push_back(std::move(factor));
  };
  if (index.is_constant()) {
    // The reciprocal of 0 is 0, as everywhere in normal forms.
    const Rational value(index.constant());
    term.coefficient = term.coefficient * (exponent > 0 || value.is_zero() ? value : value.inverse());
    return;
  }
  if (index.terms().size() != 1 || index.constant() != 0) return append(index);
  const Index::Term& monomial = index.terms()[0];
  term.coefficient =
      term.coefficient * (exponent > 0 ? Rational(monomial.coefficient) : Rational(1, monomial.coefficient));
  for (AtomId id : monomial.atoms) append(Index::from_atom(id));
}

namespace {

bool is_exponential(const Factor& f) { return f.kind == FactorKind::Call && f.function == Function::Exp; }

// e^(x/a) and e^(x/b) as powers of one exponential, where their arguments are one term each that differ in their
// coefficients alone.
void share_base(Factor& a, Factor& b) {
  constexpr int64_t kMaxExponent = 64;
  if (a.args[0].size() != 1 || b.args[0].size() != 1) return;
  const Rational x = a.args[0][0].coefficient, y = b.args[0][0].coefficient;
  if (x == y || x.numerator() != 1 || y.numerator() != 1) return;
  Factor unit = a;
  unit.args[0][0].coefficient = y;
  if (key(unit, false) != key(b, false)) return;
  const int64_t common = std::lcm(x.denominator(), y.denominator());
  const int64_t p = common / x.denominator() * a.exponent, q = common / y.denominator() * b.exponent;
  if (std::abs(p) > kMaxExponent || std::abs(q) > kMaxExponent) return;
  a.args[0][0].coefficient = b.args[0][0].coefficient = Rational(1, common);
  a.exponent = static_cast<int>(p);
  b.exponent = static_cast<int>(q);
}

// (e^(x/d))^n in lowest terms.
void reduce_exponent(Factor& f) {
  if (f.args[0].size() != 1 || f.args[0][0].coefficient.numerator() != 1) return;
  const int64_t shared = std::gcd(f.args[0][0].coefficient.denominator(), static_cast<int64_t>(f.exponent));
  if (shared <= 1) return;
  f.args[0][0].coefficient = f.args[0][0].coefficient * Rational(shared);
  f.exponent /= static_cast<int>(shared);
}

// c, where the factor is max(0, c f) for the factor f, which is no maximum.
std::optional<Rational> positive_part_of(const Factor& maximum, const Factor& f) {
  if (maximum.kind != FactorKind::Maximum || maximum.exponent != 1 || maximum.branches.size() != 2) return std::nullopt;
  const auto is_plain = [](const Branch& b) { return b.binders.empty() && b.guard.is_true(); };
  const Branch &a = maximum.branches[0], &b = maximum.branches[1];
  if (!is_plain(a) || !is_plain(b) || a.value.empty() == b.value.empty()) return std::nullopt;
  const NormalForm& value = a.value.empty() ? b.value : a.value;
  if (value.size() != 1 || !value[0].binders.empty() || !value[0].guard.is_true() || value[0].factors.size() != 1 ||
      key(value[0].factors[0]) != key(f))
    return std::nullopt;
  return value[0].coefficient;
}

// max(0, c x) x = max(0, c x)^2 / c.
void square_positive_parts(Summand& term) {
  for (size_t i = 0; i < term.factors.size(); i++) {
    if (term.factors[i].kind != FactorKind::Maximum) continue;
    for (size_t j = 0; j < term.factors.size(); j++) {
      if (term.factors[j].kind != FactorKind::Read || term.factors[j].exponent != 1) continue;
      const auto times = positive_part_of(term.factors[i], term.factors[j]);
      if (!times || times->is_zero()) continue;
      term.coefficient = term.coefficient * times->inverse();
      term.factors[j] = term.factors[i];
    }
  }
}

}  // namespace

// size * 1/size is 1 only where the size is not 0; exponents of one sign, and those of exp, add up always.
void merge_factors(Summand& term, const Cond& context, ProofState& state) {
  for (size_t i = 0; i < term.factors.size(); i++) {
    Factor& kept = term.factors[i];
    if (kept.kind != FactorKind::Size && !is_exponential(kept)) continue;
    for (size_t j = i + 1; j < term.factors.size();) {
      Factor& other = term.factors[j];
      if (is_exponential(kept) && is_exponential(other)) share_base(kept, other);
      const bool alike = other.kind == kept.kind && key(other, false) == key(kept, false);
      const bool free = alike && (is_exponential(kept) || (kept.exponent > 0) == (other.exponent > 0) ||
                                  state.solver.entails(context, at_least(kept.subscripts[0], Index(1))));
      if (!free) {
        j++;
        continue;
      }
      kept.exponent += other.exponent;
      term.factors.erase(term.factors.begin() + static_cast<ptrdiff_t>(j));
      if (kept.exponent == 0) break;
    }
    if (kept.exponent != 0 && is_exponential(kept)) reduce_exponent(kept);
  }
  std::erase_if(term.factors, [](const Factor& f) { return f.exponent == 0; });
  square_positive_parts(term);
}

}  // namespace gopt::verifier
