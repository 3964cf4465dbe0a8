#include "gopt_planar.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "gopt_activation.h"
#include "gopt_lanes.h"
#include "gopt_team.h"

namespace gopt_runtime {
namespace {

constexpr int kMaxBlock = 8, kMaxVectors = 8;
constexpr size_t kVectorsOfChunk = 24;  // of one visit to each block of channels

struct Tile {
  const float* x;
  int64_t in, channel;
  const int32_t* taps;
  size_t tap_count;
  const float* weights;
  const int32_t* vectors;
  float* lanes;  // [channel of the block][vector][lane]
};

// Sums of `channels` output channels at `vectors` vectors of positions.
template <int channels, int vectors>
void compute_tile(const Tile& t) {
  Vector sums[channels][vectors];
#pragma GCC unroll 8
  for (int o = 0; o < channels; o++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) sums[o][v] = Vector{};
  const float* w = t.weights;
  const float* x = t.x;
  for (int64_t c = 0; c < t.in; c++, x += t.channel) {
    for (size_t tap = 0; tap < t.tap_count; tap++, w += channels) {
      const float* at = x + t.taps[tap];
      Vector values[vectors];
#pragma GCC unroll 8
      for (int v = 0; v < vectors; v++) values[v] = load(at + t.vectors[v]);
#pragma GCC unroll 8
      for (int o = 0; o < channels; o++) {
        const Vector weight = w[o] - Vector{};
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) sums[o][v] += weight * values[v];
      }
    }
  }
#pragma GCC unroll 8
  for (int o = 0; o < channels; o++)
#pragma GCC unroll 8
    for (int v = 0; v < vectors; v++) std::memcpy(t.lanes + (o * vectors + v) * kLanes, &sums[o][v], sizeof(Vector));
}

constexpr int most_vectors(int channels) { return std::min(kMaxVectors, kRegisters / channels); }

using TileFunction = void (*)(const Tile&);

template <int channels, int vectors>
TileFunction find_tile(int count) {
  if (count == vectors) return compute_tile<channels, vectors>;
  if constexpr (vectors > 1) return find_tile<channels, vectors - 1>(count);
  return nullptr;
}

TileFunction find_tile(int64_t channels, int vectors) {
  switch (channels) {
    case 1: return find_tile<1, most_vectors(1)>(vectors);
    case 2: return find_tile<2, most_vectors(2)>(vectors);
    case 3: return find_tile<3, most_vectors(3)>(vectors);
    case 4: return find_tile<4, most_vectors(4)>(vectors);
    case 5: return find_tile<5, most_vectors(5)>(vectors);
    case 6: return find_tile<6, most_vectors(6)>(vectors);
    case 7: return find_tile<7, most_vectors(7)>(vectors);
    default: return find_tile<8, most_vectors(8)>(vectors);
  }
}

int64_t floor_div(int64_t a, int64_t b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }
int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }
// Vectors run through the ends of rows where that wastes fewer lanes than to begin anew with each row.
bool runs_through(int64_t rows, int64_t columns, int64_t width) {
  return ceil_div((rows - 1) * width + columns, kLanes) < rows * ceil_div(columns, kLanes);
}

}  // namespace

PlanarConvolution::PlanarConvolution(const PlanarShape& shape, std::vector<Post> posts, int threads)
    : s_(shape), posts_(std::move(posts)), threads_(threads), by_input_(shape.transposed) {
  if (shape.lanes_are_channels) {
    channels_ = std::make_unique<ChannelLanes>(shape, Combination::Products, threads);
    return;
  }
  products_ = products_of(s_, threads);
  if (products_) sums_ = std::make_unique<TapSums>(s_);
  const int64_t count = ceil_div(s_.out, kMaxBlock);
  for (int64_t b = 0, first = 0; b < count; b++) {
    blocks_.push_back({first, (s_.out - first) / (count - b)});
    first += blocks_.back().count;
  }
  describe_axes();
  int64_t residue[3];
  for (residue[0] = 0; residue[0] < step_[0]; residue[0]++)
    for (residue[1] = 0; residue[1] < step_[1]; residue[1]++)
      for (residue[2] = 0; residue[2] < step_[2]; residue[2]++) add_part(residue);
  whole_groups_ = s_.batch * s_.groups >= 4 * threads_ ||
                  (s_.batch * s_.groups >= threads_ && s_.batch * s_.groups % threads_ == 0);
}

