// A recurrence as the operator that it was read from, where a step of a model in pieces holds it: its sums are the
// operator's input, multiplied by ones and zeros.
#include "export_state.h"
#include "gopt/recurrence.h"

namespace gopt::ir {
namespace {

constexpr auto kFloat = ElementType::Float32;

// Of [directions, rows, columns]: each direction's columns in turn, as they are.
Tensor selection(int64_t directions, int64_t width) {
  std::vector<float> ones(static_cast<size_t>(directions * width * directions * width));
  for (int64_t row = 0; row < directions * width; row++) ones[static_cast<size_t>(row * directions * width + row)] = 1;
  return Tensor::from_values<float>(kFloat, {directions, width, directions * width}, ones);
}

Tensor zeros(std::vector<int64_t> dims) {
  const std::vector<float> all(static_cast<size_t>(element_count(dims)));
  return Tensor::from_values<float>(kFloat, std::move(dims), all);
}

}  // namespace

void export_recurrence(ExportState& state, const Node& node) {
  const Recurrence& r = *node.opaque->recurrence;
  const std::vector<int64_t> weights = node.inputs[Recurrence::kWeights].type().static_shape();
  const int64_t directions = weights[0], width = weights[1], hidden = weights[2];
  const auto name_of = [&](Recurrence::Input input) { return state.name_of(node.inputs[input]); };
  std::string bias, lengths = name_of(Recurrence::kLengths);
  if (node.inputs[Recurrence::kBias])
    bias = state.add("Concat", {state.constant(zeros({directions, width})), name_of(Recurrence::kBias)}, "",
                     {{"axis", Index(1)}});
  if (!lengths.empty())
    lengths = state.add("Cast", {lengths}, "", {{"to", Index(static_cast<int64_t>(ElementType::Int32))}});
  onnx::NodeProto proto;
  proto.set_op_type(r.cell == Recurrence::Cell::Lstm ? "LSTM" : r.cell == Recurrence::Cell::Gru ? "GRU" : "RNN");
  proto.set_name(state.node_names.unique(node.name.empty() ? proto.op_type() : node.name));
  for (const std::string& input : {name_of(Recurrence::kSums), state.constant(selection(directions, width)),
                                   name_of(Recurrence::kWeights), bias, lengths, name_of(Recurrence::kState)})
    proto.add_input(input);
  if (r.has_cell_state())
    for (const auto input : {Recurrence::kCellState, Recurrence::kPeepholes}) proto.add_input(name_of(input));
  for (const std::string& output : state.outputs_of(node)) proto.add_output(output);
  set_attribute(proto, "hidden_size", Index(hidden));
  set_attribute(proto, "direction",
                std::string(directions == 2 ? "bidirectional"
                            : r.is_reversed ? "reverse"
                                            : "forward"));
  if (r.cell == Recurrence::Cell::Gru) set_attribute(proto, "linear_before_reset", Index(1));
  if (r.cell == Recurrence::Cell::Relu) {
    onnx::AttributeProto& activations = *proto.add_attribute();
    activations.set_name("activations");
    activations.set_type(onnx::AttributeProto::STRINGS);
    for (int64_t d = 0; d < directions; d++) activations.add_strings("Relu");
  }
  *state.message.add_node() = std::move(proto);
}

}  // namespace gopt::ir
