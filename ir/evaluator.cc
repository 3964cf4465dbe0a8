#include "evaluator.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>

#include "gopt/parallel.h"
#include "lane_evaluator.h"

namespace gopt::ir {
namespace {

// The rows of a stage: all positions of the axes other than the one that carries the lanes.
struct Rows {
  const Stage& stage;
  std::vector<int64_t> dims;
  size_t lane_axis;

  int64_t lanes() const { return dims.empty() ? 1 : dims[lane_axis]; }
  int64_t count() const { return element_count(dims) / lanes(); }
};

// Elements of a block that lie one after another, of the types that nearly all tensors have.
template <class M, class T>
void store_plain(std::byte* out, int64_t at, const T* block, int n) {
  std::byte* place = out + at * static_cast<int64_t>(sizeof(M));
  for (int l = 0; l < n; l++, place += sizeof(M)) {
    const auto value = static_cast<M>(block[l]);
    std::memcpy(place, &value, sizeof value);
  }
}

template <class T>
void store_block(std::byte* out, ElementType type, int64_t at, int64_t stride, const T* block, int n) {
  if constexpr (std::is_same_v<T, double>) {
    if (stride == 1 && type == ElementType::Float32) return store_plain<float>(out, at, block, n);
    if (stride == 1 && type == ElementType::Float64) return store_plain<double>(out, at, block, n);
    for (int l = 0; l < n; l++) store_double(out, type, at + l * stride, block[l]);
  } else {
    if (stride == 1 && type == ElementType::Int64) return store_plain<int64_t>(out, at, block, n);
    for (int l = 0; l < n; l++) store_int(out, type, at + l * stride, block[l]);
  }
}

// Evaluates lanes [first, last) of rows [begin, end) of the output.
template <class T>
void run_rows(LaneEvaluator& program, const Rows& rows, int64_t begin, int64_t end, int64_t first_lane,
              int64_t last_lane, std::byte* out) {
  std::array<T, kLanes> block;
  std::vector<int64_t> position(rows.dims.size(), 0);
  int64_t lane_stride = 1;
  for (size_t d = rows.lane_axis + 1; d < rows.dims.size(); d++) lane_stride *= rows.dims[d];
  for (int64_t row = begin; row < end; row++) {
    int64_t rest = row, base = 0;
    for (size_t d = rows.dims.size(); d-- > 0;) {
      if (d == rows.lane_axis) continue;
      position[d] = rest % rows.dims[d];
      rest /= rows.dims[d];
    }
    for (size_t d = 0; d < rows.dims.size(); d++) base = base * rows.dims[d] + (d == rows.lane_axis ? 0 : position[d]);
    for (int64_t first = first_lane; first < last_lane; first += kLanes) {
      const int n = static_cast<int>(std::min<int64_t>(kLanes, last_lane - first));
      program.run<T>(position, first, n, block.data());
      store_block(out, rows.stage.element, base + first * lane_stride, lane_stride, block.data(), n);
    }
  }
}

// Where rows read what lies beside what the row before has read, a block of lanes is run for all rows before the next:
// what is read stays in the cache from one row to the next.
template <class T>
void run_blocks(LaneEvaluator& program, const Rows& rows, int64_t begin, int64_t end, std::byte* out) {
  const int64_t lanes = rows.lanes(), size = program.reads_across() ? kLanes : lanes;
  for (int64_t first = 0; first < lanes; first += size)
    run_rows<T>(program, rows, begin, end, first, std::min(lanes, first + size), out);
}

void run_part(const Rows& rows, std::span<const TensorView> inputs, int64_t begin, int64_t end, std::byte* out) {
  LaneEvaluator program(rows.stage, inputs, rows.lane_axis);
  if (program.integer())
    run_blocks<int64_t>(program, rows, begin, end, out);
  else
    run_blocks<double>(program, rows, begin, end, out);
}

// Rows are independent: each part is a range of them, and has a program of its own.
void run_parallel(const Rows& rows, std::span<const TensorView> inputs, std::byte* out) {
  constexpr int64_t kElementsWorthAThread = 8192;
  // Asked once: it reads a file, which costs more than a small stage.
  static const auto kThreads = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  const int64_t count = rows.count();
  const int64_t parts = std::min({count, kThreads, 1 + element_count(rows.dims) / kElementsWorthAThread});
  // Of several parts that fail, the first is told, however many there are.
  std::vector<std::exception_ptr> failures(static_cast<size_t>(parts));
  parallel_for(static_cast<int>(parts), failures.size(), [&](int, size_t part) {
    const auto k = static_cast<int64_t>(part);
    try {
      run_part(rows, inputs, count * k / parts, count * (k + 1) / parts, out);
    } catch (...) {
      failures[part] = std::current_exception();
    }
  });
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace

Status evaluate_stage(const Stage& stage, std::span<const TensorView> inputs, std::byte* out) {
  Rows rows{stage, {}, 0};
  for (const Index& e : stage.shape) {
    if (!e.is_constant()) return Error{"an extent, " + to_string(e) + ", is not known"};
    rows.dims.push_back(e.constant());
  }
  if (element_count(rows.dims) == 0) return Unit{};
  // The last axis carries the lanes, since it is contiguous; where it is short, the longest does.
  constexpr int64_t kLongEnough = 16;
  if (!rows.dims.empty()) rows.lane_axis = rows.dims.size() - 1;
  for (size_t d = 0; d < rows.dims.size(); d++)
    if (rows.dims.back() < kLongEnough && rows.dims[d] > rows.lanes()) rows.lane_axis = d;
  try {
    run_parallel(rows, inputs, out);
  } catch (const EvaluationError& e) {
    return Error{e.what()};
  }
  return Unit{};
}

}  // namespace gopt::ir
