#include "instance.h"

#include <algorithm>

#include "gopt/scheme.h"
#include "random_tensor.h"

namespace gopt {
namespace {

// Lists of one or two axes, whatever permutations and subsets of them.
RankAssignment random_ranks(std::mt19937_64& random, const Scheme& scheme) {
  std::map<std::string, int> lengths, sizes;
  for (const std::string& list : scheme.lists) {
    const std::vector<std::string> subsets = scheme.subsets_of(list);
    lengths[list] = static_cast<int>(1 + random() % 2 + subsets.size());
    for (const std::string& subset : subsets) sizes[subset] = 1;
  }
  RankAssignment ranks = plain_ranks(scheme, lengths, sizes);
  for (const AxisSymbol& symbol : scheme.symbols)
    if (symbol.kind == AxisSymbolKind::Permutation)
      std::shuffle(ranks.places.at(symbol.name).begin(), ranks.places.at(symbol.name).end(), random);
  return ranks;
}

std::set<AtomId> symbols_of(const RewriteRule& rule) {
  std::set<AtomId> symbols;
  for (const RuleVariable& variable : rule.variables)
    for (const Index& extent : *variable.type.shape) collect_symbols(extent, symbols);
  for (const NodePtr& node : rule.left.nodes())
    for (const auto& [name, value] : node->attributes) collect_symbols(value, symbols);
  return symbols;
}

AttributeValue numbers_in(AttributeValue value, const Substitution& numbers) {
  if (auto* index = std::get_if<Index>(&value)) *index = substitute(*index, numbers);
  if (auto* list = std::get_if<std::vector<Index>>(&value))
    for (Index& index : *list) index = substitute(index, numbers);
  if (std::holds_alternative<FloatVariable>(value)) return 0.25;
  return value;
}

// Positive, so that roots, logarithms and quotients are defined.
Tensor random_weight(std::mt19937_64& random, const TensorType& type) {
  return random_tensor(random, type.element, type.static_shape(), 0.5, 1.5);
}

class InstanceMaker {
 public:
  InstanceMaker(std::mt19937_64& random, const RewriteRule& rule, const Substitution& numbers)
      : random_(random), rule_(rule), numbers_(numbers) {}

  Result<Graph> make() {
    for (const RuleVariable& variable : rule_.variables) GOPT_RETURN_IF_ERROR(add_variable(variable));
    for (const NodePtr& node : rule_.left.nodes()) GOPT_RETURN_IF_ERROR(add(*node));
    int count = 0;
    for (const GraphOutput& output : rule_.left.outputs())
      builder_.output("out" + std::to_string(count++), Value{made_.at(output.value.node.get()), output.value.output});
    return builder_.build();
  }

 private:
  Status add_variable(const RuleVariable& variable) {
    Shape shape;
    for (const Index& symbolic : *variable.type.shape) {
      const Index extent = substitute(symbolic, numbers_);
      if (!extent.is_constant() || extent.constant() < 1 || extent.constant() > 12) return Error{"a bad extent"};
      shape.push_back(extent);
    }
    const TensorType type{variable.type.element, std::move(shape)};
    const bool is_weight = variable.kind == VariableKind::Weight;
    values_[variable.name] =
        is_weight ? builder_.constant(random_weight(random_, type)) : builder_.input(variable.name, type);
    return Unit{};
  }

  Status add(const Node& node) {
    if (node.is(OpKind::Input)) {
      made_[&node] = values_.at(node.name).node;
      return Unit{};
    }
    if (node.is(OpKind::Constant)) {
      made_[&node] = builder_.constant(node.tensor).node;
      return Unit{};
    }
    std::vector<Value> inputs;
    for (const Value& input : node.inputs)
      inputs.push_back(input ? Value{made_.at(input.node.get()), input.output} : input);
    Attributes attributes;
    for (const auto& [name, value] : node.attributes) attributes.emplace(name, numbers_in(value, numbers_));
    GOPT_ASSIGN_OR_RETURN(made_[&node],
                          builder_.add(node.op, inputs, attributes, static_cast<int>(node.outputs.size())));
    for (const TensorType& type : made_[&node]->outputs)
      if (!type.has_static_shape() || element_count(type.static_shape()) < 1) return Error{"an empty value"};
    return Unit{};
  }

  std::mt19937_64& random_;
  const RewriteRule& rule_;
  const Substitution& numbers_;
  GraphBuilder builder_;
  std::map<std::string, Value> values_;
  std::map<const Node*, NodePtr> made_;
};

}  // namespace

std::optional<Graph> random_instance(std::mt19937_64& random, const RewriteRule& rule) {
  const auto closed = rule.scheme ? instance_of(rule, random_ranks(random, *rule.scheme)) : with_prefix(rule, Shape{2});
  if (!closed.ok()) return std::nullopt;
  const std::set<AtomId> symbols = symbols_of(*closed);
  for (int attempt = 0; attempt < 3000; attempt++) {
    Substitution numbers;
    for (AtomId id : symbols) numbers[id] = static_cast<int64_t>(random() % (1 + attempt % 5));
    if (!substitute(closed->condition, numbers).is_true()) continue;
    if (auto graph = InstanceMaker(random, *closed, numbers).make(); graph.ok()) return *graph;
  }
  return std::nullopt;
}

}  // namespace gopt
