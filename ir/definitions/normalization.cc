// Normalizations and softmax, in their numerically stable forms: two-pass variance, maximum subtracted.
#include "context.h"

namespace gopt::ir {
namespace {

// Subscripts with the axes from `first` on replaced by k.
std::vector<Index> with_tail(const std::vector<Index>& i, size_t first, const std::vector<Index>& k) {
  std::vector<Index> s(i.begin(), i.begin() + static_cast<ptrdiff_t>(first));
  s.insert(s.end(), k.begin(), k.end());
  return s;
}

// Mean and variance of x over its axes from `first` on, at subscripts i.
struct Moments {
  Expr mean, variance;
};
Moments moments(const TensorExpr& x, size_t first, const std::vector<Index>& i) {
  const std::vector<Index> extents(x.shape.begin() + static_cast<ptrdiff_t>(first), x.shape.end());
  const Expr count = size_of(product(x.shape, first, x.shape.size()));
  const Expr mean =
      reduce(ReduceKind::Sum, extents, [&](const std::vector<Index>& k) { return x.at(with_tail(i, first, k)); }) /
      count;
  const Expr variance = reduce(ReduceKind::Sum, extents,
                               [&](const std::vector<Index>& k) {
                                 const Expr centered = x.at(with_tail(i, first, k)) - mean;
                                 return centered * centered;
                               }) /
                        count;
  return {mean, variance};
}

Expr square_root(const Expr& x) { return call(Function::Sqrt, {x}); }

TensorExpr channel_vector(DefineContext& c, size_t input, const Index& channels, const char* what) {
  const TensorExpr t = c.input(input);
  if (t.shape.size() != 1) c.fail(std::string(what) + " is a vector");
  c.require(equal(t.shape[0], channels), std::string(what) + " has an element a channel");
  return t;
}

}  // namespace

void define_BatchNormalization(DefineContext& c) {
  const TensorExpr x = c.input(0);
  if (x.shape.size() < 2) c.fail("x has at least two axes");
  if (c.number("training_mode") != 0) c.fail("training mode is not defined");
  if (c.number("spatial") != 1) c.fail("spatial=0 is not defined");
  const TensorExpr scale = channel_vector(c, 1, x.shape[1], "scale"), bias = channel_vector(c, 2, x.shape[1], "bias");
  const TensorExpr mean = channel_vector(c, 3, x.shape[1], "mean"),
                   variance = channel_vector(c, 4, x.shape[1], "variance");
  const Expr epsilon = c.real("epsilon");
  c.output(x.element, x.shape, [=](const std::vector<Index>& i) {
    const std::vector<Index> channel{i[1]};
    return (x.at(i) - mean.at(channel)) * (scale.at(channel) / square_root(variance.at(channel) + epsilon)) +
           bias.at(channel);
  });
}

void define_InstanceNormalization(DefineContext& c) {
  const TensorExpr x = c.input(0);
  if (x.shape.size() < 3) c.fail("x has at least three axes");
  const TensorExpr scale = channel_vector(c, 1, x.shape[1], "scale"), bias = channel_vector(c, 2, x.shape[1], "bias");
  c.require(at_least(product(x.shape, 2, x.shape.size()), Index(1)), "spatial extents are positive");
  const Expr epsilon = c.real("epsilon");
  c.output(x.element, x.shape, [=](const std::vector<Index>& i) {
    const Moments m = moments(x, 2, i);
    return (x.at(i) - m.mean) / square_root(m.variance + epsilon) * scale.at({i[1]}) + bias.at({i[1]});
  });
}

void define_LayerNormalization(DefineContext& c) {
  const TensorExpr x = c.input(0), scale = c.input(1);
  const TensorExpr bias = c.has_input(2) ? c.input(2) : TensorExpr{};
  const size_t first = c.axis("axis", x.shape.size());
  const Expr epsilon = c.real("epsilon");
  const Shape normalized(x.shape.begin() + static_cast<ptrdiff_t>(first), x.shape.end());
  c.require(at_least(product(x.shape, first, x.shape.size()), Index(1)), "the normalized axes are not empty");
  for (const TensorExpr* t : {&scale, &bias}) {
    if (!t->at) continue;
    if (t->shape.size() > x.shape.size()) c.fail("scale and bias broadcast to x");
    for (size_t k = 0; k < t->shape.size(); k++) {
      const Index& full = x.shape[x.shape.size() - t->shape.size() + k];
      if (t->shape[k] != Index(1)) c.require(equal(t->shape[k], full), "scale and bias broadcast to x", true);
    }
  }
  c.output(x.element, x.shape, [=](const std::vector<Index>& i) {
    const Moments m = moments(x, first, i);
    const Expr y = (x.at(i) - m.mean) / square_root(m.variance + epsilon) * broadcast_at(scale, i);
    return bias.at ? y + broadcast_at(bias, i) : y;
  });
  Shape kept = x.shape;
  std::fill(kept.begin() + static_cast<ptrdiff_t>(first), kept.end(), Index(1));
  // Where the statistics are asked for, their own subscripts in the normalized axes are 0. They are floats
  // (stash_type).
  const auto as_float = [=](const Expr& value) {
    return x.element == ElementType::Float64 ? convert(ElementType::Float32, value) : value;
  };
  c.output(ElementType::Float32, kept,
           [=](const std::vector<Index>& i) { return as_float(moments(x, first, i).mean); });
  c.output(ElementType::Float32, kept, [=](const std::vector<Index>& i) {
    return as_float(constant(1) / square_root(moments(x, first, i).variance + epsilon));
  });
}

namespace {

struct SoftmaxParts {
  Expr shifted, sum;
};
SoftmaxParts softmax_parts(const TensorExpr& x, size_t axis, const std::vector<Index>& i) {
  auto along = [&](const Index& k) {
    std::vector<Index> s = i;
    s[axis] = k;
    return x.at(s);
  };
  const Expr largest =
      reduce(ReduceKind::Max, {x.shape[axis]}, [&](const std::vector<Index>& k) { return along(k[0]); });
  const Expr sum = reduce(ReduceKind::Sum, {x.shape[axis]},
                          [&](const std::vector<Index>& k) { return call(Function::Exp, {along(k[0]) - largest}); });
  return {x.at(i) - largest, sum};
}

}  // namespace

void define_Softmax(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const size_t axis = c.axis("axis", x.shape.size());
  c.output(x.element, x.shape, [=](const std::vector<Index>& i) {
    const SoftmaxParts p = softmax_parts(x, axis, i);
    return call(Function::Exp, {p.shifted}) / p.sum;
  });
}

void define_LogSoftmax(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const size_t axis = c.axis("axis", x.shape.size());
  c.output(x.element, x.shape, [=](const std::vector<Index>& i) {
    const SoftmaxParts p = softmax_parts(x, axis, i);
    return p.shifted - call(Function::Log, {p.sum});
  });
}

}  // namespace gopt::ir
