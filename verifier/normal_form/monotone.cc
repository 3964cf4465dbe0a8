#include "monotone.h"

#include <algorithm>
#include <map>

#include "arithmetic.h"
#include "equality/positivity.h"
#include "ranges.h"
#include "rebuild.h"

namespace gopt::verifier {
namespace {

bool increases(Function f) {
  switch (f) {
    case Function::Exp:
    case Function::Log:
    case Function::Sqrt:
    case Function::Asin:
    case Function::Atan:
    case Function::Sinh:
    case Function::Asinh:
    case Function::Acosh:
    case Function::Atanh:
    case Function::Tanh:
    case Function::Erf:
    case Function::Floor:
    case Function::Ceil:
    case Function::Round:
    case Function::Trunc: return true;
    default: return false;
  }
}

// Of two that are added: they agree, or one of them is neither.
std::optional<int> together(std::optional<int> a, std::optional<int> b) {
  if (!a || !b || (*a * *b < 0)) return std::nullopt;
  return *a != 0 ? a : b;
}

class Directions {
 public:
  Directions(const std::string& element, ProofState& state) : element_(element), state_(state) {}

  std::optional<int> of(const NormalForm& form) {
    if (const auto step = comparison_with_number(form)) return across(form, *step);
    std::optional<int> all = 0;
    for (const Summand& term : form) all = together(all, of(term));
    return all;
  }

 private:
  bool depends(const Factor& f) const {
    if (f.kind == FactorKind::Read) return key(f, false) == element_;
    const auto any = [&](const NormalForm& form) {
      return std::any_of(form.begin(), form.end(), [&](const Summand& term) {
        return std::any_of(term.factors.begin(), term.factors.end(), [&](const Factor& g) { return depends(g); });
      });
    };
    return std::any_of(f.args.begin(), f.args.end(), any) ||
           std::any_of(f.branches.begin(), f.branches.end(), [&](const Branch& b) { return any(b.value); });
  }

  std::optional<int> of(const Summand& term) {
    std::map<std::string, std::pair<Factor, int>> powers;
    bool others_are_nonnegative = true;
    for (const Factor& f : term.factors) {
      if (depends(f))
        powers.try_emplace(key(f), f, 0).first->second.second++;
      else
        others_are_nonnegative = others_are_nonnegative && is_nonnegative(as_form(f), Cond(), state_);
    }
    if (powers.empty()) return 0;
    if (!others_are_nonnegative || !term.binders.empty()) return std::nullopt;
    std::optional<int> all = 0;
    for (const auto& [text, power] : powers) {
      // A product rises where what is multiplied does and is not negative; an odd power alone does anyway.
      const bool is_odd_power = powers.size() == 1 && power.second % 2 == 1;
      if (!is_odd_power && !range_of(power.first, Cond(), state_).is_nonnegative()) return std::nullopt;
      all = together(all, of(power.first));
    }
    if (all && term.coefficient.numerator() < 0) all = -*all;
    return all;
  }

  std::optional<int> of(const Factor& f) {
    switch (f.kind) {
      case FactorKind::Read: return f.exponent == 1 ? std::optional(1) : std::nullopt;
      case FactorKind::Reciprocal: return of_inverse(f);
      case FactorKind::Call:
        if (!increases(f.function) || (f.exponent != 1 && f.function != Function::Exp)) return std::nullopt;
        if (const auto inner = of(f.args[0])) return f.exponent < 0 ? -*inner : *inner;
        return std::nullopt;
      case FactorKind::Maximum: {
        std::optional<int> all = 0;
        for (const Branch& b : f.branches) all = together(all, of(b.value));
        return f.exponent == 1 ? all : std::nullopt;
      }
      case FactorKind::Size:
      case FactorKind::Literal:
      case FactorKind::Product:
      case FactorKind::IsLess:
      case FactorKind::IsEqual:
      case FactorKind::Opaque: return std::nullopt;
    }
    return std::nullopt;
  }
  std::optional<int> of_inverse(const Factor& f) {
    const ValueRange range = range_of(f.args[0], Cond(), state_);
    if (f.exponent != -1 || (!range.is_positive() && !range.is_negative())) return std::nullopt;
    const auto inner = of(f.args[0]);
    return inner ? std::optional(-*inner) : std::nullopt;
  }

  // [c x + d < 0], and the number at which that changes.
  struct Step {
    Factor comparison;
    Rational at;
    bool holds_below;
  };
  std::optional<Step> comparison_with_number(const NormalForm& form) const {
    for (const Summand& term : form) {
      for (const Factor& f : term.factors) {
        if (f.kind != FactorKind::IsLess || f.exponent != 1 || !depends(f)) continue;
        NormalForm difference = f.args[0];
        Rational number = 0, slope = 0;
        for (const Summand& part : difference) {
          const bool is_element = part.factors.size() == 1 && part.factors[0].kind == FactorKind::Read &&
                                  part.factors[0].exponent == 1 && key(part.factors[0], false) == element_;
          if (!part.binders.empty() || !part.guard.is_true() || !(part.factors.empty() || is_element))
            return std::nullopt;
          (is_element ? slope : number) = part.coefficient;
        }
        if (slope.is_zero()) return std::nullopt;
        return Step{f, -number * slope.inverse(), slope.numerator() > 0};
      }
    }
    return std::nullopt;
  }

