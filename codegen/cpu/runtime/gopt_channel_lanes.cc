#include "gopt_channel_lanes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "gopt_activation.h"
#include "gopt_lanes.h"
#include "gopt_planar.h"
#include "gopt_team.h"
#include "gopt_transpose.h"

namespace gopt_runtime {
namespace {

constexpr size_t kMostPositions = 8;  // whose addresses and sums stay in registers
constexpr int kSums = 8;              // that additions, one after another, need to be without waiting

template <Combination combination>
Vector neutral() {
  return (combination == Combination::Greatest ? -std::numeric_limits<float>::infinity() : 0.0f) - Vector{};
}
template <Combination combination>
Vector combined(Vector a, Vector b) {
  return combination == Combination::Greatest ? (b > a ? b : a) : a + b;
}

// Those of `count` positions; of few positions several for each, of every so many taps.
template <Combination combination, size_t count, class Tap>
void combine_positions(const float* x, const int32_t* bases, const int32_t* places, const std::vector<Tap>& taps,
                       const float* weights, float* results) {
  constexpr size_t kChains = count >= kSums ? 1 : kSums / count;
  const float* at[count];
  for (size_t i = 0; i < count; i++) at[i] = x + bases[i];
  Vector parts[kChains][count];
  for (auto& chain : parts)
    for (Vector& part : chain) part = neutral<combination>();
  const auto add = [&](const Tap& tap, Vector(&chain)[count]) {
    const Vector weight = combination == Combination::Products ? load(weights + tap.weight) : Vector{};
#pragma GCC unroll 8
    for (size_t i = 0; i < count; i++) {
      const Vector value = load(at[i] + tap.offset);
      if constexpr (combination == Combination::Products)
        chain[i] += weight * value;
      else
        chain[i] = combined<combination>(chain[i], value);
    }
  };
  const Tap* tap = taps.data();
  size_t left = taps.size();
  for (; left >= kChains; left -= kChains, tap += kChains)
#pragma GCC unroll 8
    for (size_t k = 0; k < kChains; k++) add(tap[k], parts[k]);
  for (; left > 0; left--, tap++) add(*tap, parts[0]);
  const float share = 1.0f / static_cast<float>(taps.size());
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 1; k < kChains; k++) parts[0][i] = combined<combination>(parts[0][i], parts[k][i]);
    if (combination == Combination::Mean) parts[0][i] *= share;
    std::memcpy(results + places[i], &parts[0][i], sizeof(Vector));
  }
}

template <class Tap>
using CombineFunction = void (*)(const float*, const int32_t*, const int32_t*, const std::vector<Tap>&, const float*,
                                 float*);
template <Combination combination, class Tap, size_t count = kMostPositions>
CombineFunction<Tap> find_function(size_t positions) {
  if (positions == count) return combine_positions<combination, count, Tap>;
  if constexpr (count > 1) return find_function<combination, Tap, count - 1>(positions);
  return nullptr;
}

}  // namespace

ChannelLanes::ChannelLanes(const PlanarShape& s, Combination combination, int threads)
    : batch_(s.batch),
      channels_(s.groups),
      source_(area(s.src)),
      result_(area(s.dst)),
      taps_(area(s.kernel)),
      blocks_((channels_ + kLanes - 1) / kLanes),
      combination_(combination),
      threads_(threads),
      rows_(in_vectors(result_)),
      floats_a_thread_(static_cast<size_t>(kLanes * (in_vectors(source_) + 2 * rows_))) {
  const std::vector<Span> depth = spans_of(s, 0), height = spans_of(s, 1), width = spans_of(s, 2);
  for (const Span& d : depth)
    for (const Span& h : height)
      for (const Span& w : width) {
        const Span* spans[3] = {&d, &h, &w};
        add_part(s, spans);
      }
}

std::vector<ChannelLanes::Span> ChannelLanes::spans_of(const PlanarShape& s, int a) {
  std::vector<Span> spans;
  for (int64_t y = 0; y < s.dst[a]; y++) {
    const int64_t at = y * s.strides[a] - s.pads[a], step = s.dilations[a];
    const int64_t first = at < 0 ? std::min(s.kernel[a], (-at + step - 1) / step) : 0;
    const int64_t end = at < s.src[a] ? std::min(s.kernel[a], (s.src[a] - at + step - 1) / step) : 0;
    const int64_t taps = std::max<int64_t>(0, end - first);
    const auto same =
        std::find_if(spans.begin(), spans.end(), [&](const Span& o) { return o.first_tap == first && o.taps == taps; });
    if (same == spans.end())
      spans.push_back({first, taps, {y}});
    else
      same->outputs.push_back(y);
  }
  return spans;
}

