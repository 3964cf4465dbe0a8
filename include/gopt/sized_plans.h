// Plans of one model for several sizes of its open extents, brought together behind one interface (SizedPlans), and the
// check that what is behind it is each size's own code.
#pragma once

#include <functional>
#include <vector>

#include "gopt/codegen.h"
#include "gopt/driver.h"
#include "gopt/runnable_model.h"

namespace gopt {

// The extents that inputs leave open, in the order in which inputs have them. Plans for any size are made for `usual`,
// where it has one, else for 8 of what is the first extent of an input, a batch, and 128 of others; no more than the
// maxima. Errors: an input of unknown rank, an extent that no input has by itself, so that inputs would not say it, a
// maximum of what is no open extent or below 1.
Result<std::vector<OpenExtent>> open_extents(const Graph& graph, const Extents& usual, const Extents& maxima);

// `open`: the model with its open extents; the plans: of the same model at sizes of them. Errors: an extent that no
// input has by itself, so that inputs would not say it; two plans for one size. `read_at`: reads the model with some
// extents fixed, where it may be that rows are seen to be independent which with all extents open are not.
using ReadModelAt = std::function<Result<Graph>(const Extents& fixed)>;
Result<SizedPlans> join_sizes(const Graph& open, const std::vector<Plan>& plans, const ReadModelAt& read_at = {});
// The same of a plan for any size alone; also beside those that are joined, whose model it is of.
void add_general(SizedPlans& plans, Plan general);

// Runs the code for all sizes at each, against that size's own code, on fresh random inputs; and where rows may be run
// in parts, each size's first rows by the smaller ones. The code for any size is run at each of them, too. Errors: the
// first output that differs, with its size; those of building.
Status check_sizes(const SizedPlans& plans, const DriverOptions& options);

}  // namespace gopt
