// Nodes without a definition here: kept as serialized messages with their inputs, the values that their subgraphs take
// from outside among them, so that names may change without breaking them.
#pragma once

#include <functional>
#include <set>

#include "import_state.h"

namespace gopt::ir {

// Names that the node's subgraphs read from the graph around it, sorted.
std::set<std::string> captured_names(const onnx::NodeProto& node);
// Every name that the node's subgraphs mention.
void collect_subgraph_names(const onnx::NodeProto& node, std::set<std::string>& names);
// Renames what subgraphs capture; names that they define themselves stay.
void rename_captures(onnx::NodeProto& node, const std::map<std::string, std::string>& renamed);

// An opaque node for `node`. Errors: a captured value that nothing defines, external data of its attributes.
Result<NodePtr> import_opaque(ImportState& state, const onnx::NodeProto& node, const std::vector<Value>& inputs,
                              NameScope& scope);

}  // namespace gopt::ir
