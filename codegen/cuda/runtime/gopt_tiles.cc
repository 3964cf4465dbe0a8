// Launches of tiles.
#include "gopt_tiles.h"

#include <numeric>

#include "gopt_device.h"

namespace gopt_runtime {
namespace {

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
  return p;
}

TileProblem problem_of(const MatrixProduct& m, const Tiling&) {
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

class Tiled : public Primitive {
 public:
  Tiled(const TileProblem& problem, const TileKernel& kernel, int split) : problem_(problem), kernel_(kernel) {
    problem_.row_tiles = (problem_.rows + kernel.rows - 1) / kernel.rows;
    const int column_tiles = (problem_.columns + kernel.columns - 1) / kernel.columns;
    const int cluster = has_clusters() ? split : 1;
    launch_ =
        launch_of(kernel, dim3(static_cast<unsigned>(problem_.row_tiles * column_tiles), static_cast<unsigned>(cluster),
                               static_cast<unsigned>(problem_.batch[0] * problem_.batch[1] * problem_.batch[2])));
    launch_.cluster = cluster;
  }

  bool choose(const Operands&, cudaStream_t) override { return true; }

  bool launch(const Operands& o, cudaStream_t stream) override {
    problem_.src = o.src, problem_.weights = o.weights, problem_.bias = o.bias, problem_.addend = o.addend;
    problem_.dst = o.dst;
    problem_.is_aligned = problem_.dst_line % 4 == 0 && problem_.addend_line % 4 == 0 && problem_.dst_step % 4 == 0;
    for (const void* pointer : {problem_.bias, problem_.addend, static_cast<const void*>(o.dst)})
      problem_.is_aligned &= begins_four(pointer, problem_.result);
    void* arguments[] = {&problem_};
    return launch_dependent(kernel_.function, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  TileProblem problem_;
  TileKernel kernel_;
  Launch launch_;
};

template <class Description>
std::unique_ptr<Primitive> tiled(const Description& description, const Tiling& tiling) {
  TileProblem problem = problem_of(description, tiling);
  problem.has_constant_weights = tiling.has_constant_weights;
  return std::make_unique<Tiled>(problem, *tiling.kernel, tiling.split);
}

}  // namespace

Launch launch_of(const TileKernel& kernel, dim3 grid) {
  check(cudaFuncSetAttribute(kernel.function, cudaFuncAttributeMaxDynamicSharedMemorySize, kernel.shared_bytes),
        "a block's shared memory is larger than the device's");
  return {grid, dim3(static_cast<unsigned>(kernel.threads)), static_cast<size_t>(kernel.shared_bytes)};
}

bool begins_four(const void* pointer, Element element) {
  return reinterpret_cast<uintptr_t>(pointer) % static_cast<uintptr_t>(4 * size_of(element)) == 0;
}

std::unique_ptr<Primitive> make_tiled(const Convolution& convolution, const Tiling& tiling) {
  return tiled(convolution, tiling);
}
std::unique_ptr<Primitive> make_tiled(const MatrixProduct& product, const Tiling& tiling) {
  return tiled(product, tiling);
}

}  // namespace gopt_runtime
