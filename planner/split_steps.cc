#include "split_steps.h"

#include <algorithm>
#include <span>

#include "gopt/bounds.h"
#include "gopt/node_names.h"
#include "gopt/with_extents.h"

namespace gopt::planner {
namespace {

// ---- which nodes make which step ----

bool is_tensor(const Value& value) { return value.type().element != ElementType::Undefined; }

class Stages {
 public:
  Stages(const Graph& graph, const CallersNodes& callers) : graph_(graph), callers_(callers) {}

  std::vector<Step> run() {
    for (uint32_t id = 0; id < graph_.nodes().size(); id++) place(id);
    std::vector<Step> steps;
    for (auto& [stage, nodes] : code_) {
      if (!nodes.empty()) steps.push_back({nodes, true});
      std::ranges::move(grouped(callers_at_[stage]), std::back_inserter(steps));
    }
    return steps;
  }

 private:
  // A piece takes all that is known before it, then come the caller's nodes that wait for no later piece.
  void place(uint32_t id) {
    const NodePtr& node = graph_.nodes()[id];
    const bool is_callers = callers_.contains(node.get());
    if (node->is(OpKind::Input) || (!is_callers && graph_.depends_on_weights_only(NodeId{id}))) return;
    int stage = 0;
    for (const Value& input : node->inputs) {
      const auto made = input ? stage_.find(input.node.get()) : stage_.end();
      if (made == stage_.end()) continue;
      const bool waits = !is_callers && callers_.contains(input.node.get());
      stage = std::max(stage, made->second + (waits ? 1 : 0));
    }
    stage_[node.get()] = stage;
    code_[stage];
    (is_callers ? callers_at_ : code_)[stage].push_back(node);
  }

  // Those that hand each other what is no tensor, together; all in one where they wait for each other.
  static std::vector<Step> grouped(const std::vector<NodePtr>& nodes) {
    std::vector<size_t> group(nodes.size());
    std::map<const Node*, size_t> places;
    for (size_t k = 0; k < nodes.size(); k++) places[nodes[k].get()] = group[k] = k;
    const auto each_edge = [&](const auto& visit) {
      for (size_t k = 0; k < nodes.size(); k++)
        for (const Value& input : nodes[k]->inputs)
          if (const auto from = input ? places.find(input.node.get()) : places.end(); from != places.end())
            visit(from->second, k, is_tensor(input));
    };
    each_edge([&](size_t from, size_t to, bool is_tensor) {
      if (!is_tensor) std::ranges::replace(group, size_t{group[from]}, size_t{group[to]});
    });
    bool is_ordered = true;
    std::map<size_t, std::set<size_t>> waits;
    each_edge([&](size_t from, size_t to, bool) {
      if (group[from] != group[to]) waits[group[to]].insert(group[from]);
    });
    std::vector<Step> steps;
    std::set<size_t> open(group.begin(), group.end());
    while (!open.empty() && is_ordered) {
      const auto next = std::ranges::find_if(open, [&](size_t g) {
        return std::ranges::none_of(waits[g], [&](size_t before) { return open.contains(before); });
      });
      is_ordered = next != open.end();
      if (!is_ordered) break;
      Step& step = steps.emplace_back();
      for (size_t k = 0; k < nodes.size(); k++)
        if (group[k] == *next) step.nodes.push_back(nodes[k]);
      open.erase(next);
    }
    return is_ordered ? steps : std::vector<Step>{{nodes, false}};
  }

