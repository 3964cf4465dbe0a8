// Launches of attention.
#include "gopt_attention.h"

#include "gopt_device.h"
#include "gopt_tiles.h"

namespace gopt_runtime {
namespace {

class Attention : public Primitive {
 public:
  Attention(const AttentionProblem& problem, const TileKernel& kernel) : problem_(problem), kernel_(kernel) {
    problem_.row_tiles = (problem_.rows + kernel.rows - 1) / kernel.rows;
    const int64_t matrices = int64_t{problem_.batch[0]} * problem_.batch[1] * problem_.batch[2];
    launch_ = launch_of(kernel, dim3(static_cast<unsigned>(problem_.row_tiles * matrices)));
    const int64_t* steps = problem_.result.batch;
    has_aligned_steps_ = problem_.result.line % 4 == 0 && steps[0] % 4 == 0 && steps[1] % 4 == 0 && steps[2] % 4 == 0;
  }

  bool choose(const Operands&, cudaStream_t) override { return true; }

  bool launch(const Operands& o, cudaStream_t stream) override {
    problem_.query_data = o.src, problem_.key_data = o.weights, problem_.value_data = o.value;
    problem_.mask_data = o.addend, problem_.result_data = o.dst;
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
