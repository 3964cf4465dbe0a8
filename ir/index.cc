#include "gopt/index.h"

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstring>
#include <deque>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "gopt/result.h"

namespace gopt {
namespace {

int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw std::overflow_error("index arithmetic exceeds 64 bits");
  return r;
}
int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw std::overflow_error("index arithmetic exceeds 64 bits");
  return r;
}
int64_t floor_quotient(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

// All atoms ever made. Entries never move, so references stay valid while others are added.
class AtomTable {
 public:
  static AtomTable& instance() {
    static AtomTable* table = new AtomTable;  // never destroyed: atoms may be used by static objects
    return *table;
  }
  const Atom& get(AtomId id) {
    std::shared_lock lock(mutex_);
    return atoms_[static_cast<uint32_t>(id)];
  }
  AtomId intern(const std::string& key, Atom atom) {
    std::unique_lock lock(mutex_);
    auto [it, inserted] = ids_.try_emplace(key, AtomId{static_cast<uint32_t>(atoms_.size())});
    if (inserted) atoms_.push_back(std::move(atom));
    return it->second;
  }
  AtomId add(Atom atom) {
    std::unique_lock lock(mutex_);
    atoms_.push_back(std::move(atom));
    return AtomId{static_cast<uint32_t>(atoms_.size() - 1)};
  }

 private:
  std::shared_mutex mutex_;
  std::deque<Atom> atoms_;
  std::unordered_map<std::string, AtomId> ids_;
};

void append_key(std::string& key, const Index& index) {
  auto put = [&key](const void* data, size_t size) { key.append(static_cast<const char*>(data), size); };
  const int64_t constant = index.constant();
  put(&constant, sizeof constant);
  for (const Index::Term& term : index.terms()) {
    put(&term.coefficient, sizeof term.coefficient);
    for (AtomId id : term.atoms) put(&id, sizeof id);
    key += '|';
  }
  key += ';';
}

}  // namespace

const Atom& atom(AtomId id) { return AtomTable::instance().get(id); }

AtomId symbol_atom(std::string_view name) {
  return AtomTable::instance().intern("s" + std::string(name),
                                      Atom{AtomKind::Symbol, std::string(name), {}, {}, 0, {}});
}
Index symbol(std::string_view name) { return Index::from_atom(symbol_atom(name)); }

namespace {
thread_local std::vector<AtomId> free_symbols;
std::atomic<uint64_t> fresh_count{0};
}  // namespace

AtomId fresh_symbol() {
  if (!free_symbols.empty()) {
    const AtomId id = free_symbols.back();
    free_symbols.pop_back();
    return id;
  }
  return AtomTable::instance().add(Atom{AtomKind::Symbol, "'" + std::to_string(fresh_count++), {}, {}, 0, {}});
}
void release_symbol(AtomId id) { free_symbols.push_back(id); }

Index load_index(int input, std::vector<Index> subscripts) {
  std::string key = "l" + std::to_string(input) + ":";
  for (const Index& s : subscripts) append_key(key, s);
  return Index::from_atom(
      AtomTable::instance().intern(key, Atom{AtomKind::Load, "", {}, {}, input, std::move(subscripts)}));
}

// ---- polynomials ----

Index Index::from_atom(AtomId atom) {
  Index r;
  r.terms_.push_back({{atom}, 1});
  return r;
}
std::optional<int64_t> Index::as_constant() const {
  if (!is_constant()) return std::nullopt;
  return constant_;
}
std::optional<AtomId> Index::as_atom() const {
  if (constant_ != 0 || terms_.size() != 1 || terms_[0].coefficient != 1 || terms_[0].atoms.size() != 1)
    return std::nullopt;
  return terms_[0].atoms[0];
}

