// Launches of windows over channels.
#include "gopt_channels.h"

namespace gopt_runtime {

TileProblem problem_of_channels(const Convolution& convolution, bool counts_outside) {
  Tiling all;
  all.joined_groups = static_cast<int>(convolution.groups);
  TileProblem problem = problem_of(convolution, all);
  problem.line_of_weights = positions_of(convolution.weights);
  problem.counts_outside = counts_outside;
  return problem;
}

void set_channel_operands(TileProblem& problem, const Operands& o, int lanes) {
  set_operands(problem, o);
  constexpr uintptr_t kChunk = 16;
  problem.is_aligned =
      problem.src_line % lanes == 0 && problem.dst_line % lanes == 0 && problem.addend_line % lanes == 0;
  for (const void* pointer : {o.src, o.weights, o.bias, o.addend, static_cast<const void*>(o.dst)})
    problem.is_aligned &= reinterpret_cast<uintptr_t>(pointer) % kChunk == 0;
}

namespace {

class ChannelWindows : public Primitive {
 public:
  ChannelWindows(const TileProblem& problem, const TileKernel& kernel) : problem_(problem), kernel_(kernel) {
    const int64_t threads = static_cast<int64_t>(problem.rows) * (problem.channels / kernel.columns);
    launch_ = launch_of(kernel, dim3(static_cast<unsigned>((threads + kernel.threads - 1) / kernel.threads)));
  }

  bool choose(const Operands&, cudaStream_t) override { return true; }

  bool launch(const Operands& o, cudaStream_t stream) override {
    set_channel_operands(problem_, o, kernel_.columns);
    void* arguments[] = {&problem_};
    return launch_dependent(kernel_.function, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  TileProblem problem_;
  TileKernel kernel_;
  Launch launch_;
};

}  // namespace

std::unique_ptr<Primitive> make_channels(const Convolution& convolution, const ChannelTiling& tiling) {
  TileProblem problem = problem_of_channels(convolution, tiling.counts_outside);
  problem.has_constant_weights = tiling.has_constant_weights;
  return std::make_unique<ChannelWindows>(problem, *tiling.kernel);
}

}  // namespace gopt_runtime
