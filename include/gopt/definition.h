// What an operator computes: define() gives each output's extents, element type and element expression over reads of
// the inputs, and the requirements on extents and attributes under which that is meant. The interpreter, the prover,
// region analysis, code generation and work estimates all start here; nothing else says what an operator does.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gopt/expr.h"
#include "gopt/op.h"
#include "gopt/result.h"

namespace gopt {

// The element at some subscripts. Copies share one function: a definition's holds those of its inputs, and they those
// of theirs, so that copies of all that would double with every value of a graph that is used twice.
class ElementFunction {
 public:
  using Function = std::function<Expr(const std::vector<Index>& subscripts)>;
  ElementFunction() = default;
  template <class F, class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, ElementFunction>>>
  ElementFunction(F&& function) : function_(std::make_shared<const Function>(std::forward<F>(function))) {}

  Expr operator()(const std::vector<Index>& subscripts) const { return (*function_)(subscripts); }
  explicit operator bool() const { return function_ != nullptr; }

 private:
  std::shared_ptr<const Function> function_;
};

// A tensor as a function of its subscripts. `at` may be called with any Index values, symbolic or not.
struct TensorExpr {
  ElementType element = ElementType::Undefined;
  Shape shape;
  ElementFunction at;
  // For constant inputs: the data, for the operators whose output shape depends on it (Range).
  const Tensor* data = nullptr;
  // For reads that may stand as an index (Gather's indices): the input number that `at` reads plainly, else -1.
  int plain_input = -1;
};

// The tensor whose element at i is read(input, i).
TensorExpr input_tensor(int input, const TensorType& type);

struct Requirement {
  Cond cond;
  std::string what;  // "channels of x and w agree"
  // Two extents are taken to be equal, where ONNX would also allow either to be 1. Rules enumerate which extents are 1;
  // in a model with symbolic extents such an output has an unknown shape.
  bool from_broadcast = false;
};

struct Definition {
  std::vector<TensorExpr> outputs;
  std::vector<Requirement> requirements;  // those that are neither true nor false yet; symbolic only
};

// The definition of `kind` applied to `inputs` (an input that is left out has element Undefined and no `at`).
// `output_count` matters for operators with a variable number of outputs. Errors: wrong arity, unknown or ill-typed
// attribute, ranks that do not fit, a requirement that is false. Precondition: `kind` is of the table.
Result<Definition> define(OpKind kind, const std::vector<TensorExpr>& inputs, const Attributes& attributes,
                          int output_count = 1);

// Attributes with defaults filled in and forms that mean the same made equal: axes non-negative where the rank is
// known, auto_pad resolved into pads, kernel_shape of convolutions dropped, perm, strides, dilations and pads explicit.
// Errors as define(), for attributes alone.
Result<Attributes> canonical_attributes(OpKind kind, const std::vector<TensorType>& inputs,
                                        const Attributes& attributes, int output_count);

// Output types by define(). An input of unknown shape gives outputs of unknown shape.
struct InferredTypes {
  std::vector<TensorType> outputs;
  std::vector<Requirement> requirements;
};
Result<InferredTypes> infer_types(OpKind kind, const std::vector<TensorType>& inputs, const Attributes& attributes,
                                  int output_count = 1);

// What an operator's row and definition say: its traits, and elements and requirements on probing shapes.
std::string definition_text(OpKind kind);
// 64-bit hashes of these texts, hexadecimal: of one operator, and of the whole table.
std::string definition_hash(OpKind kind);
std::string definitions_hash();

// ---- staging: reductions that an element shares with others, computed once ----

// One tensor of a staged definition: its element expression over output symbols `axes` (one for each extent), which
// reads inputs (0..n-1) and earlier stages (n..).
struct Stage {
  ElementType element;
  Shape shape;
  std::vector<AtomId> axes;
  Expr value;
};
// The stages of one output, the last is the output itself. Each reduction that does not depend on all axes, or is
// nested in another and independent of its binders, becomes a stage of its own. Such stages are Int64 or Float64;
// `narrow` makes the latter Float32.
std::vector<Stage> stage(const TensorExpr& output, const std::vector<ElementType>& input_types, bool narrow);

// Whether an expression is over integers (and bool) or reals; constants and sizes alone are either.
enum class Domain { Either, Integer, Real };
Domain domain_of(const Expr& expr, const std::vector<ElementType>& input_types);

// Work of one output by its definition: scalar operations and elements read and written (each input element once).
struct Work {
  double operations = 0;
  double elements_read = 0;
  double elements_written = 0;
};
Work estimate_work(const TensorExpr& output);  // precondition: static shape

}  // namespace gopt
