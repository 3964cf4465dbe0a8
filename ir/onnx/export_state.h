// What the parts of the ONNX writer share: names, the graph's message as it grows, and the tensors that will be
// streamed after it. export_onnx.cc runs the whole; export_node.cc writes one node; stream.cc writes the file.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gopt/onnx.h"
#include "proto.h"

namespace gopt::ir {

// Names that are unique within the file, subgraphs included.
class NameTable {
 public:
  bool reserve(const std::string& name) { return used_.insert(name).second; }
  // `wanted` itself if it is free, else with a number after it.
  std::string unique(const std::string& wanted);

 private:
  std::set<std::string> used_;
  std::map<std::string, int> counts_;
};

// An initializer to be written: a tensor, or a value that is evaluated when its turn comes.
struct PendingTensor {
  std::string name;
  Tensor tensor;
  Value value;  // null where `tensor` is given

  TensorType type() const { return value ? value.type() : tensor.tensor_type(); }
};

// What a Reshape is part of where the opset has a Softmax over all axes from one on: that, and a Reshape before or
// after it where the matrix between them was of another value (flat_softmax.cc).
struct FlatSoftmax {
  Value input;  // of the whole
  OpKind kind;  // Softmax or LogSoftmax
  size_t axis;  // of the value that it is applied to: `input`, or what the Reshape before it makes
  enum class Reshaped { Not, Before, After } reshaped;
};

struct ExportState {
  explicit ExportState(const Graph& exported) : graph(exported) {}

  const Graph& graph;
  int64_t opset = 0;
  NameTable names;
  NameTable node_names;
  onnx::GraphProto message;
  std::map<Value, std::string> value_names;
  std::map<const Node*, std::vector<std::string>> output_names;  // of the nodes that are written, as above
  std::set<const Node*> written;                                 // so far, inputs and initializers among them
  std::vector<PendingTensor> tensors;
  std::map<const Node*, FlatSoftmax> flat_softmaxes;  // by the Reshape that ends them

  // The name of a small constant, made once for equal ones.
  std::string constant(const Tensor& tensor);
  // Adds a node with one output of that name (a new one where it is empty), and returns the output's name. `node_name`:
  // what the node is to be called, if it is free; its operator where that is empty.
  std::string add(const std::string& op_type, const std::vector<std::string>& inputs, const std::string& output = "",
                  const std::map<std::string, AttributeValue>& attributes = {}, const std::string& node_name = "");
  // The same for what may be shared: an equal node that was added so gives its output.
  std::string add_once(const std::string& op_type, const std::vector<std::string>& inputs,
                       const std::map<std::string, AttributeValue>& attributes = {});
  // The name of an input; empty for one that is left out.
  std::string name_of(const Value& value) const;
  const std::vector<std::string>& outputs_of(const Node& node) const { return output_names.at(&node); }

 private:
  std::map<std::string, std::string> constants_;  // by content
  std::map<std::pair<std::string, std::vector<std::string>>, std::string>
      shared_;  // by operator with attributes, and inputs
};

void set_attribute(onnx::NodeProto& node, const std::string& name, const AttributeValue& value);

// Adds what writes `node` at the state's opset. Its outputs have names. Errors: an operator or attribute that the opset
// does not have and that nothing it has can express.
Status export_node(ExportState& state, const Node& node);
// Adds what writes a recurrence's node (gopt/recurrence.h). Its outputs have names.
void export_recurrence(ExportState& state, const Node& node);
// The same of a row's function (gopt/row_function.h). Errors: a number of elements that ONNX has no form for.
Status export_row_function(ExportState& state, const Node& node);
// Softmaxes of matrices in the graph, as opsets before 13 say them without the matrix.
std::map<const Node*, FlatSoftmax> flat_softmaxes(const Graph& graph, int64_t opset);
// Adds what writes one. Its output has a name.
void export_flat_softmax(ExportState& state, const Node& reshape, const FlatSoftmax& flat);
// An operator of a later opset by those of this one. Errors: there is no such form.
Status export_expanded(ExportState& state, const Node& node);
// The name of a vector that holds the entries, computed from the extents of values where they are symbolic.
Result<std::string> export_integers(ExportState& state, const std::vector<Index>& entries);

}  // namespace gopt::ir
