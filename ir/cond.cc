#include <numeric>

#include "gopt/index.h"

namespace gopt {
namespace {

const std::shared_ptr<const Cond::Node>& true_node() {
  static const auto node = std::make_shared<const Cond::Node>(Cond::Node{CondKind::True, {}, {}});
  return node;
}
const std::shared_ptr<const Cond::Node>& false_node() {
  static const auto node = std::make_shared<const Cond::Node>(Cond::Node{CondKind::False, {}, {}});
  return node;
}

// And and Or are duals: `absorbing` ends it, `neutral` vanishes, parts of the same kind are flattened.
Cond combine(CondKind kind, CondKind absorbing, CondKind neutral, const Cond& a, const Cond& b) {
  if (a.kind() == absorbing || b.kind() == neutral) return a;
  if (b.kind() == absorbing || a.kind() == neutral) return b;
  std::vector<Cond> parts;
  auto add = [&parts](const Cond& part) {
    for (const Cond& known : parts)
      if (known == part) return;
    parts.push_back(part);
  };
  for (const Cond* side : {&a, &b}) {
    if (side->kind() == kind) {
      for (const Cond& part : side->parts()) add(part);
    } else {
      add(*side);
    }
  }
  if (parts.size() == 1) return parts[0];
  return Cond::make({kind, {}, std::move(parts)});
}

}  // namespace

Cond::Cond() : node_(true_node()) {}
Cond Cond::never() { return Cond(false_node()); }
Cond Cond::make(Node node) { return Cond(std::make_shared<const Node>(std::move(node))); }

bool operator==(const Cond& a, const Cond& b) {
  return a.kind() == b.kind() && a.index() == b.index() && a.parts() == b.parts();
}

Cond at_least(const Index& a, const Index& b) {
  const Index difference = a - b;
  if (auto c = difference.as_constant()) return *c >= 0 ? Cond() : Cond::never();
  return Cond::make({CondKind::NonNegative, difference, {}});
}
Cond less(const Index& a, const Index& b) { return at_least(b, a + Index(1)); }
Cond equal(const Index& a, const Index& b) { return at_least(a, b) && at_least(b, a); }
Cond within(const Index& x, const Index& low, const Index& high) { return at_least(x, low) && less(x, high); }

Cond operator&&(const Cond& a, const Cond& b) { return combine(CondKind::And, CondKind::False, CondKind::True, a, b); }
Cond operator||(const Cond& a, const Cond& b) { return combine(CondKind::Or, CondKind::True, CondKind::False, a, b); }

Cond operator!(const Cond& a) {
  switch (a.kind()) {
    case CondKind::True: return Cond::never();
    case CondKind::False: return Cond();
    case CondKind::NonNegative: return at_least(-a.index(), Index(1));
    case CondKind::And: {
      Cond r = Cond::never();
      for (const Cond& part : a.parts()) r = r || !part;
      return r;
    }
    case CondKind::Or: {
      Cond r;
      for (const Cond& part : a.parts()) r = r && !part;
      return r;
    }
  }
  return Cond();
}

namespace {

template <class F>
Cond map_indexes(const Cond& cond, const F& map) {
  switch (cond.kind()) {
    case CondKind::True:
    case CondKind::False: return cond;
    case CondKind::NonNegative: return at_least(map(cond.index()), Index(0));
    case CondKind::And: {
      Cond r;
      for (const Cond& part : cond.parts()) r = r && map_indexes(part, map);
      return r;
    }
    case CondKind::Or: {
      Cond r = Cond::never();
      for (const Cond& part : cond.parts()) r = r || map_indexes(part, map);
      return r;
    }
  }
  return cond;
}

}  // namespace

Cond substitute(const Cond& cond, const Substitution& substitution) {
  return map_indexes(cond, [&](const Index& i) { return substitute(i, substitution); });
}

Cond in_lowest_terms(const Cond& cond) {
  return map_indexes(cond, [](const Index& index) {
    int64_t shared = 0;
    for (const Index::Term& term : index.terms()) shared = std::gcd(shared, term.coefficient);
    if (shared <= 1) return index;
    Index lowest = floor_div(Index(index.constant()), Index(shared));  // products of symbols are integers
    for (const Index::Term& term : index.terms()) {
      Index product(term.coefficient / shared);
      for (AtomId id : term.atoms) product = product * Index::from_atom(id);
      lowest += product;
    }
    return lowest;
  });
}

Cond simplify(const Cond& cond, const Ranges& ranges) {
  switch (cond.kind()) {
    case CondKind::NonNegative: {
      const Index i = simplify(cond.index(), ranges);
      if (auto r = range_of(i, ranges)) {
        if (r->low >= 0) return Cond();
        if (r->high < 0) return Cond::never();
      }
      return at_least(i, Index(0));
    }
    case CondKind::And: {
      Cond r;
      for (const Cond& part : cond.parts()) r = r && simplify(part, ranges);
      return r;
    }
    case CondKind::Or: {
      Cond r = Cond::never();
      for (const Cond& part : cond.parts()) r = r || simplify(part, ranges);
      return r;
    }
    case CondKind::True:
    case CondKind::False: return cond;
  }
  return cond;
}

void collect_symbols(const Cond& cond, std::set<AtomId>& out) {
  collect_symbols(cond.index(), out);
  for (const Cond& part : cond.parts()) collect_symbols(part, out);
}

// Unknown parts leave And and Or unknown unless another part decides.
std::optional<bool> evaluate(const Cond& cond, const Environment& environment, const LoadFunction& load) {
  switch (cond.kind()) {
    case CondKind::True: return true;
    case CondKind::False: return false;
    case CondKind::NonNegative: {
      auto v = evaluate(cond.index(), environment, load);
      if (!v) return std::nullopt;
      return *v >= 0;
    }
    case CondKind::And:
    case CondKind::Or: {
      const bool deciding = cond.kind() == CondKind::Or;
      bool unknown = false;
      for (const Cond& part : cond.parts()) {
        auto v = evaluate(part, environment, load);
        if (v && *v == deciding) return deciding;
        unknown |= !v;
      }
      if (unknown) return std::nullopt;
      return !deciding;
    }
  }
  return std::nullopt;
}

namespace {

// Negative terms move to the right side: h-k >= 0 reads "h >= k".
std::string comparison_text(const Index& index, const char* relation) {
  Index left, right;
  for (const Index::Term& term : index.terms()) {
    Index product(term.coefficient < 0 ? -term.coefficient : term.coefficient);
    for (AtomId id : term.atoms) product = product * Index::from_atom(id);
    (term.coefficient < 0 ? right : left) += product;
  }
  (index.constant() < 0 ? right : left) += Index(index.constant() < 0 ? -index.constant() : index.constant());
  return to_string(left) + " " + relation + " " + to_string(right);
}

}  // namespace

std::string to_string(const Cond& cond) {
  switch (cond.kind()) {
    case CondKind::True: return "true";
    case CondKind::False: return "false";
    case CondKind::NonNegative: return comparison_text(cond.index(), ">=");
    case CondKind::And:
    case CondKind::Or: {
      std::string s;
      std::vector<bool> done(cond.parts().size(), false);
      for (size_t i = 0; i < cond.parts().size(); i++) {
        if (done[i]) continue;
        const Cond& part = cond.parts()[i];
        std::string text;
        for (size_t j = i + 1;
             cond.kind() == CondKind::And && part.kind() == CondKind::NonNegative && j < cond.parts().size(); j++) {
          const Cond& other = cond.parts()[j];
          if (other.kind() != CondKind::NonNegative || other.index() != -part.index()) continue;
          done[j] = true;
          text = comparison_text(part.index(), "==");
          break;
        }
        if (text.empty()) text = part.parts().empty() ? to_string(part) : "(" + to_string(part) + ")";
        s += (s.empty() ? "" : cond.kind() == CondKind::And ? " and " : " or ") + text;
      }
      return s;
    }
  }
  return "";
}

}  // namespace gopt
