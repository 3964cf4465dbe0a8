#include "gopt_integer.h"

#include <algorithm>
#include <cstring>

#include "gopt_integer_sums.h"
#include "gopt_team.h"

namespace gopt_runtime {

using namespace integers;

namespace {

constexpr int64_t kBlockRows = 96;  // that are computed with one panel: a multiple of the rows of every tile
constexpr uint8_t kFlip = 128;      // between signed and unsigned: the same number, 128 away

void copy_flipped(const uint8_t* __restrict from, uint8_t flip, int64_t count, uint8_t* __restrict to) {
#pragma omp simd
  for (int64_t i = 0; i < count; i++) to[i] = from[i] ^ flip;
}

int64_t rounded(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
size_t lines(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

IntegerProduct::IntegerProduct(const IntegerShape& shape, IntegerOperands operands, IntegerResult result,
                               IntegerSecond second, int threads)
    : s_(shape),
      operands_(std::move(operands)),
      result_(std::move(result)),
      second_(std::move(second)),
      threads_(threads) {
  for (std::vector<float>* values : {&result_.scale, &result_.bias, &second_.bias})
    values->resize(static_cast<size_t>(channels() + kPanel), 0.0f);
  result_.steps.resize(static_cast<size_t>(channels()), 0);
  std::vector<int32_t>& zeros = operands_.weight_zeros;
  zeros.resize(static_cast<size_t>(channels() + kPanel), 0);
  if (operands_.weights == IntegerType::UInt8)
    for (int32_t& zero : zeros) zero -= kFlip;
  for (int64_t c = 0; c < channels(); c++) has_weight_zeros_ |= zeros[static_cast<size_t>(c)] != 0;
  if (operands_.src == IntegerType::Int8) operands_.src_zero += kFlip;

  const bool is_joined = s_.groups == 1 && s_.dilations[1] == 1;  // taps of a row lie one after another
  run_bytes_ = is_joined ? s_.kernel[1] * s_.in : s_.in;
  quads_ = (run_bytes_ + 3) / 4;
  copies_ = operands_.src == IntegerType::Int8 || (run_bytes_ % 4 != 0 && !is_depthwise());
  int64_t needed[2];
  for (int d = 0; d < 2; d++) {
    needed[d] = (s_.dst[d] - 1) * s_.strides[d] + (s_.kernel[d] - 1) * s_.dilations[d] + 1;
    copies_ |= s_.pads[d] > 0 || needed[d] > s_.src[d];
  }
  for (int d = 0; d < 2; d++) extent_[d] = copies_ ? needed[d] : s_.src[d];
  const int64_t place = s_.groups * s_.in;
  for (int64_t y = 0; y < s_.kernel[0]; y++)
    for (int64_t x = 0; x < (is_joined ? 1 : s_.kernel[1]); x++)
      runs_.push_back((y * s_.dilations[0] * extent_[1] + x * s_.dilations[1]) * place);
  panels_ = (s_.out + kPanel - 1) / kPanel;
  last_vectors_ = (s_.out - (panels_ - 1) * kPanel + kLanes - 1) / kLanes;
}

// Where what positions read begins, one position after another.
class IntegerProduct::Starts {
 public:
  Starts(const IntegerProduct& product, int64_t position)
      : columns_(product.s_.dst[1]),
        x_(position % columns_),
        step_(product.s_.strides[1] * product.s_.groups * product.s_.in),
        row_(product.s_.strides[0] * product.extent_[1] * product.s_.groups * product.s_.in),
        line_(position / columns_ * row_),
        start_(line_ + x_ * step_) {}
  int64_t next() {
    const int64_t start = start_;
    start_ += step_;
    if (++x_ == columns_) {
      x_ = 0;
      start_ = line_ += row_;
    }
    return start;
  }

 private:
  int64_t columns_, x_, step_, row_, line_, start_;
};

// ---- weights ----

namespace {

// Four weights of each column, which `from` has one after another; none is zero.
void pack_four(const uint8_t* const* from, int64_t stride, uint8_t flip, int64_t count, int8_t* packed, int32_t* sums) {
  if (stride == 1 && from[3]) {
    const uint8_t *a = from[0], *b = from[1], *c = from[2], *d = from[3];
    const uint32_t flips = 0x01010101U * flip;
#pragma omp simd
    for (int64_t i = 0; i < count; i++) {
      const uint32_t four = (static_cast<uint32_t>(a[i]) | static_cast<uint32_t>(b[i]) << 8 |
                             static_cast<uint32_t>(c[i]) << 16 | static_cast<uint32_t>(d[i]) << 24) ^
                            flips;
      std::memcpy(packed + 4 * i, &four, sizeof four);
      sums[i] += static_cast<int8_t>(four) + static_cast<int8_t>(four >> 8) + static_cast<int8_t>(four >> 16) +
                 static_cast<int8_t>(four >> 24);
    }
    return;
  }
  for (int64_t i = 0; i < count; i++)
    for (int64_t byte = 0; byte < 4; byte++) {
      const auto w = static_cast<int8_t>(from[byte] ? from[byte][i * stride] ^ flip : 0);
      packed[4 * i + byte] = w;
      sums[i] += w;
    }
}

}  // namespace

size_t IntegerProduct::weight_bytes() const {
  const auto runs = static_cast<int64_t>(runs_.size());
  if (is_depthwise()) return static_cast<size_t>(runs * rounded(channels(), kPanel)) * sizeof(int32_t);
  const int64_t columns = (panels_ - 1) * kPanel + last_vectors_ * kLanes;
  return static_cast<size_t>(s_.groups * columns * runs * quads_ * 4);
}
size_t IntegerProduct::packed_bytes() const {
  return lines(weight_bytes()) + static_cast<size_t>(channels() + kPanel) * sizeof(int32_t);
}

int64_t IntegerProduct::packed_form() const {
  uint64_t form = 1469598103934665603ULL;
  const auto add = [&](int64_t number) { form = (form ^ static_cast<uint64_t>(number)) * 1099511628211ULL; };
  for (const int64_t number : {s_.groups, s_.in, s_.out, s_.kernel[0], s_.kernel[1], run_bytes_,
                               static_cast<int64_t>(operands_.weights), static_cast<int64_t>(runs_.size())})
    add(number);
  if (is_depthwise())
    for (const int32_t zero : operands_.weight_zeros) add(zero);
  return static_cast<int64_t>(form >> 1);
}

void IntegerProduct::pack_panel(const uint8_t* weights, const WeightStrides& strides, int64_t group, int64_t panel,
                                int8_t* packed, int32_t* sums) const {
  const int64_t width = (panel + 1 < panels_ ? kMostVectors : last_vectors_) * kLanes;
  const int64_t count = std::min(width, s_.out - panel * kPanel);
  const uint8_t flip = operands_.weights == IntegerType::UInt8 ? kFlip : 0;
  const int64_t taps_of_run = run_bytes_ / s_.in;
  const uint8_t* first = weights + (group * s_.out + panel * kPanel) * strides.out;
  if (count < width) std::memset(packed, 0, static_cast<size_t>(width * 4 * quads_) * runs_.size());
  for (int64_t run = 0; run < static_cast<int64_t>(runs_.size()); run++)
    for (int64_t quad = 0; quad < quads_; quad++, packed += 4 * width) {
      const uint8_t* from[4] = {};
      for (int64_t byte = 4 * quad; byte < std::min(4 * quad + 4, run_bytes_); byte++)
        from[byte % 4] = first + (run * taps_of_run + byte / s_.in) * strides.tap + byte % s_.in * strides.in;
      pack_four(from, strides.out, flip, count, packed, sums);
    }
}

// Sixteen bits of each weight less its zero point, in a number of 32.
void IntegerProduct::pack_depthwise(const uint8_t* weights, const WeightStrides& strides, int32_t* packed,
                                    int32_t* sums) const {
  const int64_t width = rounded(channels(), kPanel);
  const uint8_t flip = operands_.weights == IntegerType::UInt8 ? kFlip : 0;
  std::fill_n(packed, static_cast<int64_t>(runs_.size()) * width, 0);
  for (int64_t tap = 0; tap < static_cast<int64_t>(runs_.size()); tap++)
    for (int64_t c = 0; c < channels(); c++) {
      const auto stored = static_cast<int8_t>(weights[c * strides.out + tap * strides.tap] ^ flip);
      const int32_t w = stored - operands_.weight_zeros[static_cast<size_t>(c)];
      packed[tap * width + c] = w & 0xffff;
      sums[c] += w;
    }
}

void IntegerProduct::pack(const void* weights, const WeightStrides& strides, void* packed) const {
  auto* to = static_cast<int8_t*>(packed);
  auto* sums = reinterpret_cast<int32_t*>(to + lines(weight_bytes()));
  std::fill_n(sums, channels(), 0);
  const auto* from = static_cast<const uint8_t*>(weights);
  if (is_depthwise()) return pack_depthwise(from, strides, static_cast<int32_t*>(packed), sums);
  for (int64_t group = 0; group < s_.groups; group++)
    for (int64_t panel = 0; panel < panels_; panel++) {
      pack_panel(from, strides, group, panel, to, sums + group * s_.out + panel * kPanel);
      const int64_t width = (panel + 1 < panels_ ? kMostVectors : last_vectors_) * kLanes;
      to += width * static_cast<int64_t>(runs_.size()) * quads_ * 4;
    }
}

// ---- images ----

size_t IntegerProduct::image_bytes() const {
  constexpr size_t kReadBeyond = 64;
  return copies_ ? lines(static_cast<size_t>(extent_[0] * extent_[1] * s_.groups * s_.in) + kReadBeyond) : 0;
}

size_t IntegerProduct::scratch_bytes() const {
  const int64_t row_sums = has_weight_zeros_ && !is_depthwise() ? s_.groups * positions() : 0;
  return image_bytes() + lines(static_cast<size_t>(channels() + kPanel) * sizeof(int32_t)) +
         lines(static_cast<size_t>(row_sums) * sizeof(int32_t));
}

// The source's zero point, of the numbers that are multiplied.
int32_t IntegerProduct::zero_of(const void* src_zero) const {
  if (!src_zero) return operands_.src_zero;
  const uint8_t zero = *static_cast<const uint8_t*>(src_zero);
  return operands_.src == IntegerType::Int8 ? zero ^ kFlip : zero;
}

const uint8_t* IntegerProduct::prepare(const void* src, int32_t zero, uint8_t* scratch) const {
  const auto* from = static_cast<const uint8_t*>(src);
  if (!copies_) return from;
  const int64_t place = s_.groups * s_.in, line = extent_[1] * place, before = s_.pads[1] * place;
  const int64_t inner = std::min(s_.src[1] * place, line - before);
  const uint8_t flip = operands_.src == IntegerType::Int8 ? kFlip : 0;
  share_each(extent_[0], threads_, [&](int64_t y, int) {
    uint8_t* to = scratch + y * line;
    const int64_t source = y - s_.pads[0];
    if (source < 0 || source >= s_.src[0]) {
      std::memset(to, zero, static_cast<size_t>(line));
      return;
    }
    const uint8_t* own = from + source * s_.src[1] * place;
    std::memset(to, zero, static_cast<size_t>(before));
    copy_flipped(own, flip, inner, to + before);
    std::memset(to + before + inner, zero, static_cast<size_t>(line - before - inner));
  });
  return scratch;
}

void IntegerProduct::sum_rows(const uint8_t* image, int32_t* sums) const {
  share_each(s_.groups * positions(), threads_, [&](int64_t i, int) {
    const uint8_t* own = image + Starts(*this, i % positions()).next() + i / positions() * s_.in;
    int32_t sum = 0;
    for (const int64_t run : runs_)
      for (int64_t k = 0; k < run_bytes_; k++) sum += own[run + k];
    sums[i] = sum;
  });
}

// ---- products ----

Columns IntegerProduct::columns_from(int64_t channel, int64_t width, int64_t count, const int32_t* corrections) const {
  return {corrections + channel,
          operands_.weight_zeros.data() + channel,
          result_.scale.data() + channel,
          result_.bias.data() + channel,
          second_.bias.data() + channel,
          width,
          count};
}

void IntegerProduct::run_block(const uint8_t* image, const int8_t* packed, const int32_t* corrections,
                               const int32_t* row_sums, int64_t group, int64_t block, int64_t panel, const void* addend,
                               void* dst) const {
  const int64_t vectors = panel + 1 < panels_ ? kMostVectors : last_vectors_;
  const int64_t end = std::min(positions(), (block + 1) * kBlockRows);
  const int64_t channel = group * s_.out + panel * kPanel;
  const Columns columns =
      columns_from(channel, vectors * kLanes, std::min(kPanel, s_.out - panel * kPanel), corrections);
  const TileKind* kind = tile_kinds(vectors);
  alignas(64) int32_t sums[kMostSums];
  Starts starts(*this, block * kBlockRows);
  for (int64_t position = block * kBlockRows; position < end; position += kind->rows) {
    while (kind->rows > end - position) kind++;
    const uint8_t* rows[kMostRows] = {};
    for (int64_t r = 0; r < kind->rows; r++) rows[r] = image + starts.next() + group * s_.in;
    kind->sum(rows, runs_, quads_, packed, sums);
    store_rows(sums, kind->rows, columns, {result_, second_, addend, dst}, row_sums ? row_sums + position : nullptr,
               position * channels() + channel, channels());
  }
}

void IntegerProduct::run_depthwise(const uint8_t* image, const int32_t* packed, const int32_t* corrections,
                                   const void* addend, void* dst) const {
  const int64_t width = rounded(channels(), kPanel);
  share_each((positions() + kTogether - 1) / kTogether, threads_, [&](int64_t number, int) {
    const int64_t first = number * kTogether;
    const int64_t count = std::min(kTogether, positions() - first);
    const uint8_t* rows[kTogether] = {};
    Starts starts(*this, first);
    for (int64_t p = 0; p < kTogether; p++) rows[p] = p < count ? image + starts.next() : rows[0];
    alignas(64) int32_t sums[kTogether * kLanes];
    for (int64_t channel = 0; channel < channels(); channel += kLanes) {
      const Columns columns = columns_from(channel, kLanes, std::min(kLanes, channels() - channel), corrections);
      sum_channels(rows, runs_, channel, columns.count, packed + channel, width, sums);
      store_rows(sums, count, columns, {result_, second_, addend, dst}, nullptr, first * channels() + channel,
                 channels());
    }
  });
}

void IntegerProduct::run(const void* src, const void* packed, const void* addend, void* dst, void* scratch,
                         const void* src_zero) const {
  auto* own = static_cast<uint8_t*>(scratch);
  const int32_t src_place = zero_of(src_zero);
  const uint8_t* image = prepare(src, src_place, own);
  const auto* sums = reinterpret_cast<const int32_t*>(static_cast<const char*>(packed) + lines(weight_bytes()));
  auto* corrections = reinterpret_cast<int32_t*>(own + image_bytes());
  const auto terms = static_cast<int32_t>(static_cast<int64_t>(runs_.size()) * run_bytes_);
  for (int64_t c = 0; c < channels(); c++) {
    const int32_t zero = is_depthwise() ? 0 : operands_.weight_zeros[static_cast<size_t>(c)];
    corrections[c] = src_place * (terms * zero - sums[c]) + result_.steps[static_cast<size_t>(c)];
  }
  std::fill_n(corrections + channels(), kPanel, 0);
  if (is_depthwise()) return run_depthwise(image, static_cast<const int32_t*>(packed), corrections, addend, dst);
  int32_t* row_sums = nullptr;
  if (has_weight_zeros_) {
    row_sums = corrections + lines(static_cast<size_t>(channels() + kPanel) * sizeof(int32_t)) / sizeof(int32_t);
    sum_rows(image, row_sums);
  }
  const int64_t blocks = (positions() + kBlockRows - 1) / kBlockRows;
  const auto depth = static_cast<int64_t>(runs_.size()) * quads_ * 4;
  const int64_t group_bytes = ((panels_ - 1) * kPanel + last_vectors_ * kLanes) * depth;
  share_each(s_.groups * blocks * panels_, threads_, [&](int64_t item, int) {
    const int64_t panel = item % panels_, block = item / panels_ % blocks, group = item / panels_ / blocks;
    run_block(image, static_cast<const int8_t*>(packed) + group * group_bytes + panel * kPanel * depth, corrections,
              row_sums ? row_sums + group * positions() : nullptr, group, block, panel, addend, dst);
  });
}

}  // namespace gopt_runtime
