// What the parts of the ONNX reader share while a model is read: the builder, names in scope, declared types, functions
// and what was found out about integer values. import_onnx.cc runs the whole; import_node.cc takes one node.
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "gopt/onnx.h"
#include "model_file.h"

namespace gopt::ir {

using Opsets = std::map<std::string, int64_t>;

// Values by name, with those of the graphs around.
struct NameScope {
  const NameScope* outer = nullptr;
  Opsets opsets;
  std::unordered_map<std::string, Value> values;
  std::set<std::string> used;  // names that something reads, subgraphs included
  int depth = 0;

  const Value* find(const std::string& name) const;
  bool is_used(const std::string& name) const { return used.contains(name); }
  int64_t opset() const;  // of ONNX's own domain, 0 where there is none
};

struct ImportState {
  ImportState(ModelFile& model_file, const ImportOptions& import_options) : file(model_file), options(import_options) {}

  ModelFile& file;
  const ImportOptions& options;
  GraphBuilder builder;
  std::vector<std::string> warnings;
  std::map<std::pair<std::string, std::string>, const onnx::FunctionProto*>
      functions;                                 // by domain and name; null: ambiguous
  Substitution fixed;                            // symbols whose value the options give
  std::set<AtomId> input_symbols;                // extents of the model's inputs
  std::set<std::string> dimensions;              // and their names, of those that are no sums
  std::map<std::string, TensorType> declared;    // types by value name, of the main graph
  std::map<Value, std::vector<Index>> integers;  // elements of small integer tensors, where known
  // When static extents are changed by --shape: the types that the file's own extents give, by value name.
  const std::map<std::string, TensorType>* original_types = nullptr;
  std::vector<std::pair<int64_t, int64_t>> changed_extents;  // old and new
  std::map<std::string, TensorType> seen_types;              // by value name
  std::vector<FileNode> changed;                             // of the main graph
  std::set<const Node*> attributed;                          // nodes that some node of the main graph became
  bool declares_too_much = false;                            // perhaps, from some node on: extents that were rounded up
  // Extents that no integers are known by: nothing that the graph holds would have them (extents_of_nothing).
  std::set<AtomId> forgotten;
  bool has_cut_ranges = false;
  long opaque_count = 0;
  int64_t nodes_of_functions = 0;  // that calls came to
  long shapes_changed = 0;         // constants that were made to follow --shape

  void warn(const std::string& text);
};

// A name's type as the file declares it: symbols by name, those that --shape fixes as numbers; extents that are left
// open are symbols named after the value. Types that are no tensors have no element type.
TensorType declared_type(const ImportState& state, const onnx::TypeProto& type, const std::string& name);

// Imports nodes in an order in which each value is defined before it is used, into scope.values.
// Errors: a cycle, a value that nothing defines, a name defined twice, and those of import_node.
Status import_nodes(ImportState& state, google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes, NameScope& scope);

// One node: its output values by position (null for those that are left out).
Result<std::vector<Value>> import_node(ImportState& state, onnx::NodeProto& node, int position, NameScope& scope);

// Initializers and sparse initializers of a graph as constants in scope.
Status import_initializers(ImportState& state, onnx::GraphProto& graph, NameScope& scope);

}  // namespace gopt::ir
