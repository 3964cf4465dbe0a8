// One node as ONNX has it at the model's opset.
#include <algorithm>
#include <cmath>

#include "declarations.h"
#include "export_state.h"
#include "node_forms.h"
#include "opaque.h"

namespace gopt::ir {
namespace {

bool is_symbolic(const AttributeValue& value) {
  if (const auto* number = std::get_if<Index>(&value)) return !number->is_constant();
  const auto* list = std::get_if<std::vector<Index>>(&value);
  return list && std::any_of(list->begin(), list->end(), [](const Index& entry) { return !entry.is_constant(); });
}

// An attribute that not every opset has, and the value that means the same as its absence.
struct Versioned {
  std::string_view op, attribute;
  int64_t since, until;  // the opsets that have it
  int64_t neutral;
};
constexpr int64_t kForever = 1000;
constexpr Versioned kVersioned[] = {
    {"MaxPool", "ceil_mode", 10, kForever, 0},
    {"MaxPool", "dilations", 10, kForever, 1},
    {"MaxPool", "storage_order", 8, kForever, 0},
    {"AveragePool", "ceil_mode", 10, kForever, 0},
    {"AveragePool", "count_include_pad", 7, kForever, 0},
    {"AveragePool", "dilations", 19, kForever, 1},
    {"BatchNormalization", "spatial", 7, 8, 1},
    {"BatchNormalization", "training_mode", 14, kForever, 0},
    {"Reshape", "allowzero", 14, kForever, 0},
    {"Shape", "start", 15, kForever, 0},
    {"Slice", "steps", 10, kForever, 1},
    {"ReduceSum", "noop_with_empty_axes", 13, kForever, 0},
    {"ReduceMean", "noop_with_empty_axes", 18, kForever, 0},
    {"ReduceMax", "noop_with_empty_axes", 18, kForever, 0},
    {"ReduceMin", "noop_with_empty_axes", 18, kForever, 0},
    {"ReduceProd", "noop_with_empty_axes", 18, kForever, 0},
    {"ReduceL1", "noop_with_empty_axes", 18, kForever, 0},
    {"ReduceL2", "noop_with_empty_axes", 18, kForever, 0},
    {"ReduceSumSquare", "noop_with_empty_axes", 18, kForever, 0},
    {"ReduceLogSum", "noop_with_empty_axes", 18, kForever, 0},
    {"ReduceLogSumExp", "noop_with_empty_axes", 18, kForever, 0},
};

bool is_neutral(const AttributeValue& value, int64_t neutral) {
  if (const auto* number = std::get_if<Index>(&value)) return *number == Index(neutral);
  const auto* list = std::get_if<std::vector<Index>>(&value);
  return list && std::all_of(list->begin(), list->end(), [&](const Index& entry) { return entry == Index(neutral); });
}

enum class Presence { Written, LeftOut, Impossible };

// Whether an attribute is written at this opset.
Presence presence_of(const Node& node, const OpInfo& info, const std::string& name, const AttributeValue& value,
                     int64_t opset) {
  if (name == "auto_pad" && std::get<std::string>(value) == "NOTSET") return Presence::LeftOut;
  if (name == "spatial" && is_neutral(value, 1)) return Presence::LeftOut;
  if (node.is(OpKind::Split) && name == "num_outputs") return Presence::LeftOut;  // the parts are written
  if (node.is(OpKind::DepthToSpace) && name == "mode" && opset < 11)
    return std::get<std::string>(value) == "DCR" ? Presence::LeftOut : Presence::Impossible;
  for (const Versioned& row : kVersioned) {
    if (row.op != info.name || row.attribute != name) continue;
    if (opset >= row.since && opset <= row.until) return Presence::Written;
    return is_neutral(value, row.neutral) ? Presence::LeftOut : Presence::Impossible;
  }
  if (node.is(OpKind::Shape) && name == "end" && opset < 15) return Presence::Impossible;
  return Presence::Written;
}

// The element type of a float attribute that is written as an input, and the shape that the operator asks of integers.
Result<std::string> export_input_attribute(ExportState& state, const Node& node, const AttributeValue& value) {
  if (const auto* list = std::get_if<std::vector<Index>>(&value)) return export_integers(state, *list);
  if (const auto* number = std::get_if<Index>(&value)) {
    if (!number->is_constant()) {
      GOPT_ASSIGN_OR_RETURN(const std::string vector, export_integers(state, {*number}));
      return state.add("Reshape", {vector, state.constant(Tensor::vector_i64({}))});
    }
    return state.constant(Tensor::from_values<int64_t>(ElementType::Int64, {}, {number->constant()}));
  }
  const ElementType type = node.inputs[0].type().element;
  const double real = std::get<double>(value);
  if (is_floating(type)) return state.constant(Tensor::from_values<double>(type, {}, {real}));
  return state.constant(Tensor::from_values<int64_t>(type, {}, {static_cast<int64_t>(real)}));
}

bool is_input_at(const OpInfo& info, const std::string& attribute, int64_t opset) {
  return std::any_of(info.onnx_inputs.begin(), info.onnx_inputs.end(), [&](const OnnxInput& input) {
    return input.attribute == attribute && input.since_opset <= opset;
  });
}

// Where the opset has no allowzero, a 0 means the input's extent: the same where that is 0. Another one alone is what
// is left of no elements.
void say_without_allowzero(const Shape& from, std::vector<Index>& to, AttributeValue& allowzero) {
  std::vector<size_t> own;
  for (size_t axis = 0; axis < to.size(); axis++)
    if (to[axis] == Index(0) && !(axis < from.size() && from[axis] == Index(0))) own.push_back(axis);
  if (!own.empty()) {
    const bool has_others = std::ranges::any_of(to, [&](const Index& extent) {
      return !extent.is_constant() || extent == Index(-1) || (extent == Index(0) && &extent != &to[own[0]]);
    });
    if (own.size() > 1 || has_others) return;
    to[own[0]] = Index(-1);
  }
  allowzero = Index(0);
}

// Attributes with what only some opsets can say brought to the form that this one has.
Attributes written_attributes(const ExportState& state, const Node& node) {
  Attributes attributes = node.attributes;
  if (node.is(OpKind::Reshape)) {
    auto& shape = attributes["shape"];
    if (is_symbolic(shape) && std::get<Index>(attributes["allowzero"]) == Index(0))
      shape = short_reshape(node.inputs[0].type(), std::get<std::vector<Index>>(shape));
    if (node.inputs[0].type().shape && state.opset < 14)
      say_without_allowzero(*node.inputs[0].type().shape, std::get<std::vector<Index>>(shape), attributes["allowzero"]);
  }
  // No axes at all: an empty list would mean all of them.
  const auto axes = attributes.find("axes");
  const bool reduces = axes != attributes.end() && attributes.contains("noop_with_empty_axes");
  if (reduces && std::get<std::vector<Index>>(axes->second).empty()) {
    attributes.erase(axes);
    // Of a scalar all axes are none, which every opset can say.
    const auto& shape = node.inputs[0].type().shape;
    if (shape && shape->empty()) attributes["noop_with_empty_axes"] = Index(0);
  }
  return attributes;
}

Status add_attribute_inputs(ExportState& state, const Node& node, const OpInfo& info, const Attributes& attributes,
                            std::vector<std::string>& inputs) {
  if (info.onnx_inputs.empty()) return Unit{};
  inputs.resize(static_cast<size_t>(info.max_inputs));
  for (const OnnxInput& input : info.onnx_inputs) {
    if (input.since_opset > state.opset) break;
    const auto it = attributes.find(input.attribute);
    const bool is_default = node.is(OpKind::Pad) && input.attribute == "value" && it != attributes.end() &&
                            std::get<double>(it->second) == 0;
    if (it == attributes.end() || is_default) {
      inputs.emplace_back();
      continue;
    }
    GOPT_ASSIGN_OR_RETURN(std::string name, export_input_attribute(state, node, it->second));
    inputs.push_back(std::move(name));
  }
  return Unit{};
}

Status lacks(const ExportState& state, const OpInfo& info, const std::string& what) {
  return Error{info.name + what + " cannot be written in opset " + std::to_string(state.opset) + " of the model"};
}

void add_outputs(const ExportState& state, const Node& node, onnx::NodeProto& proto) {
  for (const std::string& name : state.outputs_of(node)) proto.add_output(name);
}

Status export_plain(ExportState& state, const Node& node) {
  const OpInfo& info = op_info(node.op);
  const Attributes attributes = written_attributes(state, node);
  std::vector<std::string> inputs;
  for (const Value& input : node.inputs) inputs.push_back(state.name_of(input));
  GOPT_RETURN_IF_ERROR(add_attribute_inputs(state, node, info, attributes, inputs));
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  onnx::NodeProto proto;
  proto.set_op_type(info.name);
  proto.set_name(state.node_names.unique(node.name.empty() ? info.name : node.name));
  for (const std::string& input : inputs) proto.add_input(input);
  add_outputs(state, node, proto);
  for (const auto& [name, value] : attributes) {
    if (is_input_at(info, name, state.opset)) continue;
    const Presence presence = presence_of(node, info, name, value, state.opset);
    if (presence == Presence::Impossible) return lacks(state, info, " with " + name + "=" + to_string(value));
    if (is_symbolic(value)) return lacks(state, info, " with the symbolic attribute " + name);
    if (presence == Presence::Written) set_attribute(proto, name, value);
  }
  *state.message.add_node() = std::move(proto);
  return Unit{};
}

Status export_opaque(ExportState& state, const Node& node) {
  onnx::NodeProto proto;
  GOPT_CHECK(proto.ParseFromString(node.opaque->payload), "an opaque node's payload is damaged");
  const size_t captured = node.opaque->captured_names.size();
  const size_t plain = node.inputs.size() - captured;
  proto.clear_input();
  for (size_t i = 0; i < plain; i++) proto.add_input(state.name_of(node.inputs[i]));
  std::map<std::string, std::string> renamed;
  for (size_t i = 0; i < captured; i++) renamed[node.opaque->captured_names[i]] = state.name_of(node.inputs[plain + i]);
  rename_captures(proto, renamed);
  proto.clear_output();
  if (!node.name.empty()) proto.set_name(state.node_names.unique(node.name));
  add_outputs(state, node, proto);
  *state.message.add_node() = std::move(proto);
  return Unit{};
}

// Before opset 7 an input was broadcast only where attributes said so, and BatchNormalization trained unless told not
// to.
bool has_form_before_opset_7(const ExportState& state, const Node& node) {
  if (has_table_form(node.op, state.opset)) return true;
  if (node.is(OpKind::BatchNormalization) || node.is(OpKind::Gemm)) return false;
  const auto is_alike = [&](const Value& input) { return !input || input.type().shape == node.inputs[0].type().shape; };
  return std::all_of(node.inputs.begin(), node.inputs.end(), is_alike);
}

Status export_known(ExportState& state, const Node& node) {
  const OpInfo& info = op_info(node.op);
  const bool old_softmax = (node.is(OpKind::Softmax) || node.is(OpKind::LogSoftmax)) && state.opset < 13;
  const bool old_gemm = node.is(OpKind::Gemm) && node.inputs.size() == 2 && state.opset < 11;
  // Max and the like at opset 7 differ only in that they do not broadcast.
  const bool missing = state.opset < info.since_opset && info.since_opset > 8;
  if (!has_form_before_opset_7(state, node))
    return Error{info.name + " of this form cannot be written in opset " + std::to_string(state.opset) +
                 " of the model"};
  if (info.has(kInternal) || old_softmax || old_gemm || missing) return export_expanded(state, node);
  return export_plain(state, node);
}

}  // namespace

Status export_node(ExportState& state, const Node& node) {
  if (node.is_row_function()) return export_row_function(state, node);
  if (node.is_recurrence()) {
    export_recurrence(state, node);
    return Unit{};
  }
  if (node.is(OpKind::Opaque)) return export_opaque(state, node);
  const int before = state.message.node_size();
  if (const auto flat = state.flat_softmaxes.find(&node); flat != state.flat_softmaxes.end())
    export_flat_softmax(state, node, flat->second);
  else
    GOPT_RETURN_IF_ERROR(export_known(state, node));
  for (int i = before; i < state.message.node_size() && !node.annotations.empty(); i++)
    if (!state.message.mutable_node(i)->MergeFromString(node.annotations)) return Error{"damaged annotations"};
  return Unit{};
}

}  // namespace gopt::ir
