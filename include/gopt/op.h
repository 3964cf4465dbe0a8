// The operator table as values: kinds, traits and attribute schemas, expanded from op_table.def. See definition.h for
// what an operator computes and graph.h for nodes that apply one.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gopt/index.h"
#include "gopt/type.h"

namespace gopt {

enum class OpKind {
  Input,     // a graph input or a rule's variable
  Constant,  // an initializer
  Opaque,    // an operator without a definition here, kept as it is
#define GOPT_OP(name, ...) name,
#include "gopt/op_table.def"
#undef GOPT_OP
};

enum Trait : unsigned {
  kElementwise = 1u << 0,   // the output element at i depends on the (broadcast) input elements at i alone
  kCommutative = 1u << 1,   // inputs may be exchanged
  kMultilinear = 1u << 2,   // linear in each data input, the others fixed
  kDataMovement = 1u << 3,  // each output element is an input element or a constant
  kComposite = 1u << 4,     // named composition of others; stays one node
  kShapeOnly = 1u << 5,     // reads no element of its inputs
  kInternal = 1u << 6,      // no ONNX operator of that name
};

// A float attribute that a rule leaves open: scalar input number `slot` of the definition in which it occurs, so that
// the definition's expressions hold read(slot, {}) where they would hold the number.
struct FloatVariable {
  std::string name;
  int slot = 0;
  friend bool operator==(const FloatVariable&, const FloatVariable&) = default;
};

// int: Index; ints: vector<Index>; both may hold symbols in rules.
using AttributeValue = std::variant<Index, std::vector<Index>, double, std::vector<double>, std::string,
                                    std::vector<std::string>, Tensor, FloatVariable>;
// Sorted by name; equality is by value (tensors by content id).
using Attributes = std::map<std::string, AttributeValue, std::less<>>;
bool equal(const AttributeValue& a, const AttributeValue& b);
std::string to_string(const AttributeValue& value);
void collect_symbols(const AttributeValue& value, std::set<AtomId>& out);

enum class AttributeKind { Int, Ints, Float, Floats, String, Tensor };
struct AttributeSchema {
  std::string name;
  AttributeKind kind;
  bool required = false;
  std::optional<AttributeValue> default_value;
};
struct OnnxInput {
  std::string attribute;
  int since_opset;
};
struct OpInfo {
  OpKind kind;
  std::string name;
  int since_opset;
  int min_inputs, max_inputs;  // max -1: any number
  int outputs;                 // -1: as the node says
  unsigned traits;
  std::vector<AttributeSchema> attributes;
  std::vector<OnnxInput> onnx_inputs;
  std::string meaning;

  bool has(Trait trait) const { return (traits & trait) != 0; }
  const AttributeSchema* find_attribute(std::string_view attribute) const;
};

const OpInfo& op_info(OpKind kind);  // also of Input, Constant and Opaque
std::optional<OpKind> find_op(std::string_view name);
const std::vector<OpKind>& all_ops();  // those of the table

}  // namespace gopt
