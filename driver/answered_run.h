// A run of code that calls functions for operators without definition, each of which is answered with what was drawn
// for it and asked what it was given: so all that the code computes itself can be compared.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "checked_part.h"
#include "gopt/runnable_model.h"

namespace gopt::driver {

// The outputs of `part`, which is of the code's graph, as the code computes them. `inputs`: those of the part. Errors:
// those of running the code, an output of the part that it does not give.
Result<std::vector<Tensor>> run_answered(RunnableModel& code, const CheckedPart& part,
                                         const std::map<std::string, Tensor>& inputs);

}  // namespace gopt::driver
