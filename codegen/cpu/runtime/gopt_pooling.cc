#include "gopt_pooling.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace gopt_runtime {
namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }
int64_t in_vectors(int64_t count) { return ceil_div(count, kLanes) * kLanes; }

constexpr int kMostShort = 5;  // elements of a short window's row

// In steps of one each element of a window is read as it lies; else pairs of vectors, of which an odd number's last is
// the other one of its pair.
constexpr int loads_of(int kernel, int stride) { return stride == 1 ? kernel : (kernel + 1) / 2 * 2; }
constexpr int offset_of_load(int kernel, int stride, int k) {
  return stride == 1 ? k : std::min(k / 2 * 2, kernel - 2) + k % 2 * kLanes;
}

template <bool greatest>
float neutral() {
  return greatest ? -std::numeric_limits<float>::infinity() : 0.0f;
}
template <bool greatest>
Vector combine(Vector so_far, Vector value) {
  return greatest ? (value > so_far ? value : so_far) : so_far + value;
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
}

void RowPooling::describe_lanes() {
  const Axis& x = axes_[2];
#if defined(__AVX512F__)
  is_narrow_ = x.src <= 2 * kLanes && x.dst <= 2 * kLanes;
#endif
  inner_begin_ = ceil_div(x.pad, x.stride);
  inner_end_ = x.src + x.pad >= x.kernel ? std::min(x.dst, (x.src + x.pad - x.kernel) / x.stride + 1) : 0;
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
  const int kernel = static_cast<int>(x.kernel), stride = static_cast<int>(x.stride);
  for (int64_t next = 0; next < x.dst; next += kLanes) {
    const int64_t first = std::min(next, x.dst - kLanes);
    if (first >= inner_begin_ && first + kLanes <= inner_end_) continue;
    for (int k = 0; k < loads_of(kernel, stride); k++) {
      const int64_t at = first * stride - x.pad + offset_of_load(kernel, stride, k);
      const int64_t low = std::clamp<int64_t>(-at, 0, kLanes);
      ends_.emplace_back(low, std::clamp<int64_t>(x.src - at, low, kLanes));
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

// In steps of two, elements of windows side by side are every second and every other of two vectors.
template <bool greatest, int kernel, int stride>
void RowPooling::pool_short_row(const float* plane, int64_t z, int64_t y, float* dst) const {
  const Axis& x = axes_[2];
  const Window &depth = axes_[0].windows[static_cast<size_t>(z)], &height = axes_[1].windows[static_cast<size_t>(y)];
  const int64_t step = axes_[1].dilation * x.src;
  const float share = axes_[0].shares[static_cast<size_t>(z)] * axes_[1].shares[static_cast<size_t>(y)];
  const int64_t further = axes_[0].dilation * axes_[1].src * x.src, depths = depth.count, heights = height.count;
  const float* const rows = plane + (depth.first * axes_[1].src + height.first) * x.src;
  const Vector none = neutral<greatest>() - Vector{};
  constexpr int kLoads = loads_of(kernel, stride);
  const auto offset = [](int k) { return offset_of_load(kernel, stride, k); };
  const auto pool_vector = [&](int64_t first, const auto& load_part) {
    Vector parts[kLoads];
    for (Vector& part : parts) part = none;
    const float* from = rows + first * stride - x.pad;
    for (int64_t d = 0; d < depths; d++, from += further) {
      const float* at = from;
      for (int64_t h = 0; h < heights; h++, at += step)
#pragma GCC unroll 8
        for (int k = 0; k < kLoads; k++)
          parts[stride == 1 ? 0 : k] = combine<greatest>(parts[stride == 1 ? 0 : k], load_part(at + offset(k), k));
    }
    Vector result = parts[0];
    if constexpr (stride == 2) {
      result = none;
      for (int k = 0; k < kLoads; k += 2) {
        if (k + 1 < kernel) result = combine<greatest>(result, every_second<0>(parts[k], parts[k + 1]));
        result = combine<greatest>(result, every_second<1>(parts[k], parts[k + 1]));
      }
    }
    if (!greatest) result *= share * load(x.shares.data() + first);
    std::memcpy(dst + first, &result, sizeof result);
  };
  const auto* ends = ends_.data();
  // The last vector begins before it has to.
  for (int64_t next = 0; next < x.dst; next += kLanes) {
    const int64_t first = std::min(next, x.dst - kLanes);
    if (first >= inner_begin_ && first + kLanes <= inner_end_) {
      pool_vector(first, [](const float* at, int) { return load(at); });
      continue;
    }
    SomeLanes lanes[kLoads];
    for (int k = 0; k < kLoads; k++, ends++) lanes[k] = lanes_between(ends->first, ends->second);
    pool_vector(first, [&](const float* at, int k) { return load_some(at, lanes[k], none); });
  }
}

template <bool greatest, int... kernels>
constexpr auto RowPooling::short_functions(std::integer_sequence<int, kernels...>) {
  using Row = std::array<decltype(&RowPooling::pool_short_row<greatest, 2, 1>), sizeof...(kernels)>;
  return std::array<Row, 2>{Row{&RowPooling::pool_short_row<greatest, kernels + 2, 1>...},
                            Row{&RowPooling::pool_short_row<greatest, kernels + 2, 2>...}};
}

template <bool greatest>
void RowPooling::run_short(const float* src, float* dst) const {
  const int64_t source = axes_[0].src * axes_[1].src * axes_[2].src, height = axes_[1].dst;
  constexpr auto kFunctions = short_functions<greatest>(std::make_integer_sequence<int, kMostShort - 1>());
  const auto pool = kFunctions[static_cast<size_t>(axes_[2].stride - 1)][static_cast<size_t>(axes_[2].kernel - 2)];
#pragma omp parallel for schedule(static) num_threads(threads_)
  for (int64_t plane = 0; plane < planes_; plane++)
    for (int64_t z = 0; z < axes_[0].dst; z++)
      for (int64_t y = 0; y < height; y++)
        (this->*pool)(src + plane * source, z, y, dst + ((plane * axes_[0].dst + z) * height + y) * axes_[2].dst);
}

// Borders of a row stay as they are filled first.
template <bool greatest>
void RowPooling::run_as(const float* src, float* dst, float* rows) const {
  const int64_t source = axes_[0].src * axes_[1].src * axes_[2].src;
#pragma omp parallel num_threads(threads_)
  {
    float* own = rows + static_cast<size_t>(omp_get_thread_num()) * floats_a_thread();
    std::fill(own, own + floats_a_thread(), neutral<greatest>());
    const auto row = [&](int64_t y) { return own + static_cast<size_t>(y % rows_) * (is_narrow_ ? 0 : row_); };
    const int64_t height = axes_[1].dst;
#pragma omp for schedule(static)
    for (int64_t plane = 0; plane < planes_; plane++)
      for (int64_t z = 0; z < axes_[0].dst; z++)
        for (int64_t first = 0; first < height; first += rows_) {
          const int64_t end = std::min(height, first + rows_);
          for (int64_t y = first; y < end; y++) combine_row<greatest>(src + plane * source, z, y, row(y));
          for (int64_t y = first; y < end; y++)
            pool_row<greatest>(src + plane * source, z, y, row(y),
                               dst + ((plane * axes_[0].dst + z) * height + y) * axes_[2].dst);
        }
  }
}

void RowPooling::run(const float* src, float* dst, void* scratch) const {
  if (is_short_) return average_ ? run_short<false>(src, dst) : run_short<true>(src, dst);
  if (average_)
    run_as<false>(src, dst, static_cast<float*>(scratch));
  else
    run_as<true>(src, dst, static_cast<float*>(scratch));
}

}  // namespace gopt_runtime
