// Convolutions and matrix products as descriptions for the runtime's Library.
#include <algorithm>
#include <cmath>
#include <optional>

#include "../attributes.h"
#include "../buffers.h"
#include "../sizes.h"
#include "emit_cpu.h"
#include "gopt/attention.h"
#include "gopt/convolution_shape.h"

namespace gopt::codegen {
namespace {

std::string order(const Layout& layout) {
  GOPT_CHECK(!layout.is_transposed(), "activations and weights of library kernels are not transposed");
  return layout.is_blocked()         ? "Order::Blocked" + std::to_string(layout.lanes())
         : layout.is_channels_last() ? "Order::ChannelsLast"
                                     : "Order::Plain";
}

// No default: an activation of the plan that is not printed does not compile.
std::string post_text(const Activation& activation) {
  auto post = [](const char* kind, const std::string& parameters = "") {
    return "{PostKind::" + std::string(kind) + parameters + "}";
  };
  const std::string a = ", " + number(activation.a), b = ", " + number(activation.b);
  switch (activation.kind) {
    case ActivationKind::Relu: return post("Relu");
    case ActivationKind::LeakyRelu: return post("Relu", a);
    case ActivationKind::Clip: return post("Clip", a + b);
    case ActivationKind::Sigmoid: return post("Logistic");
    case ActivationKind::Tanh: return post("Tanh");
    case ActivationKind::Elu: return post("Elu", a);
    case ActivationKind::GeluErf: return post("GeluErf");
    case ActivationKind::GeluTanh: return post("GeluTanh");
    case ActivationKind::Swish: return post("Swish", a);
    case ActivationKind::HardSwish: return post("HardSwish", ", 1.0f / 6, 0.5f");
  }
  throw InternalError("an activation without a kind");
}

constexpr const char *kInFloats = "  d.arithmetic = Arithmetic::Floats;\n",
                     *kInParts = "  d.arithmetic = Arithmetic::Split;\n";

// Terms that floats are split into.
std::string on_tiles(int terms) { return "  d.tile_terms = " + std::to_string(terms) + ";\n"; }
std::optional<std::string> tiles_implementation(const std::string& name) {
  if (name == "tiles-x6") return on_tiles(3);
  if (name == "tiles-x3") return on_tiles(2);
  if (name == "tiles-bf16") return on_tiles(1);
  return std::nullopt;
}

// What the runtime is told of the planner's choice (planner/implementations.cc).
std::string convolution_implementation(const std::string& name) {
  if (name == "direct") return "";
  if (name == "winograd") return "  d.method = Method::Winograd;\n";
  if (name == "channels-last") return "  d.method = Method::ChannelsLast;\n";
  if (name == "planar") return "  d.method = Method::Planar;\n";
  if (name == "unfolded") return "  d.method = Method::Unfolded;\n";
  if (name == "panels") return "  d.method = Method::Panels;\n";
  if (name == "blocks") return "  d.method = Method::Blocks;\n";
  if (name == "channel-lanes") return "  d.method = Method::ChannelLanes;\n";
  if (name == "floats") return kInFloats;
  if (name == "bf16x3") return kInParts;
  if (const auto tiles = tiles_implementation(name)) return *tiles;
  throw InternalError("no code for the implementation '" + name + "' of a convolution");
}

std::string product_implementation(const std::string& name) {
  if (name == "direct") return "";
  if (name == "panels") return "  d.panels = true;\n";
  if (name == "quantized") return "";  // what there is to say of it its operands say
  if (name == "few-rows") return "  d.few_rows = true;\n";
  if (name == "floats") return kInFloats;
  if (name == "bf16x3") return kInParts;
  if (const auto tiles = tiles_implementation(name)) return *tiles;
  throw InternalError("no code for the implementation '" + name + "' of a matrix product");
}

class CallPrinter {
 public:
  CallPrinter(const Plan& plan, const Kernel& kernel, size_t primitive)
      : plan_(plan), kernel_(kernel), id_(std::to_string(primitive)), node_(*kernel.nodes[0]) {}

