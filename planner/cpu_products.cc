#include "cpu_products.h"

#include <algorithm>

#include "cpu_arithmetic.h"
#include "gopt/node_attributes.h"
#include "gopt/runtime/gopt_few_rows.h"

namespace gopt::planner {

double product_efficiency(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>& dims = result(plan, kernel).dims;
  const double rows = static_cast<double>(element_count(dims)) / static_cast<double>(std::max<int64_t>(1, dims.back()));
  const bool packed = weights(plan, kernel).place == BufferPlace::Weight;
  return (packed ? 0.8 : 0.5) * std::min(1.0, (rows + 1) / 16);
}

namespace {

// Rows of the product where the right operand is one matrix of weights, and the left one lies as it is; else none.
int64_t rows_by_weights(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>&y = result(plan, kernel).dims, &w = weights(plan, kernel).dims;
  const bool is_matrix = element_count(std::span(w).first(w.size() - 2)) == 1;
  if (weights(plan, kernel).place != BufferPlace::Weight || !is_matrix) return 0;
  if (kernel.nodes[0]->is(OpKind::Gemm) && int_or(*kernel.nodes[0], "transA", 0) != 0) return 0;
  // The runtime knows how many there are.
  const Shape& shape = shape_of(result(plan, kernel));
  const bool is_open = !std::all_of(shape.begin(), shape.end(), [](const Index& i) { return i.is_constant(); });
  if (is_open && !plan.target.open.empty()) return 0;
  return element_count(y) / std::max<int64_t>(1, y.back());
}
// Loops of our own that read each weight once (codegen/cpu/runtime/gopt_rows.h).
bool has_few_rows(const Plan& plan, const Kernel& kernel) {
  if (!is_of_floats(plan, kernel) && !is_of_halves(plan, kernel)) return false;
  const int64_t rows = rows_by_weights(plan, kernel);
  return rows >= 1 && rows <= gopt_runtime::kMostRows;
}
double few_rows_efficiency(const Plan&, const Kernel&) { return 0.6; }
// What makes floats of the numbers takes as long as some rows.
double quantized_efficiency(const Plan& plan, const Kernel& kernel) {
  constexpr double kWidening = 3;
  const std::vector<int64_t>& dims = result(plan, kernel).dims;
  const double rows = static_cast<double>(element_count(dims)) / static_cast<double>(std::max<int64_t>(1, dims.back()));
  return 0.8 * rows / (rows + kWidening);
}

// In loops of our own, by panels of weights (codegen/cpu/runtime/gopt_panels.h): of so many rows that sums fill the
// registers. Their measured times decide.
bool has_panels(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kFewestRows = 6;
  return is_of_floats(plan, kernel) && rows_by_weights(plan, kernel) >= kFewestRows;
}
double panels_efficiency(const Plan& plan, const Kernel& kernel) { return 0.95 * product_efficiency(plan, kernel); }

double product_in_floats_efficiency(const Plan& plan, const Kernel& kernel) {
  return 0.8 * product_efficiency(plan, kernel);
}

// Matrices that lie row by row.
bool has_split_product(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  const bool is_transposed =
      node.is(OpKind::Gemm) && (int_or(node, "transA", 0) != 0 ||
                                (int_or(node, "transB", 0) != 0 && weights(plan, kernel).place != BufferPlace::Weight));
  return splits_floats(plan, kernel) && !is_transposed && plan.target.open.empty();
}
// What is measured decides: units for 16 bits are between a third and sixteen times as fast as those for floats.
double split_product_efficiency(const Plan& plan, const Kernel& kernel) { return product_efficiency(plan, kernel) / 3; }

template <bool (*takes)(const Plan&, const Kernel&)>
bool has_tile_product(const Plan& plan, const Kernel& kernel) {
  return takes(plan, kernel) && rows_by_weights(plan, kernel) >= 1;
}
template <const double& speed>
double tile_product_efficiency(const Plan& plan, const Kernel& kernel) {
  return speed * product_efficiency(plan, kernel);
}

double integer_product_efficiency(const Plan& plan, const Kernel& kernel) {
  const bool packed = weights(plan, kernel).place == BufferPlace::Weight;
  return kIntegerSpeed * (packed ? 0.9 : 0.5);
}

constexpr Implementation kRows[] = {
    {"direct", KernelKind::MatrixProduct, TargetKind::Cpu, is_not_of_integers, product_efficiency},
    {"integers", KernelKind::MatrixProduct, TargetKind::Cpu, is_of_integers, integer_product_efficiency},
    {"quantized", KernelKind::MatrixProduct, TargetKind::Cpu, is_quantized, quantized_efficiency},
    {"few-rows", KernelKind::MatrixProduct, TargetKind::Cpu, has_few_rows, few_rows_efficiency},
    {"panels", KernelKind::MatrixProduct, TargetKind::Cpu, has_panels, panels_efficiency},
    {"floats", KernelKind::MatrixProduct, TargetKind::Cpu, is_of_halves, product_in_floats_efficiency},
    {kSplit, KernelKind::MatrixProduct, TargetKind::Cpu, has_split_product, split_product_efficiency},
    {"tiles-x6", KernelKind::MatrixProduct, TargetKind::Cpu, has_tile_product<takes_six>,
     tile_product_efficiency<kSixSpeed>},
    {kTilesOfTwo, KernelKind::MatrixProduct, TargetKind::Cpu, has_tile_product<takes_three>,
     tile_product_efficiency<kThreeSpeed>},
    {"tiles-bf16", KernelKind::MatrixProduct, TargetKind::Cpu, has_tile_product<takes_one>,
     tile_product_efficiency<kOneSpeed>},
};

}  // namespace

std::vector<Implementation> cpu_product_implementations() { return {std::begin(kRows), std::end(kRows)}; }

}  // namespace gopt::planner
