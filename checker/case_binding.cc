#include "case_binding.h"

#include <algorithm>

namespace gopt::checker {
namespace {

bool holds(const std::vector<Cond>& all, const Cond& one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}
bool includes(const std::vector<Cond>& all, const std::vector<Cond>& some) {
  return std::all_of(some.begin(), some.end(), [&](const Cond& c) { return holds(all, c); });
}
std::vector<Cond> without(std::vector<Cond> some, const std::vector<Cond>& all) {
  std::erase_if(some, [&](const Cond& c) { return holds(all, c); });
  return some;
}

std::set<AtomId> symbols_in(const Index& index) {
  std::set<AtomId> symbols;
  collect_symbols(index, symbols);
  return symbols;
}

// The subscripts of a step: what bounds them, and the symbols that they are made of.
class Position {
 public:
  // Symbols of subscripts are none of these.
  Position(const std::set<AtomId>& taken, const std::vector<Cond>& hypotheses)
      : taken_(taken), hypotheses_(hypotheses) {}

  void add_axis(const Index& subscript, const Index& extent) {
    if (subscript == Index(0) && extent == Index(1)) return;
    const auto atom_id = subscript.as_atom();
    if (atom_id && is_free(*atom_id)) {
      take(*atom_id);
      allow(within(subscript, Index(0), extent));
      return;
    }
    if (!add_factors(subscript, extent)) throw Fault("the subscript " + to_string(subscript) + " is not any position");
  }
  const std::vector<Cond>& bounds() const { return bounds_; }
  bool speaks_of(const Cond& cond) const {
    std::set<AtomId> used;
    collect_symbols(cond, used);
    return std::any_of(used.begin(), used.end(), [&](AtomId id) { return symbols_.count(id) > 0; });
  }

 private:
  bool is_free(AtomId id) const {
    return atom(id).kind == AtomKind::Symbol && !taken_.count(id) && !symbols_.count(id);
  }
  void take(AtomId id) { symbols_.insert(id); }
  void allow(const Cond& cond) {
    for (const Cond& part : parts_of(cond)) bounds_.push_back(part);
  }

  // q * inner + r with q below outer, r below inner, where outer * inner is the extent: every position, once.
  bool add_factors(const Index& subscript, const Index& extent) {
    for (const Index::Term& last : subscript.terms()) {
      if (last.coefficient != 1 || last.atoms.size() != 1 || !is_free(last.atoms[0])) continue;
      const Index r = Index::from_atom(last.atoms[0]);
      for (const AtomId other : symbols_in(subscript - r)) {
        if (!is_free(other) || other == last.atoms[0]) continue;
        const Index q = Index::from_atom(other), inner = coefficient_of(subscript - r, other);
        if (!(q * inner + r == subscript) || symbols_in(inner).count(other)) continue;
        const auto outer = bound_of(other);
        if (!outer || !(*outer * inner == extent) || uses_free(inner) || uses_free(*outer)) continue;
        if (!is_size(inner) || !is_size(*outer)) continue;
        take(last.atoms[0]);
        take(other);
        allow(within(q, Index(0), *outer) && within(r, Index(0), inner));
        return true;
      }
    }
    return false;
  }
  bool uses_free(const Index& index) const {
    for (const AtomId id : symbols_in(index))
      if (is_free(id) || symbols_.count(id)) return true;
    return false;
  }
  // Put together of what is not negative: two negative factors have positions that no q and r are.
  bool is_size(const Index& index) const {
    return index.constant() >= 0 &&
           std::all_of(index.terms().begin(), index.terms().end(), [&](const Index::Term& term) {
             return term.coefficient >= 0 && std::all_of(term.atoms.begin(), term.atoms.end(), [&](AtomId id) {
                      return holds(hypotheses_, at_least(Index::from_atom(id), Index(0)));
                    });
           });
  }
  static Index coefficient_of(const Index& index, AtomId symbol) {
    Index sum;
    for (const Index::Term& term : index.terms()) {
      const auto at = std::find(term.atoms.begin(), term.atoms.end(), symbol);
      if (at == term.atoms.end()) continue;
      Index product = term.coefficient;
      for (auto it = term.atoms.begin(); it != term.atoms.end(); ++it)
        if (it != at) product = product * Index::from_atom(*it);
      sum += product;
    }
    return sum;
  }
  // What the hypotheses say that the symbol is below.
  std::optional<Index> bound_of(AtomId symbol) const {
    for (const Cond& h : hypotheses_) {
      if (h.kind() != CondKind::NonNegative) continue;
      const Index bound = h.index() + Index::from_atom(symbol) + Index(1);
      if (!symbols_in(bound).count(symbol)) return bound;
    }
    return std::nullopt;
  }

  const std::set<AtomId>& taken_;
  const std::vector<Cond>& hypotheses_;
  std::set<AtomId> symbols_;
  std::vector<Cond> bounds_;
};

class CaseBinder {
 public:
  CaseBinder(const LogCase& logged, const RewriteRule& rule) : logged_(logged) {
    restate(rule);
    symbols_ = symbols_of(bound_.rule);
    set_sides();
  }

  BoundCase run() {
    for (const OutputStep& step : logged_.outputs) bind_output(step);
    bind_requirements();
    return std::move(bound_);
  }

