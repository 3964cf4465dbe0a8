// What operators without a row in the table are lowered with: checked access to a node's inputs and attributes, and
// nodes of the table's operators in their place. What cannot be lowered throws Unlowered, and the node stays as it is.
#pragma once

#include "node_forms.h"

namespace gopt::ir {

struct Unlowered {};

// Nodes that are made while it lives are those of a graph of its own, which is then the state's builder's.
class Aside {
 public:
  explicit Aside(ImportState& state) : state_(state) { std::swap(own_, state_.builder); }
  ~Aside() { std::swap(own_, state_.builder); }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

 private:
  ImportState& state_;
  GraphBuilder own_;
};

class Lowering {
 public:
  Lowering(ImportState& state, const NodeView& view, bool is_for_types = false)
      : state_(state), view_(view), is_for_types_(is_for_types) {}

  // Whether nothing but the types of the results is asked for: constants need not be worked out.
  bool is_for_types() const { return is_for_types_; }
  int64_t opset() const { return view_.opset; }
  bool has(size_t i) const { return view_.has(i); }
  bool output_used(int i) const { return view_.output_used(i); }
  int input_count() const { return static_cast<int>(view_.inputs.size()); }
  int output_count() const { return view_.node.output_size(); }
  Value input(size_t i) const;                                // of a computable type and known rank
  Value any_input(size_t i) const { return view_.input(i); }  // of any type; null where it is left out
  std::vector<int64_t> numbers(size_t i) const;               // elements of an integer input that is known
  std::vector<Index> indexes(size_t i) const;                 // of one that may be of open extents, too
  std::vector<double> reals(size_t i) const;                  // elements of an input that is a constant

  bool has_attribute(const std::string& name) const { return find(name) != nullptr; }
  int64_t integer(const std::string& name, int64_t otherwise) const;
  double real(const std::string& name, double otherwise) const;
  std::string text(const std::string& name, const std::string& otherwise) const;
  std::vector<int64_t> integers(const std::string& name, std::vector<int64_t> otherwise) const;
  std::vector<double> floats(const std::string& name) const;
  std::vector<std::string> texts(const std::string& name) const;  // empty where it is absent
  // False where the node says more than was asked for: an attribute of a newer opset may mean anything.
  bool knows_all_attributes() const;
  // What a subgraph gives for these inputs, its nodes in place here; throws where some of them stay as they are.
  Values body(const std::string& name, const Values& inputs);
  // The axis as a position in [0, rank).
  int64_t axis(int64_t given, size_t rank) const;

  // A node; one of an operator or attribute that the model's opset lacks could not be written again.
  Value op(OpKind kind, Values inputs, Attributes attributes = {});
  NodePtr node(OpKind kind, Values inputs, Attributes attributes, int output_count);
  Value constant(Tensor tensor) { return state_.builder.constant(std::move(tensor)); }
  Value scalar(ElementType type, double value);
  Value integers_constant(const std::vector<int64_t>& values) { return constant(Tensor::vector_i64(values)); }

  // Shorthands.
  Value add(const Value& a, const Value& b) { return op(OpKind::Add, {a, b}); }
  Value sub(const Value& a, const Value& b) { return op(OpKind::Sub, {a, b}); }
  Value mul(const Value& a, const Value& b) { return op(OpKind::Mul, {a, b}); }
  Value div(const Value& a, const Value& b) { return op(OpKind::Div, {a, b}); }
  Value where(const Value& test, const Value& a, const Value& b) { return op(OpKind::Where, {test, a, b}); }
  Value cast(const Value& x, ElementType to);  // x itself where it is of that type
  Value reshape(const Value& x, const Shape& shape);
  Value transpose(const Value& x, const std::vector<int64_t>& perm);
  Value unsqueeze(const Value& x, int64_t axis) {
    return op(OpKind::Unsqueeze, {x}, {{"axes", std::vector<Index>{axis}}});
  }
  Value slice(const Value& x, int64_t axis, const Index& start, const Index& end, int64_t step = 1);
  Value concat(const Values& parts, int64_t axis) { return op(OpKind::Concat, parts, {{"axis", Index(axis)}}); }
  Value expand(const Value& x, const Shape& shape) { return op(OpKind::Expand, {x}, {{"shape", shape}}); }
  Value reduce(OpKind kind, const Value& x, const std::vector<Index>& axes, bool keep = true);
  // Elements of x at `places` along the axis, which are of x's other extents and not below zero.
  Value elements_at(const Value& x, const Value& places, int64_t axis);
  // 0, 1, ..., count - 1 along `axis` of a tensor of `rank` axes, the others of extent 1. Of a count that is open each
  // is counted by those before it, from opset 14 on.
  Value range(const Index& count, int64_t axis, size_t rank, ElementType type = ElementType::Int64);
  // Of `count` by `count` integers 1 on and below the diagonal number k, or (upper) on and above it, 0 elsewhere.
  Value triangle(const Index& count, int64_t k, bool upper);
  // What `make` builds by these functions, as a graph of its own, whose inputs and outputs are made by graph_input()
  // and graph_output() there.
  template <class Make>
  Graph apart(const Make& make) {
    const Aside aside(state_);
    make();
    return state_.builder.build();
  }
  Value graph_input(const std::string& name, const TensorType& type) { return state_.builder.input(name, type); }
  void graph_output(const std::string& name, const Value& value) { state_.builder.output(name, value); }
  // A node of that meaning, with inputs as it says (gopt/recurrence.h).
  NodePtr recurrence(std::shared_ptr<const Recurrence> recurrence, Values inputs, std::vector<TensorType> outputs);
  // x where its rows along the axis are read whole, for a row's function (gopt/row_function.h), in a type that this
  // has; nothing where other nodes do and they are short, or constants, which are computed once; or of another type.
  std::optional<Value> whole_rows(const Value& x, int64_t axis, bool has_other_nodes = true);
  // `taken`: of a Top, how many elements.
  NodePtr row_function(RowFunction function, const Value& x, const Index& taken = Index(0));
  // Numbers along `axis` of a tensor of `rank` axes, the others of extent 1.
  Value along(const std::vector<double>& values, int64_t axis, size_t rank, ElementType type);

