// What `gopt info` says of a model, as a value.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "gopt/codegen.h"
#include "gopt/onnx.h"

namespace gopt::cli {

struct ModelInfo {
  std::vector<ModelValue> inputs, outputs;
  std::vector<std::string> symbols;             // extents of inputs that are open
  std::map<std::string, int64_t> opsets;        // by domain, "" is ONNX's
  std::map<std::string, int> in_file;           // operators as they stand there, by name
  std::map<std::string, int> operators;         // that run, by name
  std::map<std::string, int> taken_apart;       // those among them that are kept whole, but not where code is made
  std::map<std::string, int> control_flow;      // If, Loop and Scan that are kept there, too
  std::map<std::string, int> not_defined;       // the others that gopt keeps as they are
  int64_t parameters = 0, parameter_bytes = 0;  // elements of weights, each weight once
  // Nothing where an extent is open or a type is not known.
  std::optional<double> operations;             // scalar ones in additions, of operators that have a definition
  std::optional<int64_t> peak_bytes;            // of values that are alive at once, inputs among them, weights not
  std::map<std::string, double> operations_of;  // by operator, where there are operations
};

// `for_code`: operators without definition that are left where the model is read for code.
ModelInfo model_info(const ImportedModel& model, const std::set<std::string>& for_code);
std::set<std::string> not_defined_in(const Graph& graph);
nlohmann::json info_json(const ModelInfo& info);

}  // namespace gopt::cli
