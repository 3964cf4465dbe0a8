#include "row_functions.h"

#include <algorithm>

#include "../row_function_calls.h"
#include "gopt/row_function.h"

namespace gopt::codegen {

namespace {

// Into how many parts each row is divided, of which the largest are taken first: a block has a row or a part of it.
// What parts give is to be little, and much less than they have (as measured on an H200); a block of any device has
// room for what is taken.
int64_t parts_of(const RowExtents& e, int64_t count) {
  constexpr int64_t kBlocks = 128, kLong = 65536, kVeryFew = 4, kFew = 16, kMostTaken = 4096, kOfTaken = 16,
                    kCandidates = 1024, kOfAnyTaken = 32, kFewestOfMany = 8;
  const int64_t rows = e.outer.constant(), row = e.row.constant();
  if (rows * count == 0 || row < kLong || row > UINT32_MAX || count > kMostTaken) return 1;
  const int64_t of_part = std::max<int64_t>(count <= kVeryFew ? 4096 : 8192, kOfTaken * count);
  const int64_t parts = std::min({kBlocks / rows, row / of_part, std::max(kOfAnyTaken, kCandidates / count)});
  return parts > 1 && (count <= kFew || parts >= kFewestOfMany) ? parts : 1;
}

}  // namespace

PrintedLaunch print_row_function(const Plan& plan, const Kernel& kernel, size_t number, const std::string& scratch) {
  const RowFunctionCall call = row_function_call(plan, kernel);
  const NodePtr& node = kernel.nodes[0];
  const RowFunction& f = *node->opaque->row_function;
  const std::string name = "gopt_rows_" + std::to_string(number);
  std::string parameters = call.parameters, sizes = call.sizes, pointers = call.pointers;
  PrintedLaunch printed;
  if (f.kind == RowFunction::Kind::Top) {
    const RowExtents e = extents_of(f, shape_of(plan.buffer(kernel.input_buffers[0])));
    const int64_t count = taken_by(*node).constant(), parts = parts_of(e, count);
    constexpr int64_t kItem = 16;  // a value and its place, each of eight bytes at most
    if (parts > 1) printed.scratch_bytes = e.outer.constant() * parts * count * kItem;
    parameters += ", void* candidates";
    sizes += ", " + std::to_string(parts) + ", candidates";
    pointers += parts > 1 ? ", " + scratch : ", nullptr";
  }
  const std::string head = "void " + name + "(" + parameters + ", cudaStream_t stream)";
  printed.declaration = head + ";\n";
  printed.text = "// " + kernel.name + "\n" + head +
                 " {\n  using namespace gopt_runtime;\n  using namespace rows;\n  " + call.function + "(" + call.names +
                 ", " + sizes + ", stream);\n}\n\n";
  printed.call = name + "(" + pointers + ", stream);";
  return printed;
}

}  // namespace gopt::codegen