  [[noreturn]] static void leave() { throw Unlowered(); }
  static void require(bool holds) {
    if (!holds) leave();
  }

 private:
  const onnx::AttributeProto* find(const std::string& name) const;

  ImportState& state_;
  const NodeView& view_;
  const bool is_for_types_;
  mutable std::set<std::string> asked_;  // attributes
};

Value optional_input(const Lowering& l, size_t i);  // null where it is left out
// A convolution's: auto_pad, group, and of these lists those that the node has.
Attributes window_attributes(const Lowering& l, std::initializer_list<const char*> lists);
const Shape& shape_of(const Value& x);
ElementType type_of(const Value& x);
size_t rank_of(const Value& x);
const Index& open_extent_of(const Value& x, int64_t axis);  // throws where x has no such axis
int64_t extent_of(const Value& x, int64_t axis);            // throws where it is symbolic, too

// By operator: its outputs, in order; a null value for one that nobody reads.
using LowerFunction = Values (*)(Lowering&);
struct LoweredOperator {
  const char* name;
  LowerFunction lower;
};
std::span<const LoweredOperator> lowered_counting();       // positions, comparisons, shifts: lower_counting.cc
std::span<const LoweredOperator> lowered_normalization();  // lower_normalization.cc
std::span<const LoweredOperator> lowered_quantized();      // lower_quantized.cc
std::span<const LoweredOperator> lowered_sampling();       // lower_sampling.cc
std::span<const LoweredOperator> lowered_grids();          // lower_grid.cc
std::span<const LoweredOperator> lowered_products();       // lower_products.cc
std::span<const LoweredOperator> lowered_recurrent();      // lower_recurrent.cc
std::span<const LoweredOperator> lowered_scatter();        // lower_scatter.cc
std::span<const LoweredOperator> lowered_selection();      // lower_selection.cc
std::span<const LoweredOperator> lowered_control();        // lower_control.cc
std::span<const LoweredOperator> lowered_spectral();       // lower_spectral.cc
std::span<const LoweredOperator> lowered_training();       // optimizers' steps, n-grams: lower_training.cc
std::span<const LoweredOperator> lowered_regions();        // lower_regions.cc
std::span<const LoweredOperator> lowered_attention();      // lower_attention.cc
std::span<const LoweredOperator> lowered_bits();           // lower_bits.cc
std::span<const LoweredOperator> lowered_old();            // forms before opset 7: lower_old.cc

// Of com.microsoft: lower_microsoft.cc (on integers), lower_fused.cc, lower_fused_attention.cc.
std::span<const LoweredOperator> lowered_microsoft();
std::span<const LoweredOperator> lowered_fused();
std::span<const LoweredOperator> lowered_fused_attention();
std::span<const LoweredOperator> lowered_fused_in_onnx();  // in ONNX's domain, which has none of that name there

bool is_of_microsoft(const onnx::NodeProto& node);
// The node as others of the table; nothing where it is none of these operators or has a form that is left as it is. An
// operator may have several rows, each for other forms.
Result<MaybeValues> lower_operator(ImportState& state, const NodeView& view);
// The same of a node of com.microsoft, and of its QuantizeLinear and DequantizeLinear, which are ONNX's.
Result<MaybeValues> lower_microsoft(ImportState& state, const NodeView& view);
// The types of a node's outputs by what it would be lowered to, where ONNX's own inference knows nothing of it: of
// com.microsoft, and of what ONNX Runtime keeps in ONNX's domain; empty where it is none of these. The state stays as
// it is.
std::vector<TensorType> types_if_lowered(ImportState& state, const NodeView& view);

}  // namespace gopt::ir
