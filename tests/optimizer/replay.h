// Runs every graph of a derivation on the same inputs.
#pragma once

#include <random>
#include <string>

#include "gopt/derivation.h"

namespace gopt {

struct Replay {
  int graphs = 0;          // that were run and agree with the goal's left side
  std::string difference;  // of the first that does not: which step, and where
};

// With sizes drawn until both sides of the goal are defined and its condition holds, `times` times.
Replay replay_derivation(std::mt19937_64& random, const Derivation& derivation, int times);

}  // namespace gopt
