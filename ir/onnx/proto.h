// ONNX's message classes, as libonnx builds them, and the few names by which this folder calls them.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

namespace gopt::ir {

// "ai.onnx" is another name of ONNX's own domain, "".
inline std::string normal_domain(const std::string& domain) { return domain == "ai.onnx" ? "" : domain; }

// "node 'name' (Op)", or by its first output where it has no name.
std::string describe(const onnx::NodeProto& node);

}  // namespace gopt::ir
