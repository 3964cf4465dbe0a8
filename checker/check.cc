// From the outputs down: each step is looked at when one that rests on it is.
#include <algorithm>

#include "equality.h"
#include "expand.h"
#include "gopt/proof_check.h"

namespace gopt::checker {
namespace {

const Condition kNever{Condition::Kind::False, {}, {}};

class LogChecker {
 public:
  explicit LogChecker(const ProofSteps& steps)
      : numbers_(steps.booleans),
        entailment_(steps, numbers_, report_),
        equality_(steps, entailment_, numbers_, report_) {
    report_.rule = steps.rule;
  }

  LogReport run(const std::vector<Sexpr>& lines) {
    size_t outputs = 0;
    for (const Sexpr& line : lines) {
      const std::string& head = line.head();
      if (head == "output" || head == "empty") outputs++;
      try {
        if (head == "output") check_output(line);
        if (head == "empty") check_empty(line);
        if (head == "required") check_required(line);
      } catch (const Fault& fault) {
        report_.faults.push_back(head + " " + line.at(1).word + ": " + fault.what());
      }
    }
    if (outputs == 0) report_.faults.push_back("the log proves no output");
    return std::move(report_);
  }

 private:
  void check_output(const Sexpr& line);
  void check_form(const Condition& context, const Expression& e, const Form& form, const std::string& what);
  bool is_expansion(const Condition& context, const Expression& e, const Form& form);
  void check_required(const Sexpr& line);
  void check_empty(const Sexpr& line);

  LogReport report_;
  SmallNumbers numbers_;
  Entailment entailment_;
  EqualityChecker equality_;
};

void LogChecker::check_output(const Sexpr& line) {
  const Condition context = Condition::parse(line.at(2));
  const Expression left = Expression::parse(line.at(3)), right = Expression::parse(line.at(5));
  const Form left_form = parse_form(line.at(4)), right_form = parse_form(line.at(6));
  check_form(context, left, left_form, "the left side's normal form");
  check_form(context, right, right_form, "the right side's normal form");
  if (!equality_.are_equal(context, left_form, right_form))
    throw Fault("no step shows that the two normal forms are equal");
  equality_.must_evaluate_alike(context, &left, &right, "the two sides");
}

// By algebra where the form is the expression multiplied out, but for terms whose guards cannot hold.
void LogChecker::check_form(const Condition& context, const Expression& e, const Form& form, const std::string& what) {
  if (is_expansion(context, e, form))
    report_.by_algebra++;
  else
    equality_.must_evaluate_alike(context, &e, &form, what);
}

bool LogChecker::is_expansion(const Condition& context, const Expression& e, const Form& form) {
  const auto expanded = expand(e);
  if (!expanded) return false;
  std::multiset<std::string> open;
  for (const LogTerm& t : form) open.insert(canonical_text(t));
  std::vector<const LogTerm*> dropped;
  for (const LogTerm& t : *expanded) {
    auto it = open.find(canonical_text(t));
    if (it == open.end())
      dropped.push_back(&t);
    else
      open.erase(it);
  }
  return open.empty() && std::all_of(dropped.begin(), dropped.end(), [&](const LogTerm* t) {
           return t->binders.empty() && entailment_.implied(hypotheses_of(conjunction(context, t->guard)), kNever);
         });
}

void LogChecker::check_required(const Sexpr& line) {
  const Condition context = Condition::parse(line.at(2)), goal = Condition::parse(line.at(3));
  if (!entailment_.implied_by_cases(context, goal)) throw Fault("nothing shows that " + goal.text() + " follows");
  report_.by_algebra++;
}

// An output without positions.
void LogChecker::check_empty(const Sexpr& line) {
  if (!entailment_.implied(hypotheses_of(Condition::parse(line.at(2))), kNever))
    throw Fault("nothing shows that there is no position");
  report_.by_algebra++;
}

}  // namespace
}  // namespace gopt::checker

namespace gopt {

Result<LogReport> check_proof_log(std::string_view text) {
  try {
    const std::vector<checker::Sexpr> lines = checker::parse_sexprs(text);
    const checker::ProofSteps steps = checker::read_proof_steps(lines);
    return checker::LogChecker(steps).run(lines);
  } catch (const checker::Fault& fault) {
    return Error{std::string("this is no log of a proof: ") + fault.what()};
  }
}

}  // namespace gopt
