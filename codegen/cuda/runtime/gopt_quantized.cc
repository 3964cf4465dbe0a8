// Launches of products by quantized weights.
#include "gopt_quantized_problem.h"
#include "gopt_tiles.h"

namespace gopt_runtime {
namespace {

class QuantizedPrimitive : public Primitive {
 public:
  QuantizedPrimitive(const MatrixProduct& product, const QuantizedTiling& tiling)
      : problem_{problem_of(product), tiling.numbers}, kernel_(*tiling.kernel) {
    const int blocks = (problem_.tile.columns + kernel_.columns - 1) / kernel_.columns;
    launch_ = launch_of(kernel_, dim3(static_cast<unsigned>(blocks)));
  }

  bool choose(const Operands&, cudaStream_t) override { return true; }

  bool launch(const Operands& o, cudaStream_t stream) override {
    set_operands(problem_.tile, o);
    problem_.scales = o.scales, problem_.zeros = o.zeros;
    void* arguments[] = {&problem_};
    return launch_dependent(kernel_.function, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  QuantizedProblem problem_;
  TileKernel kernel_;
  Launch launch_;
};

}  // namespace

std::unique_ptr<Primitive> make_quantized(const MatrixProduct& product, const QuantizedTiling& tiling) {
  return std::make_unique<QuantizedPrimitive>(product, tiling);
}

}  // namespace gopt_runtime
