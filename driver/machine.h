// Which machine kernel times are of: what they depend on beside the kernel, in a form that a person can read and that
// the cache's keys are made of.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gopt/result.h"

namespace gopt::driver {

// As the system names it; "unknown" where it does not.
std::string processor_name();

// Whether it has instructions for products of bf16 (AVX512_BF16, which processors with AMX have, too).
bool has_bf16_products();

// "cpu: PROCESSOR; oneDNN 3.1.0; code HASH".
std::string cpu_machine();

// "cuda: GPU; CUDA 13.0; cuDNN 9.13.0; cuBLASLt 13.0.2; code HASH", of the first device; nothing where there is none,
// or no toolkit to build for it. The driver is left out: the toolkit makes the device's own machine code.
std::optional<std::string> cuda_machine();

// Where the first device is on the machine's bus, "0000:3b:00.0": a machine's devices have different ones, whichever of
// them a process may see. Nothing where there is none.
std::optional<std::string> cuda_bus();

// Whose times a plan for CUDA is made by.
struct ChosenMachine {
  std::string machine;   // empty: of none, so that costs are estimates
  bool is_here = false;  // what has no time can be timed
  std::string note;      // what the user should know of the choice
};
// Of `here`, else of the machines that a cache has times of: of the one GPU among them, or of the one whose name holds
// `gpu`, whatever its case; of several entries of one GPU that of this gopt's code, else the last. Errors: more than
// one GPU, or none of that name.
Result<ChosenMachine> choose_gpu(const std::optional<std::string>& here, const std::vector<std::string>& machines,
                                 const std::string& gpu);

}  // namespace gopt::driver
