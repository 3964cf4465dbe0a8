// Updates at places along an axis, one after another, by the runtime's gopt_scatter.h: loops of the definition look at
// every update for each element.
#pragma once

#include <optional>
#include <string>

#include "gopt/plan.h"

namespace gopt::codegen {

// The function's text, as print_cpu_kernel has it; nothing where the kernel is none of ScatterAlong alone, on plain
// tensors of the graph's types.
std::optional<std::string> print_scattering(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::codegen
