#include "sign_cases.h"

#include <algorithm>

#include "normal_form/arithmetic.h"
#include "normal_form/functions.h"
#include "normal_form/maximum.h"
#include "normal_form/rebuild.h"
#include "positivity.h"

namespace gopt::verifier {
namespace {

bool is_plain(const Branch& b) { return b.binders.empty() && b.guard.is_true(); }

NormalForm difference_of(const NormalForm& a, const NormalForm& b, ProofState& state) {
  return with_like_terms_merged(add(a, negated(b), state));
}

// A difference that holds no binder of sums and maxima around it, nor another case.
class DifferenceFinder {
 public:
  DifferenceFinder(ProofState& state, bool inside_alone) : state_(state), depth_(inside_alone ? -1 : 0) {}

  std::optional<NormalForm> find(const NormalForm& form) {
    for (const Summand& term : form) {
      const std::vector<AtomId> outer = bound_;
      bound_.insert(bound_.end(), term.binders.begin(), term.binders.end());
      std::optional<NormalForm> found;
      for (size_t i = 0; i < term.factors.size() && !found; i++) found = find(term.factors[i]);
      bound_ = outer;
      if (found) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<NormalForm> find(const Factor& factor) {
    const bool is_function = factor.kind == FactorKind::Call || factor.kind == FactorKind::Reciprocal;
    depth_ += is_function ? 1 : 0;
    std::optional<NormalForm> inner;
    for (size_t i = 0; i < factor.args.size() && !inner; i++) inner = find(factor.args[i]);
    depth_ -= is_function ? 1 : 0;
    for (size_t i = 0; i < factor.branches.size() && !inner; i++)
      if (is_plain(factor.branches[i])) inner = find(factor.branches[i].value);
    if (inner || depth_ < 0) return inner;
    if ((factor.kind == FactorKind::IsLess || factor.kind == FactorKind::IsEqual) && is_free(factor.args[0]))
      return factor.args[0];
    if (factor.kind != FactorKind::Maximum) return std::nullopt;
    for (size_t i = 0; i < factor.branches.size(); i++) {
      for (size_t j = i + 1; j < factor.branches.size(); j++) {
        if (!is_plain(factor.branches[i]) || !is_plain(factor.branches[j])) continue;
        NormalForm difference = difference_of(factor.branches[i].value, factor.branches[j].value, state_);
        if (!difference.empty() && is_free(difference)) return difference;
      }
    }
    return std::nullopt;
  }

  bool is_free(const NormalForm& form) const {
    std::set<AtomId> symbols;
    collect_symbols(form, symbols);
    return std::none_of(bound_.begin(), bound_.end(), [&](AtomId b) { return symbols.count(b) > 0; });
  }

  ProofState& state_;
  int depth_;  // of functions around it; below 0 where it is in none, but should be
  std::vector<AtomId> bound_;
};

// An element of an input that the form consists of, with what it is where the form is 0.
struct Solved {
  std::string element;
  NormalForm value;
};
std::optional<Solved> solved_for_element(const NormalForm& form) {
  for (size_t i = 0; i < form.size(); i++) {
    const Summand& own = form[i];
    if (own.factors.size() != 1 || own.factors[0].kind != FactorKind::Read || own.factors[0].exponent != 1 ||
        !own.binders.empty() || !own.guard.is_true())
      continue;
    NormalForm rest = form;
    rest.erase(rest.begin() + static_cast<ptrdiff_t>(i));
    for (Summand& term : rest) term.coefficient = term.coefficient * -own.coefficient.inverse();
    const std::string element = key(own.factors[0], false);
    const auto holds_it = [&](const Summand& term) {
      return std::any_of(term.factors.begin(), term.factors.end(), [&](const Factor& f) {
        return f.kind != FactorKind::Size && (f.kind != FactorKind::Read || key(f, false) == element);
      });
    };
    if (std::none_of(rest.begin(), rest.end(), holds_it)) return Solved{element, std::move(rest)};
  }
  return std::nullopt;
}

// The sum where the difference has a sign: -1, 0 or 1.
class Decider {
 public:
  Decider(const NormalForm& difference, int sign, ProofState& state)
      : difference_(difference), sign_(sign), state_(state) {
    if (sign == 0) solved_ = solved_for_element(difference);
  }

  // What is decided may let a function be written in a way in which more is.
  NormalForm decide(NormalForm form, const Cond& context) {
    constexpr int kMaxPasses = 3;
    for (int pass = 0; pass < kMaxPasses; pass++) {
      NormalForm next = (*this)(form, context);
      const bool is_done = key(next) == key(form);
      form = std::move(next);
      if (is_done) break;
    }
    return form;
  }

 private:
  NormalForm operator()(const NormalForm& form, const Cond& context) {
    NormalForm r;
    for (const Summand& term : form) {
      const Cond inner = context && term.guard;
      Summand rest = term;
      rest.factors.clear();
      NormalForm product{rest};
      for (const Factor& factor : term.factors) product = multiply(product, decided(factor, inner), inner, state_);
      r = add(std::move(r), product, state_);
    }
    return with_like_terms_merged(r);
  }

  // The sign of a form that is a multiple of the difference, perhaps with a number of the same sign.
  std::optional<int> sign_of(const NormalForm& given) {
    NormalForm form = with_like_terms_merged(given);
    if (auto sign = sign_of_multiple(form)) return sign;
    const auto number = std::find_if(form.begin(), form.end(), [](const Summand& term) {
      return term.binders.empty() && term.factors.empty() && term.guard.is_true();
    });
    if (number == form.end()) return std::nullopt;
    const int own = number->coefficient.numerator() > 0 ? 1 : -1;
    form.erase(number);
    const auto rest = sign_of_multiple(form);
    return rest && *rest * own >= 0 ? std::optional(own) : std::nullopt;
  }
  std::optional<int> sign_of_multiple(const NormalForm& form) {
    const auto multiple = ratio(difference_, form);
    if (!multiple || multiple->is_zero()) return std::nullopt;
    return multiple->numerator() > 0 ? sign_ : -sign_;
  }

  NormalForm decided(const Factor& factor, const Cond& context) {
    Factor single = factor;
    single.exponent = 1;
    switch (factor.kind) {
      case FactorKind::Read:
        return solved_ && key(factor, false) == solved_->element
                   ? powered(solved_->value, factor.exponent, context, state_)
                   : as_form(factor);
      case FactorKind::Size:
      case FactorKind::Literal:
      case FactorKind::Product:
      case FactorKind::Opaque: return as_form(factor);
      case FactorKind::Reciprocal: return reciprocal((*this)(factor.args[0], context), context, state_);
      case FactorKind::IsLess:
      case FactorKind::IsEqual: return powered(decided_comparison(single, context), factor.exponent, context, state_);
      case FactorKind::Maximum: return powered(decided_maximum(single, context), factor.exponent, context, state_);
      case FactorKind::Call: break;
    }
    std::vector<NormalForm> args;
    for (const NormalForm& a : factor.args) args.push_back((*this)(a, context));
    return powered(apply(factor.function, std::move(args), context, state_), factor.exponent, context, state_);
  }

  NormalForm decided_comparison(const Factor& factor, const Cond& context) {
    if (const auto sign = sign_of(factor.args[0])) {
      const bool holds = factor.kind == FactorKind::IsLess ? *sign < 0 : *sign == 0;
      return holds ? one() : NormalForm{};
    }
    return comparison(factor.kind, (*this)(factor.args[0], context), context, state_);
  }

  NormalForm decided_maximum(const Factor& factor, const Cond& context) {
    std::vector<Branch> kept = factor.branches;
    keep_largest(kept, [&](const NormalForm& a, const NormalForm& b) {
      return sign_of(difference_of(a, b, state_)).value_or(-1) >= 0;
    });
    std::vector<Branch> branches;
    for (Branch b : kept) {
      b.value = (*this)(b.value, context && b.guard);
      add_branch(branches, std::move(b), context, state_);
    }
    keep_largest(branches,
                 [&](const NormalForm& a, const NormalForm& b) { return is_at_least(a, b, context, state_); });
    return maximum_over(std::move(branches), state_);
  }

  // Without branches that another is at least as large as.
  template <class F>
  static void keep_largest(std::vector<Branch>& branches, const F& is_as_large) {
    for (size_t i = 0; i < branches.size();) {
      const bool is_exceeded = std::any_of(branches.begin(), branches.end(), [&](const Branch& other) {
        return &other != &branches[i] && is_plain(other) && is_plain(branches[i]) &&
               is_as_large(other.value, branches[i].value);
      });
      if (is_exceeded)
        branches.erase(branches.begin() + static_cast<ptrdiff_t>(i));
      else
        i++;
    }
  }

  const NormalForm& difference_;
  int sign_;
  ProofState& state_;
  std::optional<Solved> solved_;
};

}  // namespace

std::optional<SignCases> sign_cases(const NormalForm& form, const Cond& context, ProofState& state, bool inside_alone) {
  const auto difference = DifferenceFinder(state, inside_alone).find(form);
  if (!difference) return std::nullopt;
  // What is demanded here was demanded where the form was made.
  const DemandsSoFar demanded(state);
  std::optional<SignCases> cases{{*difference, {}, {}, {}}};
  try {
    cases->where_positive = Decider(cases->difference, 1, state).decide(form, context);
    cases->where_zero = Decider(cases->difference, 0, state).decide(form, context);
    cases->where_negative = Decider(cases->difference, -1, state).decide(form, context);
  } catch (const NotExpressible&) {
    cases.reset();
  }
  return cases;
}

}  // namespace gopt::verifier
