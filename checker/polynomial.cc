#include "polynomial.h"

#include <algorithm>

namespace gopt::checker {
namespace {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw Fault("an index exceeds 64 bits");
  return r;
}
int64_t checked_multiply(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw Fault("an index exceeds 64 bits");
  return r;
}

bool is_plain(const std::string& name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '%' || c == '.';
  });
}

AtomPtr make_symbol(const std::string& name) {
  return std::make_shared<const AtomNode>(
      AtomNode{AtomNode::Kind::Symbol, is_plain(name) ? name : "|" + name + "|", 0, {}});
}
AtomPtr make_compound(AtomNode::Kind kind, int input, std::vector<Poly> parts) {
  std::string text = kind == AtomNode::Kind::Quotient ? "(//" : "(load " + std::to_string(input);
  for (const Poly& p : parts) text += " " + p.text();
  return std::make_shared<const AtomNode>(AtomNode{kind, text + ")", input, std::move(parts)});
}

// floor(a / b), with what b divides taken out; b is positive, as the log's obligations have it.
Poly quotient(const Poly& a, const Poly& b) {
  if (b == Poly(1)) return a;
  if (b.terms().size() != 1) return Poly::of(make_compound(AtomNode::Kind::Quotient, 0, {a, b}));
  const auto& [divisor, number] = *b.terms().begin();
  Poly whole, rest;
  for (const auto& [monomial, c] : a.terms()) {
    Monomial left;
    std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(), std::back_inserter(left),
                        ByText());
    const bool divides = c % number == 0 && left.size() + divisor.size() == monomial.size();
    Poly term(divides ? c / number : c);
    for (const AtomPtr& atom : divides ? left : monomial) term = term * Poly::of(atom);
    (divides ? whole : rest) = (divides ? whole : rest) + term;
  }
  if (auto c = rest.constant(); c && *c == 0) return whole;
  if (auto c = rest.constant(); c && divisor.empty() && number > 0) {
    int64_t floor = *c / number;
    if (*c % number < 0) floor--;
    return whole + Poly(floor);
  }
  return whole + Poly::of(make_compound(AtomNode::Kind::Quotient, 0, {rest, b}));
}

}  // namespace

bool ByTexts::operator()(const Monomial& a, const Monomial& b) const {
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), ByText());
}

Poly::Poly(int64_t constant) { add({}, constant); }
Poly Poly::of(AtomPtr atom) {
  Poly p;
  p.add({std::move(atom)}, 1);
  return p;
}
Poly Poly::symbol(const std::string& name) { return of(make_symbol(name)); }
Poly Poly::of_text(const std::string& text) {
  return of(std::make_shared<const AtomNode>(AtomNode{AtomNode::Kind::Symbol, text, 0, {}}));
}

void Poly::add(const Monomial& monomial, int64_t coefficient) {
  auto [it, inserted] = terms_.try_emplace(monomial, 0);
  it->second = checked_add(it->second, coefficient);
  if (it->second == 0) terms_.erase(it);
}

Poly Poly::parse(const Sexpr& text) {
  if (!text.is_list) {
    const char first = text.word.empty() ? ' ' : text.word[0];
    const bool numeric = std::isdigit(static_cast<unsigned char>(first)) || (first == '-' && text.word.size() > 1);
    return numeric ? Poly(text.integer()) : symbol(text.word);
  }
  const std::string& head = text.head();
  std::vector<Poly> parts;
  for (size_t i = head == "load" ? 2 : 1; i < text.size(); i++) parts.push_back(parse(text.at(i)));
  if (head == "+" || head == "*") {
    Poly r = head == "+" ? Poly(0) : Poly(1);
    for (const Poly& p : parts) r = head == "+" ? r + p : r * p;
    return r;
  }
  if (head == "//" && parts.size() == 2) return quotient(parts[0], parts[1]);
  if (head == "load")
    return of(make_compound(AtomNode::Kind::Load, static_cast<int>(text.at(1).integer()), std::move(parts)));
  throw Fault("'" + head + "' is no index");
}

