#include "checked_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "gopt/with_extents.h"

namespace gopt::driver {
namespace {

bool is_cut(const Node& node) { return node.is(OpKind::Opaque) && !node.is_whole(); }
bool is_drawable(const TensorType& type) { return is_computable(type.element) && type.has_static_shape(); }
bool runs(const Graph& graph, size_t at) {
  const Node& node = *graph.nodes()[at];
  return !node.is(OpKind::Input) && !node.is(OpKind::Constant) &&
         !graph.depends_on_weights_only(NodeId{static_cast<uint32_t>(at)});
}

std::string name_of_cut(const OpaqueOp& op, int number) { return fmt::format("{} {}", op.op_type, number); }

// Outputs of one form by what they are: an output of the model, or an input of a node that is cut out.
using Key = std::pair<const OpaqueOp*, std::string>;

// One graph without the nodes that are cut out.
class Cutter {
 public:
  // `numbers`: of the original's nodes that are cut out, so that both forms name alike what these give. `unfit`: takes
  // operators that the extents do not fit, which are left out then; null: they are an error.
  Cutter(const Graph& graph, const Substitution& extents, const std::map<const OpaqueOp*, int>& numbers,
         std::set<std::string>* unfit)
      : graph_(graph), extents_(extents), numbers_(numbers), unfit_(unfit) {}

  Status run() {
    builder_.set_broadcast_unknown(true);
    for (const Value& input : graph_.inputs()) {
      const TensorType type = with_extents(input.type(), extents_);
      if (is_drawable(type)) done_[input] = builder_.input(input.node->name, type);
    }
    for (const NodePtr& node : graph_.nodes()) {
      if (node->is(OpKind::Constant)) done_[{node, 0}] = {node, 0};
      if (node->is(OpKind::Constant) || node->is(OpKind::Input)) continue;
      if (is_cut(*node))
        GOPT_RETURN_IF_ERROR(cut(node));
      else
        GOPT_RETURN_IF_ERROR(keep(node));
    }
    for (const GraphOutput& output : graph_.outputs()) add_output({nullptr, output.name}, output.value);
    return Unit{};
  }

  std::map<Key, Value> outputs;
  std::vector<Key> order;

  Graph build(const std::vector<Key>& keys) {
    for (const Key& key : keys) builder_.output(key.second, outputs.at(key));
    return builder_.build();
  }
  // Operators that the outputs depend on, as the graph has them.
  int count_needed(const Graph& built) const {
    int count = 0;
    for (size_t at = 0; at < graph_.nodes().size(); at++) {
      const auto made = done_.find({graph_.nodes()[at], 0});
      count +=
          runs(graph_, at) && !is_cut(*graph_.nodes()[at]) && made != done_.end() && built.contains(made->second.node);
    }
    return count;
  }

 private:
  // What cannot be drawn leaves all that depends on it out.
  Status cut(const NodePtr& node) {
    const auto number = numbers_.find(node->opaque.get());
    if (number == numbers_.end()) return Error{"holds a node without definition that the original does not hold"};
    const std::string name = name_of_cut(*node->opaque, number->second);
    for (size_t k = 0; k < node->inputs.size(); k++)
      add_output({node->opaque.get(), taken_by(name, k)}, node->inputs[k]);
    for (size_t k = 0; k < node->outputs.size(); k++) {
      const TensorType type = with_extents(node->outputs[k], extents_);
      if (is_drawable(type)) done_[{node, static_cast<int>(k)}] = builder_.input(given_by(name, k), type);
    }
    return Unit{};
  }

