#include "gopt_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gopt_activation.h"
#include "gopt_panel_sums.h"
#include "gopt_places.h"
#include "gopt_team.h"
#include "gopt_terms.h"
#include "gopt_vector.h"

namespace gopt_runtime {
namespace {

constexpr int kMostVectors = 4;  // of a panel

// Halves come by twos.
template <class T>
constexpr int vectors_of_panel(int rows) {
  const int vectors = std::max(1, std::min(kMostVectors, kRegisters / rows));
  return sizeof(T) == sizeof(float) ? vectors : std::max(2, vectors / 2 * 2);
}
int64_t columns_of_panel(int64_t rows, Element element) {
  const auto count = static_cast<int>(rows);
  return (element == Element::Float ? vectors_of_panel<float>(count) : vectors_of_panel<uint16_t>(count)) * kLanes;
}

// In vectors of words lie the columns of one vector in the lower halves, those of the next in the upper ones.
constexpr int64_t place_of_half(int64_t column) {
  return column / (2 * kLanes) * (2 * kLanes) + column % kLanes * 2 + column / kLanes % 2;
}

template <int vectors>
inline void load_weights(const float* from, Vector (&w)[vectors]) {
#pragma GCC unroll 16
  for (int v = 0; v < vectors; v++) w[v] = load(from + v * kLanes);
}
template <int vectors>
inline void load_weights(const uint16_t* from, Vector (&w)[vectors]) {
#pragma GCC unroll 16
  for (int v = 0; v < vectors; v += 2) {
    Words words;
    std::memcpy(&words, from + v * kLanes, sizeof words);
    const Words lower = words << 16, upper = words & kUpper;
    std::memcpy(&w[v], &lower, sizeof lower);
    std::memcpy(&w[v + 1], &upper, sizeof upper);
  }
}
inline float number(float value) { return value; }
inline float number(uint16_t half) { return float_of_half(half); }

// Sums of all rows at one panel's columns. Panels follow one another.
template <int rows, class T>
void compute_panel(const void* source, const void* weights, int64_t depth, float* sums) {
  constexpr int vectors = vectors_of_panel<T>(rows);
  constexpr int64_t kStep = vectors * kLanes, kBytes = kStep * static_cast<int64_t>(sizeof(T));
  const auto *src = static_cast<const T*>(source), *packed = static_cast<const T*>(weights);
  Vector s[rows][vectors];
  clear_sums(s);
  const auto add = [&](int64_t k) {
    Vector w[vectors];
    load_weights(packed + k * kStep, w);
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) {
      const Vector x = number(src[r * depth + k]) - Vector{};
#pragma GCC unroll 16
      for (int v = 0; v < vectors; v++) s[r][v] += x * w[v];
    }
  };
  take_in_places<kBytes>(packed, depth, add);
  keep_sums(s, sums, kStep);
}

using ComputePanel = void (*)(const void*, const void*, int64_t, float*);
template <class T, int... rows>
constexpr std::array<ComputePanel, sizeof...(rows)> functions_of(std::integer_sequence<int, rows...>) {
  return {compute_panel<rows + 1, T>...};
}
template <class T>
ComputePanel panel_function(int64_t rows) {
  static constexpr auto kFunctions = functions_of<T>(std::make_integer_sequence<int, kMostRows>());
  return kFunctions[static_cast<size_t>(rows - 1)];
}

}  // namespace

RowsProduct::RowsProduct(int64_t rows, int64_t depth, int64_t columns, std::vector<Post> posts, int threads,
                         Element operands, Element result)
    : rows_(rows),
      depth_(depth),
      columns_(columns),
      width_(columns_of_panel(rows, operands)),
      panels_((columns + width_ - 1) / width_),
      threads_(threads),
      operands_(operands),
      result_(columns, std::move(posts), result) {}

size_t RowsProduct::packed_bytes() const {
  return static_cast<size_t>(panels_ * width_ * depth_) * (operands_ == Element::Float ? 4 : 2);
}

template <class T>
void RowsProduct::pack_as(const T* weights, int64_t row_stride, int64_t column_stride, T* packed) const {
  share_each(panels_, threads_, [&](int64_t panel, int) {
    const int64_t first = panel * width_, count = std::min(width_, columns_ - first);
    T* to = packed + panel * depth_ * width_;
    std::fill(to, to + depth_ * width_, T{0});
    const auto put = [&](int64_t k, int64_t i) {
      to[k * width_ + (sizeof(T) == sizeof(float) ? i : place_of_half(i))] =
          weights[k * row_stride + (first + i) * column_stride];
    };
    if (column_stride == 1)
      for (int64_t k = 0; k < depth_; k++)
        for (int64_t i = 0; i < count; i++) put(k, i);
    else
      for (int64_t i = 0; i < count; i++)
        for (int64_t k = 0; k < depth_; k++) put(k, i);
  });
}

void RowsProduct::pack(const void* weights, int64_t row_stride, int64_t column_stride, void* packed) const {
  if (operands_ == Element::Float)
    pack_as(static_cast<const float*>(weights), row_stride, column_stride, static_cast<float*>(packed));
  else
    pack_as(static_cast<const uint16_t*>(weights), row_stride, column_stride, static_cast<uint16_t*>(packed));
}

void RowsResult::store(int64_t row, int64_t rows, int64_t column, int64_t width, float* sums, const float* bias,
                       void* dst) const {
  const int64_t count = std::min(width, columns_ - column);
  for (int64_t r = 0; r < rows; r++) {
    float* own = sums + r * width;
    const int64_t to = (row + r) * columns_ + column;
    const auto add = [&](const void* other, Element element, int64_t from) {
      for (int64_t i = 0; i < count; i++) own[i] += value_at(other, element, from + i);
    };
    if (bias) add(bias, Element::Float, column);
    for (const Post& post : posts_) {
      const bool is_row = post.dims.size() == 2 && post.dims[0] == 1;
      if (post.kind == PostKind::Sum)
        add(dst, element_, to);
      else if (post.kind == PostKind::Add)
        add(post.operand, post.dims.empty() ? element_ : post.element, is_row ? column : to);
      else
        apply_activation(post, own, width);
    }
    if (element_ == Element::Float)
      std::copy(own, own + count, static_cast<float*>(dst) + to);
    else
      std::transform(own, own + count, static_cast<uint16_t*>(dst) + to, half_of);
  }
}

void RowsProduct::run(const void* src, const void* packed, const float* bias, void* dst) const {
  const ComputePanel compute =
      operands_ == Element::Float ? panel_function<float>(rows_) : panel_function<uint16_t>(rows_);
  const auto panel_bytes = static_cast<int64_t>(packed_bytes()) / panels_;
  share_each(panels_, threads_, [&](int64_t panel, int) {
    alignas(64) float sums[kMostRows * kMostVectors * kLanes];
    compute(src, static_cast<const char*>(packed) + panel * panel_bytes, depth_, sums);
    result_.store(0, rows_, panel * width_, width_, sums, bias, dst);
  });
}

}  // namespace gopt_runtime