void ChannelLanes::add_part(const PlanarShape& s, const Span* (&spans)[3]) {
  Part part;
  const auto for_each = [](int64_t depths, int64_t heights, int64_t widths, const auto& f) {
    for (int64_t d = 0; d < depths; d++)
      for (int64_t h = 0; h < heights; h++)
        for (int64_t w = 0; w < widths; w++) f({d, h, w});
  };
  using Place = std::array<int64_t, 3>;
  const auto offset = [](const Place& at, const int64_t(&extents)[3]) {
    return static_cast<int32_t>(((at[0] * extents[1] + at[1]) * extents[2] + at[2]) * kLanes);
  };
  for_each(spans[0]->taps, spans[1]->taps, spans[2]->taps, [&](Place k) {
    Place at;
    for (size_t a = 0; a < 3; a++) {
      k[a] += spans[a]->first_tap;
      at[a] = k[a] * s.dilations[a];
    }
    part.taps.push_back({offset(at, s.src), offset(k, s.kernel)});
  });
  const auto outputs = [&](int a) { return static_cast<int64_t>(spans[a]->outputs.size()); };
  for_each(outputs(0), outputs(1), outputs(2), [&](Place y) {
    Place at;
    for (size_t a = 0; a < 3; a++) {
      y[a] = spans[a]->outputs[static_cast<size_t>(y[a])];
      at[a] = y[a] * s.strides[a] - s.pads[a];
    }
    part.bases.push_back(offset(at, s.src));
    part.places.push_back(offset(y, s.dst));
  });
  parts_.push_back(std::move(part));
}

size_t ChannelLanes::packed_floats() const { return static_cast<size_t>(blocks_ * taps_ * kLanes); }

void ChannelLanes::pack(const float* weights, float* packed) const {
  for (int64_t block = 0; block < blocks_; block++)
    for (int64_t tap = 0; tap < taps_; tap++)
      for (int64_t lane = 0; lane < kLanes; lane++) {
        const int64_t channel = block * kLanes + lane;
        *packed++ = channel < channels_ ? weights[channel * taps_ + tap] : 0.0f;
      }
}

// The last square begins before it has to.
void ChannelLanes::turn_over(const float* src, int64_t first, float* copy) const {
  const int64_t lanes = std::min<int64_t>(kLanes, channels_ - first);
  if (lanes < kLanes || source_ < kLanes) {
    for (int64_t lane = 0; lane < lanes; lane++)
      for (int64_t i = 0; i < source_; i++) copy[i * kLanes + lane] = src[lane * source_ + i];
    return;
  }
  for (int64_t next = 0; next < source_; next += kLanes) {
    const int64_t at = std::min(next, source_ - kLanes);
    transpose_square(src + at, source_, copy + at * kLanes, kLanes);
  }
}

template <Combination combination>
void ChannelLanes::combine(const float* weights, const Buffers& buffers) const {
  for (const Part& part : parts_)
    for (size_t at = 0, left = (part.bases.size() + kMostPositions - 1) / kMostPositions; left > 0; left--) {
      const size_t count = (part.bases.size() - at + left - 1) / left;
      find_function<combination, Tap>(count)(buffers.copy, &part.bases[at], &part.places[at], part.taps, weights,
                                             buffers.sums);
      at += count;
    }
}

void ChannelLanes::run(const std::vector<Post>& posts, const float* src, const float* packed, const float* bias,
                       float* dst, void* scratch) const {
  share_range(batch_ * blocks_, threads_, [&](int64_t first_task, int64_t last_task, int slot) {
    float* own = static_cast<float*>(scratch) + static_cast<size_t>(slot) * floats_a_thread_;
    const Buffers buffers{own, own + kLanes * in_vectors(source_), own + kLanes * (in_vectors(source_) + rows_)};
    std::fill(own, own + floats_a_thread_, 0.0f);  // lanes beyond the last channel
    for (int64_t task = first_task; task < last_task; task++) {
      const int64_t image = task / blocks_, block = task % blocks_, first = block * kLanes;
      const int64_t channel = image * channels_ + first;
      turn_over(src + channel * source_, first, buffers.copy);
      switch (combination_) {
        case Combination::Products: combine<Combination::Products>(packed + block * taps_ * kLanes, buffers); break;
        case Combination::Greatest: combine<Combination::Greatest>(nullptr, buffers); break;
        case Combination::Mean: combine<Combination::Mean>(nullptr, buffers); break;
      }
      for (int64_t at = 0; at < rows_; at += kLanes)
        transpose_square(buffers.sums + at * kLanes, kLanes, buffers.rows + at, rows_);
      for (int64_t lane = 0; lane < std::min<int64_t>(kLanes, channels_ - first); lane++)
        finish_row(posts, bias, first + lane, (channel + lane) * result_, result_, buffers.rows + lane * rows_, dst);
    }
  });
}

}  // namespace gopt_runtime
