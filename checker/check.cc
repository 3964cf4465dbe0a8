// From the outputs down: each step is looked at when one that rests on it is.
#include <algorithm>
#include <numeric>

#include "bijection.h"
#include "evaluate.h"
#include "expand.h"
#include "gopt/proof_check.h"
#include "smt.h"

namespace gopt::checker {
namespace {

constexpr int kSamples = 6;

bool is_comparison(const Condition& c) { return c.kind == Condition::Kind::AtLeastZero; }

// What the context says is 0.
std::vector<Poly> equations_of(const Condition& context) {
  std::set<std::string> seen;
  std::vector<Poly> equations;
  for (const Condition& c : context.conjuncts()) {
    if (!is_comparison(c)) continue;
    if (seen.count((Poly(0) - c.poly).text())) equations.push_back(c.poly);
    seen.insert(c.poly.text());
  }
  return equations;
}

// Whether the goal compares what is 0, or a number, where the context's equations hold.
bool follows_from_equations(const Condition& context, const Condition& goal) {
  if (!is_comparison(goal)) return false;
  Poly rest = goal.poly;
  for (const Poly& equation : equations_of(context)) {
    if (is_multiple(goal.poly, equation)) return true;
    rest = reduced(rest, equation);
  }
  const auto number = rest.constant();
  return number && *number >= 0;
}

struct Implication {
  std::string what;
  Condition context, goal;
  std::set<std::string> hypotheses;
};
struct Cancellation {
  std::string what;
  Condition context;
  Counts counts;
  std::set<std::string> hypotheses;
};
struct Member {
  size_t term = 0;
  PolySubstitution change;
};
// Sums over one range, and what is summed.
struct LoggedSum {
  Condition guard;
  Form integrand;
  std::vector<Member> members;
};
struct Equality {
  Condition context;
  Form left, right, terms;
  enum class Way { ByClasses, ByCases, Rearranged, EitherWay, BySign, Inside, Pointwise } way = Way::ByClasses;
  Condition guard;                                              // EitherWay
  Form difference, where_positive, where_zero, where_negative;  // BySign
  std::vector<std::vector<Member>> classes;
  std::vector<LoggedSum> sums;  // Inside
  std::set<std::string> hypotheses;
  enum class State { Open, Busy, Accepted } state = State::Open;
};

std::set<std::string> hypotheses_of(const Condition& context) {
  std::set<std::string> texts;
  for (const Condition& c : context.conjuncts()) texts.insert(c.text());
  texts.erase("true");
  return texts;
}
bool includes(const std::set<std::string>& all, const std::set<std::string>& some) {
  return all.count("false") > 0 || std::includes(all.begin(), all.end(), some.begin(), some.end());
}

std::string key_of(const Counts& counts) {
  std::vector<std::string> parts;
  for (const auto& [c, condition] : counts) parts.push_back(std::to_string(c) + " " + condition.text());
  std::sort(parts.begin(), parts.end());
  std::string key;
  for (const std::string& p : parts) key += p + ";";
  return key;
}

class LogChecker {
 public:
  LogReport run(const std::vector<Sexpr>& lines) {
    size_t outputs = 0;
    for (const Sexpr& line : lines) read(line);
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
  // ---- reading ----

  void read(const Sexpr& line) {
    const std::string& head = line.head();
    if (head == "rule") {
      report_.rule = line.at(1).word;
    } else if (head == "implies") {
      Implication i{line.at(1).word, Condition::parse(line.at(2)), Condition::parse(line.at(3)), {}};
      i.hypotheses = hypotheses_of(i.context);
      implications_[i.goal.text()].push_back(std::move(i));
    } else if (head == "cancels") {
      Cancellation c{line.at(1).word, Condition::parse(line.at(2)), {}, {}};
      for (size_t i = 3; i < line.size(); i++)
        c.counts.push_back({line.at(i).at(0).integer(), Condition::parse(line.at(i).at(1))});
      c.hypotheses = hypotheses_of(c.context);
      cancellations_[key_of(c.counts)].push_back(std::move(c));
    } else if (head == "equal" || head == "cases" || head == "rearranged" || head == "either" || head == "signs" ||
               head == "inside" || head == "pointwise") {
      read_equality(line);
    } else if (head == "boolean") {
      booleans_.insert(static_cast<int>(line.at(1).integer()));
    } else if (head != "output" && head != "empty" && head != "required" && head != "proof" && head != "case") {
      throw Fault("'" + head + "' is no step");
    }
  }

  void read_equality(const Sexpr& line) {
    Equality e;
    e.context = Condition::parse(line.at(1));
    e.left = parse_form(line.at(2));
    e.right = parse_form(line.at(3));
    e.terms = parse_form(line.at(4));
    const std::string& head = line.head();
    e.way = head == "equal"        ? Equality::Way::ByClasses
            : head == "cases"      ? Equality::Way::ByCases
            : head == "pointwise"  ? Equality::Way::Pointwise
            : head == "rearranged" ? Equality::Way::Rearranged
            : head == "signs"      ? Equality::Way::BySign
            : head == "inside"     ? Equality::Way::Inside
                                   : Equality::Way::EitherWay;
    if (head == "either") e.guard = Condition::parse(line.at(5));
    if (head == "signs") {
      e.difference = parse_form(line.at(5));
      e.where_positive = parse_form(line.at(6));
      e.where_zero = parse_form(line.at(7));
      e.where_negative = parse_form(line.at(8));
    }
    for (size_t c = 5; c < line.size() && head == "equal"; c++) e.classes.push_back(parse_class(line.at(c)));
    for (size_t c = 5; c < line.size() && head == "inside"; c++)
      e.sums.push_back(
          {Condition::parse(line.at(c).at(1)), parse_form(line.at(c).at(2)), parse_class(line.at(c).at(3))});
    e.hypotheses = hypotheses_of(e.context);
    equalities_[equality_key(e.left, e.right)].push_back(std::move(e));
  }
  static std::vector<Member> parse_class(const Sexpr& text) {
    std::vector<Member> members;
    for (size_t m = 1; m < text.size(); m++) {
      Member member{static_cast<size_t>(text.at(m).at(0).integer()), {}};
      for (size_t k = 1; k < text.at(m).size(); k++) {
        std::set<std::string> binder;
        collect_symbols(Poly::parse(text.at(m).at(k).at(0)), binder);
        if (binder.size() != 1) throw Fault("a change of what is no binder");
        member.change[*binder.begin()] = Poly::parse(text.at(m).at(k).at(1));
      }
      members.push_back(std::move(member));
    }
    return members;
  }
  static std::string equality_key(const Form& left, const Form& right) {
    return text_of(left) + " = " + text_of(right);
  }

  // ---- steps ----

  void check_output(const Sexpr& line) {
    const Condition context = Condition::parse(line.at(2));
    const Expression left = Expression::parse(line.at(3)), right = Expression::parse(line.at(5));
    const Form left_form = parse_form(line.at(4)), right_form = parse_form(line.at(6));
    check_form(context, left, left_form, "the left side's normal form");
    check_form(context, right, right_form, "the right side's normal form");
    if (!are_equal(context, left_form, right_form)) throw Fault("no step shows that the two normal forms are equal");
    must_evaluate_alike(context, left, right, "the two sides");
  }

  // By algebra where the form is the expression multiplied out, but for terms whose guards cannot hold.
  void check_form(const Condition& context, const Expression& e, const Form& form, const std::string& what) {
    if (is_expansion(context, e, form))
      report_.by_algebra++;
    else
      must_evaluate_alike(context, e, form, what);
  }
  bool is_expansion(const Condition& context, const Expression& e, const Form& form) {
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
             return t->binders.empty() &&
                    implied(hypotheses_of(conjunction(context, t->guard)), {Condition::Kind::False, {}, {}});
           });
  }

