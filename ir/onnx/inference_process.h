// libonnx's checker and shape inference, in a process of their own: on attributes that no operator has they overflow,
// divide by zero or read past the end, which must not be the reader's end.
#pragma once

#include <onnx/onnx_pb.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace gopt::ir {

class InferenceProcess {
 public:
  InferenceProcess() = default;
  ~InferenceProcess() { stop(); }
  InferenceProcess(const InferenceProcess&) = delete;
  InferenceProcess& operator=(const InferenceProcess&) = delete;

  // The graph of one node with what is inferred of its outputs; its doc_string is what ONNX finds wrong with the node,
  // if anything. Nothing where inference crashes or takes more than two seconds; nor once three seconds went into that.
  std::optional<onnx::GraphProto> infer(const onnx::GraphProto& graph, const std::map<std::string, int64_t>& opsets);

 private:
  bool start();
  std::optional<std::string> ask(const std::string& request);  // nothing: it crashed, or takes too long
  void stop();
  int socket_ = -1;
  int child_ = -1;
  std::chrono::steady_clock::duration lost_{};
};

}  // namespace gopt::ir
