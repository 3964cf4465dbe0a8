// What is done with tiles of sums: bias, additions, activations, and where results go.
#include <algorithm>
#include <cstring>
#include <limits>

#include "gopt_activation.h"
#include "gopt_terms.h"
#include "gopt_tiles.h"

namespace gopt_runtime {
namespace {

constexpr int64_t kLanes = 16, kSums = kTileRows * kTileColumns;

// 16 numbers to each of these rows.
void add_to_rows(const float* values, int64_t rows, float* sums) {
  for (int64_t r = 0; r < rows; r++, sums += kLanes)
    for (int c = 0; c < kLanes; c++) sums[c] += values[c];
}

template <class T>
void put_row(const T* from, T* to, int64_t count, int64_t step, bool is_whole) {
  if (is_whole)
    std::memcpy(to, from, kLanes * sizeof *to);
  else
    for (int64_t c = 0; c < count; c++) to[c * step] = from[c];
}

}  // namespace

void TileConvolution::add(const Post& post, int64_t row, int64_t column, float* sums) const {
  int64_t count = 1;
  for (const int64_t d : post.dims) count *= d;
  const int64_t channel = column * kTileColumns, channels = std::min(kLanes, s_.out - channel);
  if (!post.dims.empty() && count == s_.out) {
    float values[kLanes] = {};
    for (int64_t c = 0; c < channels; c++) values[c] = value_at(post.operand, post.element, channel + c);
    return add_to_rows(values, tile_rows_, sums);
  }
  const int64_t* offsets = &offsets_[static_cast<size_t>(row * kTileRows)];
  const bool is_whole = channels == kLanes && dst_.channel == 1 && dst_.element == Element::Float;
  for (int64_t r = 0; r < tile_rows_; r++) {
    if (offsets[r] < 0) continue;
    const int64_t from = offsets[r] + column * dst_.block;
    float* own = sums + r * kTileColumns;
    if (is_whole)
      add_to_rows(static_cast<const float*>(post.operand) + from, 1, own);
    else
      for (int64_t c = 0; c < channels; c++) own[c] += value_at(post.operand, dst_.element, from + c * dst_.channel);
  }
}

// An addition, or none, and a cut, or none; or an activation.
bool TileConvolution::finish_at_once(const Call& call, int64_t row, int64_t column, int64_t columns,
                                     float* sums) const {
  const bool is_half = dst_.element == Element::BFloat16;
  const FinishTiles finish = finish_function(is_half);
  if (!finish || dst_.channel != 1) return false;
  TileRows t{};
  t.sums = sums;
  t.rows = static_cast<int>(tile_rows_);
  t.columns = static_cast<int>(columns);
  for (int64_t c = 0; c < columns; c++)
    t.channels[c] = static_cast<int>(std::min(kLanes, s_.out - (column + c) * kTileColumns));
  t.offsets = &offsets_[static_cast<size_t>(row * kTileRows)];
  t.column = dst_.block;
  t.bias = call.bias ? call.bias + column * kTileColumns : nullptr;
  t.most = std::numeric_limits<float>::infinity();
  t.is_filled = dst_.fills_blocks;
  void* to = static_cast<char*>(call.dst) + column * dst_.block * (is_half ? 2 : 4);
  const SimplePosts simple =
      simple_posts(posts_, [](const Post& post) { return post.kind == PostKind::Add && post.dims.empty(); });
  if (simple.addend >= 0) {
    const Post& post = posts_[static_cast<size_t>(simple.addend)];
    const void* other = post.kind == PostKind::Sum ? call.dst : post.operand;
    t.addend = at_element(other, dst_.element, column * dst_.block);
  }
  t.least = simple.least;
  if (!simple.are_all) {
    const Post& post = posts_[simple.count];
    const bool is_last = simple.count + 1 == posts_.size() && t.least != 0.0f;
    if (!is_last || post.kind == PostKind::Sum || post.kind == PostKind::Add) return false;
    if (post.kind == PostKind::Clip && post.alpha <= post.beta) {
      t.least = post.alpha, t.most = post.beta;
    } else {
      if (t.bias || t.addend) finish(t);
      for (int64_t c = 0; c < columns; c++) apply_activation(post, sums + c * kSums, tile_rows_ * kTileColumns);
      t.bias = nullptr, t.addend = nullptr;
    }
  }
  t.dst = to;
  finish(t);
  return true;
}

void TileConvolution::finish(const Call& call, int64_t row, int64_t column, const int64_t (&tiles)[2],
                             float* sums) const {
  for (int64_t r = 0; r < tiles[0]; r++, sums += tiles[1] * kSums)
    if (!finish_at_once(call, row + r, column, tiles[1], sums))
      for (int64_t c = 0; c < tiles[1]; c++) store(call, row + r, column + c, sums + c * kSums);
}

void TileConvolution::store(const Call& call, int64_t row, int64_t column, float* sums) const {
  const int64_t channel = column * kTileColumns, channels = std::min(kLanes, s_.out - channel);
  if (call.bias) {
    float values[kLanes] = {};
    std::copy_n(call.bias + channel, channels, values);
    add_to_rows(values, tile_rows_, sums);
  }
  for (const Post& post : posts_) {
    if (post.kind == PostKind::Sum) {
      Post own{PostKind::Add};
      own.operand = call.dst;
      add(own, row, column, sums);
    } else if (post.kind == PostKind::Add) {
      add(post, row, column, sums);
    } else {
      apply_activation(post, sums, tile_rows_ * kTileColumns);
    }
  }
  for (int64_t r = 0; r < tile_rows_ && dst_.fills_blocks && channels < kLanes; r++)
    std::fill(sums + r * kTileColumns + channels, sums + (r + 1) * kTileColumns, 0.0f);
  put(call, row, column, sums);
}

void TileConvolution::put(const Call& call, int64_t row, int64_t column, const float* sums) const {
  const int64_t channels = dst_.fills_blocks ? kLanes : std::min(kLanes, s_.out - column * kTileColumns);
  const int64_t* offsets = &offsets_[static_cast<size_t>(row * kTileRows)];
  const bool is_whole = channels == kLanes && dst_.channel == 1, is_half = dst_.element == Element::BFloat16;
  uint16_t halves[kSums];
  for (int64_t i = 0; is_half && i < tile_rows_ * kTileColumns; i++) halves[i] = half_of(sums[i]);
  for (int64_t r = 0; r < tile_rows_; r++) {
    if (offsets[r] < 0) continue;
    const int64_t to = offsets[r] + column * dst_.block;
    if (is_half)
      put_row(halves + r * kTileColumns, static_cast<uint16_t*>(call.dst) + to, channels, dst_.channel, is_whole);
    else
      put_row(sums + r * kTileColumns, static_cast<float*>(call.dst) + to, channels, dst_.channel, is_whole);
  }
}

}  // namespace gopt_runtime
