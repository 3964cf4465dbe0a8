// Which tiles of warpgroups compute a kernel, and how long they may be expected to take
// (codegen/cuda/runtime/gopt_warpgroups.cuh are the kernels).
#include "warpgroups.h"

#include <algorithm>
#include <cmath>

#include "gopt/convolution_shape.h"
#include "gopt/tile.h"
#include "tiles.h"

namespace gopt {

namespace {
constexpr std::string_view kFamily = "wgmma";
constexpr int64_t kChunk = 16, kSlice = 128;  // bytes
}  // namespace

std::string warpgroup_name(const Tile& tile) {
  return std::string(kFamily) + ":" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns) + ":" +
         std::to_string(tile.split);
}

std::optional<Tile> parse_warpgroup_tile(std::string_view implementation) {
  Tile tile;
  const bool is_one =
      planner::read_numbers(implementation, kFamily, {{':', &tile.rows}, {'x', &tile.columns}, {':', &tile.split}});
  return is_one ? std::optional(tile) : std::nullopt;
}

int64_t groups_of_slice(int64_t groups, int64_t group_channels, int64_t element_bytes) {
  const int64_t channels = kSlice / element_bytes;
  if (groups == 1 || group_channels % channels == 0) return 1;
  if (channels % group_channels != 0) return 0;
  const int64_t joined = std::min(groups, channels / group_channels);
  return groups % joined == 0 ? joined : 0;
}

}  // namespace gopt

namespace gopt::planner {
namespace {

// Shapes that are named in gopt_warpgroups.cuh, and what a slice of 128 bytes, also of fp32, and the results take of
// each where a multiprocessor has one block, in microseconds (H200; slices of 16 bits between those of full stages and
// those that come as they are used).
struct Shape {
  int rows, columns;
  double slice_us, slice_of_fp32_us, results_us;
  int blocks_at_once;
};
constexpr Shape kShapes[] = {{64, 32, 0.12, 0.27, 0.3, 2}, {64, 64, 0.14, 0.37, 0.4, 2}, {64, 128, 0.22, 0.62, 1.2, 2},
                             {128, 64, 0.2, 0.62, 0.8, 2}, {128, 128, 0.32, 1.05, 3, 1}, {128, 256, 0.6, 2, 4, 1}};
constexpr int kSplits[] = {1, 2, 4, 8};
// Whose ring leaves no room for sums: what has them alone stores them, in 16 bits and whole chunks, as they are.
constexpr bool has_room(const Shape& shape) { return shape.rows * shape.columns <= 128 * 128; }

bool has_operands(const Plan& plan, const Kernel& kernel) {
  const ElementType left = plan.buffer(kernel.input_buffers[0]).element,
                    right = plan.buffer(kernel.input_buffers[1]).element;
  return left == right && (is_half(left) || left == ElementType::Float32);
}
int64_t size_of_operands(const Plan& plan, const Kernel& kernel) {
  return static_cast<int64_t>(size_bytes(plan.buffer(kernel.input_buffers[0]).element));
}

// What the copy engine's description of windows has room for: corners in 8 bits, taps in as many, steps up to eight.
bool has_window(const ConvolutionShape& shape) {
  constexpr int64_t kCorner = 127, kTap = 255, kStep = 8;
  for (size_t a = 0; a < shape.axes(); a++) {
    const int64_t last = (shape.dst[2 + a] - 1) * shape.strides[a] - shape.pads[a] - (shape.src[2 + a] - 1);
    if (shape.pads[a] > kCorner || std::abs(last) > kCorner || shape.strides[a] > kStep ||
        (shape.weights[2 + a] - 1) * shape.dilations[a] > kTap)
      return false;
  }
  return true;
}

// Groups that a tile takes together.
int64_t joined_of(const Plan& plan, const Kernel& kernel, const ConvolutionShape& shape) {
  return groups_of_slice(shape.groups, shape.weights[1], size_of_operands(plan, kernel));
}

// The weights of joined groups are written anew, with zeros between them, before the first run.
bool has_groups(const Plan& plan, const Kernel& kernel, const ConvolutionShape& shape) {
  return shape.groups == 1 ||
         (joined_of(plan, kernel, shape) > 0 && plan.buffer(kernel.input_buffers[1]).place == BufferPlace::Weight);
}

bool convolves(const Plan& plan, const Kernel& kernel) {
  if (!convolves_by_tiles(plan, kernel) || !has_operands(plan, kernel)) return false;
  const Buffer& x = plan.buffer(kernel.input_buffers[0]);
  const ConvolutionShape shape = lines_of_windows(plan, kernel);
  const int64_t line = x.layout.line() > 0 ? x.layout.line() : shape.src[1], size = size_of_operands(plan, kernel);
  constexpr size_t kAxes = 2;
  return has_groups(plan, kernel, shape) && shape.axes() == kAxes && shape.src[1] * size % kChunk == 0 &&
         line * size % kChunk == 0 && has_window(shape);
}

// Of the right operand in memory.
int64_t line_of_weights(const Plan& plan, const Kernel& kernel) {
  const Buffer& right = plan.buffer(kernel.input_buffers[1]);
  return right.layout.extents(right.dims).back();
}

// One matrix on the right.
bool multiplies(const Plan& plan, const Kernel& kernel) {
  if (!multiplies_by_tiles(plan, kernel) || !has_operands(plan, kernel)) return false;
  const std::vector<int64_t>&left = plan.buffer(kernel.input_buffers[0]).dims,
        &right = plan.buffer(kernel.input_buffers[1]).dims;
  const int64_t size = size_of_operands(plan, kernel);
  return element_count(std::span(right).first(right.size() - 2)) == 1 && left.back() * size % kChunk == 0 &&
         line_of_weights(plan, kernel) * size % kChunk == 0;
}

struct TileExtents {
  double rows, columns, slices;
  double depth;  // of a column, which may fill no slices
  bool is_fp32;  // three products
  bool has_floats;
  // Of joined groups, whose channels are all that a tile of theirs reads; 0: all columns read the same.
  int64_t columns_of_run;

