// The checker's own integer polynomials and conditions. Atoms are named by text: a symbol, a floor division
// "(// a b)", an element of an integer input "(load i a ...)". Equal polynomials have equal texts.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sexpr.h"

namespace gopt::checker {

class Poly;
struct AtomNode {
  enum class Kind { Symbol, Quotient, Load } kind;
  std::string text;
  int input = 0;
  std::vector<Poly> parts;  // Quotient: dividend, divisor; Load: subscripts
};
using AtomPtr = std::shared_ptr<const AtomNode>;
struct ByText {
  bool operator()(const AtomPtr& a, const AtomPtr& b) const { return a->text < b->text; }
};
using Monomial = std::vector<AtomPtr>;  // sorted by text
struct ByTexts {
  bool operator()(const Monomial& a, const Monomial& b) const;
};

class Poly {
 public:
  Poly() = default;
  Poly(int64_t constant);
  static Poly of(AtomPtr atom);
  static Poly symbol(const std::string& name);
  static Poly of_text(const std::string& text);  // the symbol of that text, as collect_symbols() gives it
  static Poly parse(const Sexpr& text);

  Poly operator+(const Poly& other) const;
  Poly operator-(const Poly& other) const;
  Poly operator*(const Poly& other) const;
  bool operator==(const Poly& other) const { return text() == other.text(); }

  const std::map<Monomial, int64_t, ByTexts>& terms() const { return terms_; }  // the empty monomial is the constant
  std::optional<int64_t> constant() const;                                      // where there is nothing else
  std::string text() const;

 private:
  void add(const Monomial& monomial, int64_t coefficient);
  std::map<Monomial, int64_t, ByTexts> terms_;
};

using PolySubstitution = std::map<std::string, Poly>;  // symbol to value
Poly substitute(const Poly& poly, const PolySubstitution& substitution);
void collect_symbols(const Poly& poly, std::set<std::string>& out);
// Whether the first is the other times an integer and symbols, or, where the other is such a product itself, times
// anything.
bool is_multiple(const Poly& poly, const Poly& of);
// The first where the second is 0, written without an atom that the second gives by others, if there is one.
Poly reduced(const Poly& poly, const Poly& equation);

// A condition: literals "poly >= 0" under "and" and "or".
struct Condition {
  enum class Kind { True, False, AtLeastZero, And, Or } kind = Kind::True;
  Poly poly;
  std::vector<Condition> parts;

  static Condition parse(const Sexpr& text);
  std::string text() const;                  // parts sorted, so that equal conditions have equal texts
  std::vector<Condition> conjuncts() const;  // flat
};
Condition conjunction(const Condition& a, const Condition& b);
Condition negation(const Condition& a);
Condition substitute(const Condition& condition, const PolySubstitution& substitution);
void collect_symbols(const Condition& condition, std::set<std::string>& out);

}  // namespace gopt::checker