 private:
  void restate(const RewriteRule& rule) {
    bound_.rule = rule;
    if (logged_.kind == "prefix") {
      Shape prefix;
      for (const AtomId id : logged_.symbols) prefix.push_back(Index::from_atom(id));
      auto below = with_prefix(rule, prefix);
      if (!below) throw Fault(below.error().message);
      bound_.rule = *std::move(below);
    } else if (logged_.kind == "one") {
      for (const AtomId id : logged_.symbols) bound_.ones[id] = Index(1);
    } else if ((logged_.kind != "plain" && logged_.kind != "ranks") || !logged_.symbols.empty()) {
      throw Fault("there is no case '" + logged_.kind + "'");
    }
  }

  void set_sides() {
    auto left = side_by_definitions(bound_.rule.left, bound_.ones);
    auto right = side_by_definitions(bound_.rule.right, bound_.ones);
    if (!left || !right) throw Fault((left ? right : left).error().message);
    left_ = *std::move(left);
    right_ = *std::move(right);
    const Cond said = substitute(domain_of(bound_.rule) && bound_.rule.condition, bound_.ones);
    given_ = said;
    for (const Requirement& r : left_.requirements) {
      given_ = given_ && r.cond;
      bound_.has_broadcast = bound_.has_broadcast || (r.from_broadcast && !includes(parts_of(said), parts_of(r.cond)));
    }
  }

  void bind_output(const OutputStep& step) {
    const std::string name = "output " + std::to_string(step.output);
    if (step.output >= left_.outputs.size() || step.output >= right_.outputs.size())
      throw Fault("the rule has no " + name);
    const TensorExpr &left = left_.outputs[step.output], &right = right_.outputs[step.output];
    std::set<AtomId> taken = symbols_;
    for (const auto& [symbol, value] : step.values) {
      if (!symbols_.count(symbol) || bound_.ones.count(symbol)) throw Fault(name + ": a value of what is no size");
      collect_symbols(value, taken);
      for (const AtomId used : symbols_in(value))
        if (step.values.count(used)) throw Fault(name + ": a value that is written by another one");
    }
    if (step.subscripts.size() != left.shape.size()) throw Fault(name + " is of another rank");
    Position position(taken, step.hypotheses);
    for (size_t axis = 0; axis < left.shape.size(); axis++)
      position.add_axis(step.subscripts[axis], substitute(left.shape[axis], step.values));
    if (step.left && !(step.left == substitute(left.at(step.subscripts), step.values)))
      throw Fault(name + ": the left side is not what the operators' definitions say");
    if (step.right && !(step.right == substitute(right.at(step.subscripts), step.values)))
      throw Fault(name + ": the right side is not what the operators' definitions say");
    bind_hypotheses(step, position, name);
  }

  // Positions may be bounded by the output, or by one of the rule's boxes.
  void bind_hypotheses(const OutputStep& step, const Position& position, const std::string& name) {
    std::vector<Cond> allowed = parts_of(substitute(given_, step.values));
    allowed.insert(allowed.end(), position.bounds().begin(), position.bounds().end());
    const std::vector<std::vector<Cond>> boxes = bounds_of_boxes(step);
    for (size_t box = 0; box < boxes.size(); box++) {
      std::vector<Cond> more = without(without(step.hypotheses, allowed), boxes[box]);
      if (std::any_of(more.begin(), more.end(), [&](const Cond& c) { return position.speaks_of(c); })) continue;
      bound_.outputs.push_back({step.output, box, std::move(more), step.values});
      return;
    }
    throw Fault(name + " is shown for some of its positions alone");
  }
  std::vector<std::vector<Cond>> bounds_of_boxes(const OutputStep& step) const {
    const RewriteRule& rule = bound_.rule;
    if (!rule.is_partial() || rule.regions[step.output].empty()) return {{}};
    std::vector<std::vector<Cond>> all;
    for (const Box& box : rule.regions[step.output]) {
      Cond bounds;
      for (size_t axis = 0; axis < box.size(); axis++)
        bounds = bounds && within(step.subscripts[axis], substitute(box[axis].low, step.values),
                                  substitute(box[axis].high, step.values));
      all.push_back(parts_of(bounds));
    }
    return all;
  }

  void bind_requirements() {
    for (const Requirement& r : right_.requirements) require(r.what, r.cond);
    for (size_t o = 0; o < left_.outputs.size(); o++) {
      const Shape &left = left_.outputs[o].shape, &right = right_.outputs[o].shape;
      if (left.size() != right.size()) throw Fault("output " + std::to_string(o) + " is of two ranks");
      for (size_t axis = 0; axis < left.size(); axis++)
        require("the extents of output " + std::to_string(o) + " agree on axis " + std::to_string(axis),
                equal(left[axis], right[axis]));
    }
  }
  void require(const std::string& what, const Cond& goal) {
    const std::vector<Cond> given = parts_of(given_);
    if (includes(given, parts_of(goal))) return;
    BoundRequirement bound{what, {}};
    for (const RequiredStep& step : logged_.required)
      if (step.goal == goal) bound.under.push_back(without(step.hypotheses, given));
    if (bound.under.empty()) throw Fault("nothing is said of what the right side requires: " + what);
    bound_.requirements.push_back(std::move(bound));
  }

  const LogCase& logged_;
  BoundCase bound_;
  std::set<AtomId> symbols_;
  Side left_, right_;
  Cond given_;
};

}  // namespace

bool BoundRequirement::holds_everywhere() const {
  return std::any_of(under.begin(), under.end(), [](const std::vector<Cond>& more) { return more.empty(); });
}

BoundCase bind_case(const LogCase& logged, const RewriteRule& rule) { return CaseBinder(logged, rule).run(); }

}  // namespace gopt::checker
