#include "blocked_product.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "gopt/parallel.h"

namespace gopt::ir {
namespace {

constexpr int64_t kDepth = 256, kColumns = 128, kRows = 64;  // of a block: operands of it lie in the first caches

// ---- the innermost product ----

// Rows of `a` (at `stride` from each other) times a panel of columns, added to `sums`.
using PanelFunction = void (*)(int64_t rows, const float* a, int64_t stride, const float* panel, int64_t depth,
                               float* sums, int64_t sums_stride);
struct PanelKernel {
  int64_t columns;  // of a panel
  PanelFunction multiply;
};

template <class Vector, int kVectors, int kRowsAtOnce>
[[gnu::always_inline]] inline void multiply_rows(const float* a, int64_t stride, const float* panel, int64_t depth,
                                                 float* sums, int64_t sums_stride) {
  constexpr int64_t kWidth = sizeof(Vector) / sizeof(float);
  Vector sum[kRowsAtOnce][kVectors];
  for (int row = 0; row < kRowsAtOnce; row++)
    for (int v = 0; v < kVectors; v++) std::memcpy(&sum[row][v], sums + row * sums_stride + v * kWidth, sizeof(Vector));
  for (int64_t k = 0; k < depth; k++, panel += kVectors * kWidth) {
    Vector b[kVectors];
    std::memcpy(b, panel, sizeof b);
    for (int row = 0; row < kRowsAtOnce; row++)
      for (int v = 0; v < kVectors; v++) sum[row][v] += b[v] * a[row * stride + k];
  }
  for (int row = 0; row < kRowsAtOnce; row++)
    for (int v = 0; v < kVectors; v++) std::memcpy(sums + row * sums_stride + v * kWidth, &sum[row][v], sizeof(Vector));
}

template <class Vector, int kVectors, int kRowsAtOnce>
[[gnu::always_inline]] inline void multiply_panel(int64_t rows, const float* a, int64_t stride, const float* panel,
                                                  int64_t depth, float* sums, int64_t sums_stride) {
  for (; rows >= kRowsAtOnce; rows -= kRowsAtOnce, a += kRowsAtOnce * stride, sums += kRowsAtOnce * sums_stride)
    multiply_rows<Vector, kVectors, kRowsAtOnce>(a, stride, panel, depth, sums, sums_stride);
  if constexpr (kRowsAtOnce > 1)
    multiply_panel<Vector, kVectors, kRowsAtOnce / 2>(rows, a, stride, panel, depth, sums, sums_stride);
}

#define GOPT_PANEL_FUNCTION(name, target, bytes, vectors, rows_at_once)                                          \
  target void name(int64_t rows, const float* a, int64_t stride, const float* panel, int64_t depth, float* sums, \
                   int64_t sums_stride) {                                                                        \
    typedef float Vector __attribute__((vector_size(bytes)));                                                    \
    multiply_panel<Vector, vectors, rows_at_once>(rows, a, stride, panel, depth, sums, sums_stride);             \
  }
GOPT_PANEL_FUNCTION(multiply_any, , 16, 4, 2)
#ifdef __x86_64__
GOPT_PANEL_FUNCTION(multiply_avx2, [[gnu::target("avx2,fma")]], 32, 2, 4)
GOPT_PANEL_FUNCTION(multiply_avx512, [[gnu::target("avx512f")]], 64, 2, 8)
#endif
#undef GOPT_PANEL_FUNCTION

PanelKernel fastest_kernel() {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512f")) return {32, multiply_avx512};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return {16, multiply_avx2};
#endif
  return {16, multiply_any};
}

// ---- what is packed ----

enum class Along { Positions, Depth };

// Elements of an operand along one of its axes, as runs at a constant distance.
class Line {
 public:
  Line(const ProductOperand& operand, Along along, int64_t first, int64_t count)
      : operand_(operand),
        along_depth_(along == Along::Depth),
        offsets_((along_depth_ ? operand.depth : operand.positions).data() + first),
        first_(first) {
    for (int64_t at = 0; at < count;) at += add_run(at, count);
  }

  // The elements at `other` of the other axis, `batch` floats further on.
  void fetch(int64_t batch, int64_t other, float* out) const {
    const int64_t offset = batch + (along_depth_ ? operand_.positions : operand_.depth)[static_cast<size_t>(other)];
    for (const Run& run : runs_) {
      bool all = true, none = false;
      for (size_t g = 0; g < operand_.guards.size(); g++) {
        const int64_t there = guard(g, !along_depth_, other);
        all &= there + run.ranges[g].first >= 0;
        none |= there + run.ranges[g].second < 0;
      }
      if (none)
        std::fill_n(out + run.begin, run.count, 0.0f);
      else if (all)
        copy(offset + offsets_[run.begin], run, out + run.begin);
      else
        copy_guarded(offset, other, run, out + run.begin);
    }
  }

 private:
  struct Run {
    int64_t begin, count, step;
    std::vector<std::pair<int64_t, int64_t>> ranges;  // of each guard: least and most
  };

  int64_t guard(size_t g, bool of_depth, int64_t at) const {
    const ProductGuard& guard = operand_.guards[g];
    return (of_depth ? guard.depth : guard.positions)[static_cast<size_t>(at)];
  }
  float load(int64_t offset) const {
    float value;
    std::memcpy(&value, operand_.data + offset * static_cast<int64_t>(sizeof value), sizeof value);
    return value;
  }

