// Matrix products and convolutions.
#include "context.h"

namespace gopt::ir {

void define_MatMul(DefineContext& c) {
  const TensorExpr a = c.input(0), b = c.input(1);
  if (a.element != b.element) c.fail("element types differ");
  if (a.shape.empty() || b.shape.empty()) c.fail("operands need at least one axis");
  const bool row = a.shape.size() == 1,
             column = b.shape.size() == 1;  // vectors, their extra axis dropped from the result
  const Index inner = a.shape.back();
  const Index other = column ? b.shape[0] : b.shape[b.shape.size() - 2];
  c.require(equal(inner, other), "inner extents " + to_string(inner) + " and " + to_string(other) + " are equal");
  const Shape batch_a(a.shape.begin(), a.shape.end() - (row ? 1 : 2)),
      batch_b(b.shape.begin(), b.shape.end() - (column ? 1 : 2));
  const Shape batch = broadcast_shapes(c, {&batch_a, &batch_b});
  Shape shape = batch;
  if (!row) shape.push_back(a.shape[a.shape.size() - 2]);
  if (!column) shape.push_back(b.shape.back());

  auto batch_subscripts = [](const Shape& own, const std::vector<Index>& i, size_t rank) {
    std::vector<Index> s;
    for (size_t k = 0; k < own.size(); k++) s.push_back(own[k] == Index(1) ? Index(0) : i[k + rank - own.size()]);
    return s;
  };
  const size_t rank = batch.size();
  c.output(a.element, std::move(shape), [=](const std::vector<Index>& i) {
    std::vector<Index> left = batch_subscripts(batch_a, i, rank), right = batch_subscripts(batch_b, i, rank);
    if (!row) left.push_back(i[rank]);
    return reduce(ReduceKind::Sum, {inner}, [&](const std::vector<Index>& k) {
      std::vector<Index> l = left, r = right;
      l.push_back(k[0]);
      r.push_back(k[0]);
      if (!column) r.push_back(i.back());
      return a.at(l) * b.at(r);
    });
  });
}

void define_Gemm(DefineContext& c) {
  const TensorExpr a = c.input(0), b = c.input(1);
  if (a.element != b.element) c.fail("element types differ");
  if (a.shape.size() != 2 || b.shape.size() != 2) c.fail("operands are matrices");
  const bool ta = c.number("transA") != 0, tb = c.number("transB") != 0;
  const Expr alpha = c.real("alpha"), beta = c.real("beta");
  const Index inner = a.shape[ta ? 0 : 1];
  c.require(equal(inner, b.shape[tb ? 1 : 0]),
            "inner extents " + to_string(inner) + " and " + to_string(b.shape[tb ? 1 : 0]) + " are equal");
  const Shape shape{a.shape[ta ? 1 : 0], b.shape[tb ? 0 : 1]};
  const TensorExpr bias = c.has_input(2) ? c.input(2) : TensorExpr{};
  if (bias.at) {
    if (bias.shape.size() > 2) c.fail("C has more than two axes");
    for (size_t k = 0; k < bias.shape.size(); k++) {
      const Index &own = bias.shape[bias.shape.size() - 1 - k], &full = shape[1 - k];
      if (own != Index(1)) c.require(equal(own, full), "C broadcasts to the product", true);
    }
  }
  c.output(a.element, shape, [=](const std::vector<Index>& i) {
    const Expr sum = reduce(ReduceKind::Sum, {inner}, [&](const std::vector<Index>& k) {
      return a.at(ta ? std::vector{k[0], i[0]} : std::vector{i[0], k[0]}) *
             b.at(tb ? std::vector{i[1], k[0]} : std::vector{k[0], i[1]});
    });
    return bias.at ? alpha * sum + beta * broadcast_at(bias, i) : alpha * sum;
  });
}

namespace {

void check_kernel_shape(DefineContext& c, const Shape& w) {
  if (!c.has("kernel_shape")) return;
  const std::vector<Index> kernel = c.integers("kernel_shape");
  if (kernel.size() != w.size() - 2) c.fail("kernel_shape has another rank");
  for (size_t k = 0; k < kernel.size(); k++) c.require(equal(kernel[k], w[2 + k]), "kernel_shape is that of w");
}

TensorExpr conv_bias(DefineContext& c, const Index& channels) {
  if (!c.has_input(2)) return {};
  const TensorExpr bias = c.input(2);
  if (bias.shape.size() != 1) c.fail("the bias is a vector");
  c.require(equal(bias.shape[0], channels), "the bias has as many elements as there are output channels");
  return bias;
}

}  // namespace

void define_Conv(DefineContext& c) {
  const TensorExpr x = c.input(0), w = c.input(1);
  if (x.element != w.element) c.fail("element types differ");
  if (x.shape.size() < 3 || w.shape.size() != x.shape.size()) c.fail("x and w have one rank, three at least");
  const size_t axes = x.shape.size() - 2;
  const Index group = c.integer("group"), channels = w.shape[1], out_channels = w.shape[0];
  c.require(at_least(group, Index(1)), "group is positive");
  c.require(equal(x.shape[1], channels * group),
            "channels of x, " + to_string(x.shape[1]) + ", are group x channels of w, " + to_string(channels * group));
  const Index per_group = floor_div(out_channels, group);
  c.require(equal(per_group * group, out_channels), "output channels are a multiple of group");
  check_kernel_shape(c, w.shape);
  const Window window =
      resolve_window(c, Shape(x.shape.begin() + 2, x.shape.end()), Shape(w.shape.begin() + 2, w.shape.end()));
  const TensorExpr bias = conv_bias(c, out_channels);
  Shape shape{x.shape[0], out_channels};
  shape.insert(shape.end(), window.output.begin(), window.output.end());

  c.output(x.element, std::move(shape), [=](const std::vector<Index>& i) {
    std::vector<Index> extents{channels};
    extents.insert(extents.end(), window.kernel.begin(), window.kernel.end());
    const Index first_channel = block_of(i[1], per_group) * channels;
    const Expr sum = reduce(ReduceKind::Sum, extents, [&](const std::vector<Index>& k) {
      std::vector<Index> at_x{i[0], group == Index(1) ? k[0] : first_channel + k[0]}, at_w{i[1], k[0]};
      Cond inside;
      for (size_t d = 0; d < axes; d++) {
        const Index position = i[2 + d] * window.strides[d] + k[1 + d] * window.dilations[d] - window.pads_begin[d];
        // Without padding a window never leaves the input, by the output's extent.
        if (window.pads_begin[d] != Index(0)) inside = inside && at_least(position, Index(0));
        if (window.pads_end[d] != Index(0)) inside = inside && less(position, x.shape[2 + d]);
        at_x.push_back(position);
        at_w.push_back(k[1 + d]);
      }
      return select(inside, x.at(at_x) * w.at(at_w), constant(0));
    });
    return bias.at ? sum + bias.at({i[1]}) : sum;
  });
}

namespace {

// Pads of ConvTranspose from its attributes; output_shape and auto_pad say them indirectly and need numbers.
Window transpose_window(DefineContext& c, const Shape& spatial, const std::vector<Index>& kernel) {
  const size_t axes = spatial.size();
  Window w{kernel,
           c.integers_or("strides", std::vector<Index>(axes, Index(1))),
           c.integers_or("dilations", std::vector<Index>(axes, Index(1))),
           {},
           {},
           {}};
  const std::vector<Index> extra = c.integers_or("output_padding", std::vector<Index>(axes, Index(0)));
  const std::vector<Index> pads = c.integers_or("pads", std::vector<Index>(2 * axes, Index(0)));
  const std::string auto_pad = c.text("auto_pad");
  const bool same = auto_pad == "SAME_UPPER" || auto_pad == "SAME_LOWER", given = c.has("output_shape");
  std::vector<Index> wanted = given ? c.integers("output_shape") : std::vector<Index>(axes);
  if (wanted.size() == axes + 2) wanted.erase(wanted.begin(), wanted.begin() + 2);
  if (wanted.size() != axes) c.fail("output_shape has another rank");
  for (size_t d = 0; d < axes; d++) {
    c.require(at_least(w.strides[d], Index(1)), "strides are positive");
    c.require(at_least(w.dilations[d], Index(1)), "dilations are positive");
    c.require(at_least(spatial[d], Index(1)), "spatial extents are positive");
    const Index full =
        w.strides[d] * (spatial[d] - Index(1)) + extra[d] + (kernel[d] - Index(1)) * w.dilations[d] + Index(1);
    Index begin = pads[d], end = pads[axes + d];
    if (given || same) {
      const Index out = given ? wanted[d] : spatial[d] * w.strides[d];
      if (!(full - out).is_constant()) c.fail("output_shape and auto_pad need numbers");
      const int64_t total = std::max<int64_t>(0, (full - out).constant());
      const int64_t half = total / 2;
      begin = auto_pad == "SAME_UPPER" ? Index(half) : Index(total - half);
      end = Index(total) - begin;
      if (given) end = full - out - begin;  // an output larger than the full one is extended at the end
    } else if (auto_pad == "VALID") {
      begin = end = Index(0);
    }
    w.pads_begin.push_back(begin);
    w.pads_end.push_back(end);
    w.output.push_back(full - begin - end);
    c.require(at_least(w.output[d], Index(0)), "the output's extents are not negative");
  }
  return w;
}

}  // namespace

void define_ConvTranspose(DefineContext& c) {
  const TensorExpr x = c.input(0), w = c.input(1);
  if (x.element != w.element) c.fail("element types differ");
  if (x.shape.size() < 3 || w.shape.size() != x.shape.size()) c.fail("x and w have one rank, three at least");
  const size_t axes = x.shape.size() - 2;
  const Index group = c.integer("group"), per_group = w.shape[1];
  c.require(at_least(group, Index(1)), "group is positive");
  c.require(equal(x.shape[1], w.shape[0]), "channels of x and w agree");
  check_kernel_shape(c, w.shape);
  const Index channels = floor_div(w.shape[0], group);
  c.require(equal(channels * group, w.shape[0]), "channels are a multiple of group");
  const Window window =
      transpose_window(c, Shape(x.shape.begin() + 2, x.shape.end()), Shape(w.shape.begin() + 2, w.shape.end()));
  const TensorExpr bias = conv_bias(c, per_group * group);
  Shape shape{x.shape[0], per_group * group};
  shape.insert(shape.end(), window.output.begin(), window.output.end());

  // Output position p gathers from x at q with q * stride + k * dilation - pad = p, where stride divides what is left.
  c.output(x.element, std::move(shape), [=](const std::vector<Index>& i) {
    std::vector<Index> extents{channels};
    extents.insert(extents.end(), window.kernel.begin(), window.kernel.end());
    const Index first_channel = block_of(i[1], per_group) * channels, own_channel = place_in_block(i[1], per_group);
    const Expr sum = reduce(ReduceKind::Sum, extents, [&](const std::vector<Index>& k) {
      const Index channel = group == Index(1) ? k[0] : first_channel + k[0];
      std::vector<Index> at_x{i[0], channel}, at_w{channel, group == Index(1) ? i[1] : own_channel};
      Cond inside;
      for (size_t d = 0; d < axes; d++) {
        const Index scaled = i[2 + d] + window.pads_begin[d] - k[1 + d] * window.dilations[d];
        const Index q = floor_div(scaled, window.strides[d]);
        inside = inside && equal(q * window.strides[d], scaled) && within(q, Index(0), x.shape[2 + d]);
        at_x.push_back(q);
        at_w.push_back(k[1 + d]);
      }
      return select(inside, x.at(at_x) * w.at(at_w), constant(0));
    });
    return bias.at ? sum + bias.at({i[1]}) : sum;
  });
}

}  // namespace gopt::ir
