#include "random_nodes.h"

#include <algorithm>

namespace gopt {

std::vector<TensorType> RandomNode::input_types() const {
  std::vector<TensorType> types;
  for (const Tensor& t : inputs) types.push_back(t.type() == ElementType::Undefined ? TensorType{} : t.tensor_type());
  return types;
}

std::string to_string(const RandomNode& node) {
  std::string s = op_info(node.kind).name + "(";
  for (const Tensor& t : node.inputs)
    s += (t.type() == ElementType::Undefined ? "_" : to_string(AttributeValue(t))) + "; ";
  s += ") {";
  for (const auto& [name, value] : node.attributes) s += name + "=" + to_string(value) + " ";
  return s + "} -> " + std::to_string(node.output_count);
}

ElementType RandomNodes::element_type() {
  static constexpr ElementType kOthers[] = {ElementType::Float64, ElementType::Float16, ElementType::BFloat16,
                                            ElementType::Int64,   ElementType::Int32,   ElementType::UInt8,
                                            ElementType::Int8,    ElementType::Bool};
  return one_in(3) ? kOthers[uniform(0, 7)] : ElementType::Float32;
}

std::vector<int64_t> RandomNodes::dims(int min_rank, int max_rank) {
  std::vector<int64_t> dims(static_cast<size_t>(uniform(min_rank, max_rank)));
  for (int64_t& d : dims) d = one_in(25) ? 0 : uniform(1, 4);
  return dims;
}

Tensor RandomNodes::tensor(ElementType type, const std::vector<int64_t>& dims) {
  const auto count = static_cast<size_t>(element_count(dims));
  if (is_floating(type)) {
    std::vector<double> values(count);
    for (double& v : values) v = static_cast<double>(uniform(-40, 40)) / 16;  // exact in every format
    return Tensor::from_values(type, dims, values);
  }
  std::vector<int64_t> values(count);
  for (int64_t& v : values) v = uniform(-2, 3);
  return Tensor::from_values(type, dims, values);
}

std::vector<int64_t> RandomNodes::broadcast_of(const std::vector<int64_t>& dims) {
  std::vector<int64_t> result = dims;
  for (int64_t& d : result)
    if (one_in(3)) d = 1;
  if (one_in(3)) result.erase(result.begin(), result.begin() + uniform(0, static_cast<int64_t>(result.size())));
  return result;
}

// Shapes that suit the operator; one time in twenty any shapes.
std::vector<std::vector<int64_t>> RandomNodes::input_dims(OpKind kind, int count) {
  std::vector<std::vector<int64_t>> shapes;
  const auto add = [&](std::vector<int64_t> d) { shapes.push_back(std::move(d)); };
  const bool any = one_in(20);
  if (any || count == 0) {
    for (int k = 0; k < count; k++) add(dims(0, 4));
    return shapes;
  }
  switch (kind) {
    case OpKind::MatMul: {
      add(dims(2, 4));
      add(shapes[0]);
      if (one_in(3)) shapes[1].erase(shapes[1].begin(), shapes[1].end() - 2);
      std::swap(shapes[1].back(), shapes[1][shapes[1].size() - 2]);
      shapes[1].back() = uniform(1, 4);
      break;
    }
    case OpKind::Gemm: {
      const int64_t m = uniform(1, 3), n = uniform(1, 3);
      add({m, n});
      add({n, m});
      add(one_in(2) ? std::vector<int64_t>{m} : std::vector<int64_t>{1, 1});
      break;
    }
    case OpKind::Conv:
    case OpKind::ConvTranspose: {
      const int64_t group = uniform(1, 2), axes = uniform(1, 2);
      std::vector<int64_t> x{uniform(1, 2), group * uniform(1, 2)}, w{group * uniform(1, 2), 0};
      w[1] = kind == OpKind::Conv ? x[1] / (one_in(2) ? group : 1) : uniform(1, 2);
      if (kind == OpKind::ConvTranspose) w[0] = x[1];
      for (int64_t a = 0; a < axes; a++) {
        x.push_back(uniform(2, 5));
        w.push_back(uniform(1, 3));
      }
      add(x);
      add(w);
      add({kind == OpKind::Conv ? w[0] : w[1] * (one_in(2) ? group : 1)});
      break;
    }
    case OpKind::BatchNormalization:
    case OpKind::InstanceNormalization:
      add(dims(3, 4));
      for (int k = 1; k < count; k++) add({shapes[0][1]});
      break;
    case OpKind::GatherElements:
      add(dims(1, 3));
      add(shapes[0]);
      break;
    case OpKind::ScatterAlong: {
      const std::vector<int64_t> x = dims(1, 3);
      add(x);
      add(x);
      add(x);
      shapes[1][0] = shapes[2][0] = uniform(1, 3);
      if (one_in(2))
        for (size_t k = 1; k < x.size(); k++) shapes[1][k] = 1;
      break;
    }
    case OpKind::Gather:
      add(dims(1, 3));
      add(dims(0, 2));
      break;
    case OpKind::Range:
      for (int k = 0; k < 3; k++) add({});
      break;
    case OpKind::MaxPool:
    case OpKind::AveragePool:
    case OpKind::GlobalAveragePool:
    case OpKind::GlobalMaxPool: add({1, uniform(1, 2), uniform(2, 6), uniform(2, 6)}); break;
    case OpKind::DepthToSpace: add({1, 4 * uniform(1, 2), uniform(1, 2), uniform(1, 2)}); break;
    case OpKind::SpaceToDepth: add({1, uniform(1, 2), 2 * uniform(1, 2), 2 * uniform(1, 2)}); break;
    default:
      add(dims(0, 4));
      for (int k = 1; k < count; k++) add(kind == OpKind::Concat ? shapes[0] : broadcast_of(shapes[0]));
      if (op_info(kind).has(kElementwise) && kind != OpKind::PRelu) std::shuffle(shapes.begin(), shapes.end(), random_);
  }
  shapes.resize(static_cast<size_t>(count));
  return shapes;
}

std::vector<ElementType> RandomNodes::input_elements(OpKind kind, int count) {
  std::vector<ElementType> elements(static_cast<size_t>(count), element_type());
  if (one_in(30) && count > 1) elements[1] = element_type();
  const bool logical = kind == OpKind::And || kind == OpKind::Or || kind == OpKind::Xor || kind == OpKind::Not;
  if (logical && !one_in(20)) elements.assign(elements.size(), ElementType::Bool);
  if (kind == OpKind::Where) elements[0] = ElementType::Bool;
  if (kind == OpKind::Dequantize || kind == OpKind::Quantize) {
    static constexpr ElementType kIntegers[] = {ElementType::UInt8, ElementType::Int8, ElementType::Int32};
    const bool quantizes = kind == OpKind::Quantize;
    elements.assign(elements.size(), ElementType::Float32);
    if (count > 2) elements[2] = kIntegers[uniform(0, quantizes ? 1 : 2)];
    if (count > 2 && !quantizes) elements[0] = elements[2];
  }
  if (kind == OpKind::Gather || kind == OpKind::GatherElements || kind == OpKind::ScatterAlong)
    elements[1] = one_in(2) ? ElementType::Int64 : ElementType::Int32;
  return elements;
}

std::string RandomNodes::string_value(const std::string& name) {
  if (one_in(30)) return "no such thing";
  const auto pick = [&](std::initializer_list<const char*> values) {
    return std::string(values.begin()[uniform(0, static_cast<int64_t>(values.size()) - 1)]);
  };
  if (name == "auto_pad") return pick({"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"});
  if (name == "reduction") return pick({"none", "add", "mul", "max", "min"});
  if (name == "mode") return pick({"constant", "reflect", "edge", "wrap", "DCR", "CRD"});
  return pick({"none", "tanh"});
}

std::vector<Index> RandomNodes::integers(const std::string& name, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank), spatial = std::max<int64_t>(0, signed_rank - 2);
  int64_t length = signed_rank, low = 0, high = 3;
  if (name == "strides" || name == "dilations" || name == "kernel_shape") length = spatial, low = 1, high = 2;
  if (name == "pads") length = 2 * (one_in(2) ? signed_rank : spatial), high = 2, low = one_in(5) ? -1 : 0;
  if (name == "output_padding") length = spatial, high = 1;
  if (name == "output_shape") length = spatial, low = 2, high = 8;
  if (name == "axes" || name == "perm" || name == "starts" || name == "steps")
    low = -signed_rank, high = signed_rank - 1;
  if (name == "axes") length = uniform(0, signed_rank);
  if (name == "ends") low = -4, high = 5;
  if (name == "starts" || name == "ends" || name == "steps") length = std::min<int64_t>(1, signed_rank);
  if (one_in(20)) length = uniform(0, 5);
  std::vector<Index> values;
  for (int64_t k = 0; k < length; k++) values.emplace_back(uniform(low, std::max(low, high)));
  if (name == "perm" && !one_in(10)) {
    for (size_t k = 0; k < values.size(); k++) values[k] = Index(static_cast<int64_t>(k));
    std::shuffle(values.begin(), values.end(), random_);
  }
  return values;
}