  void check_required(const Sexpr& line) {
    const Condition context = Condition::parse(line.at(2)), goal = Condition::parse(line.at(3));
    if (!implied_by_cases(context, goal, 0)) throw Fault("nothing shows that " + goal.text() + " follows");
    report_.by_algebra++;
  }
  // An output without positions.
  void check_empty(const Sexpr& line) {
    if (!implied(hypotheses_of(Condition::parse(line.at(2))), {Condition::Kind::False, {}, {}}))
      throw Fault("nothing shows that there is no position");
    report_.by_algebra++;
  }

  // Where the context says "or", each of its parts may give the goal in its own way.
  bool implied_by_cases(const Condition& context, const Condition& goal, int depth) {
    constexpr int kMaxDepth = 4;
    if (implied(hypotheses_of(context), goal) || follows_from_equations(context, goal)) return true;
    if (goal.kind == Condition::Kind::And)
      return std::all_of(goal.parts.begin(), goal.parts.end(),
                         [&](const Condition& part) { return implied_by_cases(context, part, depth); });
    if (depth == kMaxDepth) return false;
    std::vector<Condition> parts = context.conjuncts();
    const auto choice =
        std::find_if(parts.begin(), parts.end(), [](const Condition& c) { return c.kind == Condition::Kind::Or; });
    if (choice == parts.end()) return false;
    const std::vector<Condition> cases = choice->parts;
    parts.erase(choice);
    const Condition others{Condition::Kind::And, {}, parts};
    return std::all_of(cases.begin(), cases.end(), [&](const Condition& own) {
      return implied_by_cases(conjunction(others, own), goal, depth + 1);
    });
  }