// A convolution's tap k reads phase k * dilation % stride. A transposed one's output y is of residue y % stride, and
// its taps are those with y + pad - k * dilation a multiple of the stride, which read the source at the quotient.
void PlanarConvolution::describe_axes() {
  channel_ = 1;
  for (int a = 0; a < 3; a++) {
    Axis& axis = axes_[a];
    const int64_t stride = s_.strides[a], reach = (s_.kernel[a] - 1) * s_.dilations[a];
    if (s_.transposed) {
      step_[a] = stride;
      axis.phases = {true};
      axis.before = std::max<int64_t>(0, -floor_div(s_.pads[a] - reach, stride));
      const int64_t last = floor_div(s_.dst[a] - 1 + s_.pads[a], stride);
      axis.extent = std::max(s_.src[a], last + 1) + axis.before;
    } else {
      axis.stride = stride;
      axis.before = s_.pads[a];
      axis.phases.assign(static_cast<size_t>(stride), false);
      for (int64_t k = 0; k < s_.kernel[a]; k++) axis.phases[static_cast<size_t>(k * s_.dilations[a] % stride)] = true;
      axis.extent = s_.dst[a] + reach / stride;
    }
    channel_ *= axis.extent * static_cast<int64_t>(axis.phases.size());
    in_place_ = in_place_ && axis.before == 0 && axis.extent == s_.src[a] && axis.phases.size() == 1;
  }
  // The last vector of a run begins before it has to (add_vector): every part has runs of a vector at least.
  const int64_t width = axes_[2].extent;
  const auto counts = [this](int a) {  // of positions along an axis, in the parts with the most and with the fewest
    return std::array{ceil_div(s_.dst[a], step_[a]), std::max<int64_t>(1, s_.dst[a] / step_[a])};
  };
  for (const int64_t rows : counts(1))
    for (const int64_t columns : counts(2))
      in_place_ = in_place_ && (runs_through(rows, columns, width) ? (rows - 1) * width + columns : columns) >= kLanes;
}

void PlanarConvolution::add_part(const int64_t (&residue)[3]) {
  Part part;
  std::vector<int32_t> offsets[3], taps[3];  // of each axis
  int64_t pitch = 1;                         // of the axis within a phase
  const int64_t phase_size = axes_[0].extent * axes_[1].extent * axes_[2].extent;
  int64_t phase_pitch = phase_size;
  for (int a = 2; a >= 0; a--) {
    const Axis& axis = axes_[a];
    part.start[a] = residue[a];
    part.count[a] = s_.dst[a] > residue[a] ? ceil_div(s_.dst[a] - residue[a], step_[a]) : 0;
    for (int64_t k = 0; k < s_.kernel[a]; k++) {
      const int64_t at = s_.transposed ? residue[a] + s_.pads[a] - k * s_.dilations[a] : k * s_.dilations[a];
      const int64_t quotient = floor_div(at, s_.strides[a]), phase = at - quotient * s_.strides[a];
      if (s_.transposed && phase != 0) continue;
      const int64_t shift = s_.transposed ? quotient + axis.before : quotient;
      offsets[a].push_back(static_cast<int32_t>(shift * pitch + phase * phase_pitch));
      taps[a].push_back(static_cast<int32_t>(k));
    }
    pitch *= axis.extent;
    phase_pitch *= static_cast<int64_t>(axis.phases.size());
  }
  if (part.count[0] * part.count[1] * part.count[2] == 0) return;
  for (size_t d = 0; d < taps[0].size(); d++)
    for (size_t h = 0; h < taps[1].size(); h++)
      for (size_t w = 0; w < taps[2].size(); w++) {
        part.taps.push_back(offsets[0][d] + offsets[1][h] + offsets[2][w]);
        part.weights.push_back(
            static_cast<int32_t>((taps[0][d] * s_.kernel[1] + taps[1][h]) * s_.kernel[2] + taps[2][w]));
      }
  part.packed = packed_floats_;
  packed_floats_ += static_cast<size_t>(s_.groups * s_.out * s_.in) * part.taps.size();
  add_vectors(part);
  parts_.push_back(std::move(part));
}