  const Graph& graph_;
  const CallersNodes& callers_;
  std::map<const Node*, int> stage_;
  std::map<int, std::vector<NodePtr>> code_, callers_at_;  // by stage
};

// ---- what a step reads ----

std::set<const Node*> nodes_of(const Step& step) {
  std::set<const Node*> own;
  for (const NodePtr& node : step.nodes) own.insert(node.get());
  return own;
}

// What each step makes of its own.
bool is_weight(const Graph& graph, const std::set<const Node*>& own, const Value& value) {
  return !value.node->is(OpKind::Input) && !own.contains(value.node.get()) &&
         graph.depends_on_weights_only(graph.id_of(value.node));
}

// Made elsewhere, and read by the step's nodes, or for its extents.
std::vector<Value> inputs_of(const Graph& graph, const Step& step) {
  const std::set<const Node*> own = nodes_of(step);
  std::vector<Value> inputs;
  const auto add = [&](const Value& value) {
    if (std::ranges::count(inputs, value) == 0) inputs.push_back(value);
  };
  for (const NodePtr& node : step.nodes)
    for (const Value& input : node->inputs)
      if (input && !own.contains(input.node.get()) && !is_weight(graph, own, input)) add(input);
  std::ranges::for_each(step.sized_by, add);
  return inputs;
}

// The symbol that alone is not known of an extent, where the extent is that symbol and something known.
std::optional<AtomId> missing_symbol(const Index& extent, const std::set<AtomId>& known) {
  std::set<AtomId> symbols;
  collect_symbols(extent, symbols);
  std::erase_if(symbols, [&](AtomId s) { return known.contains(s); });
  if (symbols.size() != 1 || has_load(extent)) return std::nullopt;
  const auto by = slope(extent, *symbols.begin());
  return by && *by == Index(1) ? std::optional(*symbols.begin()) : std::nullopt;
}

// Symbols that are extents.
std::set<AtomId> bare_symbols(const TensorType& type) {
  std::set<AtomId> symbols;
  for (const Index& extent : type.shape.value_or(Shape{}))
    if (const auto symbol = extent.as_atom(); symbol && atom(*symbol).kind == AtomKind::Symbol) symbols.insert(*symbol);
  return symbols;
}

using NamedTypes = std::vector<std::pair<std::string, TensorType>>;

// Values of symbols that inputs do not have as extents, by new symbols that they have.
Substitution renamed_extents(const NamedTypes& inputs) {
  std::set<AtomId> known;
  for (const auto& [name, type] : inputs) known.merge(bare_symbols(type));
  Substitution renamed;
  for (const auto& [name, type] : inputs) {
    const Shape shape = type.shape.value_or(Shape{});
    for (size_t d = 0; d < shape.size(); d++) {
      const Index extent = substitute(shape[d], renamed);
      const auto missing = missing_symbol(extent, known);
      if (!missing) continue;
      const AtomId own = symbol_atom(name + "_dim" + std::to_string(d));
      renamed[*missing] = Index::from_atom(own) - (extent - Index::from_atom(*missing));
      known.insert(own);
    }
  }
  return renamed;
}

// Symbols of all that a step's nodes say and take, and of weights that it makes; of the caller's nodes those of what a
// file of them says.
class Symbols {
 public:
  Symbols(const Graph& graph, const Step& step) : graph_(graph), own_(nodes_of(step)) {
    for (const NodePtr& node : step.nodes) add(*node, step.is_code);
    for (const Value& weight : step.weights) add(*weight.node, true);
  }
  const std::set<AtomId>& all() const { return symbols_; }

 private:
  void add(const Node& node, bool has_types) {
    if (!seen_.insert(&node).second) return;
    if (has_types)
      for (const TensorType& type : node.outputs) add(type);
    for (const auto& [name, value] : node.attributes) {
      if (const auto* number = std::get_if<Index>(&value)) collect_symbols(*number, symbols_);
      if (const auto* list = std::get_if<std::vector<Index>>(&value))
        for (const Index& entry : *list) collect_symbols(entry, symbols_);
    }
    for (const Value& input : node.inputs) {
      if (!input) continue;
      if (has_types) add(input.type());
      if (is_weight(graph_, own_, input)) add(*input.node, true);
    }
  }
  void add(const TensorType& type) {
    for (const Index& extent : type.shape.value_or(Shape{})) collect_symbols(extent, symbols_);
  }

