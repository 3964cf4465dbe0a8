// Operators that the model's opset lacks, by those that it has.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "export_state.h"

namespace gopt::ir {
namespace {

using Names = std::vector<std::string>;

// Nodes on names, with scalars of the type of the operator's first input.
class Expansion {
 public:
  Expansion(ExportState& state, const Node& node) : state_(state), node_(node), type_(node.inputs[0].type().element) {}

  std::string input(size_t i) const { return i < node_.inputs.size() ? state_.name_of(node_.inputs[i]) : ""; }
  std::string output(size_t i = 0) const { return state_.outputs_of(node_)[i]; }
  bool has_output(size_t i) const { return i < node_.outputs.size() && !output(i).empty(); }
  std::string op(const std::string& type, const Names& inputs, const std::string& output = "",
                 const Attributes& attributes = {}) const {
    return state_.add(type, inputs, output, {attributes.begin(), attributes.end()});
  }
  std::string scalar(double value) const { return state_.constant(Tensor::from_values<double>(type_, {}, {value})); }
  double real(const std::string& name) const { return std::get<double>(node_.attributes.at(name)); }
  const Node& node() const { return node_; }
  ExportState& state() const { return state_; }
  int64_t opset() const { return state_.opset; }
  ElementType type() const { return type_; }

 private:
  ExportState& state_;
  const Node& node_;
  ElementType type_;
};

Status no_form(const Expansion& e) {
  const OpInfo& info = op_info(e.node().op);
  return Error{info.name + " cannot be written in opset " + std::to_string(e.opset()) +
               " of the model; it needs opset " + std::to_string(info.since_opset)};
}

Status expand_gelu(const Expansion& e) {
  const std::string x = e.input(0);
  std::string gate;
  if (std::get<std::string>(e.node().attributes.at("approximate")) == "tanh") {
    const std::string cube = e.op("Mul", {e.op("Mul", {x, x}), x});
    const std::string inner = e.op("Add", {x, e.op("Mul", {cube, e.scalar(0.044715)})});
    gate = e.op("Tanh", {e.op("Mul", {inner, e.scalar(std::sqrt(2 / std::numbers::pi))})});
  } else {
    if (e.opset() < 9) return no_form(e);
    gate = e.op("Erf", {e.op("Mul", {x, e.scalar(std::sqrt(0.5))})});
  }
  const std::string half = e.op("Mul", {x, e.scalar(0.5)});
  e.op("Mul", {half, e.op("Add", {gate, e.scalar(1)})}, e.output());
  return Unit{};
}

Status expand_layer_normalization(const Expansion& e) {
  const auto& shape = e.node().inputs[0].type().shape;
  const int64_t axis = std::get<Index>(e.node().attributes.at("axis")).constant();
  std::vector<Index> axes;
  for (size_t k = static_cast<size_t>(axis); k < shape->size(); k++) axes.emplace_back(static_cast<int64_t>(k));
  const Attributes over{{"axes", axes}, {"keepdims", Index(1)}};
  const auto at = [&](size_t i) { return e.has_output(i) ? e.output(i) : ""; };
  const std::string x = e.input(0);
  const std::string mean = e.op("ReduceMean", {x}, at(1), over);
  const std::string centered = e.op("Sub", {x, mean});
  const std::string variance = e.op("ReduceMean", {e.op("Mul", {centered, centered})}, "", over);
  const std::string deviation = e.op("Sqrt", {e.op("Add", {variance, e.scalar(e.real("epsilon"))})});
  const std::string inverse = e.op("Div", {e.scalar(1), deviation}, at(2));
  const bool biased = !e.input(2).empty();
  const std::string scaled = e.op("Mul", {e.op("Mul", {centered, inverse}), e.input(1)}, biased ? "" : e.output());
  if (biased) e.op("Add", {scaled, e.input(2)}, e.output());
  return Unit{};
}

// a >= b is not the negation of a < b where one is no number.
Status expand_or_equal(const Expansion& e, const std::string& strict, const std::string& opposite) {
  if (is_integer(e.type())) {
    e.op("Not", {e.op(opposite, {e.input(0), e.input(1)})}, e.output());
    return Unit{};
  }
  if (e.opset() < 11) return no_form(e);
  const Names both{e.input(0), e.input(1)};
  e.op("Or", {e.op(strict, both), e.op("Equal", both)}, e.output());
  return Unit{};
}

// Before opset 13 Softmax normalizes over all axes from `axis` on: right where those after it have extent 1, else the
// axis is brought to the end.
Status expand_softmax(const Expansion& e) {
  const std::string name = op_info(e.node().op).name;
  const Shape& shape = *e.node().inputs[0].type().shape;
  const auto axis = static_cast<size_t>(std::get<Index>(e.node().attributes.at("axis")).constant());
  const bool alone = std::all_of(shape.begin() + static_cast<int64_t>(axis) + 1, shape.end(),
                                 [](const Index& extent) { return extent == Index(1); });
  if (alone) {
    e.op(name, {e.input(0)}, e.output(), {{"axis", Index(static_cast<int64_t>(axis))}});
    return Unit{};
  }
  std::vector<Index> perm;
  for (size_t k = 0; k < shape.size(); k++) perm.emplace_back(static_cast<int64_t>(k));
  std::swap(perm[axis], perm.back());  // its own inverse
  const std::string last = e.op("Transpose", {e.input(0)}, "", {{"perm", perm}});
  const std::string soft = e.op(name, {last}, "", {{"axis", Index(static_cast<int64_t>(shape.size()) - 1)}});
  e.op("Transpose", {soft}, e.output(), {{"perm", perm}});
  return Unit{};
}

Status expand_fill_like(const Expansion& e) {
  if (e.opset() < 9) return no_form(e);
  const TensorType& type = e.node().inputs[0].type();
  std::string shape;
  if (type.has_static_shape()) {
    GOPT_ASSIGN_OR_RETURN(shape, export_integers(e.state(), *type.shape));
  } else {
    shape = e.op("Shape", {e.input(0)});
  }
  const Tensor value = Tensor::from_values<double>(type.element, {1}, {e.real("value")});
  e.op("ConstantOfShape", {shape}, e.output(), {{"value", value}});
  return Unit{};
}

Status expand_gemm(const Expansion& e) {
  Attributes attributes = e.node().attributes;
  e.op("Gemm", {e.input(0), e.input(1), e.scalar(0)}, e.output(), attributes);
  return Unit{};
}

// The axis along which a scale or zero point differs, of a tensor of `rank` axes; -1: it is one for all. Nothing where
// there are several.
std::optional<int64_t> axis_of(const Value& value, size_t rank) {
  const TensorType& type = value.type();
  if (!type.has_static_shape() || type.shape->size() > rank) return std::nullopt;
  const std::vector<int64_t> dims = type.static_shape();
  int64_t axis = -1;
  for (size_t d = 0; d < dims.size(); d++) {
    if (dims[d] == 1) continue;
    if (axis >= 0) return std::nullopt;
    axis = static_cast<int64_t>(d + rank - dims.size());
  }
  return axis;
}

// ONNX's own where it has one for the types and shapes at hand; else as what it means.
Status expand_quantization(const Expansion& e) {
  const Node& node = e.node();
  const bool quantizes = node.is(OpKind::Quantize);
  const ElementType type = node.inputs[2].type().element;
  const auto of_scale = axis_of(node.inputs[1], node.inputs[0].type().shape->size()),
             of_zero = axis_of(node.inputs[2], node.inputs[0].type().shape->size());
  const bool is_of_onnx =
      type == ElementType::UInt8 || type == ElementType::Int8 || type == ElementType::Int32 || e.opset() >= 21;
  const bool is_alike = of_scale && of_zero && *of_scale == *of_zero && (*of_scale < 0 || e.opset() >= 13);
  const ElementType of_numbers = node.inputs[1].type().element;
  if (!is_of_onnx || !is_alike || e.opset() < 10 || of_numbers != ElementType::Float32) {
    if (!quantizes) {
      const Attributes to_float{{"to", Index(static_cast<int64_t>(of_numbers))}};
      const std::string x = e.op("Cast", {e.input(0)}, "", to_float), zero = e.op("Cast", {e.input(2)}, "", to_float);
      e.op("Mul", {e.op("Sub", {x, zero}), e.input(1)}, e.output());
      return Unit{};
    }
    return no_form(e);
  }
  const auto flat = [&](size_t i) {
    const Value& value = node.inputs[i];
    const int64_t count = element_count(value.type().static_shape());
    const std::vector<int64_t> dims = *of_scale < 0 ? std::vector<int64_t>{} : std::vector<int64_t>{count};
    if (value.node->is(OpKind::Constant)) return e.state().constant(value.node->tensor.reshaped(dims));
    return e.op("Reshape", {e.input(i), e.state().constant(Tensor::vector_i64(dims))});
  };
  Attributes attributes;
  if (*of_scale >= 0) attributes["axis"] = Index(*of_scale);
  e.op(quantizes ? "QuantizeLinear" : "DequantizeLinear", {e.input(0), flat(1), flat(2)}, e.output(), attributes);
  return Unit{};
}

Status expand_scatter(const Expansion& e) {
  const Node& node = e.node();
  const std::string reduction = std::get<std::string>(node.attributes.at("reduction"));
  const bool is_extremum = reduction == "max" || reduction == "min";
  if (e.opset() < (is_extremum ? 18 : reduction == "none" ? 11 : 16)) return no_form(e);
  Attributes attributes{{"axis", node.attributes.at("axis")}};
  if (reduction != "none") attributes["reduction"] = reduction;
  const std::string shape = e.op("Shape", {e.input(2)}), places = e.op("Expand", {e.input(1), shape});
  e.op("ScatterElements", {e.input(0), places, e.input(2)}, e.output(), attributes);
  return Unit{};
}

// Where more than one extent behind the first axis that is repeated is a symbol, ONNX has no constant shape for it.
Status expand_repeat(const Expansion& e) {
  const Node& node = e.node();
  const auto& repeats = std::get<std::vector<Index>>(node.attributes.at("repeats"));
  const Shape& shape = *node.inputs[0].type().shape;
  std::vector<int64_t> axes, wide, merged;
  bool has_unknown = false;
  for (size_t k = 0; k < repeats.size(); k++) {
    if (!repeats[k].is_constant()) return no_form(e);
    const int64_t times = repeats[k].constant();
    wide.push_back(1);
    if (times > 1) {
      wide.push_back(times);
      axes.push_back(static_cast<int64_t>(wide.size()) - 1);
    }
    const bool is_known = shape[k].is_constant();
    if (axes.empty()) {
      merged.push_back(0);  // as it is
    } else if (is_known) {
      merged.push_back(shape[k].constant() * times);
    } else {
      if (has_unknown) return no_form(e);
      merged.push_back(-1);
      has_unknown = true;
    }
  }
  if (axes.empty()) {
    e.op("Identity", {e.input(0)}, e.output());
    return Unit{};
  }
  const bool is_input = e.opset() >= 13;
  const Names unsqueezed =
      is_input ? Names{e.input(0), e.state().constant(Tensor::vector_i64(axes))} : Names{e.input(0)};
  Attributes attributes;
  if (!is_input) attributes["axes"] = std::vector<Index>(axes.begin(), axes.end());
  const std::string apart = e.op("Unsqueeze", unsqueezed, "", attributes);
  const std::string repeated = e.op("Expand", {apart, e.state().constant(Tensor::vector_i64(wide))});
  e.op("Reshape", {repeated, e.state().constant(Tensor::vector_i64(merged))}, e.output());
  return Unit{};
}

}  // namespace

Status export_expanded(ExportState& state, const Node& node) {
  if (node.inputs.empty())
    return Error{op_info(node.op).name + " cannot be written in opset " + std::to_string(state.opset)};
  const Expansion e(state, node);
  const std::string x = e.input(0);
  switch (node.op) {
    case OpKind::Gelu: return expand_gelu(e);
    case OpKind::LayerNormalization: return expand_layer_normalization(e);
    case OpKind::GreaterOrEqual: return expand_or_equal(e, "Greater", "Less");
    case OpKind::LessOrEqual: return expand_or_equal(e, "Less", "Greater");
    case OpKind::Softmax:
    case OpKind::LogSoftmax: return expand_softmax(e);
    case OpKind::FillLike: return expand_fill_like(e);
    case OpKind::Dequantize:
    case OpKind::Quantize: return expand_quantization(e);
    case OpKind::ScatterAlong: return expand_scatter(e);
    case OpKind::Repeat: return expand_repeat(e);
    case OpKind::Gemm: return expand_gemm(e);
    case OpKind::HardSwish:
      e.op("Mul", {x, e.op("HardSigmoid", {x}, "", {{"alpha", 1.0 / 6}, {"beta", 0.5}})}, e.output());
      return Unit{};
    case OpKind::Mish: e.op("Mul", {x, e.op("Tanh", {e.op("Softplus", {x})})}, e.output()); return Unit{};
    case OpKind::Celu: {
      const std::string alpha = e.scalar(e.real("alpha"));
      e.op("Mul", {alpha, e.op("Elu", {e.op("Div", {x, alpha})}, "", {{"alpha", 1.0}})}, e.output());
      return Unit{};
    }
    default: return no_form(e);
  }
}

}  // namespace gopt::ir
