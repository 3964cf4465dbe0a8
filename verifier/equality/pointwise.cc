#include "pointwise.h"

#include <algorithm>
#include <map>
#include <optional>

#include "demands.h"
#include "normal_form/function_facts.h"
#include "normal_form/ranges.h"
#include "normal_form/summands.h"
#include "positivity.h"
#include "real_encoder.h"
#include "sign_cases.h"

namespace gopt::verifier {
namespace {

using Kind = RealExpr::Kind;
using Relation = RealFact::Relation;

// A form that has this sign.
struct Signed {
  NormalForm form;
  int sign;
};

bool has_cases(const RealExpr& e) {
  return e.kind == Kind::Maximum || e.kind == Kind::IsLess || e.kind == Kind::IsEqual || e.kind == Kind::Guarded ||
         std::any_of(e.parts.begin(), e.parts.end(), [](const RealExprPtr& p) { return has_cases(*p); });
}
// Guards that always hold are no cases.
RealExprPtr without_plain_guards(const RealExprPtr& e) {
  if (e->kind == Kind::Guarded && e->cond.is_true()) return without_plain_guards(e->parts[0]);
  RealExpr copy = *e;
  for (RealExprPtr& part : copy.parts) part = without_plain_guards(part);
  return std::make_shared<const RealExpr>(std::move(copy));
}

RealFact sign_fact(const RealExprPtr& value, int sign) {
  if (sign == 0) return {value, Relation::Zero};
  return {sign > 0 ? value : real_difference(real_number(0), value), Relation::Positive};
}

// What the value is applied to, where facts depend on the sign of that.
const NormalForm* argument_of(const Factor& f) {
  if (f.kind == FactorKind::Reciprocal && f.exponent == -1) return &f.args[0];
  if (f.kind != FactorKind::Call || f.exponent != 1) return nullptr;
  return has_function_facts(f.function) || f.function == Function::Sqrt ? &f.args[0] : nullptr;
}

// One place of the sums, without cases inside functions.
class Leaf {
 public:
  Leaf(const NormalForm& terms, const std::vector<Signed>& known, const Cond& context, ProofState& state)
      : context_(context), state_(state), limits_(state.solver.limits().pointwise), value_(plain(terms)) {
    for (const Signed& s : known) add(sign_fact(plain(s.form), s.sign));
    // Facts name further variables, of which more is known.
    for (size_t i = 0; i < encode_.factors().size() && i < limits_.factors; i++) {
      const auto [name, factor] = encode_.factors()[i];
      note(name, factor);
    }
    note_instances();
    for (const auto& [name, term] : encode_.sums()) note_sum(name, term);
  }

  bool is_zero() { return is_zero_by_signs(0); }

 private:
  struct Application {
    RealExprPtr value;
    Factor factor;
  };
  struct Argument {
    NormalForm form;
    RealExprPtr value;
    ValueRange range;
    std::vector<Application> applications;
  };

  static RealExprPtr named(const std::string& name) {
    return std::make_shared<const RealExpr>(RealExpr{Kind::Variable, {}, name, {}, {}});
  }
  RealExprPtr plain(const NormalForm& form) { return without_plain_guards(encode_(form)); }
  void add(RealFact fact) {
    if (!has_cases(*fact.value)) facts_.push_back(std::move(fact));
  }

  void note(const std::string& name, const Factor& factor) {
    const RealExprPtr own = named(name);
    const ValueRange range = range_of(factor, context_, state_);
    if (range.low)
      add({real_difference(own, real_number(range.low->value)),
           range.low->is_strict ? Relation::Positive : Relation::NotNegative});
    if (range.high)
      add({real_difference(real_number(range.high->value), own),
           range.high->is_strict ? Relation::Positive : Relation::NotNegative});
    if (factor.exponent != 1 && factor.kind != FactorKind::Reciprocal) return note_power(own, factor);
    const NormalForm* argument = argument_of(factor);
    if (!argument) return;
    const std::string text = key(*argument);
    auto it = places_.find(text);
    if (it == places_.end()) {
      if (arguments_.size() == limits_.arguments) return;
      it = places_.emplace(text, arguments_.size()).first;
      arguments_.push_back({*argument, plain(*argument), range_of(*argument, context_, state_), {}});
    }
    arguments_[it->second].applications.push_back({own, factor});
  }

  // x^n is a product; x^-n is the inverse of one, where x is not 0.
  void note_power(const RealExprPtr& own, Factor factor) {
    const int exponent = factor.exponent;
    factor.exponent = 1;
    const NormalForm single = as_form(factor);
    RealExprPtr power = plain(single);
    for (int k = 1; k < std::abs(exponent); k++) power = real_product(power, plain(single));
    if (exponent > 0) return add({real_difference(own, power), Relation::Zero});
    const bool is_not_zero = is_never_zero(factor, context_, state_) || is_positive_size(factor, context_, state_) ||
                             (state_.sides_are_defined && is_demanded_by_both("divisor", single, context_, state_));
    if (is_not_zero) add({real_difference(real_product(own, power), real_number(1)), Relation::Zero});
  }