Index& Index::operator+=(const Index& other) {
  constant_ = checked_add(constant_, other.constant_);
  if (other.terms_.empty()) return *this;
  std::vector<Term> merged;
  merged.reserve(terms_.size() + other.terms_.size());
  auto a = terms_.begin();
  auto b = other.terms_.begin();
  while (a != terms_.end() || b != other.terms_.end()) {
    if (b == other.terms_.end() || (a != terms_.end() && a->atoms < b->atoms)) {
      merged.push_back(std::move(*a++));
    } else if (a == terms_.end() || b->atoms < a->atoms) {
      merged.push_back(*b++);
    } else {
      const int64_t c = checked_add(a->coefficient, b->coefficient);
      if (c != 0) merged.push_back({std::move(a->atoms), c});
      ++a, ++b;
    }
  }
  terms_ = std::move(merged);
  return *this;
}

Index operator-(const Index& a) { return Index(-1) * a; }
Index operator-(const Index& a, const Index& b) { return a + (-b); }

Index operator*(const Index& a, const Index& b) {
  if (a.is_constant() && b.is_constant()) return Index(checked_mul(a.constant_, b.constant_));
  if (a.is_constant() || b.is_constant()) {
    const int64_t c = a.is_constant() ? a.constant_ : b.constant_;
    if (c == 0) return Index();
    Index r = a.is_constant() ? b : a;
    r.constant_ = checked_mul(r.constant_, c);
    for (Index::Term& term : r.terms_) term.coefficient = checked_mul(term.coefficient, c);
    return r;
  }
  std::map<std::vector<AtomId>, int64_t> products;
  auto accumulate = [&products](const std::vector<AtomId>& x, const std::vector<AtomId>& y, int64_t c) {
    std::vector<AtomId> atoms;
    std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(atoms));
    int64_t& sum = products[std::move(atoms)];
    sum = checked_add(sum, c);
  };
  for (const Index::Term& x : a.terms_) {
    for (const Index::Term& y : b.terms_) accumulate(x.atoms, y.atoms, checked_mul(x.coefficient, y.coefficient));
    if (b.constant_ != 0) accumulate(x.atoms, {}, checked_mul(x.coefficient, b.constant_));
  }
  if (a.constant_ != 0)
    for (const Index::Term& y : b.terms_) accumulate(y.atoms, {}, checked_mul(y.coefficient, a.constant_));
  Index r(checked_mul(a.constant_, b.constant_));
  for (auto& [atoms, c] : products)
    if (c != 0) r.terms_.push_back({atoms, c});
  return r;
}

// ---- division ----

namespace {

// Splits a = quotient * b + remainder where whole terms of a are multiples of the monomial b. Nothing to split:
// quotient 0.
void split_multiples(const Index& a, const Index& b, Index& quotient, Index& remainder) {
  const bool constant_divisor = b.is_constant();
  const Index::Term divisor = constant_divisor ? Index::Term{{}, b.constant()} : b.terms()[0];
  auto as_index = [](const std::vector<AtomId>& atoms, int64_t c) {
    Index r(c);
    for (AtomId id : atoms) r = r * Index::from_atom(id);
    return r;
  };
  auto take = [&](const std::vector<AtomId>& atoms, int64_t coefficient) {
    std::vector<AtomId> rest = atoms;
    bool divides = coefficient % divisor.coefficient == 0;
    for (AtomId id : divisor.atoms) {
      auto it = std::find(rest.begin(), rest.end(), id);
      if (it == rest.end()) {
        divides = false;
        break;
      }
      rest.erase(it);
    }
    if (divides) {
      quotient += as_index(rest, coefficient / divisor.coefficient);
    } else {
      remainder += as_index(atoms, coefficient);
    }
  };
  for (const Index::Term& term : a.terms()) take(term.atoms, term.coefficient);
  if (a.constant() == 0) return;
  if (constant_divisor) {
    const int64_t q = floor_quotient(a.constant(), divisor.coefficient);
    quotient += Index(q);
    remainder += Index(a.constant() - q * divisor.coefficient);
  } else {
    remainder += Index(a.constant());
  }
}

// Whether a product is after another in an order that products with a third keep.
bool is_after(const Index::Term& a, const Index::Term& b) {
  return a.atoms.size() != b.atoms.size() ? a.atoms.size() > b.atoms.size() : a.atoms < b.atoms;
}
const Index::Term& leading_term(const Index& index) {
  const auto& terms = index.terms();
  return *std::max_element(terms.begin(), terms.end(), [](const auto& a, const auto& b) { return is_after(b, a); });
}

// a / b for polynomials, where nothing is left: (f*o + g*o) / (f + g) is o.
std::optional<Index> exact_quotient(Index a, const Index& b) {
  constexpr int kMaxSteps = 12;
  const Index::Term& lead = leading_term(b);
  Index divisor(lead.coefficient), quotient(0);
  for (AtomId id : lead.atoms) divisor = divisor * Index::from_atom(id);
  for (int step = 0; step < kMaxSteps && !a.terms().empty(); step++) {
    const Index::Term& next = leading_term(a);
    Index monomial(next.coefficient), part, rest;
    for (AtomId id : next.atoms) monomial = monomial * Index::from_atom(id);
    split_multiples(monomial, divisor, part, rest);
    if (rest != Index(0)) return std::nullopt;
    quotient += part;
    a = a - part * b;
  }
  return a == Index(0) ? std::optional(quotient) : std::nullopt;
}

Index division_atom(const Index& a, const Index& b) {
  std::string key = "d";
  append_key(key, a);
  append_key(key, b);
  return Index::from_atom(AtomTable::instance().intern(key, Atom{AtomKind::FloorDiv, "", a, b, 0, {}}));
}

}  // namespace

