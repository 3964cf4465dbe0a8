#include "gopt_unfolded.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "gopt_activation.h"
#include "gopt_lanes.h"
#include "gopt_team.h"

namespace gopt_runtime {
namespace {

constexpr int64_t kLine = 16;  // floats that memory moves together

int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }
size_t in_lines(int64_t floats) { return static_cast<size_t>((floats + 15) / 16 * 16); }

// Those of `count` indices i at which begin + i * step lies within [0, extent).
std::pair<int64_t, int64_t> within(int64_t begin, int64_t step, int64_t extent, int64_t count) {
  const int64_t low = std::clamp<int64_t>(ceil_div(-begin, step), 0, count);
  return {low, std::clamp<int64_t>(ceil_div(extent - begin, step), low, count)};
}

// Elements [low, high) of `count` that are there, zeros in place of the others. `row` may lie before them.
void copy_part(const float* row, int64_t step, int64_t low, int64_t high, int64_t count, float* to) {
  std::fill(to, to + low, 0.0f);
  if (high > low) copy_row(row + low * step, to + low, high - low, step);
  std::fill(to + high, to + count, 0.0f);
}

float sum_of(const Vector& v) {
  float total = 0;
  for (int lane = 0; lane < kLanes; lane++) total += v[lane];
  return total;
}

}  // namespace

UnfoldedConvolution::UnfoldedConvolution(const PlanarShape& shape, std::vector<Post> posts, int threads)
    : s_(shape), posts_(std::move(posts)), threads_(threads) {
  constexpr int64_t kWindows = 256 * 1024, kMost = 512, kLeast = 16;  // floats, positions
  depth_ = s_.in * area(s_.kernel);
  positions_ = area(s_.dst);
  in_place_ = area(s_.kernel) == 1;
  for (int d = 0; d < 3; d++) in_place_ &= s_.strides[d] == 1 && s_.pads[d] == 0 && s_.src[d] == s_.dst[d];
  by_window_ = !in_place_ && s_.kernel[2] >= 8 && s_.kernel[2] > s_.dst[2];
  for (int64_t c = 0; c < s_.kernel[2]; c++)
    there_.push_back(within(c * s_.dilations[2] - s_.pads[2], s_.strides[2], s_.src[2], s_.dst[2]));
  block_ = std::clamp<int64_t>(kWindows / std::max<int64_t>(1, depth_), kLeast, kMost);
  const int64_t runs = s_.batch * s_.groups;
  if (runs * ceil_div(positions_, block_) < threads_)
    block_ = static_cast<int64_t>(in_lines(ceil_div(positions_, ceil_div(threads_, runs))));
  block_ = std::min(block_, positions_);
  sums_windows_ = by_window_ && s_.out == 1;
  windows_ = in_place_ || sums_windows_ ? 0 : in_lines(depth_ * block_);
  const bool reads_result =
      std::any_of(posts_.begin(), posts_.end(), [](const Post& post) { return post.kind == PostKind::Sum; });
  results_ = reads_result ? in_lines(s_.out * block_) : 0;
}

// Divisions take longer than short rows do: there are none within the loops over channels.
void UnfoldedConvolution::unfold_rows(const float* src, int64_t first, int64_t count, float* rows) const {
  const int64_t line = first / s_.dst[2], from_z = line / s_.dst[1], from_y = line % s_.dst[1],
                from_x = first % s_.dst[2], step = s_.strides[2], further = area(s_.src);
  // The same row of the next channel lies too far to be fetched by itself.
  const auto copy = [&](const float* row, int64_t low, int64_t high, int64_t length, float* to, bool fetches) {
    if (fetches)
      for (int64_t i = low * step; i < high * step; i += kLine) __builtin_prefetch(row + further + i);
    copy_part(row, step, low, high, length, to);
  };
  for (int64_t channel = 0; channel < s_.in; channel++, src += area(s_.src))
    for (int64_t a = 0; a < s_.kernel[0]; a++)
      for (int64_t b = 0; b < s_.kernel[1]; b++)
        for (int64_t c = 0; c < s_.kernel[2]; c++, rows += count) {
          const int64_t there = there_[static_cast<size_t>(c)].first, end = there_[static_cast<size_t>(c)].second,
                        offset = c * s_.dilations[2] - s_.pads[2];
          for (int64_t at = 0, z = from_z, y = from_y, begin = from_x; at < count; begin = 0) {
            const int64_t length = std::min(s_.dst[2] - begin, count - at),
                          from = z * s_.strides[0] + a * s_.dilations[0] - s_.pads[0],
                          row = y * s_.strides[1] + b * s_.dilations[1] - s_.pads[1];
            if (from < 0 || from >= s_.src[0] || row < 0 || row >= s_.src[1])
              std::fill(rows + at, rows + at + length, 0.0f);
            else
              copy(src + (from * s_.src[1] + row) * s_.src[2] + begin * s_.strides[2] + offset,
                   std::clamp<int64_t>(there - begin, 0, length), std::clamp<int64_t>(end - begin, 0, length), length,
                   rows + at, c == 0 && channel + 1 < s_.in);
            at += length;
            if (++y == s_.dst[1]) y = 0, z++;
          }
        }
}