  bool implied(const std::set<std::string>& hypotheses, const Condition& goal) {
    const std::string text = goal.text();
    if (text == "true" || hypotheses.count(text) || hypotheses.count("false")) return true;
    for (const Implication& i : implications_[text]) {
      if (!includes(hypotheses, i.hypotheses)) continue;
      use(i);
      return true;
    }
    if (goal.kind != Condition::Kind::And) return false;
    return std::all_of(goal.parts.begin(), goal.parts.end(),
                       [&](const Condition& part) { return implied(hypotheses, part); });
  }

  // By reflexivity or by a step of the log; a step may not rest on itself.
  bool are_equal(const Condition& context, const Form& left, const Form& right) {
    if (text_of(left) == text_of(right)) return true;
    const std::set<std::string> hypotheses = hypotheses_of(context);
    for (Equality& e : equalities_[equality_key(left, right)]) {
      if (!includes(hypotheses, e.hypotheses) || e.state == Equality::State::Busy) continue;
      if (e.state == Equality::State::Accepted) return true;
      e.state = Equality::State::Busy;
      check_equality(e);
      e.state = Equality::State::Accepted;
      return true;
    }
    return false;
  }

  void check_equality(const Equality& e) {
    Form difference = e.left;
    for (LogTerm term : e.right) {
      term.numerator = -term.numerator;
      difference.push_back(std::move(term));
    }
    if (e.way == Equality::Way::Rearranged) {
      // Perhaps without denominators, so that the form itself need not be the difference.
      must_evaluate_alike(e.context, difference, Form{}, "what two forms differ by", kWhereNothingIsDividedByZero);
      if (!are_equal(e.context, e.terms, {})) throw Fault("nothing shows that a rearranged sum is 0");
      return;
    }
    if (text_of(difference) == text_of(e.terms))
      report_.by_algebra++;
    else
      must_evaluate_alike(e.context, difference, e.terms, "what two forms differ by");
    if (e.way == Equality::Way::ByCases) return check_cases(e);
    // What bounds functions have is not looked at: the sum is evaluated, and no solver is asked.
    if (e.way == Equality::Way::Pointwise)
      return must_evaluate_alike(e.context, e.terms, Form{}, "a sum by bounds of functions");
    if (e.way == Equality::Way::BySign) return check_signs(e);
    if (e.way == Equality::Way::Inside) return check_sums(e);
    if (e.way == Equality::Way::EitherWay) {
      for (const Condition& guard : {e.guard, negation(e.guard)})
        if (!are_equal(conjunction(e.context, guard), e.terms, {}))
          throw Fault("nothing shows that a sum is 0 in both cases of a guard");
      report_.by_algebra++;
      return;
    }
    std::vector<bool> seen(e.terms.size(), false);
    for (const std::vector<Member>& members : e.classes) {
      note_members(members, seen);
      check_class(e, members);
    }
    if (std::find(seen.begin(), seen.end(), false) != seen.end()) throw Fault("a term is left out of all classes");
  }
  static void note_members(const std::vector<Member>& members, std::vector<bool>& seen) {
    for (const Member& m : members) {
      if (m.term >= seen.size() || seen[m.term]) throw Fault("a term is in no class or in two");
      seen[m.term] = true;
    }
  }

  // Sums over one range are 0 together where what is summed is, at every value of the binders.
  void check_sums(const Equality& e) {
    std::vector<bool> seen(e.terms.size(), false);
    for (const LoggedSum& sum : e.sums) {
      note_members(sum.members, seen);
      Form integrand;
      for (const Member& m : sum.members) {
        const LogTerm &first = e.terms[sum.members[0].term], &term = e.terms[m.term];
        if (!is_bijection(term.binders, first.binders, m.change)) throw Fault("a change of binders is no bijection");
        LogTerm changed = substitute(term, m.change);
        if (!term.binders.empty()) {
          if (changed.guard.text() != sum.guard.text()) throw Fault("sums that are joined have unlike ranges");
          changed.guard = {};
        }
        changed.binders.clear();
        integrand.push_back(std::move(changed));
      }
      if (text_of(integrand) != text_of(sum.integrand)) throw Fault("joined sums are not of what the step says");
      const bool has_binders = !sum.members.empty() && !e.terms[sum.members[0].term].binders.empty();
      if (!are_equal(has_binders ? conjunction(e.context, sum.guard) : e.context, sum.integrand, {}))
        throw Fault("nothing shows that joined sums are 0");
      report_.by_algebra++;
    }
    if (std::find(seen.begin(), seen.end(), false) != seen.end()) throw Fault("a term is left out of all sums");
  }

