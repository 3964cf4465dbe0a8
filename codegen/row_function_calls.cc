#include "row_function_calls.h"

#include <algorithm>

#include "buffers.h"
#include "gopt/row_function.h"
#include "sizes.h"
#include "writer.h"

namespace gopt::codegen {
namespace {

std::string function_of(const RowFunction& f) {
  const auto text = [](bool is) { return std::string(is ? "true" : "false"); };
  if (f.kind == RowFunction::Kind::Top) return "take_top<" + text(f.is_largest) + ">";
  return "run_along_rows<Running::" + std::string(to_string(f.kind)) + ", " + text(f.is_reversed) + ", " +
         text(f.is_exclusive) + ">";
}

}  // namespace

bool has_row_functions(const Plan& plan) {
  return std::ranges::any_of(plan.kernels, [](const Kernel& k) { return k.kind == KernelKind::RowFunction; });
}

RowFunctionCall row_function_call(const Plan& plan, const Kernel& kernel) {
  const NodePtr& node = kernel.nodes[0];
  const RowFunction& f = *node->opaque->row_function;
  const BufferId input = kernel.input_buffers[0];
  const auto text_of = [&](BufferId id) { return pointer_text(locate(plan, id), plan.target.open); };
  const std::string element = storage_name(plan.buffer(input).element);
  RowFunctionCall call;
  call.function = function_of(f);
  call.parameters = "const " + element + "* x";
  call.names = "x";
  call.pointers = "(const " + element + "*)(" + text_of(input) + ")";
  for (size_t o = 0; o < node->outputs.size(); o++) {
    const auto buffer = result_buffer(kernel, static_cast<int>(o));
    const std::string type = storage_name(node->outputs[o].element) + "*", name = "y" + std::to_string(o);
    call.parameters += ", " + type + " " + name;
    call.names += ", " + name;
    call.pointers += ", (" + type + ")" + (buffer ? "(" + text_of(*buffer) + ")" : "nullptr");
  }
  const auto size = [&](const Index& extent) { return size_text(extent, plan.target.open); };
  const RowExtents e = extents_of(f, shape_of(plan.buffer(input)));
  call.sizes = "{" + size(e.outer) + ", " + size(e.row) + ", " + size(e.inner) + "}" +
               (f.kind == RowFunction::Kind::Top ? ", " + size(taken_by(*node)) : "");
  return call;
}

}  // namespace gopt::codegen
