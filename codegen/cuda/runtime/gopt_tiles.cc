// Launches of tiles.
#include "gopt_tiles.h"

#include <algorithm>
#include <numeric>

#include "gopt_channels.h"
#include "gopt_device.h"

namespace gopt_runtime {

TileProblem problem_of(const Convolution& c, const Tiling& tiling) {
  TileProblem p;
  const auto narrow = [](int64_t i) { return static_cast<int>(i); };
  const int64_t batch = c.groups / tiling.joined_groups;
  const size_t axes = c.src.size() - 2, y = axes - 2, x = axes - 1;  // the last two
  p.channels = narrow(c.src[1] / batch), p.height = narrow(c.src[2 + y]), p.width = narrow(c.src[2 + x]);
  p.out_height = narrow(c.dst[2 + y]), p.out_width = narrow(c.dst[2 + x]);
  p.kernel_height = narrow(c.weights[2 + y]), p.kernel_width = narrow(c.weights[2 + x]);
  for (size_t a = 0; a < 2; a++) {
    p.strides[a] = narrow(c.strides[y + a]);
    p.dilations[a] = narrow(c.dilations[y + a]);
    p.pads[a] = narrow(c.pads[y + a]);
  }
  if (y > 0) {
    p.planes = narrow(c.src[2]), p.out_planes = narrow(c.dst[2]), p.kernel_planes = narrow(c.weights[2]);
    p.stride_of_planes = narrow(c.strides[0]), p.dilation_of_planes = narrow(c.dilations[0]);
    p.pad_of_planes = narrow(c.pads[0]);
  }
  p.rows = narrow(c.dst[0] * positions_of(c.dst));
  p.columns = narrow(c.dst[1] / batch);
  p.depth = narrow(p.channels * positions_of(c.weights));
  p.line_of_weights = c.weights[1] * positions_of(c.weights);
  p.src_line = narrow(c.src_line > 0 ? c.src_line : c.src[1]);
  p.dst_line = c.dst_line > 0 ? c.dst_line : c.dst[1];
  p.addend_line = c.addend_line > 0 ? c.addend_line : c.dst[1];
  p.batch[2] = narrow(batch);
  p.src_steps[2] = p.channels;
  p.weight_steps[2] = p.columns * p.line_of_weights;
  p.dst_step = p.bias_step = p.columns;
  p.group_channels = narrow(c.weights[1]);
  p.group_columns = narrow(c.dst[1] / c.groups);
  constexpr int64_t kChunk = 16;
  p.piece = narrow(std::gcd(kChunk, c.weights[1] * size_of(c.element)));
  p.activation = c.activation;
  p.result = c.element;
  p.prologue.positions = narrow(c.prologue.positions);
  if (c.transposed) set_residues(p, narrow(c.dst[0]));
  return p;
}

TileProblem problem_of(const MatrixProduct& m) {
  TileProblem p;
  const auto narrow = [](int64_t i) { return static_cast<int>(i); };
  p.rows = p.width = p.out_width = narrow(m.rows);
  p.columns = narrow(m.columns);
  p.depth = p.channels = narrow(m.depth);
  p.src_line = p.depth;
  p.dst_line = p.addend_line = p.columns;
  p.line_of_weights = m.right_transposed ? m.depth : m.columns;
  for (size_t axis = 0; axis < m.batch.size(); axis++) {
    p.batch[axis] = narrow(m.batch[axis].count);
    p.src_steps[axis] = m.batch[axis].left_step;
    p.weight_steps[axis] = m.batch[axis].right_step;
  }
  p.dst_step = m.rows * m.columns;
  p.scale = m.scale;
  p.activation = m.activation;
  p.result = m.result;
  return p;
}

namespace {

int column_tiles_of(const TileProblem& problem, const TileKernel& kernel) {
  return (problem.columns + kernel.columns - 1) / kernel.columns;
}
int batches_of(const TileProblem& problem) { return problem.batch[0] * problem.batch[1] * problem.batch[2]; }

// What a block of the kernel needs: its ring has no more stages than the block has slices, which leaves room for other
// blocks. A residue of a transposed convolution has a part of the depth.
size_t shared_bytes_of(const TileKernel& kernel, const TileProblem& problem, int split) {
  if (kernel.stages == 0) return static_cast<size_t>(kernel.shared_bytes);  // vectors have no ring
  const int of_block = kernel.slice_depth * split, slices = (problem.depth + of_block - 1) / of_block;
  if (slices >= kernel.stages) return static_cast<size_t>(kernel.shared_bytes);
  return static_cast<size_t>(std::max(slices * kernel.stage_bytes, kernel.sum_bytes));
}

class Tiled : public Primitive {
 public:
  Tiled(const TileProblem& problem, const TileKernel& kernel, int split, ProloguePart prologue)
      : problem_(problem), kernel_(kernel), prologue_(std::move(prologue)) {
    problem_.row_tiles = (problem_.rows + kernel.rows - 1) / kernel.rows;
    const int cluster = has_clusters() ? split : 1;
    launch_ = launch_of(
        kernel, dim3(static_cast<unsigned>(problem_.row_tiles * column_tiles_of(problem_, kernel)),
                     static_cast<unsigned>(cluster), static_cast<unsigned>(batches_of(problem_) * problem_.residues)));
    launch_.cluster = cluster;
    launch_.shared_bytes = shared_bytes_of(kernel, problem_, cluster);
  }

