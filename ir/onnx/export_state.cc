#include "export_state.h"

#include "tensor_proto.h"

namespace gopt::ir {

std::string NameTable::unique(const std::string& wanted) {
  if (used_.insert(wanted).second) return wanted;
  int& count = counts_[wanted];
  while (true) {
    std::string name = wanted + "_" + std::to_string(++count);
    if (used_.insert(name).second) return name;
  }
}

std::string ExportState::constant(const Tensor& tensor) {
  const onnx::TensorProto proto = tensor_message(tensor, "");
  const auto [it, added] = constants_.emplace(proto.SerializeAsString(), "");
  if (added) {
    it->second = names.unique("constant");
    tensors.push_back({it->second, tensor, {}});
  }
  return it->second;
}

std::string ExportState::add(const std::string& op_type, const std::vector<std::string>& inputs,
                             const std::string& output, const std::map<std::string, AttributeValue>& attributes,
                             const std::string& node_name) {
  onnx::NodeProto& node = *message.add_node();
  node.set_op_type(op_type);
  for (const std::string& input : inputs) node.add_input(input);
  while (node.input_size() > 0 && node.input(node.input_size() - 1).empty()) node.mutable_input()->RemoveLast();
  node.add_output(output.empty() ? names.unique(op_type + "_value") : output);
  node.set_name(node_names.unique(node_name.empty() ? op_type : node_name));
  for (const auto& [name, value] : attributes) set_attribute(node, name, value);
  return node.output(0);
}

std::string ExportState::add_once(const std::string& op_type, const std::vector<std::string>& inputs,
                                  const std::map<std::string, AttributeValue>& attributes) {
  std::string key = op_type;
  for (const auto& [name, value] : attributes) key += " " + name + "=" + to_string(value);
  const auto [it, added] = shared_.emplace(std::pair(key, inputs), "");
  if (added) it->second = add(op_type, inputs, "", attributes);
  return it->second;
}

std::string ExportState::name_of(const Value& value) const {
  if (!value) return "";
  const auto it = value_names.find(value);
  GOPT_CHECK(it != value_names.end(), "a value is used that has not been written");
  return it->second;
}

void set_attribute(onnx::NodeProto& node, const std::string& name, const AttributeValue& value) {
  onnx::AttributeProto& proto = *node.add_attribute();
  proto.set_name(name);
  if (const auto* number = std::get_if<Index>(&value)) {
    proto.set_type(onnx::AttributeProto::INT);
    proto.set_i(number->constant());
  } else if (const auto* numbers = std::get_if<std::vector<Index>>(&value)) {
    proto.set_type(onnx::AttributeProto::INTS);
    for (const Index& entry : *numbers) proto.add_ints(entry.constant());
  } else if (const auto* real = std::get_if<double>(&value)) {
    proto.set_type(onnx::AttributeProto::FLOAT);
    proto.set_f(static_cast<float>(*real));
  } else if (const auto* reals = std::get_if<std::vector<double>>(&value)) {
    proto.set_type(onnx::AttributeProto::FLOATS);
    for (const double entry : *reals) proto.add_floats(static_cast<float>(entry));
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    proto.set_type(onnx::AttributeProto::STRING);
    proto.set_s(*text);
  } else if (const auto* tensor = std::get_if<Tensor>(&value)) {
    proto.set_type(onnx::AttributeProto::TENSOR);
    *proto.mutable_t() = tensor_message(*tensor, "");
  } else {
    GOPT_CHECK(false, "attribute " + name + " is of a kind that no operator here has");
  }
}

}  // namespace gopt::ir
