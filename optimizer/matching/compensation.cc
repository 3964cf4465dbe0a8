#include "matching/compensation.h"

#include <algorithm>
#include <array>
#include <optional>

namespace gopt::optimizer {
namespace {

struct SignedValue {
  Value value;
  int sign = 1;
};

SignedValue without_negations(SignedValue v) {
  while (v.value.node->is(OpKind::Neg)) v = {v.value.node->inputs[0], -v.sign};
  return v;
}

bool is_sum(const Node& node) {
  return (node.is(OpKind::Add) || node.is(OpKind::Sub)) && is_floating(node.outputs[0].element);
}

std::array<SignedValue, 2> terms_of(const Node& sum) {
  return {without_negations({sum.inputs[0], 1}), without_negations({sum.inputs[1], sum.is(OpKind::Sub) ? -1 : 1})};
}

class Finder {
 public:
  explicit Finder(const Graph& graph) : graph_(graph), found_(graph.nodes().size()) {}

  std::vector<bool> run() {
    for (const NodePtr& node : graph_.nodes())
      if (is_sum(*node) || node->is(OpKind::Mul)) look_at(node);
    // Where what was measured and what was put back come together again: the next sum of Kahan's.
    for (const NodePtr& node : graph_.nodes())
      if (is_sum(*node) && is_part(node->inputs[0]) && is_part(node->inputs[1])) is_found(node) = true;
    return std::move(found_);
  }

 private:
  std::vector<bool>::reference is_found(const NodePtr& node) {
    return found_[static_cast<uint32_t>(graph_.id_of(node))];
  }

  bool is_part(const Value& v) { return is_found(without_negations({v, 1}).value.node); }

  template <class F>
  void for_users(const NodePtr& node, const F& visit) {
    for (const NodeId id : graph_.users()[static_cast<uint32_t>(graph_.id_of(node))]) visit(graph_.node(id));
  }

  // The other term of a sum, with signs such that the value's own is 1; nothing where the value is no term, or both.
  static std::optional<SignedValue> other_term(const Node& sum, const Value& value) {
    const auto terms = terms_of(sum);
    const bool is_first = terms[0].value == value, is_second = terms[1].value == value;
    if (is_first == is_second) return std::nullopt;
    const SignedValue &own = terms[is_first ? 0 : 1], &other = terms[is_first ? 1 : 0];
    return SignedValue{other.value, other.sign * own.sign};
  }

  void look_at(const NodePtr& node) {
    const Value sum{node, 0};
    const bool is_product = node->is(OpKind::Mul);
    std::vector<SignedValue> terms;
    if (is_product)
      terms = {without_negations({node->inputs[0], 1}), without_negations({node->inputs[1], 1})};
    else
      for (const SignedValue& term : terms_of(*node)) terms.push_back(term);
    std::vector<Value> near{sum, terms[0].value, terms[1].value}, measured;
    for_users(node, [&](const NodePtr& user) {
      const auto other = is_sum(*user) ? other_term(*user, sum) : std::nullopt;
      if (!other) return;
      const bool takes_away = std::any_of(terms.begin(), terms.end(), [&](const SignedValue& term) {
        return other->value == term.value && (is_product || other->sign == -term.sign);
      });
      if (takes_away) measured.push_back({user, 0});
    });
    if (measured.empty()) return;
    follow(near, measured);
    // x w + x is no measure of a product; c x - (c x - x) is.
    const bool is_split = std::any_of(measured.begin(), measured.end(), [&](const Value& v) {
      return is_sum(*v.node) && other_term(*v.node, sum).has_value() && v.node != measured.front().node;
    });
    if (is_product && !is_split) return;
    is_found(node) = true;
    for (const Value& v : measured) {
      is_found(v.node) = true;
      for_users(v.node, [&](const NodePtr& user) {
        if (is_sum(*user)) is_found(user) = true;
      });
    }
  }

  // Sums and negations of what was measured and of what it was measured by.
  void follow(const std::vector<Value>& near, std::vector<Value>& measured) {
    const auto is_one = [](const std::vector<Value>& values, const Value& v) {
      return std::find(values.begin(), values.end(), v) != values.end();
    };
    for (size_t i = 0; i < measured.size(); i++) {
      const NodePtr from = measured[i].node;
      for_users(from, [&](const NodePtr& user) {
        if (!(is_sum(*user) || user->is(OpKind::Neg)) || is_one(measured, {user, 0})) return;
        const bool is_own = std::all_of(user->inputs.begin(), user->inputs.end(), [&](const Value& v) {
          return is_one(measured, v) || is_one(near, v) || is_one(near, without_negations({v, 1}).value);
        });
        if (is_own) measured.push_back({user, 0});
      });
    }
  }

  const Graph& graph_;
  std::vector<bool> found_;
};

}  // namespace

std::vector<bool> compensated_nodes(const Graph& graph) { return Finder(graph).run(); }

}  // namespace gopt::optimizer
