#include "mutate_model.h"

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gopt/op.h"

namespace gopt {
namespace {

constexpr int64_t kExtremes[] = {0,
                                 1,
                                 -1,
                                 2,
                                 3,
                                 -2,
                                 7,
                                 64,
                                 65536,
                                 INT32_MAX,
                                 int64_t{1} << 31,
                                 -(int64_t{1} << 31),
                                 int64_t{1} << 32,
                                 (int64_t{1} << 32) + 1,
                                 int64_t{1} << 40,
                                 int64_t{1} << 62,
                                 INT64_MAX,
                                 INT64_MIN};
constexpr float kExtremeReals[] = {0.0f, -0.0f, 1.0f, -1.0f, 1e38f, 1e-45f, INFINITY, -INFINITY, NAN};

class Mutator {
 public:
  Mutator(onnx::ModelProto& model, uint64_t seed) : model_(model), random_(seed) {}

  void change() {
    using Change = void (Mutator::*)();
    // Attributes are where most was found: they come most often.
    constexpr Change kChanges[] = {
        &Mutator::attribute, &Mutator::attribute,   &Mutator::attribute,   &Mutator::attribute,   &Mutator::known,
        &Mutator::known,     &Mutator::node_input,  &Mutator::node_input,  &Mutator::node_output, &Mutator::node_kind,
        &Mutator::node_list, &Mutator::declaration, &Mutator::declaration, &Mutator::tensor,      &Mutator::tensor,
        &Mutator::opset,     &Mutator::function,    &Mutator::sparse};
    (this->*kChanges[pick(std::size(kChanges))])();
  }

 private:
  size_t pick(size_t count) { return static_cast<size_t>(random_() % count); }
  int64_t extreme() { return kExtremes[pick(std::size(kExtremes))]; }
  float extreme_real() { return kExtremeReals[pick(std::size(kExtremeReals))]; }

  // The main graph, a function's body or a subgraph of a node.
  using Nodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
  Nodes* nodes() {
    Nodes* chosen = model_.mutable_graph()->mutable_node();
    if (model_.functions_size() > 0 && pick(3) == 0)
      chosen = model_.mutable_functions(static_cast<int>(pick(model_.functions_size())))->mutable_node();
    for (auto& node : *chosen)
      for (auto& attribute : *node.mutable_attribute())
        if (attribute.has_g() && pick(3) == 0) return attribute.mutable_g()->mutable_node();
    return chosen;
  }
  onnx::NodeProto* node() {
    Nodes* all = nodes();
    return all->empty() ? nullptr : all->Mutable(static_cast<int>(pick(all->size())));
  }
  // A name that something of the model has.
  std::string some_name() {
    std::vector<std::string> names{"", "nothing has this name"};
    for (const auto& value : model_.graph().input()) names.push_back(value.name());
    for (const auto& tensor : model_.graph().initializer()) names.push_back(tensor.name());
    for (const auto& each : model_.graph().node())
      names.insert(names.end(), each.output().begin(), each.output().end());
    return names[pick(names.size())];
  }

