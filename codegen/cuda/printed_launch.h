// Kernels of the runtime's that a function of the model launches.
#pragma once

#include <string>

namespace gopt::codegen {

// "void NAME(...)", which launches it, with its text, and the call.
struct PrintedLaunch {
  std::string declaration, text, call;
};

}  // namespace gopt::codegen
