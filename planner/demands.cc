// What sizes of open extents have to satisfy, from the definitions of a graph's nodes.
#include <algorithm>
#include <set>
#include <unordered_set>

#include "access.h"
#include "gopt/bounds.h"
#include "gopt/definition.h"
#include "gopt/node_attributes.h"
#include "gopt/node_names.h"
#include "gopt/plan.h"
#include "gopt/row_function.h"

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

  // Of library kernels, which make sums of something; attention of floats to no keys is zero.
  std::vector<SizeDemand> of_kernels(const Plan& plan) {
    for (const Kernel& kernel : plan.kernels) {
      if (kernel.kind == KernelKind::Generated || kernel.kind == KernelKind::Reorder ||
          kernel.kind == KernelKind::External || kernel.kind == KernelKind::Recurrence ||
          kernel.kind == KernelKind::RowFunction)
        continue;
      const Cond has_none = none_of(shape_of(plan.buffer(kernel.output_buffers[0])));
      if (kernel.kind == KernelKind::Attention) {
        if (is_half(plan.buffer(kernel.input_buffers[0]).element))
          add(at_least(kernel.attention->keys, Index(1)) || has_none, *kernel.nodes[0],
              "its code is for keys, of which there are " + to_string(kernel.attention->keys));
        continue;
      }
      for (const BufferId input : kernel.input_buffers)
        for (const Index& extent : shape_of(plan.buffer(input)))
          add(at_least(extent, Index(1)) || has_none, *kernel.nodes[0],
              "its code sums over the extent " + to_string(extent) + ", which is not 0");
    }
    return std::move(demands_);
  }

 private:
  // Kernels count a row's elements in 32 bits.
  void add_row_function(const Node& node) {
    const RowFunction& function = *node.opaque->row_function;
    const Index& extent = (*node.inputs[0].type().shape)[static_cast<size_t>(function.axis)];
    add(at_least(Index(INT32_MAX), extent), node,
        "a row of extent " + to_string(extent) + " has fewer than 2^31 elements");
    if (function.kind != RowFunction::Kind::Top) return;
    const Index& taken = taken_by(node);
    add(at_least(extent, taken), node,
        "there are " + to_string(taken) + " elements to take in a row of extent " + to_string(extent));
  }

  void add_requirements(const Node& node) {
    if (node.is_row_function()) add_row_function(node);
    if (node.is(OpKind::Input) || node.is(OpKind::Constant) || node.is(OpKind::Opaque)) return;
    if (node.is(OpKind::Reshape)) add_reshape(node);
    std::vector<TensorExpr> inputs;
    for (size_t i = 0; i < node.inputs.size(); i++) {
      const Value& input = node.inputs[i];
      if (input && !input.type().shape) return;
      inputs.push_back(input ? input_tensor(static_cast<int>(i), input.type()) : TensorExpr{});
      if (input && input.node->is(OpKind::Constant)) inputs.back().data = &input.node->tensor;
    }
    const auto definition = define(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
    if (!definition.ok()) return;  // of operators whose results depend on data
    for (const Requirement& requirement : definition->requirements) add(requirement.cond, node, requirement.what);
    for (const TensorExpr& output : definition->outputs) {
      const Element element = element_of(output);
      std::unordered_set<const Expr::Node*> visited;
      add_places(element.value, inputs, none_of(element.shape), node, visited);
    }
  }

  // A number that is computed and comes to 0 means the input's extent of that axis, as a 0 in the file would: another
  // shape, unless that is 0, too.
  void add_reshape(const Node& node) {
    const auto& wanted = std::get<std::vector<Index>>(node.attributes.at("shape"));
    const auto& from = node.inputs[0].type().shape;
    if (!from || int_or(node, "allowzero", 0) != 0) return;
    for (size_t axis = 0; axis < wanted.size(); axis++) {
      if (wanted[axis].is_constant()) continue;
      const Cond is_alike = axis < from->size() ? equal((*from)[axis], wanted[axis]) : Cond::never();
      add(at_least(wanted[axis], Index(1)) || is_alike, node,
          "its shape has " + to_string(wanted[axis]) + " at axis " + std::to_string(axis) +
              ", which is not 0 (that would be the input's extent)");
    }
  }

  static Cond none_of(const Shape& shape) {
    Cond has_none = Cond::never();
    for (const Index& extent : shape) has_none = has_none || at_least(Index(0), extent);
    return has_none;
  }

  // Places that are read from a tensor are kept within the axis, which therefore has some.
  void add_places(const Expr& e, const std::vector<TensorExpr>& inputs, const Cond& has_none, const Node& node,
                  std::unordered_set<const Expr::Node*>& visited) {
    if (!visited.insert(e.get()).second) return;
    for (const Expr& a : e->args) add_places(a, inputs, has_none, node, visited);
    if (e->kind != ExprKind::Read || static_cast<size_t>(e->input) >= inputs.size()) return;
    const Shape& shape = inputs[static_cast<size_t>(e->input)].shape;
    for (size_t k = 0; k < e->subscripts.size(); k++)
      if (has_load(e->subscripts[k]))
        add(at_least(shape[k], Index(1)) || has_none, node,
            "places are looked up along the extent " + to_string(shape[k]) + ", which is not 0");
  }

  void add(const Cond& cond, const Node& node, const std::string& what) {
    const Cond left = simplify(cond, bounds_);
    if (left.is_true() || has_load_within(left)) return;
    const std::string text =
        name_of_node(node) + " (" + (node.opaque ? node.opaque->op_type : op_info(node.op).name) + "): " + what;
    // Of several axes a definition may say the same.
    if (seen_.insert(text + to_string(left)).second) demands_.push_back({left, text});
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
    if (std::ranges::none_of(demands,
                             [&](const SizeDemand& own) { return own.what == other.what && own.cond == other.cond; }))
      demands.push_back(other);
}

}  // namespace gopt
