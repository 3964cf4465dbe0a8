#include "smt_text.h"

#include <algorithm>
#include <vector>

namespace gopt::verifier {
namespace {

std::string number(int64_t value) {
  return value < 0 ? "(- " + std::to_string(value).substr(1) + ")" : std::to_string(value);
}

std::string application(const std::string& function, std::vector<std::string> parts, const std::string& neutral) {
  if (parts.empty()) return neutral;
  if (parts.size() == 1) return parts[0];
  std::string text = "(" + function;
  for (const std::string& part : parts) text += " " + part;
  return text + ")";
}

}  // namespace

std::string smt_symbol(const std::string& name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
  return plain && !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0])) ? name : "|" + name + "|";
}

std::string SmtText::name_of(AtomId id) {
  if (auto it = names_.find(id); it != names_.end()) return it->second;
  const Atom& a = atom(id);
  std::string name = smt_symbol(a.kind == AtomKind::Symbol ? a.name : to_string(Index::from_atom(id)));
  names_[id] = name;
  constants_.insert(name);
  if (a.kind == AtomKind::FloorDiv) {
    const std::string n = (*this)(a.numerator), d = (*this)(a.denominator);
    definitions_.insert("(and (<= (* " + d + " " + name + ") " + n + ") (< " + n + " (* " + d + " (+ " + name +
                        " 1))))");
  }
  return name;
}

std::string SmtText::operator()(const Index& index) {
  std::vector<std::string> terms;
  for (const Index::Term& term : index.terms()) {
    std::vector<std::string> factors;
    for (AtomId id : term.atoms) factors.push_back(name_of(id));
    std::sort(factors.begin(), factors.end());
    if (term.coefficient != 1) factors.insert(factors.begin(), number(term.coefficient));
    terms.push_back(application("*", std::move(factors), "1"));
  }
  std::sort(terms.begin(), terms.end());
  if (index.constant() != 0 || terms.empty()) terms.push_back(number(index.constant()));
  return application("+", std::move(terms), "0");
}

std::string SmtText::operator()(const Cond& cond) {
  switch (cond.kind()) {
    case CondKind::True: return "true";
    case CondKind::False: return "false";
    case CondKind::NonNegative: return "(>= " + (*this)(cond.index()) + " 0)";
    case CondKind::And:
    case CondKind::Or: {
      std::vector<std::string> parts;
      for (const Cond& part : cond.parts()) parts.push_back((*this)(part));
      std::sort(parts.begin(), parts.end());
      return application(cond.kind() == CondKind::And ? "and" : "or", std::move(parts), "true");
    }
  }
  return "";
}

std::string SmtText::declarations() {
  std::string text;
  for (const std::string& name : constants_) text += "(declare-const " + name + " Int)\n";
  for (const std::string& definition : definitions_) text += "(assert " + definition + ")\n";
  return text;
}

}  // namespace gopt::verifier
