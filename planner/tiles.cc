// Which tiles compute a kernel, and how long they may be expected to take: a model of waves of blocks over the device,
// good enough to leave out of the measurements what cannot win (codegen/cuda/runtime/gopt_tiles.cuh are the kernels).
#include "tiles.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "cover.h"
#include "gopt/channels.h"
#include "gopt/convolution_shape.h"
#include "gopt/node_attributes.h"
#include "gopt/tile.h"
#include "gopt/vector_product.h"
#include "prologue.h"
#include "warpgroups.h"

namespace gopt {

std::string to_string(const Tile& tile) {
  return "tiles:" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns) + ":" + std::to_string(tile.split);
}

std::optional<Tile> parse_tile(std::string_view implementation) {
  Tile tile;
  const bool is_one =
      planner::read_numbers(implementation, "tiles", {{':', &tile.rows}, {'x', &tile.columns}, {':', &tile.split}});
  return is_one ? std::optional(tile) : std::nullopt;
}

int64_t joined_groups(const Tile& tile, int64_t groups, int64_t group_columns) {
  int64_t joined = 1;
  for (int64_t count = 2; count <= groups && count * group_columns <= tile.columns; count++)
    if (groups % count == 0) joined = count;
  return joined;
}

bool is_by_columns(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  const bool is_turned = node.is(OpKind::Gemm) && int_or(node, "transB", 0) != 0;
  return is_turned != plan.buffer(kernel.input_buffers[1]).layout.is_transposed();
}

bool fills_multiprocessors(const Kernel& kernel) {
  constexpr int kMostBeside = 64 * 64, kMostOfWarpgroupsBeside = 64 * 32;
  if (const std::optional<Tile> tile = parse_tile(kernel.implementation))
    return tile->rows * tile->columns > kMostBeside;
  const std::optional<Tile> tile = parse_warpgroup_tile(kernel.implementation);
  return tile && tile->rows * tile->columns > kMostOfWarpgroupsBeside;
}

bool divides_depth(const Kernel& kernel) {
  std::optional<Tile> tile = parse_tile(kernel.implementation);
  if (!tile) tile = parse_warpgroup_tile(kernel.implementation);
  return tile && tile->split > 1;
}

bool is_launched_ahead(const Kernel& kernel) {
  if (kernel.kind == KernelKind::External) return false;
  if (kernel.kind != KernelKind::Convolution && kernel.kind != KernelKind::MatrixProduct) return true;
  return kernel.implementation == kGenerated || parse_tile(kernel.implementation) ||
         parse_warpgroup_tile(kernel.implementation) || parse_patch_tile(kernel.implementation) ||
         parse_vector_product(kernel.implementation) || parse_quantized_product(kernel.implementation) ||
         is_by_channels(kernel);
}

}  // namespace gopt

namespace gopt::planner {
namespace {

// Shapes that are instantiated in gopt_tiles.cuh.
constexpr std::pair<int, int> kShapes[] = {{16, 64}, {32, 32}, {32, 64}, {64, 32}, {64, 64}, {128, 64}, {128, 128}};
constexpr int kSplits[] = {1, 2, 4, 8};
// Large tiles are for where there are many: few blocks of them share a depth.
constexpr bool has_split(int rows, int columns, int split) { return rows * columns * split <= 64 * 64 * 8; }

// A matrix product, or a convolution as one: positions by channels over all taps of the window; of each group, in a
// batch, and of a transposed one of each residue of its positions by the steps.
struct TileWork {
  double batch = 1, rows = 0, columns = 0, depth = 0;
  int64_t groups = 1;
  int element_bytes = 4;
  double products = 1;  // of the tensor cores for one of the numbers