Poly Poly::operator+(const Poly& other) const {
  Poly r = *this;
  for (const auto& [monomial, c] : other.terms_) r.add(monomial, c);
  return r;
}
Poly Poly::operator-(const Poly& other) const { return *this + other * Poly(-1); }
Poly Poly::operator*(const Poly& other) const {
  Poly r;
  for (const auto& [a, x] : terms_) {
    for (const auto& [b, y] : other.terms_) {
      Monomial product;
      std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(product), ByText());
      r.add(product, checked_multiply(x, y));
    }
  }
  return r;
}
std::optional<int64_t> Poly::constant() const {
  if (terms_.empty()) return 0;
  if (terms_.size() == 1 && terms_.begin()->first.empty()) return terms_.begin()->second;
  return std::nullopt;
}

std::string Poly::text() const {
  if (auto c = constant()) return std::to_string(*c);
  std::string r = "(+";
  for (const auto& [monomial, c] : terms_) {
    if (monomial.empty()) {
      r += " " + std::to_string(c);
      continue;
    }
    r += " (* " + std::to_string(c);
    for (const AtomPtr& a : monomial) r += " " + a->text;
    r += ")";
  }
  return r + ")";
}

Poly substitute(const Poly& poly, const PolySubstitution& substitution) {
  Poly r;
  for (const auto& [monomial, c] : poly.terms()) {
    Poly product(c);
    for (const AtomPtr& a : monomial) {
      if (a->kind == AtomNode::Kind::Symbol) {
        auto it = substitution.find(a->text);
        product = product * (it == substitution.end() ? Poly::of(a) : it->second);
        continue;
      }
      std::vector<Poly> parts;
      for (const Poly& p : a->parts) parts.push_back(substitute(p, substitution));
      product = product * (a->kind == AtomNode::Kind::Quotient
                               ? quotient(parts[0], parts[1])
                               : Poly::of(make_compound(a->kind, a->input, std::move(parts))));
    }
    r = r + product;
  }
  return r;
}

void collect_symbols(const Poly& poly, std::set<std::string>& out) {
  for (const auto& [monomial, c] : poly.terms()) {
    for (const AtomPtr& a : monomial) {
      if (a->kind == AtomNode::Kind::Symbol) out.insert(a->text);
      for (const Poly& p : a->parts) collect_symbols(p, out);
    }
  }
}

namespace {

// a / b, where it divides.
std::optional<std::pair<Monomial, int64_t>> divided(const std::pair<const Monomial, int64_t>& a,
                                                    const std::pair<const Monomial, int64_t>& b) {
  Monomial left;
  std::set_difference(a.first.begin(), a.first.end(), b.first.begin(), b.first.end(), std::back_inserter(left),
                      ByText());
  if (left.size() + b.first.size() != a.first.size() || a.second % b.second != 0) return std::nullopt;
  return std::pair{std::move(left), a.second / b.second};
}

}  // namespace

bool is_multiple(const Poly& poly, const Poly& of) {
  if (of.terms().empty()) return poly.terms().empty();
  const auto& first = *of.terms().begin();
  auto quotient_by = [&](const auto& term) { return divided(term, first); };
  if (of.terms().size() == 1)
    return std::all_of(poly.terms().begin(), poly.terms().end(),
                       [&](const auto& t) { return quotient_by(t).has_value(); });
  return std::any_of(poly.terms().begin(), poly.terms().end(), [&](const auto& term) {
    const auto by = quotient_by(term);
    if (!by) return false;
    Poly product = of * Poly(by->second);
    for (const AtomPtr& atom : by->first) product = product * Poly::of(atom);
    return product.text() == poly.text();
  });
}

