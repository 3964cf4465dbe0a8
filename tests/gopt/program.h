// Runs the gopt program as a user does, in a folder of its own.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "../onnx/temporary_folder.h"
#include "gopt/onnx.h"
#include "gopt/text.h"

namespace gopt {

struct Outcome {
  int status = -1;   // exit status; -1 where a signal ended it
  std::string text;  // standard output and error
};

inline Outcome run_program(const std::string& arguments) {
  Outcome outcome;
  FILE* pipe = popen((std::string(GOPT_PROGRAM) + " " + arguments + " 2>&1").c_str(), "r");
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) outcome.text.append(buffer, n);
  const int status = pclose(pipe);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  return outcome;
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}
inline std::string read_file(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
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
