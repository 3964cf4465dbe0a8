// Attention in one kernel: how it is found in a graph, and the ways to run it.
#pragma once

#include <memory>
#include <vector>

#include "gopt/attention.h"
#include "gopt/graph.h"
#include "implementations.h"

namespace gopt::planner {

// What a node of Role::Attention stands for: MatMul(Softmax(scale query key + bias + mask), value), with scores that
// may be chosen, and what moves elements around it.
struct AttentionCover {
  std::shared_ptr<const Attention> attention;
  Value query, key, value, mask, bias, choice;  // as they lie in memory: the last three may be none
  Value result;
  std::vector<uint32_t> nodes;  // covered, in order
};

// Kernels on matrix tiles add one mask.
inline bool is_for_tiles(const Attention& attention) { return !attention.bias && !attention.choice; }

std::vector<Implementation> attention_implementations();
double attention_operations(const Plan& plan, const Kernel& kernel);  // multiply-adds, counted two

}  // namespace gopt::planner
