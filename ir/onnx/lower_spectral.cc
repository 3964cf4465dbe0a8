// Fourier transforms as products with matrices of cosines and sines, and determinants.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "lowering.h"

namespace gopt::ir {
namespace {

constexpr int64_t kLongest = 2048;  // of a transform: its matrices are constants

struct Transform {
  Value real, imaginary;
};

// cos and sin of -2 pi i k / n (with the other sign and divided by n for the inverse): [n, columns].
Value angles(Lowering& l, ElementType type, int64_t n, int64_t columns, bool sine, bool inverse) {
  std::vector<double> values;
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < columns; k++) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
      const double value = sine ? (inverse ? std::sin(angle) : -std::sin(angle)) : std::cos(angle);
      values.push_back(inverse ? value / static_cast<double>(n) : value);
    }
  return l.constant(Tensor::from_values(type, {n, columns}, values));
}

// Along the last axis.
Transform transformed(Lowering& l, const Transform& x, int64_t columns, bool inverse) {
  const auto last = static_cast<int64_t>(rank_of(x.real)) - 1;
  const int64_t n = extent_of(x.real, last);
  Lowering::require(n > 0 && n <= kLongest);
  const ElementType type = type_of(x.real);
  const Value cosine = angles(l, type, n, columns, false, inverse), sine = angles(l, type, n, columns, true, inverse);
  const auto times = [&](const Value& v, const Value& matrix) { return l.op(OpKind::MatMul, {v, matrix}); };
  if (!x.imaginary) return {times(x.real, cosine), times(x.real, sine)};
  return {l.sub(times(x.real, cosine), times(x.imaginary, sine)),
          l.add(times(x.real, sine), times(x.imaginary, cosine))};
}

// The real numbers of which the first n / 2 + 1 coefficients are x: the others are their conjugates.
Value of_half(Lowering& l, const Transform& x, int64_t n) {
  const auto last = static_cast<int64_t>(rank_of(x.real)) - 1;
  const int64_t count = extent_of(x.real, last);
  Lowering::require(x.imaginary && n > 0 && n <= kLongest && count == n / 2 + 1);
  std::vector<double> cosines, sines;
  for (int64_t k = 0; k < count; k++)
    for (int64_t i = 0; i < n; i++) {
      const double angle = 2 * std::numbers::pi * static_cast<double>(i * k % n) / static_cast<double>(n);
      const double times = (k == 0 || 2 * k == n ? 1.0 : 2.0) / static_cast<double>(n);
      cosines.push_back(times * std::cos(angle));
      sines.push_back(times * std::sin(angle));
    }
  const auto times = [&](const Value& v, const std::vector<double>& matrix) {
    return l.op(OpKind::MatMul, {v, l.constant(Tensor::from_values(type_of(v), {count, n}, matrix))});
  };
  return l.sub(times(x.real, cosines), times(x.imaginary, sines));
}

Value squeezed_last(Lowering& l, const Value& x, int64_t at) {
  const auto last = static_cast<int64_t>(rank_of(x)) - 1;
  return l.op(OpKind::Squeeze, {l.slice(x, last, at, at + 1)}, {{"axes", std::vector<Index>{Index(last)}}});
}
// The last axis holds real and imaginary parts, or real ones alone.
Transform parts_of(Lowering& l, const Value& x) {
  const int64_t parts = extent_of(x, static_cast<int64_t>(rank_of(x)) - 1);
  Lowering::require(parts == 1 || parts == 2);
  return {squeezed_last(l, x, 0), parts == 2 ? squeezed_last(l, x, 1) : Value{}};
}
Value joined(Lowering& l, const Transform& x) {
  const auto last = static_cast<int64_t>(rank_of(x.real));
  return l.concat({l.unsqueeze(x.real, last), l.unsqueeze(x.imaginary, last)}, last);
}

// Cut off, or with zeros behind, to a length along the last axis.
Value of_length(Lowering& l, const Value& x, int64_t length) {
  if (!x) return x;
  const size_t rank = rank_of(x);
  std::vector<Index> pads(2 * rank, Index(0));
  pads[2 * rank - 1] = Index(length - extent_of(x, static_cast<int64_t>(rank) - 1));
  return pads[2 * rank - 1] == Index(0) ? x : l.op(OpKind::Pad, {x}, {{"pads", pads}});
}