void PlanarConvolution::add_vectors(Part& part) const {
  const int64_t width = axes_[2].extent, rows = part.count[1], columns = part.count[2];
  const bool through = runs_through(rows, columns, width);
  part.first_segment.push_back(0);
  for (int64_t depth = 0; depth < part.count[0]; depth++) {
    const int64_t runs = through ? 1 : rows, length = through ? (rows - 1) * width + columns : columns;
    for (int64_t run = 0; run < runs; run++)
      for (int64_t at = 0; at < length; at += kLanes)
        add_vector(part, depth, run * width + at, std::min<int64_t>(kLanes, length - at));
  }
}

// `first` counts positions of the copy within a slice of the depth.
void PlanarConvolution::add_vector(Part& part, int64_t depth, int64_t first, int64_t length) const {
  const int64_t width = axes_[2].extent;
  // Of the source itself nothing beyond its end is read: the last vector of a run begins before it has to.
  const int64_t back = in_place_ ? kLanes - length : 0;
  part.vectors.push_back(static_cast<int32_t>(depth * axes_[1].extent * width + first - back));
  for (int64_t lane = 0; lane < length;) {
    const int64_t row = (first + lane) / width, column = (first + lane) % width;
    const int64_t here = std::min(length - lane, width - column);
    if (row < part.count[1] && column < part.count[2]) {
      const int64_t y[3] = {part.start[0] + depth * step_[0], part.start[1] + row * step_[1],
                            part.start[2] + column * step_[2]};
      part.segments.push_back({static_cast<int32_t>(lane + back),
                               static_cast<int32_t>(std::min(here, part.count[2] - column)),
                               static_cast<int32_t>((y[0] * s_.dst[1] + y[1]) * s_.dst[2] + y[2])});
    }
    lane += here;
  }
  part.first_segment.push_back(static_cast<int32_t>(part.segments.size()));
}

double PlanarConvolution::used_lanes() const {
  size_t vectors = 0;
  for (const Part& part : parts_) vectors += part.vectors.size();
  return static_cast<double>(area(s_.dst)) / static_cast<double>(std::max<size_t>(1, vectors) * kLanes);
}

size_t PlanarConvolution::packed_floats() const {
  if (channels_) return channels_->packed_floats();
  return products_ ? products_->packed_floats() : packed_floats_;
}

// Within a part: group, block of channels, input channel, tap, channel of the block.
void PlanarConvolution::pack(const float* weights, float* packed) const {
  if (channels_) return channels_->pack(weights, packed);
  if (products_) return products_->pack(weights, packed);
  const int64_t taps = area(s_.kernel) * taps_of_channel_, channels = s_.out / taps_of_channel_;
  for (const Part& part : parts_) {
    float* to = packed + part.packed;
    for (int64_t g = 0; g < s_.groups; g++)
      for (const Block& block : blocks_)
        for (int64_t i = 0; i < s_.in; i++)
          for (const int32_t tap : part.weights)
            for (int64_t o = block.first; o < block.first + block.count; o++) {
              const int64_t channel = o / taps_of_channel_;
              const int64_t row =
                  by_input_ ? (g * s_.in + i) * channels + channel : (g * channels + channel) * s_.in + i;
              *to++ = weights[row * taps + tap + o % taps_of_channel_];
            }
  }
}

