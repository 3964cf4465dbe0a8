#include "gopt/split_model.h"

#include <algorithm>

#include "cover.h"
#include "gopt/node_names.h"
#include "split_steps.h"

namespace gopt::planner {
namespace {

// Values that steps take from other steps, and the model as its outputs, by the node that makes them.
std::map<const Node*, std::set<Value>> taken_values(const Graph& graph, const std::vector<Step>& steps) {
  std::map<const Node*, size_t> step_of;
  for (size_t s = 0; s < steps.size(); s++)
    for (const NodePtr& node : steps[s].nodes) step_of[node.get()] = s;
  std::map<const Node*, std::set<Value>> taken;
  for (size_t s = 0; s < steps.size(); s++) {
    const auto take = [&](const Value& input) {
      if (const auto made = input ? step_of.find(input.node.get()) : step_of.end();
          made != step_of.end() && made->second != s)
        taken[input.node.get()].insert(input);
    };
    for (const NodePtr& node : steps[s].nodes) std::ranges::for_each(node->inputs, take);
    std::ranges::for_each(steps[s].sized_by, take);
  }
  for (const GraphOutput& output : graph.outputs()) taken[output.value.node.get()].insert(output.value);
  return taken;
}

class Splitter {
 public:
  Splitter(const Graph& graph, const Target& target) : graph_(graph), target_(target), names_(graph) {}

  Result<SplitModel> run() {
    Target whole = target_;
    whole.open = own_extents(graph_, target_);
    const std::vector<NodeWithoutCode> without = nodes_without_code(graph_, whole);
    for (const NodeWithoutCode& own : without)
      if (own.node->is(OpKind::Opaque) && !own.node->is_whole()) add_callers(own.node, own.why);
    for (const GraphOutput& output : graph_.outputs())
      if (is_weight(output.value) && !is_computable(output.value.type().element))
        return Error{"output " + output.name + ": there is no code for constants of type " +
                     to_string(output.value.type().element)};
    do {
      split_.steps.clear();
      grew_ = false;
      GOPT_RETURN_IF_ERROR(make_steps());
    } while (grew_);
    split_.inputs = graph_.inputs();
    for (const GraphOutput& output : graph_.outputs()) split_.outputs.push_back({output.name, names_.of(output.value)});
    return std::move(split_);
  }

 private:
  Status make_steps() {
    const std::vector<Step> steps = steps_of(graph_, callers_);
    auto taken = taken_values(graph_, steps);
    for (const Step& step : steps) {
      std::vector<Value> outputs;
      for (const NodePtr& node : step.nodes)
        for (const Value& value : taken[node.get()]) outputs.push_back(value);
      outputs.insert(outputs.end(), step.weights.begin(), step.weights.end());
      NodePtr failed;
      auto built = build_step(graph_, step, outputs, names_, failed);
      if (!built.ok() && !failed) return built.error();
      if (!built.ok())
        add_callers(failed, describe(*failed) + ": " + built.error().message);
      else
        add_step(step, *std::move(built));
    }
    return Unit{};
  }

  bool is_weight(const Value& value) const {
    return !value.node->is(OpKind::Input) && graph_.depends_on_weights_only(graph_.id_of(value.node));
  }

  void add_callers(const NodePtr& node, const std::string& why) {
    const std::string cause = why.empty() ? describe(*node) + " takes what a node without code makes" : why;
    grew_ |= callers_.emplace(node.get(), cause).second;
  }

  void add_step(const Step& step, BuiltStep built) {
    ModelStep made{built.graph, {}};
    if (!step.is_code)
      for (const NodePtr& node : step.nodes) made.nodes.push_back({node, callers_.at(node.get())});
    if (step.is_code) {
      Target target = target_;
      target.open = own_extents(built.graph, target_);
      for (const NodeWithoutCode& own : nodes_without_code(built.graph, target)) give_up(built, own);
    }
    split_.steps.push_back(std::move(made));
  }

  // A node that has no code in its piece; of an input, or what is made of sizes alone, all that reads it there.
  void give_up(const BuiltStep& built, const NodeWithoutCode& own) {
    const NodePtr& origin = built.origins.at(own.node.get());
    const bool is_input = own.node->is(OpKind::Input);
    if (!is_input && !graph_.depends_on_weights_only(graph_.id_of(origin))) return add_callers(origin, own.why);
    const std::string what = "`" + name_of_node(*own.node) + "`, which is no tensor of known extents";
    for (const NodePtr& node : built.graph.nodes())
      if (std::ranges::any_of(node->inputs, [&](const Value& input) { return input && input.node == own.node; }))
        give_up(built, {node, describe(*node) + " takes " + what});
  }

  const Graph& graph_;
  const Target target_;
  ValueNames names_;
  CallersNodes callers_;
  SplitModel split_;
  bool grew_ = false;
};

}  // namespace
}  // namespace gopt::planner

namespace gopt {

std::vector<NodeWithoutCode> nodes_without_code(const Graph& graph, const Target& target) {
  planner::Cover cover;
  cover.graph = graph;
  cover.options.target = target;
  if (planner::describe_values(cover).ok()) return {};
  return cover.without_code;
}

Error why_no_plan(const std::vector<NodeWithoutCode>& nodes) {
  constexpr size_t kMostShown = 12;
  std::vector<std::string> causes;
  for (const NodeWithoutCode& own : nodes)
    if (!own.why.empty()) causes.push_back(own.why);
  if (causes.size() == 1) return {causes[0]};
  std::string text = std::to_string(causes.size()) + " nodes have no code:";
  for (size_t k = 0; k < std::min(kMostShown, causes.size()); k++) text += "\n  " + causes[k];
  if (causes.size() > kMostShown) text += "\n  and " + std::to_string(causes.size() - kMostShown) + " more";
  return {text};
}

Result<SplitModel> split_model(const Graph& graph, const Target& target) {
  return planner::Splitter(graph, target).run();
}

std::vector<OpenExtent> own_extents(const Graph& graph, const Target& target) {
  std::vector<OpenExtent> open;
  if (target.kind != TargetKind::Cpu) return open;
  for (const Value& input : graph.inputs())
    for (const Index& extent : input.type().shape.value_or(Shape{}))
      if (const auto symbol = extent.as_atom(); symbol && atom(*symbol).kind == AtomKind::Symbol &&
                                                std::ranges::find(open, *symbol, &OpenExtent::symbol) == open.end())
        open.push_back({*symbol});
  return open;
}

}  // namespace gopt
