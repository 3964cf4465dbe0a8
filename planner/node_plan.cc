#include "gopt/node_plan.h"

#include <algorithm>
#include <set>

#include "drafts.h"
#include "gopt/kernel_spec.h"
#include "gopt/node_names.h"

namespace gopt {

std::string to_string(NodeRole role) {
  switch (role) {
    case NodeRole::Input: return "input";
    case NodeRole::Folded: return "folded";
    case NodeRole::View: return "view";
    case NodeRole::Library: return "library kernel";
    case NodeRole::Epilogue: return "epilogue";
    case NodeRole::Inlined: return "inlined";
    case NodeRole::Own: return "end of a generated kernel";
    case NodeRole::Unplanned: return "no code";
  }
  return "";
}

std::string to_string(FusionLimit limit) {
  switch (limit) {
    case FusionLimit::None: return "";
    case FusionLimit::Output: return "it is an output of the model";
    case FusionLimit::Unused: return "nothing that runs uses it";
    case FusionLimit::LibraryUser:
      return "a user is a library kernel or looks elements up, which takes a stored tensor";
    case FusionLimit::SeveralUsers: return "several nodes use it";
    case FusionLimit::UserNoEpilogue: return "what its user does is no step of a library kernel here";
    case FusionLimit::ActivationLast: return "a library kernel ends with an activation";
    case FusionLimit::ReadAgain: return "several users would each read its large inputs again";
    case FusionLimit::SeveralOutputs: return "several of its outputs are used";
    case FusionLimit::SwitchedOff: return "fusion of this kind is switched off";
    case FusionLimit::KernelFull: return "the kernel of its user has as many nodes or inputs as one may have";
    case FusionLimit::Reduction: return "it reduces, and its user reads it more than once or in another shape";
    case FusionLimit::ComputedAgain: return "its users read each element often, and it would be computed each time";
    case FusionLimit::Costs: return "the kernels take less time so";
  }
  return "";
}

}  // namespace gopt

namespace gopt::planner {
namespace {

NodeRole role_of(Role role) {
  switch (role) {
    case Role::Input: return NodeRole::Input;
    case Role::Weight: return NodeRole::Folded;
    case Role::View: return NodeRole::View;
    case Role::Convolution:
    case Role::Pooling:
    case Role::MatrixProduct:
    case Role::Whole:
    case Role::Attention: return NodeRole::Library;
    case Role::Epilogue: return NodeRole::Epilogue;
    case Role::Covered:
    case Role::Inlined: return NodeRole::Inlined;
    case Role::Generated: return NodeRole::Own;
    case Role::External:
    case Role::Unplanned: return NodeRole::Unplanned;
  }
  return NodeRole::Unplanned;
}

class NodePlanner {
 public:
  NodePlanner(PricedDrafts& drafts, const NodePtr& node, KernelCosts& costs)
      : drafts_(drafts), cheapest_(drafts.cheapest()), node_(node), costs_(costs) {}

  NodePlan run() {
    const NodeCover& cover = cheapest_.cover.nodes[cheapest_.cover.id_of(node_.get())];
    plan_.role = role_of(cover.role);
    plan_.limit = cover.role == Role::Epilogue ? cheapest_.cover.nodes[cover.owner].limit : cover.limit;
    add_chosen();
    add_fusion();
    if (drafts_.mixed) add_options(*drafts_.mixed, "mixed");
    for (const Drafted& drafted : drafts_.uniform) add_options(drafted, to_string(drafted.cover.layout));
    std::stable_sort(plan_.options.begin(), plan_.options.end(), [](const KernelOption& a, const KernelOption& b) {
      return a.is_chosen != b.is_chosen ? a.is_chosen : !a.is_chosen && a.time_ms < b.time_ms;
    });
    return std::move(plan_);
  }

 private:
  bool covers(const Kernel& kernel) const {
    return std::find(kernel.nodes.begin(), kernel.nodes.end(), node_) != kernel.nodes.end();
  }