  friend bool operator==(const TileWork&, const TileWork&) = default;
};

bool is_narrow(const Plan& plan, const Kernel& kernel) {
  constexpr int64_t kMost = int64_t{1} << 31;  // positions in memory are counted in 32 bits
  const auto fits = [&](BufferId id) {
    const Buffer& buffer = plan.buffer(id);
    return buffer.size_bytes / static_cast<int64_t>(size_bytes(buffer.element)) < kMost;
  };
  return std::all_of(kernel.input_buffers.begin(), kernel.input_buffers.end(), fits) && fits(kernel.output_buffers[0]);
}

bool has_channels_last(const Buffer& image) { return lies_as(image.layout, Layout::channels_last(), image.dims); }

TileWork work_of_residues(const Plan& plan, const Kernel& kernel) {
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  TileWork work;
  work.batch = static_cast<double>(shape.groups);
  work.columns = static_cast<double>(shape.weights[1]);
  work.depth = static_cast<double>(shape.weights[0] / shape.groups);
  work.rows = static_cast<double>(shape.dst[0]);
  for (size_t a = 0; a < shape.axes(); a++) {
    const auto step = static_cast<double>(shape.strides[a]);
    work.batch *= step;
    work.depth *= std::ceil(static_cast<double>(shape.weights[2 + a]) / step);
    work.rows *= std::ceil(static_cast<double>(shape.dst[2 + a]) / step);
  }
  return work;
}

TileWork work_of_kernel(const Plan& plan, const Kernel& kernel) {
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &w = plan.buffer(kernel.input_buffers[1]),
               &y = plan.buffer(kernel.output_buffers[0]);
  TileWork work;
  const auto count = [](std::span<const int64_t> dims) { return static_cast<double>(element_count(dims)); };
  if (is_transposed(kernel)) {
    work = work_of_residues(plan, kernel);
  } else if (kernel.kind == KernelKind::Convolution) {
    work.groups = int_or(*kernel.nodes[0], "group", 1);
    work.batch = static_cast<double>(work.groups);
    work.columns = static_cast<double>(y.dims[1] / work.groups);
    work.depth = count(std::span(w.dims).subspan(1));
  } else {
    work.columns = static_cast<double>(y.dims.back());
    work.depth = static_cast<double>(x.dims.back());
    if (count(std::span(w.dims).first(w.dims.size() - 2)) > 1)
      work.batch = count(std::span(y.dims).first(y.dims.size() - 2));
  }
  if (!is_transposed(kernel)) work.rows = count(y.dims) / (work.columns * work.batch);
  work.element_bytes = is_half(x.element) ? 2 : 4;
  work.products = is_half(x.element) ? 1 : is_tf32(plan, kernel) ? 2 : 6;  // floats have half the rate
  return work;
}

// ---- the model: an H100's multiprocessors, tensor cores by warps, and L2 cache ----

constexpr double kMultiprocessors = 132, kBlocksAtOnce = 2;
constexpr double kOperationsPerUs = 5e6;  // of halves, of one multiprocessor
constexpr double kBytesPerUs = 36e3;      // into one
constexpr double kStartUs = 2, kSplitUs = 0.8, kLeastSliceUs = 0.2;

constexpr double kSliceBytes = 128;  // of a row or column

// Of a tile that takes several groups together.
TileWork joined(const TileWork& own, const Tile& tile) {
  TileWork work = own;
  const auto count = static_cast<double>(joined_groups(tile, own.groups, static_cast<int64_t>(own.columns)));
  work.batch /= count, work.columns *= count, work.depth *= count;
  return work;
}

double slices_of(const TileWork& work) { return std::ceil(work.depth * work.element_bytes / kSliceBytes); }

double expected_us(const TileWork& own, const Tile& tile) {
  const TileWork work = joined(own, tile);
  const double blocks =
      work.batch * std::ceil(work.rows / tile.rows) * std::ceil(work.columns / tile.columns) * tile.split;
  const double depth = kSliceBytes / work.element_bytes;
  const double arithmetic = 2 * tile.rows * tile.columns * depth * work.products / kOperationsPerUs;
  const double memory = (tile.rows + tile.columns) * kSliceBytes / kBytesPerUs;
  // Blocks side by side hide each other's waits, and share what the multiprocessor does in a time.
  const double at_once = std::clamp(std::ceil(blocks / kMultiprocessors), 1.0, kBlocksAtOnce);
  const double slice = std::max(kLeastSliceUs + 0.5 * (arithmetic + memory), at_once * std::max(arithmetic, memory));
  const double waves = std::ceil(blocks / (kMultiprocessors * at_once));
  return kStartUs + (tile.split > 1 ? kSplitUs : 0) + waves * std::ceil(slices_of(work) / tile.split) * slice;
}

// The least that is expected of any tile; asked for the same kernel once for each of them.
double least_us(const TileWork& work) {
  thread_local std::pair<TileWork, double> last{{}, 0};
  if (last.first == work) return last.second;
  double least = INFINITY;
  for (const auto& [rows, columns] : kShapes)
    for (int split : kSplits)
      if (has_split(rows, columns, split)) least = std::min(least, expected_us(work, {rows, columns, split}));
  last = {work, least};
  return least;
}

bool is_worth_trying(const TileWork& own, const Tile& tile) {
  constexpr double kWithin = 1.4;
  const TileWork work = joined(own, tile);
  const double slices = slices_of(work);
  if (tile.split > 1 && slices < 2 * tile.split) return false;
  // Half a tile of nothing is a smaller tile's work.
  constexpr int kFewRows = 32, kFewColumns = 64;
  if ((tile.rows > kFewRows && 2 * work.rows <= tile.rows) ||
      (tile.columns > kFewColumns && 2 * work.columns <= tile.columns))
    return false;
  return expected_us(own, tile) <= kWithin * least_us(own);
}

// Those of warpgroups take two thirds of the time, but for what is too small for them, and where taps of few channels
// leave most of their slices empty: here a slice is of several taps.
template <int kRows, int kColumns>
bool is_outdone(const Plan& plan, const Kernel& kernel) {
  constexpr int kFew = 32;
  const TileWork work = work_of_kernel(plan, kernel);
  const bool is_small = (kRows <= kFew && work.rows <= kFew) || (kColumns <= kFew && work.columns <= kFew);
  return !is_small && is_for_warpgroups(plan, kernel) &&
         slices_of_warpgroups(plan, kernel) < 2 * slices_of(joined(work, {kRows, kColumns, 1}));
}

template <int kRows, int kColumns, int kSplit>
bool is_likely(const Plan& plan, const Kernel& kernel) {
  return is_worth_trying(work_of_kernel(plan, kernel), {kRows, kColumns, kSplit});
}

// Three times the peak of floats is that of TF32, six times that of halves.
template <int kRows, int kColumns, int kSplit>
double efficiency(const Plan& plan, const Kernel& kernel) {
  const TileWork work = work_of_kernel(plan, kernel);
  const double us = expected_us(work, {kRows, kColumns, kSplit}) - kStartUs;
  const double operations = 2 * work.batch * work.rows * work.columns * work.depth;
  return share_of_peak(operations, us, 6 / work.products);
}

bool has_tiles(const Plan& plan, const Kernel& kernel) {
  return convolves_by_tiles(plan, kernel) || transposes_by_tiles(plan, kernel);
}

template <size_t kShape, size_t kSplit>
void add_rows(std::vector<Implementation>& rows) {
  constexpr int r = kShapes[kShape].first, c = kShapes[kShape].second, s = kSplits[kSplit];
  static const std::string name = to_string(Tile{r, c, s});
  if (!has_split(r, c, s)) return;
  Implementation row{.name = name, .target = TargetKind::Cuda, .efficiency = efficiency<r, c, s>};
  row.is_likely = is_likely<r, c, s>;
  row.is_outdone = is_outdone<r, c>;
  row.takes_prologue = true;
  add_tile_rows(rows, row, has_tiles, multiplies_by_tiles);
}
template <size_t... kNumbers>
void add_all(std::vector<Implementation>& rows, std::index_sequence<kNumbers...>) {
  constexpr size_t kCount = std::size(kSplits);
  (add_rows<kNumbers / kCount, kNumbers % kCount>(rows), ...);
}

}  // namespace

bool transposes_by_tiles(const Plan& plan, const Kernel& kernel) {
  if (!is_transposed(kernel)) return false;
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &y = plan.buffer(kernel.output_buffers[0]);
  if (!has_channels_last(x) || !y.layout.is_channels_last() || x.element != y.element) return false;
  const ConvolutionShape shape = convolution_shape(plan, kernel);
  constexpr int64_t kMostBatches = 65535;
  int64_t batches = shape.groups;
  for (size_t a = 0; a < shape.axes(); a++) {
    // Taps that are apart, between positions that are: which taps a residue sees is not one in so many.
    if ((shape.strides[a] > 1 && shape.dilations[a] > 1 && shape.weights[2 + a] > 1) || shape.pads[a] < 0) return false;
    batches *= shape.strides[a];
  }
  // A channel of its own fills no tile.
  const bool is_depthwise = shape.groups > 1 && (shape.weights[1] == 1 || shape.weights[0] == shape.groups);
  return batches <= kMostBatches && !is_depthwise && !kernel.prologue && is_narrow(plan, kernel);
}

bool convolves_by_tiles(const Plan& plan, const Kernel& kernel) {
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &y = plan.buffer(kernel.output_buffers[0]);
  if (!kernel.nodes[0]->is(OpKind::Conv)) return false;
  // A channel of its own fills no tile.
  const int64_t groups = int_or(*kernel.nodes[0], "group", 1);
  const bool is_depthwise = groups > 1 && (groups == x.dims[1] || groups == y.dims[1]);
  const bool has_positions = has_channels_last(x) || (x.layout.is_blocked() && x.dims[1] <= x.layout.lanes());
  return has_positions && y.layout.is_channels_last() && !is_depthwise && x.element == y.element &&
         is_narrow(plan, kernel) && has_prologue_of_tiles(plan, kernel);
}

bool multiplies_by_tiles(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  const bool is_transposed = node.is(OpKind::Gemm) && int_or(node, "transA", 0) != 0;
  constexpr size_t kMostAxes = 5;
  constexpr int64_t kMostBatches = 65535;
  const std::vector<int64_t>& y = plan.buffer(kernel.output_buffers[0]).dims;
  return !is_transposed && !kernel.quantized && y.size() <= kMostAxes && is_narrow(plan, kernel) &&
         element_count(std::span(y).first(y.size() - 2)) <= kMostBatches;
}

bool read_numbers(std::string_view implementation, std::string_view family,
                  std::initializer_list<std::pair<char, int*>> numbers) {
  if (!implementation.starts_with(family)) return false;
  std::string_view rest = implementation.substr(family.size());
  for (const auto& [mark, number] : numbers) {
    if (rest.empty() || rest[0] != mark) return false;
    const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), *number);
    if (error != std::errc()) return false;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  }
  return rest.empty();
}

void add_tile_rows(std::vector<Implementation>& rows, Implementation row, Accepts convolves, Accepts multiplies) {
  for (const auto& [kind, accepts] :
       {std::pair(KernelKind::Convolution, convolves), {KernelKind::MatrixProduct, multiplies}}) {
    row.kind = kind, row.accepts = accepts;
    rows.push_back(row);
  }
}

double share_of_peak(double operations, double us, double speed) {
  constexpr double kFloatsPerUs = 40e6;
  return operations / (us * kFloatsPerUs * speed);
}

std::vector<Implementation> tile_implementations() {
  std::vector<Implementation> rows;
  add_all(rows, std::make_index_sequence<std::size(kShapes) * std::size(kSplits)>());
  return rows;
}

}  // namespace gopt::planner
