// Wrong rules by small changes of right ones: what the audit of the verifier is made of.
#include <algorithm>
#include <map>
#include <random>

#include "gopt/verifier.h"

namespace gopt::verifier {
namespace {

using Random = std::mt19937_64;

// Operators that take the same inputs and attributes.
const std::vector<std::vector<OpKind>>& exchangeable_ops() {
  static const std::vector<std::vector<OpKind>> groups{
      {OpKind::Add, OpKind::Sub, OpKind::Mul, OpKind::Max, OpKind::Min, OpKind::Div},
      {OpKind::Relu, OpKind::Neg, OpKind::Identity, OpKind::Abs, OpKind::Exp, OpKind::Sigmoid, OpKind::Tanh,
       OpKind::Sin, OpKind::Cos, OpKind::Sqrt},
      {OpKind::ReduceSum, OpKind::ReduceMax, OpKind::ReduceMean, OpKind::ReduceMin},
      {OpKind::Softmax, OpKind::LogSoftmax},
  };
  return groups;
}

std::optional<OpKind> another_op(OpKind kind, Random& random) {
  for (const std::vector<OpKind>& group : exchangeable_ops()) {
    if (std::find(group.begin(), group.end(), kind) == group.end()) continue;
    const OpKind other = group[random() % group.size()];
    if (other != kind) return other;
  }
  return std::nullopt;
}

Index nudged(const Index& index, Random& random) { return index + Index(random() % 2 == 0 ? 1 : -1); }

// Changes one attribute; false where there is none that can be.
bool mutate_attribute(Attributes& attributes, Random& random) {
  if (attributes.empty()) return false;
  auto it = std::next(attributes.begin(), static_cast<ptrdiff_t>(random() % attributes.size()));
  if (auto* index = std::get_if<Index>(&it->second)) {
    *index = nudged(*index, random);
    return true;
  }
  if (auto* list = std::get_if<std::vector<Index>>(&it->second)) {
    if (list->empty()) return false;
    const size_t i = random() % list->size(), j = random() % list->size();
    if (random() % 2 == 0 && (*list)[i] != (*list)[j]) {
      std::swap((*list)[i], (*list)[j]);
    } else {
      (*list)[i] = nudged((*list)[i], random);
    }
    return true;
  }
  if (auto* real = std::get_if<double>(&it->second)) {
    *real = *real == 0 ? 1 : *real * 2;
    return true;
  }
  return false;
}

struct MutableNode {
  OpKind op;
  std::vector<Value> inputs;
  Attributes attributes;
};

// Changes operator, attribute or inputs of one node. `earlier` are values that it may read.
bool mutate_node(MutableNode& node, const std::vector<Value>& earlier, Random& random) {
  switch (random() % 4) {
    case 0: {
      const auto other = another_op(node.op, random);
      if (other) node.op = *other;
      return other.has_value();
    }
    case 1: return mutate_attribute(node.attributes, random);
    case 2: {
      if (node.inputs.size() < 2) return false;
      const size_t i = random() % node.inputs.size(), j = random() % node.inputs.size();
      if (node.inputs[i] == node.inputs[j]) return false;
      std::swap(node.inputs[i], node.inputs[j]);
      return true;
    }
    default: {
      const size_t i = random() % node.inputs.size();
      const Value& other = earlier[random() % earlier.size()];
      if (!node.inputs[i] || node.inputs[i] == other ||
          other.type().shape->size() != node.inputs[i].type().shape->size())
        return false;
      node.inputs[i] = other;
      return true;
    }
  }
}

// Moves one bound of one box by one or two, or to the end of its axis.
bool mutate_region(RewriteRule& rule, Random& random) {
  struct Bound {
    Index* bound;
    Index end;
  };
  std::vector<Bound> bounds;
  for (size_t o = 0; o < rule.regions.size(); o++) {
    const Shape& shape = *rule.left.outputs()[o].value.type().shape;
    for (Box& box : rule.regions[o])
      for (size_t axis = 0; axis < box.size(); axis++) {
        if (box[axis].low != Index(0)) bounds.push_back({&box[axis].low, Index(0)});
        if (box[axis].high != shape[axis]) bounds.push_back({&box[axis].high, shape[axis]});
      }
  }
  if (bounds.empty()) return false;
  const Bound& chosen = bounds[random() % bounds.size()];
  constexpr int64_t kMoves[] = {-2, -1, 1, 2};
  const size_t move = random() % (std::size(kMoves) + 1);
  *chosen.bound = move == std::size(kMoves) ? chosen.end : *chosen.bound + Index(kMoves[move]);
  return true;
}

}  // namespace

}  // namespace gopt::verifier

namespace gopt {

using namespace verifier;

std::optional<RewriteRule> mutate_correction(const RewriteRule& partial, uint64_t seed) {
  Random random(seed);
  RewriteRule wrong = partial;
  const bool is_of_region = random() % 3 > 0;
  if (is_of_region && !mutate_region(wrong, random)) return std::nullopt;
  auto full = corrected(wrong);
  if (!full) return std::nullopt;
  return is_of_region ? std::optional(*std::move(full)) : mutate_right_side(*full, random());
}

std::optional<RewriteRule> mutate_right_side(const RewriteRule& rule, uint64_t seed) {
  Random random(seed);
  const Graph& side = rule.right;
  std::vector<size_t> candidates;
  for (size_t i = 0; i < side.nodes().size(); i++)
    if (!side.nodes()[i]->inputs.empty()) candidates.push_back(i);
  if (candidates.empty()) return std::nullopt;
  const size_t target = candidates[random() % candidates.size()];

  GraphBuilder builder;
  std::map<Value, Value> values;
  for (const Value& input : side.inputs()) values[input] = builder.input(input.node->name, input.type());
  for (size_t i = 0; i < side.nodes().size(); i++) {
    const NodePtr& node = side.nodes()[i];
    if (node->is(OpKind::Input)) continue;
    if (node->is(OpKind::Constant)) {
      values[{node, 0}] = builder.constant(node->tensor, node->name);
      continue;
    }
    MutableNode made{node->op, {}, node->attributes};
    for (const Value& v : node->inputs) made.inputs.push_back(v ? values.at(v) : v);
    if (i == target) {
      std::vector<Value> earlier;
      for (const auto& [old, value] : values) earlier.push_back(value);
      // The map is ordered by address, which differs from run to run.
      std::sort(earlier.begin(), earlier.end(), [](const Value& a, const Value& b) {
        return std::pair(a.node->hash, a.output) < std::pair(b.node->hash, b.output);
      });
      if (!mutate_node(made, earlier, random)) return std::nullopt;
    }
    const auto added = builder.add(made.op, made.inputs, made.attributes, static_cast<int>(node->outputs.size()));
    if (!added) return std::nullopt;
    for (int k = 0; k < static_cast<int>(node->outputs.size()); k++) values[{node, k}] = {*added, k};
  }
  for (const GraphOutput& output : side.outputs()) builder.output(output.name, values.at(output.value));
  RewriteRule mutant = rule;
  mutant.scheme = nullptr;
  mutant.right = builder.build();
  mutant.proof.reset();
  if (!check_rule(mutant) || mutant.right.hash() == rule.right.hash()) return std::nullopt;
  return mutant;
}

}  // namespace gopt
