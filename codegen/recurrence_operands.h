// What every target passes to a recurrence's kernel.
#pragma once

#include <string>

#include "gopt/plan.h"
#include "gopt/recurrence.h"

namespace gopt::codegen {

// Where an operand lies that the node has.
BufferId operand_buffer(const Kernel& kernel, Recurrence::Input input);

// Pointers to all operands and then results, in their order, by commas; nullptr for what the node lacks or nobody
// reads.
std::string recurrence_operands(const Plan& plan, const Kernel& kernel);

}  // namespace gopt::codegen
