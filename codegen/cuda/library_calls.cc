#include "library_calls.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "../attributes.h"
#include "../buffers.h"
#include "gopt/channels.h"
#include "gopt/convolution_shape.h"
#include "gopt/runtime/gopt_quantized_chunk.h"
#include "gopt/tile.h"
#include "gopt/vector_product.h"

namespace gopt::codegen {
namespace {

// No default: an activation of the plan that is not printed does not compile.
std::string activation_text(const Activation& activation) {
  auto text = [](const char* kind, const std::string& parameters = "") {
    return "  d.activation = {ActivationKind::" + std::string(kind) + parameters + "};\n";
  };
  const std::string a = ", " + number(activation.a), b = ", " + number(activation.b);
  switch (activation.kind) {
    case ActivationKind::Relu: return text("Relu");
    case ActivationKind::LeakyRelu: return text("LeakyRelu", a);
    case ActivationKind::Clip: return text("Clip", a + b);
    case ActivationKind::Sigmoid: return text("Sigmoid");
    case ActivationKind::Tanh: return text("Tanh");
    case ActivationKind::Elu: return text("Elu", a);
    case ActivationKind::GeluErf: return text("GeluErf");
    case ActivationKind::GeluTanh: return text("GeluTanh");
    case ActivationKind::Swish: return text("Swish", a);
    case ActivationKind::HardSwish: return text("HardSwish");
  }
  throw InternalError("an activation without a kind");
}

}  // namespace

std::string epilogue_text(const Kernel& kernel) {
  for (const Epilogue& e : kernel.epilogues)
    if (e.kind == Epilogue::Kind::Activation) return activation_text(e.activation);
  return "";
}

namespace {

// What the runtime is told of the planner's choice (planner/implementations.cc).
std::string family_text(const std::string& implementation) {
  if (implementation == "fastest") return "";
  constexpr std::string_view kDnn = "cudnn:";
  if (implementation.starts_with(kDnn))
    return "  d.family = Family::Dnn, d.algorithm = " + implementation.substr(kDnn.size()) + ";\n";
  if (implementation == "unfolded") return "  d.family = Family::Unfolded;\n";
  throw InternalError("no code for the implementation '" + implementation + "' of a convolution");
}

}  // namespace

std::string element_name(ElementType element) {
  return std::string("Element::") + (element == ElementType::Float16    ? "Float16"
                                     : element == ElementType::BFloat16 ? "BFloat16"
                                                                        : "Float32");
}

namespace {

// What is done to a convolution's source.
std::string prologue_text(const Plan& plan, const Kernel& kernel) {
  if (!kernel.prologue) return "";
  const Prologue& p = *kernel.prologue;
  const std::span<const int64_t> made = plan.buffer(kernel.output_buffers[0]).dims;
  if (p.gates >= 0) return "  d.prologue.positions = " + std::to_string(element_count(made.subspan(2))) + ";\n";
  std::string text = "  d.prologue = {true, " + number(p.epsilon);
  if (p.activation) {
    const bool is_clip = p.activation->kind == ActivationKind::Clip;
    if (!is_clip && p.activation->kind != ActivationKind::Relu) throw InternalError("an activation that tiles lack");
    text += ", " + number(is_clip ? p.activation->a : 0) + ", " + number(is_clip ? p.activation->b : INFINITY);
  }
  return text + "};\n";
}

// What the tensors are, where they are no floats, and how floats are multiplied.
std::string types_text(const Plan& plan, const Kernel& kernel) {
  const ElementType operands = plan.buffer(kernel.input_buffers[0]).element,
                    result = plan.buffer(kernel.output_buffers[0]).element;
  if (is_tf32(plan, kernel)) return "  d.tf32 = true;\n";
  if (operands == ElementType::Float32) return "";
  if (kernel.kind != KernelKind::MatrixProduct) return "  d.element = " + element_name(operands) + ";\n";
  return "  d.operands = " + element_name(operands) + ", d.result = " + element_name(result) + ";\n";
}

std::string pointer(const Plan& plan, BufferId id) { return pointer_text(locate(plan, id)); }

std::string line_text(const Plan& plan, const std::string& of, BufferId id) {
  const int64_t line = plan.buffer(id).layout.line();
  return line > 0 ? "  d." + of + "_line = " + std::to_string(line) + ";\n" : "";
}

// Whether both operands begin where a chunk does. Else neither the copy engine nor lines of vectors can read them, and
// tiles do.
bool begin_chunks(const Plan& plan, const Kernel& kernel) {
  return has_chunks(plan, kernel.input_buffers[0], {}) && has_chunks(plan, kernel.input_buffers[1], {});
}

// Of a pool likewise.
std::string convolution_text(const Plan& plan, const Kernel& kernel) {
  const bool is_pool = kernel.kind == KernelKind::Generated,
             is_by_warpgroups = parse_warpgroup_tile(kernel.implementation) && begin_chunks(plan, kernel);
  const ConvolutionShape shape = is_by_warpgroups ? lines_of_windows(plan, kernel) : window_shape(plan, kernel);
  std::string text = "  Convolution d;\n  d.src = " + list(shape.src) + ";\n  d.weights = " + list(shape.weights) +
                     ";\n  d.dst = " + list(shape.dst) + ";\n  d.groups = " + std::to_string(shape.groups) + ";\n";
  for (size_t a = 0; a < shape.axes(); a++) {
    const std::string at = "[" + std::to_string(a) + "] = ";
    text += "  d.strides" + at + std::to_string(shape.strides[a]) + ", d.dilations" + at +
            std::to_string(shape.dilations[a]) + ", d.pads" + at + std::to_string(shape.pads[a]) + ";\n";
  }
  if (shape.transposed) text += "  d.transposed = true;\n";
  // Of a pool the result may be single positions, which lie either way.
  const BufferId image = is_pool ? kernel.input_buffers[0] : kernel.output_buffers[0];
  if (plan.buffer(image).layout.is_channels_last()) text += "  d.channels_last = true;\n";
  text += line_text(plan, "src", kernel.input_buffers[0]) + line_text(plan, "dst", kernel.output_buffers[0]);
  for (const Epilogue& e : kernel.epilogues)
    if (e.kind == Epilogue::Kind::AddTensor) text += line_text(plan, "addend", e.operand);
  text += prologue_text(plan, kernel);
  return is_launched_ahead(kernel) ? text : text + family_text(kernel.implementation);
}

// A batch as axes of matrices, each operand's steps 0 where it is broadcast; axes that both operands walk as one are
// merged.
struct BatchAxis {
  int64_t count, left_step, right_step;
};

std::vector<BatchAxis> batch_axes(const std::vector<int64_t>& left, const std::vector<int64_t>& right,
                                  const std::vector<int64_t>& out) {
  std::vector<BatchAxis> axes;
  int64_t left_step = left[left.size() - 2] * left.back(), right_step = right[right.size() - 2] * right.back();
  for (size_t back = 3; back <= out.size(); back++) {
    auto extent = [&](const std::vector<int64_t>& dims) { return back <= dims.size() ? dims[dims.size() - back] : 1; };
    const int64_t l = extent(left), r = extent(right), count = extent(out);
    const BatchAxis axis{count, l == 1 ? 0 : left_step, r == 1 ? 0 : right_step};
    left_step *= l;
    right_step *= r;
    if (count == 1) continue;
    const bool merges = !axes.empty() && axis.left_step == axes.back().left_step * axes.back().count &&
                        axis.right_step == axes.back().right_step * axes.back().count;
    if (merges)
      axes.back().count *= count;
    else
      axes.push_back(axis);
  }
  std::reverse(axes.begin(), axes.end());
  return axes;
}

std::string product_text(const Plan& plan, const Kernel& kernel) {
  const ProductExtents e = product_extents(plan, kernel);
  const std::vector<int64_t>&left = plan.buffer(kernel.input_buffers[0]).dims,
        &right = plan.buffer(kernel.input_buffers[1]).dims, &out = plan.buffer(kernel.output_buffers[0]).dims;
  std::string text = "  MatrixProduct d;\n" + extents_text(e);
  if (e.left_transposed) text += "  d.left_transposed = true;\n";
  if (kernel.quantized || is_by_columns(plan, kernel)) text += "  d.right_transposed = true;\n";
  text += scale_text(e);
  if (e.is_flat) return text;
  std::string axes;
  for (const BatchAxis& a : batch_axes(left, right, out))
    axes += (axes.empty() ? "" : ", ") + list({a.count, a.left_step, a.right_step});
  return text + "  d.batch = {" + axes + "};\n";
}

}  // namespace

ProductExtents product_extents(const Plan& plan, const Kernel& kernel) {
  const Node& node = *kernel.nodes[0];
  const std::vector<int64_t>&left = plan.buffer(kernel.input_buffers[0]).dims,
        &right = plan.buffer(kernel.input_buffers[1]).dims, &out = plan.buffer(kernel.output_buffers[0]).dims;
  const bool gemm = node.is(OpKind::Gemm);
  ProductExtents e;
  e.left_transposed = gemm && int_or(node, "transA", 0) != 0;
  e.columns = out.back(), e.depth = left[left.size() - (e.left_transposed ? 2 : 1)];
  e.is_flat = element_count(std::span(right).first(right.size() - 2)) == 1;
  e.rows = e.is_flat ? element_count(left) / e.depth : left[left.size() - 2];
  e.scale = gemm ? real_or(node, "alpha", 1) : 1;
  return e;
}

std::string extents_text(const ProductExtents& e) {
  return "  d.rows = " + std::to_string(e.rows) + ", d.columns = " + std::to_string(e.columns) +
         ", d.depth = " + std::to_string(e.depth) + ";\n";
}

std::string scale_text(const ProductExtents& e) { return e.scale == 1 ? "" : "  d.scale = " + number(e.scale) + ";\n"; }

// ---- tiles (runtime/gopt_tiles.cuh) ----

bool has_chunks(const Plan& plan, BufferId id, const std::vector<int64_t>& steps) {
  constexpr int64_t kChunk = 16;
  const int64_t size = size_bytes(plan.buffer(id).element);
  const auto offset = locate(plan, id).offset.as_constant();
  return offset && *offset % kChunk == 0 &&
         std::all_of(steps.begin(), steps.end(), [&](int64_t step) { return step * size % kChunk == 0; });
}

std::string operand_text(const Plan& plan, const Kernel& kernel) {
  switch (plan.buffer(kernel.input_buffers[0]).element) {
    case ElementType::Float16: return "Half";
    case ElementType::BFloat16: return "Bfloat16";
    default: return is_tf32(plan, kernel) ? "Tf32" : "Fp32";
  }
}

namespace {

int64_t joined_of(const Plan& plan, const Kernel& kernel, const Tile& tile) {
  if (kernel.kind != KernelKind::Convolution || is_transposed(kernel)) return 1;
  const int64_t groups = int_or(*kernel.nodes[0], "group", 1);
  return joined_groups(tile, groups, plan.buffer(kernel.output_buffers[0]).dims[1] / groups);
}

int64_t joined_by_slices(const Plan& plan, const Kernel& kernel) {
  if (kernel.kind != KernelKind::Convolution) return 1;
  const Buffer& weights = plan.buffer(kernel.input_buffers[1]);
  return groups_of_slice(int_or(*kernel.nodes[0], "group", 1), weights.dims[1],
                         static_cast<int64_t>(size_bytes(weights.element)));
}

// What of a convolution, or of a product, is copied at once.
const char* copies_text(const Plan& plan, const Kernel& kernel, const Tile& tile) {
  const Buffer &left = plan.buffer(kernel.input_buffers[0]), &right = plan.buffer(kernel.input_buffers[1]);
  const bool is_convolution = kernel.kind == KernelKind::Convolution;
  const ConvolutionShape shape = is_convolution ? convolution_shape(plan, kernel) : ConvolutionShape{};
  const int64_t groups = shape.groups;
  const int64_t line_of_left = is_convolution ? shape.src[1] : left.dims.back();
  const int64_t channels = is_convolution ? line_of_left / groups * joined_of(plan, kernel, tile) : line_of_left;
  const int64_t line =
      is_convolution ? element_count(std::span(shape.weights).subspan(1)) : right.layout.extents(right.dims).back();
  // Those of a group are copied in smaller pieces, down to four bytes.
  constexpr int64_t kLeastPiece = 4;
  const auto size = static_cast<int64_t>(size_bytes(right.element));
  const bool has_pieces =
      is_transposed(kernel) ? has_chunks(plan, kernel.input_buffers[1], {shape.weights[1]})
      : groups > 1 ? shape.weights[1] * size % kLeastPiece == 0 && has_chunks(plan, kernel.input_buffers[1], {})
                   : has_chunks(plan, kernel.input_buffers[1], {line});
  if (has_chunks(plan, kernel.input_buffers[0], {channels, line_of_left, left.layout.line()}))
    return has_pieces ? "Copies::Chunks" : "Copies::ChunksOfSource";
  return left.layout.is_blocked() && is_half(left.element) ? "Copies::Positions" : "Copies::Elements";
}

// How the right operand lies.
std::string lie_text(const Plan& plan, const Kernel& kernel) {
  if (is_transposed(kernel)) return "Taps";
  if (kernel.kind == KernelKind::Convolution) return int_or(*kernel.nodes[0], "group", 1) > 1 ? "Groups" : "Columns";
  return is_by_columns(plan, kernel) ? "Columns" : "Lines";
}

// Likewise, what is done to the source before.
std::string before_text(const Kernel& kernel) {
  if (!kernel.prologue) return "";
  return kernel.prologue->gates >= 0 ? ", Before::Gates" : ", Before::Channels";
}

// The template's arguments.
std::string tile_arguments(const Plan& plan, const Kernel& kernel, const Tile& tile) {
  const bool is_convolution = kernel.kind == KernelKind::Convolution;
  const std::string shape = "Tile" + std::to_string(tile.rows) + "x" + std::to_string(tile.columns);
  const bool has_planes = is_convolution && convolution_shape(plan, kernel).axes() == 3;
  return "<" + operand_text(plan, kernel) + ", Right::" + lie_text(plan, kernel) + ", " +
         copies_text(plan, kernel, tile) + ", " + (has_planes ? "Volume<" + shape + ">" : shape) + before_text(kernel) +
         ">";
}

// Weights and bias, which may be read before the kernel before has ended.
bool has_constant_weights(const Plan& plan, const Kernel& kernel) {
  const auto is_weight = [&](BufferId id) { return locate(plan, id).place == BufferPlace::Weight; };
  return is_weight(kernel.input_buffers[1]) && std::ranges::all_of(kernel.epilogues, [&](const Epilogue& e) {
           return e.kind != Epilogue::Kind::Bias || is_weight(e.operand);
         });
}

std::string joined_text(int64_t joined) { return joined > 1 ? ", " + std::to_string(joined) : ""; }

// ", Tiling{&FUNCTION(), blocks that share a depth, ...}" of a kernel that is made by `maker`.
std::string tiling_text(const Plan& plan, const Kernel& kernel, const Tile& tile, const std::string& maker,
                        TileFunctions& tiles) {
  const std::string text = ", Tiling{&" + tiles.name_for(maker + tile_arguments(plan, kernel, tile)) + "(), " +
                           std::to_string(tile.split) + ", " + (has_constant_weights(plan, kernel) ? "true" : "false");
  return text + joined_text(joined_of(plan, kernel, tile)) + "}";
}

// ", WarpgroupTiling{...}" likewise.
std::string warpgroup_tiling_text(const Plan& plan, const Kernel& kernel, const Tile& tile, TileFunctions& tiles) {
  if (!begin_chunks(plan, kernel)) return tiling_text(plan, kernel, tile, "make", tiles);
  const std::string shape = std::to_string(tile.rows) + "x" + std::to_string(tile.columns);
  const std::string maker = "make_warpgroups<" + operand_text(plan, kernel) + ", Right::" + lie_text(plan, kernel) +
                            ", Warpgroups" + shape + before_text(kernel) + ">";
  return ", WarpgroupTiling{&" + tiles.name_for(maker) + "(), " + std::to_string(tile.split) + ", " +
         (has_constant_weights(plan, kernel) ? "true" : "false") + joined_text(joined_by_slices(plan, kernel)) + "}";
}

// ", PatchTiling{...}" likewise.
std::string patch_tiling_text(const Plan& plan, const Kernel& kernel, const Tile& tile, TileFunctions& tiles) {
  const std::string maker = "make_patches<" + operand_text(plan, kernel) + ", Patch" + std::to_string(tile.rows) + "x" +
                            std::to_string(tile.columns) + ">";
  return ", PatchTiling{&" + tiles.name_for(maker) + "(), " + (has_constant_weights(plan, kernel) ? "true" : "false") +
         "}";
}

// ", Tiling{...}" of as many rows as there are lines. Where operands begin between two chunks, the tensor cores have
// it.
std::string vector_tiling_text(const Plan& plan, const Kernel& kernel, int warps, TileFunctions& tiles) {
  if (!begin_chunks(plan, kernel)) return tiling_text(plan, kernel, {16, 64}, "make", tiles);
  const int64_t lines = lines_of_product(plan, kernel), at_once = lines > 2 ? 4 : lines;
  const std::string maker = "make_vectors<" + operand_text(plan, kernel) + ", " + std::to_string(at_once) + ", " +
                            std::to_string(warps) + ">";
  return ", Tiling{&" + tiles.name_for(maker) + "(), 1, " + (has_constant_weights(plan, kernel) ? "true" : "false") +
         "}";
}

// Steps from one scale or zero point to the next; of a column they lie one after another.
std::string of_blocks_text(const Plan& plan, const Kernel& kernel, int input) {
  if (input < 0) return "{}";
  std::vector<int64_t> dims = plan.buffer(kernel.input_buffers[static_cast<size_t>(input)]).dims;
  dims.insert(dims.begin(), 2 - std::min<size_t>(2, dims.size()), 1);
  if (kernel.quantized->is_transposed) std::swap(dims[0], dims[1]);
  const int64_t blocks = dims[0], columns = dims[1];
  return "{" + std::to_string(columns > 1 ? blocks : 0) + ", " + std::to_string(blocks > 1 ? 1 : 0) + "}";
}

// ", QuantizedTiling{...}" likewise.
std::string quantized_tiling_text(const Plan& plan, const Kernel& kernel, int warps, TileFunctions& tiles) {
  using gopt_runtime::kLinesOfTile, gopt_runtime::kOneBlock, gopt_runtime::kPartsOfFloat;
  const QuantizedOperands& q = *kernel.quantized;
  const auto element_of = [&](int input) {
    return plan.buffer(kernel.input_buffers[static_cast<size_t>(input)]).element;
  };
  const auto stored = [&](int input) {
    const ElementType type = element_of(input);
    return type == ElementType::Float16 ? "gopt_half" : type == ElementType::BFloat16 ? "gopt_bfloat16" : "float";
  };
  const bool is_signed = element_of(1) == ElementType::Int8,
             is_one_block = q.block == product_extents(plan, kernel).depth;
  const int words = is_one_block
                        ? kOneBlock
                        : std::countr_zero(static_cast<uint64_t>(q.block / gopt_runtime::numbers_of_word(q.bits)));
  const int64_t lines = lines_of_product(plan, kernel) * (is_half(element_of(0)) ? 1 : kPartsOfFloat);
  const std::string maker =
      "make_quantized<" + std::string(stored(0)) + ", " + stored(q.scale) + ", " + std::to_string(q.bits) + ", " +
      (q.zero >= 0 ? "true" : "false") + ", " + (has_chunks(plan, kernel.input_buffers[0], {}) ? "true" : "false") +
      ", " + std::to_string((lines + kLinesOfTile - 1) / kLinesOfTile) + ", " + std::to_string(warps) + ">";
  const int64_t sign = is_signed ? int64_t{1} << (q.bits - 1) : 0;
  return ", QuantizedTiling{&" + tiles.name_for(maker) + "(), {" + std::to_string(words) + ", " +
         of_blocks_text(plan, kernel, q.scale) + ", " + of_blocks_text(plan, kernel, q.zero) + ", " +
         std::to_string(q.zero_of_all + sign) + ", " + std::to_string(sign) + "}}";
}

// A description of what is computed, given to `add`.
std::string create_text(const Plan& plan, const Kernel& kernel, const std::string& add) {
  const bool is_product = kernel.kind == KernelKind::MatrixProduct;
  return "{\n" + (is_product ? product_text(plan, kernel) : convolution_text(plan, kernel)) + epilogue_text(kernel) +
         types_text(plan, kernel) + "  " + add + ";\n}\n";
}

// Behind those below, what a prologue reads.
std::string prologue_operands_text(const Plan& plan, const Kernel& kernel) {
  if (!kernel.prologue) return "";
  const Prologue& p = *kernel.prologue;
  std::string text;
  for (const int operand : {p.scale, p.shift, p.mean, p.variance, p.gates})
    text += (text.empty() ? "" : ", ") +
            (operand < 0 ? "nullptr" : pointer(plan, kernel.input_buffers[static_cast<size_t>(operand)]));
  return ", nullptr, {" + text + "}";
}

// Behind those of products, which have no prologue.
std::string quantized_operands_text(const Plan& plan, const Kernel& kernel) {
  if (!kernel.quantized) return "";
  const auto at = [&](int input) {
    return input < 0 ? "nullptr" : pointer(plan, kernel.input_buffers[static_cast<size_t>(input)]);
  };
  return ", nullptr, {}, nullptr, " + at(kernel.quantized->scale) + ", " + at(kernel.quantized->zero);
}

// Source, weights, bias, addend and result.
std::string operands_text(const Plan& plan, const Kernel& kernel) {
  std::string bias = "nullptr", addend = "nullptr";
  for (const Epilogue& e : kernel.epilogues) {
    if (e.kind == Epilogue::Kind::Bias) bias = pointer(plan, e.operand);
    if (e.kind == Epilogue::Kind::AddTensor) addend = pointer(plan, e.operand);
  }
  const bool has_weights = kernel.kind != KernelKind::Generated;
  return "{" + pointer(plan, kernel.input_buffers[0]) + ", " +
         (has_weights ? pointer(plan, kernel.input_buffers[1]) : "nullptr") + ", " + bias + ", " + addend + ", " +
         pointer(plan, kernel.output_buffers[0]) + prologue_operands_text(plan, kernel) +
         quantized_operands_text(plan, kernel) + "}";
}

std::string window_of(const Kernel& kernel) {
  if (kernel.kind != KernelKind::Generated) return "Window::Depthwise";
  return kernel.nodes[0]->is(OpKind::AveragePool) ? "Window::Mean" : "Window::Largest";
}
std::string counts_text(const Kernel& kernel) {
  const bool is_pool = kernel.kind == KernelKind::Generated;
  return is_pool && int_or(*kernel.nodes[0], "count_include_pad", 0) != 0 ? "true" : "false";
}
// Of a pool beside tiles.
std::string window_text(const Kernel& pool) { return ", " + window_of(pool) + ", " + counts_text(pool); }

// The instance of windows over channels (runtime/gopt_channels.cuh): what of a window is known when it is compiled.
std::string channel_maker_text(const Plan& plan, const Kernel& kernel) {
  const std::string operand = operand_text(plan, kernel);
  if (is_mean_of_images(kernel)) return "make_whole_means<" + operand + ">";
  const ConvolutionShape shape = window_shape(plan, kernel);
  const std::string step = std::to_string(shape.strides[1]);
  if (const ChannelTiles* tiles = channel_tiles_of(kernel)) {
    const auto& [lines, columns, along, bytes] = tiles->rectangle;
    std::string text = "make_channel_tiles<" + operand;
    const WindowOfPlanes window = window_of_planes(shape);
    for (const int64_t number : {window.planes, window.height, window.width, window.step, int64_t{lines},
                                 int64_t{columns}, int64_t{along}, int64_t{bytes}})
      text += ", " + std::to_string(number);
    return text + ">";
  }
  const std::string side = std::to_string(has_known_window(shape) ? shape.weights[2] : 0);
  const bool has_several = kernel.implementation == kByLinesOfChannels;
  return "make_channels<" + window_of(kernel) + ", " + operand + ", " + side +
         (has_several ? ", " + std::to_string(kPositionsOfLine) + ", " + step : "") + ">";
}
std::string channel_tiling_text(const Plan& plan, const Kernel& kernel, TileFunctions& tiles) {
  const bool is_pool = kernel.kind == KernelKind::Generated;
  const bool is_constant = !is_pool && has_constant_weights(plan, kernel);
  return ", ChannelTiling{&" + tiles.name_for(channel_maker_text(plan, kernel)) + "(), " +
         (is_constant ? "true" : "false") + ", " + counts_text(kernel) + "}";
}

// Members that are instances of one kernel, which depends on where what they read begins, go into one launch.
CudaLibraryCall print_group_call(const Plan& plan, const Kernel& group, size_t primitive, TileFunctions& tiles) {
  const Tile tile = parse_tile(group.implementation).value();
  std::map<std::string, std::vector<const Kernel*>> alike;
  for (const Kernel& member : group.members)
    if (!is_by_channels(member)) alike[tile_arguments(plan, member, tile)].push_back(&member);
  for (const Kernel& member : group.members)
    if (is_by_channels(member)) alike.begin()->second.push_back(&member);
  CudaLibraryCall call{.primitives = alike.size()};
  for (const auto& [_, members] : alike) {
    std::string operands;
    call.create += "{\n  TileGroup group;\n";
    for (const Kernel* member : members) {
      call.create += create_text(plan, *member,
                                 is_by_channels(*member)
                                     ? "group.add_pool(d" + window_text(*member) + ")"
                                     : "group.add(d" + tiling_text(plan, *member, tile, "make_group", tiles) + ")");
      operands += (operands.empty() ? "" : ", ") + operands_text(plan, *member);
    }
    call.create += "  library.add(group);\n}\n";
    call.run += (call.run.empty() ? "" : "\n") + std::string("library.run_group(") + std::to_string(primitive++) +
                ", {" + operands + "}, stream);";
  }
  return call;
}

}  // namespace

bool has_library_call(const Kernel& kernel) {
  return kernel.kind == KernelKind::MatrixProduct || kernel.kind == KernelKind::Attention ||
         kernel.kind == KernelKind::Group || is_by_channels(kernel) ||
         (kernel.kind == KernelKind::Convolution && kernel.implementation != kGenerated);
}

CudaLibraryCall print_cuda_library_call(const Plan& plan, const Kernel& kernel, size_t primitive,
                                        TileFunctions& tiles) {
  if (kernel.kind == KernelKind::Attention) return print_attention_call(plan, kernel, primitive, tiles);
  if (kernel.kind == KernelKind::Group) return print_group_call(plan, kernel, primitive, tiles);
  std::string tiling;
  if (is_by_channels(kernel)) tiling = channel_tiling_text(plan, kernel, tiles);
  if (const auto tile = parse_tile(kernel.implementation)) tiling = tiling_text(plan, kernel, *tile, "make", tiles);
  if (const auto tile = parse_warpgroup_tile(kernel.implementation))
    tiling = warpgroup_tiling_text(plan, kernel, *tile, tiles);
  if (const auto tile = parse_patch_tile(kernel.implementation)) tiling = patch_tiling_text(plan, kernel, *tile, tiles);
  if (const auto warps = parse_vector_product(kernel.implementation))
    tiling = vector_tiling_text(plan, kernel, *warps, tiles);
  if (const auto warps = parse_quantized_product(kernel.implementation))
    tiling = quantized_tiling_text(plan, kernel, *warps, tiles);
  if (kernel.prologue && tiling.empty()) throw InternalError("no code for the prologue of " + kernel.name);
  return {create_text(plan, kernel, "library.add(d" + tiling + ")"),
          "library.run(" + std::to_string(primitive) + ", " + operands_text(plan, kernel) + ", stream);"};
}

}  // namespace gopt::codegen
