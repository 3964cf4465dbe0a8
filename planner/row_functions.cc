#include "row_functions.h"

#include <algorithm>
#include <cmath>

#include "gopt/row_function.h"
#include "milliseconds.h"

namespace gopt::planner {
namespace {

// Of a Top that takes few, most elements are compared with the least that is kept, and no more.
double operations_of(const RowFunction& function, const std::vector<int64_t>& dims, int64_t taken) {
  const auto count = static_cast<double>(element_count(dims));
  if (function.kind != RowFunction::Kind::Top) return count;
  const auto row = static_cast<double>(dims.back());
  const double sorted = row > 0 ? count / row * static_cast<double>(taken) : 0;
  return 2 * count + sorted * std::log2(static_cast<double>(taken) + 1);
}

}  // namespace

double row_function_operations(const Node& node) {
  const TensorType &type = node.inputs[0].type(), &made = node.outputs[0];
  if (!type.has_static_shape() || !made.has_static_shape()) return 0;
  return operations_of(*node.opaque->row_function, type.static_shape(), made.static_shape().back());
}

double row_function_operations(const Plan& plan, const Kernel& kernel) {
  return operations_of(*kernel.nodes[0]->opaque->row_function, plan.buffer(kernel.input_buffers[0]).dims,
                       plan.buffer(kernel.output_buffers[0]).dims.back());
}

// A row is one thread's, or one block's.
double row_function_ms(const Plan& plan, const Kernel& kernel, const Roofline& roofline) {
  const std::vector<int64_t>& dims = plan.buffer(kernel.input_buffers[0]).dims;
  const auto axis = static_cast<size_t>(kernel.nodes[0]->opaque->row_function->axis);
  const double rows = static_cast<double>(element_count(dims)) / static_cast<double>(std::max<int64_t>(dims[axis], 1));
  const bool is_on_cpu = plan.target.kind == TargetKind::Cpu;
  const double at_once =
                   std::clamp(rows, 1.0, is_on_cpu ? static_cast<double>(std::max(plan.target.threads, 1)) : 132.0),
               operations_a_us = is_on_cpu ? 1000 : 20000;
  return in_steps(roofline.launch_us * 1e-3 +
                  row_function_operations(plan, kernel) / (at_once * operations_a_us * 1e3));
}

}  // namespace gopt::planner
