#include "assignments.h"

#include <algorithm>

namespace gopt::checker {
namespace {

constexpr int64_t kInfinite = int64_t{1} << 40;

struct Interval {
  int64_t low = -kInfinite, high = kInfinite;
  bool is_bounded() const { return low > -kInfinite && high < kInfinite; }
};
using Intervals = std::map<std::string, Interval>;

int64_t clamped(__int128 value) {
  if (value > kInfinite) return kInfinite;
  if (value < -kInfinite) return -kInfinite;
  return static_cast<int64_t>(value);
}
Interval times(const Interval& a, const Interval& b) {
  const __int128 corners[] = {static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
                              static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  const auto [low, high] = std::minmax_element(std::begin(corners), std::end(corners));
  return {clamped(*low), clamped(*high)};
}
int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

Interval interval_of(const Poly& poly, const Values& values, const Intervals& open);

Interval interval_of(const AtomNode& atom, const Values& values, const Intervals& open) {
  if (atom.kind == AtomNode::Kind::Symbol) {
    if (auto it = values.find(atom.text); it != values.end()) return {it->second, it->second};
    auto it = open.find(atom.text);
    return it == open.end() ? Interval{} : it->second;
  }
  if (atom.kind == AtomNode::Kind::Load) return {};
  const Interval a = interval_of(atom.parts[0], values, open), b = interval_of(atom.parts[1], values, open);
  if (b.low != b.high || b.low < 1) return {};
  return {a.low == -kInfinite ? -kInfinite : floor_divide(a.low, b.low),
          a.high == kInfinite ? kInfinite : floor_divide(a.high, b.low)};
}

Interval interval_of(const Monomial& monomial, int64_t c, const Values& values, const Intervals& open) {
  Interval r{c, c};
  for (const AtomPtr& a : monomial) r = times(r, interval_of(*a, values, open));
  return r;
}

Interval interval_of(const Poly& poly, const Values& values, const Intervals& open) {
  __int128 low = 0, high = 0;
  for (const auto& [monomial, c] : poly.terms()) {
    const Interval i = interval_of(monomial, c, values, open);
    low = i.low == -kInfinite || low == -kInfinite ? -kInfinite : low + i.low;
    high = i.high == kInfinite || high == kInfinite ? kInfinite : high + i.high;
  }
  return {clamped(low), clamped(high)};
}

// What a literal "poly >= 0" says of the intervals of open symbols, one monomial at a time.
class Narrowing {
 public:
  Narrowing(const Values& values, Intervals& open) : values_(values), open_(open) {}

  // False where an interval is empty.
  bool run(const std::vector<Condition>& literals) {
    constexpr int kRounds = 12;
    changed_ = true;
    for (int round = 0; changed_ && possible_ && round < kRounds; round++) {
      changed_ = false;
      for (const Condition& literal : literals)
        if (literal.kind == Condition::Kind::AtLeastZero) narrow(literal.poly, 0);
    }
    return possible_;
  }

 private:
  void narrow(const Poly& poly, int depth) {
    for (const auto& [monomial, c] : poly.terms()) {
      __int128 rest = 0;  // the most that the other monomials can be
      for (const auto& [other, d] : poly.terms()) {
        if (&other == &monomial) continue;
        const Interval i = interval_of(other, d, values_, open_);
        rest = i.high == kInfinite || rest == kInfinite ? kInfinite : rest + i.high;
      }
      if (rest < kInfinite) narrow(monomial, c, clamped(rest), depth);
    }
  }

  // monomial * c >= -most
  void narrow(const Monomial& monomial, int64_t c, int64_t most, int depth) {
    const AtomNode* sole = nullptr;
    for (const AtomPtr& a : monomial) {
      const Interval i = interval_of(*a, values_, open_);
      const bool is_open = a->kind == AtomNode::Kind::Symbol ? open_.count(a->text) > 0 : i.low != i.high;
      if (is_open && sole) return;
      if (is_open)
        sole = a.get();
      else if (i.low == i.high)
        c = clamped(static_cast<__int128>(c) * i.low);
      else
        return;
    }
    if (!sole || c == 0) return;
    if (sole->kind == AtomNode::Kind::Symbol) return narrow(sole->text, c, most);
    constexpr int kMaxDepth = 4;
    if (sole->kind != AtomNode::Kind::Quotient || depth >= kMaxDepth) return;
    // floor(a / b) >= m is a - b m >= 0; floor(a / b) <= m is b m + b - 1 - a >= 0.
    const Poly &a = sole->parts[0], &b = sole->parts[1];
    if (c > 0) narrow(a - b * Poly(-floor_divide(most, c)), depth + 1);
    if (c < 0) narrow(b * Poly(floor_divide(most, -c)) + b - Poly(1) - a, depth + 1);
  }

  void narrow(const std::string& symbol, int64_t factor, int64_t most) {
    Interval& own = open_.at(symbol);
    if (factor > 0 && -floor_divide(most, factor) > own.low) {
      own.low = -floor_divide(most, factor);
      changed_ = true;
    }
    if (factor < 0 && floor_divide(most, -factor) < own.high) {
      own.high = floor_divide(most, -factor);
      changed_ = true;
    }
    possible_ = possible_ && own.low <= own.high;
  }

  const Values& values_;
  Intervals& open_;
  bool changed_ = false, possible_ = true;
};

bool propagate(const std::vector<Condition>& literals, const Values& values, Intervals& open) {
  return Narrowing(values, open).run(literals);
}

class AssignmentEnumerator {
 public:
  AssignmentEnumerator(const Condition& guard, Values& values, uint64_t seed, int64_t limit,
                       const std::function<void()>& visit)
      : guard_(guard),
        literals_(guard.conjuncts()),
        values_(values),
        seed_(seed),
        limit_(limit),
        left_(limit),
        visit_(visit) {}

  void run(Intervals open) {
    if (!propagate(literals_, values_, open)) return;
    if (open.empty()) {
      if (left_-- <= 0) throw BudgetSpent("assignments of a sum", limit_);
      if (holds(guard_, values_, seed_)) visit_();
      return;
    }
    auto best = open.begin();
    for (auto it = open.begin(); it != open.end(); ++it)
      if (it->second.high - it->second.low < best->second.high - best->second.low) best = it;
    const auto [name, interval] = *best;
    if (!interval.is_bounded()) throw Fault("the guard of a sum leaves " + name + " without bounds");
    open.erase(best);
    for (int64_t v = interval.low; v <= interval.high; v++) {
      if (left_-- <= 0) throw BudgetSpent("assignments of a sum", limit_);
      values_[name] = v;
      run(open);
    }
    values_.erase(name);
  }

 private:
  const Condition& guard_;
  std::vector<Condition> literals_;
  Values& values_;
  uint64_t seed_;
  const int64_t limit_;
  int64_t left_;
  const std::function<void()>& visit_;
};

}  // namespace

int64_t loaded_integer(uint64_t seed, int input, const std::vector<int64_t>& subscripts) {
  uint64_t h = seed ^ (0x9e3779b97f4a7c15ULL * static_cast<uint64_t>(input + 1));
  for (int64_t s : subscripts) h = (h ^ static_cast<uint64_t>(s + 77)) * 0xbf58476d1ce4e5b9ULL;
  return static_cast<int64_t>((h >> 33) % 3);
}

int64_t value_of(const Poly& poly, const Values& values, uint64_t seed) {
  __int128 sum = 0;
  for (const auto& [monomial, c] : poly.terms()) {
    __int128 product = c;
    for (const AtomPtr& a : monomial) {
      int64_t value = 0;
      if (a->kind == AtomNode::Kind::Symbol) {
        auto it = values.find(a->text);
        if (it == values.end()) throw Fault("symbol " + a->text + " has no value");
        value = it->second;
      } else {
        std::vector<int64_t> parts;
        for (const Poly& p : a->parts) parts.push_back(value_of(p, values, seed));
        if (a->kind == AtomNode::Kind::Load) {
          value = loaded_integer(seed, a->input, parts);
        } else {
          if (parts[1] < 1) throw Fault("a divisor of an index is not positive");
          value = floor_divide(parts[0], parts[1]);
        }
      }
      product *= value;
      if (product > kInfinite || product < -kInfinite) throw Fault("an index is too large");
    }
    sum += product;
  }
  return clamped(sum);
}

bool holds(const Condition& condition, const Values& values, uint64_t seed) {
  switch (condition.kind) {
    case Condition::Kind::True: return true;
    case Condition::Kind::False: return false;
    case Condition::Kind::AtLeastZero: return value_of(condition.poly, values, seed) >= 0;
    case Condition::Kind::And:
      return std::all_of(condition.parts.begin(), condition.parts.end(),
                         [&](const Condition& c) { return holds(c, values, seed); });
    case Condition::Kind::Or:
      return std::any_of(condition.parts.begin(), condition.parts.end(),
                         [&](const Condition& c) { return holds(c, values, seed); });
  }
  return false;
}

void for_each_assignment(const std::vector<std::string>& binders, const Condition& guard, Values& values, uint64_t seed,
                         int64_t limit, const std::function<void()>& visit) {
  Intervals open;
  Values hidden;  // an outer symbol of the same name
  for (const std::string& b : binders) {
    open[b] = {};
    if (auto it = values.find(b); it != values.end()) {
      hidden.insert(*it);
      values.erase(it);
    }
  }
  AssignmentEnumerator(guard, values, seed, limit, visit).run(open);
  for (const auto& [name, value] : hidden) values[name] = value;
}

bool draw_assignment(const std::set<std::string>& symbols, const Condition& condition, std::mt19937_64& random,
                     Values& values, uint64_t seed) {
  constexpr int kTries = 40;
  const std::vector<Condition> literals = condition.conjuncts();
  for (int attempt = 0; attempt < kTries; attempt++) {
    Intervals open;
    for (const std::string& s : symbols) open[s] = {};
    values.clear();
    const auto span = static_cast<int64_t>(1 + random() % 4);
    std::vector<std::string> order(symbols.begin(), symbols.end());
    std::shuffle(order.begin(), order.end(), random);
    bool possible = true;
    for (const std::string& name : order) {
      possible = propagate(literals, values, open);
      if (!possible) break;
      const Interval i = open.at(name);
      const int64_t low = i.low > -kInfinite ? i.low : std::min<int64_t>(i.high, 0);
      const int64_t high = std::min(i.high, low + span);
      values[name] = low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
      open.erase(name);
    }
    try {
      if (possible && holds(condition, values, seed)) return true;
    } catch (const Fault&) {
      continue;  // a division without meaning at these values
    }
  }
  return false;
}

}  // namespace gopt::checker
