// Kernels of the runtime's that a function of the model launches.
#pragma once

#include <cstdint>
#include <string>

namespace gopt::codegen {

// "void NAME(...)", which launches it, with its text, and the call.
struct PrintedLaunch {
  std::string declaration, text, call;
  int64_t scratch_bytes = 0;  // of memory that it uses while it runs
};

}  // namespace gopt::codegen