Values lower_dft(Lowering& l) {
  const Value x = l.input(0);
  const size_t rank = rank_of(x);
  Lowering::require(rank >= 2 && (type_of(x) == ElementType::Float32 || type_of(x) == ElementType::Float64));
  int64_t given = l.integer("axis", l.opset() < 20 ? 1 : -2);
  if (l.has(2)) given = l.numbers(2).at(0);
  const int64_t axis = l.axis(given, rank);
  const bool inverse = l.integer("inverse", 0) != 0, one_sided = l.integer("onesided", 0) != 0;
  Lowering::require(axis < static_cast<int64_t>(rank) - 1);
  std::vector<int64_t> perm(rank - 1);
  for (size_t k = 0; k + 1 < rank; k++) perm[k] = static_cast<int64_t>(k);
  std::swap(perm[static_cast<size_t>(axis)], perm.back());  // its own inverse
  Transform parts = parts_of(l, x);
  const bool from_half = inverse && one_sided;
  const int64_t whole = from_half ? 2 * (extent_of(x, axis) - 1) : extent_of(x, axis);
  const int64_t asked = l.has(1) ? l.numbers(1).at(0) : whole, length = from_half ? asked / 2 + 1 : asked;
  for (Value* part : {&parts.real, &parts.imaginary})
    if (*part) *part = of_length(l, l.transpose(*part, perm), length);
  if (from_half) return {l.unsqueeze(l.transpose(of_half(l, parts, asked), perm), static_cast<int64_t>(rank) - 1)};
  parts = transformed(l, parts, one_sided ? length / 2 + 1 : length, inverse);
  return {joined(l, {l.transpose(parts.real, perm), l.transpose(parts.imaginary, perm)})};
}

// Frames of the signal, each times the window, transformed.
Values lower_stft(Lowering& l) {
  const Value signal = l.input(0);
  Lowering::require(rank_of(signal) == 3 && is_floating(type_of(signal)));
  const int64_t step = l.numbers(1).at(0), length = extent_of(signal, 1);
  Lowering::require(l.has(2) || l.has(3));
  const int64_t frame = l.has(3) ? l.numbers(3).at(0) : extent_of(l.input(2), 0);
  Lowering::require(step > 0 && frame > 0 && frame <= length);
  const int64_t frames = (length - frame) / step + 1;
  std::vector<int64_t> places;
  for (int64_t f = 0; f < frames; f++)
    for (int64_t i = 0; i < frame; i++) places.push_back(f * step + i);
  const Value table = l.constant(Tensor::from_values(ElementType::Int64, {frames, frame}, places));
  Transform parts = parts_of(l, signal);
  for (Value* part : {&parts.real, &parts.imaginary}) {
    if (!*part) continue;
    *part = l.op(OpKind::Gather, {*part, table}, {{"axis", Index(1)}});  // [batch, frames, frame]
    if (l.has(2)) *part = l.mul(*part, l.input(2));
  }
  const bool one_sided = l.integer("onesided", 1) != 0;
  Lowering::require(!one_sided || !parts.imaginary);
  return {joined(l, transformed(l, parts, one_sided ? frame / 2 + 1 : frame, false))};
}

// Elimination, at each step by the row of the largest first element, which changes places with the first row.
Values lower_det(Lowering& l) {
  Value rows = l.input(0);
  const size_t rank = rank_of(rows);
  Lowering::require(rank >= 2 && is_floating(type_of(rows)) && l.opset() >= 9);
  const int64_t down = static_cast<int64_t>(rank) - 2, across = down + 1, size = extent_of(rows, down);
  Lowering::require(size > 0 && size <= 32 && extent_of(rows, across) == size);
  const ElementType type = type_of(rows);
  const Value zero = l.scalar(type, 0), one = l.scalar(type, 1);
  Value det;
  for (int64_t k = size; k > 1; k--) {
    const Value heads = l.op(OpKind::Abs, {l.slice(rows, across, 0, 1)});
    const Value smaller = l.op(OpKind::Less, {heads, l.reduce(OpKind::ReduceMax, heads, {Index(down)})});
    const Value places = l.range(k, down, rank), beyond = l.scalar(ElementType::Int64, static_cast<double>(k));
    const Value place = l.reduce(OpKind::ReduceMin, l.where(smaller, beyond, places), {Index(down)});
    const Value here = l.op(OpKind::Equal, {places, place});
    const Value pivot_row = l.reduce(OpKind::ReduceSum, l.where(here, rows, zero), {Index(down)});
    const Value pivot = l.slice(pivot_row, across, 0, 1);
    const Value is_first = l.op(OpKind::Equal, {place, l.scalar(ElementType::Int64, 0)});
    const Value signed_pivot = l.where(is_first, pivot, l.op(OpKind::Neg, {pivot}));
    det = det ? l.mul(det, signed_pivot) : signed_pivot;
    const Value others = l.slice(l.where(here, l.slice(rows, down, 0, 1), rows), down, 1, k);
    const Value is_zero = l.op(OpKind::Equal, {pivot, zero});
    const Value factors = l.div(l.slice(others, across, 0, 1), l.where(is_zero, one, pivot));
    rows = l.sub(l.slice(others, across, 1, k), l.mul(factors, l.slice(pivot_row, across, 1, k)));
  }
  det = det ? l.mul(det, rows) : rows;
  Shape shape = shape_of(det);
  shape.resize(rank - 2);
  return {l.reshape(det, shape)};
}

constexpr LoweredOperator kSpectral[] = {{"DFT", lower_dft}, {"STFT", lower_stft}, {"Det", lower_det}};

}  // namespace

std::span<const LoweredOperator> lowered_spectral() { return kSpectral; }

}  // namespace gopt::ir
