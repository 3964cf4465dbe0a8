// Products, and convolutions of one tap, by panels of weights.
#include "gopt_primitives.h"

namespace gopt_runtime {
namespace {

// Nothing where rows are not equally far apart, or images lie otherwise than panels take them.
std::optional<PanelShape> panel_shape(const Convolution& c) {
  const bool is_for_panels = c.constant_weights && !c.transposed && c.groups == 1 && c.operands == Element::Float &&
                             c.result == Element::Float && c.src_order == c.dst_order && c.src_order != Order::Plain;
  if (!is_for_panels || extent_from(c.weights, 2) != 1) return std::nullopt;
  const int64_t block = block_of(c.src_order);
  if (block > 1 && !PanelProduct::takes_blocks_of(block)) return std::nullopt;
  const auto all_are = [](const std::vector<int64_t>& numbers, int64_t wanted) {
    return std::all_of(numbers.begin(), numbers.end(), [wanted](int64_t n) { return n == wanted; });
  };
  if (!all_are(c.pads, 0) || has_empty_windows(c)) return std::nullopt;
  PanelShape s;
  s.batch = c.src[0];
  s.depth = c.src[1];
  s.columns = c.dst[1];
  s.rows = extent_from(c.dst, 2);
  if (all_are(c.strides, 1) && s.rows == extent_from(c.src, 2)) {
    const bool is_one = c.src_order == Order::ChannelsLast;  // image after image
    return is_one ? PanelShape{1, 1, s.batch * s.rows, s.depth, s.columns} : s;
  }
  const size_t axes = c.strides.size();
  if (axes > 2) return std::nullopt;
  s.rows = c.dst.back();
  s.lines = axes == 2 ? c.dst[2] : 1;
  s.src_line = axes == 2 ? c.strides[0] * c.src[3] : 0;
  s.src_row = c.strides.back();
  return s;
}

// Forms of weights are told apart by the width of panels, beside those of other kernels.
int64_t way_of_panels() { return -16 - PanelProduct::panel_columns(); }

// Weights: a number's row (of the depth) and column, as PanelProduct::pack has them.
struct GivenWeights {
  const void* data;
  memory::desc description;
  int64_t row_stride, column_stride;
};

// The addition of a call whose operands are bound.
void add_call(Library::State& s, Primitive p, PanelsCall call, const GivenWeights& weights, const void* bias,
              int64_t columns) {
  call.packed = s.packed_as(weights.data, weights.description, Library::State::floats(call.product.packed_floats()),
                            {way_of_panels()}, [&](memory& packed) {
                              call.product.pack(static_cast<const float*>(weights.data), weights.row_stride,
                                                weights.column_stride, static_cast<float*>(packed.get_data_handle()));
                            });
  call.scratch = s.temporary(p, Library::State::floats(call.product.scratch_floats()));
  if (bias) call.bias = s.at(Library::State::floats(static_cast<size_t>(columns)), bias);
  p.panels = std::make_unique<PanelsCall>(std::move(call));
  s.primitives.push_back(std::move(p));
}

}  // namespace

bool Library::add_panels(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst,
                         int own_threads) {
  const std::optional<PanelShape> shape = panel_shape(c);
  if (!shape) return false;
  State& s = *state_;
  Primitive p(own_threads);
  PanelsCall own{PanelProduct(*shape, tile_order(c.src, c.src_order, c.operands),
                              tile_order(c.dst, c.dst_order, c.result), c.posts, own_threads),
                 {},
                 {},
                 {},
                 {},
                 {},
                 {}};
  const memory::desc to = image_desc(c.dst, c.dst_order, c.result);
  own.src = s.view(p.src, image_desc(c.src, c.src_order, c.operands), src);
  own.dst = s.view(p.dst, to, dst);
  own.posts = s.operands(p, c.posts, to, to);
  add_call(s, std::move(p), std::move(own), {weights, dense_desc(c.weights), 1, c.weights[1]}, bias, c.dst[1]);
  return true;
}

bool Library::add_panels(const MatrixProduct& m, const void* src, const void* weights, const void* bias, void* dst,
                         int own_threads) {
  const bool is_for_panels = m.constant_weights && m.src.size() == 2 && m.src_strides[1] == 1 &&
                             m.operands == Element::Float && m.result == Element::Float;
  if (!is_for_panels) return false;
  State& s = *state_;
  Primitive p(own_threads);
  PanelShape shape;
  shape.rows = m.src[0];
  shape.depth = m.src[1];
  shape.columns = m.dst[1];
  constexpr int64_t kBlock = 16;
  PanelsCall own{PanelProduct(shape, {0, m.src_strides[0], kBlock, 1}, {0, m.dst[1], kBlock, 1}, m.posts, own_threads),
                 {},
                 {},
                 {},
                 {},
                 {},
                 {}};
  const memory::desc to = dense_desc(m.dst);
  own.src = s.view(p.src, memory::desc(dims_of(m.src), kFloat, dims_of(m.src_strides)), src);
  own.dst = s.view(p.dst, to, dst);
  own.posts = s.operands(p, m.posts, to, to);
  const memory::desc given(dims_of(m.weights), kFloat, dims_of(m.weight_strides));
  add_call(s, std::move(p), std::move(own), {weights, given, m.weight_strides[0], m.weight_strides[1]}, bias, m.dst[1]);
  return true;
}

}  // namespace gopt_runtime