  int64_t add_run(int64_t at, int64_t count) {
    Run run{at, 1, 1, {}};
    if (at + 1 < count) run.step = offsets_[at + 1] - offsets_[at];
    while (at + run.count < count && offsets_[at + run.count] - offsets_[at + run.count - 1] == run.step) run.count++;
    for (const ProductGuard& guard : operand_.guards) {
      const int64_t* table = (along_depth_ ? guard.depth : guard.positions).data() + first_ + at;
      const auto [least, most] = std::minmax_element(table, table + run.count);
      run.ranges.emplace_back(*least, *most);
    }
    runs_.push_back(std::move(run));
    return runs_.back().count;
  }

  void copy(int64_t offset, const Run& run, float* out) const {
    if (run.step == 1)
      std::memcpy(out, operand_.data + offset * static_cast<int64_t>(sizeof *out),
                  static_cast<size_t>(run.count) * sizeof *out);
    else
      for (int64_t i = 0; i < run.count; i++) out[i] = load(offset + i * run.step);
  }

  void copy_guarded(int64_t offset, int64_t other, const Run& run, float* out) const {
    for (int64_t i = 0; i < run.count; i++) {
      bool is_read = true;
      for (size_t g = 0; g < operand_.guards.size(); g++)
        is_read &= guard(g, !along_depth_, other) + guard(g, along_depth_, first_ + run.begin + i) >= 0;
      out[i] = is_read ? load(offset + offsets_[run.begin + i]) : 0;
    }
  }

  const ProductOperand& operand_;
  const bool along_depth_;
  const int64_t* offsets_;
  const int64_t first_;
  std::vector<Run> runs_;
};

// ---- blocks ----

struct Stretch {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};
Stretch part_of(int64_t count, int64_t size, int64_t part) { return {part * size, std::min(count, (part + 1) * size)}; }

// One rectangle of the result: operands are packed block by block along the depth.
class Rectangle {
 public:
  Rectangle(const BlockedProduct& product, const PanelKernel& kernel, const BlockedProduct::Batch& batch, Stretch rows,
            Stretch columns)
      : product_(product),
        kernel_(kernel),
        batch_(batch),
        rows_(rows),
        columns_(columns),
        width_((columns.size() + kernel.columns - 1) / kernel.columns * kernel.columns) {}

  void run(float* out) {
    const auto depth = static_cast<int64_t>(product_.rows.depth.size());
    sums_.assign(static_cast<size_t>(rows_.size() * width_), 0);
    for (int64_t first = 0; first < depth; first += kDepth) {
      const Stretch block{first, std::min(depth, first + kDepth)};
      pack_columns(block);
      pack_rows(block);
      multiply(block.size());
    }
    for (int64_t row = 0; row < rows_.size(); row++) write(sums_.data() + row * width_, row + rows_.begin, out);
  }

 private:
  // Panels of columns, each with its depth outside.
  void pack_columns(Stretch block) {
    const ProductOperand& operand = product_.columns;
    panels_.assign(static_cast<size_t>(width_ * block.size()), 0);
    for (int64_t first = columns_.begin; first < columns_.end; first += kernel_.columns) {
      const Line line(operand, Along::Positions, first, std::min(kernel_.columns, columns_.end - first));
      float* panel = panels_.data() + (first - columns_.begin) * block.size();
      for (int64_t k = block.begin; k < block.end; k++, panel += kernel_.columns) line.fetch(batch_.columns, k, panel);
    }
  }

  void pack_rows(Stretch block) {
    packed_.resize(static_cast<size_t>(rows_.size() * block.size()));
    const Line line(product_.rows, Along::Depth, block.begin, block.size());
    for (int64_t row = rows_.begin; row < rows_.end; row++)
      line.fetch(batch_.rows, row, packed_.data() + (row - rows_.begin) * block.size());
  }

  void multiply(int64_t depth) {
    for (int64_t row = 0; row < rows_.size(); row += kRows)
      for (int64_t column = 0; column < width_; column += kernel_.columns)
        kernel_.multiply(std::min(kRows, rows_.size() - row), packed_.data() + row * depth, depth,
                         panels_.data() + column * depth, depth, sums_.data() + row * width_ + column, width_);
  }

  void write(const float* sums, int64_t row, float* out) const {
    float* place = out + batch_.out + product_.out_rows[static_cast<size_t>(row)];
    for (int64_t column = columns_.begin; column < columns_.end; column++)
      place[product_.out_columns[static_cast<size_t>(column)]] = sums[column - columns_.begin];
  }

  const BlockedProduct& product_;
  const PanelKernel& kernel_;
  const BlockedProduct::Batch batch_;
  const Stretch rows_, columns_;
  const int64_t width_;
  std::vector<float> sums_, panels_, packed_;
};

}  // namespace

void evaluate_product(const BlockedProduct& product, float* out) {
  static const PanelKernel kernel = fastest_kernel();
  static const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const auto rows = static_cast<int64_t>(product.out_rows.size());
  const auto columns = static_cast<int64_t>(product.out_columns.size());
  const int64_t column_parts = (columns + kColumns - 1) / kColumns;
  const int64_t others = column_parts * static_cast<int64_t>(product.batches.size());
  // All rows at once, so that columns are packed once, unless threads were left without work.
  const int64_t wanted = std::max<int64_t>(1, 4 * threads / std::max<int64_t>(1, others));
  const int64_t row_size = std::max(kRows, ((rows + wanted - 1) / wanted + kRows - 1) / kRows * kRows);
  const int64_t row_parts = (rows + row_size - 1) / row_size;
  parallel_for(threads, static_cast<size_t>(others * row_parts), [&](int, size_t item) {
    const auto at = static_cast<int64_t>(item);
    const BlockedProduct::Batch& batch = product.batches[static_cast<size_t>(at / (column_parts * row_parts))];
    Rectangle(product, kernel, batch, part_of(rows, row_size, at / column_parts % row_parts),
              part_of(columns, kColumns, at % column_parts))
        .run(out);
  });
}

}  // namespace gopt::ir
