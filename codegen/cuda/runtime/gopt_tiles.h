// Matrix products and convolutions of channels last by tiles of our own on the tensor cores: what a launch needs, and
// the kernels as the generated tiles_N.cu name them.
#pragma once

#include <memory>

#include "gopt_launch.h"
#include "gopt_primitive.h"
#include "gopt_tile_problem.h"

namespace gopt_runtime {

// Convolutions by one kernel, and pools, that need nothing of each other, in one launch. A convolution is the first.
class TileGroup {
 public:
  void add(const Convolution& convolution, const Tiling& tiling);
  void add_pool(const Convolution& pool, Window window, bool counts_outside);
  // Operands of each, in the order in which they were added.
  bool launch(const std::vector<Operands>& operands, cudaStream_t stream) const;

 private:
  struct Member {
    TileProblem problem;
    Work work = Work::Tiles;
  };
  void add(const Member& member);
  int blocks_of(const Member& member) const;

  std::vector<Member> members_;
  const TileKernel* kernel_ = nullptr;
  Launch launch_;  // of one block
};

// Where a problem's tensors are.
void set_operands(TileProblem& problem, const Operands& operands);
TileProblem problem_of(const Convolution& convolution, const Tiling& tiling);
TileProblem problem_of(const MatrixProduct& product);

// Of blocks of a kernel, whose shared memory is asked for; throws where the device has less.
Launch launch_of(const TileKernel& kernel, dim3 grid);
// Of such a launch, blocks that the device has room for.
unsigned blocks_at_once(const TileKernel& kernel, const Launch& launch);
// Whether results are of the operands' type, and they and what is added to them lie in lines of whole chunks of 16
// bytes: they may be stored from registers (RegisterResult), where no other block has a part of their sums.
bool has_chunks(const TileProblem& problem, Element operands);
// Whether four elements of a type can be moved at once from where a pointer points.
bool begins_four(const void* pointer, Element element);

}  // namespace gopt_runtime