  void check_class(const Equality& e, const std::vector<Member>& members) {
    if (members.empty()) return;
    const LogTerm& first = e.terms[members[0].term];
    int64_t common = 1;
    for (const Member& m : members) common = std::lcm(common, e.terms[m.term].denominator);
    Counts counts;
    for (const Member& m : members) {
      const LogTerm& term = e.terms[m.term];
      if (!is_bijection(term.binders, first.binders, m.change)) throw Fault("a change of binders is no bijection");
      const LogTerm changed = substitute(term, m.change);
      check_factors(first, changed, conjunction(e.context, changed.guard));
      counts.push_back({term.numerator * (common / term.denominator), changed.guard});
    }
    const std::set<std::string> hypotheses = hypotheses_of(e.context);
    for (const Cancellation& c : cancellations_[key_of(counts)]) {
      if (!includes(hypotheses, c.hypotheses)) continue;
      use(c);
      report_.by_algebra++;
      return;
    }
    throw Fault("nothing shows that the terms of a class sum to 0");
  }

  void check_factors(const LogTerm& first, const LogTerm& changed, const Condition& context) {
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
      auto it = std::find_if(others.begin(), others.end(),
                             [&](const LogFactor* o) { return equal_factors(*f, *o, context); });
      if (it == others.end())
        it = std::find_if(others.begin(), others.end(),
                          [&](const LogFactor* o) { return is_alike(*f, *o) && evaluate_alike(context, *f, *o); });
      if (it == others.end()) throw Fault("two terms of a class have unlike factors: " + text_of(*f).substr(0, 200));
      others.erase(it);
    }
  }

  static bool is_alike(const LogFactor& a, const LogFactor& b) {
    return a.kind == b.kind && a.exponent == b.exponent && a.number == b.number && a.name == b.name &&
           a.literal == b.literal && a.subscripts.size() == b.subscripts.size() && a.args.size() == b.args.size();
  }

  // Indexes are equal by arithmetic or by an obligation, arguments by a step.
  bool equal_factors(const LogFactor& a, const LogFactor& b, const Condition& context) {
    if (!is_alike(a, b) || !a.branches.empty()) return false;
    const std::set<std::string> hypotheses = hypotheses_of(context);
    for (size_t i = 0; i < a.subscripts.size(); i++) {
      const Poly difference = a.subscripts[i] - b.subscripts[i];
      const Condition both{
          Condition::Kind::And,
          {},
          {{Condition::Kind::AtLeastZero, difference, {}}, {Condition::Kind::AtLeastZero, Poly(0) - difference, {}}}};
      if (!implied(hypotheses, both)) return false;
    }
    for (size_t i = 0; i < a.args.size(); i++)
      if (!are_equal(context, a.args[i], b.args[i])) return false;
    return true;
  }

  void check_cases(const Equality& e) {
    must_evaluate_alike(e.context, e.terms, Form{}, "a sum of cases");
    report_.obligations.push_back({"cases", smt_of_zero(e.context, e.terms)});
  }

  void check_signs(const Equality& e) {
    const SignedForm by_sign{e.difference, e.where_positive, e.where_zero, e.where_negative};
    must_evaluate_alike(e.context, e.terms, by_sign, "a sum by the sign of a difference");
    for (const Form* form : {&e.where_positive, &e.where_zero, &e.where_negative})
      if (!are_equal(e.context, *form, {})) throw Fault("nothing shows that a sum is 0 for all signs of a difference");
  }

  // ---- obligations ----

  // A question that a step rests on; before it is left to a solver, small numbers may refute it.
  void use(const Implication& i) {
    if (!used_.insert(&i).second) return;
    try_to_refute(i.context, [&](const Values& values, uint64_t seed) { return holds(i.goal, values, seed); }, i.goal,
                  {});
    report_.obligations.push_back({i.what, smt_of_implication(i.context, i.goal)});
  }
  void use(const Cancellation& c) {
    if (!used_.insert(&c).second) return;
    auto is_zero = [&](const Values& values, uint64_t seed) {
      int64_t sum = 0;
      for (const auto& [coefficient, condition] : c.counts) sum += holds(condition, values, seed) ? coefficient : 0;
      return sum == 0;
    };
    // Random binders rarely meet a guard; each guard in turn is assumed.
    for (const auto& [coefficient, condition] : c.counts)
      try_to_refute(conjunction(c.context, condition), is_zero, {}, c.counts);
    report_.obligations.push_back({c.what, smt_of_cancellation(c.context, c.counts)});
  }