  bool choose(const Operands& o, cudaStream_t stream) override {
    prologue_.fold(problem_, o, stream);
    return true;
  }

  bool launch(const Operands& o, cudaStream_t stream) override {
    set_operands(problem_, o);
    void* arguments[] = {&problem_};
    return launch_dependent(kernel_.function, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  TileProblem problem_;
  TileKernel kernel_;
  ProloguePart prologue_;
  Launch launch_;
};

std::unique_ptr<Primitive> tiled(TileProblem problem, const Tiling& tiling, ProloguePart prologue) {
  problem.has_constant_weights = tiling.has_constant_weights;
  return std::make_unique<Tiled>(problem, *tiling.kernel, tiling.split, std::move(prologue));
}

}  // namespace

Launch launch_of(const TileKernel& kernel, dim3 grid) {
  // Another launch of the same kernel may have more.
  cudaFuncAttributes now;
  check(cudaFuncGetAttributes(&now, kernel.function), "cannot ask about a kernel");
  if (now.maxDynamicSharedSizeBytes < kernel.shared_bytes)
    check(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.shared_bytes),
          "a block's shared memory is larger than the device's");
  return {grid, dim3(static_cast<unsigned>(kernel.threads)), static_cast<size_t>(kernel.shared_bytes)};
}

unsigned blocks_at_once(const TileKernel& kernel, const Launch& launch) {
  int device = 0, processors = 0, blocks = 0;
  check(cudaGetDevice(&device), "cannot ask for the device");
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "cannot ask about the device");
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel.function, kernel.threads, launch.shared_bytes),
        "cannot ask how many blocks the device has room for");
  return static_cast<unsigned>(std::max(1, processors * blocks));
}

bool has_chunks(const TileProblem& p, Element operands) {
  constexpr int64_t kChunkBytes = 16;
  const auto are_chunks = [size = size_of(operands)](int64_t count) { return count * size % kChunkBytes == 0; };
  const auto begins_chunk = [](const void* at) { return reinterpret_cast<uintptr_t>(at) % kChunkBytes == 0; };
  return p.result == operands && p.is_aligned && are_chunks(p.columns) && are_chunks(p.dst_line) &&
         begins_chunk(p.dst) && (!p.addend || (are_chunks(p.addend_line) && begins_chunk(p.addend)));
}

bool begins_four(const void* pointer, Element element) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(4 * size_of(element)) == 0;
}