  Status keep(const NodePtr& node) {
    std::vector<Value> inputs;
    for (const Value& input : node->inputs) {
      if (input && !done_.contains(input)) return Unit{};
      inputs.push_back(input ? done_.at(input) : input);
    }
    if (node->is_whole()) {
      keep_whole(node, std::move(inputs));
      return Unit{};
    }
    const auto made = builder_.add(node->op, std::move(inputs), with_extents(node->attributes, extents_),
                                   static_cast<int>(node->outputs.size()), node->name, node->output_names);
    if (!made.ok() && unfit_) {
      unfit_->insert(op_info(node->op).name);
      return Unit{};
    }
    if (!made.ok()) return Error{node->name.empty() ? made.error().message : node->name + ": " + made.error().message};
    for (size_t k = 0; k < node->outputs.size(); k++) done_[{node, static_cast<int>(k)}] = {*made, static_cast<int>(k)};
    return Unit{};
  }

  void keep_whole(const NodePtr& node, std::vector<Value> inputs) {
    std::vector<TensorType> types;
    for (const TensorType& type : node->outputs) types.push_back(with_extents(type, extents_));
    const NodePtr made = builder_.opaque(node->opaque, std::move(inputs), types, node->name, node->output_names);
    for (size_t k = 0; k < types.size(); k++) done_[{node, static_cast<int>(k)}] = {made, static_cast<int>(k)};
  }

  void add_output(const Key& key, const Value& value) {
    const auto made = value ? done_.find(value) : done_.end();
    if (made == done_.end() || !is_computable(made->second.type().element)) return;
    if (outputs.emplace(key, made->second).second) order.push_back(key);
  }

