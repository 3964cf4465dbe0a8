#include "scattering.h"

#include <algorithm>

#include "../sizes.h"
#include "../writer.h"
#include "loops.h"

namespace gopt::codegen {
namespace {

// In the runtime's words; nothing where it would have to compute in another type than elements are stored in.
std::optional<std::string> scattering_of(const std::string& reduction, ElementType element) {
  if (reduction == "none") return "Last";
  if (element == ElementType::Float16 || element == ElementType::BFloat16 || element == ElementType::Bool)
    return std::nullopt;
  return reduction == "add" ? "Add" : reduction == "mul" ? "Mul" : reduction == "max" ? "Max" : "Min";
}

}  // namespace

std::optional<std::string> print_scattering(const Plan& plan, const Kernel& kernel) {
  if (kernel.nodes.size() != 1 || !kernel.nodes[0]->is(OpKind::ScatterAlong)) return std::nullopt;
  const Node& node = *kernel.nodes[0];
  const auto is_as_in_graph = [&](BufferId id, const Value& value) {
    const Buffer& buffer = plan.buffer(id);
    return buffer.layout.is_plain() && buffer.element == value.type().element;
  };
  std::string arguments, parameters;
  for (size_t i = 0; i < kernel.inputs.size(); i++) {
    if (!is_as_in_graph(kernel.input_buffers[i], kernel.inputs[i])) return std::nullopt;
    parameters += "const " + storage_name(kernel.inputs[i].type().element) + "* in" + std::to_string(i) + ", ";
  }
  if (!is_as_in_graph(kernel.output_buffers[0], kernel.outputs[0])) return std::nullopt;
  for (const Value& input : node.inputs) {
    const auto at = std::ranges::find(kernel.inputs, input);
    if (at == kernel.inputs.end()) return std::nullopt;  // a number in the text
    arguments += "in" + std::to_string(at - kernel.inputs.begin()) + ", ";
  }
  const ElementType element = node.outputs[0].element;
  const auto how = scattering_of(std::get<std::string>(node.attributes.at("reduction")), element);
  const Shape &x = *node.inputs[0].type().shape, &places = *node.inputs[1].type().shape,
              &updates = *node.inputs[2].type().shape;
  const auto axis = static_cast<size_t>(std::get<Index>(node.attributes.at("axis")).constant());
  Index outer(1), inner(1), places_before(1), places_behind(1);
  for (size_t k = 0; k < x.size(); k++) {
    if (k < axis) outer = outer * x[k], places_before = places_before * places[k];
    if (k > axis) inner = inner * x[k], places_behind = places_behind * places[k];
  }
  // One place for all of a row; the same rows in all blocks, or rows of each block's own.
  const bool by_rows = places_behind == Index(1) && (places_before == Index(1) || places_before == outer);
  if (!how || (!by_rows && !(places_before * places_behind == outer * inner))) return std::nullopt;
  std::string sizes;
  for (const Index& size : {outer, x[axis], updates[axis], inner}) sizes += size_text(size, plan.target.open) + ", ";
  const bool is_open = !plan.target.open.empty();
  const std::string call = "gopt_runtime::scatter<gopt_runtime::Scattering::" + *how + ">(" + arguments + "out, {" +
                           sizes + (by_rows ? "true" : "false") + ", " +
                           (places_before == Index(1) ? "0" : size_text(updates[axis], plan.target.open)) + "});\n";
  return indented("(" + parameters + storage_name(element) + "* out" +
                  (is_open ? ", [[maybe_unused]] const int64_t* n" : "") + ") {\n" +
                  declared_sizes(plan.target.open, call) + call + "}\n");
}

}  // namespace gopt::codegen
