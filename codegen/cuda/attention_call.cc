// Attention as the description of a launch: steps through memory, and the instance of the kernel's template.
#include "../attributes.h"
#include "../buffers.h"
#include "../sizes.h"
#include "gopt/attention.h"
#include "library_calls.h"

namespace gopt::codegen {
namespace {

// Code for CUDA is for extents that are numbers.
std::string text(const Index& size) { return size_text(size, {}); }

std::string matrices_text(const std::string& name, const StridedMatrices& m) {
  return "  a." + name + " = {" + list(of_three_axes(m.batch, 0), {}) + ", " + text(m.line) + "};\n";
}

std::string pointer_to(const Plan& plan, BufferId id, const Index& offset) {
  const std::string pointer = pointer_text(locate(plan, id));
  const int64_t bytes = offset.constant() * static_cast<int64_t>(size_bytes(plan.buffer(id).element));
  return bytes == 0 ? pointer : pointer + " + " + std::to_string(bytes);
}

bool is_chunked(const Plan& plan, const Kernel& kernel) {
  const Attention& a = *kernel.attention;
  const StridedMatrices* const operands[] = {&a.query, &a.key, &a.value};
  for (size_t k = 0; k < std::size(operands); k++) {
    std::vector<int64_t> steps{operands[k]->line.constant(), operands[k]->offset.constant(), a.depth, a.value_depth};
    for (const Index& step : operands[k]->batch) steps.push_back(step.constant());
    if (!has_chunks(plan, kernel.input_buffers[k], steps)) return false;
  }
  return true;
}

// The template's instance.
std::string maker_text(const Plan& plan, const Kernel& kernel, const AttentionTile& tile) {
  return "make_attention<" + operand_text(plan, kernel) + ", " + std::to_string(padded_depth(*kernel.attention)) +
         ", " + (is_chunked(plan, kernel) ? "true" : "false") + ", " + std::to_string(tile.rows) + ", " +
         std::to_string(tile.key_warps) + ", " +
         (kernel.attention->bias || kernel.attention->choice ? "true" : "false") + ">";
}

}  // namespace

CudaLibraryCall print_attention_call(const Plan& plan, const Kernel& kernel, size_t primitive, TileFunctions& tiles) {
  const Attention& a = *kernel.attention;
  const auto tile = parse_attention_tile(kernel.implementation);
  if (!tile) throw InternalError("no code for the implementation '" + kernel.implementation + "' of an attention");
  const auto number_text = [](const char* name, const Index& value) {
    return std::string("a.") + name + " = " + text(value);
  };
  const Shape batch = of_three_axes(a.batch, 1);
  std::string shape = "  AttentionProblem a;\n";
  for (size_t axis = 0; axis < batch.size(); axis++)
    shape += "  a.batch[" + std::to_string(axis) + "] = " + text(batch[axis]) + ";\n";
  shape += "  " + number_text("rows", a.rows) + ", " + number_text("keys", a.keys) + ", " +
           number_text("depth", a.depth) + ", " + number_text("value_depth", a.value_depth) + ";\n";
  shape += matrices_text("query", a.query) + matrices_text("key", a.key) + matrices_text("value", a.value) +
           matrices_text("result", a.result);
  if (tile->split > 1) shape += "  a.split = " + std::to_string(tile->split) + ";\n";
  if (a.nan_is_zero) shape += "  a.nan_is_zero = true;\n";
  if (a.scale != 1) shape += "  a.scale = " + number(a.scale) + ";\n";
  // What scores are treated with, in the order in which the kernel reads it.
  size_t next = 3;
  const auto treated_with = [&](const std::string& name, const StridedMatrices& m) {
    const BufferId id = kernel.input_buffers[next++];
    shape += matrices_text(name, m) + "  a." + name + "_step = " + text(m.element) + ";\n";
    if (plan.buffer(id).element != ElementType::Bool)
      shape += "  a." + name + "_element = " + element_name(plan.buffer(id).element) + ";\n";
    return pointer_to(plan, id, m.offset);
  };
  std::string mask = "nullptr", bias = "nullptr", choice;
  if (a.mask) mask = treated_with("mask", *a.mask);
  if (a.bias) bias = treated_with("bias", *a.bias);
  if (a.choice) {
    choice = ", {}, " + treated_with("choice", a.choice->at);
    shape += "  a.otherwise = " + number_or_infinity(a.choice->otherwise) +
             ", a.kept = " + (a.choice->kept ? "true" : "false") +
             ", a.chooses_first = " + (a.choice->is_first ? "true" : "false") + ";\n";
  }
  const BufferId out = kernel.output_buffers[0];
  shape += "  a.result_element = " + element_name(plan.buffer(out).element) + ";\n";
  CudaLibraryCall call;
  call.create = "{\n" + shape + "  library.add(a, " + tiles.name_for(maker_text(plan, kernel, *tile)) + "());\n}\n";
  call.run = "library.run(" + std::to_string(primitive) + ", {" +
             pointer_to(plan, kernel.input_buffers[0], a.query.offset) + ", " +
             pointer_to(plan, kernel.input_buffers[1], a.key.offset) + ", " + bias + ", " + mask + ", " +
             pointer_to(plan, out, a.result.offset) + ", " + pointer_to(plan, kernel.input_buffers[2], a.value.offset) +
             choice + "}, stream);";
  return call;
}

}  // namespace gopt::codegen
