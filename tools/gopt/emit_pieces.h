// The folder of a model that was split: a folder a piece of code, an ONNX file for what is left to the caller, and the
// plan of calls: for programs (plan.json), for people (plan.txt) and for C (plan.h).
#pragma once

#include <string>
#include <vector>

#include "gopt/codegen.h"
#include "gopt/model_pieces.h"

namespace gopt::cli {

// A step as the folder has it: its piece, or the file that holds the caller's nodes.
struct NamedStep {
  std::string name;                          // "piece_0", "yours_1"
  std::string prefix;                        // of a piece's functions
  std::string file;                          // the caller's: empty where no file can hold it
  std::string why_no_file;                   // then
  std::string bytes;                         // of the file
  std::vector<std::string> inputs, outputs;  // values
};
// `distinct`: each piece has a prefix of its own, so that all can be linked into one program; else they are loaded as
// libraries, and share what is compiled of the runtime.
std::vector<NamedStep> named_steps(const ModelPieces& pieces, const std::string& prefix, bool distinct = true);

// Errors: those of emit(), with the piece.
Result<EmittedCode> emit_pieces(const ModelPieces& pieces, const std::string& prefix, bool distinct = true);

// The steps in words, a line each and one for each of the caller's nodes.
std::string plan_text(const ModelPieces& pieces, const std::vector<NamedStep>& steps);

}  // namespace gopt::cli
