#include "implementations.h"

#include "attention.h"
#include "channels.h"
#include "cpu_arithmetic.h"
#include "cpu_convolutions.h"
#include "cpu_products.h"
#include "cuda_convolutions.h"
#include "library_operands.h"
#include "patches.h"
#include "tiles.h"
#include "vectors.h"
#include "warpgroups.h"

namespace gopt::planner {
namespace {

std::vector<Implementation> cublas_products() {
  return {{"", KernelKind::MatrixProduct, TargetKind::Cuda, is_not_of_integers, product_efficiency}};
}

}  // namespace

std::span<const Implementation> implementations() {
  static const std::vector<Implementation> rows = [] {
    std::vector<Implementation> all;
    for (const auto& family :
         {cpu_convolution_implementations, cpu_product_implementations, cuda_convolution_implementations,
          cublas_products, tile_implementations, warpgroup_implementations, patch_implementations,
          vector_implementations, attention_implementations, channel_implementations})
      for (const Implementation& row : family()) all.push_back(row);
    return all;
  }();
  return rows;
}

}  // namespace gopt::planner

namespace gopt {

bool is_of_two_terms(const Kernel& kernel) {
  const std::string& name = kernel.implementation;
  return name == planner::kSplit || name == planner::kTilesOfTwo || name == kAttentionOfThree;
}

namespace {

// Products of a few lines by each matrix take as long as this takes to be read, whatever they are computed in.
bool waits_for_matrices(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kMostLines = 4;
  if (kernel.kind != KernelKind::MatrixProduct) return false;
  const std::vector<int64_t>&right = plan.buffer(kernel.input_buffers[1]).dims,
        &result = plan.buffer(kernel.output_buffers[0]).dims;
  const bool is_one_matrix = element_count(std::span(right).first(right.size() - 2)) == 1;
  const int64_t lines = element_count(std::span(result).first(result.size() - 1));
  return (is_one_matrix ? lines : result[result.size() - 2]) <= kMostLines;
}

}  // namespace

bool is_tf32(const Plan& plan, const Kernel& kernel) {
  return planner::is_library(kernel.kind) && plan.target.precision == Precision::Tf32 &&
         plan.buffer(kernel.input_buffers[0]).element == ElementType::Float32 && !waits_for_matrices(plan, kernel);
}

}  // namespace gopt

namespace gopt::planner {

const Implementation& implementation_of(const Plan& plan, const Kernel& kernel) {
  for (const Implementation& row : implementations())
    if (row.kind == kernel.kind && row.target == plan.target.kind && row.name == kernel.implementation) return row;
  throw InternalError("kernel " + kernel.name + " has no implementation '" + kernel.implementation + "'");
}

}  // namespace gopt::planner
