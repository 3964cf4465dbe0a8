// Whether CUDA code can be built and run where the tests are.
#pragma once

#include <string>

namespace gopt {

// Why generated code cannot be built or run here; both empty: it can.
struct Obstacles {
  std::string build, run;
};
const Obstacles& obstacles();

}  // namespace gopt