  void change_value(onnx::AttributeProto& attribute) {
    using P = onnx::AttributeProto;
    switch (attribute.type()) {
      case P::INT: attribute.set_i(extreme()); break;
      case P::FLOAT: attribute.set_f(extreme_real()); break;
      case P::STRING: attribute.set_s(pick(2) == 0 ? "" : std::string(1 + pick(300), 'A')); break;
      case P::TENSOR: change_tensor(*attribute.mutable_t()); break;
      case P::INTS:
        if (attribute.ints_size() > 0 && pick(2) == 0) attribute.mutable_ints()->RemoveLast();
        if (attribute.ints_size() > 0) attribute.set_ints(static_cast<int>(pick(attribute.ints_size())), extreme());
        if (pick(3) == 0) attribute.add_ints(extreme());
        break;
      case P::FLOATS: attribute.add_floats(extreme_real()); break;
      default: attribute.set_type(static_cast<P::AttributeType>(pick(15)));
    }
  }
  void attribute() {
    onnx::NodeProto* changed = node();
    if (!changed || changed->attribute_size() == 0) return known();
    const int position = static_cast<int>(pick(changed->attribute_size()));
    onnx::AttributeProto& attribute = *changed->mutable_attribute(position);
    switch (pick(8)) {
      case 0: changed->mutable_attribute()->DeleteSubrange(position, 1); break;
      case 1: attribute.set_type(static_cast<onnx::AttributeProto::AttributeType>(pick(15))); break;
      case 2: attribute.set_ref_attr_name("slope"); break;
      case 3: *changed->add_attribute() = onnx::AttributeProto(attribute); break;
      default: change_value(attribute);
    }
  }
  // An attribute that the operator has, but the node did not give.
  void known() {
    onnx::NodeProto* changed = node();
    const auto kind = changed ? find_op(changed->op_type()) : std::nullopt;
    if (!kind || op_info(*kind).attributes.empty()) return node_kind();
    const auto& schemas = op_info(*kind).attributes;
    const AttributeSchema& schema = schemas[pick(schemas.size())];
    onnx::AttributeProto& attribute = *changed->add_attribute();
    attribute.set_name(schema.name);
    using P = onnx::AttributeProto;
    attribute.set_type(schema.kind == AttributeKind::Int      ? P::INT
                       : schema.kind == AttributeKind::Ints   ? P::INTS
                       : schema.kind == AttributeKind::Float  ? P::FLOAT
                       : schema.kind == AttributeKind::Floats ? P::FLOATS
                       : schema.kind == AttributeKind::String ? P::STRING
                                                              : P::TENSOR);
    for (size_t entries = pick(6); entries > 0 && schema.kind == AttributeKind::Ints; entries--)
      attribute.add_ints(extreme());
    change_value(attribute);
  }

  void node_input() {
    onnx::NodeProto* changed = node();
    if (!changed) return;
    if (changed->input_size() == 0 || pick(5) == 0) return changed->add_input(some_name());
    const int position = static_cast<int>(pick(changed->input_size()));
    if (pick(4) == 0)
      changed->mutable_input()->DeleteSubrange(position, 1);
    else
      changed->set_input(position, some_name());
  }
  void node_output() {
    onnx::NodeProto* changed = node();
    if (!changed) return;
    if (changed->output_size() == 0 || pick(3) == 0) return changed->add_output("added " + std::to_string(pick(9)));
    if (pick(3) == 0)
      changed->mutable_output()->RemoveLast();
    else
      changed->set_output(static_cast<int>(pick(changed->output_size())), some_name());
  }
  void node_kind() {
    static const char* const kOthers[] = {"ConvTranspose",
                                          "LSTM",
                                          "Loop",
                                          "Scan",
                                          "If",
                                          "Resize",
                                          "Einsum",
                                          "TopK",
                                          "NonMaxSuppression",
                                          "SequenceAt",
                                          "Unique",
                                          "CumSum",
                                          "Compress",
                                          "ConstantOfShape",
                                          "Constant",
                                          "RoiAlign",
                                          "MaxUnpool",
                                          "QLinearConv",
                                          "Upsample",
                                          "BitShift",
                                          "SpaceToDepth",
                                          "EyeLike",
                                          "OneHot",
                                          "STFT",
                                          "Dropout"};
    onnx::NodeProto* changed = node();
    if (!changed) return;
    switch (pick(4)) {
      case 0: changed->set_op_type(kOthers[pick(std::size(kOthers))]); break;
      case 1: changed->set_op_type(op_info(all_ops()[pick(all_ops().size())]).name); break;
      case 2: changed->set_domain(pick(2) == 0 ? "custom" : "ai.onnx"); break;
      default: changed->set_op_type(model_.functions_size() > 0 ? model_.functions(0).name() : "");
    }
  }
  void node_list() {
    Nodes* all = nodes();
    if (all->empty()) return;
    const int position = static_cast<int>(pick(all->size()));
    switch (pick(3)) {
      case 0: all->DeleteSubrange(position, 1); break;
      case 1: *all->Add() = onnx::NodeProto(all->Get(position)); break;
      default: all->SwapElements(position, static_cast<int>(pick(all->size())));
    }
  }

