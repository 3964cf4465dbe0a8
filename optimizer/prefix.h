// Leading axes that a rule holds under but does not spell: attributes of a pattern node, which count axes without the
// prefix, restated for a node whose tensors have it.
#pragma once

#include "pattern.h"

namespace gopt::optimizer {

Attributes with_prefix(const PatternNode& node, const Attributes& attributes, const Shape& prefix);

}  // namespace gopt::optimizer
