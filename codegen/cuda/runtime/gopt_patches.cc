// Launches of convolutions by patches.
#include "gopt_patches.h"

#include <algorithm>

#include "gopt_tiles.h"

namespace gopt_runtime {
namespace {

class ByPatches : public Primitive {
 public:
  ByPatches(const TileProblem& problem, TileKernel kernel) : patch_(patches_of(problem, kernel.rows)) {
    const TileProblem& p = patch_.problem;
    const int columns = (p.columns + kernel.columns - 1) / kernel.columns;
    kernel.shared_bytes +=
        kernel.columns * patch_.column_bytes + patch_.copies * patch_.lines * patch_.line * kPositionBytes;
    launch_ = launch_of(kernel, dim3(1));
    const int at_once = static_cast<int>(blocks_at_once(kernel, launch_));
    patch_.blocks = std::min(patch_.blocks, std::max(1, at_once / columns));
    launch_.grid.x = static_cast<unsigned>(patch_.blocks * columns);
    function_ = kernel.function;
  }

  bool choose(const Operands&, cudaStream_t) override { return true; }

  bool launch(const Operands& o, cudaStream_t stream) override {
    set_operands(patch_.problem, o);
    patch_.is_stored_from_registers = has_chunks(patch_.problem, patch_.problem.result);
    void* arguments[] = {&patch_};
    return launch_dependent(function_, launch_, arguments, stream) == cudaSuccess;
  }

 private:
  PatchProblem patch_;
  const void* function_ = nullptr;
  Launch launch_;
};

}  // namespace

std::unique_ptr<Primitive> make_by_patches(const Convolution& convolution, const PatchTiling& tiling) {
  TileProblem problem = problem_of(convolution, {});
  problem.has_constant_weights = tiling.has_constant_weights;
  return std::make_unique<ByPatches>(problem, *tiling.kernel);
}

}  // namespace gopt_runtime
