#include "gopt_pooling.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "gopt_planar.h"
#include "gopt_team.h"

namespace gopt_runtime {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

constexpr int kMostShort = 5;  // elements of a short window's row

// Vectors side by side that hold all windows of a vector of the output: each element is read once a row, whatever the
// number of windows that it is under.
constexpr int loads_of(int kernel, int stride) { return ((kLanes - 1) * stride + kernel + kLanes - 1) / kLanes; }

template <bool greatest>
float neutral() {
  return greatest ? -std::numeric_limits<float>::infinity() : 0.0f;
}
template <bool greatest>
Vector combine(Vector so_far, Vector value) {
  return greatest ? (value > so_far ? value : so_far) : so_far + value;
}

// Of `count` elements side by side from each lane of `row` on, which `next` goes on.
template <bool greatest, int count>
Vector combine_moved(Vector row, Vector next) {
  Vector result = row;
  if constexpr (count > 1) result = combine<greatest>(result, moved<1>(row, next));
  if constexpr (count > 2) result = combine<greatest>(result, moved<2>(row, next));
  if constexpr (count > 3) result = combine<greatest>(result, moved<3>(row, next));
  if constexpr (count > 4) result = combine<greatest>(result, moved<4>(row, next));
  static_assert(count <= kMostShort);
  return result;
}

// The elements under windows side by side, of vectors that hold all of these. In steps of two they are every second and
// every other one of a pair of vectors, moved on by what the third one holds.
template <bool greatest, int kernel, int stride>
Vector combine_windows(const Vector* parts) {
  if constexpr (stride == 1) {
    return combine_moved<greatest, kernel>(parts[0], parts[1]);
  } else {
    const Vector even = every_second<0>(parts[0], parts[1]), odd = every_second<1>(parts[0], parts[1]);
    if constexpr (kernel == 2) return combine<greatest>(even, odd);
    const Vector &last = parts[loads_of(kernel, stride) - 1], more_even = every_second<0>(last, last),
                 more_odd = every_second<1>(last, last);
    return combine<greatest>(combine_moved<greatest, (kernel + 1) / 2>(even, more_even),
                             combine_moved<greatest, kernel / 2>(odd, more_odd));
  }
}

}  // namespace

RowPooling::RowPooling(const Pooling& p, int threads)
    : planes_(p.src[0] * p.src[1]), threads_(threads), average_(p.average) {
  const size_t axes = p.kernel.size();
  for (size_t d = 0; d < axes; d++) {
    Axis& a = axes_[3 - axes + d];
    a = {p.src[2 + d], p.dst[2 + d], p.kernel[d], p.strides[d], p.dilations[d], p.pads[d], {}, {}};
    const int64_t high = a.src + (p.counts_padding ? p.pads[axes + d] : 0);
    for (int64_t y = 0; y < a.dst; y++) {
      const int64_t at = y * a.stride - a.pad;
      const auto beyond = [&](int64_t end) { return std::clamp<int64_t>(ceil_div(end - at, a.dilation), 0, a.kernel); };
      a.windows.push_back({at + beyond(0) * a.dilation, std::max<int64_t>(0, beyond(a.src) - beyond(0))});
      const int64_t counted = beyond(high) - beyond(p.counts_padding ? -a.pad : 0);
      a.shares.push_back(1.0f / static_cast<float>(counted));
    }
  }
  describe_lanes();
  if (pays_by_channels(p.counts_padding))
    channels_ = std::make_unique<ChannelLanes>(shape(), average_ ? Combination::Mean : Combination::Greatest, threads);
}