  const Graph& graph_;
  const Substitution& extents_;
  const std::map<const OpaqueOp*, int>& numbers_;
  std::set<std::string>* unfit_;
  GraphBuilder builder_;
  ValueMap done_;
};

bool is_computed(const Value& value) { return !value.node->is(OpKind::Input) && !value.node->is(OpKind::Constant); }

Result<CheckedPart> part_with(const Graph& original, const Graph& optimized, const Substitution& extents,
                              bool leaves_out_unfit) {
  std::map<const OpaqueOp*, int> numbers;
  std::set<std::string> left_out;
  std::vector<std::string> cut;
  for (const NodePtr& node : original.nodes()) {
    if (!is_cut(*node)) continue;
    cut.push_back(name_of_cut(*node->opaque, static_cast<int>(numbers.size())));
    numbers.emplace(node->opaque.get(), static_cast<int>(numbers.size()));
    left_out.insert(node->opaque->op_type);
  }
  std::set<std::string>* const unfit = leaves_out_unfit ? &left_out : nullptr;
  Cutter first(original, extents, numbers, unfit), second(optimized, extents, numbers, unfit);
  GOPT_RETURN_IF_ERROR(first.run());
  GOPT_RETURN_IF_ERROR(second.run());
  std::vector<Key> shared;
  for (const Key& key : first.order) {
    const auto other = second.outputs.find(key);
    if (other != second.outputs.end() && (is_computed(first.outputs.at(key)) || is_computed(other->second)))
      shared.push_back(key);
  }
  if (shared.empty()) {
    std::string text;
    for (const std::string& name : left_out) text += (text.empty() ? "" : ", ") + name;
    return Error{"nothing of it can be run here beside " + text};
  }
  CheckedPart part{
      first.build(shared), second.build(shared), 0, {left_out.begin(), left_out.end()}, print_extents(extents), cut};
  part.nodes_checked = first.count_needed(part.original);
  return part;
}

void collect_symbols(const TensorType& type, std::set<AtomId>& symbols) {
  if (type.shape)
    for (const Index& extent : *type.shape) collect_symbols(extent, symbols);
}

// Symbols as tensors of these inputs have them.
Substitution extents_of(const Graph& graph, const std::map<std::string, Tensor>& given) {
  Substitution extents;
  for (const Value& input : graph.inputs()) {
    const auto it = given.find(input.node->name);
    if (it == given.end() || !input.type().shape || input.type().shape->size() != it->second.dims().size()) continue;
    for (size_t axis = 0; axis < input.type().shape->size(); axis++)
      if (const auto symbol = (*input.type().shape)[axis].as_atom()) extents.emplace(*symbol, it->second.dims()[axis]);
  }
  return extents;
}

constexpr size_t kMostChoices = 64;

}  // namespace

std::vector<int64_t> extents_in_numbers(const Graph& graph) {
  constexpr int64_t kLargest = 1024;
  std::set<int64_t> numbers;
  for (const NodePtr& node : graph.nodes())
    for (const TensorType& type : node->outputs)
      for (const Index& extent : type.shape.value_or(Shape{}))
        if (extent.is_constant() && extent.constant() > 1 && extent.constant() <= kLargest)
          numbers.insert(extent.constant());
  return {numbers.begin(), numbers.end()};
}

std::string given_by(const std::string& cut, size_t output) { return fmt::format("output {} of {}", output, cut); }
std::string taken_by(const std::string& cut, size_t input) { return fmt::format("input {} of {}", input, cut); }

bool is_whole(const Graph& graph) {
  const auto is_static = [](const Value& input) { return input.type().has_static_shape(); };
  const auto is_kept = [](const NodePtr& node) { return !is_cut(*node); };
  return std::all_of(graph.inputs().begin(), graph.inputs().end(), is_static) &&
         std::all_of(graph.nodes().begin(), graph.nodes().end(), is_kept);
}

int count_operators(const Graph& graph) {
  int count = 0;
  for (size_t at = 0; at < graph.nodes().size(); at++) count += runs(graph, at);
  return count;
}

Result<CheckedPart> part_to_check(const Graph& original, const Graph& optimized,
                                  const std::map<std::string, Tensor>& given, size_t first,
                                  std::vector<LostExtents>* lost) {
  std::optional<Error> why_not;
  const std::vector<Substitution> choices = choices_of_extents(original, given);
  for (size_t k = std::min(first, choices.size() - 1); k < choices.size(); k++) {
    auto part = part_with(original, optimized, choices[k], false);
    if (part.ok()) {
      CheckedPart found = *std::move(part);
      found.choice = k;
      return found;
    }
    if (!why_not) why_not = part.error();
    auto alone = lost ? part_with(original, original, choices[k], false) : Result<CheckedPart>(Error{""});
    if (alone.ok() && alone->cut.empty())
      lost->push_back({alone->original, "at " + print_extents(choices[k]) + ": " + part.error().message});
  }
  // What the likeliest do not fit is left out, with what hangs on it.
  auto part = part_with(original, optimized, choices[0], true);
  return part.ok() ? std::move(part) : *why_not;
}

std::vector<Substitution> choices_of_extents(const Graph& graph, const std::map<std::string, Tensor>& given) {
  std::set<AtomId> symbols;
  for (const Value& input : graph.inputs()) collect_symbols(input.type(), symbols);
  for (const NodePtr& node : graph.nodes())
    if (is_cut(*node))
      for (const TensorType& type : node->outputs) collect_symbols(type, symbols);
  if (symbols.empty()) return {{}};
  const Substitution known = extents_of(graph, given);
  std::vector<Substitution> choices(1, known);
  int64_t next = 2;
  for (const AtomId symbol : symbols) choices[0].emplace(symbol, Index(next++));
  for (const int64_t all : {2, 1, 4, 16, 64, 224}) {
    Substitution& same = choices.emplace_back(known);
    for (const AtomId symbol : symbols) same.emplace(symbol, Index(all));
  }
  const std::vector<int64_t> numbers = extents_in_numbers(graph);
  for (const AtomId symbol : symbols)
    for (const int64_t number : numbers) {
      if (choices.size() >= kMostChoices || known.contains(symbol)) break;
      choices.push_back(choices[0]);
      choices.back()[symbol] = Index(number);
    }
  return choices;
}

std::string print_extents(const Substitution& extents) {
  std::string text;
  for (const auto& [symbol, number] : extents)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", to_string(Index::from_atom(symbol)), to_string(number));
  return text;
}

}  // namespace gopt::driver
