// What `gopt info` says of a model, as a value.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
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
  std::map<std::string, int> not_defined;       // those among them that gopt keeps as they are
  int64_t parameters = 0, parameter_bytes = 0;  // elements of weights, each weight once
  // Nothing where an extent is open or a type is not known.
  std::optional<double> operations;             // scalar ones in additions, of operators that have a definition
  std::optional<int64_t> peak_bytes;            // of values that are alive at once, inputs among them, weights not
  std::map<std::string, double> operations_of;  // by operator, where there are operations
};

ModelInfo model_info(const ImportedModel& model);
nlohmann::json info_json(const ModelInfo& info);

}  // namespace gopt::cli