Index floor_div(const Index& a, const Index& b) {
  // What a size of 0 is put into has no value: conditions on it are undecided.
  if (b == Index(0)) return division_atom(a, b);
  if (b.is_constant()) {
    if (a.is_constant()) return Index(floor_quotient(a.constant(), b.constant()));
    if (b.constant() < 0) return floor_div(-a, -b);
    if (b.constant() == 1) return a;
  }
  if (a == Index(0)) return Index(0);
  if (a == b) return Index(1);
  const bool monomial = b.is_constant() || (b.constant() == 0 && b.terms().size() == 1);
  if (monomial) {
    Index quotient, remainder;
    split_multiples(a, b, quotient, remainder);
    if (remainder == Index(0)) return quotient;
    // A remainder that is a constant in [0, b) vanishes.
    if (b.is_constant() && remainder.is_constant() && remainder.constant() >= 0 && remainder.constant() < b.constant())
      return quotient;
    if (quotient != Index(0)) return quotient + floor_div(remainder, b);
  } else if (const auto quotient = exact_quotient(a, b)) {
    return *quotient;
  }
  return division_atom(a, b);
}
Index ceil_div(const Index& a, const Index& b) { return floor_div(a + b - Index(1), b); }
Index modulo(const Index& a, const Index& b) { return a - b * floor_div(a, b); }

// ---- traversal ----

namespace {

// Rebuilds an index with each atom replaced by map(id).
template <class F>
Index map_atoms(const Index& index, const F& map) {
  Index r(index.constant());
  for (const Index::Term& term : index.terms()) {
    Index product(term.coefficient);
    for (AtomId id : term.atoms) product = product * map(id);
    r += product;
  }
  return r;
}

}  // namespace

Index substitute(const Index& index, const Substitution& substitution) {
  if (index.is_constant() || substitution.empty()) return index;
  return map_atoms(index, [&](AtomId id) -> Index {
    const Atom& a = atom(id);
    switch (a.kind) {
      case AtomKind::Symbol: {
        auto it = substitution.find(id);
        return it == substitution.end() ? Index::from_atom(id) : it->second;
      }
      case AtomKind::FloorDiv: {
        const Index n = substitute(a.numerator, substitution), d = substitute(a.denominator, substitution);
        return n == a.numerator && d == a.denominator ? Index::from_atom(id) : floor_div(n, d);
      }
      case AtomKind::Load: {
        std::vector<Index> subscripts;
        for (const Index& s : a.subscripts) subscripts.push_back(substitute(s, substitution));
        return subscripts == a.subscripts ? Index::from_atom(id) : load_index(a.input, std::move(subscripts));
      }
    }
    return Index();
  });
}

