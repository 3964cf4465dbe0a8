#include "check_file.h"

#include <algorithm>

#include "gopt/onnx.h"

namespace gopt::cli {
namespace {

// Where the type has symbols any extent fits.
bool fits(const TensorType& type, const Tensor& tensor) {
  if (type.element != tensor.type()) return false;
  if (!type.shape) return true;
  return std::ranges::equal(*type.shape, tensor.dims(), [](const Index& extent, int64_t given) {
    return !extent.is_constant() || extent.constant() == given;
  });
}

std::string names_of(const Graph& graph) {
  std::string inputs, outputs;
  for (const Value& v : graph.inputs()) inputs += (inputs.empty() ? "" : ", ") + v.node->name;
  for (const GraphOutput& o : graph.outputs()) outputs += (outputs.empty() ? "" : ", ") + o.name;
  return "inputs " + inputs + " and outputs " + outputs;
}

}  // namespace

bool is_check_file(const std::string& check) { return check.ends_with(".npz"); }

Status read_check_file(const std::string& path, const Graph& graph, CheckOptions& check) {
  GOPT_ASSIGN_OR_RETURN(NamedTensors tensors, read_npz(path));
  for (auto& [name, tensor] : tensors) {
    const auto is_named = [&n = name](const Value& v) { return v.node->name == n; };
    const auto input = std::ranges::find_if(graph.inputs(), is_named);
    const auto output = std::ranges::find(graph.outputs(), name, &GraphOutput::name);
    const bool is_input = input != graph.inputs().end();
    if (!is_input && output == graph.outputs().end())
      return Error{path + " holds '" + name + "', which the model has not; it has " + names_of(graph)};
    const TensorType& type = is_input ? input->type() : output->value.type();
    if (!fits(type, tensor))
      return Error{path + ": " + name + " is " + to_string(tensor.tensor_type()) + ", expected " + to_string(type)};
    (is_input ? check.inputs : check.expected).insert_or_assign(name, std::move(tensor));
  }
  if (check.inputs.empty()) return Error{path + " holds no input of the model; it has " + names_of(graph)};
  return Unit{};
}

}  // namespace gopt::cli