// Reads of the last vector go beyond its channel.
size_t PlanarConvolution::scratch_floats() const {
  if (channels_) return channels_->scratch_floats();
  if (products_)
    return products_->scratch_floats() + floats_of_products() + static_cast<size_t>(threads_) * row_floats();
  if (in_place_) return 0;
  const int64_t copies = whole_groups_ ? threads_ : 1, images = whole_groups_ ? 1 : s_.batch * s_.groups;
  return static_cast<size_t>(copies * (images * s_.in * channel_ + 2 * kLanes));
}

void PlanarConvolution::copy_channel(const float* src, float* copy) const {
  const int64_t size = area({axes_[0].extent, axes_[1].extent, axes_[2].extent});
  int64_t phase[3];
  for (phase[0] = 0; phase[0] < static_cast<int64_t>(axes_[0].phases.size()); phase[0]++)
    for (phase[1] = 0; phase[1] < static_cast<int64_t>(axes_[1].phases.size()); phase[1]++)
      for (phase[2] = 0; phase[2] < static_cast<int64_t>(axes_[2].phases.size()); phase[2]++, copy += size) {
        bool is_read = true;
        for (int a = 0; a < 3; a++) is_read = is_read && axes_[a].phases[static_cast<size_t>(phase[a])];
        if (is_read) copy_phase(src, copy, phase);
      }
}

// The border of the copy is filled already.
void PlanarConvolution::copy_phase(const float* src, float* copy, const int64_t (&phase)[3]) const {
  int64_t first[3], last[3], from[3];
  for (int a = 0; a < 3; a++) {
    const Axis& axis = axes_[a];
    first[a] = std::max<int64_t>(0, ceil_div(axis.before - phase[a], axis.stride));
    last[a] = std::min(axis.extent, ceil_div(s_.src[a] + axis.before - phase[a], axis.stride));
    from[a] = first[a] * axis.stride + phase[a] - axis.before;
  }
  const int64_t stride = axes_[2].stride, count = last[2] - first[2];
  if (count <= 0) return;
  for (int64_t d = first[0], z = from[0]; d < last[0]; d++, z += axes_[0].stride)
    for (int64_t h = first[1], y = from[1]; h < last[1]; h++, y += axes_[1].stride) {
      const float* row = src + (z * s_.src[1] + y) * s_.src[2] + from[2];
      float* to = copy + (d * axes_[1].extent + h) * axes_[2].extent + first[2];
      copy_row(row, to, count, stride);
    }
}

void PlanarConvolution::store(const Part& part, size_t vector, size_t count, int64_t channel, float* lanes,
                              const float* bias, float* dst) const {
  const int64_t size = area(s_.dst), step = step_[2], number = static_cast<int64_t>(count) * kLanes;
  float* plane = dst + channel * size;
  const int64_t within = channel % (s_.groups * s_.out);
  const Segment* segments = part.segments.data();
  const int32_t* first = &part.first_segment[vector];
  if (bias) {
    const float value = bias[within];
    for (int64_t i = 0; i < number; i++) lanes[i] += value;
  }
  for (const Post& post : posts_) {
    if (post.kind != PostKind::Sum && post.kind != PostKind::Add) {
      apply_activation(post, lanes, number);
    } else if (!post.dims.empty()) {
      const float value = static_cast<const float*>(post.operand)[within];
      for (int64_t i = 0; i < number; i++) lanes[i] += value;
    } else {
      const float* other =
          post.kind == PostKind::Sum ? plane : static_cast<const float*>(post.operand) + channel * size;
      for (size_t v = 0; v < count; v++)
        for (const Segment* s = segments + first[v]; s < segments + first[v + 1]; s++)
          for (int32_t i = 0; i < s->length; i++)
            lanes[v * kLanes + static_cast<size_t>(s->lane + i)] += other[s->dst + i * step];
    }
  }
  for (size_t v = 0; v < count; v++)
    for (const Segment* s = segments + first[v]; s < segments + first[v + 1]; s++) {
      const float* from = lanes + v * kLanes;
      if (step == 1)
        store_lanes(from, plane + s->dst - s->lane, s->lane, s->length);
      else
        store_apart(from, plane + s->dst, s->lane, s->length, step);
    }
}

