// Launches of tiles of warpgroups: the copy engine's descriptions of what they read.
#include "gopt_warpgroups.h"

#include <algorithm>

#include "gopt_device.h"

namespace gopt_runtime {
namespace {

constexpr int kSliceBytes = 128;

// A function of the driver, which is not linked: code is built where there is none.
void* of_driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned kSince = 12000;
  check(cudaGetDriverEntryPointByVersion(name, &function, kSince, cudaEnableDefault, &found),
        "cannot ask the driver for its copy engine");
  if (found != cudaDriverEntryPointSuccess || !function)
    throw std::runtime_error(std::string("the driver is older than CUDA 12: it has no ") + name);
  return function;
}

// Floats that are multiplied in TF32 are rounded as they are copied.
CUtensorMapDataType type_of(Element element, bool tf32) {
  switch (element) {
    case Element::Float32: return tf32 ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case Element::Float16: return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case Element::BFloat16: return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  }
  throw std::runtime_error("an element without a type");
}

void check_map(CUresult result) {
  if (result != CUDA_SUCCESS)
    throw std::runtime_error("the copy engine refuses a tensor of a convolution or a product");
}

constexpr auto kPermuted = CU_TENSOR_MAP_SWIZZLE_128B;
constexpr auto kWhole = CU_TENSOR_MAP_INTERLEAVE_NONE;
constexpr auto kKept = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
constexpr auto kZeros = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

// Windows of images [images, height, width, channels]: of each tap, `rows` positions one after another. A window that
// begins at the first corner is the first of a line, the last begins at the second. `channels` are
// those of all groups.
CUtensorMap map_of_windows(const TileProblem& p, Element element, bool tf32, int channels, int rows) {
  static const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(of_driver("cuTensorMapEncodeIm2col"));
  const auto size = static_cast<cuuint64_t>(size_of(element));
  const auto wide = [](int64_t i) { return static_cast<cuuint64_t>(i); };
  const auto narrow = [](int i) { return static_cast<cuuint32_t>(i); };
  const cuuint64_t extents[] = {wide(channels), wide(p.width), wide(p.height),
                                wide(p.rows / (p.out_height * p.out_width))};
  const cuuint64_t line = wide(p.src_line) * size;
  const cuuint64_t steps[] = {line, line * wide(p.width), line * wide(p.width) * wide(p.height)};
  const auto last = [](int extent, int out, int stride, int pad) { return (out - 1) * stride - pad - (extent - 1); };
  const int first_corner[] = {-p.pads[1], -p.pads[0]};
  const int last_corner[] = {last(p.width, p.out_width, p.strides[1], p.pads[1]),
                             last(p.height, p.out_height, p.strides[0], p.pads[0])};
  const cuuint32_t strides[] = {1, narrow(p.strides[1]), narrow(p.strides[0]), 1};
  CUtensorMap map;
  check_map(encode(&map, type_of(element, tf32), 4, const_cast<void*>(p.src), extents, steps, first_corner, last_corner,
                   narrow(kSliceBytes / static_cast<int>(size)), narrow(rows), strides, kWhole, kPermuted, kKept,
                   kZeros));
  return map;
}

// Weights: lines of channels of each tap of each column; or, by lines, of columns of each channel.
CUtensorMap map_of_weights(const TileProblem& p, Element element, bool tf32, bool by_lines, int lines) {
  static const auto encode = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(of_driver("cuTensorMapEncodeTiled"));
  const auto size = static_cast<cuuint64_t>(size_of(element));
  const auto wide = [](int64_t i) { return static_cast<cuuint64_t>(i); };
  const cuuint64_t in_line = wide(by_lines ? p.columns : p.channels),
                   extents[] = {in_line, wide(p.kernel_height * p.kernel_width), wide(by_lines ? p.depth : p.columns)};
  const cuuint64_t steps[] = {in_line * size, wide(p.line_of_weights) * size};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(kSliceBytes / static_cast<int>(size)), 1,
                            static_cast<cuuint32_t>(lines)};
  const cuuint32_t strides[] = {1, 1, 1};
  CUtensorMap map;
  check_map(encode(&map, type_of(element, tf32), 3, const_cast<void*>(p.weights), extents, steps, box, strides, kWhole,
                   kPermuted, kKept, kZeros));
  return map;
}