void UnfoldedConvolution::unfold_windows(const float* src, int64_t first, int64_t count, float* windows) const {
  for (int64_t at = first; at < first + count; at++) {
    const int64_t line = at / s_.dst[2], from = line / s_.dst[1] * s_.strides[0] - s_.pads[0],
                  row = line % s_.dst[1] * s_.strides[1] - s_.pads[1], x = at % s_.dst[2] * s_.strides[2] - s_.pads[2];
    const auto [low, high] = within(x, s_.dilations[2], s_.src[2], s_.kernel[2]);
    for (int64_t channel = 0; channel < s_.in; channel++)
      for (int64_t a = 0, z = from; a < s_.kernel[0]; a++, z += s_.dilations[0])
        for (int64_t b = 0, y = row; b < s_.kernel[1]; b++, y += s_.dilations[1], windows += s_.kernel[2]) {
          if (z < 0 || z >= s_.src[0] || y < 0 || y >= s_.src[1])
            std::fill(windows, windows + s_.kernel[2], 0.0f);
          else
            copy_part(src + channel * area(s_.src) + (z * s_.src[1] + y) * s_.src[2] + x, s_.dilations[2], low, high,
                      s_.kernel[2], windows);
        }
  }
}

// Of one channel of the result nothing is gained by copies.
void UnfoldedConvolution::sum_windows(const float* src, const float* weights, int64_t first, int64_t count,
                                      float* result) const {
  const int64_t length = s_.kernel[2];
  for (int64_t at = first; at < first + count; at++) {
    const int64_t line = at / s_.dst[2], from = line / s_.dst[1] * s_.strides[0] - s_.pads[0],
                  row = line % s_.dst[1] * s_.strides[1] - s_.pads[1], x = at % s_.dst[2] * s_.strides[2] - s_.pads[2];
    const int64_t step = s_.dilations[2];
    const auto [low, high] = within(x, step, s_.src[2], length);
    Vector sum{};
    float apart = 0;
    const float* own = weights;
    for (int64_t channel = 0; channel < s_.in; channel++)
      for (int64_t a = 0, z = from; a < s_.kernel[0]; a++, z += s_.dilations[0])
        for (int64_t b = 0, y = row; b < s_.kernel[1]; b++, y += s_.dilations[1], own += length) {
          if (z < 0 || z >= s_.src[0] || y < 0 || y >= s_.src[1]) continue;
          const float* there = src + channel * area(s_.src) + (z * s_.src[1] + y) * s_.src[2] + x;
          int64_t i = low;
          if (step != 1) {
            for (; i < high; i++) apart += there[i * step] * own[i];
            continue;
          }
          for (; i + kLanes <= high; i += kLanes) sum += load(there + i) * load(own + i);
          if (i < high) sum += load_lanes(there + i, high - i, Vector{}) * load_lanes(own + i, high - i, Vector{});
        }
    result[at - first] = sum_of(sum) + apart;
  }
}

void UnfoldedConvolution::multiply(const float* weights, const float* windows, int64_t stride, int64_t count,
                                   float* result, int64_t result_stride) const {
  if (dnnl_sgemm('N', by_window_ ? 'T' : 'N', s_.out, count, depth_, 1.0f, weights, depth_, windows, stride, 0.0f,
                 result, result_stride) != dnnl_success)
    throw std::runtime_error("oneDNN: a product of matrices failed");
}

void UnfoldedConvolution::compute(int64_t image, int64_t group, int64_t first, int64_t count, const float* src,
                                  const float* weights, const float* bias, float* dst, float* scratch) const {
  const float* x = src + (image * s_.groups + group) * s_.in * area(s_.src);
  const float* windows = in_place_ ? x + first : scratch;
  if (by_window_ && !sums_windows_) unfold_windows(x, first, count, scratch);
  if (!by_window_ && !in_place_) unfold_rows(x, first, count, scratch);
  const int64_t channel = (image * s_.groups + group) * s_.out, at = channel * positions_ + first;
  float* const result = results_ > 0 ? scratch + windows_ : dst + at;
  const int64_t result_stride = results_ > 0 ? count : positions_;
  const float* own = weights + group * s_.out * depth_;
  if (sums_windows_)
    sum_windows(x, own, first, count, result);
  else
    multiply(own, windows, in_place_ ? positions_ : by_window_ ? depth_ : count, count, result, result_stride);
  if (!bias && posts_.empty()) return;
  for (int64_t o = 0; o < s_.out; o++)
    finish_row(posts_, bias, group * s_.out + o, at + o * positions_, count, result + o * result_stride, dst);
}

void UnfoldedConvolution::run(const float* src, const float* weights, const float* bias, float* dst,
                              void* scratch) const {
  const int64_t blocks = ceil_div(positions_, block_), all = s_.batch * s_.groups * blocks;
  share_each(all, threads_, [&](int64_t k, int slot) {
    const int64_t first = k % blocks * block_, run = k / blocks;
    compute(run / s_.groups, run % s_.groups, first, std::min(block_, positions_ - first), src, weights, bias, dst,
            static_cast<float*>(scratch) + static_cast<size_t>(slot) * floats_a_thread());
  });
}

}  // namespace gopt_runtime