  // A maximum over a range is at least what it is over at a place that is read elsewhere.
  void note_instances() {
    const auto factors = encode_.factors();
    size_t found = 0;
    for (const auto& [name, maximum] : factors) {
      if (maximum.kind != FactorKind::Maximum) continue;
      for (const auto& [other_name, other] : factors) {
        if (other.kind != FactorKind::Read) continue;
        for (const Branch& b : maximum.branches) {
          const auto value = found < limits_.instances ? value_near(b, {other}, context_, state_) : std::nullopt;
          if (!value) continue;
          found++;
          add({real_difference(named(name), plain(*value)), Relation::NotNegative});
        }
      }
    }
  }

  void note_sum(const std::string& name, const Summand& term) {
    if (is_nonnegative({term}, context_, state_)) add({named(name), Relation::NotNegative});
    if (is_nonnegative(negated({term}), context_, state_))
      add({real_difference(real_number(0), named(name)), Relation::NotNegative});
  }

  // Whether the argument cannot have the sign wherever the sides have a value.
  bool is_excluded(const Argument& argument, int sign) {
    if (sign <= 0 && argument.range.is_positive()) return true;
    if (sign >= 0 && argument.range.is_negative()) return true;
    if (sign < 0 && argument.range.is_nonnegative()) return true;
    return state_.sides_are_defined &&
           std::any_of(argument.applications.begin(), argument.applications.end(), [&](const Application& a) {
             const bool is_root = a.factor.kind == FactorKind::Call && a.factor.function == Function::Sqrt;
             if (is_root && sign < 0) return is_demanded_by_both("sqrt", argument.form, context_, state_);
             return a.factor.kind == FactorKind::Reciprocal && sign == 0 &&
                    is_demanded_by_both("divisor", argument.form, context_, state_);
           });
  }

  // What is known of what is applied to the argument where that has the sign. Of roots of what is negative, and of what
  // is divided by 0, nothing.
  void append_facts(const Argument& argument, int sign) {
    add(sign_fact(argument.value, sign));
    for (const Application& a : argument.applications) {
      if (a.factor.kind == FactorKind::Reciprocal) {
        if (sign == 0) continue;
        add(sign_fact(a.value, sign));
        add({real_difference(real_product(a.value, argument.value), real_number(1)), Relation::Zero});
      } else if (a.factor.function == Function::Sqrt) {
        if (sign < 0) continue;
        add(sign_fact(a.value, sign));
        add({real_difference(real_product(a.value, a.value), argument.value), Relation::Zero});
      } else {
        for (RealFact& fact : function_facts(a.factor.function, a.value, argument.value, sign, argument.range))
          add(std::move(fact));
      }
    }
  }

  bool is_zero_by_signs(size_t argument) {
    if (argument == arguments_.size()) return state_.solver.is_zero(context_, value_, facts_);
    const size_t before = facts_.size();
    for (const int sign : {1, -1, 0}) {
      if (is_excluded(arguments_[argument], sign)) continue;
      append_facts(arguments_[argument], sign);
      const bool is_zero_here = is_zero_by_signs(argument + 1);
      facts_.resize(before);
      if (!is_zero_here) return false;
    }
    return true;
  }

  const Cond& context_;
  ProofState& state_;
  const PointwiseLimits& limits_;
  RealEncoder encode_;
  const RealExprPtr value_;
  std::vector<RealFact> facts_;
  std::vector<Argument> arguments_;
  std::map<std::string, size_t> places_;
};

bool is_zero_where(const NormalForm& terms, std::vector<Signed>& known, const Cond& context, ProofState& state,
                   int depth) {
  if (terms.empty()) return true;
  const auto cases =
      depth < state.solver.limits().pointwise.depth ? sign_cases(terms, context, state, true) : std::nullopt;
  if (!cases) return Leaf(terms, known, context, state).is_zero();
  for (const auto& [form, sign] : {std::pair{&cases->where_positive, 1}, std::pair{&cases->where_negative, -1},
                                   std::pair{&cases->where_zero, 0}}) {
    known.push_back({cases->difference, sign});
    const bool is_zero_here = is_zero_where(*form, known, context, state, depth + 1);
    known.pop_back();
    if (!is_zero_here) return false;
  }
  return true;
}

bool holds_cases(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Summand& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& f) {
      return f.kind == FactorKind::Maximum || f.kind == FactorKind::IsLess || f.kind == FactorKind::IsEqual ||
             std::any_of(f.args.begin(), f.args.end(), holds_cases);
    });
  });
}

}  // namespace

bool is_zero_pointwise(const NormalForm& terms, const Cond& context, ProofState& state) {
  if (terms.size() > state.solver.limits().pointwise.terms || !holds_cases(terms)) return false;
  const DemandsSoFar demanded(state);
  std::vector<Signed> known;
  return is_zero_where(terms, known, context, state, 0);
}

}  // namespace gopt::verifier
