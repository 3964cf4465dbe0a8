#include "terms.h"

#include <algorithm>
#include <cstdio>

namespace gopt::checker {
namespace {

std::vector<std::string> parse_names(const Sexpr& text) {
  std::vector<std::string> names;
  for (const Sexpr& item : text.items) {
    std::set<std::string> symbol;
    collect_symbols(Poly::parse(item), symbol);
    if (item.is_list || symbol.size() != 1) throw Fault("a binder is no symbol");
    names.push_back(*symbol.begin());
  }
  return names;
}

LogBranch parse_branch(const Sexpr& text) {
  if (text.head() != "branch") throw Fault("'" + text.head() + "' where a branch should be");
  return {parse_names(text.at(1)), Condition::parse(text.at(2)), parse_form(text.at(3))};
}

LogFactor parse_factor(const Sexpr& text) {
  LogFactor f;
  f.kind = text.head();
  f.exponent = static_cast<int>(text.at(1).integer());
  size_t next = 2;
  if (f.kind == "read" || f.kind == "opaque") f.number = static_cast<int>(text.at(next++).integer());
  if (f.kind == "literal") f.literal = text.at(next++).number();
  if (f.kind == "call") f.name = text.at(next++).word;
  const bool indexes = f.kind == "read" || f.kind == "size", branches = f.kind == "max" || f.kind == "product";
  const bool forms =
      f.kind == "call" || f.kind == "reciprocal" || f.kind == "less" || f.kind == "equal" || f.kind == "opaque";
  if (!indexes && !branches && !forms && f.kind != "literal") throw Fault("'" + f.kind + "' is no factor");
  for (; next < text.size(); next++) {
    if (indexes) f.subscripts.push_back(Poly::parse(text.at(next)));
    if (branches) f.branches.push_back(parse_branch(text.at(next)));
    if (forms) f.args.push_back(parse_form(text.at(next)));
  }
  return f;
}

size_t arity_of(const Expression& e) {
  static const std::map<std::string, size_t> arities{
      {"const", 0}, {"size", 0}, {"read", 0}, {"+", 2},  {"-", 2},      {"*", 2},       {"/", 2},     {"max", 2},
      {"min", 2},   {"<", 2},    {"=", 2},    {"if", 2}, {"choose", 3}, {"convert", 1}, {"reduce", 1}};
  auto it = arities.find(e.kind);
  if (it == arities.end()) throw Fault("'" + e.kind + "' is no expression");
  return it->second;
}

}  // namespace

Expression Expression::parse(const Sexpr& text) {
  Expression e;
  e.kind = text.head();
  size_t next = 1;
  if (e.kind == "const") e.value = text.at(next++).number();
  if (e.kind == "convert") e.input = static_cast<int>(text.at(next++).integer());
  if (e.kind == "call" || e.kind == "reduce") e.name = text.at(next++).word;
  if (e.kind == "if") e.condition = Condition::parse(text.at(next++));
  if (e.kind == "reduce") {
    for (const Sexpr& binder : text.at(next++).items) {
      e.binders.push_back(parse_names({true, "", {binder.at(0)}})[0]);
      e.indexes.push_back(Poly::parse(binder.at(1)));
    }
  }
  if (e.kind == "read") e.input = static_cast<int>(text.at(next++).integer());
  if (e.kind == "read" || e.kind == "size") {
    for (; next < text.size(); next++) e.indexes.push_back(Poly::parse(text.at(next)));
    return e;
  }
  for (; next < text.size(); next++) e.args.push_back(parse(text.at(next)));
  if (e.kind != "call" && e.args.size() != arity_of(e)) throw Fault("'" + e.kind + "' has another number of arguments");
  return e;
}

LogTerm parse_term(const Sexpr& text) {
  if (text.head() != "term") throw Fault("'" + text.head() + "' where a term should be");
  LogTerm t;
  t.numerator = text.at(1).integer();
  t.denominator = text.at(2).integer();
  if (t.denominator <= 0) throw Fault("a denominator is not positive");
  t.binders = parse_names(text.at(3));
  t.guard = Condition::parse(text.at(4));
  for (size_t i = 5; i < text.size(); i++) t.factors.push_back(parse_factor(text.at(i)));
  return t;
}
Form parse_form(const Sexpr& text) {
  if (text.head() != "form") throw Fault("'" + text.head() + "' where a sum of terms should be");
  Form form;
  for (size_t i = 1; i < text.size(); i++) form.push_back(parse_term(text.at(i)));
  return form;
}

// ---- substitution ----

namespace {

PolySubstitution without(PolySubstitution substitution, const std::vector<std::string>& binders) {
  for (const std::string& b : binders) substitution.erase(b);
  return substitution;
}

}  // namespace

LogFactor substitute(const LogFactor& factor, const PolySubstitution& substitution) {
  LogFactor f = factor;
  for (Poly& p : f.subscripts) p = substitute(p, substitution);
  for (Form& a : f.args) a = substitute(a, substitution);
  for (LogBranch& b : f.branches) {
    const PolySubstitution inner = without(substitution, b.binders);
    b.guard = substitute(b.guard, inner);
    b.value = substitute(b.value, inner);
  }
  return f;
}
LogTerm substitute(const LogTerm& term, const PolySubstitution& substitution) {
  LogTerm t = term;
  t.guard = substitute(t.guard, substitution);
  for (LogFactor& f : t.factors) f = substitute(f, substitution);
  return t;
}
Form substitute(const Form& form, const PolySubstitution& substitution) {
  Form r;
  for (const LogTerm& term : form) r.push_back(substitute(term, without(substitution, term.binders)));
  return r;
}

// ---- symbols ----

namespace {

void collect_all(const Form& form, std::set<std::string> bound, std::set<std::string>& out);

template <class T>
void collect_free(const T& part, const std::set<std::string>& bound, std::set<std::string>& out) {
  std::set<std::string> found;
  collect_symbols(part, found);
  std::set_difference(found.begin(), found.end(), bound.begin(), bound.end(), std::inserter(out, out.end()));
}

void collect_all(const LogFactor& f, const std::set<std::string>& bound, std::set<std::string>& out) {
  for (const Poly& p : f.subscripts) collect_free(p, bound, out);
  for (const Form& a : f.args) collect_all(a, bound, out);
  for (const LogBranch& b : f.branches) {
    std::set<std::string> inner = bound;
    inner.insert(b.binders.begin(), b.binders.end());
    collect_free(b.guard, inner, out);
    collect_all(b.value, inner, out);
  }
}
void collect_all(const Form& form, std::set<std::string> bound, std::set<std::string>& out) {
  for (const LogTerm& term : form) {
    std::set<std::string> inner = bound;
    inner.insert(term.binders.begin(), term.binders.end());
    collect_free(term.guard, inner, out);
    for (const LogFactor& f : term.factors) collect_all(f, inner, out);
  }
}

}  // namespace

void collect_symbols(const Form& form, std::set<std::string>& out) { collect_all(form, {}, out); }

void collect_symbols(const Expression& e, std::set<std::string>& out) {
  std::set<std::string> inner;
  for (const Poly& p : e.indexes) collect_symbols(p, out);
  collect_symbols(e.condition, inner);
  for (const Expression& a : e.args) collect_symbols(a, inner);
  for (const std::string& b : e.binders) inner.erase(b);
  out.insert(inner.begin(), inner.end());
}

// ---- texts ----

namespace {

using Names = PolySubstitution;

Names extended(Names names, const std::vector<std::string>& binders, int depth) {
  for (size_t i = 0; i < binders.size(); i++)
    names[binders[i]] = Poly::symbol("B" + std::to_string(depth) + "." + std::to_string(i));
  return names;
}

std::string joined(std::vector<std::string> parts) {
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const std::string& p : parts) text += p + ";";
  return text;
}

std::string text_of(const Form& form, const Names& names, int depth);

std::string text_of(const LogFactor& f, const Names& names, int depth) {
  char literal[32];
  snprintf(literal, sizeof literal, "%a", f.literal);
  std::string text =
      f.kind + "^" + std::to_string(f.exponent) + ":" + std::to_string(f.number) + ":" + f.name + ":" + literal + "[";
  for (const Poly& p : f.subscripts) text += substitute(p, names).text() + ",";
  text += "]";
  for (const Form& a : f.args) text += "(" + text_of(a, names, depth) + ")";
  std::vector<std::string> branches;
  for (const LogBranch& b : f.branches) {
    const Names inner = extended(names, b.binders, depth);
    branches.push_back("{" + std::to_string(b.binders.size()) + substitute(b.guard, inner).text() + ":" +
                       text_of(b.value, inner, depth + 1) + "}");
  }
  return text + joined(std::move(branches));
}

std::string text_of(const Form& form, const Names& names, int depth) {
  std::vector<std::string> terms;
  for (const LogTerm& t : form) {
    const Names inner = extended(names, t.binders, depth);
    std::vector<std::string> factors;
    for (const LogFactor& f : t.factors) factors.push_back(text_of(f, inner, depth + 1));
    terms.push_back(std::to_string(t.numerator) + "/" + std::to_string(t.denominator) + "#" +
                    std::to_string(t.binders.size()) + substitute(t.guard, inner).text() + joined(std::move(factors)));
  }
  return "<" + joined(std::move(terms)) + ">";
}

}  // namespace

std::string text_of(const LogFactor& factor) { return text_of(factor, {}, 0); }
std::string text_of(const Form& form) { return text_of(form, {}, 0); }

bool is_rational(const Form& form) {
  return std::all_of(form.begin(), form.end(), [](const LogTerm& t) {
    return std::all_of(t.factors.begin(), t.factors.end(), [](const LogFactor& f) {
      const bool kind = f.kind == "read" || f.kind == "size" || f.kind == "literal" || f.kind == "reciprocal" ||
                        f.kind == "equal" || f.kind == "product";
      return kind && std::all_of(f.args.begin(), f.args.end(), [](const Form& a) { return is_rational(a); }) &&
             std::all_of(f.branches.begin(), f.branches.end(), [](const LogBranch& b) { return is_rational(b.value); });
    });
  });
}
bool is_rational(const Expression& e) {
  static const std::set<std::string> kinds{"const", "size", "read", "+", "-", "*", "/", "=", "if", "choose", "reduce"};
  return kinds.count(e.kind) && (e.kind != "reduce" || e.name == "sum" || e.name == "product") &&
         std::all_of(e.args.begin(), e.args.end(), [](const Expression& a) { return is_rational(a); });
}

}  // namespace gopt::checker
