// Small ONNX models, written where a test needs them.
#pragma once

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <fstream>
#include <string>
#include <variant>
#include <vector>

namespace gopt {

using Dim = std::variant<int64_t, std::string>;  // a number or a symbol; an empty symbol is left open
using Dims = std::vector<Dim>;
using Names = std::vector<std::string>;

constexpr int kFloat = onnx::TensorProto::FLOAT, kInt64 = onnx::TensorProto::INT64, kBool = onnx::TensorProto::BOOL;

inline onnx::AttributeProto& add_attribute(onnx::NodeProto& node, const std::string& name,
                                           onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& attribute = *node.add_attribute();
  attribute.set_name(name);
  attribute.set_type(type);
  return attribute;
}

// A node under construction: node("Conv", {"x", "w"}, {"y"}).ints("pads", {1, 1, 1, 1}).
class NodeBuilder {
 public:
  explicit NodeBuilder(onnx::NodeProto& node) : node_(node) {}
  NodeBuilder& i(const std::string& name, int64_t value) {
    add_attribute(node_, name, onnx::AttributeProto::INT).set_i(value);
    return *this;
  }
  NodeBuilder& f(const std::string& name, float value) {
    add_attribute(node_, name, onnx::AttributeProto::FLOAT).set_f(value);
    return *this;
  }
  NodeBuilder& s(const std::string& name, const std::string& value) {
    add_attribute(node_, name, onnx::AttributeProto::STRING).set_s(value);
    return *this;
  }
  NodeBuilder& ints(const std::string& name, const std::vector<int64_t>& values) {
    auto& attribute = add_attribute(node_, name, onnx::AttributeProto::INTS);
    for (const int64_t value : values) attribute.add_ints(value);
    return *this;
  }
  NodeBuilder& floats(const std::string& name, const std::vector<float>& values) {
    auto& attribute = add_attribute(node_, name, onnx::AttributeProto::FLOATS);
    for (const float value : values) attribute.add_floats(value);
    return *this;
  }
  NodeBuilder& graph(const std::string& name, const onnx::GraphProto& value) {
    *add_attribute(node_, name, onnx::AttributeProto::GRAPH).mutable_g() = value;
    return *this;
  }
  NodeBuilder& tensor(const std::string& name, const onnx::TensorProto& value) {
    *add_attribute(node_, name, onnx::AttributeProto::TENSOR).mutable_t() = value;
    return *this;
  }
  NodeBuilder& domain(const std::string& name) {
    node_.set_domain(name);
    return *this;
  }
  NodeBuilder& name(const std::string& name) {
    node_.set_name(name);
    return *this;
  }

 private:
  onnx::NodeProto& node_;
};

inline NodeBuilder add_node(onnx::NodeProto& node, const std::string& op, const Names& inputs, const Names& outputs) {
  node.set_op_type(op);
  for (const std::string& input : inputs) node.add_input(input);
  for (const std::string& output : outputs) node.add_output(output);
  return NodeBuilder(node);
}

inline onnx::TensorProto float_tensor(const std::string& name, const std::vector<int64_t>& dims,
                                      const std::vector<float>& values) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(kFloat);
  for (const int64_t extent : dims) tensor.add_dims(extent);
  tensor.set_raw_data(values.data(), values.size() * sizeof(float));
  return tensor;
}

// Numbers that differ, small enough to stay well conditioned.
inline onnx::TensorProto float_tensor(const std::string& name, const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  std::vector<float> values;
  for (int64_t i = 0; i < count; i++) values.push_back(0.1f + 0.01f * static_cast<float>((i * 37) % 101));
  return float_tensor(name, dims, values);
}

inline onnx::TensorProto int_tensor(const std::string& name, const std::vector<int64_t>& values, bool scalar = false) {
  onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(kInt64);
  if (!scalar) tensor.add_dims(static_cast<int64_t>(values.size()));
  for (const int64_t value : values) tensor.add_int64_data(value);
  return tensor;
}

class GraphBuilderProto {
 public:
  explicit GraphBuilderProto(onnx::GraphProto& graph) : graph_(graph) {}
  void input(const std::string& name, const Dims& dims, int type = kFloat) {
    declare(*graph_.add_input(), name, dims, type);
  }
  void output(const std::string& name, const Dims& dims, int type = kFloat) {
    declare(*graph_.add_output(), name, dims, type);
  }
  void value(const std::string& name, const Dims& dims, int type = kFloat) {
    declare(*graph_.add_value_info(), name, dims, type);
  }
  void constant(const onnx::TensorProto& tensor) { *graph_.add_initializer() = tensor; }
  NodeBuilder node(const std::string& op, const Names& inputs, const Names& outputs) {
    return add_node(*graph_.add_node(), op, inputs, outputs);
  }

 private:
  static void declare(onnx::ValueInfoProto& info, const std::string& name, const Dims& dims, int type) {
    info.set_name(name);
    auto& tensor = *info.mutable_type()->mutable_tensor_type();
    tensor.set_elem_type(type);
    tensor.mutable_shape();
    for (const Dim& extent : dims) {
      auto& dim = *tensor.mutable_shape()->add_dim();
      if (std::holds_alternative<int64_t>(extent))
        dim.set_dim_value(std::get<int64_t>(extent));
      else if (!std::get<std::string>(extent).empty())
        dim.set_dim_param(std::get<std::string>(extent));
    }
  }

  onnx::GraphProto& graph_;
};

struct ModelHolder {  // a base, so that the message lives before the builder of its graph
  onnx::ModelProto proto;
};

struct TestModel : ModelHolder, GraphBuilderProto {
  explicit TestModel(int opset = 17, int ir = 8) : GraphBuilderProto(*proto.mutable_graph()) {
    proto.set_ir_version(ir);
    opset_import("", opset);
    proto.mutable_graph()->set_name("test");
  }
  TestModel(const TestModel&) = delete;
  void opset_import(const std::string& domain, int version) {
    auto& import = *proto.add_opset_import();
    import.set_domain(domain);
    import.set_version(version);
  }
  // Before IR 4 initializers are inputs as well.
  void save(const std::string& path) {
    if (proto.ir_version() < 4)
      for (const auto& tensor : proto.graph().initializer())
        input(tensor.name(), Dims(tensor.dims().begin(), tensor.dims().end()), tensor.data_type());
    std::ofstream out(path, std::ios::binary);
    ASSERT_TRUE(proto.SerializeToOstream(&out));
  }
};

}  // namespace gopt
