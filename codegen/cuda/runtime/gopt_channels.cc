// Launches of windows over channels.
#include "gopt_channels.h"

#include <cstring>
#include <vector>

#include "gopt_device.h"
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

bool are_finite(const void* values, Element element, size_t count, cudaStream_t stream) {
  std::vector<char> bytes(count * static_cast<size_t>(size_of(element)));
  check(cudaMemcpyAsync(bytes.data(), values, bytes.size(), cudaMemcpyDeviceToHost, stream), "cannot read weights");
  check(cudaStreamSynchronize(stream), "cannot read weights");
  // Of an infinite number and of none all bits of the exponent are set.
  const auto all_finite = [&](auto exponent) {
    for (size_t i = 0; i < bytes.size(); i += sizeof exponent) {
      auto word = exponent;
      std::memcpy(&word, &bytes[i], sizeof word);
      if ((word & exponent) == exponent) return false;
    }
    return true;
  };
  switch (element) {
    case Element::Float32: return all_finite(uint32_t{0x7f800000});
    case Element::Float16: return all_finite(uint16_t{0x7c00});
    case Element::BFloat16: return all_finite(uint16_t{0x7f80});
  }
  return false;
}

class ChannelWindows : public Primitive {
 public:
  ChannelWindows(const TileProblem& problem, const TileKernel& kernel) : problem_(problem), kernel_(kernel) {
    const int64_t all = blocks();
    const int cluster = cluster_of_means(all);
    launch_ = launch_of(kernel, dim3(static_cast<unsigned>(all), static_cast<unsigned>(cluster)));
    launch_.cluster = cluster;
  }

  bool choose(const Operands& o, cudaStream_t stream) override {
    const auto count = static_cast<size_t>(problem_.channels * problem_.line_of_weights);
    if (kernel_.lines > 0) problem_.has_finite_weights = are_finite(o.weights, problem_.result, count, stream);
    return true;
  }

  bool launch(const Operands& o, cudaStream_t stream) override {
    set_channel_operands(problem_, o);
    void* arguments[] = {&problem_};
    return launch_dependent(kernel_.function, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  int64_t blocks() const {
    const auto parts = [](int64_t all, int64_t of) { return (all + of - 1) / of; };
    const TileProblem& p = problem_;
    const int64_t chunks = parts(p.channels, kernel_.columns), lines = p.rows / p.out_width;
    if (kernel_.rows == 0) return p.rows * chunks;  // means of an image
    const int64_t along = parts(p.out_width, kernel_.rows);
    if (kernel_.lines == 0) return parts(lines * along * chunks, kernel_.threads);
    return lines / p.out_height * parts(p.out_height, kernel_.lines) * along * chunks;
  }

  // Blocks that share the positions of an image, where each of its threads would have many and the device has room.
  int cluster_of_means(int64_t all) const {
    constexpr int kMost = 8;
    constexpr int64_t kFewPositions = 512, kBlocksAtOnce = 264;
    const int64_t positions = int64_t{problem_.height} * problem_.width;
    int cluster = 1;
    if (kernel_.rows != 0 || !has_clusters()) return cluster;
    while (cluster < kMost && positions > kFewPositions * cluster && 2 * cluster * all <= kBlocksAtOnce) cluster *= 2;
    return cluster;
  }

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
