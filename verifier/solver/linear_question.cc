#include "linear_question.h"

#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>

#include "linear_facts.h"
#include "linear_system.h"
#include "normal_form/normal_form.h"

namespace gopt::verifier {
namespace {

constexpr int kMostSystems = 24;  // solved for one question
constexpr size_t kMostProducts = 48;
constexpr int kPoints = 4;

// One question: alternatives of conditions are looked at one by one.
class Question {
 public:
  bool is_infeasible(std::vector<Cond> literals, std::vector<Cond> choices) {
    flatten(choices, literals);
    const bool is_settled = are_infeasible(literals);
    if (is_settled || is_given_up_) return is_settled;
    if (choices.empty()) {
      is_given_up_ = true;  // a point of it is at hand
      return false;
    }
    const auto fewest = std::min_element(choices.begin(), choices.end(), [](const Cond& a, const Cond& b) {
      return a.parts().size() < b.parts().size();
    });
    const Cond choice = *fewest;
    choices.erase(fewest);
    for (const Cond& part : choice.parts()) {
      std::vector<Cond> rest = choices;
      rest.push_back(part);
      if (!is_infeasible(literals, std::move(rest))) return false;
    }
    return true;
  }

  std::vector<Assignment> take_points() { return std::move(points_); }

 private:
  // What a condition states of indexes goes to the literals, its alternatives stay.
  static void flatten(std::vector<Cond>& choices, std::vector<Cond>& literals) {
    std::vector<Cond> alternatives;
    for (size_t i = 0; i < choices.size(); i++) {
      const Cond cond = choices[i];
      if (cond.kind() == CondKind::Or)
        alternatives.push_back(cond);
      else if (cond.kind() == CondKind::And)
        choices.insert(choices.end(), cond.parts().begin(), cond.parts().end());
      else if (!cond.is_true())
        literals.push_back(cond);
    }
    choices = std::move(alternatives);
  }

  bool are_infeasible(const std::vector<Cond>& literals) {
    if (std::any_of(literals.begin(), literals.end(), [](const Cond& c) { return c.is_false(); })) return true;
    if (++systems_ > kMostSystems) {
      is_given_up_ = true;
      return false;
    }
    std::vector<Index> facts;
    for (const Cond& literal : literals) facts.push_back(literal.index());
    std::set<AtomId> met;
    std::set<std::vector<AtomId>> products;
    for (size_t i = 0; i < facts.size(); i++) {
      const Index fact = facts[i];
      for (const Index::Term& term : fact.terms()) {
        if (term.atoms.size() > 1) products.insert(term.atoms);
        for (AtomId id : term.atoms) {
          if (!met.insert(id).second || atom(id).kind != AtomKind::FloorDiv) continue;
          const std::vector<Index> more = division_facts(id, literals);
          facts.insert(facts.end(), more.begin(), more.end());
        }
      }
    }
    const bool is_infeasible = solve(facts);
    if (is_infeasible || products.empty()) return is_infeasible;
    const std::vector<Index> more = product_facts(facts, products, kMostProducts);
    facts.insert(facts.end(), more.begin(), more.end());
    return !more.empty() && solve(facts);
  }

  bool solve(const std::vector<Index>& facts) {
    LinearSystem system(LinearSystem::Numbers::Integers);
    const std::map<std::vector<AtomId>, LinearSystem::Variable> variables = numbered(facts);
    for (const auto& [atoms, variable] : variables)
      if (!is_symbol(atoms)) system.set_derived(variable);
    for (const Index& fact : facts) {
      LinearSystem::Terms terms;
      for (const Index::Term& term : fact.terms()) terms.emplace_back(variables.at(term.atoms), term.coefficient);
      std::sort(terms.begin(), terms.end());
      system.require(terms, Rational(fact.constant()));
    }
    const LinearSystem::Answer answer = system.solve();
    if (answer == LinearSystem::Answer::Infeasible) return true;
    if (answer == LinearSystem::Answer::Unknown) return false;
    points_.clear();
    for (int choice = 0; choice < kPoints; choice++) {
      const auto point = system.integer_point(choice);
      if (!point) continue;
      Assignment assignment;
      for (const auto& [atoms, variable] : variables)
        if (is_symbol(atoms))
          if (const auto it = point->find(variable); it != point->end())
            assignment[static_cast<uint32_t>(atoms[0])] = it->second;
      points_.push_back(std::move(assignment));
    }
    return false;
  }

  static bool is_symbol(const std::vector<AtomId>& atoms) {
    return atoms.size() == 1 && atom(atoms[0]).kind == AtomKind::Symbol;
  }

  // What the facts are made of, numbered by its text: ids depend on what was met before, in other proofs too.
  static std::map<std::vector<AtomId>, LinearSystem::Variable> numbered(const std::vector<Index>& facts) {
    std::map<std::vector<AtomId>, LinearSystem::Variable> variables;
    for (const Index& fact : facts)
      for (const Index::Term& term : fact.terms()) variables.try_emplace(term.atoms, 0);
    std::vector<std::pair<std::string, LinearSystem::Variable*>> by_text;
    for (auto& [atoms, variable] : variables) {
      Index product(1);
      for (AtomId id : atoms) product = product * Index::from_atom(id);
      by_text.emplace_back(to_string(product), &variable);
    }
    std::sort(by_text.begin(), by_text.end());
    for (size_t i = 0; i < by_text.size(); i++) *by_text[i].second = static_cast<LinearSystem::Variable>(i);
    return variables;
  }

  std::vector<Assignment> points_;
  int systems_ = 0;
  bool is_given_up_ = false;
};

}  // namespace

LinearAnswer ask_linear(const Cond& hypothesis, const std::vector<Cond>& alternatives) {
  try {
    for (const Cond& alternative : alternatives) {
      Question question;
      if (!question.is_infeasible({}, {hypothesis, alternative})) return {false, question.take_points()};
    }
  } catch (const std::overflow_error&) {
    return {};
  }
  return {true, {}};
}

std::optional<std::vector<Cond>> where_not_zero(const Cond& hypothesis, const std::vector<GuardedCount>& counts) {
  constexpr size_t kMostConditions = 4;
  const std::vector<Cond> given = conjuncts(hypothesis);
  std::vector<GuardedCount> different;
  int64_t constant = 0;
  for (const GuardedCount& count : counts) {
    Cond rest;
    for (const Cond& part : conjuncts(count.cond))
      if (std::find(given.begin(), given.end(), part) == given.end()) rest = rest && part;
    const auto known = std::find_if(different.begin(), different.end(), [&](const auto& d) { return d.cond == rest; });
    int64_t& sum = rest.is_true()             ? constant
                   : known == different.end() ? different.emplace_back(GuardedCount{0, rest}).coefficient
                                              : known->coefficient;
    if (__builtin_add_overflow(sum, count.coefficient, &sum)) return std::nullopt;
  }
  std::erase_if(different, [](const GuardedCount& count) { return count.coefficient == 0; });
  if (different.size() > kMostConditions) return std::nullopt;
  std::vector<Cond> ways;
  for (size_t holding = 0; holding < size_t{1} << different.size(); holding++) {
    int64_t sum = constant;
    Cond way;
    for (size_t i = 0; i < different.size(); i++) {
      const bool holds = (holding >> i) & 1;
      if (holds && __builtin_add_overflow(sum, different[i].coefficient, &sum)) return std::nullopt;
      way = way && (holds ? different[i].cond : !different[i].cond);
    }
    if (sum != 0) ways.push_back(std::move(way));
  }
  return ways;
}

}  // namespace gopt::verifier