  bool are_divided_by(int tile_columns) const { return columns_of_run % tile_columns == 0; }
  friend bool operator==(const TileExtents&, const TileExtents&) = default;
};
TileExtents work_of(const Plan& plan, const Kernel& kernel) {
  const std::vector<int64_t>&x = plan.buffer(kernel.input_buffers[0]).dims,
        &y = plan.buffer(kernel.output_buffers[0]).dims;
  const int64_t size = size_of_operands(plan, kernel);
  int64_t columns = y.back(), channels = x.back(), joined = 1, taps = 1, columns_of_run = 0;
  if (kernel.kind == KernelKind::Convolution) {
    const ConvolutionShape shape = lines_of_windows(plan, kernel);
    columns = shape.dst[1], channels = shape.weights[1], joined = joined_of(plan, kernel, shape);
    taps = element_count(std::span(shape.weights).subspan(2));
    if (joined != shape.groups) columns_of_run = columns / shape.groups * joined;
  }
  const auto slices_of_tap = std::ceil(static_cast<double>(channels * joined * size) / double(kSlice));
  return {static_cast<double>(element_count(y)) / static_cast<double>(columns),
          static_cast<double>(columns),
          static_cast<double>(taps) * slices_of_tap,
          static_cast<double>(taps * channels),
          size == 4 && !is_tf32(plan, kernel),
          size == 4,
          columns_of_run};
}

// Whether results and what is added to them are of the operands' type of 16 bits, in lines of whole chunks.
bool has_chunks(const Plan& plan, const Kernel& kernel) {
  const ElementType element = plan.buffer(kernel.input_buffers[0]).element;
  const auto columns = static_cast<int64_t>(work_of(plan, kernel).columns);
  const auto is_of_chunks = [&](BufferId id) {
    const Buffer& buffer = plan.buffer(id);
    const int64_t line = buffer.layout.line() > 0 ? buffer.layout.line() : columns,
                  size = size_of_operands(plan, kernel);
    return buffer.element == element && columns * size % kChunk == 0 && line * size % kChunk == 0 &&
           buffer.offset % kChunk == 0;
  };
  return is_half(element) && is_of_chunks(kernel.output_buffers[0]) &&
         std::ranges::all_of(kernel.epilogues, [&](const Epilogue& e) {
           return e.kind != Epilogue::Kind::AddTensor || is_of_chunks(e.operand);
         });
}

// Lines of weights come in whole slices of columns.
template <size_t kShape>
bool multiplies_by(const Plan& plan, const Kernel& kernel) {
  return multiplies(plan, kernel) &&
         (is_by_columns(plan, kernel) || kShapes[kShape].columns * size_of_operands(plan, kernel) % kSlice == 0) &&
         (has_room(kShapes[kShape]) || has_chunks(plan, kernel));
}
template <size_t kShape>
bool convolves_by(const Plan& plan, const Kernel& kernel) {
  return convolves(plan, kernel) && work_of(plan, kernel).are_divided_by(kShapes[kShape].columns) &&
         (has_room(kShapes[kShape]) || has_chunks(plan, kernel));
}

// ---- the model: an H100's multiprocessors, and what they bring from the L2 cache ----

constexpr double kMultiprocessors = 132, kStartUs = 2.4, kSplitUs = 0.9, kSplitUsEach = 0.15;
constexpr double kBesideAnother = 1.8;  // a slice takes longer where two blocks share a multiprocessor

double expected_us(const TileExtents& work, const Shape& shape, int split) {
  const double blocks = std::ceil(work.rows / shape.rows) * std::ceil(work.columns / shape.columns) * split;
  // Its stages and planes fill the memory.
  const bool is_alone = (work.is_fp32 && shape.columns > 64) || (work.has_floats && shape.rows > 64);
  const double at_once =
      std::clamp(std::ceil(blocks / kMultiprocessors), 1.0, is_alone ? 1.0 : double(shape.blocks_at_once));
  const double waves = std::ceil(blocks / (kMultiprocessors * at_once)), beside = at_once > 1 ? kBesideAnother : 1,
               slice_us = work.is_fp32 ? shape.slice_of_fp32_us : shape.slice_us;
  // A block makes one tile after another, clusters begin anew.
  if (split == 1) return kStartUs + waves * beside * (work.slices * slice_us + shape.results_us);
  return waves * (kStartUs + kSplitUs + kSplitUsEach * split + beside * std::ceil(work.slices / split) * slice_us +
                  shape.results_us);
}

// Asked for the same kernel once for each shape.
double least_us(const TileExtents& work) {
  thread_local std::pair<TileExtents, double> last{{}, 0};
  if (last.first == work) return last.second;
  double least = INFINITY;
  for (const Shape& shape : kShapes)
    for (const int split : kSplits)
      if (work.are_divided_by(shape.columns) && (split == 1 || has_room(shape)))
        least = std::min(least, expected_us(work, shape, split));
  last = {work, least};
  return least;
}

template <size_t kShape, size_t kSplit>
bool is_likely(const Plan& plan, const Kernel& kernel) {
  constexpr double kWithin = 1.3;
  constexpr Shape shape = kShapes[kShape];
  const TileExtents work = work_of(plan, kernel);
  if (kSplits[kSplit] > 1 && work.slices < 2 * kSplits[kSplit]) return false;
  if (shape.columns > 64 && 2 * work.columns <= shape.columns) return false;  // a smaller tile's work
  return expected_us(work, shape, kSplits[kSplit]) <= kWithin * least_us(work);
}

template <size_t kShape, size_t kSplit>
double efficiency(const Plan& plan, const Kernel& kernel) {
  const TileExtents work = work_of(plan, kernel);
  const double us = expected_us(work, kShapes[kShape], kSplits[kSplit]) - kStartUs;
  const double speed = size_of_operands(plan, kernel) == 2 ? 6 : work.is_fp32 ? 1 : 3;
  return share_of_peak(2 * work.rows * work.columns * work.depth, us, speed);
}

template <size_t kShape, size_t kSplit>
void add_rows(std::vector<Implementation>& rows) {
  if (!has_room(kShapes[kShape]) && kSplits[kSplit] > 1) return;
  static const std::string name = warpgroup_name({kShapes[kShape].rows, kShapes[kShape].columns, kSplits[kSplit]});
  Implementation row{.name = name, .target = TargetKind::Cuda, .efficiency = efficiency<kShape, kSplit>};
  row.is_likely = is_likely<kShape, kSplit>;
  row.takes_prologue = has_room(kShapes[kShape]);  // else registers are short
  add_tile_rows(rows, row, convolves_by<kShape>, multiplies_by<kShape>);
}
template <size_t... kNumbers>
void add_all(std::vector<Implementation>& rows, std::index_sequence<kNumbers...>) {
  constexpr size_t kCount = std::size(kSplits);
  (add_rows<kNumbers / kCount, kNumbers % kCount>(rows), ...);
}

}  // namespace

bool is_for_warpgroups(const Plan& plan, const Kernel& kernel) {
  // Where some sizes are switched off, what is left may be slower than tiles, or nothing.
  if (lacks_any(plan.target, "kernel:" + std::string(kFamily))) return false;
  return kernel.kind == KernelKind::Convolution ? convolves_by<0>(plan, kernel) : multiplies(plan, kernel);
}

double slices_of_warpgroups(const Plan& plan, const Kernel& kernel) { return work_of(plan, kernel).slices; }

std::vector<Implementation> warpgroup_implementations() {
  std::vector<Implementation> rows;
  add_all(rows, std::make_index_sequence<std::size(kShapes) * std::size(kSplits)>());
  return rows;
}

}  // namespace gopt::planner