Poly reduced(const Poly& poly, const Poly& equation) {
  for (const auto& [monomial, coefficient] : equation.terms()) {
    if (monomial.size() != 1 || (coefficient != 1 && coefficient != -1)) continue;
    const std::string& name = monomial[0]->text;
    const Poly rest = equation - Poly(coefficient) * Poly::of(monomial[0]), value = rest * Poly(-coefficient);
    const auto holds_it = [&](const auto& term) {
      return std::any_of(term.first.begin(), term.first.end(), [&](const AtomPtr& a) { return a->text == name; });
    };
    if (std::any_of(rest.terms().begin(), rest.terms().end(), holds_it)) continue;
    Poly r;
    for (const auto& [atoms, c] : poly.terms()) {
      Poly product(c);
      for (const AtomPtr& a : atoms) product = product * (a->text == name ? value : Poly::of(a));
      r = r + product;
    }
    return r;
  }
  return poly;
}

Condition Condition::parse(const Sexpr& text) {
  if (!text.is_list) {
    if (text.word == "true") return {};
    if (text.word == "false") return {Kind::False, {}, {}};
    throw Fault("'" + text.word + "' is no condition");
  }
  const std::string& head = text.head();
  if (head == ">=") return {Kind::AtLeastZero, Poly::parse(text.at(1)), {}};
  if (head != "and" && head != "or") throw Fault("'" + head + "' is no condition");
  Condition c{head == "and" ? Kind::And : Kind::Or, {}, {}};
  for (size_t i = 1; i < text.size(); i++) c.parts.push_back(parse(text.at(i)));
  return c;
}

std::string Condition::text() const {
  switch (kind) {
    case Kind::True: return "true";
    case Kind::False: return "false";
    case Kind::AtLeastZero: {
      if (auto c = poly.constant()) return *c >= 0 ? "true" : "false";
      return "(>= " + poly.text() + ")";
    }
    case Kind::And:
    case Kind::Or: {
      const bool all = kind == Kind::And;
      std::set<std::string> texts;
      for (const Condition& part : all ? conjuncts() : parts) texts.insert(part.text());
      texts.erase(all ? "true" : "false");
      if (texts.count(all ? "false" : "true")) return all ? "false" : "true";
      if (texts.empty()) return all ? "true" : "false";
      if (texts.size() == 1) return *texts.begin();
      std::string r = all ? "(and" : "(or";
      for (const std::string& t : texts) r += " " + t;
      return r + ")";
    }
  }
  return "";
}

std::vector<Condition> Condition::conjuncts() const {
  if (kind == Kind::True) return {};
  if (kind != Kind::And) return {*this};
  std::vector<Condition> flat;
  for (const Condition& part : parts)
    for (Condition& c : part.conjuncts()) flat.push_back(std::move(c));
  return flat;
}

Condition conjunction(const Condition& a, const Condition& b) { return {Condition::Kind::And, {}, {a, b}}; }

Condition negation(const Condition& a) {
  switch (a.kind) {
    case Condition::Kind::True: return {Condition::Kind::False, {}, {}};
    case Condition::Kind::False: return {};
    case Condition::Kind::AtLeastZero: return {Condition::Kind::AtLeastZero, Poly(-1) - a.poly, {}};
    case Condition::Kind::And:
    case Condition::Kind::Or: {
      Condition r{a.kind == Condition::Kind::And ? Condition::Kind::Or : Condition::Kind::And, {}, {}};
      for (const Condition& part : a.parts) r.parts.push_back(negation(part));
      return r;
    }
  }
  return {};
}

Condition substitute(const Condition& condition, const PolySubstitution& substitution) {
  Condition r{condition.kind, substitute(condition.poly, substitution), {}};
  for (const Condition& part : condition.parts) r.parts.push_back(substitute(part, substitution));
  return r;
}

void collect_symbols(const Condition& condition, std::set<std::string>& out) {
  collect_symbols(condition.poly, out);
  for (const Condition& part : condition.parts) collect_symbols(part, out);
}

}  // namespace gopt::checker
