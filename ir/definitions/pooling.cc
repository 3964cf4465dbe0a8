// Windows over spatial axes, and pooling.
#include <cmath>

#include "context.h"

namespace gopt::ir {
namespace {

// Output extent with ceil_mode: rounded up, but the last window must start inside the input or its left padding.
Index ceil_output(DefineContext& c, const Index& padded, const Index& reach, const Index& stride, const Index& extent,
                  const Index& begin) {
  const Index out = ceil_div(padded - reach, stride) + Index(1);
  // It does where the window reaches over a stride and the right padding.
  const Index overlap = reach - stride - (padded - extent - begin);
  if (overlap.is_constant() && overlap.constant() >= 0) return out;
  if (!out.is_constant() || !stride.is_constant() || !extent.is_constant() || !begin.is_constant())
    c.fail("ceil_mode: whether the last window of an axis of extent " + to_string(extent) +
           " starts inside is not known for all sizes; give extents as numbers, or a window of " + to_string(reach) +
           " places that is no smaller than its stride and right padding together, " +
           to_string(stride + padded - extent - begin));
  const bool outside = (out.constant() - 1) * stride.constant() >= extent.constant() + begin.constant();
  return outside ? out - Index(1) : out;
}

// Padding of both sides together by which an axis keeps ceil(extent / stride) places.
Index same_padding(DefineContext& c, const Index& extent, const Index& stride, const Index& reach) {
  if (stride == Index(1)) return reach - Index(1);
  if (!extent.is_constant() || !stride.is_constant() || !reach.is_constant())
    c.fail("auto_pad needs static extents, or a stride of 1");
  const int64_t last = (ceil_div(extent, stride).constant() - 1) * stride.constant();
  return Index(std::max<int64_t>(0, last + reach.constant() - extent.constant()));
}

}  // namespace

Window resolve_window(DefineContext& c, const Shape& spatial, std::vector<Index> kernel) {
  const size_t axes = spatial.size();
  Window w{std::move(kernel),
           c.integers_or("strides", std::vector<Index>(axes, Index(1))),
           c.integers_or("dilations", std::vector<Index>(axes, Index(1))),
           {},
           {},
           {}};
  if (w.kernel.size() != axes)
    c.fail("kernel_shape has " + std::to_string(w.kernel.size()) + " entries for " + std::to_string(axes) +
           " spatial axes");
  const std::vector<Index> pads = c.integers_or("pads", std::vector<Index>(2 * axes, Index(0)));
  const std::string auto_pad = c.text("auto_pad");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER";
  if (!same && auto_pad != "NOTSET" && auto_pad != "VALID") c.fail("auto_pad \"" + auto_pad + "\" is not known");
  const bool ceil = c.has_ceil_mode();
  for (size_t d = 0; d < axes; d++) {
    c.require(at_least(w.strides[d], Index(1)), "strides are positive");
    c.require(at_least(w.dilations[d], Index(1)), "dilations are positive");
    c.require(at_least(w.kernel[d], Index(1)), "kernel extents are positive");
    c.require(at_least(pads[d], Index(0)) && at_least(pads[axes + d], Index(0)), "pads are not negative");
    const Index reach = (w.kernel[d] - Index(1)) * w.dilations[d] + Index(1);
    Index begin = auto_pad == "VALID" ? Index(0) : pads[d], end = auto_pad == "VALID" ? Index(0) : pads[axes + d];
    if (same) {
      const Index total = same_padding(c, spatial[d], w.strides[d], reach), half = floor_div(total, Index(2));
      begin = auto_pad == "SAME_UPPER" ? half : total - half;
      end = total - begin;
    }
    const Index padded = spatial[d] + begin + end;
    // With ceil_mode it may reach beyond the end by less than a stride: it is the last window then.
    const Index room = ceil ? padded + w.strides[d] - Index(1) : padded;
    c.require(at_least(room, reach),
              "the window, " + to_string(reach) + ", fits the padded input, " + to_string(padded));
    w.output.push_back(ceil ? ceil_output(c, padded, reach, w.strides[d], spatial[d], begin)
                            : floor_div(padded - reach, w.strides[d]) + Index(1));
    w.pads_begin.push_back(begin);
    w.pads_end.push_back(end);
  }
  return w;
}

namespace {

struct PoolPosition {
  std::vector<Index> subscripts;  // of x
  Cond inside;                    // of x
  Cond counted;                   // of x with its padding (differs from all windows with ceil_mode only)
};

PoolPosition pool_position(const Shape& shape, const Window& w, const std::vector<Index>& i,
                           const std::vector<Index>& k, bool ceil) {
  PoolPosition p{{i[0], i[1]}, {}, {}};
  for (size_t d = 0; d < w.kernel.size(); d++) {
    const Index position = i[2 + d] * w.strides[d] + k[d] * w.dilations[d] - w.pads_begin[d];
    if (w.pads_begin[d] != Index(0)) p.inside = p.inside && at_least(position, Index(0));
    if (w.pads_end[d] != Index(0) || ceil) p.inside = p.inside && less(position, shape[2 + d]);
    if (ceil) p.counted = p.counted && less(position, shape[2 + d] + w.pads_end[d]);
    p.subscripts.push_back(position);
  }
  return p;
}

Shape pooled_shape(const Shape& shape, const Window& w) {
  Shape r{shape[0], shape[1]};
  r.insert(r.end(), w.output.begin(), w.output.end());
  return r;
}

Window pool_window(DefineContext& c) {
  const Shape& shape = c.input(0).shape;
  if (shape.size() < 3) c.fail("x has at least three axes");
  return resolve_window(c, Shape(shape.begin() + 2, shape.end()), c.integers("kernel_shape"));
}

}  // namespace

void define_MaxPool(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const Window w = pool_window(c);
  const bool ceil = c.has_ceil_mode();
  // A window that lies in the padding altogether would be a maximum of nothing.
  for (size_t d = 0; d < w.kernel.size(); d++) {
    const Index reach = (w.kernel[d] - Index(1)) * w.dilations[d] + Index(1);
    if (w.pads_begin[d] != Index(0)) c.require(less(w.pads_begin[d], reach), "padding is smaller than the window");
    if (w.pads_end[d] != Index(0)) c.require(less(w.pads_end[d], reach), "padding is smaller than the window");
  }
  c.output(x.element, pooled_shape(x.shape, w), [=](const std::vector<Index>& i) {
    return reduce(ReduceKind::Max, w.kernel, [&](const std::vector<Index>& k) {
      const PoolPosition p = pool_position(x.shape, w, i, k, ceil);
      return select(p.inside, x.at(p.subscripts), constant(-INFINITY));
    });
  });
}

void define_AveragePool(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const Window w = pool_window(c);
  const bool ceil = c.has_ceil_mode(), count_padding = c.number("count_include_pad") != 0;
  c.output(x.element, pooled_shape(x.shape, w), [=](const std::vector<Index>& i) {
    const Expr sum = reduce(ReduceKind::Sum, w.kernel, [&](const std::vector<Index>& k) {
      const PoolPosition p = pool_position(x.shape, w, i, k, ceil);
      return select(p.inside, x.at(p.subscripts), constant(0));
    });
    const Expr count = reduce(ReduceKind::Sum, w.kernel, [&](const std::vector<Index>& k) {
      const PoolPosition p = pool_position(x.shape, w, i, k, ceil);
      return select(count_padding ? p.counted : p.inside, constant(1), constant(0));
    });
    // Where every element counts, the count is the window's size.
    const bool all = count->kind == ExprKind::Constant ||
                     (count->kind == ExprKind::Reduce && count->args[0]->kind == ExprKind::Constant);
    return sum / (all ? size_of(product(w.kernel, 0, w.kernel.size())) : count);
  });
}

namespace {

void global_pool(DefineContext& c, ReduceKind kind) {
  const TensorExpr x = c.input(0);
  if (x.shape.size() < 3) c.fail("x has at least three axes");
  const std::vector<Index> extents(x.shape.begin() + 2, x.shape.end());
  const Index count = product(x.shape, 2, x.shape.size());
  c.require(at_least(count, Index(1)), "spatial extents are positive");
  Shape shape(x.shape.size(), Index(1));
  shape[0] = x.shape[0];
  shape[1] = x.shape[1];
  c.output(x.element, shape, [=](const std::vector<Index>& i) {
    const Expr r = reduce(kind, extents, [&](const std::vector<Index>& k) {
      std::vector<Index> s{i[0], i[1]};
      s.insert(s.end(), k.begin(), k.end());
      return x.at(s);
    });
    return kind == ReduceKind::Sum ? r / size_of(count) : r;
  });
}

}  // namespace

void define_GlobalAveragePool(DefineContext& c) { global_pool(c, ReduceKind::Sum); }
void define_GlobalMaxPool(DefineContext& c) { global_pool(c, ReduceKind::Max); }

}  // namespace gopt::ir
