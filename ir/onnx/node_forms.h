// Operators whose form in some opset differs from the operator table's: each is brought to the table's form here, or
// left to be opaque (an empty result).
#pragma once

#include "import_state.h"

namespace gopt::ir {

struct NodeView {
  const onnx::NodeProto& node;
  std::vector<Value> inputs;  // null where left out; no trailing nulls
  NameScope& scope;
  int64_t opset;

  const onnx::AttributeProto* find(const std::string& name) const;
  Value input(size_t i) const { return i < inputs.size() ? inputs[i] : Value{}; }
  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  // True where output i is named and somebody reads it.
  bool output_used(int i) const;
};

using Values = std::vector<Value>;
using MaybeValues = std::optional<Values>;

// False for operators of opsets before 7 whose form or meaning was another.
bool has_table_form(OpKind kind, int64_t opset);

// Where one of these applies, what it gives is final.
enum class Form { Plain, Special };
Form form_of(const NodeView& view, OpKind kind);
// Whether a bound of 64-bit integers is the end of its type, which bounds nothing.
bool is_end_of_type(const Value& bound, bool is_lower);
Result<MaybeValues> import_special(ImportState& state, const NodeView& view, OpKind kind);

// Dropout and `Constant`, which have no row in the table. `position`: of the node in the main graph.
Result<MaybeValues> import_dropout(ImportState& state, const NodeView& view);
Result<Value> import_constant_node(ImportState& state, onnx::NodeProto& node, int position, const NameScope& scope);

}  // namespace gopt::ir