  Result<LibraryCall> print() {
    if (kernel_.kind == KernelKind::Pooling) return pooling();
    if (kernel_.kind == KernelKind::Attention) return attention();
    if (kernel_.kind == KernelKind::Recurrence) return print_recurrence_call(plan_, kernel_, id_);
    if (kernel_.integers) return integer_call();
    const bool convolution = kernel_.kind == KernelKind::Convolution;
    if (!convolution) scale();
    for (const Epilogue& e : kernel_.epilogues) add_epilogue(e);
    LibraryCall call;
    call.create = convolution ? convolution_text() : product_text();
    const std::string bias = bias_.empty() ? "nullptr" : bias_;
    call.create += "  library.add(d, " + fixed(kernel_.input_buffers[0]) + ", " + fixed(kernel_.input_buffers[1]) +
                   ", " + bias + ", " + fixed(kernel_.output_buffers[0]) + ");\n}\n";
    call.run = bind_text() + "library.run(" + id_ + ");";
    return call;
  }

 private:
  const Buffer& buffer(BufferId id) const { return plan_.buffer(id); }
  const Shape& shape(BufferId id) const { return shape_of(buffer(id)); }
  std::string list(const Shape& extents) const { return codegen::list(extents, plan_.target.open); }
  static std::string list(const std::vector<int64_t>& numbers) { return codegen::list(numbers); }
  std::string pointer(BufferId id) const { return pointer_text(locate(plan_, id), plan_.target.open); }

  LibraryCall pooling() const {
    const BufferId src = kernel_.input_buffers[0], dst = kernel_.output_buffers[0];
    const std::vector<int64_t> kernel = ints_or(node_, "kernel_shape", {}), ones(kernel.size(), 1);
    LibraryCall call;
    call.create = "{\n  Pooling d;\n  d.src = " + list(shape(src)) + ";\n  d.dst = " + list(shape(dst)) +
                  ";\n  d.kernel = " + list(kernel) + ";\n  d.strides = " + list(ints_or(node_, "strides", ones)) +
                  ";\n  d.dilations = " + list(ints_or(node_, "dilations", ones)) +
                  ";\n  d.pads = " + list(ints_or(node_, "pads", std::vector<int64_t>(2 * kernel.size(), 0))) + ";\n";
    if (node_.is(OpKind::AveragePool)) call.create += "  d.average = true;\n";
    if (is_half(buffer(src).element)) call.create += "  d.element = Element::BFloat16;\n";
    if (int_or(node_, "count_include_pad", 0) != 0) call.create += "  d.counts_padding = true;\n";
    call.create += "  library.add(d, " + fixed(src) + ", " + fixed(dst) + ");\n}\n";
    if (moves(src) || moves(dst))
      call.run = "library.bind(" + id_ + ", " + (moves(src) ? pointer(src) : "nullptr") + ", nullptr, " +
                 (moves(dst) ? pointer(dst) : "nullptr") + "); ";
    call.run += "library.run(" + id_ + ");";
    return call;
  }

  std::string text(const Index& size) const { return size_text(size, plan_.target.open); }
  std::string matrices_text(const std::string& name, const StridedMatrices& m) const {
    return "  d." + name + " = {" + text(m.offset) + ", " + list(of_three_axes(m.batch, 0)) + ", " + text(m.line) +
           ", " + text(m.element) + "};\n";
  }

  LibraryCall attention() const {
    const std::string& name = kernel_.implementation;
    const int terms = name == kAttentionOfSix ? 3 : name == kAttentionOfThree ? 2 : name == kAttentionOfHalves ? 1 : 0;
    GOPT_CHECK(terms > 0 || name == kAttentionRows, "no code for '" + name + "' of attention");
    const Attention& a = *kernel_.attention;
    std::string shape = "{\n  AttentionShape d;\n";
    for (size_t axis = 0; axis < a.batch.size(); axis++)
      shape += "  d.batch[" + std::to_string(3 - a.batch.size() + axis) + "] = " + text(a.batch[axis]) + ";\n";
    shape += "  d.rows = " + text(a.rows) + ", d.keys = " + text(a.keys) + ", d.depth = " + std::to_string(a.depth) +
             ", d.value_depth = " + std::to_string(a.value_depth) + ";\n";
    if (a.scale != 1) shape += "  d.scale = " + number(a.scale) + ";\n";
    if (terms > 0) shape += "  d.tile_terms = " + std::to_string(terms) + ";\n";
    if (is_half(plan_.buffer(kernel_.input_buffers[0]).element)) shape += "  d.operands = Element::BFloat16;\n";
    if (is_half(plan_.buffer(kernel_.output_buffers[0]).element)) shape += "  d.result_element = Element::BFloat16;\n";
    if (a.nan_is_zero) shape += "  d.nan_is_zero = true;\n";
    shape += matrices_text("query", a.query) + matrices_text("key", a.key) + matrices_text("value", a.value) +
             matrices_text("result", a.result);
    if (a.mask) shape += matrices_text("mask", *a.mask) + "  d.has_mask = true;\n";
    if (a.bias) shape += matrices_text("bias", *a.bias) + "  d.has_bias = true;\n";
    if (a.choice) {
      shape += matrices_text("choice", a.choice->at) +
               "  d.has_choice = true;\n  d.otherwise = " + number_or_infinity(a.choice->otherwise) + ";\n";
      if (!a.choice->kept) shape += "  d.kept = false;\n";
      if (!a.choice->is_first) shape += "  d.chooses_last = true;\n";
    }
    const std::vector<BufferId>& in = kernel_.input_buffers;
    const BufferId out = kernel_.output_buffers[0];
    const std::string choice = a.choice ? fixed(in.back()) : "nullptr";
    const std::string mask = a.mask ? fixed(in[3]) : "nullptr", bias = a.bias ? fixed(in[4]) : "nullptr";
    LibraryCall call;
    call.create = shape + "  library.add(d, " + fixed(in[0]) + ", " + fixed(in[1]) + ", " + fixed(in[2]) + ", " + mask +
                  ", " + bias + ", " + choice + ", " + fixed(out) + ");\n}\n";
    call.run = bind_text();
    for (size_t post = 0; 2 + post < in.size(); post++)
      if (moves(in[2 + post]))
        call.run += "library.bind_post(" + id_ + ", " + std::to_string(post) + ", " + pointer(in[2 + post]) + "); ";
    call.run += "library.run(" + id_ + ");";
    return call;
  }

