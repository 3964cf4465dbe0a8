// Positions, comparisons and shifts: ArgMax, OneHot, CumSum and the like.
#include <algorithm>
#include <limits>

#include "gopt/row_function.h"
#include "lowering.h"

namespace gopt::ir {
namespace {

// The place of the extreme element along the axis: the first (or last) of those at which it stands. Said by "not less",
// which every opset has, and which holds somewhere whatever is no number; before opset 9 of floats alone, and without
// Where.
Value extreme_place(Lowering& l, const Value& x, int64_t axis, OpKind kind, bool last) {
  constexpr int64_t kBeyond = int64_t{1} << 40;  // any extent
  const Index& count = open_extent_of(x, axis);
  const bool always_reduced = is_floating(type_of(x)) || size_bytes(type_of(x)) >= 4;
  Lowering::require(count != Index(0) && l.opset() >= (is_floating(type_of(x)) ? 7 : always_reduced ? 9 : 12));
  const Value extreme = l.reduce(kind, x, {axis});
  // In 32 bits, where these are enough: twice as many at a time.
  constexpr int64_t kMostCounted = std::numeric_limits<int32_t>::max();
  const bool is_counted = count.is_constant() && count.constant() < kMostCounted && l.opset() >= 9;
  const ElementType type = is_counted ? ElementType::Int32 : ElementType::Int64;
  const Value places = l.range(count, axis, rank_of(x), type);
  const auto beyond = static_cast<double>(count.as_constant().value_or(kBeyond));
  const Values sides = kind == OpKind::ReduceMax ? Values{x, extreme} : Values{extreme, x};
  const Value less = l.op(OpKind::Less, sides);
  Value here;
  if (l.opset() >= 9) {
    here = l.where(less, l.scalar(type, last ? -1 : beyond), places);
  } else {
    const Value away = l.scalar(ElementType::Int64, last ? -beyond : beyond);
    here = l.add(places, l.mul(l.cast(less, ElementType::Int64), away));
  }
  return l.cast(l.reduce(last ? OpKind::ReduceMax : OpKind::ReduceMin, here, {axis}), ElementType::Int64);
}
Values lower_arg(Lowering& l, OpKind kind) {
  const Value x = l.input(0);
  const int64_t axis = l.axis(l.integer("axis", 0), rank_of(x));
  Value place = extreme_place(l, x, axis, kind, l.integer("select_last_index", 0) != 0);
  if (l.integer("keepdims", 1) == 0) place = l.op(OpKind::Squeeze, {place}, {{"axes", std::vector<Index>{axis}}});
  return {place};
}
Values lower_arg_max(Lowering& l) { return lower_arg(l, OpKind::ReduceMax); }
Values lower_arg_min(Lowering& l) { return lower_arg(l, OpKind::ReduceMin); }

// Before opset 13 over all axes from `axis` on together.
Values lower_hardmax(Lowering& l) {
  const Value x = l.input(0);
  Lowering::require(rank_of(x) > 0);
  const bool flat = l.opset() < 13;
  const Value y = flat ? l.op(OpKind::Flatten, {x}, {{"axis", Index(l.axis(l.integer("axis", 1), rank_of(x)))}}) : x;
  const int64_t axis = flat ? 1 : l.axis(l.integer("axis", -1), rank_of(x));
  const Value place = extreme_place(l, y, axis, OpKind::ReduceMax, false);
  const Value places = l.range(open_extent_of(y, axis), axis, rank_of(y));
  return {l.reshape(l.cast(l.op(OpKind::Equal, {places, place}), type_of(x)), shape_of(x))};
}

Values lower_one_hot(Lowering& l) {
  const Value indices = l.cast(l.input(0), ElementType::Int64), values = l.input(2);
  const std::vector<int64_t> depths = l.input(1).node->is(OpKind::Constant) && is_floating(type_of(l.input(1)))
                                          ? std::vector<int64_t>{static_cast<int64_t>(l.reals(1).at(0))}
                                          : l.numbers(1);
  Lowering::require(depths.size() == 1 && depths[0] > 0 && rank_of(values) == 1);
  const size_t rank = rank_of(indices) + 1;
  const int64_t axis = l.axis(l.integer("axis", -1), rank), depth = depths[0];
  const Value wrapped = l.where(l.op(OpKind::Less, {indices, l.scalar(ElementType::Int64, 0)}),
                                l.add(indices, l.scalar(ElementType::Int64, static_cast<double>(depth))), indices);
  const Value hot = l.op(OpKind::Equal, {l.unsqueeze(wrapped, axis), l.range(depth, axis, rank)});
  return {l.where(hot, l.slice(values, 0, 1, 2), l.slice(values, 0, 0, 1))};
}

// How many elements are not zero is known of constants only.
Values lower_non_zero(Lowering& l) {
  const Value x = l.input(0);
  constexpr int64_t kMostElements = 1 << 20;
  const size_t rank = rank_of(x);  // of a scalar some runtimes give a row, others none
  Lowering::require(x.node->is(OpKind::Constant) && x.node->tensor.count() <= kMostElements && rank > 0);
  const std::vector<double> values = x.node->tensor.to_doubles();
  std::vector<std::vector<int64_t>> places(rank);  // by axis
  for (size_t i = 0; i < values.size(); i++) {
    if (values[i] == 0) continue;
    auto rest = static_cast<int64_t>(i);
    for (size_t axis = rank; axis-- > 0; rest /= extent_of(x, static_cast<int64_t>(axis)))
      places[axis].push_back(rest % extent_of(x, static_cast<int64_t>(axis)));
  }
  std::vector<int64_t> all;
  for (const auto& along : places) all.insert(all.end(), along.begin(), along.end());
  return {l.constant(Tensor::from_values(ElementType::Int64,
                                         {static_cast<int64_t>(rank), static_cast<int64_t>(places[0].size())}, all))};
}

double neutral(OpKind kind) { return kind == OpKind::Mul ? 1 : 0; }
OpKind reduction_by(OpKind kind) { return kind == OpKind::Mul ? OpKind::ReduceProd : OpKind::ReduceSum; }

// Each by itself: over those of all elements that count for it.
Value cumulated_apart(Lowering& l, OpKind kind, const Value& x, int64_t axis, bool reverse, bool exclusive) {
  const Index& count = open_extent_of(x, axis);
  Shape shape(rank_of(x) + 1, Index(1));  // results along `axis`, elements along the next one
  shape[static_cast<size_t>(axis)] = shape[static_cast<size_t>(axis) + 1] = count;
  const Value triangle = l.triangle(count, !exclusive ? 0 : reverse ? 1 : -1, reverse);
  const Value counts = l.reshape(l.cast(triangle, ElementType::Bool), shape);
  const Value each = l.where(counts, l.unsqueeze(x, axis), l.scalar(type_of(x), neutral(kind)));
  return l.reduce(reduction_by(kind), each, {Index(axis + 1)}, false);
}

// Within blocks of a few, and from block to block likewise: as many steps as the extent has digits, of which the first
// alone looks at all elements.
Value cumulated_by_blocks(Lowering& l, OpKind kind, const Value& x, int64_t axis, bool reverse, bool exclusive) {
  constexpr int64_t kBlock = 8;
  const int64_t count = extent_of(x, axis), blocks = (count + kBlock - 1) / kBlock, whole = blocks * kBlock;
  if (count <= kBlock) return cumulated_apart(l, kind, x, axis, reverse, exclusive);
  const auto at = static_cast<size_t>(axis);
  std::vector<Index> pads(2 * rank_of(x), Index(0));
  pads[rank_of(x) + at] = Index(whole - count);
  const Value filled = whole == count ? x : l.op(OpKind::Pad, {x}, {{"pads", pads}, {"value", neutral(kind)}});
  Shape joined = shape_of(filled), split = joined;
  split[at] = Index(blocks);
  split.insert(split.begin() + axis + 1, Index(kBlock));
  const Value parts = l.reshape(filled, split);
  const Value totals = l.reduce(reduction_by(kind), parts, {Index(axis + 1)}, false);
  const Value before = l.unsqueeze(cumulated_by_blocks(l, kind, totals, axis, reverse, true), axis + 1);
  const Value within = cumulated_apart(l, kind, parts, axis + 1, reverse, exclusive);
  return l.slice(l.reshape(l.op(kind, {within, before}), joined), axis, 0, count);
}

// The same over 1, 2, 4, ... elements: for elements that lie beside each other, whose blocks would be shorter than what
// is computed at once.
Value cumulated_by_doubling(Lowering& l, OpKind kind, const Value& x, int64_t axis, bool reverse, bool exclusive) {
  const auto at = static_cast<size_t>(axis);
  const int64_t count = extent_of(x, axis);
  // The tensor moved by `distance` along the axis; what comes in changes nothing.
  const auto moved = [&](const Value& v, int64_t distance) {
    std::vector<Index> pads(2 * rank_of(x), Index(0));
    pads[reverse ? at + rank_of(x) : at] = Index(distance);
    const Value kept = reverse ? l.slice(v, axis, distance, count) : l.slice(v, axis, 0, count - distance);
    return l.op(OpKind::Pad, {kept}, {{"pads", pads}, {"value", neutral(kind)}});
  };
  Value sum = exclusive && count > 0 ? moved(x, 1) : x;
  for (int64_t distance = 1; distance < count; distance *= 2) sum = l.op(kind, {sum, moved(sum, distance)});
  return sum;
}

bool has_lanes_behind(const Value& x, int64_t axis) {
  constexpr int64_t kLanes = 8;
  int64_t behind = 1;
  for (size_t a = static_cast<size_t>(axis) + 1; a < rank_of(x); a++)
    behind *= open_extent_of(x, static_cast<int64_t>(a)).as_constant().value_or(1);
  return behind >= kLanes;
}

// Of floats otherwise in 64 bits: what some elements in the middle come to may be beyond the range that all from the
// first one on stay in.
Values cumulated(Lowering& l, OpKind kind) {
  const ElementType type = type_of(l.input(0));
  const std::vector<int64_t> axes = l.numbers(1);
  Lowering::require(axes.size() == 1 && rank_of(l.input(0)) > 0);
  const int64_t axis = l.axis(axes[0], rank_of(l.input(0)));
  const bool reverse = l.integer("reverse", 0) != 0, exclusive = l.integer("exclusive", 0) != 0;
  constexpr int64_t kOfTriangles = 14;  // the opset that has all that the others need
  if (const auto rows = l.whole_rows(l.input(0), axis, l.opset() >= kOfTriangles)) {
    const RowFunction running{.kind = kind == OpKind::Add ? RowFunction::Kind::Sum : RowFunction::Kind::Product,
                              .axis = axis,
                              .is_reversed = reverse,
                              .is_exclusive = exclusive};
    return {l.cast({l.row_function(running, *rows), 0}, type)};
  }
  const Value x = is_floating(type) ? l.cast(l.input(0), ElementType::Float64) : l.input(0);
  const auto way = !open_extent_of(x, axis).is_constant() ? cumulated_apart
                   : has_lanes_behind(x, axis)            ? cumulated_by_blocks
                                                          : cumulated_by_doubling;
  return {l.cast(way(l, kind, x, axis, reverse, exclusive), type)};
}
Values lower_cum_sum(Lowering& l) { return cumulated(l, OpKind::Add); }
Values lower_cum_prod(Lowering& l) { return cumulated(l, OpKind::Mul); }

// Of integers that open extents say; where they are numbers it has a row.
Values lower_range(Lowering& l) {
  const Value start = l.input(0);
  const std::vector<Index> first = l.indexes(0), limit = l.indexes(1);
  const std::vector<int64_t> steps = l.numbers(2);
  Lowering::require(first.size() == 1 && limit.size() == 1 && steps.size() == 1 && steps[0] != 0);
  const int64_t step = steps[0], length = std::abs(step);
  const Index distance = step > 0 ? limit[0] - first[0] : first[0] - limit[0];
  const Value places = l.range(floor_div(distance + Index(length - 1), Index(length)), 0, 1, type_of(start));
  return {l.add(l.mul(places, l.scalar(type_of(start), static_cast<double>(step))), start)};
}

Values lower_eye_like(Lowering& l) {
  const Value x = l.input(0);
  Lowering::require(rank_of(x) == 2);
  const auto type = static_cast<ElementType>(l.integer("dtype", static_cast<int64_t>(type_of(x))));
  const Value rows = l.range(open_extent_of(x, 0), 0, 2), columns = l.range(open_extent_of(x, 1), 1, 2);
  const Value diagonal = l.add(rows, l.scalar(ElementType::Int64, static_cast<double>(l.integer("k", 0))));
  return {l.cast(l.op(OpKind::Equal, {diagonal, columns}), type)};
}

Values lower_reverse_sequence(Lowering& l) {
  const Value x = l.input(0), lengths = l.cast(l.input(1), ElementType::Int64);
  Lowering::require(rank_of(x) >= 2 && rank_of(lengths) == 1);
  const int64_t batch = l.axis(l.integer("batch_axis", 1), rank_of(x)),
                time = l.axis(l.integer("time_axis", 0), rank_of(x));
  Lowering::require(batch != time);
  Shape shape(rank_of(x), Index(1));
  shape[static_cast<size_t>(batch)] = shape_of(x)[static_cast<size_t>(batch)];
  const Value length = l.reshape(lengths, shape), places = l.range(open_extent_of(x, time), time, rank_of(x));
  const Value reversed = l.sub(l.sub(length, l.scalar(ElementType::Int64, 1)), places);
  const Value place = l.where(l.op(OpKind::Less, {places, length}), reversed, places);
  return {l.elements_at(x, l.expand(place, shape_of(x)), time)};
}

double largest_number(ElementType type) {
  switch (type) {
    case ElementType::Float64: return std::numeric_limits<double>::max();
    case ElementType::Float16: return 65504;
    case ElementType::BFloat16: return 3.3895313892515355e38;
    default: return static_cast<double>(std::numeric_limits<float>::max());
  }
}
Values lower_is_inf(Lowering& l) {
  const Value x = l.input(0);
  const bool above = l.integer("detect_positive", 1) != 0, below = l.integer("detect_negative", 1) != 0;
  Lowering::require(is_floating(type_of(x)) && (above || below));
  const double most = largest_number(type_of(x));
  if (!above) return {l.op(OpKind::Less, {x, l.scalar(type_of(x), -most)})};
  return {l.op(OpKind::Greater, {below ? l.op(OpKind::Abs, {x}) : x, l.scalar(type_of(x), most)})};
}

Values lower_shrink(Lowering& l) {
  const Value x = l.input(0);
  Lowering::require(is_floating(type_of(x)));
  const double bound = l.real("lambd", 0.5), bias = l.real("bias", 0);
  const auto number = [&](double value) { return l.scalar(type_of(x), value); };
  const Value high = l.where(l.op(OpKind::Less, {number(bound), x}), l.sub(x, number(bias)), number(0));
  return {l.where(l.op(OpKind::Less, {x, number(-bound)}), l.add(x, number(bias)), high)};
}

Values lower_swish(Lowering& l) {
  const Value x = l.input(0);
  const Value scaled = l.mul(x, l.scalar(type_of(x), l.real("alpha", 1)));
  return {l.mul(x, l.op(OpKind::Sigmoid, {scaled}))};
}

Values lower_cast_like(Lowering& l) { return {l.cast(l.input(0), type_of(l.input(1)))}; }

// A condition that is known picks slices.
Values lower_compress(Lowering& l) {
  Value x = l.input(0);
  const std::vector<int64_t> condition = l.numbers(1);
  if (!l.has_attribute("axis")) {
    Index count(1);
    for (const Index& extent : shape_of(x)) count = count * extent;
    x = l.reshape(x, {count});
  }
  const int64_t axis = l.axis(l.integer("axis", 0), rank_of(x));
  std::vector<int64_t> picked;
  for (size_t i = 0; i < condition.size() && static_cast<int64_t>(i) < extent_of(x, axis); i++)
    if (condition[i] != 0) picked.push_back(static_cast<int64_t>(i));
  return {l.op(OpKind::Gather, {x, l.integers_constant(picked)}, {{"axis", Index(axis)}})};
}

// A crop, or zeros, on both sides; the odd one is at the end.
Values lower_center_crop_pad(Lowering& l) {
  const Value x = l.input(0);
  const size_t rank = rank_of(x);
  std::vector<int64_t> all(rank);
  for (size_t k = 0; k < rank; k++) all[k] = static_cast<int64_t>(k);
  const std::vector<int64_t> axes = l.integers("axes", all), wanted = l.numbers(1);
  Lowering::require(axes.size() == wanted.size());
  std::vector<Index> pads(2 * rank, Index(0));
  for (size_t k = 0; k < axes.size(); k++) {
    const int64_t axis = l.axis(axes[k], rank), more = wanted[k] - extent_of(x, axis);
    // floor(|more| / 2) at the begin, for a crop and for a border.
    const int64_t begin = more >= 0 ? more / 2 : -((-more) / 2);
    pads[static_cast<size_t>(axis)] = Index(begin);
    pads[rank + static_cast<size_t>(axis)] = Index(more - begin);
  }
  return {l.op(OpKind::Pad, {x}, {{"pads", pads}})};
}

constexpr LoweredOperator kCounting[] = {{"ArgMax", lower_arg_max},
                                         {"ArgMin", lower_arg_min},
                                         {"Hardmax", lower_hardmax},
                                         {"OneHot", lower_one_hot},
                                         {"CumSum", lower_cum_sum},
                                         {"CumProd", lower_cum_prod},
                                         {"Range", lower_range},
                                         {"EyeLike", lower_eye_like},
                                         {"ReverseSequence", lower_reverse_sequence},
                                         {"IsInf", lower_is_inf},
                                         {"Shrink", lower_shrink},
                                         {"Swish", lower_swish},
                                         {"CastLike", lower_cast_like},
                                         {"NonZero", lower_non_zero},
                                         {"Compress", lower_compress},
                                         {"CenterCropPad", lower_center_crop_pad}};

}  // namespace

std::span<const LoweredOperator> lowered_counting() { return kCounting; }

}  // namespace gopt::ir