  void declaration() {
    onnx::GraphProto& graph = *model_.mutable_graph();
    auto* values = pick(3) == 0   ? graph.mutable_value_info()
                   : pick(2) == 0 ? graph.mutable_output()
                                  : graph.mutable_input();
    if (values->empty()) return;
    onnx::ValueInfoProto& value = *values->Mutable(static_cast<int>(pick(values->size())));
    auto& type = *value.mutable_type()->mutable_tensor_type();
    auto& dims = *type.mutable_shape()->mutable_dim();
    switch (pick(8)) {
      case 0: type.set_elem_type(static_cast<int>(pick(24))); break;
      case 1: value.clear_type(); break;
      case 2: type.clear_shape(); break;
      case 3: value.set_name(some_name()); break;
      case 4: dims.Add()->set_dim_value(extreme()); break;
      case 5:
        if (!dims.empty()) dims.RemoveLast();
        break;
      default:
        if (dims.empty()) break;
        auto& dim = *dims.Mutable(static_cast<int>(pick(dims.size())));
        if (pick(3) == 0)
          dim.set_dim_param(pick(2) == 0 ? "n" : "");
        else
          dim.set_dim_value(extreme());
    }
  }

  void change_tensor(onnx::TensorProto& tensor) {
    switch (pick(8)) {
      case 0: tensor.set_data_type(static_cast<int>(pick(24))); break;
      case 1: tensor.add_dims(extreme()); break;
      case 2:
        if (tensor.dims_size() > 0) tensor.set_dims(static_cast<int>(pick(tensor.dims_size())), extreme());
        break;
      case 3: tensor.mutable_raw_data()->resize(pick(40)); break;
      case 4: tensor.set_data_location(onnx::TensorProto::EXTERNAL); break;
      case 5: tensor.set_name(some_name()); break;
      case 6:
        tensor.set_data_type(onnx::TensorProto::INT64);
        tensor.add_int64_data(extreme());
        break;
      default:
        if (tensor.int64_data_size() > 0)
          tensor.set_int64_data(static_cast<int>(pick(tensor.int64_data_size())), extreme());
        else if (!tensor.raw_data().empty())
          (*tensor.mutable_raw_data())[pick(tensor.raw_data().size())] = static_cast<char>(random_());
    }
  }
  void tensor() {
    auto* tensors = model_.mutable_graph()->mutable_initializer();
    if (!tensors->empty()) change_tensor(*tensors->Mutable(static_cast<int>(pick(tensors->size()))));
  }

  void opset() {
    static constexpr int64_t kVersions[] = {0, -1, 1, 6, 7, 9, 10, 11, 12, 13, 14, 15, 17, 18, 21, 25, INT32_MAX};
    if (model_.opset_import_size() == 0 || pick(9) == 0) return model_.clear_opset_import();
    auto& import = *model_.mutable_opset_import(static_cast<int>(pick(model_.opset_import_size())));
    import.set_version(pick(9) == 0 ? extreme() : kVersions[pick(std::size(kVersions))]);
    if (pick(4) == 0) model_.set_ir_version(extreme());
  }
  void function() {
    if (model_.functions_size() == 0) return attribute();
    onnx::FunctionProto& changed = *model_.mutable_functions(0);
    switch (pick(4)) {
      case 0: changed.add_input(some_name()); break;
      case 1: changed.set_name("Relu"), changed.set_domain(""); break;
      case 2:  // that calls itself
        changed.mutable_node(0)->set_op_type(changed.name());
        changed.mutable_node(0)->set_domain(changed.domain());
        break;
      default: changed.add_output(some_name());
    }
  }
  void sparse() {
    onnx::SparseTensorProto& added = *model_.mutable_graph()->add_sparse_initializer();
    if (model_.graph().initializer_size() > 0) *added.mutable_values() = model_.graph().initializer(0);
    added.mutable_values()->set_name(some_name());
    added.mutable_indices()->set_data_type(onnx::TensorProto::INT64);
    added.mutable_indices()->add_dims(extreme());
    added.mutable_indices()->add_int64_data(extreme());
    added.add_dims(extreme());
  }

  onnx::ModelProto& model_;
  std::mt19937_64 random_;
};

}  // namespace

void mutate(onnx::ModelProto& model, uint64_t seed) {
  Mutator mutator(model, seed);
  for (uint64_t left = 1 + seed % 4; left > 0; left--) mutator.change();
}

}  // namespace gopt
