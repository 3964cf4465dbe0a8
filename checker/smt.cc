#include "smt.h"

namespace gopt::checker {
namespace {

std::string number(int64_t value) {
  return value < 0 ? "(- " + std::to_string(value).substr(1) + ")" : std::to_string(value);
}

class SmtWriter {
 public:
  std::string operator()(const Poly& poly) {
    std::string sum = "(+ 0";
    for (const auto& [monomial, c] : poly.terms()) {
      sum += " (* " + number(c);
      for (const AtomPtr& a : monomial) sum += " " + name_of(*a);
      sum += monomial.empty() ? " 1)" : ")";
    }
    return sum + " 0)";
  }
  std::string operator()(const Condition& c) {
    switch (c.kind) {
      case Condition::Kind::True: return "true";
      case Condition::Kind::False: return "false";
      case Condition::Kind::AtLeastZero: return "(>= " + (*this)(c.poly) + " 0)";
      case Condition::Kind::And:
      case Condition::Kind::Or: {
        const bool all = c.kind == Condition::Kind::And;
        std::string text = all ? "(and true" : "(or false";
        for (const Condition& part : c.parts) text += " " + (*this)(part);
        return text + ")";
      }
    }
    return "";
  }

  // ---- reals ----

  std::string real(const Form& form) {
    std::string sum = "(+ 0.0";
    for (const LogTerm& term : form) sum += " " + real(term);
    return sum + " 0.0)";
  }

  std::string script(const std::string& assertions) const {
    return "(set-logic ALL)\n(set-info :status unsat)\n" + declarations_ + definitions_ + assertions + "(check-sat)\n";
  }

 private:
  std::string fresh(const std::string& key, const char* sort) {
    auto [it, inserted] = names_.try_emplace(key, "");
    if (inserted) {
      it->second = (sort[0] == 'I' ? "i" : "r") + std::to_string(names_.size());
      declarations_ += "(declare-const " + it->second + " " + sort + ") ; " + key.substr(0, 60) + "\n";
    }
    return it->second;
  }
  std::string name_of(const AtomNode& atom) {
    const bool known = names_.count(atom.text) > 0;
    const std::string name = fresh(atom.text, "Int");
    if (!known && atom.kind == AtomNode::Kind::Quotient) {
      const std::string a = (*this)(atom.parts[0]), b = (*this)(atom.parts[1]);
      definitions_ +=
          "(assert (and (<= (* " + b + " " + name + ") " + a + ") (< " + a + " (* " + b + " (+ " + name + " 1)))))\n";
    }
    return name;
  }

  std::string real(const LogTerm& term) {
    std::string product = "(/ " + real_number(term.numerator) + " " + real_number(term.denominator) + ")";
    if (!term.binders.empty()) {
      // A sum is one number, the same for the same text.
      LogTerm bare = term;
      bare.numerator = bare.denominator = 1;
      return "(* " + product + " " + fresh(text_of(Form{bare}), "Real") + ")";
    }
    for (const LogFactor& f : term.factors) product = "(* " + product + " " + real(f) + ")";
    return "(ite " + (*this)(term.guard) + " " + product + " 0.0)";
  }
  std::string real(const LogFactor& f) {
    if (f.exponent == 1 && (f.kind == "less" || f.kind == "equal"))
      return "(ite (" + std::string(f.kind == "less" ? "<" : "=") + " " + real(f.args.at(0)) + " " +
             real(f.args.at(1)) + ") 1.0 0.0)";
    if (f.exponent != 1 || f.kind != "max") return fresh(text_of(f), "Real");
    LogFactor open = f;
    open.branches.clear();
    std::string largest;
    auto include = [&](const std::string& value) {
      largest = largest.empty() ? value : "(ite (> " + value + " " + largest + ") " + value + " " + largest + ")";
    };
    for (const LogBranch& b : f.branches) {
      if (b.binders.empty() && b.guard.text() == "true")
        include(real(b.value));
      else
        open.branches.push_back(b);
    }
    if (!open.branches.empty()) include(fresh(text_of(open), "Real"));
    return largest;
  }
  static std::string real_number(int64_t value) {
    return value < 0 ? "(- " + std::to_string(value).substr(1) + ".0)" : std::to_string(value) + ".0";
  }

  std::map<std::string, std::string> names_;
  std::string declarations_, definitions_;
};

}  // namespace

std::string smt_of_implication(const Condition& context, const Condition& goal) {
  SmtWriter write;
  std::string assertions = "(assert " + write(context) + ")\n";
  assertions += "(assert (not " + write(goal) + "))\n";
  return write.script(assertions);
}

std::string smt_of_cancellation(const Condition& context, const Counts& counts) {
  SmtWriter write;
  std::string assertions = "(assert " + write(context) + ")\n";
  std::string sum = "(+ 0";
  for (const auto& [coefficient, condition] : counts)
    sum += " (ite " + write(condition) + " " + number(coefficient) + " 0)";
  return write.script(assertions + "(assert (not (= 0 " + sum + " 0))))\n");
}

std::string smt_of_zero(const Condition& context, const Form& form) {
  SmtWriter write;
  std::string assertions = "(assert " + write(context) + ")\n";
  assertions += "(assert (not (= 0.0 " + write.real(form) + ")))\n";
  return write.script(assertions);
}

}  // namespace gopt::checker
