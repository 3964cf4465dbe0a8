// Convolutions and products on tiles, where the processor has them.
#include "gopt_primitives.h"

namespace gopt_runtime {
namespace {

TileShape tile_shape(const Convolution& c) {
  TileShape s;
  s.batch = c.src[0];
  s.in = c.src[1];
  s.out = c.dst[1];
  s.groups = c.groups;
  set_windows(s, c);
  return s;
}

// Forms of weights are told apart by the number of terms.
int64_t way_of(int terms) { return -terms; }

bool add_call(Library::State& s, Primitive p, TilesCall call, const TileWeights& weights, const memory::desc& given,
              int terms, const void* bias, int64_t channels) {
  if (!call.tiles.takes(weights)) return false;
  const auto floats = [](size_t bytes) { return Library::State::floats((bytes + 3) / 4); };
  call.packed = s.packed_as(weights.data, given, floats(call.tiles.packed_bytes()), {way_of(terms)},
                            [&](memory& to) { call.tiles.pack(weights, to.get_data_handle()); });
  call.scratch = s.temporary(p, floats(call.tiles.scratch_bytes()));
  if (bias) call.bias = s.at(Library::State::floats(static_cast<size_t>(channels)), bias);
  p.tiles = std::make_unique<TilesCall>(std::move(call));
  s.primitives.push_back(std::move(p));
  return true;
}

}  // namespace

bool Library::add_tiles(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst,
                        int own_threads) {
  if (!has_amx() || !c.constant_weights || c.transposed) return false;
  if (c.groups != 1 && !groups_fill_tiles(c.groups, c.src[1] / c.groups, c.dst[1] / c.groups)) return false;
  if (c.src_order == Order::Blocked8 || c.dst_order == Order::Blocked8) return false;
  State& s = *state_;
  Primitive p(own_threads);
  TilesCall call{
      TileConvolution(tile_shape(c), tile_order(c.src, c.src_order, c.operands),
                      tile_order(c.dst, c.dst_order, c.result), c.tile_terms, c.posts, own_threads, TileUnit::Amx),
      {},
      {},
      {},
      {},
      {},
      {}};
  const memory::desc to = image_desc(c.dst, c.dst_order, c.result);
  call.src = s.view(p.src, image_desc(c.src, c.src_order, c.operands), src);
  call.dst = s.view(p.dst, to, dst);
  call.posts = s.operands(p, c.posts, to, to);
  const int64_t taps = extent_from(c.weights, 2);
  return add_call(s, std::move(p), std::move(call), {weights, c.weights[1] * taps, taps, 1, c.operands},
                  dense_desc(c.weights, c.operands), c.tile_terms, bias, c.dst[1]);
}

bool Library::add_tiles(const MatrixProduct& m, const void* src, const void* weights, const void* bias, void* dst,
                        int own_threads) {
  if (!has_amx() || !m.constant_weights || m.src.size() != 2 || m.src_strides != std::vector<int64_t>{m.src[1], 1})
    return false;
  State& s = *state_;
  Primitive p(own_threads);
  TileShape shape;
  shape.in = m.src[1];
  shape.out = m.dst[1];
  shape.src[2] = shape.dst[2] = m.src[0];
  const auto order = [](const std::vector<int64_t>& dims, Element element) {
    return tile_order({1, dims[1], dims[0]}, Order::ChannelsLast, element);
  };
  TilesCall call{TileConvolution(shape, order(m.src, m.operands), order(m.dst, m.result), m.tile_terms, m.posts,
                                 own_threads, TileUnit::Amx),
                 {},
                 {},
                 {},
                 {},
                 {},
                 {}};
  const memory::desc to = dense_desc(m.dst, m.result);
  call.src = s.view(p.src, dense_desc(m.src, m.operands), src);
  call.dst = s.view(p.dst, to, dst);
  call.posts = s.operands(p, m.posts, to, to);
  const memory::desc given(dims_of(m.weights), type_of(m.operands), dims_of(m.weight_strides));
  return add_call(s, std::move(p), std::move(call), {weights, m.weight_strides[1], m.weight_strides[0], 1, m.operands},
                  given, m.tile_terms, bias, m.dst[1]);
}

}  // namespace gopt_runtime
