// Launches of products of a few lines.
#include "gopt_vectors.h"

namespace gopt_runtime {
namespace {

class ByVectors : public Primitive {
 public:
  ByVectors(const TileProblem& problem, const VectorTiling& tiling)
      : problem_(problem), function_(tiling.kernel->function) {
    problem_.has_constant_weights = tiling.has_constant_weights;
    const int columns = tiling.kernel->columns;
    launch_ = launch_of(*tiling.kernel, dim3(static_cast<unsigned>((problem.columns + columns - 1) / columns)));
  }

  bool choose(const Operands&, cudaStream_t) override { return true; }

  bool launch(const Operands& o, cudaStream_t stream) override {
    set_operands(problem_, o);
    void* arguments[] = {&problem_};
    return launch_dependent(function_, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  TileProblem problem_;
  const void* function_ = nullptr;
  Launch launch_;
};

}  // namespace

std::unique_ptr<Primitive> make_by_vectors(const Convolution& convolution, const VectorTiling& tiling) {
  return std::make_unique<ByVectors>(problem_of(convolution, {}), tiling);
}
std::unique_ptr<Primitive> make_by_vectors(const MatrixProduct& product, const VectorTiling& tiling) {
  return std::make_unique<ByVectors>(problem_of(product), tiling);
}

}  // namespace gopt_runtime