void ProloguePart::fold(TileProblem& p, const Operands& o, cudaStream_t stream) const {
  if (!settings_.has_channels) return;
  constexpr int kOfSlice = 64;
  const int all = (p.channels + kOfSlice - 1) / kOfSlice * kOfSlice;
  auto* lines = static_cast<float*>(lines_->at_least(sizeof(float) * 2 * static_cast<size_t>(all)));
  fold_channels(lines, o.prologue, settings_.epsilon, p.channels, all, stream);
  p.prologue.lines = lines;
  p.prologue.least = settings_.least, p.prologue.largest = settings_.largest;
}

void set_operands(TileProblem& p, const Operands& o) {
  p.src = o.src, p.weights = o.weights, p.bias = o.bias, p.addend = o.addend, p.dst = o.dst;
  p.prologue.gates = o.prologue.gates;
  p.is_aligned = p.dst_line % 4 == 0 && p.addend_line % 4 == 0 && p.dst_step % 4 == 0;
  for (const void* pointer : {p.bias, p.addend, static_cast<const void*>(o.dst)})
    p.is_aligned &= begins_four(pointer, p.result);
}

void TileGroup::add(const Member& member) {
  if (members_.size() == kMostMembers) throw std::runtime_error("a group has too many members");
  members_.push_back(member);
}

void TileGroup::add(const Convolution& convolution, const Tiling& tiling) {
  const int cluster = has_clusters() ? tiling.split : 1;
  if (kernel_ && (kernel_ != tiling.kernel || launch_.cluster != cluster))
    throw std::runtime_error("the members of a group are computed by different kernels");
  if (!kernel_) {
    kernel_ = tiling.kernel;
    launch_ = launch_of(*kernel_, dim3(1, static_cast<unsigned>(cluster)));
    launch_.cluster = cluster;
    launch_.shared_bytes = 0;
  }
  Member member{problem_of(convolution, tiling)};
  member.problem.has_constant_weights = tiling.has_constant_weights;
  member.problem.row_tiles = (member.problem.rows + kernel_->rows - 1) / kernel_->rows;
  launch_.shared_bytes = std::max(launch_.shared_bytes, shared_bytes_of(*kernel_, member.problem, cluster));
  add(member);
}

void TileGroup::add_pool(const Convolution& pool, Window window, bool counts_outside) {
  add({problem_of_channels(pool, counts_outside), window == Window::Mean ? Work::Mean : Work::Largest});
}

// Along x; of a pool the blocks of a cluster are as many more.
int TileGroup::blocks_of(const Member& member) const {
  const TileProblem& p = member.problem;
  if (member.work == Work::Tiles) return p.row_tiles * column_tiles_of(p, *kernel_) * batches_of(p);
  const int of_block = kernel_->threads * launch_.cluster;
  return (p.rows * (p.channels / lanes_of(p.result)) + of_block - 1) / of_block;
}

bool TileGroup::launch(const std::vector<Operands>& operands, cudaStream_t stream) const {
  if (operands.size() != members_.size() || !kernel_) return false;
  TileProblems all;
  int blocks = 0;
  for (size_t m = 0; m < members_.size(); m++) {
    TileProblem& problem = all.problem[m] = members_[m].problem;
    all.work[m] = members_[m].work;
    if (all.work[m] == Work::Tiles)
      set_operands(problem, operands[m]);
    else
      set_channel_operands(problem, operands[m]);
    all.tiles[m] = problem.row_tiles * column_tiles_of(problem, *kernel_);
    all.end[m] = blocks += blocks_of(members_[m]);
  }
  Launch launch = launch_;
  launch.grid.x = static_cast<unsigned>(blocks);
  void* arguments[] = {&all};
  return launch_dependent(kernel_->function, launch, arguments, stream) == cudaSuccess;
}

std::unique_ptr<Primitive> make_tiled(const Convolution& convolution, const Tiling& tiling) {
  return tiled(problem_of(convolution, tiling), tiling, ProloguePart(convolution));
}
std::unique_ptr<Primitive> make_tiled(const MatrixProduct& product, const Tiling& tiling) {
  return tiled(problem_of(product), tiling, {});
}

}  // namespace gopt_runtime