  const Graph& graph_;
  const std::set<const Node*> own_;
  std::set<const Node*> seen_;
  std::set<AtomId> symbols_;
};

// Values of the model's inputs and of steps.
template <class Visit>
void each_value(const Graph& graph, std::span<const Step> steps, const Visit& visit) {
  std::ranges::for_each(graph.inputs(), visit);
  for (const Step& step : steps)
    for (const NodePtr& node : step.nodes)
      for (size_t k = 0; k < node->outputs.size(); k++) visit({node, static_cast<int>(k)});
}

// An output that is of weights and sizes alone: of the first piece before which the sizes are known, else of one at the
// end.
void place_weight(const Graph& graph, const Value& output, std::vector<Step>& steps) {
  std::set<AtomId> missing = Symbols(graph, {{}, true, {}, {output}}).all();
  const bool has_sizes = !missing.empty();
  const auto know = [&](const Value& value) {
    for (const AtomId symbol : bare_symbols(value.type())) missing.erase(symbol);
  };
  each_value(graph, {}, know);
  size_t s = 0;
  for (; s < steps.size() && (!missing.empty() || !steps[s].is_code); s++)
    each_value(graph, std::span(steps).subspan(s, 1), know);
  if (s == steps.size() && !has_sizes) return;  // constants alone are no piece
  if (s == steps.size()) steps.push_back({{}, true});
  if (std::ranges::count(steps[s].weights, output) == 0) steps[s].weights.push_back(output);
}

// Constants last: they are of a piece that there is for another reason.
void place_weights(const Graph& graph, std::vector<Step>& steps) {
  for (const bool has_sizes : {true, false})
    for (const GraphOutput& output : graph.outputs())
      if (is_weight(graph, {}, output.value) &&
          Symbols(graph, {{}, true, {}, {output.value}}).all().empty() != has_sizes)
        place_weight(graph, output.value, steps);
}

// Symbols that a step can't take from the extents of what it reads: it takes a value of an earlier step, or of the
// model's inputs, that has them as extents.
void add_sizes(const Graph& graph, std::span<const Step> earlier, Step& step) {
  std::set<AtomId> known;
  NamedTypes types;
  for (const Value& input : inputs_of(graph, step)) {
    types.emplace_back("input" + std::to_string(types.size()), input.type());
    known.merge(bare_symbols(input.type()));
  }
  if (step.is_code)
    for (const auto& [symbol, value] : renamed_extents(types)) known.insert(symbol);
  std::set<AtomId> missing = Symbols(graph, step).all();
  std::erase_if(missing, [&](AtomId symbol) { return known.contains(symbol); });
  each_value(graph, earlier, [&](const Value& value) {
    bool helps = false;
    for (const AtomId symbol : bare_symbols(value.type())) helps |= missing.erase(symbol) > 0;
    if (helps) step.sized_by.push_back(value);
  });
}

// ---- a step as a graph ----

class StepBuilder {
 public:
  StepBuilder(const Graph& graph, const Step& step, ValueNames& names)
      : graph_(graph), step_(step), names_(names), own_(nodes_of(step)) {
    builder_.set_broadcast_unknown(true);
  }

  Result<BuiltStep> run(const std::vector<Value>& outputs, NodePtr& failed) {
    const std::vector<Value> inputs = inputs_of(graph_, step_);
    if (step_.is_code) {
      NamedTypes types;
      for (const Value& input : inputs) types.emplace_back(names_.of(input), input.type());
      extents_ = renamed_extents(types);
    }
    keep_metadata(inputs, outputs);
    for (const Value& input : inputs) {
      const Value own = builder_.input(names_.of(input), with_extents(input.type(), extents_));
      done_[input] = own;
      built_.origins[own.node.get()] = input.node;
    }
    for (const NodePtr& node : step_.nodes)
      if (const Status made = make(node); !made.ok()) {
        failed = node;
        return made.error();
      }
    for (const Value& output : outputs) {
      GOPT_RETURN_IF_ERROR(make_weights(output));
      builder_.output(names_.of(output), done_.at(output));
    }
    built_.graph = builder_.build();
    return std::move(built_);
  }