class ByWarpgroups : public Primitive {
 public:
  ByWarpgroups(const TileProblem& problem, Element element, bool tf32, bool by_lines, const WarpgroupTiling& tiling,
               ProloguePart prologue)
      : kernel_(*tiling.kernel), element_(element), tf32_(tf32), by_lines_(by_lines), prologue_(std::move(prologue)) {
    TileProblem& p = whole_.problem;
    p = problem;
    p.has_constant_weights = tiling.has_constant_weights;
    int runs = p.batch[2];
    all_channels_ = p.channels * runs;
    if (has_warpgroups() && runs > 1) {
      whole_.columns_of_run = p.columns, whole_.channels_of_run = p.channels;
      p.columns *= runs;
      runs = 1;
    }
    p.row_tiles = (p.rows + kernel_.rows - 1) / kernel_.rows;
    const int column_tiles = (p.columns + kernel_.columns - 1) / kernel_.columns;
    whole_.tiles = p.row_tiles * column_tiles;
    const int split = has_clusters() ? tiling.split : 1;
    if (!has_warpgroups()) kernel_.shared_bytes = kernel_.shared_bytes_of_tile;
    launch_ = launch_of(
        kernel_, dim3(static_cast<unsigned>(whole_.tiles), static_cast<unsigned>(split), static_cast<unsigned>(runs)));
    launch_.cluster = split;
    if (split == 1 && has_warpgroups()) {
      at_once_ = blocks_at_once(kernel_, launch_);
      launch_.shared_bytes = static_cast<size_t>(kernel_.shared_bytes_alone);
      at_once_alone_ = blocks_at_once(kernel_, launch_);
    }
    // What all blocks ask the L2 cache for is a part of it; a thread asks for all of a block's.
    constexpr int64_t kCacheBytes = 16 << 20, kMostSlices = 96;
    const int64_t slice_bytes = int64_t{kSliceBytes} * kernel_.columns * column_tiles * split;
    whole_.slices_in_cache = static_cast<int>(std::min(kMostSlices, kCacheBytes / slice_bytes));
    whole_.slices_of_tap = static_cast<int>((p.channels * size_of(element) + kSliceBytes - 1) / kSliceBytes);
  }

  // A tile of other devices takes the weights as they lie.
  void join_groups(const Convolution& c, int joined) {
    if (!has_warpgroups() || joined == 1) return;
    for (int64_t group = 0; group < c.groups; group++) groups_.push_back(weights_of_group(c, joined, group));
    TileProblem& p = whole_.problem;
    p.line_of_weights = p.depth;
  }

  // Before the first launch, which is never recorded.
  bool choose(const Operands& o, cudaStream_t stream) override {
    prologue_.fold(whole_.problem, o, stream);
    if (groups_.empty()) return true;
    const auto* from = static_cast<const char*>(o.weights);
    auto* to = static_cast<char*>(joined_weights());
    check(cudaMemsetAsync(to, 0, bytes_of_weights(), stream), "cannot clear weights");
    for (const WeightsOfGroup& g : groups_)
      check(cudaMemcpy2DAsync(to + g.to, g.line, from + g.from, g.width, g.width, g.height, cudaMemcpyDeviceToDevice,
                              stream),
            "cannot copy weights");
    // The kernel does not wait for what comes before it to read its weights.
    check(cudaStreamSynchronize(stream), "cannot copy weights");
    return true;
  }

  bool launch(const Operands& o, cudaStream_t stream) override {
    set_operands(whole_.problem, o);
    if (!groups_.empty()) whole_.problem.weights = joined_weights();
    if (has_warpgroups()) {
      whole_.is_stored_from_registers = launch_.cluster == 1 && has_chunks(whole_.problem, element_);
      if (kernel_.needs_chunks && !whole_.is_stored_from_registers) return false;
      choose_ring();
      const int depth = kSliceBytes / static_cast<int>(size_of(element_));
      whole_.left = map_of_windows(whole_.problem, element_, tf32_, all_channels_, kernel_.rows);
      whole_.right = map_of_weights(whole_.problem, element_, tf32_, by_lines_, by_lines_ ? depth : kernel_.columns);
    }
    void* arguments[] = {&whole_};
    return launch_dependent(kernel_.function, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  void choose_ring() {
    const bool is_alone = whole_.is_stored_from_registers;
    whole_.stages = is_alone ? kernel_.stages_alone : kernel_.stages;
    launch_.shared_bytes = static_cast<size_t>(is_alone ? kernel_.shared_bytes_alone : kernel_.shared_bytes);
    if (launch_.cluster == 1)
      launch_.grid.x = std::min(static_cast<unsigned>(whole_.tiles), is_alone ? at_once_alone_ : at_once_);
  }
  size_t bytes_of_weights() const {
    const TileProblem& p = whole_.problem;
    return static_cast<size_t>(p.columns * p.line_of_weights * size_of(element_));
  }
  void* joined_weights() { return weights_.at_least(bytes_of_weights()); }

  TileKernel kernel_;
  Element element_;
  bool tf32_, by_lines_;
  ProloguePart prologue_;
  int all_channels_ = 0;                // of the source, of which a run of groups reads some
  std::vector<WeightsOfGroup> groups_;  // where they are joined
  Workspace weights_;                   // of the joined groups
  WarpgroupProblem whole_{};
  Launch launch_;
  unsigned at_once_ = 0, at_once_alone_ = 0;  // blocks of undivided depth, with room for sums and without
};

}  // namespace

std::unique_ptr<Primitive> make_by_warpgroups(const Convolution& c, const WarpgroupTiling& tiling) {
  const TileProblem problem = problem_of(c, Tiling{.joined_groups = tiling.joined_groups});
  auto primitive = std::make_unique<ByWarpgroups>(problem, c.element, c.tf32, false, tiling, ProloguePart(c));
  primitive->join_groups(c, tiling.joined_groups);
  return primitive;
}
std::unique_ptr<Primitive> make_by_warpgroups(const MatrixProduct& m, const WarpgroupTiling& tiling) {
  return std::make_unique<ByWarpgroups>(problem_of(m), m.operands, m.tf32, !m.right_transposed, tiling, ProloguePart());
}

}  // namespace gopt_runtime
