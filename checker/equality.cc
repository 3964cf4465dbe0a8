#include "equality.h"

#include <algorithm>
#include <numeric>

#include "bijection.h"

namespace gopt::checker {
namespace {

bool is_alike(const LogFactor& a, const LogFactor& b) {
  return a.kind == b.kind && a.exponent == b.exponent && a.number == b.number && a.name == b.name &&
         a.literal == b.literal && a.subscripts.size() == b.subscripts.size() && a.args.size() == b.args.size();
}

// Each term is in one class, or in one sum.
class Membership {
 public:
  explicit Membership(size_t terms) : seen_(terms, false) {}
  void note(const std::vector<LoggedMember>& members) {
    for (const LoggedMember& m : members) {
      if (m.term >= seen_.size() || seen_[m.term]) throw Fault("a term is in no class or in two");
      seen_[m.term] = true;
    }
  }
  bool is_complete() const { return std::find(seen_.begin(), seen_.end(), false) == seen_.end(); }

 private:
  std::vector<bool> seen_;
};

Form difference_of(const LoggedEquality& e) {
  Form difference = e.left;
  for (LogTerm term : e.right) {
    term.numerator = -term.numerator;
    difference.push_back(std::move(term));
  }
  return difference;
}

// The term with the binders of the first one of its class.
LogTerm changed_to(const LogTerm& first, const LogTerm& term, const PolySubstitution& change) {
  if (!is_bijection(term.binders, first.binders, change)) throw Fault("a change of binders is no bijection");
  return substitute(term, change);
}

const Form kZero;

}  // namespace

bool EqualityChecker::are_equal(const Condition& context, const Form& left, const Form& right) {
  if (text_of(left) == text_of(right)) return true;
  const auto found = steps_.equalities.find(equality_key(left, right));
  if (found == steps_.equalities.end()) return false;
  const Hypotheses hypotheses = hypotheses_of(context);
  for (const LoggedEquality& e : found->second) {
    if (!includes(hypotheses, e.hypotheses)) continue;
    const auto known = states_.find(&e);
    if (known != states_.end() && known->second == State::Busy) continue;
    if (known != states_.end()) return true;
    states_[&e] = State::Busy;
    check(e);
    states_[&e] = State::Accepted;
    return true;
  }
  return false;
}

void EqualityChecker::must_evaluate_alike(const Condition& context, const Evaluable& a, const Evaluable& b,
                                          const std::string& what, WhereZeroDivides zero) {
  if (!evaluate_alike(context, a, b, zero))
    throw Fault(what + ": not the same at small sizes, or never to be evaluated");
}

bool EqualityChecker::evaluate_alike(const Condition& context, const Evaluable& a, const Evaluable& b,
                                     WhereZeroDivides zero) {
  const bool are_alike = numbers_.show_equal(context, a, b, zero);
  if (are_alike) report_.by_evaluation++;
  return are_alike;
}

void EqualityChecker::check(const LoggedEquality& e) {
  const Form difference = difference_of(e);
  if (e.way == LoggedEquality::Way::Rearranged) return check_rearranged(e, difference);
  if (text_of(difference) == text_of(e.terms))
    report_.by_algebra++;
  else
    must_evaluate_alike(e.context, &difference, &e.terms, "what two forms differ by");
  switch (e.way) {
    case LoggedEquality::Way::ByClasses: return check_classes(e);
    case LoggedEquality::Way::ByCases: return check_cases(e);
    case LoggedEquality::Way::EitherWay: return check_either_way(e);
    case LoggedEquality::Way::BySign: return check_signs(e);
    case LoggedEquality::Way::Inside: return check_sums(e);
    case LoggedEquality::Way::Pointwise: return check_pointwise(e);
    case LoggedEquality::Way::Rearranged: return;
  }
}

// Perhaps without denominators, so that the form itself need not be the difference.
void EqualityChecker::check_rearranged(const LoggedEquality& e, const Form& difference) {
  must_evaluate_alike(e.context, &difference, &kZero, "what two forms differ by", WhereZeroDivides::NotClaimed);
  if (!are_equal(e.context, e.terms, {})) throw Fault("nothing shows that a rearranged sum is 0");
}

void EqualityChecker::check_either_way(const LoggedEquality& e) {
  for (const Condition& guard : {e.guard, negation(e.guard)})
    if (!are_equal(conjunction(e.context, guard), e.terms, {}))
      throw Fault("nothing shows that a sum is 0 in both cases of a guard");
  report_.by_algebra++;
}

void EqualityChecker::check_cases(const LoggedEquality& e) {
  must_evaluate_alike(e.context, &e.terms, &kZero, "a sum of cases");
  report_.obligations.push_back({"cases", smt_of_zero(e.context, e.terms)});
}

// What bounds functions have is not looked at: the sum is evaluated, and no solver is asked.
void EqualityChecker::check_pointwise(const LoggedEquality& e) {
  must_evaluate_alike(e.context, &e.terms, &kZero, "a sum by bounds of functions");
}

void EqualityChecker::check_signs(const LoggedEquality& e) {
  const SignedForm by_sign{e.difference, e.where_positive, e.where_zero, e.where_negative};
  must_evaluate_alike(e.context, &e.terms, &by_sign, "a sum by the sign of a difference");
  for (const Form* form : {&e.where_positive, &e.where_zero, &e.where_negative})
    if (!are_equal(e.context, *form, {})) throw Fault("nothing shows that a sum is 0 for all signs of a difference");
}

// Sums over one range are 0 together where what is summed is, at every value of the binders.
void EqualityChecker::check_sums(const LoggedEquality& e) {
  Membership membership(e.terms.size());
  for (const LoggedSum& sum : e.sums) {
    membership.note(sum.members);
    if (text_of(integrand_of(e, sum)) != text_of(sum.integrand))
      throw Fault("joined sums are not of what the step says");
    const bool has_binders = !sum.members.empty() && !e.terms[sum.members[0].term].binders.empty();
    if (!are_equal(has_binders ? conjunction(e.context, sum.guard) : e.context, sum.integrand, {}))
      throw Fault("nothing shows that joined sums are 0");
    report_.by_algebra++;
  }
  if (!membership.is_complete()) throw Fault("a term is left out of all sums");
}

Form EqualityChecker::integrand_of(const LoggedEquality& e, const LoggedSum& sum) const {
  Form integrand;
  for (const LoggedMember& m : sum.members) {
    const LogTerm &first = e.terms[sum.members[0].term], &term = e.terms[m.term];
    LogTerm changed = changed_to(first, term, m.change);
    if (!term.binders.empty()) {
      if (changed.guard.text() != sum.guard.text()) throw Fault("sums that are joined have unlike ranges");
      changed.guard = {};
    }
    changed.binders.clear();
    integrand.push_back(std::move(changed));
  }
  return integrand;
}

void EqualityChecker::check_classes(const LoggedEquality& e) {
  Membership membership(e.terms.size());
  for (const std::vector<LoggedMember>& members : e.classes) {
    membership.note(members);
    check_class(e, members);
  }
  if (!membership.is_complete()) throw Fault("a term is left out of all classes");
}

void EqualityChecker::check_class(const LoggedEquality& e, const std::vector<LoggedMember>& members) {
  if (members.empty()) return;
  const LogTerm& first = e.terms[members[0].term];
  int64_t common = 1;
  for (const LoggedMember& m : members) common = std::lcm(common, e.terms[m.term].denominator);
  Counts counts;
  for (const LoggedMember& m : members) {
    const LogTerm& term = e.terms[m.term];
    const LogTerm changed = changed_to(first, term, m.change);
    check_factors(first, changed, conjunction(e.context, changed.guard));
    counts.push_back({term.numerator * (common / term.denominator), changed.guard});
  }
  if (!entailment_.sum_to_zero(e.context, counts)) throw Fault("nothing shows that the terms of a class sum to 0");
  report_.by_algebra++;
}

void EqualityChecker::check_factors(const LogTerm& first, const LogTerm& changed, const Condition& context) {
  if (first.factors.size() != changed.factors.size()) throw Fault("two terms of a class have unlike factors");
  std::vector<const LogFactor*> open;
  std::vector<const LogFactor*> others;
  for (const LogFactor& f : changed.factors) others.push_back(&f);
  for (const LogFactor& f : first.factors) {
    const std::string text = text_of(f);
    auto it = std::find_if(others.begin(), others.end(), [&](const LogFactor* o) { return text_of(*o) == text; });
    if (it == others.end())
      open.push_back(&f);
    else
      others.erase(it);
  }
  for (const LogFactor* f : open) {
    auto it =
        std::find_if(others.begin(), others.end(), [&](const LogFactor* o) { return equal_factors(*f, *o, context); });
    if (it == others.end())
      it = std::find_if(others.begin(), others.end(),
                        [&](const LogFactor* o) { return is_alike(*f, *o) && evaluate_alike(context, f, o); });
    if (it == others.end()) throw Fault("two terms of a class have unlike factors: " + text_of(*f).substr(0, 200));
    others.erase(it);
  }
}

// Indexes are equal by arithmetic or by an obligation, arguments by a step.
bool EqualityChecker::equal_factors(const LogFactor& a, const LogFactor& b, const Condition& context) {
  if (!is_alike(a, b) || !a.branches.empty()) return false;
  const Hypotheses hypotheses = hypotheses_of(context);
  for (size_t i = 0; i < a.subscripts.size(); i++) {
    const Poly difference = a.subscripts[i] - b.subscripts[i];
    const Condition both{
        Condition::Kind::And,
        {},
        {{Condition::Kind::AtLeastZero, difference, {}}, {Condition::Kind::AtLeastZero, Poly(0) - difference, {}}}};
    if (!entailment_.implied(hypotheses, both)) return false;
  }
  for (size_t i = 0; i < a.args.size(); i++)
    if (!are_equal(context, a.args[i], b.args[i])) return false;
  return true;
}

}  // namespace gopt::checker
