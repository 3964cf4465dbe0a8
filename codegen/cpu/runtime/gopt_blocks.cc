#include "gopt_blocks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "gopt_activation.h"
#include "gopt_panel_sums.h"
#include "gopt_team.h"

namespace gopt_runtime {
namespace {

constexpr int64_t kMostSteps = 4096 / (kPanelWidth * kLanes);  // of a part of the depth: 16 KiB of weights
constexpr int64_t kBlocksNear = 48;                            // of positions, which pass by a panel together

struct Loop {
  // What a few positions by one panel are computed from.
  struct Operands {
    const float* src;
    const int64_t *places, *steps;
    int64_t count;  // of steps
    const float *packed, *start;
    int64_t start_row;  // elements of `start` to the next position
    Ahead ahead;
  };

  // Sums, from `start` on. Places increase by a block at least.
  template <int rows, int vectors>
  static void multiply(const Operands& o, const SumStore& store) {
    if (o.places[rows - 1] - o.places[0] == (rows - 1) * kLanes)
      return multiply_rows<rows, vectors>(AdjacentRows<rows>{o.src + o.places[0]}, o, store);
    ScatteredRows<rows> x;
#pragma GCC unroll 16
    for (int r = 0; r < rows; r++) x.first[r] = o.src + o.places[r];
    multiply_rows<rows, vectors>(x, o, store);
  }
  template <int rows, int vectors, class Rows>
  [[gnu::noinline]] static void multiply_rows(const Rows& x, const Operands& o, const SumStore& store) {
    Vector s[rows][vectors];
    load_sums(s, o.start, o.start_row);
    const float* w = o.packed;
    Ahead ahead = o.ahead;
    for (int64_t step = 0; step < o.count; step++) add_products(s, x, o.steps[step], w, ahead);
    store_sums(s, store);
  }
};

}  // namespace

BlockConvolution::BlockConvolution(const PlanarShape& shape, int64_t block, std::vector<Post> posts, int threads)
    : s_(shape),
      block_(block),
      posts_(std::move(posts)),
      threads_(threads),
      filled_(ceil_div(shape.out, block) * block),
      panels_(ceil_div(filled_, kPanelWidth)),
      dst_step_(shape.transposed ? shape.strides[2] : 1),
      dst_image_(filled_ * area(shape.dst)) {
  describe_image();
  simple_ = simple_posts(posts_, [](const Post& post) { return post.kind == PostKind::Add && post.dims.empty(); });
  for (int64_t d = 0; d < residues_of(0); d++)
    for (int64_t h = 0; h < residues_of(1); h++)
      for (int64_t w = 0; w < residues_of(2); w++) add_residue({d, h, w});
}

// The taps by which positions of a residue are computed; of a convolution that is not transposed, all.
std::vector<BlockConvolution::Tap> BlockConvolution::taps_of(int axis, int64_t residue) const {
  std::vector<Tap> taps;
  const int64_t stride = s_.strides[axis], pad = s_.pads[axis];
  for (int64_t k = 0; k < s_.kernel[axis]; k++) {
    const int64_t reach = k * s_.dilations[axis];
    if (!s_.transposed)
      taps.push_back({k, reach - pad});
    else if ((residue + pad - reach) % stride == 0)
      taps.push_back({k, (residue + pad - reach) / stride});
  }
  return taps;
}
int64_t BlockConvolution::positions_of(int axis, int64_t residue) const {
  return s_.transposed ? ceil_div(s_.dst[axis] - residue, s_.strides[axis]) : s_.dst[axis];
}
int64_t BlockConvolution::place_in_image(int64_t d, int64_t h, int64_t w) const {
  return ((d * extents_[1] + h) * extents_[2] + w) * block_;
}

void BlockConvolution::describe_image() {
  for (int a = 0; a < 3; a++) {
    int64_t least = 0, most = 0;
    for (int64_t residue = 0; residue < residues_of(a); residue++)
      for (const Tap& tap : taps_of(a, residue)) {
        const int64_t steps = (positions_of(a, residue) - 1) * (s_.transposed ? 1 : s_.strides[a]);
        least = std::min(least, tap.shift), most = std::max(most, tap.shift + steps);
      }
    before_[a] = -least;
    extents_[a] = most - least + 1;
    has_border_ |= before_[a] != 0 || extents_[a] > s_.src[a];
  }
  if (!has_border_) std::copy_n(s_.src, 3, extents_);
  src_image_ = ceil_div(s_.in, block_) * block_ * area(extents_);
}

void BlockConvolution::add_residue(const int64_t (&residue)[3]) {
  const auto count = [](const auto& list) { return static_cast<int64_t>(list.size()); };
  Residue own{count(rows_), 0, count(steps_), 0, 0};
  if (!residues_.empty()) own.packed = weights_at(residues_.back(), panels_ - 1, residues_.back().steps());
  const std::vector<Tap> taps[] = {taps_of(0, residue[0]), taps_of(1, residue[1]), taps_of(2, residue[2])};
  for (int64_t first = 0; first < s_.in; first += block_)
    for (const Tap& d : taps[0])
      for (const Tap& h : taps[1])
        for (const Tap& w : taps[2]) {
          const int64_t at =
              first * area(extents_) + place_in_image(d.shift + before_[0], h.shift + before_[1], w.shift + before_[2]);
          for (int64_t input = first; input < std::min(first + block_, s_.in); input += kLanes) {
            steps_.push_back(at + input - first);
            first_input_.push_back(input);
            taps_.push_back((d.number * s_.kernel[1] + h.number) * s_.kernel[2] + w.number);
          }
        }
  own.last_step = count(steps_);
  add_rows(residue);
  own.last_row = count(rows_);
  residues_.push_back(own);
}

void BlockConvolution::add_rows(const int64_t (&residue)[3]) {
  int64_t counts[3], steps[3], strides[3];  // of positions; from one to the next in the image, and in the result
  for (int a = 0; a < 3; a++) {
    counts[a] = positions_of(a, residue[a]);
    steps[a] = s_.transposed ? 1 : s_.strides[a], strides[a] = s_.transposed ? s_.strides[a] : 1;
  }
  const auto first_place = static_cast<int64_t>(places_.size());
  for (int64_t d = 0; d < counts[0]; d++)
    for (int64_t h = 0; h < counts[1]; h++)
      for (int64_t w = 0; w < counts[2]; w++) {
        places_.push_back(place_in_image(d * steps[0], h * steps[1], w * steps[2]));
        positions_.push_back(((d * strides[0] + residue[0]) * s_.dst[1] + h * strides[1] + residue[1]) * s_.dst[2] +
                             w * strides[2] + residue[2]);
      }
  // Results of a line are stored from registers, but lines may be too short to fill these.
  constexpr double kFull = 0.85;
  const int64_t rows_of_line = ceil_div(counts[2], kMostPanelRows) * kMostPanelRows,
                run = s_.transposed && static_cast<double>(counts[2]) >= kFull * static_cast<double>(rows_of_line)
                          ? counts[2]
                          : area(counts),
                parts = ceil_div(run, kMostPanelRows);
  for (int64_t image = 0; image < s_.batch; image++)
    for (int64_t begin = first_place; begin < first_place + area(counts); begin += run)
      for (int64_t part = 0; part < parts; part++) {
        Rows rows{image, begin + run * part / parts, run * (part + 1) / parts - run * part / parts, true};
        for (int64_t r = rows.first + 1; r < rows.first + rows.count; r++)
          rows.are_even &= positions_[static_cast<size_t>(r)] - positions_[static_cast<size_t>(r) - 1] == dst_step_;
        rows_.push_back(rows);
      }
}

bool BlockConvolution::takes_blocks_of(int64_t channels) { return channels % kLanes == 0; }

uint64_t BlockConvolution::order_of_weights() const {
  constexpr uint64_t kPrime = 0x100000001b3;  // of FNV-1a
  uint64_t order = 0xcbf29ce484222325;
  const auto add = [&order](int64_t number) { order = (order ^ static_cast<uint64_t>(number)) * kPrime; };
  for (const int64_t number : {int64_t{kPanelWidth}, int64_t{kLanes}, block_, int64_t{s_.transposed}, s_.in, s_.out})
    add(number);
  for (const Residue& residue : residues_) {
    add(residue.steps());
    for (auto step = static_cast<size_t>(residue.first_step); step < static_cast<size_t>(residue.last_step); step++)
      add(first_input_[step]), add(taps_[step]);
  }
  return order;
}

// The last panel may be of one vector.
int BlockConvolution::vectors_of(int64_t panel) const {
  return filled_ - panel * kPanelWidth <= kLanes ? 1 : kPanelVectors;
}

int64_t BlockConvolution::channels_at(int64_t channel) const {
  return std::clamp<int64_t>(s_.out - channel, 0, kLanes);
}

int64_t BlockConvolution::place(const Rows& rows, int64_t row, int64_t channel) const {
  const int64_t position = positions_[static_cast<size_t>(rows.first + row)];
  return rows.image * dst_image_ + (channel / block_ * area(s_.dst) + position) * block_ + channel % block_;
}

// Where the weights of a step lie.
int64_t BlockConvolution::weights_at(const Residue& residue, int64_t panel, int64_t step) const {
  return residue.packed + (panel * residue.steps() * kPanelVectors + step * vectors_of(panel)) * kLanes * kLanes;
}

size_t BlockConvolution::packed_floats() const {
  return static_cast<size_t>(weights_at(residues_.back(), panels_ - 1, residues_.back().steps()));
}

void BlockConvolution::pack(const float* weights, float* packed) const {
  const int64_t taps = area(s_.kernel);
  const auto weight = [&](int64_t channel, int64_t input, int64_t tap) {
    return weights[(s_.transposed ? input * s_.out + channel : channel * s_.in + input) * taps + tap];
  };
  share_each(panels_, threads_, [&](int64_t panel, int) {
    for (const Residue& residue : residues_) {
      float* to = packed + weights_at(residue, panel, 0);
      const int width = vectors_of(panel) * kLanes;
      for (auto step = static_cast<size_t>(residue.first_step); step < static_cast<size_t>(residue.last_step); step++)
        for (int64_t input = first_input_[step]; input < first_input_[step] + kLanes; input++)
          for (int64_t channel = panel * kPanelWidth; channel < panel * kPanelWidth + width; channel++)
            *to++ = input < s_.in && channel < s_.out ? weight(channel, input, taps_[step]) : 0.0f;
    }
  });
}

// Each thread has a rectangle of positions and panels, of the shape that takes the least: weights are read again for
// every few positions, and all of them by each thread that has all panels.
BlockConvolution::Part BlockConvolution::part_of(int thread, int threads) const {
  const auto rows = static_cast<int64_t>(rows_.size());
  constexpr double kPanel = 4, kRow = 0.2;  // what it takes to fetch one, where a row by a panel takes 1
  int64_t best = 1;
  double least = 0;
  for (int64_t across = 1; across <= threads; across++) {
    const int64_t down = threads / across;
    const auto own_rows = static_cast<double>(ceil_div(rows, down) * kMostPanelRows),
               own_panels = static_cast<double>(ceil_div(panels_, across));
    const double cost = own_panels * (own_rows + kPanel) + kRow * own_rows;
    if (across == 1 || cost < least) best = across, least = cost;
  }
  const int64_t down = threads / best, i = thread / best, j = thread % best;
  if (i >= down) return {0, 1, 0, 0};
  return {i, down, panels_ * j / best, panels_ * (j + 1) / best};
}

// A line of a block of an image, zeros where there is no image.
void BlockConvolution::copy(const float* src, float* to, int64_t line) const {
  const int64_t h = line % extents_[1] - before_[1], d = line / extents_[1] % extents_[0] - before_[0],
                image_block = line / extents_[1] / extents_[0];
  to += line * extents_[2] * block_;
  if (h < 0 || h >= s_.src[1] || d < 0 || d >= s_.src[0]) return std::fill_n(to, extents_[2] * block_, 0.0f), void();
  const int64_t before = std::min(before_[2], extents_[2]), count = std::min(s_.src[2], extents_[2] - before);
  std::fill_n(to, before * block_, 0.0f);
  std::memcpy(to + before * block_, src + ((image_block * s_.src[0] + d) * s_.src[1] + h) * s_.src[2] * block_,
              static_cast<size_t>(count * block_) * sizeof(float));
  std::fill(to + (before + count) * block_, to + extents_[2] * block_, 0.0f);
}

int64_t BlockConvolution::kept_floats() const { return kBlocksNear * kMostPanelRows * kPanelWidth; }

size_t BlockConvolution::scratch_floats() const {
  return static_cast<size_t>((has_border_ ? s_.batch * src_image_ : 0) + threads_ * kept_floats());
}

void BlockConvolution::add(const Post& post, const float* dst, const Rows& rows, int64_t panel, float* sums) const {
  const auto* operand = post.kind == PostKind::Sum ? dst : static_cast<const float*>(post.operand);
  const bool is_a_row = !post.dims.empty();
  const int vectors = vectors_of(panel);
  for (int v = 0; v < vectors; v++) {
    const int64_t channel = panel * kPanelWidth + v * kLanes, channels = channels_at(channel);
    float* own = sums + v * kLanes;
    for (int64_t r = 0; r < rows.count; r++, own += vectors * kLanes) {
      const float* from = operand + (is_a_row ? channel : place(rows, r, channel));
      for (int64_t i = 0; i < channels; i++) own[i] += from[i];
    }
  }
}

void BlockConvolution::finish(const Call& call, const Rows& rows, int64_t panel, float* sums) const {
  const int vectors = vectors_of(panel);
  for (const Post& post : posts_)
    if (post.kind == PostKind::Sum || post.kind == PostKind::Add)
      add(post, call.dst, rows, panel, sums);
    else
      apply_activation(post, sums, rows.count * vectors * kLanes);
  for (int v = 0; v < vectors; v++) {
    const int64_t channel = panel * kPanelWidth + v * kLanes, channels = channels_at(channel);
    float* own = sums + v * kLanes;
    for (int64_t r = 0; r < rows.count; r++, own += vectors * kLanes) {
      std::fill(own + channels, own + kLanes, 0.0f);  // what fills a block
      std::memcpy(call.dst + place(rows, r, channel), own, sizeof(Vector));
    }
  }
}

void BlockConvolution::compute(const Call& call, const Rows& rows, const Steps& steps, float* kept) const {
  alignas(64) float start[kPanelWidth] = {}, sums[kMostPanelRows * kPanelWidth];
  const int vectors = vectors_of(steps.panel);
  const int64_t channel = steps.panel * kPanelWidth, width = int64_t{vectors} * kLanes;
  Loop::Operands o{call.src + rows.image * src_image_,
                   places_.data() + rows.first,
                   steps_.data() + steps.residue->first_step + steps.first,
                   steps.last - steps.first,
                   call.packed + weights_at(*steps.residue, steps.panel, steps.first),
                   start,
                   0,
                   share_of_panel(steps.next, steps.last - steps.first, steps.turn, steps.turns)};
  if (steps.first > 0)
    o.start = kept, o.start_row = width;
  else if (call.bias)
    std::copy_n(call.bias + channel, std::clamp<int64_t>(s_.out - channel, 0, kPanelWidth), start);
  const auto function = MultiplyFunctions<Loop>::of(rows.count, vectors);
  if (steps.last < steps.residue->steps()) return function(o, {kept, nullptr, width, kLanes, -INFINITY});
  if (simple_.are_all && rows.are_even && channel + width <= s_.out) {
    const int64_t at = place(rows, 0, channel), vector = kLanes < block_ ? kLanes : area(s_.dst) * block_;
    const float* added = nullptr;
    if (simple_.addend >= 0) {
      const Post& post = posts_[static_cast<size_t>(simple_.addend)];
      added = (post.kind == PostKind::Sum ? call.dst : static_cast<const float*>(post.operand)) + at;
    }
    return function(o, {call.dst + at, added, dst_step_ * block_, vector, simple_.least});
  }
  function(o, {sums, nullptr, width, kLanes, -INFINITY});
  finish(call, rows, steps.panel, sums);
}

void BlockConvolution::compute(const Call& call, const Residue& residue, const Part& part) const {
  const int64_t steps = residue.steps(), parts = std::max<int64_t>(1, ceil_div(steps, kMostSteps)),
                all = residue.last_row - residue.first_row, begin = residue.first_row + all * part.share / part.shares,
                count = residue.first_row + all * (part.share + 1) / part.shares - begin,
                groups = ceil_div(count, kBlocksNear);
  for (int64_t group = 0; group < groups; group++) {
    const int64_t first = begin + count * group / groups, last = begin + count * (group + 1) / groups;
    for (int64_t panel = part.first_panel; panel < part.last_panel; panel++)
      for (int64_t p = 0; p < parts; p++) {
        Steps own{&residue, panel, steps * p / parts, steps * (p + 1) / parts, nullptr, 0, last - first};
        // What comes next: as much as is multiplied by now, or nearly.
        if (p + 1 < parts)
          own.next = call.packed + weights_at(residue, panel, own.last);
        else if (panel + 1 < part.last_panel && vectors_of(panel + 1) == kPanelVectors)
          own.next = call.packed + weights_at(residue, panel + 1, 0);
        float* kept = call.kept;
        for (int64_t block = first; block < last; block++, kept += kMostPanelRows * kPanelWidth) {
          own.turn = block - first;
          compute(call, rows_[static_cast<size_t>(block)], own, kept);
        }
      }
  }
}

void BlockConvolution::run(const float* src, const float* packed, const float* bias, float* dst, float* scratch) const {
  const int64_t lines = has_border_ ? s_.batch * ceil_div(s_.in, block_) * extents_[0] * extents_[1] : 0;
  float* kept = scratch + (has_border_ ? s_.batch * src_image_ : 0);
  share_each(lines, threads_, [&](int64_t line, int) { copy(src, scratch, line); });
  share(threads_, threads_, [&](int64_t part, int slot) {
    // Of an odd number of rows one thread has one more: another one in each residue.
    Part own = part_of(static_cast<int>(part), threads_);
    for (const Residue& residue : residues_) {
      compute({has_border_ ? scratch : src, packed, bias, dst, kept + slot * kept_floats()}, residue, own);
      own.share = (own.share + 1) % own.shares;
    }
  });
}

}  // namespace gopt_runtime