// In instructions: two transposes of whole vectors and a load a tap, against loads of rows, steps over their elements
// and what else a row takes.
bool RowPooling::pays_by_channels(bool counts_padding) const {
  const auto pads = [](const Axis& a) {
    return a.pad > 0 || (a.dst - 1) * a.stride + (a.kernel - 1) * a.dilation >= a.src;
  };
  if (is_short_ || planes_ < kLanes || (average_ && counts_padding && std::any_of(axes_, axes_ + 3, pads)))
    return false;
  const Axis &z = axes_[0], &y = axes_[1], &x = axes_[2];
  const int64_t source = z.src * y.src * x.src, rows = z.dst * y.dst, height = z.kernel * y.kernel;
  const auto vectors = [](int64_t count) { return in_vectors(count) / kLanes; };
  const int64_t by_rows = kLanes * rows * (height * vectors(x.src) + 2 * x.kernel * vectors(x.dst) + 25);
  const int64_t by_channels = (vectors(source) + vectors(rows * x.dst)) * 6 * kLanes + rows * x.dst * height * x.kernel;
  return by_channels < by_rows;
}

// A plane a group.
PlanarShape RowPooling::shape() const {
  PlanarShape s;
  s.groups = planes_;
  for (int a = 0; a < 3; a++) {
    s.src[a] = axes_[a].src;
    s.dst[a] = axes_[a].dst;
    s.kernel[a] = axes_[a].kernel;
    s.strides[a] = axes_[a].stride;
    s.dilations[a] = axes_[a].dilation;
    s.pads[a] = axes_[a].pad;
  }
  return s;
}

void RowPooling::describe_lanes() {
  const Axis& x = axes_[2];
#if defined(__AVX512F__)
  is_narrow_ = x.src <= 2 * kLanes && x.dst <= 2 * kLanes;
#endif
  is_short_ = x.kernel >= 2 && x.kernel <= kMostShort && x.stride <= 2 && x.dilation == 1 && x.dst >= kLanes;
  if (is_short_) describe_ends();
  const int64_t reach = (x.kernel - 1) * x.dilation;
  row_ = static_cast<size_t>(in_vectors(std::max(x.pad + in_vectors(x.src), in_vectors(x.dst) * x.stride + reach)) +
                             2 * kLanes);
  // Rows that were stored just now are read slowly: others are combined in between.
  rows_ = std::clamp<int64_t>(8192 / static_cast<int64_t>(row_), 1, 8);
  if (!is_narrow_) return;
  for (int64_t first = 0; first < x.dst; first += kLanes)
    for (int64_t k = 0; k < x.kernel; k++) {
      masks_.push_back(0);
      for (int64_t lane = 0; lane < kLanes; lane++) {
        const int64_t at = (first + lane) * x.stride + k * x.dilation - x.pad;
        const bool is_there = first + lane < x.dst && at >= 0 && at < x.src;
        lanes_.push_back(is_there ? static_cast<int32_t>(at) : 0);
        masks_.back() |= static_cast<uint32_t>(is_there) << lane;
      }
    }
}

void RowPooling::describe_ends() {
  const Axis& x = axes_[2];
  const int loads = loads_of(static_cast<int>(x.kernel), static_cast<int>(x.stride));
  // All that is loaded lies within the row.
  inner_begin_ = ceil_div(x.pad, x.stride);
  inner_end_ = (x.src + x.pad - loads * kLanes + x.stride) / x.stride;
  for (int64_t next = 0; next < x.dst; next += kLanes) {
    const int64_t first = std::min(next, x.dst - kLanes);
    for (int k = 0; k < loads && !is_inner(first); k++) {
      const int64_t at = first * x.stride - x.pad + k * kLanes;
      const int64_t low = std::clamp<int64_t>(-at, 0, kLanes);
      ends_.push_back({lanes_between(low, std::clamp<int64_t>(x.src - at, low, kLanes))});
    }
  }
}

// Lanes from `first` on.
template <bool greatest>
Vector RowPooling::combined_rows(const float* plane, int64_t z, int64_t y, int64_t first) const {
  const Window &depth = axes_[0].windows[static_cast<size_t>(z)], &height = axes_[1].windows[static_cast<size_t>(y)];
  const int64_t width = axes_[2].src, step = axes_[1].dilation * width;
  const Vector none = neutral<greatest>() - Vector{};
  Vector result = none;
  for (int64_t d = 0; d < depth.count; d++) {
    const float* at = plane + ((depth.first + d * axes_[0].dilation) * axes_[1].src + height.first) * width + first;
    for (int64_t h = 0; h < height.count; h++, at += step)
      result = combine<greatest>(result, load_lanes(at, width - first, none));
  }
  return result;
}

