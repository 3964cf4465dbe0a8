// Convolutions and products of matrices of 8-bit integers, in loops of our own: sums of 32 bits, and, as they are
// stored, scale, bias, bounds and, where the result is of 8 bits again, the nearest integer (halves to even) plus its
// zero point. Images lie with channels last. A product of matrices is a convolution of one tap over as many positions
// as it has rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace gopt_runtime {

namespace integers {
struct Columns;
}

enum class IntegerType { UInt8, Int8, Int32, Float };

struct IntegerShape {
  int64_t groups = 1, in = 1, out = 1;       // channels of a group
  int64_t src[2] = {1, 1}, dst[2] = {1, 1};  // rows and columns of an image; of a matrix 1 and its rows
  int64_t kernel[2] = {1, 1}, strides[2] = {1, 1}, dilations[2] = {1, 1}, pads[2] = {0, 0};  // pads before
};

// In elements: how far apart weights of neighbouring outputs (of all groups), inputs (of a group) and taps lie.
struct WeightStrides {
  int64_t out, in, tap;
};

struct IntegerOperands {
  IntegerType src = IntegerType::UInt8, weights = IntegerType::Int8;
  int32_t src_zero = 0;
  std::vector<int32_t> weight_zeros;  // of each channel of all groups
};

// What is made of sums: (sum + steps) x scale + bias, within [least, greatest]; of 8 bits the nearest integer to that,
// + zero. Of 32 bits the sums themselves.
struct IntegerResult {
  IntegerType type = IntegerType::Float;
  float least = -std::numeric_limits<float>::infinity();
  float greatest = std::numeric_limits<float>::infinity();  // of 8 bits: of the type, less zero, or closer
  int32_t zero = 0;
  std::vector<float> scale, bias;  // of each channel of all groups
  std::vector<int32_t> steps;      // the same; none: zeros
};

// What may be made of a result of 8 bits, as r from zero on, before it is stored: (r + shift) scale + bias + (addend -
// its zero) its scale, within bounds, and rounded again.
struct IntegerSecond {
  bool is_there = false;
  int32_t shift = 0;
  float scale = 1, addend_scale = 1;
  IntegerType addend_type = IntegerType::UInt8;
  int32_t addend_zero = 0;
  std::vector<float> bias;  // of each channel of all groups
  float least = 0, greatest = 0;
  int32_t zero = 0;
};

class IntegerProduct {
 public:
  IntegerProduct(const IntegerShape& shape, IntegerOperands operands, IntegerResult result, IntegerSecond second,
                 int threads);

  // Weights in the order in which they are read, and their sums.
  size_t packed_bytes() const;
  int64_t packed_form() const;  // weights that are packed for another product of this number can be shared
  void pack(const void* weights, const WeightStrides& strides, void* packed) const;

  size_t scratch_bytes() const;
  // One image. `addend`: of the result's shape, may be where that is; null: there is none. `src_zero`: in place of
  // the operands' own, a number of the source's type; null: there is none.
  void run(const void* src, const void* packed, const void* addend, void* dst, void* scratch,
           const void* src_zero = nullptr) const;

  class Starts;

 private:
  bool is_depthwise() const { return s_.in == 1 && s_.out == 1 && s_.groups > 1; }
  int64_t channels() const { return s_.groups * s_.out; }
  int64_t positions() const { return s_.dst[0] * s_.dst[1]; }
  size_t weight_bytes() const;
  size_t image_bytes() const;
  void pack_panel(const uint8_t* weights, const WeightStrides& strides, int64_t group, int64_t panel, int8_t* packed,
                  int32_t* sums) const;
  void pack_depthwise(const uint8_t* weights, const WeightStrides& strides, int32_t* packed, int32_t* sums) const;
  int32_t zero_of(const void* src_zero) const;
  const uint8_t* prepare(const void* src, int32_t zero, uint8_t* scratch) const;
  void sum_rows(const uint8_t* image, int32_t* sums) const;
  void run_depthwise(const uint8_t* image, const int32_t* packed, const int32_t* corrections, const void* addend,
                     void* dst) const;
  void run_block(const uint8_t* image, const int8_t* packed, const int32_t* corrections, const int32_t* row_sums,
                 int64_t group, int64_t block, int64_t panel, const void* addend, void* dst) const;
  integers::Columns columns_from(int64_t channel, int64_t width, int64_t count, const int32_t* corrections) const;

  IntegerShape s_;
  IntegerOperands operands_;
  IntegerResult result_;
  IntegerSecond second_;
  int threads_;
  bool has_weight_zeros_ = false;
  bool copies_;        // the image, with its border and of unsigned numbers, before it is read
  int64_t extent_[2];  // of the image that is read
  // Bytes that a position reads: runs of them, by where they start, each of so many; these fill up `quads_` times four.
  std::vector<int64_t> runs_;
  int64_t run_bytes_, quads_;
  int64_t panels_, last_vectors_;  // of a group
};

}  // namespace gopt_runtime
