// A model file, read: the messages without the bytes of large tensors, which stay where they are in the mapped file.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tensor_proto.h"

namespace gopt::ir {

struct ModelFile {
  std::string path;
  onnx::ModelProto model;                  // its graph has no initializers
  std::vector<TensorSource> initializers;  // in file order
  // Large values of `Constant` nodes, by the node's position in the graph; their messages have none.
  std::map<int, TensorSource> node_values;
  ExternalFiles external{std::filesystem::path()};
};

// Errors: missing, a folder, empty, truncated (with the position), not ONNX, without a graph.
Result<ModelFile> read_model_file(const std::string& path);

}  // namespace gopt::ir
