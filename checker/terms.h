// Scalar expressions and sums of terms as the log writes them.
#pragma once

#include "polynomial.h"

namespace gopt::checker {

// An element of a tensor by the operators' definitions.
struct Expression {
  std::string kind;  // const size read + - * / max min < = call if choose convert reduce
  double value = 0;
  int input = 0;              // read; convert: the type's number
  std::string name;           // call: the function; reduce: sum, max, min, product
  std::vector<Poly> indexes;  // size, read; reduce: the binders' extents
  std::vector<std::string> binders;
  Condition condition;
  std::vector<Expression> args;

  static Expression parse(const Sexpr& text);
};

struct LogTerm;
using Form = std::vector<LogTerm>;  // a sum

struct LogBranch {
  std::vector<std::string> binders;
  Condition guard;
  Form value;
};
struct LogFactor {
  std::string kind;  // read size literal call reciprocal max product less equal opaque
  int exponent = 1;
  int number = 0;  // read: the input; opaque: the tag
  double literal = 0;
  std::string name;
  std::vector<Poly> subscripts;
  std::vector<Form> args;
  std::vector<LogBranch> branches;
};
// numerator/denominator * SUM over all integer binders of [guard] * product of factors
struct LogTerm {
  int64_t numerator = 1, denominator = 1;
  std::vector<std::string> binders;
  Condition guard;
  std::vector<LogFactor> factors;
};

LogTerm parse_term(const Sexpr& text);
Form parse_form(const Sexpr& text);  // (form TERM...)

LogFactor substitute(const LogFactor& factor, const PolySubstitution& substitution);
LogTerm substitute(const LogTerm& term, const PolySubstitution& substitution);  // also its guard; its binders are free
Form substitute(const Form& form, const PolySubstitution& substitution);
void collect_symbols(const Form& form, std::set<std::string>& out);  // free ones
void collect_symbols(const Expression& e, std::set<std::string>& out);

// Equal texts mean equal values: binders are renamed by position, parts are sorted.
std::string text_of(const LogFactor& factor);
std::string text_of(const Form& form);

// A form or an expression without functions, maxima and comparisons has a value in every field.
bool is_rational(const Form& form);
bool is_rational(const Expression& e);

}  // namespace gopt::checker
