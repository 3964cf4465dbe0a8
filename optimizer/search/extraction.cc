#include "search/extraction.h"

#include <algorithm>

namespace gopt::optimizer {
namespace {

// Of an application that takes no time: so that no choice goes round in a circle of them.
constexpr double kLeast = 1e-9;

std::string output_name(const Value& value) {
  const auto& names = value.node->output_names;
  return static_cast<size_t>(value.output) < names.size() ? names[static_cast<size_t>(value.output)] : std::string();
}

}  // namespace

Extractor::Extractor(const GraphEqualities& graph, const std::function<double(const Graph&)>& price)
    : graph_(graph),
      equalities_(graph.equalities),
      price_(price),
      cheapest_(equalities_.node_count()),
      first_original_(equalities_.node_count(), kNoValue),
      own_(equalities_.node_count()) {
  builder_.set_broadcast_unknown(true);
  builder_.adopt(graph.graph);
  for (EqualityId id = 0; id < graph.originals.size(); id++)
    if (graph.is_original(id) && first_original_[equalities_.find(id)] == kNoValue)
      first_original_[equalities_.find(id)] = id;
  find_cheapest();
}

Choice Extractor::original() const { return first_original_; }

// Bottom-up until nothing changes, each class by the sum of what it needs: what is used twice is counted twice.
void Extractor::find_cheapest() {
  for (bool changed = true; changed;) {
    changed = false;
    for (EqualityId id = 0; id < equalities_.node_count(); id++) {
      const EqualityNode& node = equalities_.node(id);
      if (node.is_duplicate) continue;
      const auto is_known = [&](EqualityId input) {
        return input == kNoValue || cheapest_[equalities_.find(input)].node != kNoValue;
      };
      if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_known)) continue;
      double cost = kLeast;
      for (EqualityId input : node.inputs)
        if (input != kNoValue) cost += cheapest_[equalities_.find(input)].cost;
      Best& best = cheapest_[equalities_.find(id)];
      if (best.node != kNoValue && cost >= best.cost) continue;
      cost += own_cost(id);
      if (best.node != kNoValue && !(cost < best.cost)) continue;
      std::vector<Value> inputs;
      for (EqualityId input : node.inputs)
        inputs.push_back(input == kNoValue ? Value{} : cheapest_[equalities_.find(input)].value);
      const NodePtr made = build(id, inputs);
      if (!made) continue;
      best = {id, cost, {made, static_cast<int>(node.output)}};
      changed = true;
    }
  }
}

// Of the application as a graph of its own; all of its outputs cost it once.
double Extractor::own_cost(EqualityId id) {
  const EqualityNode& node = equalities_.node(id);
  if (node.op == OpKind::Input || node.op == OpKind::Constant || node.op == OpKind::Opaque) return 0;
  const auto is_weight = [&](EqualityId input) { return input == kNoValue || equalities_.class_of(input).is_weight; };
  if (std::all_of(node.inputs.begin(), node.inputs.end(), is_weight)) return 0;
  std::optional<double>& own = own_[equalities_.find_output(id, 0).value_or(id)];
  if (own) return *own;
  GraphBuilder builder;
  builder.set_broadcast_unknown(true);
  std::vector<Value> inputs;
  std::map<EqualityId, Value> given;
  for (EqualityId input : node.inputs) {
    const EqualityId cls = input == kNoValue ? kNoValue : equalities_.find(input);
    if (input == kNoValue) {
      inputs.emplace_back();
    } else if (equalities_.class_of(cls).is_weight) {
      inputs.push_back(cheapest_[cls].value);
    } else {
      Value& value = given[cls];
      if (!value) value = builder.input("part_input_" + std::to_string(given.size()), equalities_.type(cls));
      inputs.push_back(value);
    }
  }
  const auto made =
      builder.add(node.op, std::move(inputs), equalities_.attributes(id), static_cast<int>(node.output_count));
  if (!made.ok()) return *(own = 0);
  for (int k = 0; k < static_cast<int>((*made)->outputs.size()); k++)
    builder.output("part_output_" + std::to_string(k), {*made, k});
  return *(own = price_(builder.build()));
}

EqualityId Extractor::chosen(const Choice& choice, EqualityId cls) const {
  return choice[cls] != kNoValue ? choice[cls] : cheapest_[cls].node;
}

std::optional<std::vector<EqualityId>> Extractor::reached(const Choice& choice) const {
  std::vector<EqualityId> order, open;
  enum class State : uint8_t { New, Open, Done };
  std::vector<State> states(choice.size(), State::New);
  for (const GraphOutput& output : graph_.graph.outputs())
    open.push_back(equalities_.find(graph_.ids.at(output.value)));
  while (!open.empty()) {
    const EqualityId cls = open.back();
    State& state = states[cls];
    if (state != State::New) {
      open.pop_back();
      if (state == State::Open) order.push_back(cls);
      state = State::Done;
      continue;
    }
    state = State::Open;
    const EqualityId id = chosen(choice, cls);
    if (id == kNoValue) return std::nullopt;
    for (EqualityId input : equalities_.node(id).inputs) {
      if (input == kNoValue) continue;
      const EqualityId below = equalities_.find(input);
      if (states[below] == State::Open) return std::nullopt;
      if (states[below] == State::New) open.push_back(below);
    }
  }
  return order;
}

