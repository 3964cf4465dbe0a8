// Convolutions and matrix products: by oneDNN, made once, weights reordered once into the form that the primitive asks
// for; convolutions for which it has reference code alone, pooling, products of a few rows and attention in loops of
// our own (gopt_planar.h, gopt_unfolded.h, gopt_rows.h, gopt_attention_rows.h), products of many and convolutions of
// blocks of channels where that is faster (gopt_panels.h, gopt_blocks.h, gopt_winograd.h); all of integers in loops of
// our own (gopt_integer.h); of floats and bfloat16 by kernels of our own on tiles, where there are these
// (gopt_tiles.h).
#pragma once

#include <cstdint>
#include <iterator>
#include <limits>
#include <memory>
#include <vector>

#include "gopt_attention_rows.h"
#include "gopt_integer.h"
#include "gopt_post.h"
#include "gopt_quantized.h"
#include "gopt_recurrence.h"

namespace gopt_runtime {

// Blocks of 8 channels are those of processors whose registers hold so many floats; all processors have code for them.
enum class Order { Plain, Blocked16, ChannelsLast, Blocked8 };

// Channels of a block; 1 where there are none.
inline int64_t block_of(Order order) { return order == Order::Blocked16 ? 16 : order == Order::Blocked8 ? 8 : 1; }

// How a convolution is computed. Direct: by oneDNN on the tensors as they lie, or, where it has no fast code for them,
// by the best of the others. Winograd (gopt_winograd.h): by constant weights, of floats in blocks of whole vectors;
// else direct. ChannelsLast, Planar, Unfolded (gopt_unfolded.h; of one that is transposed Planar), ChannelLanes (of one
// that is depthwise: gopt_channel_lanes.h): the tensors are converted where they lie otherwise. Panels (gopt_panels.h):
// of one tap, by constant weights, of floats that lie alike, in blocks or with channels last; else direct. Blocks
// (gopt_blocks.h): by constant weights, of one group, of floats in blocks of whole vectors; else direct.
enum class Method { Direct, Winograd, ChannelsLast, Planar, Unfolded, ChannelLanes, Panels, Blocks };

// What products are computed in. Own: as the operands are, of bfloat16 where oneDNN has fast code for these on the
// processor, else as Floats. Floats: operands and result are converted where they are of another type. Split: floats
// as sums of two bfloat16 (gopt_split.h), where there is fast code for these, else as Own.
enum class Arithmetic { Own, Floats, Split };

// Floats as so many terms on the processor's tiles (gopt_tiles.h), where it has these and the weights are constant and
// finite; else as without. Bfloat16 is of one term.
constexpr int kNoTiles = 0;

struct Convolution {
  std::vector<int64_t> src, weights, dst;  // extents; weights [out, in / groups, axes...], one to three axes
  int64_t groups = 1;
  std::vector<int64_t> strides, dilations, pads;  // of each axis; pads before, those after follow from dst
  bool transposed = false;                        // weights [in, out / groups, axes...]
  bool constant_weights = true;                   // they are there when the primitive is added, and stay
  Order src_order = Order::Plain, dst_order = Order::Plain;
  Method method = Method::Direct;
  Element operands = Element::Float, result = Element::Float;  // of src and weights, of dst; biases are floats
  Arithmetic arithmetic = Arithmetic::Own;
  int tile_terms = kNoTiles;
  std::vector<Post> posts;
};

// Of plain tensors.
struct Pooling {
  std::vector<int64_t> src, dst;
  std::vector<int64_t> kernel, strides, dilations, pads;  // of one to three axes; pads before, then after
  bool average = false;                                   // else the greatest element
  bool counts_padding = false;
  Element element = Element::Float;
};

struct MatrixProduct {
  std::vector<int64_t> src, weights, dst;  // extents of one rank, products over the last two axes
  std::vector<int64_t> src_strides, weight_strides;
  bool constant_weights = false;  // to be reordered once
  // In loops of our own: two axes, constant weights, dense src of at most kMostRows rows.
  bool few_rows = false;
  // In loops of our own (gopt_panels.h): two axes, constant weights, rows of src that are lines of floats; else as
  // without.
  bool panels = false;
  // By integers (gopt_quantized.h): two axes, dense src of floats.
  int bits = 0;  // 4 or 8; 0: by floats
  int64_t block = 1;
  QuantizedWeights quantized;  // but for numbers, row and column, which are as for others
  Element operands = Element::Float, result = Element::Float;  // of src and weights, of dst; biases are floats
  Arithmetic arithmetic = Arithmetic::Own;
  int tile_terms = kNoTiles;
  std::vector<Post> posts;
};

// A convolution or product of 8-bit integers, images with channels last. Bounds are those of the numbers that the
// result stands for. Scales are src_scale times those of the weights. Without scales and zero points of weights these
// are 1 and 0.
struct IntegerCall {
  bool is_product = false;
  std::vector<int64_t> src, weights, dst;  // extents, as Convolution and MatrixProduct have them
  std::vector<int64_t> weight_strides;     // of products
  int64_t groups = 1;
  std::vector<int64_t> strides, dilations, pads;
  bool constant_weights = true;
  bool scale_a_channel = false, zero_a_channel = false;  // of the weights; else one for all
  IntegerOperands operands;
  bool has_src_zero = false;  // a number of the source's type in memory, which is asked for at each run
  const void* src_zero = nullptr;
  struct Result : IntegerResult {
    float step = 1;  // of 8 bits: what one is
  } result;
  float src_scale = 1;
  // What is added to a result of 8 bits, which is rounded again then.
  struct Second {
    bool is_there = false, adds = false;
    IntegerType first_type = IntegerType::UInt8, addend_type = IntegerType::UInt8;
    float first_step = 1, addend_step = 1, step = 1;
    int32_t first_zero = 0, addend_zero = 0, zero = 0;
    const float* bias = nullptr;
    const void* addend = nullptr;
    float least = -std::numeric_limits<float>::infinity(), greatest = std::numeric_limits<float>::infinity();
  } second;
};

// What a call says of its axes, to a shape with as many or more, of which those before are 1.
template <class Shape, class Call>
void set_windows(Shape& shape, const Call& call) {
  for (size_t d = 0; d < call.pads.size(); d++) {
    const size_t axis = std::size(shape.kernel) - call.pads.size() + d;
    shape.src[axis] = call.src[2 + d];
    shape.dst[axis] = call.dst[2 + d];
    shape.kernel[axis] = call.weights[2 + d];
    shape.strides[axis] = call.strides[d];
    shape.dilations[axis] = call.dilations[d];
    shape.pads[axis] = call.pads[d];
  }
}

// Weights in the forms that kernels read: of all sizes of a model, each form once.
class PackedWeights {
 public:
  PackedWeights();
  ~PackedWeights();