  bool has_constant_weights() const { return locate(plan_, kernel_.input_buffers[1]).place == BufferPlace::Weight; }
  bool moves(BufferId id) const {
    const BufferPlace place = locate(plan_, id).place;
    return place == BufferPlace::Input || place == BufferPlace::Output;
  }
  // The address where it is known when the model is made.
  std::string fixed(BufferId id) const { return moves(id) ? "nullptr" : pointer(id); }

  std::string bind_text() const {
    const BufferId src = kernel_.input_buffers[0], weights = kernel_.input_buffers[1], dst = kernel_.output_buffers[0];
    auto now = [&](BufferId id) { return moves(id) ? pointer(id) : "nullptr"; };
    std::string text;
    if (moves(src) || moves(weights) || moves(dst))
      text = "library.bind(" + id_ + ", " + now(src) + ", " + now(weights) + ", " + now(dst) + "); ";
    return text + bind_posts_;
  }

  // Gemm's alpha applies to the product alone; its bias then comes after it.
  void scale() {
    alpha_ = node_.is(OpKind::Gemm) ? real_or(node_, "alpha", 1) : 1;
    if (alpha_ != 1) add_post("{PostKind::Linear, " + number(alpha_) + ", 0.0f}");
  }

  void add_post(const std::string& text) {
    posts_ += "  d.posts.push_back(" + text + ");\n";
    post_count_++;
  }

  void add_operand(BufferId operand, const Shape& dims) {
    if (moves(operand))
      bind_posts_ += "library.bind_post(" + id_ + ", " + std::to_string(post_count_) + ", " + pointer(operand) + "); ";
    const std::string element = is_half(buffer(operand).element) ? ", Element::BFloat16" : "";
    add_post("{PostKind::Add, 0, 0, " + fixed(operand) + ", " + list(dims) + element + "}");
  }

  void add_epilogue(const Epilogue& e) {
    switch (e.kind) {
      case Epilogue::Kind::Bias: {
        if (post_count_ == 0 && !moves(e.operand)) {
          bias_ = pointer(e.operand);
          return;
        }
        const Shape& out = shape(kernel_.output_buffers[0]);
        Shape dims(product_rank(), Index(1));
        if (kernel_.kind == KernelKind::Convolution)
          dims[1] = out[1];
        else
          dims.back() = out.back();
        return add_operand(e.operand, dims);
      }
      case Epilogue::Kind::AddTensor: {
        const Location from = locate(plan_, e.operand), to = locate(plan_, kernel_.output_buffers[0]);
        if (from == to) return add_post("{PostKind::Sum}");
        return add_operand(e.operand, kernel_.kind == KernelKind::Convolution ? Shape{} : product_shape());
      }
      case Epilogue::Kind::Activation: return add_post(post_text(e.activation));
      case Epilogue::Kind::Quantize:
      case Epilogue::Kind::Cast: throw InternalError("sums of floats are not stored as integers by a library kernel");
    }
  }

  // ---- of integers ----

