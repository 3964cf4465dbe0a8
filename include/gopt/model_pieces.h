// The code of a model that was split: each piece planned, built and checked as a model of its own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gopt/driver.h"
#include "gopt/runnable_model.h"
#include "gopt/split_model.h"

namespace gopt {

struct ModelPieces {
  SplitModel split;
  std::vector<std::optional<Outcome>> outcomes;  // parallel to the steps: of those that are code, with their plans
};

// Splits a graph that is optimized already and makes the plans of its pieces, of open extents for any size: planned for
// `usual`, up to `maxima`, where they are given. Errors: no node has code; those of optimize_graph, with the piece.
Result<ModelPieces> make_pieces(const Graph& graph, const DriverOptions& options, const Extents& usual,
                                const Extents& maxima);

}  // namespace gopt
