// Softmax of opsets before 13, which normalizes over all axes from one on. In the graph it is the Softmax of a matrix
// between two Reshapes (node_forms.cc); here it becomes one node again.
#include <algorithm>

#include "export_state.h"

namespace gopt::ir {
namespace {

constexpr int64_t kSinceOneAxis = 13;  // the opset from which Softmax is over one axis

// The axis before which the extents' product is the matrix's rows, and from which on its columns.
std::optional<size_t> axis_of_matrix(const TensorType& type, const Shape& matrix) {
  if (!type.shape) return std::nullopt;
  for (size_t axis = 0; axis < type.shape->size(); axis++) {
    Index rows = 1, columns = 1;
    for (size_t k = 0; k < type.shape->size(); k++) {
      Index& product = k < axis ? rows : columns;
      product = product * (*type.shape)[k];
    }
    if (rows == matrix[0] && columns == matrix[1]) return axis;
  }
  return std::nullopt;
}

bool is_reshape(const Node& node) { return node.is(OpKind::Reshape) || node.is(OpKind::Flatten); }

// A 0 among a Reshape's extents means that of its input.
bool is_filled(const TensorType& type) {
  if (!type.has_static_shape()) return false;
  const std::vector<int64_t> dims = type.static_shape();
  return std::find(dims.begin(), dims.end(), 0) == dims.end();
}

std::optional<FlatSoftmax> flat_softmax(const Graph& graph, const NodePtr& last, const std::set<const Node*>& outputs,
                                        int64_t opset) {
  if (!is_reshape(*last)) return std::nullopt;
  const NodePtr& soft = last->inputs[0].node;
  if ((!soft->is(OpKind::Softmax) && !soft->is(OpKind::LogSoftmax)) || outputs.contains(soft.get()))
    return std::nullopt;
  const auto& matrix = soft->inputs[0].type().shape;
  const NodePtr& first = soft->inputs[0].node;
  const auto is_over_columns = [&] { return std::get<Index>(soft->attributes.at("axis")) == Index(1); };
  if (!matrix || matrix->size() != 2 || !is_over_columns() || !is_reshape(*first)) return std::nullopt;
  if (graph.users()[static_cast<size_t>(graph.id_of(soft))].size() != 1) return std::nullopt;
  const Value& input = first->inputs[0];
  const bool has_plain_reshape = opset >= 5 && is_filled(last->outputs[0]);
  const auto axis = axis_of_matrix(input.type(), *matrix);
  if (axis && input.type() == last->outputs[0]) return FlatSoftmax{input, soft->op, *axis, FlatSoftmax::Reshaped::Not};
  if (!has_plain_reshape) return std::nullopt;
  if (axis) return FlatSoftmax{input, soft->op, *axis, FlatSoftmax::Reshaped::After};
  if (const auto axis = axis_of_matrix(last->outputs[0], *matrix))
    return FlatSoftmax{input, soft->op, *axis, FlatSoftmax::Reshaped::Before};
  return std::nullopt;
}

}  // namespace

std::map<const Node*, FlatSoftmax> flat_softmaxes(const Graph& graph, int64_t opset) {
  std::map<const Node*, FlatSoftmax> found;
  if (opset >= kSinceOneAxis) return found;
  std::set<const Node*> outputs;
  for (const GraphOutput& output : graph.outputs()) outputs.insert(output.value.node.get());
  for (const NodePtr& node : graph.nodes())
    if (auto flat = flat_softmax(graph, node, outputs, opset)) found.emplace(node.get(), *flat);
  return found;
}

void export_flat_softmax(ExportState& state, const Node& reshape, const FlatSoftmax& flat) {
  using Reshaped = FlatSoftmax::Reshaped;
  const std::string& output = state.outputs_of(reshape)[0];
  const auto reshaped = [&](const std::string& value, const std::string& name) {
    const std::string shape = state.constant(Tensor::vector_i64(reshape.outputs[0].static_shape()));
    return state.add("Reshape", {value, shape}, name);
  };
  std::string value = state.name_of(flat.input);
  if (flat.reshaped == Reshaped::Before) value = reshaped(value, "");
  const std::map<std::string, AttributeValue> axis{{"axis", Index(static_cast<int64_t>(flat.axis))}};
  const std::string made = flat.reshaped == Reshaped::After ? "" : output;
  value = state.add(op_info(flat.kind).name, {value}, made, axis, reshape.name);
  if (flat.reshaped == Reshaped::After) reshaped(value, output);
}

}  // namespace gopt::ir