void collect_symbols(const Index& index, std::set<AtomId>& out) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind == AtomKind::Symbol) out.insert(id);
      collect_symbols(a.numerator, out);
      collect_symbols(a.denominator, out);
      for (const Index& s : a.subscripts) collect_symbols(s, out);
    }
  }
}

bool has_load(const Index& index) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind == AtomKind::Load || has_load(a.numerator) || has_load(a.denominator)) return true;
    }
  }
  return false;
}

namespace {

std::optional<int64_t> evaluate_atom(AtomId id, const Environment& environment, const LoadFunction& load) {
  // Symbols first: what an atom is has to be looked up under a lock.
  if (const auto it = environment.find(id); it != environment.end()) return it->second;
  const Atom& a = atom(id);
  switch (a.kind) {
    case AtomKind::Symbol: return std::nullopt;
    case AtomKind::FloorDiv: {
      auto n = evaluate(a.numerator, environment, load), d = evaluate(a.denominator, environment, load);
      if (!n || !d || *d < 1) return std::nullopt;
      return floor_quotient(*n, *d);
    }
    case AtomKind::Load: {
      if (!load) return std::nullopt;
      std::vector<int64_t> subscripts;
      for (const Index& s : a.subscripts) {
        auto v = evaluate(s, environment, load);
        if (!v) return std::nullopt;
        subscripts.push_back(*v);
      }
      return load(a.input, subscripts);
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> evaluate(const Index& index, const Environment& environment, const LoadFunction& load) {
  int64_t sum = index.constant();
  for (const Index::Term& term : index.terms()) {
    int64_t product = term.coefficient;
    for (AtomId id : term.atoms) {
      auto v = evaluate_atom(id, environment, load);
      if (!v) return std::nullopt;
      product = checked_mul(product, *v);
    }
    sum = checked_add(sum, product);
  }
  return sum;
}

// ---- ranges ----

namespace {

std::optional<Range> range_of_atom(AtomId id, const Ranges& ranges) {
  const Atom& a = atom(id);
  if (auto it = ranges.find(id); it != ranges.end()) return it->second;
  if (a.kind == AtomKind::FloorDiv && a.denominator.is_constant() && a.denominator.constant() > 0) {
    auto n = range_of(a.numerator, ranges);
    if (!n) return std::nullopt;
    return Range{floor_quotient(n->low, a.denominator.constant()), floor_quotient(n->high, a.denominator.constant())};
  }
  return std::nullopt;
}

Range multiply(Range a, Range b) {
  const int64_t p[] = {checked_mul(a.low, b.low), checked_mul(a.low, b.high), checked_mul(a.high, b.low),
                       checked_mul(a.high, b.high)};
  return {*std::min_element(p, p + 4), *std::max_element(p, p + 4)};
}

}  // namespace

std::optional<Range> range_of(const Index& index, const Ranges& ranges) {
  Range sum{index.constant(), index.constant()};
  for (const Index::Term& term : index.terms()) {
    Range product{term.coefficient, term.coefficient};
    for (AtomId id : term.atoms) {
      auto r = range_of_atom(id, ranges);
      if (!r) return std::nullopt;
      product = multiply(product, *r);
    }
    sum = {checked_add(sum.low, product.low), checked_add(sum.high, product.high)};
  }
  return sum;
}

Index simplify(const Index& index, const Ranges& ranges) {
  if (index.is_constant()) return index;
  return map_atoms(index, [&](AtomId id) -> Index {
    const Atom& a = atom(id);
    if (a.kind == AtomKind::Symbol) {
      auto it = ranges.find(id);
      if (it != ranges.end() && it->second.low == it->second.high) return Index(it->second.low);
      return Index::from_atom(id);
    }
    if (a.kind == AtomKind::Load) {
      std::vector<Index> subscripts;
      for (const Index& s : a.subscripts) subscripts.push_back(simplify(s, ranges));
      return load_index(a.input, std::move(subscripts));
    }
    const Index n = simplify(a.numerator, ranges), d = simplify(a.denominator, ranges);
    if (d.is_constant() && d.constant() > 0) {
      auto r = range_of(n, ranges);
      if (r && floor_quotient(r->low, d.constant()) == floor_quotient(r->high, d.constant()))
        return Index(floor_quotient(r->low, d.constant()));
      // (16 q + r) div 16 with 0 <= r < 16 after multiples were split off by floor_div.
      const Index q = floor_div(n, d);
      if (auto single = q.as_atom(); !single && !q.is_constant()) {
        return map_atoms(q, [&](AtomId inner) -> Index {
          const Atom& f = atom(inner);
          if (f.kind != AtomKind::FloorDiv || !f.denominator.is_constant()) return Index::from_atom(inner);
          auto fr = range_of(f.numerator, ranges);
          const int64_t fd = f.denominator.constant();
          if (fr && floor_quotient(fr->low, fd) == floor_quotient(fr->high, fd))
            return Index(floor_quotient(fr->low, fd));
          return Index::from_atom(inner);
        });
      }
      return q;
    }
    return floor_div(n, d);
  });
}

// ---- text ----

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') s += '\\';
    s += c == '\n' ? "\\n" : std::string(1, c);
  }
  return s + "\"";
}

std::string name_text(std::string_view name) {
  static constexpr std::string_view kWords[] = {"_",   "graph", "input", "constant", "weight", "output", "return",
                                                "end", "true",  "false", "not",      "and",    "or"};
  const bool plain =
      !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_') &&
      name.find("...") == std::string_view::npos &&
      std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.'; });
  return plain && std::find(std::begin(kWords), std::end(kWords), name) == std::end(kWords) ? std::string(name)
                                                                                            : quoted(name);
}

namespace {

std::string atom_text(AtomId id) {
  const Atom& a = atom(id);
  switch (a.kind) {
    // Names of binders and the like begin with a sign that no text can spell: they are not quoted, for nobody reads
    // them.
    case AtomKind::Symbol: return !a.name.empty() && std::strchr("$@'", a.name[0]) ? a.name : name_text(a.name);
    case AtomKind::FloorDiv: {
      auto wrap = [](const Index& i) {
        const bool simple =
            i.is_constant() ? i.constant() >= 0 : i.as_atom() && atom(*i.as_atom()).kind == AtomKind::Symbol;
        return simple ? to_string(i) : "(" + to_string(i) + ")";
      };
      return "(" + wrap(a.numerator) + "//" + wrap(a.denominator) + ")";
    }
    case AtomKind::Load: {
      std::string s = "load" + std::to_string(a.input) + "[";
      for (size_t i = 0; i < a.subscripts.size(); i++) s += (i ? "," : "") + to_string(a.subscripts[i]);
      return s + "]";
    }
  }
  return "";
}

}  // namespace

// Terms are ordered by their text, not by atom ids, which depend on who interned first.
std::string to_string(const Index& index) {
  std::vector<std::pair<std::string, int64_t>> terms;
  for (const Index::Term& term : index.terms()) {
    std::vector<std::string> factors;
    for (AtomId id : term.atoms) factors.push_back(atom_text(id));
    std::sort(factors.begin(), factors.end());
    std::string text;
    for (const std::string& factor : factors) text += (text.empty() ? "" : "*") + factor;
    terms.emplace_back(std::move(text), term.coefficient);
  }
  std::sort(terms.begin(), terms.end(), [](const auto& a, const auto& b) {
    return (a.second < 0) != (b.second < 0) ? b.second < 0 : a.first < b.first;
  });
  std::string s;
  for (const auto& [text, coefficient] : terms) {
    if (!s.empty() || coefficient < 0) s += coefficient < 0 ? "-" : "+";
    const uint64_t magnitude =
        coefficient < 0 ? 0 - static_cast<uint64_t>(coefficient) : static_cast<uint64_t>(coefficient);
    s += (magnitude != 1 ? std::to_string(magnitude) + "*" : "") + text;
  }
  if (index.constant() != 0 || s.empty()) {
    if (index.constant() >= 0 && !s.empty()) s += "+";
    s += std::to_string(index.constant());
  }
  return s;
}

}  // namespace gopt