 private:
  // Types that are no tensors, as the file declares them; functions that nodes call.
  void keep_metadata(const std::vector<Value>& inputs, const std::vector<Value>& outputs) {
    const Metadata& all = graph_.metadata();
    Metadata& own = builder_.metadata();
    own.name = all.name;
    own.ir_version = all.ir_version;
    own.opsets = all.opsets;
    if (step_.is_code) return;
    own.functions = all.functions;
    for (const auto* values : {&inputs, &outputs})
      for (const Value& value : *values)
        if (const auto it = all.declarations.find(names_.of(value)); it != all.declarations.end() && !is_tensor(value))
          own.declarations.insert(*it);
  }

  Status make_weights(const Value& value) {
    if (!value || done_.contains(value) || !is_weight(graph_, own_, value)) return Unit{};
    if (value.node->is(OpKind::Constant)) {
      done_[value] = value;
      return Unit{};
    }
    for (const Value& input : value.node->inputs) GOPT_RETURN_IF_ERROR(make_weights(input));
    return make_node(value.node);
  }

  Status make(const NodePtr& node) {
    for (const Value& input : node->inputs) GOPT_RETURN_IF_ERROR(make_weights(input));
    return make_node(node);
  }

  Status make_node(const NodePtr& node) {
    std::vector<Value> inputs;
    for (const Value& input : node->inputs) inputs.push_back(input ? done_.at(input) : input);
    GOPT_ASSIGN_OR_RETURN(const NodePtr made, copy(*node, std::move(inputs)));
    built_.origins[made.get()] = node;
    for (size_t k = 0; k < node->outputs.size(); k++) done_[{node, static_cast<int>(k)}] = {made, static_cast<int>(k)};
    return Unit{};
  }

  Result<NodePtr> copy(const Node& node, std::vector<Value> inputs) {
    if (extents_.empty()) return builder_.copy(node, std::move(inputs));
    if (node.opaque) {
      std::vector<TensorType> types;
      for (const TensorType& type : node.outputs) types.push_back(with_extents(type, extents_));
      return builder_.opaque(node.opaque, std::move(inputs), std::move(types), node.name, node.output_names);
    }
    return builder_.add(node.op, std::move(inputs), with_extents(node.attributes, extents_),
                        static_cast<int>(node.outputs.size()), node.name, node.output_names);
  }

  const Graph& graph_;
  const Step& step_;
  ValueNames& names_;
  const std::set<const Node*> own_;
  Substitution extents_;
  GraphBuilder builder_;
  ValueMap done_;
  BuiltStep built_;
};

}  // namespace

std::vector<Step> steps_of(const Graph& graph, const CallersNodes& callers) {
  std::vector<Step> steps = Stages(graph, callers).run();
  place_weights(graph, steps);
  for (size_t s = 0; s < steps.size(); s++) add_sizes(graph, std::span(steps).first(s), steps[s]);
  return steps;
}

ValueNames::ValueNames(const Graph& graph) {
  for (const Value& input : graph.inputs()) {
    names_[input] = input.node->name;
    used_.insert(input.node->name);
  }
  for (const GraphOutput& output : graph.outputs()) used_.insert(output.name);
  for (const GraphOutput& output : graph.outputs()) names_.try_emplace(output.value, output.name);
}

const std::string& ValueNames::of(const Value& value) {
  const auto known = names_.find(value);
  if (known != names_.end()) return known->second;
  const auto number = static_cast<size_t>(value.output);
  const std::vector<std::string>& own = value.node->output_names;
  const std::string name = number < own.size() && !own[number].empty() ? own[number] : name_of_node(*value.node);
  return names_[value] = unused(name);
}

std::string ValueNames::unused(const std::string& wanted) {
  std::string name = wanted;
  for (int k = 1; !used_.insert(name).second; k++) name = wanted + "_" + std::to_string(k);
  return name;
}

Result<BuiltStep> build_step(const Graph& graph, const Step& step, const std::vector<Value>& outputs, ValueNames& names,
                             NodePtr& failed) {
  return StepBuilder(graph, step, names).run(outputs, failed);
}

}  // namespace gopt::planner
