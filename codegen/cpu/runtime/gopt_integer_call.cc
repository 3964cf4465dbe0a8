// Convolutions and products of integers as they are called: what the model knows of them for gopt_integer.h.
#include <algorithm>
#include <cmath>
#include <optional>

#include "gopt_primitives.h"

namespace gopt_runtime {
namespace {

bool is_of_8_bits(IntegerType type) { return type == IntegerType::UInt8 || type == IntegerType::Int8; }

// How often the weights change: of a product of several matrices by as many.
int64_t images_of(const IntegerCall& c) {
  if (!c.is_product) return c.src[0];
  int64_t images = 1;
  for (size_t d = 0; d + 2 < c.src.size(); d++) images *= c.src[d];
  return images;
}

IntegerShape shape_of(const IntegerCall& c) {
  IntegerShape s;
  if (c.is_product) {
    s.in = c.src.back();
    s.out = c.dst.back();
    s.src[1] = s.dst[1] = c.src[c.src.size() - 2];
    return s;
  }
  s.groups = c.groups;
  s.in = c.src[1] / c.groups;
  s.out = c.dst[1] / c.groups;
  set_windows(s, c);
  return s;
}

WeightStrides strides_of(const IntegerCall& c) {
  if (c.is_product) return {c.weight_strides.back(), c.weight_strides[c.weight_strides.size() - 2], 0};
  int64_t taps = 1;
  for (size_t d = 2; d < c.weights.size(); d++) taps *= c.weights[d];
  return {c.weights[1] * taps, taps, 1};
}

IntegerOperands operands_of(const IntegerCall& c, int64_t channels, const void* zeros) {
  IntegerOperands operands = c.operands;
  const auto* bytes = static_cast<const uint8_t*>(zeros);
  if (!bytes) {
    operands.weight_zeros.assign(static_cast<size_t>(channels), 0);
    return operands;
  }
  const uint8_t* end = bytes + (c.zero_a_channel ? channels : 1);
  for (int64_t i = 0; i < channels; i++) {
    const uint8_t zero = c.zero_a_channel ? bytes[i] : end[-1];
    operands.weight_zeros.push_back(operands.weights == IntegerType::Int8 ? static_cast<int8_t>(zero) : zero);
  }
  return operands;
}

// A bias that counts in steps of the sums, as quantized ones do, is added to these: exactly, and as others do it.
std::optional<int32_t> whole_steps(float bias, float scale) {
  constexpr double kMost = 1 << 23, kRounding = 4e-7;  // of both numbers
  const double steps = static_cast<double>(bias) / scale, nearest = std::nearbyint(steps);
  const bool is_whole = std::fabs(steps - nearest) <= kRounding * std::fabs(nearest);
  return is_whole && std::fabs(nearest) < kMost ? std::optional(static_cast<int32_t>(nearest)) : std::nullopt;
}

// Bounds of numbers as bounds of 8 bits, from zero on.
void bound_to(IntegerType type, int32_t zero, float step, float& least, float& greatest) {
  const float lowest = (type == IntegerType::Int8 ? -128.0f : 0.0f) - static_cast<float>(zero);
  for (float* bound : {&least, &greatest}) *bound = std::min(std::max(*bound / step, lowest), lowest + 255);
}

// In steps of the result.
IntegerResult result_of(const IntegerCall& c, int64_t channels, const float* scales, const float* bias) {
  IntegerResult result = c.result;
  if (c.second.is_there) result.type = c.second.first_type;
  for (int64_t i = 0; i < channels; i++) {
    const float scale = c.src_scale * (scales ? scales[c.scale_a_channel ? i : 0] : 1), own = bias ? bias[i] : 0;
    const auto steps = whole_steps(own, scale);
    result.scale.push_back(scale / c.result.step);
    result.steps.push_back(steps.value_or(0));
    result.bias.push_back(steps ? 0 : own / c.result.step);
  }
  if (is_of_8_bits(result.type)) bound_to(result.type, result.zero, c.result.step, result.least, result.greatest);
  return result;
}

IntegerSecond second_of(const IntegerCall& c, int64_t channels) {
  const IntegerCall::Second& s = c.second;
  IntegerSecond second;
  if (!s.is_there) return second;
  second.is_there = true;
  second.shift = c.result.zero - s.first_zero;
  second.scale = s.first_step / s.step;
  second.addend_scale = s.addend_step / s.step;
  second.addend_type = s.addend_type;
  second.addend_zero = s.addend_zero;
  for (int64_t i = 0; i < channels; i++) second.bias.push_back(s.bias ? s.bias[i] / s.step : 0);
  second.least = s.least;
  second.greatest = s.greatest;
  second.zero = s.zero;
  bound_to(c.result.type, s.zero, s.step, second.least, second.greatest);
  return second;
}

size_t product_of(const std::vector<int64_t>& extents) { return static_cast<size_t>(elements(extents)); }

}  // namespace

void Library::add(const IntegerCall& c, const void* src, const void* weights, const void* scales, const void* zeros,
                  const void* bias, void* dst) {
  State& s = *state_;
  if (elements(c.dst) == 0) return s.add_empty();
  const IntegerShape shape = shape_of(c);
  const int64_t channels = shape.groups * shape.out, taps = shape.kernel[0] * shape.kernel[1];
  const int own = s.threads_for(elements(c.dst) * static_cast<double>(shape.in * taps) / 4,
                                (elements(c.src) + elements(c.dst) + elements(c.weights)) / 4);
  const size_t element = is_of_8_bits(c.result.type) ? 1 : sizeof(float);
  Primitive p(own);
  IntegerImages call{
      IntegerProduct(shape, operands_of(c, channels, zeros),
                     result_of(c, channels, static_cast<const float*>(scales), static_cast<const float*>(bias)),
                     second_of(c, channels), own),
      strides_of(c),
      s.view(p.src, State::bytes(product_of(c.src)), src),
      s.view(p.weights, State::bytes(product_of(c.weights)), weights),
      s.view(p.dst, State::bytes(product_of(c.dst) * element), dst),
      {},
      {},
      !c.constant_weights || (c.is_product && c.weights.size() > 2),  // one matrix of several is packed at a time
      images_of(c),
      0,
      0,
      0};
  const auto images = static_cast<size_t>(call.images);
  call.src_bytes = static_cast<int64_t>(product_of(c.src) / images);
  call.dst_bytes = static_cast<int64_t>(product_of(c.dst) * element / images);
  if (c.is_product && c.weights.size() > 2) call.weight_bytes = static_cast<int64_t>(product_of(c.weights) / images);
  const memory::desc packed = State::bytes(call.product.packed_bytes());
  call.packed = call.packs
                    ? s.temporary(p, packed)
                    : s.packed_as(weights, call.weights.get_desc(), packed, {call.product.packed_form()},
                                  [&](memory& to) { call.product.pack(weights, call.strides, to.get_data_handle()); });
  call.scratch = s.temporary(p, State::bytes(call.product.scratch_bytes()));
  if (c.has_src_zero) p.posts.emplace_back(1, s.at(State::bytes(1), c.src_zero));
  if (c.second.adds) p.posts.emplace_back(0, s.at(State::bytes(product_of(c.dst)), c.second.addend));
  p.integers = std::make_unique<IntegerImages>(std::move(call));
  s.primitives.push_back(std::move(p));
}

}  // namespace gopt_runtime