// A vector of every stride-th element.
Vector RowPooling::every(const float* from) const {
  const int64_t stride = axes_[2].stride;
  if (stride == 1) return load(from);
  if (stride == 2) return every_second<0>(load(from), load(from + kLanes));
  Vector v;
  for (int lane = 0; lane < kLanes; lane++) v[lane] = from[lane * stride];
  return v;
}

template <bool greatest>
void RowPooling::combine_row(const float* plane, int64_t z, int64_t y, float* row) const {
  if (is_narrow_) return;
  for (int64_t first = 0; first < axes_[2].src; first += kLanes) {
    const Vector combined = combined_rows<greatest>(plane, z, y, first);
    std::memcpy(row + axes_[2].pad + first, &combined, sizeof combined);
  }
}

template <bool greatest>
void RowPooling::pool_row([[maybe_unused]] const float* plane, int64_t z, int64_t y, const float* row,
                          float* dst) const {
  const Axis& x = axes_[2];
  const Vector none = neutral<greatest>() - Vector{};
  const float share = axes_[0].shares[static_cast<size_t>(z)] * axes_[1].shares[static_cast<size_t>(y)];
  const auto store = [&](Vector result, int64_t first) {
    if (!greatest) result *= share * load_lanes(x.shares.data() + first, x.dst - first, none);
    store_first(result, dst + first, x.dst - first);
  };
#if defined(__AVX512F__)
  if (is_narrow_) {
    const Vector low = combined_rows<greatest>(plane, z, y, 0);
    const Vector high = x.src > kLanes ? combined_rows<greatest>(plane, z, y, kLanes) : none;
    const uint32_t* mask = masks_.data();
    const int32_t* lanes = lanes_.data();
    for (int64_t first = 0; first < x.dst; first += kLanes) {
      Vector result = none;
      for (int64_t k = 0; k < x.kernel; k++, mask++, lanes += kLanes)
        result = combine<greatest>(result,
                                   _mm512_mask_blend_ps(static_cast<__mmask16>(*mask), none,
                                                        _mm512_permutex2var_ps(low, _mm512_loadu_si512(lanes), high)));
      store(result, first);
    }
    return;
  }
#endif
  for (int64_t first = 0; first < x.dst; first += kLanes) {
    Vector result = none;
    for (int64_t k = 0; k < x.kernel; k++)
      result = combine<greatest>(result, every(row + first * x.stride + k * x.dilation));
    store(result, first);
  }
}

template <bool greatest, int kernel, int stride>
void RowPooling::pool_short_rows(const float* plane, bool is_amid, int64_t z, float* dst) const {
  const Axis& x = axes_[2];
  const Window& depth = axes_[0].windows[static_cast<size_t>(z)];
  const int64_t width = x.src, pad = x.pad, count = x.dst, rows = axes_[1].dst, step = axes_[1].dilation * width,
                further = axes_[0].dilation * axes_[1].src * width, depths = depth.count;
  const Window* height = axes_[1].windows.data();
  const Vector none = neutral<greatest>() - Vector{};
  constexpr int kLoads = loads_of(kernel, stride);
  for (int64_t y = 0; y < rows; y++, height++, dst += count) {
    const float* const row = plane + (depth.first * axes_[1].src + height->first) * width - pad;
    const int64_t heights = height->count;
    const auto pool_vector = [&](int64_t first, const auto& load_part, const auto& finish_part) {
      Vector parts[kLoads];
      for (Vector& part : parts) part = none;
      const float* from = row + first * stride;
      for (int64_t d = 0; d < depths; d++, from += further) {
        const float* at = from;
        for (int64_t h = 0; h < heights; h++, at += step)
#pragma GCC unroll 8
          for (int k = 0; k < kLoads; k++) parts[k] = combine<greatest>(parts[k], load_part(at + k * kLanes, k));
      }
      for (int k = 0; k < kLoads; k++) parts[k] = finish_part(parts[k], k);
      Vector result = combine_windows<greatest, kernel, stride>(parts);
      if (!greatest)
        result *= axes_[0].shares[static_cast<size_t>(z)] * axes_[1].shares[static_cast<size_t>(y)] *
                  load(x.shares.data() + first);
      std::memcpy(dst + first, &result, sizeof result);
    };
    const auto all = [](const float* at, int) { return load(at); };
    const auto as_it_is = [](Vector part, int) { return part; };
    const End* ends = ends_.data();
    // The last vector begins before it has to.
    for (int64_t next = 0; next < count; next += kLanes) {
      const int64_t first = std::min(next, count - kLanes);
      if (is_inner(first)) {
        pool_vector(first, all, as_it_is);
        continue;
      }
      if (is_amid)
        pool_vector(first, all, [&](Vector part, int k) { return lanes_of(part, ends[k].lanes, none); });
      else
        pool_vector(
            first, [&](const float* at, int k) { return load_some(at, ends[k].lanes, none); }, as_it_is);
      ends += kLoads;
    }
  }
}

