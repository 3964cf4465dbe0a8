// Programs that run emitted CUDA kernels on the processor (emulation/device.h), under its sanitizers.
#pragma once

#include <string>
#include <vector>

namespace gopt {

// Whether there are the CUDA toolkit's headers, which they need.
bool has_cuda_headers();

// Emitted text without what it includes and declares for all.
std::string without_includes(const std::string& text);

// "program" of that text in a folder, which is made, beside the runtime's headers and the emulation's in their places.
// A failure of the test where it does not compile.
void build_emulated(const std::string& program, const std::string& folder);

// Runs such a program: the named headers, kernels of these files of the runtime's with the shared memory that a launch
// asks for, and `program`, which says "all are right" at its end. A failure of the test where it does not; skipped
// without CUDA's headers.
void expect_all_right(const std::vector<std::string>& headers, const std::vector<std::string>& files,
                      const std::string& program);

}  // namespace gopt
