#include "gopt/model_pieces.h"

#include <algorithm>

#include "gopt/sized_plans.h"

namespace gopt {
namespace {

// What is asked of extents that the piece has.
Extents own_of(const Graph& piece, const DriverOptions& options, const Extents& asked) {
  Extents own;
  for (const OpenExtent& extent : own_extents(piece, options.target))
    if (const auto it = asked.find(atom(extent.symbol).name); it != asked.end()) own.insert(*it);
  return own;
}

Result<Outcome> make_piece(const Graph& piece, DriverOptions options, const Extents& usual, const Extents& maxima) {
  options.wants_code = true;
  options.wants_onnx = false;
  options.file_graph.reset();
  options.is_writable = {};
  options.mutation_seconds = 0;
  options.search.search = SearchKind::None;  // the whole model was searched
  options.check.inputs.clear();              // they are of the whole model
  options.check.expected.clear();
  options.target.open.clear();
  if (options.target.kind == TargetKind::Cpu) {
    GOPT_ASSIGN_OR_RETURN(options.target.open,
                          open_extents(piece, own_of(piece, options, usual), own_of(piece, options, maxima)));
  }
  if (!options.target.open.empty()) options.measured_costs = false;  // kernels are timed at fixed sizes
  return optimize_graph(piece, {}, options);
}

}  // namespace

Result<ModelPieces> make_pieces(const Graph& graph, const DriverOptions& options, const Extents& usual,
                                const Extents& maxima) {
  ModelPieces pieces;
  GOPT_ASSIGN_OR_RETURN(pieces.split, split_model(graph, options.target));
  for (const ModelStep& step : pieces.split.steps) {
    auto& outcome = pieces.outcomes.emplace_back();
    if (!step.is_code()) continue;
    GOPT_ASSIGN_OR_RETURN(
        outcome,
        make_piece(step.graph, options, usual, maxima).with_context("piece " + std::to_string(pieces.outcomes.size())));
  }
  return pieces;
}

}  // namespace gopt
