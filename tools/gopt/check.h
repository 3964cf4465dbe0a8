// The check of a result: the optimized graph against the original on fresh random inputs, ordinary ones and such as
// show what floats make of a rewrite (check_inputs.h).
#pragma once

#include <string>
#include <vector>

#include "difference.h"
#include "gopt/graph.h"

namespace gopt::cli {

struct CheckOptions {
  std::string engine =
      "auto";  // auto: the interpreter for small models, code made for both for larger; interpreter; cpu; off
  int threads = 1;
  uint64_t seed = 0;
  Tolerance tolerance;
  double operations = 0;  // of the original, which decide what auto does
};

struct CheckReport {
  bool checked = false;
  bool passed = false;
  std::string engine, why_not;          // why_not: where it could not be checked
  std::vector<std::string> draws;       // kinds of inputs, in order; where it failed, the last did
  std::vector<Difference> differences;  // on ordinary inputs, or where it failed
};

// Never an error: what cannot be checked says so.
CheckReport check_equal(const Graph& original, const Graph& optimized, const CheckOptions& options);

}  // namespace gopt::cli
