// Reductions over a set of axes.
#include "context.h"
#include "gopt/wide_integers.h"

namespace gopt::ir {

std::vector<bool> reduced_axes(const DefineContext& c, size_t rank) {
  const std::vector<Index> axes = c.has("axes") ? c.integers("axes") : std::vector<Index>{};
  if (axes.empty()) return std::vector<bool>(rank, c.number("noop_with_empty_axes") == 0);
  std::vector<bool> reduced(rank, false);
  for (const Index& axis : axes) {
    const size_t position = c.normalize_axis(axis, rank);
    if (reduced[position]) c.fail("axis " + std::to_string(position) + " is given twice");
    reduced[position] = true;
  }
  return reduced;
}

namespace {

struct Reduction {
  ReduceKind kind = ReduceKind::Sum;
  std::function<Expr(const Expr&)> before;                             // on each element
  std::function<Expr(const Expr& reduced, const Index& count)> after;  // on the result
  bool needs_elements = false;                                         // of nothing it is not defined
};

// Output subscripts to input subscripts: k fills the reduced axes in order.
std::vector<Index> joined(const std::vector<bool>& reduced, bool keep, const std::vector<Index>& i,
                          const std::vector<Index>& k) {
  std::vector<Index> s;
  size_t own = 0, inner = 0;
  for (bool r : reduced) {
    if (r) {
      s.push_back(k[inner++]);
      own += keep ? 1 : 0;
    } else {
      s.push_back(i[own++]);
    }
  }
  return s;
}

void reduction(DefineContext& c, const Reduction& r) {
  const TensorExpr x = c.input(0);
  const std::vector<bool> reduced = reduced_axes(c, x.shape.size());
  const bool keep = c.number("keepdims") != 0;
  std::vector<Index> extents;
  Shape shape;
  Index count(1);
  for (size_t axis = 0; axis < x.shape.size(); axis++) {
    if (reduced[axis]) {
      extents.push_back(x.shape[axis]);
      count = count * x.shape[axis];
    }
    if (!reduced[axis] || keep) shape.push_back(reduced[axis] ? Index(1) : x.shape[axis]);
  }
  if (r.needs_elements) c.require(at_least(count, Index(1)), "the reduced axes are not empty");
  c.output(x.element, shape, [=](const std::vector<Index>& i) {
    const Expr value = reduce(r.kind, extents, [&](const std::vector<Index>& k) {
      const Expr element = x.at(joined(reduced, keep, i, k));
      return r.before ? r.before(element) : element;
    });
    return r.after ? r.after(value, count) : value;
  });
}

Expr magnitude(const Expr& x) { return maximum(x, constant(0) - x); }
Expr square(const Expr& x) { return x * x; }

}  // namespace

void define_ReduceSum(DefineContext& c) { reduction(c, {}); }
void define_ReduceMean(DefineContext& c) {
  reduction(c, {ReduceKind::Sum, {}, [](const Expr& sum, const Index& count) { return sum / size_of(count); }, true});
}
void define_ReduceMax(DefineContext& c) { reduction(c, {ReduceKind::Max, {}, {}, true}); }
void define_ReduceMin(DefineContext& c) { reduction(c, {ReduceKind::Min, {}, {}, true}); }
void define_ReduceProd(DefineContext& c) { reduction(c, {ReduceKind::Product}); }
void define_ReduceL1(DefineContext& c) {
  if (has_no_sign(c.input(0).element)) return reduction(c, {});
  reduction(c, {ReduceKind::Sum, magnitude});
}
void define_ReduceL2(DefineContext& c) {
  reduction(c, {ReduceKind::Sum, square, [](const Expr& sum, const Index&) { return call(Function::Sqrt, {sum}); }});
}
void define_ReduceSumSquare(DefineContext& c) { reduction(c, {ReduceKind::Sum, square}); }
void define_ReduceLogSum(DefineContext& c) {
  reduction(c, {ReduceKind::Sum, {}, [](const Expr& sum, const Index&) { return call(Function::Log, {sum}); }});
}

// m + ln sum e^(x - m), where m is the maximum: the form that does not overflow. Where the maximum is infinite m is 0:
// the sum then is infinite or 0, and its logarithm what it is to be.
void define_ReduceLogSumExp(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const std::vector<bool> reduced = reduced_axes(c, x.shape.size());
  const bool keep = c.number("keepdims") != 0;
  std::vector<Index> extents;
  Shape shape;
  Index count(1);
  for (size_t axis = 0; axis < x.shape.size(); axis++) {
    if (reduced[axis]) extents.push_back(x.shape[axis]);
    if (reduced[axis]) count = count * x.shape[axis];
    if (!reduced[axis] || keep) shape.push_back(reduced[axis] ? Index(1) : x.shape[axis]);
  }
  c.require(at_least(count, Index(1)), "the reduced axes are not empty");
  c.output(x.element, shape, [=](const std::vector<Index>& i) {
    const Expr largest = reduce(ReduceKind::Max, extents,
                                [&](const std::vector<Index>& k) { return x.at(joined(reduced, keep, i, k)); });
    const Expr m = choose(is_equal(largest - largest, constant(0)), largest, constant(0));
    const Expr sum = reduce(ReduceKind::Sum, extents, [&](const std::vector<Index>& k) {
      return call(Function::Exp, {x.at(joined(reduced, keep, i, k)) - m});
    });
    return m + call(Function::Log, {sum});
  });
}

}  // namespace gopt::ir
