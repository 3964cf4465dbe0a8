// Launches of attention.
#include "gopt_attention.h"

#include <algorithm>

#include "gopt_device.h"
#include "gopt_tiles.h"

namespace gopt_runtime {
namespace {

// Of each, what the device has for one at most and what two of a multiprocessor share.
int shared_bytes_of_two_blocks() {
  constexpr int kReserved = 1024;  // of each block, for the system
  int device = 0, of_block = 0, of_multiprocessor = 0;
  check(cudaGetDevice(&device), "no device");
  check(cudaDeviceGetAttribute(&of_block, cudaDevAttrMaxSharedMemoryPerBlockOptin, device), "no shared memory");
  check(cudaDeviceGetAttribute(&of_multiprocessor, cudaDevAttrMaxSharedMemoryPerMultiprocessor, device),
        "no shared memory");
  return std::min(of_block, of_multiprocessor / 2 - kReserved);
}

class Attention : public Primitive {
 public:
  Attention(const AttentionProblem& problem, const TileKernel& kernel) : problem_(problem), kernel_(kernel) {
    // Blocks of as many lines each as there are row warps for: no more than the last of them needs.
    constexpr int kFragment = 16;
    problem_.row_tiles = (problem_.rows + kernel.rows - 1) / kernel.rows;
    const int own_rows = (problem_.rows + problem_.row_tiles - 1) / problem_.row_tiles;
    problem_.tile_rows = (own_rows + kFragment - 1) / kFragment * kFragment;
    kernel_.threads = kernel.threads / kernel.rows * problem_.tile_rows;
    // All keys at once where two blocks of a multiprocessor have room for theirs, else two stages.
    constexpr int kStages = 2;
    const int all_steps = std::max((problem_.keys + kernel.stage_keys - 1) / kernel.stage_keys, 1),
              split = has_clusters() ? std::min(problem_.split, all_steps) : 1,
              steps_of_keys = (all_steps + split - 1) / split,
              more = std::max(0, steps_of_keys - kStages) * kernel.stage_bytes;
    const bool has_room = kernel.shared_bytes + more <= shared_bytes_of_two_blocks();
    problem_.stages = has_room ? steps_of_keys : kStages;
    if (has_room) kernel_.shared_bytes += more;
    const int64_t matrices = int64_t{problem_.batch[0]} * problem_.batch[1] * problem_.batch[2];
    launch_ =
        launch_of(kernel_, dim3(static_cast<unsigned>(problem_.row_tiles * matrices), static_cast<unsigned>(split)));
    launch_.cluster = split;
    const int64_t* steps = problem_.result.batch;
    has_aligned_steps_ = problem_.result.line % 4 == 0 && steps[0] % 4 == 0 && steps[1] % 4 == 0 && steps[2] % 4 == 0;
  }

  bool choose(const Operands&, cudaStream_t) override { return true; }

  bool launch(const Operands& o, cudaStream_t stream) override {
    problem_.query_data = o.src, problem_.key_data = o.weights, problem_.value_data = o.value;
    problem_.mask_data = o.addend, problem_.bias_data = o.bias, problem_.choice_data = o.choice;
    problem_.result_data = o.dst;
    problem_.is_aligned = has_aligned_steps_ && begins_four(o.dst, problem_.result_element);
    void* arguments[] = {&problem_};
    return launch_dependent(kernel_.function, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  AttentionProblem problem_;
  TileKernel kernel_;
  Launch launch_;
  bool has_aligned_steps_ = false;
};

}  // namespace

std::unique_ptr<Primitive> make_attention(const AttentionProblem& problem, const TileKernel& kernel) {
  return std::make_unique<Attention>(problem, kernel);
}

}  // namespace gopt_runtime
