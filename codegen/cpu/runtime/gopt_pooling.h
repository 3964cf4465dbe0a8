// Pooling of plain tensors in loops of our own: the rows under a window are combined into one, lane by lane, and then
// the elements of that one under each window of the output row. Of small images lanes are channels
// (gopt_channel_lanes.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gopt_channel_lanes.h"
#include "gopt_dnnl.h"
#include "gopt_lanes.h"

namespace gopt_runtime {

class RowPooling {
 public:
  RowPooling(const Pooling& pooling, int threads);

  size_t scratch_floats() const {
    return channels_ ? channels_->scratch_floats() : static_cast<size_t>(threads_) * floats_a_thread();
  }
  // `scratch` is aligned to 64 bytes.
  void run(const float* src, float* dst, void* scratch) const;

 private:
  // Elements of the source under a window: every dilation-th from the first.
  struct Window {
    int64_t first, count;
  };
  // Those that are not there come first and are 1.
  struct Axis {
    int64_t src = 1, dst = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;
    std::vector<Window> windows{{0, 1}};  // by output
    std::vector<float> shares{1};         // 1 over the number of elements that an average counts
  };

  template <bool greatest>
  void run_as(const float* src, float* dst, float* rows) const;
  // Rows of short windows in one pass.
  template <bool greatest>
  void run_short(const float* src, float* dst) const;
  template <bool greatest, int... kernels>
  static constexpr auto short_functions(std::integer_sequence<int, kernels...>);
  // is_amid: what lies beyond the rows' ends may be read, and is left out after; loads of some lanes are slower.
  template <bool greatest, int kernel, int stride>
  void pool_short_rows(const float* plane, bool is_amid, int64_t z, float* dst) const;
  template <bool greatest>
  Vector combined_rows(const float* plane, int64_t z, int64_t y, int64_t first) const;
  // The rows under a row of windows as one, with borders; nothing where rows are narrow.
  template <bool greatest>
  void combine_row(const float* plane, int64_t z, int64_t y, float* row) const;
  template <bool greatest>
  void pool_row(const float* plane, int64_t z, int64_t y, const float* row, float* dst) const;
  size_t floats_a_thread() const { return is_narrow_ || is_short_ ? 0 : static_cast<size_t>(rows_) * row_; }
  Vector every(const float* from) const;
  struct End {
    SomeLanes lanes;
  };
  bool is_inner(int64_t first) const { return first >= inner_begin_ && first < inner_end_; }
  void describe_lanes();
  bool pays_by_channels(bool counts_padding) const;
  PlanarShape shape() const;
  void describe_ends();

  Axis axes_[3];
  std::unique_ptr<ChannelLanes> channels_;  // null: lanes are positions
  int64_t planes_;
  int threads_;
  // is_short_: windows of two to five elements side by side in steps of one or two, a vector of them or more. What is
  // loaded for vectors that begin in [inner_begin_, inner_end_) lies within the row.
  bool is_short_ = false;
  int64_t inner_begin_ = 0, inner_end_ = 0;
  std::vector<End> ends_;             // of other vectors, the lanes that each of their loads has
  bool average_, is_narrow_ = false;  // is_narrow_: source and output rows are two vectors at most
  size_t row_ = 0;                    // floats of a combined row with its borders
  int64_t rows_ = 1;                  // combined at once
  // Of narrow rows, by vector of the output and tap: which element each lane reads, and which lanes do.
  std::vector<int32_t> lanes_;
  std::vector<uint32_t> masks_;
};

}  // namespace gopt_runtime