  LibraryCall integer_call() {
    GOPT_CHECK(kernel_.implementation == "integers", "no code for '" + kernel_.implementation + "' of integers");
    const BufferId src = kernel_.input_buffers[0], weights = kernel_.input_buffers[1], dst = kernel_.output_buffers[0];
    LibraryCall call;
    call.create = "{\n  IntegerCall d;\n";
    call.create += kernel_.kind == KernelKind::Convolution ? convolved_integers() : multiplied_integers();
    call.create += "  d.operands.src = " + integer_type(src) + ";\n  d.operands.weights = " + integer_type(weights) +
                   ";\n  d.operands.src_zero = " + std::to_string(kernel_.integers->zero) +
                   ";\n  d.src_scale = " + number(kernel_.integers->scale) +
                   ";\n  d.result.type = " + integer_type(dst) + ";\n";
    if (!has_constant_weights()) call.create += "  d.constant_weights = false;\n";
    const auto is_a_channel = [&](int input) {
      if (input < 0) return false;
      const Buffer& own = buffer(kernel_.input_buffers[static_cast<size_t>(input)]);
      return own.size_bytes > static_cast<int64_t>(size_bytes(own.element));
    };
    if (is_a_channel(kernel_.integers->right_scale)) call.create += "  d.scale_a_channel = true;\n";
    if (is_a_channel(kernel_.integers->right_zero)) call.create += "  d.zero_a_channel = true;\n";
    if (const int zero = kernel_.integers->left_zero; zero >= 0) {
      const BufferId place = kernel_.input_buffers[static_cast<size_t>(zero)];
      call.create += "  d.has_src_zero = true;\n  d.src_zero = " + fixed(place) + ";\n";
      if (moves(place)) bind_posts_ += "library.bind_post(" + id_ + ", 1, " + pointer(place) + "); ";
    }
    std::string bias = "nullptr", result = "result";
    for (const Epilogue& e : kernel_.epilogues) {
      if (is_second(e)) {
        result = "second";
        call.create += second_step(e);
      } else if (e.kind == Epilogue::Kind::Bias) {
        bias = pointer(e.operand);
      } else if (e.kind != Epilogue::Kind::Cast) {
        call.create += integer_step(e, "  d." + result + ".");
      }
    }
    const auto input_of = [&](int input) {
      return input < 0 ? std::string("nullptr") : pointer(kernel_.input_buffers[static_cast<size_t>(input)]);
    };
    call.create += "  library.add(d, " + fixed(src) + ", " + fixed(weights) + ", " +
                   input_of(kernel_.integers->right_scale) + ", " + input_of(kernel_.integers->right_zero) + ", " +
                   bias + ", " + fixed(dst) + ");\n}\n";
    call.run = bind_text() + "library.run(" + id_ + ");";
    return call;
  }

  std::string integer_type(BufferId id) const { return integer_type(buffer(id).element); }
  static std::string integer_type(ElementType type) {
    switch (type) {
      case ElementType::UInt8: return "IntegerType::UInt8";
      case ElementType::Int8: return "IntegerType::Int8";
      case ElementType::Int32: return "IntegerType::Int32";
      case ElementType::Float32: return "IntegerType::Float";
      default: throw InternalError("integers are of 8 bits");
    }
  }

  // Bounds, and what is rounded to.
  static std::string integer_step(const Epilogue& e, const std::string& result) {
    if (e.kind != Epilogue::Kind::Activation) return grid_text(result, *e.node);
    const bool is_relu = e.activation.kind == ActivationKind::Relu;
    GOPT_CHECK(is_relu || e.activation.kind == ActivationKind::Clip, "sums of integers have bounds alone");
    return result + "least = " + number(is_relu ? 0 : e.activation.a) + ";\n" +
           (is_relu ? "" : result + "greatest = " + number(e.activation.b) + ";\n");
  }
  // Scale and zero point of a Quantize or Dequantize node.
  static std::string grid_text(const std::string& name, const Node& node) {
    const Tensor &scale = node.inputs[1].node->tensor, &zero = node.inputs[2].node->tensor;
    return name + "step = " + number(scale.to_doubles()[0]) + ";\n" + name +
           "zero = " + std::to_string(zero.to_ints()[0]) + ";\n";
  }

