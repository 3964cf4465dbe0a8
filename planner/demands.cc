// What sizes of open extents have to satisfy, from the definitions of a graph's nodes.
#include <algorithm>
#include <set>

#include "gopt/bounds.h"
#include "gopt/definition.h"
#include "gopt/node_names.h"
#include "gopt/plan.h"

namespace gopt::planner {
namespace {

class SizeDemandFinder {
 public:
  SizeDemandFinder(const Graph& graph, const std::vector<OpenExtent>& open) : graph_(graph) {
    for (const OpenExtent& extent : open) bounds_.counts.insert(extent.symbol);
  }

  std::vector<SizeDemand> run() {
    for (uint32_t id = 0; id < graph_.nodes().size(); id++) {
      const Node& node = *graph_.nodes()[id];
      for (const TensorType& type : node.outputs)
        for (const Index& extent : type.shape.value_or(Shape{}))
          add(at_least(extent, Index(0)), node, "the extent " + to_string(extent) + " is not negative");
      add_requirements(node);
    }
    return std::move(demands_);
  }

  // Of library kernels, which make sums of something.
  std::vector<SizeDemand> of_kernels(const Plan& plan) {
    for (const Kernel& kernel : plan.kernels) {
      if (kernel.kind == KernelKind::Generated || kernel.kind == KernelKind::Reorder ||
          kernel.kind == KernelKind::External)
        continue;
      Cond has_none = Cond::never();  // elements of the result
      for (const Index& extent : shape_of(plan.buffer(kernel.output_buffers[0])))
        has_none = has_none || at_least(Index(0), extent);
      for (const BufferId input : kernel.input_buffers)
        for (const Index& extent : shape_of(plan.buffer(input)))
          add(at_least(extent, Index(1)) || has_none, *kernel.nodes[0],
              "its code sums over the extent " + to_string(extent) + ", which is not 0");
    }
    return std::move(demands_);
  }

 private:
  void add_requirements(const Node& node) {
    if (node.is(OpKind::Input) || node.is(OpKind::Constant) || node.is(OpKind::Opaque)) return;
    std::vector<TensorType> types;
    for (const Value& input : node.inputs) types.push_back(input ? input.type() : TensorType{});
    const auto inferred = infer_types(node.op, types, node.attributes, static_cast<int>(node.outputs.size()));
    if (!inferred.ok()) return;  // of operators whose results depend on data
    for (const Requirement& requirement : inferred->requirements) add(requirement.cond, node, requirement.what);
  }

  void add(const Cond& cond, const Node& node, const std::string& what) {
    const Cond left = simplify(cond, bounds_);
    if (left.is_true() || has_load_within(left)) return;
    const std::string text = name_of_node(node) + " (" + op_info(node.op).name + "): " + what;
    if (seen_.insert(text).second) demands_.push_back({left, text});
  }

  static bool has_load_within(const Cond& cond) {
    if (cond.kind() == CondKind::NonNegative) return has_load(cond.index());
    return std::ranges::any_of(cond.parts(), has_load_within);
  }

  const Graph& graph_;
  SymbolBounds bounds_;
  std::vector<SizeDemand> demands_;
  std::set<std::string> seen_;
};

}  // namespace
}  // namespace gopt::planner

namespace gopt {

std::vector<SizeDemand> size_demands(const Graph& graph, const std::vector<OpenExtent>& open) {
  return open.empty() ? std::vector<SizeDemand>{} : planner::SizeDemandFinder(graph, open).run();
}

std::vector<SizeDemand> size_demands(const Plan& plan) {
  if (plan.target.open.empty()) return {};
  std::vector<SizeDemand> demands = planner::SizeDemandFinder(plan.graph, plan.target.open).run();
  add_demands(demands, planner::SizeDemandFinder(plan.graph, plan.target.open).of_kernels(plan));
  return demands;
}

void add_demands(std::vector<SizeDemand>& demands, const std::vector<SizeDemand>& others) {
  for (const SizeDemand& other : others)
    if (std::ranges::none_of(demands, [&](const SizeDemand& own) { return own.what == other.what; }))
      demands.push_back(other);
}

}  // namespace gopt
