#include "gopt/opaque_attributes.h"

#include "tensor_proto.h"

namespace gopt {
namespace {

// Nothing where it is of a kind that is left out.
Result<std::optional<AttributeValue>> value_of(onnx::AttributeProto& proto, ir::ExternalFiles& files) {
  using P = onnx::AttributeProto;
  const auto value = [](AttributeValue v) { return std::optional<AttributeValue>(std::move(v)); };
  switch (proto.type()) {
    case P::INT: return value(Index(proto.i()));
    case P::INTS: return value(std::vector<Index>(proto.ints().begin(), proto.ints().end()));
    case P::FLOAT: return value(static_cast<double>(proto.f()));
    case P::FLOATS: return value(std::vector<double>(proto.floats().begin(), proto.floats().end()));
    case P::STRING: return value(proto.s());
    case P::STRINGS: return value(std::vector<std::string>(proto.strings().begin(), proto.strings().end()));
    case P::TENSOR: {
      ir::TensorSource source{proto.t(), {}};
      GOPT_ASSIGN_OR_RETURN(Tensor tensor, ir::take_tensor(source, files));
      return is_computable(tensor.type()) ? value(std::move(tensor)) : std::nullopt;
    }
    default: return std::optional<AttributeValue>();
  }
}

}  // namespace

Result<Attributes> attributes_of(const OpaqueOp& op) {
  onnx::NodeProto node;
  GOPT_CHECK(node.ParseFromString(op.payload), "an opaque node keeps a message");
  ir::ExternalFiles none("");  // external tensors were read in
  Attributes attributes;
  for (onnx::AttributeProto& proto : *node.mutable_attribute()) {
    GOPT_ASSIGN_OR_RETURN(auto value, value_of(proto, none).with_context("attribute `" + proto.name() + "`"));
    if (value) attributes.emplace(proto.name(), *std::move(value));
  }
  return attributes;
}

}  // namespace gopt
