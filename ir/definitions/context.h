// What a definition is written with: checked access to inputs and attributes, requirements, outputs. A definition that
// cannot go on throws DefinitionError, which define() turns into an Error. One function define_<Op> a row of the
// operator table.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "gopt/definition.h"

namespace gopt::ir {

class DefinitionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class DefineContext {
 public:
  DefineContext(OpKind kind, const std::vector<TensorExpr>& inputs, const Attributes& attributes, int output_count)
      : info_(op_info(kind)), inputs_(inputs), attributes_(attributes), output_count_(output_count) {}

  size_t input_count() const { return inputs_.size(); }
  int output_count() const { return output_count_; }
  bool has_input(size_t i) const { return i < inputs_.size() && inputs_[i].at; }
  const TensorExpr& input(size_t i) const;  // throws where it is left out
  const Index& extent(size_t i, size_t axis) const { return input(i).shape[axis]; }

  // Attributes, with the table's default where absent. Throws where there is neither, or of another kind.
  bool has(std::string_view name) const;
  Index integer(std::string_view name) const;
  int64_t number(std::string_view name) const;  // throws where symbolic
  std::vector<Index> integers(std::string_view name) const;
  std::vector<Index> integers_or(std::string_view name, std::vector<Index> otherwise) const;
  Expr real(std::string_view name) const;
  std::string text(std::string_view name) const;
  const Tensor& tensor(std::string_view name) const;
  // The axis attribute as a position in [0, rank) (or [0, rank] where `inclusive`).
  size_t axis(std::string_view name, size_t rank, bool inclusive = false) const;
  // The same for a list entry.
  size_t normalize_axis(const Index& axis, size_t rank, bool inclusive = false) const;

  bool has_ceil_mode() const;  // false for operators without that attribute

  void require(const Cond& cond, const std::string& what, bool from_broadcast = false);
  [[noreturn]] void fail(const std::string& what) const;
  void output(ElementType element, Shape shape, ElementFunction at);

  Definition take() { return std::move(definition_); }

 private:
  const AttributeValue* find(std::string_view name) const;
  template <class T>
  const T& get(std::string_view name) const;

  const OpInfo& info_;
  const std::vector<TensorExpr>& inputs_;
  const Attributes& attributes_;
  int output_count_;
  Definition definition_;
};

#define GOPT_OP(name, ...) void define_##name(DefineContext& c);
#include "gopt/op_table.def"
#undef GOPT_OP

// ---- shared by several definitions ----

// Numpy broadcasting of the inputs' shapes; equal extents become requirements.
Shape broadcast_shapes(DefineContext& c, const std::vector<const Shape*>& shapes);
// The element of t that position `subscripts` of a broadcast result reads.
Expr broadcast_at(const TensorExpr& t, const std::vector<Index>& subscripts);

// Strides, dilations and pads of a window over the spatial axes, auto_pad resolved.
struct Window {
  std::vector<Index> kernel, strides, dilations, pads_begin, pads_end, output;
};
Window resolve_window(DefineContext& c, const Shape& spatial, std::vector<Index> kernel);

// Axes of a reduction: all where none are given (none at all with noop_with_empty_axes).
std::vector<bool> reduced_axes(const DefineContext& c, size_t rank);

// Reshape of `t` to `shape`: the subscripts of t that hold element `subscripts` of the result.
std::vector<Index> reshape_subscripts(const Shape& from, const Shape& to, const std::vector<Index>& subscripts);
// The shape attribute of Reshape with 0 and -1 resolved. Throws where that cannot be.
Shape resolve_reshape(DefineContext& c, const Shape& from, const std::vector<Index>& shape, bool allow_zero);

// One axis of Slice after ONNX's clamping: start, extent, step.
struct SliceRange {
  Index start, extent;
  int64_t step;
};
SliceRange resolve_slice(DefineContext& c, const Index& extent, const Index& start, const Index& end, int64_t step);

Index product(const Shape& shape, size_t begin, size_t end);

// floor_div and modulo of a subscript by an extent. An axis of extent 0 has no element to ask for, so any answer does.
Index block_of(const Index& subscript, const Index& extent);
Index place_in_block(const Index& subscript, const Index& extent);

}  // namespace gopt::ir
