// A row's function as the operator that it was read from, where a step of a model in pieces holds it.
#include "export_state.h"
#include "gopt/row_function.h"

namespace gopt::ir {
namespace {

// Its number of elements is an input from opset 10 on; the smallest can be asked for from opset 11 on.
Status add_top(ExportState& state, const RowFunction& f, const Index& taken, onnx::NodeProto& proto) {
  proto.set_op_type("TopK");
  set_attribute(proto, "axis", Index(f.axis));
  if (!f.is_largest) set_attribute(proto, "largest", Index(0));
  if (state.opset < 10) {
    set_attribute(proto, "k", taken);
    return Unit{};
  }
  GOPT_ASSIGN_OR_RETURN(const std::string count, export_integers(state, {taken}));
  proto.add_input(count);
  return Unit{};
}

void add_running(ExportState& state, const RowFunction& f, onnx::NodeProto& proto) {
  proto.set_op_type(f.kind == RowFunction::Kind::Sum ? "CumSum" : "CumProd");
  proto.add_input(state.constant(Tensor::from_values<int64_t>(ElementType::Int64, {}, {f.axis})));
  if (f.is_reversed) set_attribute(proto, "reverse", Index(1));
  if (f.is_exclusive) set_attribute(proto, "exclusive", Index(1));
}

}  // namespace

Status export_row_function(ExportState& state, const Node& node) {
  const RowFunction& f = *node.opaque->row_function;
  onnx::NodeProto proto;
  proto.add_input(state.name_of(node.inputs[0]));
  if (f.kind == RowFunction::Kind::Top)
    GOPT_RETURN_IF_ERROR(add_top(state, f, taken_by(node), proto));
  else
    add_running(state, f, proto);
  proto.set_name(state.node_names.unique(node.name.empty() ? proto.op_type() : node.name));
  for (const std::string& output : state.outputs_of(node)) proto.add_output(output);
  *state.message.add_node() = std::move(proto);
  return Unit{};
}

}  // namespace gopt::ir