 private:
  friend class Library;
  struct State;
  std::unique_ptr<State> state_;
};

// Whether there are results whose window lies in the padding alone.
bool has_empty_windows(const Convolution& convolution);

class Library {
 public:
  // `packed` has to stay.
  Library(int threads, PackedWeights& packed);
  ~Library();
  // Pointers may be null where they are given before each run by bind().
  void add(const Convolution& convolution, const void* src, const void* weights, const void* bias, void* dst);
  void add(const Pooling& pooling, const void* src, void* dst);
  void add(const MatrixProduct& product, const void* src, const void* weights, const void* bias, void* dst);
  // Value, and those of mask, bias and choice that there are, are bound as posts 0, 1, ...
  void add(const AttentionShape& attention, const void* query, const void* key, const void* value, const void* mask,
           const void* bias, const void* choice, void* result);
  // Scales and zero points of weights, and biases (null: none), are there when the primitive is added.
  void add(const IntegerCall& call, const void* src, const void* weights, const void* scales, const void* zeros,
           const void* bias, void* dst);
  // Weights may be null where they are not constant: they are packed before each run then.
  void add(const RecurrenceShape& recurrence, const float* constant_weights);
  void add_nothing();  // in the place of a primitive that cannot be made; running it is an error
  void finish();       // after the last
  void clear();        // to add primitives for other sizes; memory stays
  void bind(size_t primitive, const void* src, const void* weights, void* dst);  // null: as it is
  void bind_post(size_t primitive, int post, const void* operand);
  void run(size_t primitive);
  void run(size_t primitive, const RecurrenceOperands& operands);  // of a recurrence
  int way_of(size_t primitive) const;                              // kOneThread, kShared or kAlone (gopt_team.h)
  // Its weights are in no cache any more, for timing it where many others are read before they are read again.
  void forget_weights(size_t primitive);

  struct State;  // gopt_primitives.h

 private:
  void add_few_rows(const MatrixProduct& product, const void* src, const void* weights, const void* bias, void* dst,
                    int own_threads);
  void add_quantized(const MatrixProduct& product, const void* src, const void* weights, const void* bias, void* dst,
                     int own_threads);
  // Nothing is added where they are not for this.
  bool add_panels(const Convolution& convolution, const void* src, const void* weights, const void* bias, void* dst,
                  int own_threads);
  bool add_panels(const MatrixProduct& product, const void* src, const void* weights, const void* bias, void* dst,
                  int own_threads);
  bool add_winograd(const Convolution& convolution, const void* src, const void* weights, const void* bias, void* dst,
                    int own_threads);
  bool add_blocks(const Convolution& convolution, const void* src, const void* weights, const void* bias, void* dst,
                  int own_threads);
  // Nothing is added where there are no tiles, or not for this.
  bool add_tiles(const Convolution& convolution, const void* src, const void* weights, const void* bias, void* dst,
                 int own_threads);
  bool add_tiles(const MatrixProduct& product, const void* src, const void* weights, const void* bias, void* dst,
                 int own_threads);

  std::unique_ptr<State> state_;
};

}  // namespace gopt_runtime