  template <class F>
  void try_to_refute(const Condition& context, const F& claim, const Condition& goal, const Counts& counts) {
    std::set<std::string> symbols;
    collect_symbols(context, symbols);
    collect_symbols(goal, symbols);
    for (const auto& [coefficient, condition] : counts) collect_symbols(condition, symbols);
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

  // ---- evaluation ----

  // Both sides divide by what a sum was multiplied by to be without denominators: where it is 0 nothing is claimed.
  static constexpr bool kWhereNothingIsDividedByZero = true;

  template <class A, class B>
  void must_evaluate_alike(const Condition& context, const A& a, const B& b, const std::string& what,
                           bool but_for_zero_divisors = false) {
    if (!evaluate_alike(context, a, b, but_for_zero_divisors))
      throw Fault(what + ": not the same at small sizes, or never to be evaluated");
  }

  static bool exact(const SignedForm&) { return false; }  // signs are those of real numbers
  static void symbols_of(const SignedForm& s, std::set<std::string>& out) {
    for (const Form* form : {&s.difference, &s.where_positive, &s.where_zero, &s.where_negative})
      collect_symbols(*form, out);
  }
  static bool is_total(const SignedForm&) { return true; }
  static bool is_rational_factor(const LogFactor& f) { return is_rational(Form{LogTerm{1, 1, {}, {}, {f}}}); }
  static bool exact(const Expression& e) { return is_rational(e); }
  static bool exact(const Form& form) { return is_rational(form); }
  static bool exact(const LogFactor& f) { return is_rational_factor(f); }
  static void symbols_of(const Expression& e, std::set<std::string>& out) { collect_symbols(e, out); }
  static void symbols_of(const Form& form, std::set<std::string>& out) { collect_symbols(form, out); }
  static void symbols_of(const LogFactor& f, std::set<std::string>& out) {
    collect_symbols(Form{LogTerm{1, 1, {}, {}, {f}}}, out);
  }
  // Where the first has no value nothing is claimed; where it has one the second must have it.
  static bool is_total(const Expression&) { return false; }
  static bool is_total(const Form&) { return true; }
  static bool is_total(const LogFactor&) { return true; }

  template <class A, class B>
  bool evaluate_alike(const Condition& context, const A& a, const B& b, bool but_for_zero_divisors = false) {
    std::set<std::string> symbols;
    collect_symbols(context, symbols);
    symbols_of(a, symbols);
    symbols_of(b, symbols);
    EvaluationInputs inputs;
    inputs.exact = exact(a) && exact(b);
    inputs.booleans = &booleans_;
    inputs.zero_has_inverse = !but_for_zero_divisors;
    int seen = 0;
    for (int attempt = 0; attempt < 4 * kSamples && seen < kSamples; attempt++) {
      inputs.seed = random_();
      inputs.positive = attempt % 2 == 1;
      Values values;
      if (!draw_assignment(symbols, context, random_, values, inputs.seed)) continue;
      const Values drawn = values;
      try {
        const auto x = evaluate(a, values, inputs);
        if (!x) continue;
        values = drawn;
        const auto y = evaluate(b, values, inputs);
        if (!y && is_total(b)) continue;
        if (!y || !agree(*x, *y)) return false;
        seen++;
      } catch (const TooLarge&) {
        continue;
      }
    }
    if (seen > 0) report_.by_evaluation++;
    return seen > 0;
  }

  LogReport report_;
  std::mt19937_64 random_{20260101};
  std::map<std::string, std::vector<Implication>> implications_;
  std::map<std::string, std::vector<Cancellation>> cancellations_;
  std::map<std::string, std::vector<Equality>> equalities_;
  std::set<const void*> used_;
  std::set<int> booleans_;  // inputs of truth values
};

}  // namespace
}  // namespace gopt::checker

namespace gopt {

Result<LogReport> check_proof_log(std::string_view text) {
  try {
    return checker::LogChecker().run(checker::parse_sexprs(text));
  } catch (const checker::Fault& fault) {
    return Error{std::string("this is no log of a proof: ") + fault.what()};
  }
}

}  // namespace gopt