  void add_chosen() {
    for (const Kernel& kernel : cheapest_.plan.kernels) {
      if (!covers(kernel)) continue;
      plan_.kernels.push_back(print_kernel(cheapest_.plan, kernel));
      add_option(cheapest_.plan, kernel, true);
      for (const Value& value : kernel.inputs) add_conversions(value);
      for (const Value& value : kernel.outputs) add_conversions(value);
    }
  }

  void add_fusion() {
    for (const PricedChoice& priced : cheapest_.choices) {
      if (cheapest_.cover.graph.nodes()[priced.choice.node] != node_) continue;
      const auto [by_rule, otherwise] = ways_of(priced.choice.way);
      const FusionOption rule{by_rule, priced.by_rule_ms, false, !priced.is_taken},
          other{otherwise, priced.otherwise_ms, priced.is_least, priced.is_taken};
      plan_.fusion = priced.is_taken ? std::vector{other, rule} : std::vector{rule, other};
    }
  }

  // By the rule and otherwise.
  static std::pair<const char*, const char*> ways_of(FusionWay way) {
    constexpr const char *kStored = "stored", *kInside = "inside its users";
    switch (way) {
      case FusionWay::Stored: return {kInside, kStored};
      case FusionWay::Inside: return {kStored, kInside};
      case FusionWay::Before: return {kStored, "before the library kernel multiplies it"};
      case FusionWay::Apart: return {"a step of the library kernel", "apart from the library kernel"};
    }
    return {"", ""};
  }

  // Each value once.
  void add_conversions(const Value& value) {
    const ValueCover& own = cheapest_.cover.of(value);
    if (own.layout_class < 0 || !converted_.insert(value).second) return;
    for (const Layout& to : layouts_of(cheapest_.cover.options.target)) {
      if (to == own.layout) continue;
      const Plan alone = conversion(cheapest_.cover, value, own.layout, to);
      plan_.conversions.push_back(
          {name_of_node(*value.node), own.layout, to, costs_.time_ms(alone, alone.kernels.front())});
    }
  }

  void add_options(const Drafted& drafted, const std::string& layouts) {
    plan_.plans.push_back({layouts, drafted.plan.estimated_ms, &drafted == &cheapest_});
    for (const Kernel& kernel : drafted.plan.kernels)
      if (covers(kernel))
        for (Kernel& option : candidates_for(drafted.plan, kernel, costs_)) {
          option.estimated_ms = costs_.time_ms(drafted.plan, option);
          add_option(drafted.plan, option, false);
        }
  }

  void add_option(const Plan& plan, const Kernel& kernel, bool is_chosen) {
    if (!seen_.insert(kernel_signature(plan, kernel) + "\n" + name_of_node(*kernel.outputs[0].node)).second) return;
    KernelOption option{
        {}, plan.buffer(kernel.output_buffers[0]).layout, kernel.implementation, kernel.estimated_ms, is_chosen};
    for (const NodePtr& node : kernel.nodes) option.covers.push_back(name_of_node(*node));
    plan_.options.push_back(std::move(option));
  }

  PricedDrafts& drafts_;
  const Drafted& cheapest_;
  const NodePtr& node_;
  KernelCosts& costs_;
  NodePlan plan_;
  std::set<std::string> seen_;
  std::set<Value> converted_;
};

}  // namespace
}  // namespace gopt::planner

namespace gopt {

NodePlan plan_of_node(const Graph& graph, const NodePtr& node, const Target& target, KernelCosts& costs) {
  planner::CoverOptions options;
  options.target = target;
  options.tolerant = true;
  Result<planner::PricedDrafts> drafts = planner::priced_drafts(graph, options, costs);
  GOPT_CHECK(drafts.ok(), "a tolerant plan has no errors");
  planner::PricedDrafts priced = *std::move(drafts);
  return planner::NodePlanner(priced, node, costs).run();
}

}  // namespace gopt
