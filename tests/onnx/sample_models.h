// Models that hold between them all that the reader knows: over opsets 7 to 21, IR 3 to 10, and all that a model may
// hold beside plain operators.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "model_builder.h"

namespace gopt {

struct SampleModel {
  std::string name;
  int opset, ir;
  std::function<void(TestModel&)> fill;
  bool opaque = false;  // holds nodes without a definition: only what is written is compared
};

inline void PrintTo(const SampleModel& row, std::ostream* out) { *out << row.name; }

const std::vector<SampleModel>& sample_models();
// The one of that name, filled in.
void fill_sample(const std::string& name, TestModel& model);

}  // namespace gopt