  // What the result was rounded to first; null before it is.
  const Node* rounded_before(const Epilogue& e) const {
    for (const Epilogue& step : kernel_.epilogues)
      if (&step < &e && step.kind == Epilogue::Kind::Quantize) return step.node.get();
    return nullptr;
  }
  bool is_second(const Epilogue& e) const {
    return (e.kind == Epilogue::Kind::Bias || e.kind == Epilogue::Kind::AddTensor) && rounded_before(e);
  }
  std::string second_step(const Epilogue& e) {
    const Node* first = rounded_before(e);
    const auto is_first = [&](const Value& v) {
      return v.node->is(OpKind::Dequantize) && v.node->inputs[0].node.get() == first;
    };
    const size_t own = is_first(e.node->inputs[0]) ? 0 : 1;
    const std::string name = "  d.second.";
    std::string text = name + "is_there = true;\n" + name + "first_type = " + integer_type(first->outputs[0].element) +
                       ";\n" + grid_text(name + "first_", *e.node->inputs[own].node);
    if (e.kind == Epilogue::Kind::Bias) return text + name + "bias = (const float*)(" + pointer(e.operand) + ");\n";
    if (moves(e.operand)) bind_posts_ += "library.bind_post(" + id_ + ", 0, " + pointer(e.operand) + "); ";
    return text + name + "adds = true;\n" + name + "addend = " + fixed(e.operand) + ";\n" + name +
           "addend_type = " + integer_type(buffer(e.operand).element) + ";\n" +
           grid_text(name + "addend_", *e.node->inputs[1 - own].node);
  }

  std::string geometry_text() const {
    const std::vector<int64_t> ones(buffer(kernel_.input_buffers[0]).dims.size() - 2, 1);
    return "  d.groups = " + std::to_string(int_or(node_, "group", 1)) +
           ";\n  d.strides = " + list(ints_or(node_, "strides", ones)) +
           ";\n  d.dilations = " + list(ints_or(node_, "dilations", ones)) +
           ";\n  d.pads = " + list(pads_before(plan_, kernel_)) + ";\n";
  }

  std::string convolved_integers() const {
    const auto is_last = [&](BufferId id) {
      return buffer(id).layout.is_channels_last() || (buffer(id).layout.is_plain() && buffer(id).dims[1] == 1);
    };
    GOPT_CHECK(is_last(kernel_.input_buffers[0]) && is_last(kernel_.output_buffers[0]),
               "images of integers have their channels last");
    return "  d.src = " + list(shape(kernel_.input_buffers[0])) +
           ";\n  d.weights = " + list(shape(kernel_.input_buffers[1])) +
           ";\n  d.dst = " + list(shape(kernel_.output_buffers[0])) + ";\n" + geometry_text();
  }

  std::string multiplied_integers() const {
    Shape right = shape(kernel_.input_buffers[1]);
    if (is_flat()) right.erase(right.begin(), right.end() - 2);
    const bool is_transposed = node_.is(OpKind::Gemm) && int_or(node_, "transB", 0) != 0;
    return "  d.is_product = true;\n  d.src = " + list(flattened(shape(kernel_.input_buffers[0]))) +
           ";\n  d.dst = " + list(product_shape()) + ";\n" +
           operand_text("weights", right, is_transposed, "weight_strides");
  }

  std::string elements_text() const {
    std::string text;
    if (is_half(buffer(kernel_.input_buffers[0]).element)) text += "  d.operands = Element::BFloat16;\n";
    if (is_half(buffer(kernel_.output_buffers[0]).element)) text += "  d.result = Element::BFloat16;\n";
    return text;
  }

  std::string convolution_text() const {
    const Buffer &x = buffer(kernel_.input_buffers[0]), &w = buffer(kernel_.input_buffers[1]),
                 &y = buffer(kernel_.output_buffers[0]);
    std::string text = "{\n  Convolution d;\n  d.src = " + list(shape_of(x)) + ";\n  d.weights = " + list(shape_of(w)) +
                       ";\n  d.dst = " + list(shape_of(y)) + ";\n";
    text += geometry_text();
    if (node_.is(OpKind::ConvTranspose)) text += "  d.transposed = true;\n";
    if (!has_constant_weights()) text += "  d.constant_weights = false;\n";
    text += "  d.src_order = " + order(x.layout) + ";\n  d.dst_order = " + order(y.layout) + ";\n";
    return text + elements_text() + convolution_implementation(kernel_.implementation) + posts_;
  }

  // ---- matrix products: leading axes are rows where the right operand has none of them ----