std::vector<EqualityId> Extractor::applications(const Choice& choice, const std::vector<EqualityId>& classes) const {
  std::vector<EqualityId> applications;
  for (EqualityId cls : classes) {
    const EqualityId id = chosen(choice, cls);
    applications.push_back(equalities_.find_output(id, 0).value_or(id));
  }
  std::sort(applications.begin(), applications.end());
  applications.erase(std::unique(applications.begin(), applications.end()), applications.end());
  return applications;
}

std::optional<double> Extractor::guess(const Choice& choice) {
  const auto classes = reached(choice);
  if (!classes) return std::nullopt;
  double sum = 0;
  for (EqualityId id : applications(choice, *classes)) sum += own_cost(id) + kLeast;
  return sum;
}

double Extractor::changed_ms(const Extracted& a, const Extracted& b) {
  const auto of = [&](const Extracted& extracted) {
    std::vector<EqualityId> classes;
    for (const auto& [cls, value] : extracted.values) classes.push_back(cls);
    return applications(extracted.choice, classes);
  };
  const std::vector<EqualityId> first = of(a), second = of(b);
  const auto cost_without = [&](const std::vector<EqualityId>& own, const std::vector<EqualityId>& other) {
    double sum = 0;
    for (EqualityId id : own)
      if (!std::binary_search(other.begin(), other.end(), id)) sum += own_cost(id);
    return sum;
  };
  return std::min(cost_without(first, second), cost_without(second, first));
}

// What stands for values of the graph inherits their names. Null: not defined for these inputs, whose constants say
// more than their types.
NodePtr Extractor::build(EqualityId id, const std::vector<Value>& inputs) {
  const EqualityNode& node = equalities_.node(id);
  const NodePtr original = graph_.is_original(id) ? graph_.originals[id].node : nullptr;
  if (original && (original->inputs == inputs || inputs.empty())) return original;
  if (node.op == OpKind::Constant) return builder_.constant(equalities_.tensor(id)).node;
  std::vector<uint64_t> key{equalities_.find_output(id, 0).value_or(id)};
  for (const Value& input : inputs) {
    key.push_back(reinterpret_cast<uint64_t>(input.node.get()));
    key.push_back(static_cast<uint64_t>(input.output));
  }
  NodePtr& made = built_[std::move(key)];
  if (made) return made;
  if (original && original->is(OpKind::Opaque)) {
    made = builder_.opaque(original->opaque, inputs, original->outputs, original->name, original->output_names);
    return made;
  }
  std::string name;
  std::vector<std::string> output_names(node.output_count);
  for (uint32_t k = 0; k < node.output_count; k++) {
    const auto output = equalities_.find_output(id, k);
    if (!output) continue;
    const EqualityId stands_for = first_original_[equalities_.find(*output)];
    if (stands_for == kNoValue) continue;
    const Value& value = graph_.originals[stands_for];
    if (value.node->is(OpKind::Input) || value.node->is(OpKind::Constant)) continue;
    output_names[k] = output_name(value);
    if (name.empty()) {
      name = value.node->name;
      builder_.annotate(value.node->annotations);
    }
  }
  auto added = builder_.add(original ? original->op : node.op, inputs,
                            original ? original->attributes : equalities_.attributes(id),
                            static_cast<int>(node.output_count), name, output_names);
  builder_.annotate("");
  if (!added.ok()) return nullptr;
  for (uint32_t k = 0; k < node.output_count; k++) {
    const auto output = equalities_.find_output(id, k);
    if (output && !((*added)->outputs[k] == equalities_.type(*output))) return nullptr;
  }
  return made = *std::move(added);
}

std::optional<Extracted> Extractor::extract(const Choice& choice) {
  const auto classes = reached(choice);
  if (!classes) return std::nullopt;
  Extracted extracted{{}, Choice(choice.size(), kNoValue), {}};
  for (EqualityId cls : *classes) {
    const EqualityId id = extracted.choice[cls] = chosen(choice, cls);
    const EqualityNode& node = equalities_.node(id);
    std::vector<Value> inputs;
    for (EqualityId input : node.inputs)
      inputs.push_back(input == kNoValue ? Value{} : extracted.values.at(equalities_.find(input)));
    const NodePtr made = build(id, inputs);
    if (!made) return std::nullopt;
    extracted.values[cls] = {made, static_cast<int>(node.output)};
  }
  std::vector<GraphOutput> outputs;
  for (const GraphOutput& output : graph_.graph.outputs())
    outputs.push_back({output.name, extracted.values.at(equalities_.find(graph_.ids.at(output.value)))});
  extracted.graph = Graph(graph_.graph.inputs(), std::move(outputs), graph_.graph.metadata());
  return extracted;
}

}  // namespace gopt::optimizer
