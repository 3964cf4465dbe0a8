#include "small_numbers.h"

namespace gopt::checker {
namespace {

constexpr int kSamples = 6;

// Of each kind of Evaluable: whether it has a value in every field, and which symbols it is of. Signs are those of real
// numbers.
bool is_exact(const Expression& e) { return is_rational(e); }
bool is_exact(const Form& form) { return is_rational(form); }
bool is_exact(const SignedForm&) { return false; }
bool is_exact(const LogFactor& f) { return is_rational(Form{LogTerm{1, 1, {}, {}, {f}}}); }

void symbols_of(const Expression& e, std::set<std::string>& out) { collect_symbols(e, out); }
void symbols_of(const Form& form, std::set<std::string>& out) { collect_symbols(form, out); }
void symbols_of(const SignedForm& s, std::set<std::string>& out) {
  for (const Form* form : {&s.difference, &s.where_positive, &s.where_zero, &s.where_negative})
    collect_symbols(*form, out);
}
void symbols_of(const LogFactor& f, std::set<std::string>& out) {
  collect_symbols(Form{LogTerm{1, 1, {}, {}, {f}}}, out);
}

bool is_exact(const Evaluable& e) {
  return std::visit([](const auto* own) { return is_exact(*own); }, e);
}
void symbols_of(const Evaluable& e, std::set<std::string>& out) {
  std::visit([&](const auto* own) { symbols_of(*own, out); }, e);
}
// Only an expression may have no value where nothing is wrong: a side may be undefined.
bool is_total(const Evaluable& e) { return !std::holds_alternative<const Expression*>(e); }
std::optional<CheckedValue> value_of(const Evaluable& e, Values values, const EvaluationInputs& inputs) {
  return std::visit([&](const auto* own) { return evaluate(*own, values, inputs); }, e);
}

}  // namespace

bool SmallNumbers::show_equal(const Condition& context, const Evaluable& a, const Evaluable& b, WhereZeroDivides zero) {
  std::set<std::string> symbols;
  collect_symbols(context, symbols);
  symbols_of(a, symbols);
  symbols_of(b, symbols);
  EvaluationInputs inputs;
  inputs.exact = is_exact(a) && is_exact(b);
  inputs.booleans = &booleans_;
  inputs.zero_has_inverse = zero == WhereZeroDivides::Claimed;
  int seen = 0;
  for (int attempt = 0; attempt < 4 * kSamples && seen < kSamples; attempt++) {
    inputs.seed = random_();
    inputs.positive = attempt % 2 == 1;
    Values values;
    if (!draw_assignment(symbols, context, random_, values, inputs.seed)) continue;
    try {
      // Where the first has no value nothing is claimed; where it has one the second must have it.
      const auto x = value_of(a, values, inputs);
      if (!x) continue;
      const auto y = value_of(b, values, inputs);
      if (!y && is_total(b)) continue;
      if (!y || !agree(*x, *y)) return false;
      seen++;
    } catch (const BudgetSpent&) {
      continue;
    }
  }
  return seen > 0;
}

void SmallNumbers::try_to_refute(const Implication& claim) {
  std::set<std::string> symbols;
  collect_symbols(claim.context, symbols);
  collect_symbols(claim.goal, symbols);
  try_to_refute(claim.context, symbols,
                [&](const Values& values, uint64_t seed) { return holds(claim.goal, values, seed); });
}

void SmallNumbers::try_to_refute(const Cancellation& claim) {
  const auto is_zero = [&](const Values& values, uint64_t seed) {
    int64_t sum = 0;
    for (const auto& [coefficient, condition] : claim.counts) sum += holds(condition, values, seed) ? coefficient : 0;
    return sum == 0;
  };
  // Random binders rarely meet a guard; each guard in turn is assumed.
  for (const auto& [coefficient, guard] : claim.counts) {
    const Condition context = conjunction(claim.context, guard);
    std::set<std::string> symbols;
    collect_symbols(context, symbols);
    for (const auto& [other, condition] : claim.counts) collect_symbols(condition, symbols);
    try_to_refute(context, symbols, is_zero);
  }
}

void SmallNumbers::try_to_refute(const Condition& context, const std::set<std::string>& symbols,
                                 const std::function<bool(const Values&, uint64_t)>& claim) {
  Values values;
  for (int i = 0; i < kSamples; i++) {
    const uint64_t seed = random_();
    if (!draw_assignment(symbols, context, random_, values, seed)) return;
    bool held = true;
    try {
      held = claim(values, seed);
    } catch (const Fault&) {
      continue;  // a division without meaning at these values
    }
    if (!held) throw Fault("an obligation is false at small numbers");
  }
}

}  // namespace gopt::checker
