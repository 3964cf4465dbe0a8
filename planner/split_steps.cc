#include "split_steps.h"

#include <algorithm>

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

// ---- a step as a graph ----

// The symbol that alone is not known of an extent, where the extent is that symbol and something known.
std::optional<AtomId> missing_symbol(const Index& extent, const std::set<AtomId>& known) {
  std::set<AtomId> symbols;
  collect_symbols(extent, symbols);
  std::erase_if(symbols, [&](AtomId s) { return known.contains(s); });
  if (symbols.size() != 1 || has_load(extent)) return std::nullopt;
  const auto by = slope(extent, *symbols.begin());
  return by && *by == Index(1) ? std::optional(*symbols.begin()) : std::nullopt;
}

// Values of symbols that inputs do not have as extents, by new symbols that they have.
Substitution renamed_extents(const std::vector<std::pair<std::string, TensorType>>& inputs) {
  std::set<AtomId> known;
  for (const auto& [name, type] : inputs)
    for (const Index& extent : type.shape.value_or(Shape{}))
      if (const auto symbol = extent.as_atom(); symbol && atom(*symbol).kind == AtomKind::Symbol) known.insert(*symbol);
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

class StepBuilder {
 public:
  StepBuilder(const Graph& graph, const Step& step, ValueNames& names) : graph_(graph), step_(step), names_(names) {
    builder_.set_broadcast_unknown(true);
  }

  Result<BuiltStep> run(const std::vector<Value>& outputs, NodePtr& failed) {
    const std::vector<Value> inputs = inputs_of_step();
    if (step_.is_code) {
      std::vector<std::pair<std::string, TensorType>> types;
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
  bool is_weight(const Value& value) const {
    return !value.node->is(OpKind::Input) && !own_.contains(value.node.get()) &&
           graph_.depends_on_weights_only(graph_.id_of(value.node));
  }

  // Read by the step's nodes, and made elsewhere.
  std::vector<Value> inputs_of_step() {
    for (const NodePtr& node : step_.nodes) own_.insert(node.get());
    std::vector<Value> inputs;
    for (const NodePtr& node : step_.nodes)
      for (const Value& input : node->inputs)
        if (input && !own_.contains(input.node.get()) && !is_weight(input) && std::ranges::count(inputs, input) == 0)
          inputs.push_back(input);
    return inputs;
  }

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
    if (!value || done_.contains(value) || !is_weight(value)) return Unit{};
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
  std::set<const Node*> own_;
  Substitution extents_;
  GraphBuilder builder_;
  ValueMap done_;
  BuiltStep built_;
};

}  // namespace

std::vector<Step> steps_of(const Graph& graph, const CallersNodes& callers) { return Stages(graph, callers).run(); }

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
