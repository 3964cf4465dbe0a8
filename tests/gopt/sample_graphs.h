// Graphs that several tests of the program are about.
#pragma once

#include <string>

namespace gopt {

// sin^2 + cos^2 of an input `x` of that shape becomes 1, which differs where x is infinite.
inline std::string trigonometric(const std::string& shape) {
  return "graph trigonometric\n  input x : f32" + shape +
         "\n  s = Sin(x)\n  c = Cos(x)\n  s2 = Mul(s, s)\n  c2 = Mul(c, c)\n  y = Add(s2, c2)\n  output y = y\nend\n";
}

}  // namespace gopt