// `image` numbers batch and group together; `x` is its copied channels.
void PlanarConvolution::compute(int64_t image, const Part& part, size_t first, size_t last, const Block& block,
                                const float* x, const float* packed, const float* bias, float* dst) const {
  alignas(64) float lanes[kMaxBlock * kMaxVectors * kLanes];
  const int64_t group = image % s_.groups, taps = static_cast<int64_t>(part.taps.size());
  const auto most = static_cast<size_t>(most_vectors(static_cast<int>(block.count)));
  const size_t tiles = (last - first + most - 1) / most;
  Tile tile{x, s_.in, channel_, part.taps.data(), part.taps.size(), nullptr, nullptr, lanes};
  tile.weights = packed + part.packed + static_cast<size_t>((group * s_.out + block.first) * s_.in * taps);
  for (size_t at = first, left = tiles; at < last; left--) {
    const size_t count = (last - at + left - 1) / left;
    tile.vectors = &part.vectors[at];
    find_tile(block.count, static_cast<int>(count))(tile);
    for (int64_t o = 0; o < block.count; o++)
      store(part, at, count, image * s_.out + block.first + o, lanes + static_cast<size_t>(o) * count * kLanes, bias,
            dst);
    at += count;
  }
}

void PlanarConvolution::run(const float* src, const float* packed, const float* bias, float* dst, void* scratch) const {
  if (channels_) return channels_->run(posts_, src, packed, bias, dst, scratch);
  if (products_) return run_taps(src, packed, bias, dst, static_cast<float*>(scratch));
  const int64_t images = s_.batch * s_.groups, source = area(s_.src);
  auto* copies = static_cast<float*>(scratch);
  if (whole_groups_) {
    share_range(images, threads_, [&](int64_t first_image, int64_t last_image, int slot) {
      float* own = copies + slot * (s_.in * channel_ + 2 * kLanes);
      if (!in_place_) std::fill(own, own + s_.in * channel_, 0.0f);
      for (int64_t image = first_image; image < last_image; image++) {
        const float* first = src + image * s_.in * source;
        for (int64_t i = 0; !in_place_ && i < s_.in; i++) copy_channel(first + i * source, own + i * channel_);
        for (const Part& part : parts_)
          for (const Block& block : blocks_)
            compute(image, part, 0, part.vectors.size(), block, in_place_ ? first : own, packed, bias, dst);
      }
    });
    return;
  }
  if (!in_place_)
    share_each(images * s_.in, threads_, [&](int64_t c, int) {
      std::fill(copies + c * channel_, copies + (c + 1) * channel_, 0.0f);
      copy_channel(src + c * source, copies + c * channel_);
    });
  const auto blocks = static_cast<int64_t>(blocks_.size());
  share(threads_, threads_, [&](int64_t share_of_all, int) {
    for (const Part& part : parts_) {
      const auto chunks = static_cast<int64_t>((part.vectors.size() + kVectorsOfChunk - 1) / kVectorsOfChunk);
      const int64_t all = images * chunks * blocks;
      for (int64_t task = all * share_of_all / threads_; task < all * (share_of_all + 1) / threads_; task++) {
        const int64_t chunk = task / blocks % chunks, image = task / blocks / chunks;
        const size_t first = static_cast<size_t>(chunk) * kVectorsOfChunk;
        compute(image, part, first, std::min(first + kVectorsOfChunk, part.vectors.size()),
                blocks_[static_cast<size_t>(task % blocks)], (in_place_ ? src : copies) + image * s_.in * channel_,
                packed, bias, dst);
      }
    }
  });
}

}  // namespace gopt_runtime
