// ONNX in and out: opsets 7 to 26 (older ones for code), IR 3 to 13, external data mapped and never loaded whole. What
// has no definition here becomes an opaque node and is written as it was read.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gopt/graph.h"
#include "gopt/temporary.h"

namespace gopt {

struct ImportOptions {
  // --shape: input name to extents, or a symbolic dimension's name to one. Fixes such dimensions, or changes the batch
  // of a static model (constants of Reshape and the like that follow from it are recomputed, and checked).
  std::map<std::string, std::vector<int64_t>> shapes;
  // Symbolic dimensions that are taken to be sums of others, those that `shapes` gives a number apart.
  Substitution equal;
  // Operators without a definition become nodes of others, where they can: for code. What an ONNX runtime is to run
  // keeps them whole.
  bool lower = false;
  // Ranges that end at open extents are taken to lie within their axis, and parts to fill it, where ONNX would cut
  // them: for who refuses sizes at which that is not so (SizeDemand, gopt/plan.h).
  bool ranges_fit = false;
  // But that a range of more places than this ends where the axis does (x[:, :4096] of any length): its extent is no
  // number then, which what reads it may need.
  int64_t longest_whole_range = 1024;
  // Inputs with a default value (initializers of their names, since IR 4) become constants. Else they stay inputs, and
  // their values are written again.
  bool freeze_initializers = true;
};

// A node of the file that the graph does not hold as it stood there: taken apart, folded, passed by, or merged with an
// equal one.
struct FileNode {
  std::string name, op;
  std::vector<std::string> outputs;  // names; empty where one is left out
  std::vector<Value> results;        // parallel to them
  std::map<std::string, int> made;   // nodes that it became, by operator; constants are not counted
};

struct ImportedModel {
  Graph graph;
  std::vector<std::string> warnings;
  std::vector<std::string> files;  // that it was read from: the model and its external data
  // Nodes of the file by operator, with its domain where that is not ONNX's: as they stand there, bodies of If, Loop
  // and Scan included, constants not. What the graph holds may differ: functions are taken apart, shape arithmetic is
  // folded.
  std::map<std::string, int> operators;
  std::vector<FileNode> changed;  // in the order in which they run
  bool has_cut_ranges = false;    // that end where an open axis does
};

// Errors name the file, the node and what would mend it: not ONNX, truncated, a cycle, a missing or too short external
// file or one outside the model's folder, contradictory shapes, a dimension of --shape that does not fit.
Result<ImportedModel> import_onnx(const std::string& path, const ImportOptions& options = {});

struct ExportOptions {
  bool force = false;                // overwrite an existing file
  int64_t external_above = 1 << 30;  // total weight bytes above which weights go to PATH.data beside it
};

// Writes beside the path, then renames. Weight-only nodes are evaluated and written as initializers, one at a time.
// Errors: the file exists, the folder cannot be written, an operator that the model's opset cannot express.
Status export_onnx(const Graph& graph, const std::string& path, const ExportOptions& options = {});
// The same up to the names, which `staged` gives together with those of other files.
Status stage_onnx(const Graph& graph, const std::string& path, const ExportOptions& options, StagedFiles& staged);
// Whether the model's opset can express the graph: the error that export_onnx would give, without a path.
Status check_exportable(const Graph& graph);

// A tensor from / to a .pb file (TensorProto). What is written appears under its name only when it is whole.
Result<Tensor> read_tensor_proto(const std::string& path, std::string* name = nullptr);
Status write_tensor_proto(const Tensor& tensor, const std::string& name, const std::string& path);

// Named tensors from / to NumPy's .npz; of .npy, one without a name. Reads stored and deflated entries, in either byte
// and axis order; writes stored ones. Errors: no zip file, an entry that is no array of numbers, a type NumPy lacks.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
Result<NamedTensors> read_npz(const std::string& path);
Status write_npz(const NamedTensors& tensors, const std::string& path);

}  // namespace gopt
