// Launches of windows over channels.
#include "gopt_channels.h"

#include <algorithm>

#include "gopt_tiles.h"

namespace gopt_runtime {

TileProblem problem_of_channels(const Convolution& convolution, bool counts_outside) {
  Tiling all;
  all.joined_groups = static_cast<int>(convolution.groups);
  TileProblem problem = problem_of(convolution, all);
  problem.line_of_weights = positions_of(convolution.weights);
  problem.counts_outside = counts_outside;
  return problem;
}

void set_channel_operands(TileProblem& problem, const Operands& o) {
  set_operands(problem, o);
  constexpr uintptr_t kChunk = 16;
  const int lanes = lanes_of(problem.result);
  problem.is_aligned =
      problem.src_line % lanes == 0 && problem.dst_line % lanes == 0 && problem.addend_line % lanes == 0;
  for (const void* pointer : {o.src, o.weights, o.bias, o.addend, static_cast<const void*>(o.dst)})
    problem.is_aligned &= reinterpret_cast<uintptr_t>(pointer) % kChunk == 0;
}

namespace {

// Lines that a thread makes of a column: few enough that each multiprocessor has threads for all it can run at once.
int rows_of_thread(const TileProblem& p, int lanes) {
  constexpr int64_t kMultiprocessors = 132, kThreads = 512, kMost = 32;
  const int64_t chunks = (p.channels + lanes - 1) / lanes, columns = int64_t{p.rows} / p.out_height * chunks,
                strips =
                    std::max((kMultiprocessors * kThreads + columns - 1) / columns, (p.out_height + kMost - 1) / kMost),
                used = std::min<int64_t>(strips, p.out_height);
  return static_cast<int>((p.out_height + used - 1) / used);
}

class ChannelWindows : public Primitive {
 public:
  ChannelWindows(const TileProblem& problem, const TileKernel& kernel) : problem_(problem), kernel_(kernel) {
    const auto parts = [](int64_t all, int64_t of) { return (all + of - 1) / of; };
    const bool has_blocks = kernel.rows == 0;  // which make the mean of an image each
    const int64_t chunks = parts(problem.channels, kernel.columns), lines = problem.rows / problem.out_width,
                  of_column = std::max(problem.rows_of_thread, 1), images = lines / problem.out_height,
                  strips = images * parts(problem.out_height, of_column),
                  blocks = has_blocks ? problem.rows * chunks
                                      : parts(strips * parts(problem.out_width, kernel.rows) * chunks, kernel.threads);
    launch_ = launch_of(kernel, dim3(static_cast<unsigned>(blocks)));
  }

  bool choose(const Operands&, cudaStream_t) override { return true; }

  bool launch(const Operands& o, cudaStream_t stream) override {
    set_channel_operands(problem_, o);
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
  if (tiling.goes_down) problem.rows_of_thread = rows_of_thread(problem, tiling.kernel->columns);
  return std::make_unique<ChannelWindows>(problem, *tiling.kernel);
}

}  // namespace gopt_runtime
