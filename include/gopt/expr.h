// Scalar expressions: what one element of a tensor is. Read from inputs at Index subscripts, guards (Select over a
// Cond), arithmetic, named functions, and reductions over ranges. Immutable and shared; equal expressions compare equal
// also when they were built apart, since reductions name their binders by nesting height. See definition.h for who
// builds them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "gopt/index.h"
#include "gopt/type.h"

namespace gopt {

enum class Function {
#define GOPT_FUNCTION(name, arity, text, numeric) name,
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
};
std::string_view function_text(Function function);

enum class ExprKind {
  Constant,  // value, the exact rational of its bits
  Size,      // an Index as a number
  Read,      // input number `input` at `subscripts`
  Add,
  Subtract,
  Multiply,
  Divide,  // Divide is real division, except in integer expressions, where it truncates (ONNX Div)
  Maximum,
  Minimum,
  Less,
  Equal,    // 1 or 0
  Call,     // named function of args
  Select,   // cond ? args[0] : args[1], cond over indexes
  Choose,   // args[0] != 0 ? args[1] : args[2]
  Convert,  // args[0] as element type `type`; to integer types truncates toward zero, to bool compares with 0
  Reduce,   // reduction of args[0] over binders
};
// Sum and Product of nothing are 0 and 1; Max and Min of nothing are not defined (definitions require non-empty
// ranges).
enum class ReduceKind { Sum, Max, Min, Product };

struct Binder {
  AtomId symbol;
  Index extent;  // the symbol ranges over [0, extent)
};

class Expr {
 public:
  struct Node {
    ExprKind kind;
    double value = 0;
    Index index;
    int input = 0;
    std::vector<Index> subscripts;
    std::vector<Expr> args;
    Function function = Function::Exp;
    Cond cond;
    ElementType type = ElementType::Undefined;
    ReduceKind reduce = ReduceKind::Sum;
    std::vector<Binder> binders;
    // derived when built
    size_t hash = 0;
    int height = 0;  // of reductions
  };
  Expr() = default;
  explicit Expr(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  static Expr make(Node node);  // computes what is derived; the functions below are the usual way

  const Node* operator->() const { return node_.get(); }
  const Node& operator*() const { return *node_; }
  const Node* get() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  std::shared_ptr<const Node> node_;
};

bool operator==(const Expr& a, const Expr& b);

Expr constant(double value);
Expr size_of(const Index& index);
Expr read(int input, std::vector<Index> subscripts);
Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b);
Expr maximum(const Expr& a, const Expr& b);
Expr minimum(const Expr& a, const Expr& b);
Expr is_less(const Expr& a, const Expr& b);
Expr is_equal(const Expr& a, const Expr& b);
Expr call(Function function, std::vector<Expr> args);
Expr select(const Cond& cond, const Expr& then, const Expr& otherwise);
Expr choose(const Expr& test, const Expr& then, const Expr& otherwise);
Expr convert(ElementType type, const Expr& a);
// Reduces body(k_0, ..., k_n) over 0 <= k_i < extents[i]. Binders of a constant extent 1 are replaced by 0.
Expr reduce(ReduceKind kind, const std::vector<Index>& extents,
            const std::function<Expr(const std::vector<Index>&)>& body);

Expr substitute(const Expr& expr, const Substitution& substitution);  // capture-avoiding
// The same value with floor divisions and guards resolved that the ranges and those of binders decide, others in lowest
// terms.
Expr simplify(const Expr& expr, const Ranges& ranges);
// Replaces each read of an input by producer(input, subscripts); an empty result keeps the read.
using ReadFunction = std::function<Expr(int input, const std::vector<Index>& subscripts)>;
Expr replace_reads(const Expr& expr, const ReadFunction& producer);
void collect_symbols(const Expr& expr, std::set<AtomId>& out);  // free ones only
std::string to_string(const Expr& expr);

}  // namespace gopt
