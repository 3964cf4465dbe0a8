// Where a plan's buffers are at run time, as C++ expressions, and what lies in the weights file. The same for every
// target.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gopt/codegen.h"

namespace gopt::codegen {

struct Location {
  BufferPlace place;
  Index offset;        // bytes; of Input and Output within the tensor, of an arena that is laid out at run time in it
  int64_t number = 0;  // Input, Output; of such an arena the buffer
  friend bool operator==(const Location&, const Location&) = default;
};
Location locate(const Plan& plan, BufferId id);

// "weights + 128", "arena + 0", "inputs[1]", "outputs[0] + 64", and where extents are open "arena + at[3] + 4 * n0": a
// char pointer.
std::string pointer_text(const Location& location, const std::vector<OpenExtent>& open = {});

// Where a kernel of one node stores the node's output of that number; nothing where nobody reads it.
std::optional<BufferId> result_buffer(const Kernel& kernel, int output);

// Weight buffers by offset; one of those that share a place.
std::vector<BufferId> weight_buffers(const Plan& plan);
int64_t weights_file_size(const Plan& plan);

// The text of a file of runtime/ or TARGET/runtime/, by its name.
std::string_view runtime_text(std::string_view file);

}  // namespace gopt::codegen