AttributeValue RandomNodes::attribute(const AttributeSchema& schema, size_t rank) {
  const auto signed_rank = static_cast<int64_t>(rank);
  switch (schema.kind) {
    case AttributeKind::Int: {
      const bool flag = schema.default_value && schema.name != "axis" && schema.name != "group" && schema.name != "k";
      if (schema.name == "axis")
        return Index(uniform(-signed_rank, std::max<int64_t>(0, signed_rank - (one_in(10) ? 0 : 1))));
      if (schema.name == "to") return Index(static_cast<int64_t>(element_type()));
      return flag ? Index(uniform(0, 1)) : Index(uniform(1, 2));
    }
    case AttributeKind::Ints: return integers(schema.name, rank);
    case AttributeKind::Float: return static_cast<double>(uniform(-8, 16)) / 8;
    case AttributeKind::Floats: return std::vector<double>{0.5};
    case AttributeKind::String: return string_value(schema.name);
    case AttributeKind::Tensor: return tensor(element_type(), one_in(10) ? dims(0, 2) : std::vector<int64_t>{1});
  }
  return Index(0);
}

// Lists that random numbers would hardly ever hit: shapes with the same number of elements, parts that fill an axis.
void RandomNodes::fit_shape_attributes(RandomNode& node) {
  if (node.inputs.empty() || one_in(10)) return;
  const std::vector<int64_t>& dims = node.inputs[0].dims();
  if (node.kind == OpKind::Reshape) {
    std::vector<Index> shape(dims.begin(), dims.end());
    std::shuffle(shape.begin(), shape.end(), random_);
    if (shape.size() > 1 && one_in(2)) {
      shape[1] = shape[0] * shape[1];
      shape.erase(shape.begin());
    }
    if (!shape.empty() && one_in(3)) shape[0] = Index(-1);
    node.attributes["shape"] = shape;
  }
  if (node.kind == OpKind::Split && !dims.empty() && node.attributes.contains("split")) {
    node.attributes["axis"] = Index(0);
    const int64_t first = uniform(0, dims[0]);
    node.attributes["split"] = std::vector<Index>{Index(first), Index(dims[0] - first)};
    node.output_count = 2;
  }
}

RandomNode RandomNodes::node(OpKind kind) {
  const OpInfo& info = op_info(kind);
  const int max_inputs = info.max_inputs < 0 ? info.min_inputs + 2 : info.max_inputs;
  const auto count = static_cast<int>(uniform(info.min_inputs, max_inputs));
  RandomNode node{kind, {}, {}, 1};
  const auto shapes = input_dims(kind, count);
  const auto elements = input_elements(kind, count);
  for (size_t k = 0; k < shapes.size(); k++) node.inputs.push_back(tensor(elements[k], shapes[k]));
  const size_t rank = shapes.empty() ? 0 : shapes[0].size();
  for (const AttributeSchema& schema : info.attributes)
    if (schema.required ? !one_in(50) : one_in(3)) node.attributes[schema.name] = attribute(schema, rank);
  if (info.outputs < 0) node.output_count = static_cast<int>(uniform(1, kind == OpKind::LayerNormalization ? 3 : 2));
  if (one_in(50)) node.output_count = static_cast<int>(uniform(1, 4));
  fit_shape_attributes(node);
  return node;
}

}  // namespace gopt
