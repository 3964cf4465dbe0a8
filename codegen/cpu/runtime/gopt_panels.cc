#include "gopt_panels.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "gopt_activation.h"
#include "gopt_memory.h"
#include "gopt_panel_sums.h"
#include "gopt_team.h"

namespace gopt_runtime {
namespace {

constexpr int64_t kNearBytes = 256 * 1024;  // of panels, which stay in a core's cache while rows pass by
constexpr int64_t kMostDepth = 1024;        // of a part
// Of rows, while panels pass by: half of the core's cache.
int64_t near_rows_bytes() { return std::max(kNearBytes, second_cache_bytes() / 2); }

struct Loop {
  // What a few rows by one panel are computed from.
  struct Operands {
    const float* src;
    int64_t row;    // elements to the next row
    int64_t depth;  // in all, of which so many lie in a run, a vector of them each `step` elements, runs each `run`
    int64_t in_run, step, run;
    const float *packed, *start;
    int64_t start_row;  // elements of `start` to the next row
    Ahead ahead;
  };

  // Sums, from `start` on.
  template <int rows, int vectors>
  static void multiply(const Operands& o, const SumStore& store) {
    if (o.row == kLanes) return multiply_rows<rows, vectors>(AdjacentRows<rows>{o.src}, o, store);
    multiply_rows<rows, vectors>(rows_apart<rows>(o.src, o.row), o, store);
  }
  template <int rows, int vectors, class Rows>
  [[gnu::noinline]] static void multiply_rows(const Rows& x, const Operands& o, const SumStore& store) {
    constexpr int kToSharedCache = 2;
    Vector s[rows][vectors];
    load_sums(s, o.start, o.start_row);
    const float* w = o.packed;
    Ahead ahead = o.ahead;
    for (int64_t first = 0, run = 0; first < o.depth; first += o.in_run, run += o.run) {
      const int64_t count = std::min(o.in_run, o.depth - first);
      int64_t k = 0, at = run;
      for (; k + kLanes <= count; k += kLanes, at += o.step) add_products<kToSharedCache>(s, x, at, w, ahead);
      for (; k < count; k++, at++, w += vectors * kLanes) add_line(s, x, at, w);
    }
    store_sums(s, store);
  }
};

}  // namespace

struct PanelProduct::Step {
  size_t block;
  int64_t panel, first, last;
  Ahead ahead;  // what is to be fetched meanwhile
};

PanelProduct::PanelProduct(const PanelShape& shape, const TileOrder& src, const TileOrder& dst, std::vector<Post> posts,
                           int threads)
    : s_(shape),
      src_(src),
      dst_(dst),
      posts_(std::move(posts)),
      threads_(threads),
      filled_(dst.fills_blocks ? ceil_div(shape.columns, dst.channels) * dst.channels : shape.columns),
      panels_(ceil_div(filled_, kPanelWidth)) {
  simple_ = simple_posts(posts_, [this](const Post& post) { return is_whole(post); });
  const int64_t parts = ceil_div(s_.rows, kMostPanelRows);
  int64_t number = 0;
  for (int64_t image = 0; image < s_.batch; image++)
    for (int64_t line = 0; line < s_.lines; line++)
      for (int64_t part = 0; part < parts; part++) {
        const int64_t first = s_.rows * part / parts, last = s_.rows * (part + 1) / parts;
        blocks_.push_back({image * src_.image + (line * s_.src_line + first * s_.src_row) * src_.position,
                           image * dst_.image + (line * s_.rows + first) * dst_.position, number, last - first});
        number += last - first;
      }
}

// Of one row that is both, columns are meant.
bool PanelProduct::is_of_columns(const Post& post) const {
  int64_t count = 1;
  for (const int64_t d : post.dims) count *= d;
  return post.kind == PostKind::Add && !post.dims.empty() && count == s_.columns;
}
bool PanelProduct::is_whole(const Post& post) const { return post.kind == PostKind::Add && !is_of_columns(post); }

bool PanelProduct::is_one_block() const { return src_.block == src_.channels; }
bool PanelProduct::is_one_run() const { return is_one_block() || src_.channels == kLanes; }

bool PanelProduct::takes_blocks_of(int64_t channels) { return channels % kLanes == 0; }

int64_t PanelProduct::panel_columns() { return kPanelWidth; }

// The last panel may be of one vector.
int PanelProduct::vectors_of(int64_t panel) const {
  return filled_ - panel * kPanelWidth <= kLanes ? 1 : kPanelVectors;
}

int64_t PanelProduct::columns_at(int64_t column, int64_t most) const {
  return std::clamp<int64_t>(s_.columns - column, 0, most);
}

size_t PanelProduct::packed_floats() const {
  return static_cast<size_t>(((panels_ - 1) * kPanelVectors + vectors_of(panels_ - 1)) * kLanes * s_.depth);
}

void PanelProduct::pack(const float* weights, int64_t row_stride, int64_t column_stride, float* packed) const {
  share_each(panels_, threads_, [&](int64_t panel, int) {
    float* to = packed + panel * kPanelWidth * s_.depth;
    const int width = vectors_of(panel) * kLanes;
    for (int64_t k = 0; k < s_.depth; k++)
      for (int64_t i = 0; i < width; i++) {
        const int64_t column = panel * kPanelWidth + i;
        *to++ = column < s_.columns ? weights[k * row_stride + column * column_stride] : 0.0f;
      }
  });
}

// Each thread has a rectangle of blocks of rows and panels, of the shape that takes the least: a panel and row are
// read by each thread that has a part of them.
PanelProduct::Part PanelProduct::part_of(int thread, int threads) const {
  const auto rows = static_cast<int64_t>(blocks_.size());
  constexpr double kPanel = 4, kRow = 0.2;  // cycles a step of the depth to fetch one
  int64_t best = 1;
  double least = 0;
  for (int64_t across = 1; across <= threads; across++) {
    const int64_t down = threads / across;
    const auto own_rows = static_cast<double>(ceil_div(rows, down)),
               own_panels = static_cast<double>(ceil_div(panels_, across));
    const double cost = own_panels * (own_rows * kMostPanelRows + kPanel) + kRow * own_rows * kMostPanelRows;
    if (across == 1 || cost < least) best = across, least = cost;
  }
  const int64_t down = threads / best, i = thread / best, j = thread % best;
  if (i >= down) return {0, 0, 0, 0};
  const auto first = [rows, down](int64_t part) { return static_cast<size_t>(rows * part / down); };
  return {first(i), first(i + 1), panels_ * j / best, panels_ * (j + 1) / best};
}

// Where rows are longer than what stays near, a part of the depth is multiplied by for all of them before the next:
// whole blocks of channels, but for the last.
int64_t PanelProduct::depth_of_part() const {
  const int64_t parts = ceil_div(s_.depth, kMostDepth);
  return ceil_div(ceil_div(s_.depth, parts), src_.channels) * src_.channels;
}

// So many blocks of rows stay near while panels pass by; where all of a thread's panels stay, rows pass by.
size_t PanelProduct::blocks_near(const Part& part) const {
  const auto floats = static_cast<int64_t>(sizeof(float));
  if ((part.last_panel - part.first_panel) * kPanelWidth * s_.depth * floats <= kNearBytes) return 1;
  return static_cast<size_t>(std::max<int64_t>(1, near_rows_bytes() / (kMostPanelRows * depth_of_part() * floats)));
}

size_t PanelProduct::scratch_floats() const {
  return s_.depth > depth_of_part() ? static_cast<size_t>(s_.batch * s_.lines * s_.rows * panels_ * kPanelWidth) : 0;
}

void PanelProduct::add(const Post& post, const float* dst, const Rows& rows, int64_t panel, float* sums) const {
  const auto* operand = post.kind == PostKind::Sum ? dst : static_cast<const float*>(post.operand);
  const bool is_a_row = is_of_columns(post);
  const int vectors = vectors_of(panel);
  for (int v = 0; v < vectors; v++) {
    const int64_t column = panel * kPanelWidth + v * kLanes, columns = columns_at(column, kLanes);
    const float* from =
        operand + (is_a_row ? column : rows.dst + column / dst_.channels * dst_.block + column % dst_.channels);
    float* own = sums + v * kLanes;
    for (int64_t r = 0; r < rows.count; r++, own += vectors * kLanes, from += is_a_row ? 0 : dst_.position) {
      if (columns == kLanes)
        for (int i = 0; i < kLanes; i++) own[i] += from[i];
      else
        for (int64_t i = 0; i < columns; i++) own[i] += from[i];
    }
  }
}

void PanelProduct::finish(const Call& call, const Rows& rows, int64_t panel, float* sums) const {
  const int vectors = vectors_of(panel);
  for (const Post& post : posts_)
    if (post.kind == PostKind::Sum || post.kind == PostKind::Add)
      add(post, call.dst, rows, panel, sums);
    else
      apply_activation(post, sums, rows.count * vectors * kLanes);
  for (int v = 0; v < vectors; v++) {
    const int64_t column = panel * kPanelWidth + v * kLanes, columns = columns_at(column, kLanes);
    // What fills a block is zeros.
    const int64_t written = dst_.fills_blocks ? kLanes : columns;
    float *own = sums + v * kLanes,
          *to = call.dst + rows.dst + column / dst_.channels * dst_.block + column % dst_.channels;
    for (int64_t r = 0; r < rows.count; r++, own += vectors * kLanes, to += dst_.position) {
      if (columns < written) std::fill(own + columns, own + written, 0.0f);
      if (written == kLanes)
        std::memcpy(to, own, sizeof(Vector));
      else
        std::copy(own, own + written, to);
    }
  }
}

void PanelProduct::compute(const Call& call, const Step& step) const {
  alignas(64) float start[kPanelWidth] = {}, sums[kMostPanelRows * kPanelWidth];
  const Rows& rows = blocks_[step.block];
  const int vectors = vectors_of(step.panel);
  const int64_t column = step.panel * kPanelWidth, width = vectors * kLanes;
  float* kept = call.kept;
  if (kept) kept += (step.panel * s_.batch * s_.lines * s_.rows + rows.number) * kPanelWidth;
  const int64_t depth = step.last - step.first, row = s_.src_row * src_.position;
  Loop::Operands o{call.src + rows.src + step.first / src_.channels * src_.block,
                   row,
                   depth,
                   is_one_run() ? depth : src_.channels,
                   src_.channels == kLanes ? src_.block : kLanes,
                   src_.block,
                   call.packed + column * s_.depth + step.first * width,
                   start,
                   0,
                   step.ahead};
  if (step.first > 0)
    o.start = kept, o.start_row = width;
  else if (call.bias)
    std::copy_n(call.bias + column, columns_at(column, kPanelWidth), start);
  const auto function = MultiplyFunctions<Loop>::of(rows.count, vectors);
  if (step.last < s_.depth) return function(o, {kept, nullptr, width, kLanes, -INFINITY});
  if (simple_.are_all && column + width <= s_.columns) {
    const int64_t at = rows.dst + column / dst_.channels * dst_.block + column % dst_.channels;
    const float* added = nullptr;
    if (simple_.addend >= 0) {
      const Post& post = posts_[static_cast<size_t>(simple_.addend)];
      added = (post.kind == PostKind::Sum ? call.dst : static_cast<const float*>(post.operand)) + at;
    }
    return function(o,
                    {call.dst + at, added, dst_.position, kLanes < dst_.channels ? kLanes : dst_.block, simple_.least});
  }
  function(o, {sums, nullptr, width, kLanes, -INFINITY});
  finish(call, rows, step.panel, sums);
}

void PanelProduct::compute(const Call& call, const Part& part) const {
  const int64_t depth = depth_of_part();
  const size_t near = blocks_near(part);
  for (size_t first = part.first; first < part.last; first += near) {
    const size_t last = std::min(first + near, part.last);
    for (int64_t k = 0; k < s_.depth; k += depth)
      for (int64_t panel = part.first_panel; panel < part.last_panel; panel++)
        for (size_t block = first; block < last; block++) {
          Step step{block, panel, k, std::min(k + depth, s_.depth), {}};
          if (near > 1)
            step.ahead = share_of_panel(next_panel(call, part, step), (step.last - k) / kLanes,
                                        static_cast<int64_t>(block - first), static_cast<int64_t>(last - first));
          else if (panel == part.first_panel)
            step.ahead = next_rows(call, step);
          compute(call, step);
        }
  }
}

// The next panel, or the first of the next part of the depth. Null: nothing.
const float* PanelProduct::next_panel(const Call& call, const Part& part, const Step& step) const {
  const bool is_last = step.panel + 1 == part.last_panel;
  const int64_t panel = is_last ? part.first_panel : step.panel + 1, first = is_last ? step.last : step.first;
  if (first >= s_.depth || vectors_of(panel) != kPanelVectors) return nullptr;
  return call.packed + panel * kPanelWidth * s_.depth + first * kPanelWidth;
}

// As many rows as these, which lie after them in the same way.
Ahead PanelProduct::next_rows(const Call& call, const Step& step) const {
  const Rows& rows = blocks_[step.block];
  if (!is_one_run()) return {};
  const int64_t lines = ceil_div(rows.count * kLanes, kLine);
  return {call.src + rows.src + step.first / src_.channels * src_.block + rows.count * s_.src_row * src_.position,
          lines, is_one_block() ? lines * kLine : src_.block};
}

void PanelProduct::run(const float* src, const float* packed, const float* bias, float* dst, float* scratch) const {
  const Call call{src, packed, bias, dst, s_.depth > depth_of_part() ? scratch : nullptr};
  share(threads_, threads_, [&](int64_t part, int) { compute(call, part_of(static_cast<int>(part), threads_)); });
}

}  // namespace gopt_runtime