template <bool greatest, int... kernels>
constexpr auto RowPooling::short_functions(std::integer_sequence<int, kernels...>) {
  using Rows = std::array<decltype(&RowPooling::pool_short_rows<greatest, 2, 1>), sizeof...(kernels)>;
  return std::array<Rows, 2>{Rows{&RowPooling::pool_short_rows<greatest, kernels + 2, 1>...},
                             Rows{&RowPooling::pool_short_rows<greatest, kernels + 2, 2>...}};
}

template <bool greatest>
void RowPooling::run_short(const float* src, float* dst) const {
  const int64_t source = axes_[0].src * axes_[1].src * axes_[2].src, depth = axes_[0].dst,
                slice = axes_[1].dst * axes_[2].dst;
  constexpr auto kFunctions = short_functions<greatest>(std::make_integer_sequence<int, kMostShort - 1>());
  const auto pool = kFunctions[static_cast<size_t>(axes_[2].stride - 1)][static_cast<size_t>(axes_[2].kernel - 2)];
  share_each(planes_, threads_, [&](int64_t plane, int) {
    const bool is_amid = plane > 0 && plane + 1 < planes_ && source >= (kMostShort / 2 + 1) * kLanes;
    for (int64_t z = 0; z < depth; z++)
      (this->*pool)(src + plane * source, is_amid, z, dst + (plane * depth + z) * slice);
  });
}

// Borders of a row stay as they are filled first.
template <bool greatest>
void RowPooling::run_as(const float* src, float* dst, float* rows) const {
  const int64_t source = axes_[0].src * axes_[1].src * axes_[2].src;
  share_range(planes_, threads_, [&](int64_t first_plane, int64_t last_plane, int slot) {
    float* own = rows + static_cast<size_t>(slot) * floats_a_thread();
    std::fill(own, own + floats_a_thread(), neutral<greatest>());
    const auto row = [&](int64_t y) { return own + static_cast<size_t>(y % rows_) * (is_narrow_ ? 0 : row_); };
    const int64_t height = axes_[1].dst;
    for (int64_t plane = first_plane; plane < last_plane; plane++)
      for (int64_t z = 0; z < axes_[0].dst; z++)
        for (int64_t first = 0; first < height; first += rows_) {
          const int64_t end = std::min(height, first + rows_);
          for (int64_t y = first; y < end; y++) combine_row<greatest>(src + plane * source, z, y, row(y));
          for (int64_t y = first; y < end; y++)
            pool_row<greatest>(src + plane * source, z, y, row(y),
                               dst + ((plane * axes_[0].dst + z) * height + y) * axes_[2].dst);
        }
  });
}

void RowPooling::run(const float* src, float* dst, void* scratch) const {
  if (channels_) return channels_->run({}, src, nullptr, nullptr, dst, scratch);
  if (is_short_) return average_ ? run_short<false>(src, dst) : run_short<true>(src, dst);
  if (average_)
    run_as<false>(src, dst, static_cast<float*>(scratch));
  else
    run_as<true>(src, dst, static_cast<float*>(scratch));
}

}  // namespace gopt_runtime
