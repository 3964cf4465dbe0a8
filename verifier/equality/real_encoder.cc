#include "real_encoder.h"

#include <cstdlib>

#include "normal_form/ranges.h"

namespace gopt::verifier {
namespace {

using Kind = RealExpr::Kind;

RealExprPtr make(RealExpr e) { return std::make_shared<const RealExpr>(std::move(e)); }
RealExprPtr number(const Rational& value) { return make({Kind::Constant, value, "", {}, {}}); }
RealExprPtr named(const std::string& variable) { return make({Kind::Variable, {}, variable, {}, {}}); }
RealExprPtr product(std::vector<RealExprPtr> parts) { return make({Kind::Multiply, {}, "", std::move(parts), {}}); }
RealExprPtr difference(const RealExprPtr& a, const RealExprPtr& b) {
  return make({Kind::Add, {}, "", {a, product({number(-1), b})}, {}});
}

}  // namespace

RealExprPtr RealEncoder::operator()(const NormalForm& form) {
  RealExpr sum{Kind::Add, {}, "", {number(0)}, {}};
  for (const Summand& term : form) sum.parts.push_back(encode(term));
  return make(std::move(sum));
}

RealExprPtr RealEncoder::encode(const Summand& term) {
  RealExpr all{Kind::Multiply, {}, "", {number(term.coefficient)}, {}};
  if (!term.binders.empty()) {
    // A sum over binders is one number; equal keys are equal numbers.
    Summand bare = term;
    bare.coefficient = 1;
    const size_t before = numbers_.size();
    all.parts.push_back(variable(key(NormalForm{bare}), nullptr));
    if (numbers_.size() > before) sums_.emplace_back(all.parts.back()->variable, bare);
    return make(std::move(all));
  }
  for (const Factor& factor : term.factors) all.parts.push_back(encode(factor));
  return make({Kind::Guarded, {}, "", {make(std::move(all))}, term.guard});
}

RealExprPtr RealEncoder::encode(const Factor& factor) {
  if (factor.kind == FactorKind::IsLess || factor.kind == FactorKind::IsEqual)
    return make({factor.kind == FactorKind::IsLess ? Kind::IsLess : Kind::IsEqual,
                 {},
                 "",
                 {(*this)(factor.args[0]), (*this)(factor.args[1])},
                 {}});
  if (factor.kind != FactorKind::Maximum) return variable(key(factor), &factor);
  std::vector<RealExprPtr> parts;
  std::vector<Branch> open;  // with binders or guards: together one number
  for (const Branch& b : factor.branches) {
    if (b.binders.empty() && b.guard.is_true()) {
      parts.push_back((*this)(b.value));
    } else {
      open.push_back(b);
    }
  }
  if (!open.empty()) {
    Factor rest = factor;
    rest.branches = open;
    parts.push_back(variable(key(rest), &rest));
  }
  return make({Kind::Maximum, {}, "", std::move(parts), {}});
}

RealExprPtr RealEncoder::variable(const std::string& text, const Factor* factor) {
  const auto [it, is_new] = numbers_.try_emplace(text, numbers_.size());
  const std::string name = "r" + std::to_string(it->second);
  if (is_new && factor) factors_.emplace_back(name, *factor);
  return named(name);
}

std::vector<RealFact> RealEncoder::facts(ProofState& state) {
  std::vector<RealFact> found;
  // What is said of one may hold others.
  for (size_t i = 0; i < factors_.size(); i++) {
    const auto [name, factor] = factors_[i];
    append_facts(name, factor, state, found);
  }
  return found;
}

void RealEncoder::append_facts(const std::string& variable, const Factor& factor, ProofState& state,
                               std::vector<RealFact>& out) {
  using Relation = RealFact::Relation;
  const RealExprPtr own = named(variable);
  const ValueRange range = range_of(factor, Cond(), state);
  if (range.low)
    out.push_back(
        {difference(own, number(range.low->value)), range.low->is_strict ? Relation::Positive : Relation::NotNegative});
  if (range.high)
    out.push_back({difference(number(range.high->value), own),
                   range.high->is_strict ? Relation::Positive : Relation::NotNegative});
  if (factor.kind == FactorKind::Reciprocal && factor.exponent == -1) {
    out.push_back({difference(product({own, (*this)(factor.args[0])}), number(1)), Relation::Zero});
  } else if (factor.exponent != 1) {  // a power, or what divides
    Factor single = factor;
    single.exponent = 1;
    std::vector<RealExprPtr> parts;
    for (int k = 0; k < std::abs(factor.exponent); k++) parts.push_back(encode(single));
    if (factor.exponent > 0) {
      out.push_back({difference(own, product(std::move(parts))), Relation::Zero});
    } else {
      parts.push_back(own);
      out.push_back({difference(product(std::move(parts)), number(1)), Relation::Zero});
    }
  } else if (factor.kind == FactorKind::Call && factor.function == Function::Sqrt) {
    out.push_back({difference(product({own, own}), (*this)(factor.args[0])), Relation::Zero});
  } else if (factor.kind == FactorKind::Call && factor.function == Function::Sin) {
    Factor cosine = factor;
    cosine.function = Function::Cos;
    const RealExprPtr other = encode(cosine);
    out.push_back(
        {make({Kind::Add, {}, "", {product({own, own}), product({other, other}), number(-1)}, {}}), Relation::Zero});
  }
}

}  // namespace gopt::verifier
