// Runs the gopt program as a user does, in a folder of its own.
#pragma once

#include <stdexcept>
#include <string>

#include "gopt/onnx.h"
#include "gopt/text.h"
#include "run_command.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {

inline Outcome run_program(const std::string& arguments) {
  return run_command(std::string(GOPT_PROGRAM) + " " + arguments);
}

// The graph of `text` as an ONNX file. GTest's assertions are not used here: a broken test text throws.
inline void write_model(const std::string& text, const std::string& path, int64_t opset = 17) {
  auto graph = parse_graph(text);
  if (!graph.ok()) throw std::runtime_error(graph.error().message);
  Metadata metadata = graph->metadata();
  metadata.opsets[""] = opset;
  const Status status = export_onnx(Graph(graph->inputs(), graph->outputs(), metadata), path, {.force = true});
  if (!status.ok()) throw std::runtime_error(status.error().message);
}

}  // namespace gopt