  // Both parts go one way, and so does the step between them.
  std::optional<int> across(const NormalForm& form, const Step& step) {
    const std::string text = key(step.comparison);
    NormalForm where_false, jump;  // the form is where_false + [comparison] jump
    for (Summand term : form) {
      const auto it =
          std::find_if(term.factors.begin(), term.factors.end(), [&](const Factor& f) { return key(f) == text; });
      if (it == term.factors.end()) {
        where_false.push_back(std::move(term));
      } else {
        term.factors.erase(it);
        jump.push_back(std::move(term));
      }
    }
    const NormalForm where_true = with_like_terms_merged(add(where_false, jump, state_));
    const auto both = together(of(where_false), of(where_true));
    if (!both) return std::nullopt;
    NormalForm at = one();
    at[0].coefficient = step.at;
    if (step.at.is_zero()) at.clear();
    NormalForm upward = with_element(jump, element_, at, Cond(), state_);
    if (step.holds_below) upward = negated(std::move(upward));
    if (as_number(upward) == Rational(0)) return both;
    const bool is_up = is_nonnegative(upward, Cond(), state_),
               is_down = is_nonnegative(negated(upward), Cond(), state_);
    if (!is_up && !is_down) return std::nullopt;
    return together(both, is_up ? 1 : -1);
  }

  const std::string& element_;
  ProofState& state_;
};

bool holds_any(const std::set<AtomId>& symbols, const std::vector<AtomId>& binders) {
  return std::any_of(binders.begin(), binders.end(), [&](AtomId b) { return symbols.count(b) > 0; });
}

// False where something other than one element depends on the binders.
bool find_element(const NormalForm& form, const std::vector<AtomId>& binders, std::optional<Factor>& element) {
  for (const Summand& term : form) {
    std::set<AtomId> in_guard;
    collect_symbols(term.guard, in_guard);
    if (holds_any(in_guard, binders)) return false;
    for (const Factor& f : term.factors) {
      std::set<AtomId> symbols;
      collect_symbols(f, symbols);
      if (!holds_any(symbols, binders)) continue;
      if (f.kind == FactorKind::Read) {
        if (f.exponent < 1 || (element && key(*element, false) != key(f, false))) return false;
        element = f;
        continue;
      }
      if (!f.subscripts.empty()) return false;
      for (const NormalForm& a : f.args)
        if (!find_element(a, binders, element)) return false;
      for (const Branch& b : f.branches) {
        std::set<AtomId> in_branch;
        collect_symbols(b.guard, in_branch);
        if (holds_any(in_branch, binders) || !find_element(b.value, binders, element)) return false;
      }
    }
  }
  return true;
}

}  // namespace

std::optional<int> direction_of(const NormalForm& form, const std::string& element, ProofState& state) {
  const DemandsSoFar demanded(state);
  return Directions(element, state).of(form);
}

namespace {

bool holds_read(const Factor& f);
bool holds_read(const NormalForm& form) {
  return std::any_of(form.begin(), form.end(), [](const Summand& term) {
    return std::any_of(term.factors.begin(), term.factors.end(), [](const Factor& f) { return holds_read(f); });
  });
}
bool holds_read(const Factor& f) {
  return f.kind == FactorKind::Read ||
         std::any_of(f.args.begin(), f.args.end(), [](const NormalForm& a) { return holds_read(a); }) ||
         std::any_of(f.branches.begin(), f.branches.end(), [](const Branch& b) { return holds_read(b.value); });
}

// Whether elements are multiplied by what holds none and added alone.
bool is_linear(const NormalForm& form) {
  return std::all_of(form.begin(), form.end(), [](const Summand& term) {
    return std::count_if(term.factors.begin(), term.factors.end(), [](const Factor& f) { return holds_read(f); }) < 2 &&
           std::all_of(term.factors.begin(), term.factors.end(),
                       [](const Factor& f) { return f.kind == FactorKind::Read || !holds_read(f); });
  });
}

bool is_only_element(const NormalForm& form, std::optional<Factor>& element) {
  return std::all_of(form.begin(), form.end(), [&](const Summand& term) {
    return term.binders.empty() && std::all_of(term.factors.begin(), term.factors.end(), [&](const Factor& f) {
             if (f.kind == FactorKind::Read) {
               if (f.exponent < 1 || (element && key(*element, false) != key(f, false))) return false;
               element = f;
               return true;
             }
             return std::all_of(f.args.begin(), f.args.end(),
                                [&](const NormalForm& a) { return is_only_element(a, element); }) &&
                    std::all_of(f.branches.begin(), f.branches.end(), [&](const Branch& b) {
                      return b.binders.empty() && is_only_element(b.value, element);
                    });
           });
  });
}

}  // namespace

std::optional<Factor> sole_element(const Branch& branch) {
  std::optional<Factor> element;
  if (branch.binders.empty() || !find_element(branch.value, branch.binders, element) || !element) return std::nullopt;
  element->exponent = 1;
  return is_linear(branch.value) ? std::nullopt : element;
}

std::optional<Factor> sole_element(const NormalForm& form) {
  std::optional<Factor> element;
  if (!is_only_element(form, element) || !element || is_linear(form)) return std::nullopt;
  element->exponent = 1;
  return element;
}

}  // namespace gopt::verifier
