// What ONNX says and ONNX Runtime has no kernel of: rewrites do not make it.
#pragma once

#include <optional>
#include <string>

#include "gopt/graph.h"

namespace gopt {

// Why ONNX Runtime's CPU refuses a node that ONNX allows; nothing where it does not. Known are pads of an average that
// are no smaller than its window, and operators that it has no kernel of in 64 bits.
std::optional<std::string> why_refused_by_runtimes(const Node& node);

}  // namespace gopt
