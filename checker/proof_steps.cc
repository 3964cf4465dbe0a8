#include "proof_steps.h"

#include <algorithm>

namespace gopt::checker {

Hypotheses hypotheses_of(const Condition& context) {
  Hypotheses texts;
  for (const Condition& c : context.conjuncts()) texts.insert(c.text());
  texts.erase("true");
  return texts;
}
bool includes(const Hypotheses& all, const Hypotheses& some) {
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

std::string equality_key(const Form& left, const Form& right) { return text_of(left) + " = " + text_of(right); }

namespace {

const std::map<std::string, LoggedEquality::Way>& ways() {
  using Way = LoggedEquality::Way;
  static const std::map<std::string, Way> all{
      {"equal", Way::ByClasses}, {"cases", Way::ByCases}, {"rearranged", Way::Rearranged}, {"either", Way::EitherWay},
      {"signs", Way::BySign},    {"inside", Way::Inside}, {"pointwise", Way::Pointwise},
  };
  return all;
}

Implication implication_of(const Sexpr& line) {
  Implication i{line.at(1).word, Condition::parse(line.at(2)), Condition::parse(line.at(3)), {}};
  i.hypotheses = hypotheses_of(i.context);
  return i;
}

Cancellation cancellation_of(const Sexpr& line) {
  Cancellation c{line.at(1).word, Condition::parse(line.at(2)), {}, {}};
  for (size_t i = 3; i < line.size(); i++)
    c.counts.push_back({line.at(i).at(0).integer(), Condition::parse(line.at(i).at(1))});
  c.hypotheses = hypotheses_of(c.context);
  return c;
}

std::vector<LoggedMember> parse_class(const Sexpr& text) {
  std::vector<LoggedMember> members;
  for (size_t m = 1; m < text.size(); m++) {
    LoggedMember member{static_cast<size_t>(text.at(m).at(0).integer()), {}};
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

LoggedEquality equality_of(const Sexpr& line) {
  LoggedEquality e;
  e.context = Condition::parse(line.at(1));
  e.left = parse_form(line.at(2));
  e.right = parse_form(line.at(3));
  e.terms = parse_form(line.at(4));
  const std::string& head = line.head();
  e.way = ways().at(head);
  if (head == "either") e.guard = Condition::parse(line.at(5));
  if (head == "signs") {
    e.difference = parse_form(line.at(5));
    e.where_positive = parse_form(line.at(6));
    e.where_zero = parse_form(line.at(7));
    e.where_negative = parse_form(line.at(8));
  }
  for (size_t c = 5; c < line.size() && head == "equal"; c++) e.classes.push_back(parse_class(line.at(c)));
  for (size_t c = 5; c < line.size() && head == "inside"; c++)
    e.sums.push_back({Condition::parse(line.at(c).at(1)), parse_form(line.at(c).at(2)), parse_class(line.at(c).at(3))});
  e.hypotheses = hypotheses_of(e.context);
  return e;
}

void read_line(const Sexpr& line, ProofSteps& steps) {
  const std::string& head = line.head();
  if (head == "rule") {
    steps.rule = line.at(1).word;
  } else if (head == "implies") {
    Implication i = implication_of(line);
    steps.implications[i.goal.text()].push_back(std::move(i));
  } else if (head == "cancels") {
    Cancellation c = cancellation_of(line);
    steps.cancellations[key_of(c.counts)].push_back(std::move(c));
  } else if (ways().count(head)) {
    LoggedEquality e = equality_of(line);
    steps.equalities[equality_key(e.left, e.right)].push_back(std::move(e));
  } else if (head == "boolean") {
    steps.booleans.insert(static_cast<int>(line.at(1).integer()));
  } else if (head != "output" && head != "empty" && head != "required" && head != "proof" && head != "case") {
    throw Fault("'" + head + "' is no step");
  }
}

}  // namespace

ProofSteps read_proof_steps(const std::vector<Sexpr>& lines) {
  ProofSteps steps;
  for (const Sexpr& line : lines) read_line(line, steps);
  return steps;
}

}  // namespace gopt::checker
