// Products of a few lines by weights of columns on CUDA (codegen/cuda/runtime/gopt_vectors.cuh): a matrix by a vector,
// convolutions of single positions.
#include "vectors.h"

#include <algorithm>
#include <cmath>

#include "gopt/convolution_shape.h"
#include "gopt/tile.h"
#include "gopt/vector_product.h"
#include "library_operands.h"
#include "tiles.h"

namespace gopt {

namespace {
constexpr std::string_view kFamily = "gemv", kQuantizedFamily = "quantized";
}

std::string vector_product_name(int warps) { return std::string(kFamily) + ":" + std::to_string(warps); }

std::optional<int> parse_vector_product(std::string_view implementation) {
  int warps = 0;
  return planner::read_numbers(implementation, kFamily, {{':', &warps}}) ? std::optional(warps) : std::nullopt;
}

std::string quantized_product_name(int warps) { return std::string(kQuantizedFamily) + ":" + std::to_string(warps); }

std::optional<int> parse_quantized_product(std::string_view implementation) {
  int warps = 0;
  return planner::read_numbers(implementation, kQuantizedFamily, {{':', &warps}}) ? std::optional(warps) : std::nullopt;
}

int64_t lines_of_product(const Plan& plan, const Kernel& kernel) {
  const Buffer& y = plan.buffer(kernel.output_buffers[0]);
  return element_count(y.dims) / (kernel.kind == KernelKind::Convolution ? y.dims[1] : y.dims.back());
}

}  // namespace gopt

namespace gopt::planner {
namespace {

constexpr int64_t kMostLines = 4, kChunk = 16;

int64_t depth_of(const Plan& plan, const Kernel& kernel) {
  const Buffer& x = plan.buffer(kernel.input_buffers[0]);
  return kernel.kind == KernelKind::Convolution ? x.dims[1] : x.dims.back();
}

// Few lines of whole chunks.
bool has_few_lines(const Plan& plan, const Kernel& kernel) {
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &w = plan.buffer(kernel.input_buffers[1]);
  return lines_of_product(plan, kernel) <= kMostLines && x.element == w.element &&
         depth_of(plan, kernel) * static_cast<int64_t>(size_bytes(x.element)) % kChunk == 0;
}

bool multiplies(const Plan& plan, const Kernel& kernel) {
  return multiplies_by_tiles(plan, kernel) && is_by_columns(plan, kernel) && has_few_lines(plan, kernel);
}

bool convolves(const Plan& plan, const Kernel& kernel) {
  if (!convolves_by_tiles(plan, kernel) || !has_few_lines(plan, kernel)) return false;
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  const auto is_one = [](const std::vector<int64_t>& dims) { return element_count(std::span(dims).subspan(2)) == 1; };
  const Buffer& x = plan.buffer(kernel.input_buffers[0]);
  const auto line = x.layout.line() * static_cast<int64_t>(size_bytes(x.element));
  const bool has_pads = std::ranges::any_of(shape.pads, [](int64_t pad) { return pad != 0; });
  return shape.groups == 1 && !has_pads && x.layout.is_channels_last() && line % kChunk == 0 && is_one(shape.src) &&
         is_one(shape.dst) && is_one(shape.weights);
}

// The weights come from memory, most of them while the kernel before ends where they are few. `warps`: that a column
// has.
double efficiency_of(const Plan& plan, const Kernel& kernel, double bytes, double warps) {
  constexpr double kBytesPerUs = 2.4e6, kBytesAhead = 4e6, kFewWarps = 132 * 8, kSlower = 1.5;
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &y = plan.buffer(kernel.output_buffers[0]);
  const auto results = static_cast<double>(element_count(y.dims)),
             columns = results / static_cast<double>(lines_of_product(plan, kernel));
  const double us =
      (0.5 + std::max(0.0, bytes - kBytesAhead) / kBytesPerUs) * (columns * warps < kFewWarps ? kSlower : 1);
  return share_of_peak(2 * results * static_cast<double>(depth_of(plan, kernel)), us, is_half(x.element) ? 6 : 1);
}

template <int kWarps>
double efficiency(const Plan& plan, const Kernel& kernel) {
  const Buffer& x = plan.buffer(kernel.input_buffers[0]);
  const int64_t weights = depth_of(plan, kernel) * element_count(plan.buffer(kernel.output_buffers[0]).dims) /
                          lines_of_product(plan, kernel);
  return efficiency_of(plan, kernel, static_cast<double>(weights) * static_cast<double>(size_bytes(x.element)), kWarps);
}

// Weights of 4 or 8 bits as they are (codegen/cuda/runtime/gopt_quantized_vectors.cuh).
template <int kWarps>
double quantized_efficiency(const Plan& plan, const Kernel& kernel) {
  constexpr double kColumnsOfTile = 16;
  double bytes = 0;
  for (size_t k = 1; k < kernel.input_buffers.size(); k++)
    bytes += static_cast<double>(plan.buffer(kernel.input_buffers[k]).size_bytes);
  return efficiency_of(plan, kernel, bytes, static_cast<double>(kWarps) / kColumnsOfTile);
}

template <int kWarps>
void add_rows(std::vector<Implementation>& rows) {
  static const std::string name = vector_product_name(kWarps);
  add_tile_rows(rows, {.name = name, .target = TargetKind::Cuda, .efficiency = efficiency<kWarps>}, convolves,
                multiplies);
}

template <int kWarps>
Implementation quantized_row() {
  static const std::string name = quantized_product_name(kWarps);
  return {.name = name,
          .kind = KernelKind::MatrixProduct,
          .target = TargetKind::Cuda,
          .accepts = is_quantized,
          .efficiency = quantized_efficiency<kWarps>};
}

}  // namespace

std::vector<Implementation> vector_implementations() {
  std::vector<Implementation> rows;
  add_rows<1>(rows);
  add_rows<4>(rows);
  for (const Implementation& row : {quantized_row<4>(), quantized_row<8>()}) rows.push_back(row);
  return rows;
}

}  // namespace gopt::planner
