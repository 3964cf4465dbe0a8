// For lower_fused.cc and lower_fused_attention.cc.
#pragma once

#include "lowering.h"

namespace gopt::ir {

Value sum_of(Lowering& l, const Values& terms);  // of those that are not null; the first is one

}  // namespace gopt::ir
