// Operators without definition as calls of functions that the caller of the code registers.
#include <algorithm>

#include "cover.h"
#include "gopt/node_names.h"

namespace gopt::planner {
namespace {

bool is_read(const Graph& graph, const Value& value) {
  const auto is_value = [&](const Value& other) { return other == value; };
  const auto is_own = [&](const GraphOutput& output) { return output.value == value; };
  const std::vector<NodeId>& users = graph.users()[static_cast<uint32_t>(graph.id_of(value.node))];
  return std::ranges::any_of(graph.outputs(), is_own) || std::ranges::any_of(users, [&](NodeId user) {
           return std::ranges::any_of(graph.node(user)->inputs, is_value);
         });
}

std::string name_of_output(const Node& node, size_t number) {
  const std::string name = number < node.output_names.size() ? node.output_names[number] : "";
  return "output " + (name.empty() ? std::to_string(number) : "`" + name + "`");
}

bool has_extents(const TensorType& type, const Environment& sizes) {
  return type.shape && std::ranges::all_of(*type.shape, [&](const Index& e) { return evaluate(e, sizes).has_value(); });
}

constexpr const char* kNone = " has no definition here";

}  // namespace

bool is_given_to_function(const Cover& cover, const Value& value) {
  return value && is_computable(value.type().element) && has_extents(value.type(), cover.sizes);
}

// Nodes of ONNX's own domain may be without definition because extents are open: at fixed ones they may have code.
std::optional<std::string> why_no_call(const Cover& cover, const NodePtr& node) {
  const Target& target = cover.options.target;
  if (!target.open.empty() && node->opaque->domain.empty())
    return std::string(kNone) +
           " at any size, so no code can be made for it; at fixed extents (--shape, --specialize) it may have one, "
           "unless what it gives depends on data";
  if (!target.calls_functions)
    return std::string(kNone) + ", so no code can be made for it; the optimized ONNX keeps it" +
           (target.kind == TargetKind::Cuda ? ", and code for --target cpu can call a function of yours for it" : "");
  for (const Value& input : node->inputs)
    if (input && input.type().shape && !is_computable(input.type().element))
      return std::string(kNone) + ", and no function can be called for it: it reads `" + name_of_node(*input.node) +
             "` of type " + to_string(input.type().element);
  for (size_t o = 0; o < node->outputs.size(); o++) {
    const TensorType& type = node->outputs[o];
    const Value value{node, static_cast<int>(o)};
    if (is_given_to_function(cover, value) || !is_read(cover.graph, value)) continue;
    const std::string no_call =
        std::string(kNone) + ", and no function can be called for it: its " + name_of_output(*node, o);
    if (type.shape && !is_computable(type.element) && type.element != ElementType::Undefined)
      return no_call + " is of type " + to_string(type.element);
    return no_call +
           (type.shape ? " is " + to_string(type) + ", whose extents are not all known" : " has an unknown shape") +
           ": that depends on data, or the model does not declare it (as a value_info would)";
  }
  return std::nullopt;
}

}  // namespace gopt::planner

namespace gopt {

std::string external_name(const Node& node) {
  return (node.opaque->domain.empty() ? "" : node.opaque->domain + "::") + node.opaque->op_type;
}

std::vector<ExternalOperator> external_operators(const Plan& plan) {
  std::vector<ExternalOperator> operators;
  for (const Kernel& kernel : plan.kernels) {
    if (kernel.kind != KernelKind::External) continue;
    const Node& node = *kernel.nodes[0];
    auto known = std::ranges::find(operators, external_name(node), &ExternalOperator::name);
    if (known == operators.end()) known = operators.insert(known, {external_name(node), {}});
    known->nodes.push_back(name_of_node(node));
  }
  return operators;
}

}  // namespace gopt