  static Index product_of(std::span<const Index> extents) {
    Index product(1);
    for (const Index& extent : extents) product = product * extent;
    return product;
  }
  bool is_flat() const {
    const Shape& b = shape(kernel_.input_buffers[1]);
    return product_of(std::span(b).first(b.size() - 2)) == Index(1);
  }
  size_t product_rank() const {
    if (kernel_.kind == KernelKind::Convolution) return shape(kernel_.output_buffers[0]).size();
    return is_flat() ? 2 : shape(kernel_.output_buffers[0]).size();
  }
  Shape flattened(Shape extents) const {
    if (!is_flat()) {
      extents.insert(extents.begin(), product_rank() - extents.size(), Index(1));
      return extents;
    }
    const Index last = extents.back();
    extents.pop_back();
    return {product_of(extents), last};
  }
  Shape product_shape() const { return flattened(shape(kernel_.output_buffers[0])); }

  // Extents and strides of an operand, its last two axes exchanged when it is used transposed.
  std::string operand_text(const std::string& name, Shape extents, bool transposed,
                           const std::string& strides_name) const {
    Shape strides(extents.size(), Index(1));
    for (size_t d = extents.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * extents[d + 1];
    if (transposed) {
      std::swap(extents[extents.size() - 1], extents[extents.size() - 2]);
      std::swap(strides[extents.size() - 1], strides[extents.size() - 2]);
    }
    return "  d." + name + " = " + list(extents) + ";\n  d." + strides_name + " = " + list(strides) + ";\n";
  }

  // Where scales and zero points of blocks of rows, and of columns, lie.
  std::string quantized_text(const QuantizedOperands& q) const {
    const auto operand = [&](const std::string& name, int input) {
      const BufferId id = kernel_.input_buffers[static_cast<size_t>(input)];
      std::vector<int64_t> dims = buffer(id).dims;
      dims.insert(dims.begin(), 2 - dims.size(), 1);
      std::vector<int64_t> strides{dims[0] > 1 ? dims[1] : 0, dims[1] > 1 ? 1 : 0};
      if (q.is_transposed) std::swap(strides[0], strides[1]);
      const bool is_scale = buffer(id).element == ElementType::Float32;
      return "  d.quantized." + name + "s = " + (is_scale ? "(const float*)(" : "(") + pointer(id) +
             ");\n  d.quantized." + name + "_row = " + std::to_string(strides[0]) + ";\n  d.quantized." + name +
             "_column = " + std::to_string(strides[1]) + ";\n";
    };
    const bool is_signed = buffer(kernel_.input_buffers[1]).element == ElementType::Int8;
    return "  d.bits = " + std::to_string(q.bits) + ";\n  d.block = " + std::to_string(q.block) +
           ";\n  d.quantized.is_signed = " + (is_signed ? "true" : "false") + ";\n" + operand("scale", q.scale) +
           (q.zero >= 0 ? operand("zero", q.zero) : "  d.quantized.zero = " + std::to_string(q.zero_of_all) + ";\n");
  }

  std::string product_text() const {
    const bool gemm = node_.is(OpKind::Gemm), is_transposed = gemm && int_or(node_, "transA", 0) != 0;
    Shape right = shape(kernel_.input_buffers[1]);
    if (is_flat())
      right.erase(right.begin(), right.end() - 2);
    else
      right = flattened(right);
    std::string text = "{\n  MatrixProduct d;\n";
    text += operand_text("src", flattened(shape(kernel_.input_buffers[0])), is_transposed, "src_strides");
    const bool is_right_transposed =
        kernel_.quantized ? kernel_.quantized->is_transposed : gemm && int_or(node_, "transB", 0) != 0;
    text += operand_text("weights", right, is_right_transposed, "weight_strides");
    if (kernel_.quantized) text += quantized_text(*kernel_.quantized);
    text += "  d.dst = " + list(product_shape()) + ";\n";
    const bool is_constant = has_constant_weights();
    if (is_constant) text += "  d.constant_weights = true;\n";
    // How many rows there are is known when it runs.
    if (is_constant && !kernel_.quantized && is_flat() && !is_transposed && !product_shape()[0].is_constant())
      text += "  d.few_rows = d.src[0] <= kMostRows;\n";
    return text + elements_text() + product_implementation(kernel_.implementation) + posts_;
  }

  const Plan& plan_;
  const Kernel& kernel_;
  std::string id_;
  const Node& node_;
  double alpha_ = 1;
  std::string posts_, bias_, bind_posts_;
  int post_count_ = 0;
};

}  // namespace

Result<LibraryCall> print_library_call(const Plan& plan, const Kernel& kernel, size_t primitive) {
  return CallPrinter(plan, kernel, primitive).print();
}

}  // namespace gopt::codegen
