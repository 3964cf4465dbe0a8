// What is largest and where: TopK, places of MaxPool; and further results of operators that have a row: masks of
// Dropout, statistics of BatchNormalization.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gopt/row_function.h"
#include "lowering.h"

namespace gopt::ir {
namespace {

// ---- TopK ----

constexpr int64_t kMostComparisons = int64_t{1} << 31;  // of any code of ours

struct Selection {
  Value values, places;
};

// Each element's rank is the number of those before it in the order wanted; the first of equal ones comes first, and a
// NaN is above all numbers.
Selection ranked(Lowering& l, const Value& x, int64_t axis, int64_t k, bool largest) {
  const size_t rank = rank_of(x);
  const int64_t n = extent_of(x, axis);
  int64_t others = 1;
  for (size_t a = 0; a < rank; a++)
    if (static_cast<int64_t>(a) != axis) others *= open_extent_of(x, static_cast<int64_t>(a)).as_constant().value_or(1);
  Lowering::require(n == 0 || others * n <= kMostComparisons / n);
  const Value is_nan = is_floating(type_of(x)) && l.opset() >= 9 ? l.op(OpKind::IsNaN, {x}) : Value();
  struct Side {
    Value value, is_nan;  // the latter of floats
  };
  const auto apart = [&](int64_t at) { return Side{l.unsqueeze(x, at), is_nan ? l.unsqueeze(is_nan, at) : Value()}; };
  const Side rows = apart(axis + 1), columns = apart(axis);  // [.., n, 1, ..] and [.., 1, n, ..]
  const auto comes_after = [&](Side a, Side b) {
    if (!largest) std::swap(a, b);
    const Value less = l.op(OpKind::Less, {a.value, b.value});
    if (!is_nan) return less;
    return l.op(OpKind::Or, {less, l.op(OpKind::And, {b.is_nan, l.op(OpKind::Not, {a.is_nan})})});
  };
  // Counted in 32 bits: twice as many at a time.
  constexpr ElementType kCount = ElementType::Int32;
  const Value earlier =
      l.op(OpKind::Less, {l.range(n, axis + 1, rank + 1, kCount), l.range(n, axis, rank + 1, kCount)});
  const Value is_after = comes_after(columns, rows);
  const Value comes_before =
      l.op(OpKind::Or, {comes_after(rows, columns), l.op(OpKind::And, {l.op(OpKind::Not, {is_after}), earlier})});
  const Value ranks = l.reduce(OpKind::ReduceSum, l.cast(comes_before, kCount), {Index(axis + 1)}, false);
  const Value wanted = l.range(k, axis, rank + 1, kCount);
  const Value here = l.op(OpKind::Equal, {l.unsqueeze(ranks, axis), wanted});  // [.., k, n, ..]
  const Value candidates = l.range(n, axis + 1, rank + 1), zero = l.scalar(ElementType::Int64, 0);
  const Value places = l.reduce(OpKind::ReduceSum, l.where(here, candidates, zero), {Index(axis + 1)}, false);
  return {l.elements_at(x, places, axis), places};
}

// Of rows that are read whole.
Selection taken_whole(Lowering& l, const Value& rows, int64_t axis, const Index& k, bool largest) {
  const auto last = static_cast<int64_t>(rank_of(rows)) - 1;
  std::vector<int64_t> axes(rank_of(rows));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[static_cast<size_t>(axis)], axes.back());
  const NodePtr top = l.row_function({.kind = RowFunction::Kind::Top, .axis = last, .is_largest = largest},
                                     axis == last ? rows : l.transpose(rows, axes), k);
  if (axis == last) return {{top, 0}, {top, 1}};
  return {l.transpose({top, 0}, axes), l.transpose({top, 1}, axes)};
}

Values lower_top_k(Lowering& l) {
  const Value x = l.input(0);
  Lowering::require(rank_of(x) > 0);
  const int64_t axis = l.axis(l.integer("axis", -1), rank_of(x));
  const Index &n = open_extent_of(x, axis), k = l.opset() < 10 ? Index(l.integer("k", 0)) : l.indexes(1).at(0);
  Lowering::require(!k.is_constant() || (k.constant() >= 0 && k.constant() <= n.as_constant().value_or(k.constant())));
  if (k == Index(0)) {
    Shape none = shape_of(x);
    none[static_cast<size_t>(axis)] = Index(0);
    return {l.slice(x, axis, 0, 0), l.expand(l.scalar(ElementType::Int64, 0), none)};
  }
  const bool largest = l.integer("largest", 1) != 0;
  if (const auto rows = l.whole_rows(x, axis)) {
    const Selection whole = taken_whole(l, *rows, axis, k, largest);
    return {l.cast(whole.values, type_of(x)), whole.places};
  }
  Lowering::require(k.is_constant());
  const Selection all = ranked(l, x, axis, k.constant(), largest);
  return {all.values, all.places};
}

// ---- places of MaxPool ----

struct PoolWindow {
  std::vector<int64_t> kernel, strides, dilations, begins;  // by spatial axis
};
PoolWindow window_of(Lowering& l, const Value& x, const Value& y) {
  PoolWindow w{l.integers("kernel_shape", {}), {}, {}, {}};
  const size_t axes = w.kernel.size();
  Lowering::require(axes > 0 && rank_of(x) == axes + 2);
  w.strides = l.integers("strides", std::vector<int64_t>(axes, 1));
  w.dilations = l.integers("dilations", std::vector<int64_t>(axes, 1));
  const std::vector<int64_t> pads = l.integers("pads", std::vector<int64_t>(2 * axes, 0));
  const std::string automatic = l.text("auto_pad", "NOTSET");
  for (size_t k = 0; k < axes; k++) {
    const auto axis = static_cast<int64_t>(k) + 2;
    const int64_t reach = (w.kernel[k] - 1) * w.dilations.at(k) + 1;
    const int64_t needed =
        std::max<int64_t>(0, (extent_of(y, axis) - 1) * w.strides.at(k) + reach - extent_of(x, axis));
    w.begins.push_back(automatic == "NOTSET"       ? pads.at(k)
                       : automatic == "SAME_LOWER" ? (needed + 1) / 2
                       : automatic == "SAME_UPPER" ? needed / 2
                                                   : 0);
  }
  return w;
}

// x with as much around it as windows reach; nothing of it is larger than a number.
Value bordered(Lowering& l, const Value& x, const Value& y, const PoolWindow& w) {
  std::vector<Index> pads(2 * rank_of(x), Index(0));
  for (size_t k = 0; k < w.kernel.size(); k++) {
    const auto axis = static_cast<int64_t>(k) + 2;
    const int64_t reach = (extent_of(y, axis) - 1) * w.strides[k] + (w.kernel[k] - 1) * w.dilations[k] + 1;
    pads[k + 2] = Index(w.begins[k]);
    pads[rank_of(x) + k + 2] = Index(reach - w.begins[k] - extent_of(x, axis));
  }
  return l.op(OpKind::Pad, {x}, {{"pads", pads}, {"value", -INFINITY}});
}

// Of equal elements the first. Positions count over the whole tensor, an image's rows or (storage_order) columns first.
Value places_of_largest(Lowering& l, const Value& x, const Value& y, const PoolWindow& w, bool columns_first) {
  const size_t axes = w.kernel.size(), rank = rank_of(x);
  std::vector<int64_t> steps(axes, 1);
  int64_t image = 1, elements = 1;
  for (size_t k = 0; k < axes; k++) {
    const size_t at = columns_first ? k : axes - 1 - k;
    steps[at] = image;
    image *= extent_of(x, static_cast<int64_t>(at) + 2);
    elements *= w.kernel[k];
  }
  Lowering::require(elements <= 256);
  const Value wide = bordered(l, x, y, w);
  Value place = l.scalar(ElementType::Int64, 0);
  for (int64_t element = elements; element-- > 0;) {
    Value part = wide;
    int64_t rest = element, distance = 0;
    for (size_t k = axes; k-- > 0;) {
      const int64_t at = rest % w.kernel[k] * w.dilations[k];
      const auto axis = static_cast<int64_t>(k) + 2;
      rest /= w.kernel[k];
      distance += at * steps[k];
      part = l.slice(part, axis, at, at + (extent_of(y, axis) - 1) * w.strides[k] + 1, w.strides[k]);
    }
    place = l.where(l.op(OpKind::Less, {part, y}), place, l.scalar(ElementType::Int64, static_cast<double>(distance)));
  }
  for (size_t k = 0; k < axes; k++) {
    std::vector<double> begins;
    for (int64_t i = 0; i < extent_of(y, static_cast<int64_t>(k) + 2); i++)
      begins.push_back(static_cast<double>((i * w.strides[k] - w.begins[k]) * steps[k]));
    place = l.add(place, l.along(begins, static_cast<int64_t>(k) + 2, rank, ElementType::Int64));
  }
  const int64_t channels = extent_of(x, 1), images = extent_of(x, 0) * channels;
  Shape shape(rank, Index(1));
  shape[0] = Index(extent_of(x, 0));
  shape[1] = Index(channels);
  const Value first = l.mul(l.range(images, 0, 1), l.scalar(ElementType::Int64, static_cast<double>(image)));
  return l.add(place, l.reshape(first, shape));
}

Values lower_max_pool(Lowering& l) {
  const Value x = l.input(0);
  Lowering::require(is_floating(type_of(x)));
  Attributes attributes{{"auto_pad", l.text("auto_pad", "NOTSET")}, {"ceil_mode", Index(l.integer("ceil_mode", 0))}};
  for (const char* name : {"dilations", "kernel_shape", "pads", "strides"}) {
    const std::vector<int64_t> list = l.integers(name, {});
    if (!list.empty()) attributes[name] = std::vector<Index>(list.begin(), list.end());
  }
  const Value y = l.op(OpKind::MaxPool, {x}, attributes);
  const bool columns_first = l.integer("storage_order", 0) != 0;
  return {y, l.output_used(1) ? places_of_largest(l, x, y, window_of(l, x, y), columns_first) : Value{}};
}

// ---- further results ----

// Without training, or where nothing is dropped, all is kept.
Values lower_dropout(Lowering& l) {
  const Value x = l.input(0);
  Lowering::require(l.opset() >= 7);
  const bool trains = l.opset() >= 12 && l.has(2) && l.numbers(2).at(0) != 0;
  Lowering::require(!trains || (l.has(1) && l.reals(1).at(0) == 0));
  const ElementType type = l.opset() >= 10 ? ElementType::Bool : type_of(x);
  return {x, l.expand(l.scalar(type, 1), shape_of(x))};
}

// Mean and variance of the batch, and running ones.
Values lower_batch_normalization(Lowering& l) {
  const Value x = l.input(0);
  const size_t rank = rank_of(x);
  Lowering::require(l.integer("training_mode", 0) != 0 && rank >= 2 && is_floating(type_of(x)));
  std::vector<Index> axes;
  Shape shape(rank, Index(1));
  shape[1] = shape_of(x)[1];
  for (size_t k = 0; k < rank; k++)
    if (k != 1) axes.emplace_back(static_cast<int64_t>(k));
  const auto number = [&](double value) { return l.scalar(type_of(x), value); };
  const Value mean = l.reduce(OpKind::ReduceMean, x, axes), centered = l.sub(x, mean);
  const Value variance = l.reduce(OpKind::ReduceMean, l.mul(centered, centered), axes);
  const Value deviation = l.op(OpKind::Sqrt, {l.add(variance, number(l.real("epsilon", 1e-5)))});
  const Value scaled = l.mul(l.div(centered, deviation), l.reshape(l.input(1), shape));
  const double momentum = l.real("momentum", 0.9);
  const auto running = [&](size_t i, const Value& fresh) {
    return l.add(l.mul(l.input(i), number(momentum)), l.mul(l.reshape(fresh, {shape[1]}), number(1 - momentum)));
  };
  return {l.add(scaled, l.reshape(l.input(2), shape)), running(3, mean), running(4, variance)};
}

constexpr LoweredOperator kSelection[] = {{"TopK", lower_top_k},
                                          {"MaxPool", lower_max_pool},
                                          {"Dropout", lower_dropout},
                                          {"BatchNormalization", lower_batch_normalization}};

}  // namespace

std::span<const LoweredOperator> lowered_selection() { return kSelection; }

}  // namespace gopt::ir
