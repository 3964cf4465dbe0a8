// `rulegen derive`: which rules of a file follow from a database, and which rules of a database from its others.
#pragma once

#include <string>
#include <vector>

#include "gopt/derivation.h"

namespace gopt::cli {

struct DeriveOptions {
  std::vector<std::string> rules;
  std::string file, format = "rules", json, core, shortcut;
  DerivationLimits limits;
  int threads = 1, passes = 3;
  bool minimal = false, learn = false, brief = false, respect_kinds = false, force = false;
};

// For each rule of the database, from the most special to the most general: whether it follows from those that are
// left. What does is a shortcut, the others are the core.
Result<int> derive_minimal(const DeriveOptions& options);

}  // namespace gopt::cli
