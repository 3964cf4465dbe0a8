#include "gopt_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gopt_activation.h"
#include "gopt_vector.h"

namespace gopt_runtime {
namespace {

constexpr int kMostVectors = 4;  // of a panel

constexpr int vectors_of_panel(int rows) { return std::max(1, std::min(kMostVectors, kRegisters / rows)); }

// Sums of all rows at one panel's columns.
template <int rows>
void compute_panel(const float* src, const float* packed, int64_t depth, float* sums) {
  constexpr int vectors = vectors_of_panel(rows);
  Vector s[rows][vectors];
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) s[r][v] = Vector{};
  for (int64_t k = 0; k < depth; k++, packed += vectors * kLanes) {
    Vector w[vectors];
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) w[v] = load(packed + v * kLanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
      const Vector x = src[r * depth + k] - Vector{};
#pragma GCC unroll 16
      for (int v = 0; v < vectors; v++) s[r][v] += x * w[v];
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < rows; r++)
#pragma GCC unroll 16
    for (int v = 0; v < vectors; v++) std::memcpy(sums + (r * vectors + v) * kLanes, &s[r][v], sizeof(Vector));
}

using ComputePanel = void (*)(const float*, const float*, int64_t, float*);
template <int... rows>
constexpr std::array<ComputePanel, sizeof...(rows)> functions_of(std::integer_sequence<int, rows...>) {
  return {compute_panel<rows + 1>...};
}
ComputePanel panel_function(int64_t rows) {
  static constexpr auto kFunctions = functions_of(std::make_integer_sequence<int, kMostRows>());
  return kFunctions[static_cast<size_t>(rows - 1)];
}

}  // namespace

RowsProduct::RowsProduct(int64_t rows, int64_t depth, int64_t columns, std::vector<Post> posts, int threads)
    : rows_(rows), depth_(depth), columns_(columns), posts_(std::move(posts)), threads_(threads) {
  width_ = vectors_of_panel(static_cast<int>(rows)) * kLanes;
  panels_ = (columns + width_ - 1) / width_;
}

size_t RowsProduct::packed_floats() const { return static_cast<size_t>(panels_ * width_ * depth_); }

void RowsProduct::pack(const float* weights, int64_t row_stride, int64_t column_stride, float* packed) const {
  for (int64_t panel = 0; panel < panels_; panel++)
    for (int64_t k = 0; k < depth_; k++)
      for (int64_t i = 0; i < width_; i++) {
        const int64_t column = panel * width_ + i;
        *packed++ = column < columns_ ? weights[k * row_stride + column * column_stride] : 0.0f;
      }
}

void RowsProduct::store(int64_t panel, float* sums, const float* bias, float* dst) const {
  const int64_t first = panel * width_, count = std::min(width_, columns_ - first);
  for (int64_t r = 0; r < rows_; r++) {
    float *own = sums + r * width_, *to = dst + r * columns_ + first;
    const auto add = [&](const float* other) {
      for (int64_t i = 0; i < count; i++) own[i] += other[i];
    };
    if (bias) add(bias + first);
    for (const Post& post : posts_) {
      const auto* operand = static_cast<const float*>(post.operand);
      if (post.kind == PostKind::Sum)
        add(to);
      else if (post.kind == PostKind::Add)
        add(operand + first + (post.dims.size() == 2 && post.dims[0] == 1 ? 0 : r * columns_));
      else
        apply_activation(post, own, width_);
    }
    std::copy(own, own + count, to);
  }
}

void RowsProduct::run(const float* src, const float* packed, const float* bias, float* dst) const {
  const ComputePanel compute = panel_function(rows_);
#pragma omp parallel for schedule(static) num_threads(threads_)
  for (int64_t panel = 0; panel < panels_; panel++) {
    alignas(64) float sums[kMostRows * kMostVectors * kLanes];
    compute(src, packed + panel * width_ * depth_, depth_, sums);
    store(panel, sums, bias, dst);
  }
}

}  // namespace gopt_runtime
