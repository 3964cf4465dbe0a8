#include "gopt_winograd.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gopt_activation.h"
#include "gopt_memory.h"
#include "gopt_panel_sums.h"
#include "gopt_team.h"
#include "gopt_terms.h"
#include "gopt_winograd_tiles.h"

namespace gopt_runtime {
namespace {

constexpr int64_t kFloat = sizeof(float);

// Floats of transformed tiles, which stay near: fewer where all weights do, too, so that it costs nothing to read these
// for each group of tiles, more where they are longer than the cache.
int64_t near_floats(int64_t weight_bytes) {
  constexpr int64_t kUsual = 160000, kBesideWeights = 50000;
  const int64_t cache = second_cache_bytes();
  if (weight_bytes <= cache / 3) return kBesideWeights;
  return weight_bytes <= cache ? kUsual : std::max(kUsual, cache / 2 / kFloat);
}

constexpr int64_t kFewTiles = 12;   // of a thread: too few for all weights to be read for them
constexpr float kNone = -INFINITY;  // cuts nothing off

struct Loop {
  // A few tiles' channels by one panel.
  struct Operands {
    const float* src;
    int64_t row, depth;  // row: elements of `src` to the next tile
    const float* packed;
    Ahead ahead;
  };

  template <int rows, int vectors>
  static void multiply(const Operands& o, const SumStore& store) {
    Vector s[rows][vectors] = {};
    const ScatteredRows<rows> x = rows_apart<rows>(o.src, o.row);
    const float* w = o.packed;
    Ahead ahead = o.ahead;
    for (int64_t at = 0; at < o.depth; at += kLanes) add_products(s, x, at, w, ahead);
    store_sums(s, store);
  }
};

// Of small images the products take less than weights take to be fetched, of which tiles of 2x2 have fewer: as long as
// the products of so many tiles, which are twice as fast where vectors are twice as long.
int64_t best_tile(const PlanarShape& s) {
  constexpr int64_t kFetch = kLanes;
  const auto cost = [&](int64_t tile) {
    const int64_t tiles = s.batch * s.dst[0] * ceil_div(s.dst[1], tile) * ceil_div(s.dst[2], tile);
    return (tile + kBeyond) * (tile + kBeyond) * (tiles + kFetch);
  };
  return cost(kMostTile) <= cost(kSmallTile) ? kMostTile : kSmallTile;
}

}  // namespace

WinogradConvolution::WinogradConvolution(const PlanarShape& shape, int64_t block, std::vector<Post> posts, int threads,
                                         Element element)
    : s_(shape),
      block_(block),
      posts_(std::move(posts)),
      threads_(threads),
      element_(element),
      channels_(ceil_div(shape.in, block) * block),
      depth_(shape.kernel[0] * channels_),
      filled_(ceil_div(shape.out, block) * block),
      panels_(ceil_div(filled_, kPanelWidth)),
      tile_(best_tile(shape)),
      window_(tile_ + kBeyond),
      elements_(window_ * window_),
      tiles_high_(ceil_div(shape.dst[1], tile_)),
      tiles_wide_(ceil_div(shape.dst[2], tile_)),
      tiles_(shape.batch * shape.dst[0] * tiles_high_ * tiles_wide_),
      is_together_(threads > 1 && tiles_ <= kFewTiles * threads) {
  simple_ = simple_posts(posts_, [](const Post& post) { return post.kind == PostKind::Add && post.dims.empty(); });
  const int64_t own = is_together_ ? tiles_ : ceil_div(tiles_, threads_),
                near = std::max<int64_t>(
                    near_floats(static_cast<int64_t>(packed_floats()) * kFloat) / (elements_ * depth_), kFewTiles);
  group_ = ceil_div(own, ceil_div(own, near));
}

bool WinogradConvolution::takes(const PlanarShape& s, int64_t block) {
  bool are_plain = s.groups == 1 && !s.transposed;
  for (int a = 1; a < 3; a++) are_plain &= s.kernel[a] == kTaps && s.strides[a] == 1 && s.dilations[a] == 1;
  return are_plain && block % kLanes == 0;
}
int64_t WinogradConvolution::panel_channels() { return kPanelWidth; }

WinogradConvolution::Tile WinogradConvolution::tile_at(int64_t number) const {
  const int64_t plane = number / tiles_wide_ / tiles_high_;
  return {plane / s_.dst[0], plane % s_.dst[0], number / tiles_wide_ % tiles_high_ * tile_,
          number % tiles_wide_ * tile_};
}

// The last panel may be of one vector.
int WinogradConvolution::vectors_of(int64_t panel) const {
  return filled_ - panel * kPanelWidth <= kLanes ? 1 : kPanelVectors;
}

// [panel][element][input][output]
int64_t WinogradConvolution::weights_at(int64_t panel, int64_t element) const {
  return (panel * elements_ * kPanelVectors + element * vectors_of(panel)) * depth_ * kLanes;
}
// Elements of a tile lie [element][tile][channel], a line more apart than they have to: at powers of two they would
// share places in the cache.
int64_t WinogradConvolution::inputs_element(int64_t tiles) const { return tiles * depth_ + kLine; }
int64_t WinogradConvolution::products_element(int64_t tiles) { return tiles * kPanelWidth + kLine; }

size_t WinogradConvolution::packed_floats() const { return static_cast<size_t>(weights_at(panels_ - 1, elements_)); }

size_t WinogradConvolution::scratch_floats() const {
  const int64_t inputs = elements_ * inputs_element(group_), products = elements_ * products_element(group_);
  return static_cast<size_t>((is_together_ ? 1 : threads_) * inputs + threads_ * products);
}

void WinogradConvolution::pack_channel(const float* weights, int64_t panel, int64_t channel, float* packed) const {
  const int64_t width = int64_t{vectors_of(panel)} * kLanes, output = panel * kPanelWidth + channel;
  const auto* taps_at = tile_ == kMostTile ? kWeightsOf4 : kWeightsOf2;
  for (int64_t at = 0; at < depth_; at++) {
    const int64_t plane = at / channels_, input = at % channels_;
    const float* taps = weights + ((output * s_.in + input) * s_.kernel[0] + plane) * kTaps * kTaps;
    for (int64_t i = 0; i < window_; i++)
      for (int64_t j = 0; j < window_; j++) {
        double sum = 0;
        for (int tap = 0; input < s_.in && output < s_.out && tap < kTaps * kTaps; tap++)
          sum += taps_at[i][tap / kTaps] * taps_at[j][tap % kTaps] * static_cast<double>(taps[tap]);
        packed[weights_at(panel, i * window_ + j) + at * width + channel] = static_cast<float>(sum);
      }
  }
}

void WinogradConvolution::pack(const float* weights, float* packed) const {
  share_each(panels_, threads_, [&](int64_t panel, int) {
    for (int64_t channel = 0; channel < vectors_of(panel) * kLanes; channel++)
      pack_channel(weights, panel, channel, packed);
  });
}

// All channels of all planes of the window.
template <class T>
void WinogradConvolution::transform_tile(const T* src, const Tile& tile, float* to, int64_t element) const {
  for (int64_t k = 0; k < s_.kernel[0]; k++, to += channels_) {
    const int64_t plane = tile.plane * s_.strides[0] + k * s_.dilations[0] - s_.pads[0];
    if (plane >= 0 && plane < s_.src[0]) {
      transform_plane(src, tile, plane, to, element);
      continue;
    }
    for (int64_t e = 0; e < elements_; e++) std::fill_n(to + e * element, channels_, 0.0f);
  }
}

// What lies beyond the plane is zeros.
template <class T>
void WinogradConvolution::transform_plane(const T* src, const Tile& tile, int64_t plane, float* to,
                                          int64_t element) const {
  const int64_t height = s_.src[1], width = s_.src[2], h = tile.h - s_.pads[1], w = tile.w - s_.pads[2];
  const bool is_inside = h >= 0 && h + window_ <= height && w >= 0 && w + window_ <= width;
  const int64_t top = std::clamp<int64_t>(-h, 0, window_), bottom = std::clamp<int64_t>(height - h, top, window_),
                left = std::clamp<int64_t>(-w, 0, window_), right = std::clamp<int64_t>(width - w, left, window_);
  const auto transform_it = tile_ == kMostTile ? transform_window<kMostTile, T> : transform_window<kSmallTile, T>;
  alignas(64) T window[kMostWindow * kMostWindow * kLanes] = {};
  for (int64_t channel = 0; channel < channels_; channel += kLanes) {
    const int64_t first = (tile.image * channels_ + channel / block_ * block_) * s_.src[0] + plane * block_;
    const T* image = src + first * height * width + channel % block_;
    const auto at = [&](int64_t i, int64_t j) { return image + ((h + i) * width + w + j) * block_; };
    if (is_inside) {
      transform_it(at(0, 0), width * block_, block_, to + channel, element);
      continue;
    }
    for (int64_t i = top; i < bottom; i++)
      for (int64_t j = left; j < right; j++) std::copy_n(at(i, j), kLanes, window + (i * window_ + j) * kLanes);
    transform_it(window, window_ * kLanes, kLanes, to + channel, element);
  }
}

// `next`: weights of the panel after it, or null.
void WinogradConvolution::multiply(const Floats& call, int64_t tiles, int64_t panel, const float* next) const {
  const int vectors = vectors_of(panel);
  const int64_t parts = ceil_div(tiles, kMostPanelRows), width = int64_t{vectors} * kLanes;
  for (int64_t e = 0; e < elements_; e++) {
    const float* inputs = call.inputs + e * inputs_element(tiles);
    float* products = call.products + e * products_element(tiles);
    Loop::Operands o{nullptr, depth_, depth_, call.packed + weights_at(panel, e), {}};
    const float* following = e + 1 < elements_ ? call.packed + weights_at(panel, e + 1) : next;
    if (vectors != kPanelVectors) following = nullptr;
    for (int64_t part = 0; part < parts; part++) {
      const int64_t first = tiles * part / parts, count = tiles * (part + 1) / parts - first;
      o.src = inputs + first * depth_;
      o.ahead = share_of_panel(following, depth_ / kLanes, part, parts);
      MultiplyFunctions<Loop>::of(count, vectors)(o, {products + first * width, nullptr, width, kLanes, kNone});
    }
  }
}

// Of the first position of a row of a tile's result.
int64_t WinogradConvolution::place(const Part& p, int64_t row) const {
  const int64_t block = p.tile.image * filled_ + p.channel / block_ * block_;
  const int64_t line = p.tile.plane * s_.dst[1] + p.tile.h + row;
  return block * area(s_.dst) + (line * s_.dst[2] + p.tile.w) * block_ + p.channel % block_;
}

template <class T>
void WinogradConvolution::add(const Post& post, const T* dst, const Part& part, float* sums) const {
  const auto* operand = post.kind == PostKind::Sum ? dst : static_cast<const T*>(post.operand);
  const bool is_a_row = !post.dims.empty();
  const int64_t channels = std::clamp<int64_t>(s_.out - part.channel, 0, kLanes);
  alignas(64) float addends[kLanes] = {};
  for (int64_t k = 0; is_a_row && k < channels; k++)
    addends[k] = value_at(post.operand, post.element, part.channel + k);
  for (int64_t i = 0; i < part.rows; i++)
    for (int64_t j = 0; j < part.columns; j++) {
      float* own = sums + (i * tile_ + j) * kLanes;
      if (!is_a_row) store_lanes_of(load_lanes(operand + place(part, i) + j * block_), addends);
      for (int64_t k = 0; k < channels; k++) own[k] += addends[k];
    }
}

template <class T>
void WinogradConvolution::finish(const Call<T>& call, const Part& part, float* sums) const {
  for (const Post& post : posts_)
    if (post.kind == PostKind::Sum || post.kind == PostKind::Add)
      add(post, call.dst, part, sums);
    else
      apply_activation(post, sums, tile_ * tile_ * kLanes);
  const int64_t channels = std::clamp<int64_t>(s_.out - part.channel, 0, kLanes);
  for (int64_t i = 0; i < part.rows; i++)
    for (int64_t j = 0; j < part.columns; j++) {
      float* own = sums + (i * tile_ + j) * kLanes;
      std::fill(own + channels, own + kLanes, 0.0f);  // what fills a block
      store_lanes_of(load(own), call.dst + place(part, i) + j * block_);
    }
}

// What is added to the result where posts are simple, or null.
template <class T>
const T* WinogradConvolution::addend(const Call<T>& call) const {
  if (simple_.addend < 0) return nullptr;
  const Post& post = posts_[static_cast<size_t>(simple_.addend)];
  return post.kind == PostKind::Sum ? call.dst : static_cast<const T*>(post.operand);
}

template <class T>
void WinogradConvolution::store(const Call<T>& call, const Part& part, const float* sums, const T* added) const {
  const Vector least = Vector{} + simple_.least;
  for (int64_t i = 0; i < part.rows; i++) {
    int64_t at = place(part, i);
    for (int64_t j = 0; j < part.columns; j++, at += block_) {
      Vector sum = load(sums + (i * tile_ + j) * kLanes);
      if (added) sum += load_lanes(added + at);
      store_lanes_of(sum < least ? least : sum, call.dst + at);
    }
  }
}

// A vector of channels from `channel` on, of all tiles of a group.
template <class T>
void WinogradConvolution::transform_back(const Call<T>& call, const Range& group, const float* products, int64_t width,
                                         int64_t channel) const {
  const int64_t tiles = group.last - group.first, channels = std::clamp<int64_t>(s_.out - channel, 0, kLanes);
  const auto transform_it = tile_ == kMostTile ? transform_products<kMostTile> : transform_products<kSmallTile>;
  const T* added = addend(call);
  alignas(64) float bias[kLanes] = {}, sums[kMostTile * kMostTile * kLanes];
  if (call.bias) std::copy_n(call.bias + channel, channels, bias);
  for (int64_t t = 0; t < tiles; t++) {
    Part part{tile_at(group.first + t), channel, tile_, tile_};
    part.rows = std::min(tile_, s_.dst[1] - part.tile.h);
    part.columns = std::min(tile_, s_.dst[2] - part.tile.w);
    transform_it(products + t * width, products_element(tiles), load(bias), sums);
    if (simple_.are_all && channels == kLanes)
      store(call, part, sums, added);
    else
      finish(call, part, sums);
  }
}

// Of transformed tiles.
template <class T>
void WinogradConvolution::compute(const Call<T>& call, const Range& group, const Range& panels) const {
  for (int64_t panel = panels.first; panel < panels.last; panel++) {
    const bool is_last = panel + 1 == panels.last || vectors_of(panel + 1) != kPanelVectors;
    multiply(call, group.last - group.first, panel, is_last ? nullptr : call.packed + weights_at(panel + 1, 0));
    const int64_t width = int64_t{vectors_of(panel)} * kLanes;
    for (int64_t v = 0; v < width; v += kLanes)
      transform_back(call, group, call.products + v, width, panel * kPanelWidth + v);
  }
}

template <class T>
void WinogradConvolution::run_alone(const Call<T>& call, int thread, int threads) const {
  const int64_t first = tiles_ * thread / threads, count = tiles_ * (thread + 1) / threads - first,
                groups = ceil_div(count, group_);
  for (int64_t g = 0; g < groups; g++) {
    const Range group{first + count * g / groups, first + count * (g + 1) / groups};
    const int64_t tiles = group.last - group.first;
    for (int64_t t = 0; t < tiles; t++)
      transform_tile(call.src, tile_at(group.first + t), call.inputs + t * depth_, inputs_element(tiles));
    compute(call, group, {0, panels_});
  }
}

// `call_of`: by thread.
template <class T, class CallOf>
void WinogradConvolution::run_together(const CallOf& call_of) const {
  const int64_t groups = ceil_div(tiles_, group_);
  const Call<T> any = call_of(0);
  for (int64_t g = 0; g < groups; g++) {
    const Range group{tiles_ * g / groups, tiles_ * (g + 1) / groups};
    const int64_t tiles = group.last - group.first;
    share_each(tiles, threads_, [&](int64_t t, int) {
      transform_tile(any.src, tile_at(group.first + t), any.inputs + t * depth_, inputs_element(tiles));
    });
    share(threads_, threads_, [&](int64_t part, int slot) {
      compute(call_of(slot), group, {panels_ * part / threads_, panels_ * (part + 1) / threads_});
    });
  }
}

template <class T>
void WinogradConvolution::run_as(const T* src, const float* packed, const float* bias, T* dst, float* scratch) const {
  const int64_t inputs = elements_ * inputs_element(group_), products = elements_ * products_element(group_);
  float* own_products = scratch + (is_together_ ? 1 : threads_) * inputs;
  const auto call_of = [&](int slot) {
    const Floats floats{packed, bias, scratch + (is_together_ ? 0 : slot * inputs), own_products + slot * products};
    return Call<T>{floats, src, dst};
  };
  if (is_together_) return run_together<T>(call_of);
  share(threads_, threads_,
        [&](int64_t part, int slot) { run_alone(call_of(slot), static_cast<int>(part), threads_); });
}

void WinogradConvolution::run(const void* src, const float* packed, const float* bias, void* dst,
                              float* scratch) const {
  if (element_ == Element::Float)
    run_as(static_cast<const float*>(src), packed, bias, static_cast<float*>(dst), scratch);
  else
    run_as(static_cast<const uint16_t*>(src), packed, bias, static_cast<uint16_t*>(dst), scratch);
}

}  // namespace gopt_runtime
