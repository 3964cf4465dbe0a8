// Which threads make which elements of a chain's steps, and what they have to wait for. Results whose extents are
// multiples of one period (of a recurrence's hidden size) are divided alike: a block has the elements whose numbers,
// modulo the period, are its own. What a block makes and reads alone is in its shared memory, and its threads wait for
// no other block's; Diamos et al., "Persistent RNNs" (ICML'16), divide a recurrent layer so.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "../lower.h"
#include "gopt/sequence.h"

namespace gopt::codegen {

enum class Waits { Nothing, Block, Cluster };

struct ChainStep {
  const Kernel* member;
  std::optional<KernelBody> body;  // of elements; else a product
  // Its elements, or a product's columns, are divided by this period; 0: as threads come.
  int64_t period = 0;
  int64_t elements = 0;
  Waits waits = Waits::Nothing;
};

struct DividedChain {
  std::vector<ChainStep> steps;
  std::map<BufferId, int64_t> shared;  // where in shared memory buffers are that are nowhere else, in bytes
  int64_t shared_bytes = 0;
};

// Errors: an element type or operator without code, with the kernel.
Result<DividedChain> divide_chain(const Plan& plan, const Kernel& sequence, const SequenceChain& chain);

}  // namespace gopt::codegen
