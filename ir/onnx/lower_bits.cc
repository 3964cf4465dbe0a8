// Bits of integers as arithmetic: shifts by powers of two, and, or and exclusive or four bits at a time, by a table.
#include "gopt/wide_integers.h"
#include "lowering.h"

namespace gopt::ir {
namespace {

int64_t bits_of(ElementType type) { return 8 * static_cast<int64_t>(size_bytes(type)); }

// By a table of powers of two; in 64 bits, so that nothing is lost before the bits that leave at the left are.
Values lower_bit_shift(Lowering& l) {
  const Value x = l.input(0), places = l.cast(l.input(1), ElementType::Int64);
  const int64_t bits = 8 * static_cast<int64_t>(size_bytes(type_of(x)));
  Lowering::require(has_no_sign(type_of(x)) && l.opset() >= 10);
  const bool left = l.text("direction", "") == "LEFT", whole = bits == 64;
  Lowering::require(left || l.text("direction", "") == "RIGHT");
  const ElementType wide = whole ? type_of(x) : ElementType::Int64;
  std::vector<int64_t> powers;
  for (int64_t k = 0; k < bits; k++) powers.push_back(static_cast<int64_t>(uint64_t{1} << static_cast<uint64_t>(k)));
  const Value table = l.constant(Tensor::from_values(wide, {bits}, powers));
  const auto power = [&](const Value& at) { return l.op(OpKind::Gather, {table, at}, {{"axis", Index(0)}}); };
  const auto number = [&](double value) { return l.scalar(ElementType::Int64, value); };
  const Value fits = l.op(OpKind::Less, {places, number(static_cast<double>(bits))});
  const Value distance = l.where(fits, places, number(0));
  Value given = l.cast(x, wide);
  if (left && !whole) {  // the bits that stay
    const Value kept = l.mul(power(l.sub(number(static_cast<double>(bits - 1)), distance)), l.scalar(wide, 2));
    given = l.op(OpKind::Mod, {given, kept});
  }
  const Value moved = left ? l.mul(given, power(distance)) : l.div(given, power(distance));
  return {l.cast(l.where(fits, moved, l.scalar(wide, 0)), type_of(x))};
}

Value number(Lowering& l, int64_t value) {
  return l.constant(Tensor::from_values<int64_t>(ElementType::Int64, {}, {value}));
}

// Values below 2^bits, `bits` of at most 32, four of them at a time.
template <class F>
Value by_table(Lowering& l, const Value& a, const Value& b, int64_t bits, const F& combine) {
  std::vector<int64_t> entries;
  for (int64_t x = 0; x < 16; x++)
    for (int64_t y = 0; y < 16; y++) entries.push_back(combine(x, y) & 15);
  const Value table = l.constant(Tensor::from_values(ElementType::Int64, {256}, entries));
  Value sum;
  for (int64_t at = 0; at < bits; at += 4) {
    const Value unit = number(l, int64_t{1} << at);
    const auto digit = [&](const Value& v) { return l.op(OpKind::Mod, {l.div(v, unit), number(l, 16)}); };
    const Value place = l.add(l.mul(digit(a), number(l, 16)), digit(b));
    const Value part = l.mul(l.op(OpKind::Gather, {table, place}, {{"axis", Index(0)}}), unit);
    sum = sum ? l.add(sum, part) : part;
  }
  return sum;
}

template <class F>
Values bitwise(Lowering& l, const Value& a, const Value& b, const F& combine) {
  const ElementType type = type_of(a);
  Lowering::require(is_integer(type) && type_of(b) == type);
  const int64_t bits = bits_of(type), low_bits = bits == 64 ? 32 : bits;
  const Value span = number(l, int64_t{1} << low_bits);
  const Value wide_a = l.cast(a, ElementType::Int64), wide_b = l.cast(b, ElementType::Int64);
  const auto low = [&](const Value& v) { return l.op(OpKind::Mod, {v, span}); };  // of the divisor's sign
  Value result = by_table(l, low(wide_a), low(wide_b), low_bits, combine);
  if (bits < 64) {
    // In a signed type the upper half stands for what is below zero.
    const Value half = number(l, int64_t{1} << (low_bits - 1));
    if (!has_no_sign(type)) result = l.where(l.op(OpKind::Less, {result, half}), result, l.sub(result, span));
    return {l.cast(result, type)};
  }
  const auto high = [&](const Value& v) { return low(l.div(l.sub(v, low(v)), span)); };
  const Value upper = by_table(l, high(wide_a), high(wide_b), 32, combine);
  return {l.cast(l.add(l.mul(upper, span), result), type)};
}

Values lower_bitwise_and(Lowering& l) {
  return bitwise(l, l.input(0), l.input(1), [](int64_t x, int64_t y) { return x & y; });
}
Values lower_bitwise_or(Lowering& l) {
  return bitwise(l, l.input(0), l.input(1), [](int64_t x, int64_t y) { return x | y; });
}
Values lower_bitwise_xor(Lowering& l) {
  return bitwise(l, l.input(0), l.input(1), [](int64_t x, int64_t y) { return x ^ y; });
}
Values lower_bitwise_not(Lowering& l) {
  return bitwise(l, l.input(0), l.input(0), [](int64_t x, int64_t) { return ~x; });
}

constexpr LoweredOperator kBits[] = {{"BitShift", lower_bit_shift},
                                     {"BitwiseAnd", lower_bitwise_and},
                                     {"BitwiseOr", lower_bitwise_or},
                                     {"BitwiseXor", lower_bitwise_xor},
                                     {"BitwiseNot", lower_bitwise_not}};

}  // namespace

std::span<const LoweredOperator> lowered_bits() { return kBits; }

}  // namespace gopt::ir
