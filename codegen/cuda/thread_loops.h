// A generated kernel as a CUDA kernel: a thread for each element of the output, or a block for each row whose
// reductions (of a softmax, a normalization, a pooling over everything) its threads divide among themselves.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "../lower.h"
#include "../writer.h"

namespace gopt::codegen {

// One launch. `parameters` and the texts are the kernel's without its name, so that equal kernels can share one
// function.
struct CudaKernel {
  std::string parameters;    // "const float* in0, float* __restrict__ out"
  std::string before, text;  // what may be done while the kernel before still runs; and all after that has ended
  int64_t blocks = 1, threads = 256;
  int64_t of_each = 1;  // so many blocks for each of `blocks`, along y: a cluster,
  // or blocks that are all on the device at once and meet in its memory, by one more parameter, "uint64_t* memory".
  bool meets = false;
  // The same by fewer blocks for each, for devices without clusters, or with no room for all blocks at once.
  std::shared_ptr<const CudaKernel> otherwise = nullptr;

  int64_t meeting_bytes() const { return meets ? blocks * of_each * 40 : 0; }  // of that memory
  std::string body() const;                                                    // "{...}"
};

// What all have in common: parameters. Only `constants`, inputs that no kernel writes, are said not to change: what is
// read of such (ld.global.nc) ptxas moves to before the kernel waits for the one before. That the output is nobody
// else's is enough for loads to run ahead of stores.
CudaKernel cuda_kernel(const KernelBody& body, bool overlaps, const std::string& text, const std::string& before = "",
                       const std::set<int>& constants = {});
constexpr int64_t kMostCudaBlocks = 16384;  // of a grid: loops over it do the rest
// How many elements loops have together, and their symbols from the number `from` of one, the last loop fastest.
int64_t cuda_count(const std::vector<Loop>& loops);
std::string cuda_decode(Writer& writer, const std::vector<Loop>& loops, const std::string& from, Scope& scope,
                        const std::string& type = "const int64_t");
// The type that numbers below `count` have, and the head of a loop over these.
std::string cuda_index_type(int64_t count);
std::string cuda_loop(const std::string& name, int64_t count, const std::string& first, const std::string& step);
// The statement that computes and stores an element, in a scope that knows its loops.
std::string cuda_element(Writer& writer, const KernelBody& body, Scope& scope);

// One launch for each part that the loops are split into; they write different elements. With `overlaps` the output may
// lie where an input does, which then is read by the thread alone that writes it. `constants`: inputs, by number, that
// no kernel writes, so that they may be read before the one before has ended.
std::vector<CudaKernel> print_cuda_kernels(const KernelBody& body, bool overlaps, const std::set<int>& constants = {});

// The same as a step of a chain (sequence_steps.h), whose threads share nothing: its text divides elements by a
// variable `units`, but where threads take chunks. Precondition: loops are reshaped.
CudaKernel print_cuda_step(const KernelBody& body);
// Whether it has so many elements that each thread takes chunks of them.
bool takes_chunks_as_step(const KernelBody& body);
constexpr int64_t kThreadsOfBlock = 512, kBlocksOfChain = 16;  // that take a chain's steps (runtime/gopt_sequence.cuh)

}  // namespace gopt::codegen
