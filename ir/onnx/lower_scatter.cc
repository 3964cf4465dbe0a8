// Reading and writing at places that an integer tensor names: GatherND, ScatterND, ScatterElements, MaxUnpool.
// A write is said as a read: for each element of the result, which update goes there. Where the places are known that
// is a table of positions, or, where they are a box, what lies around it and the updates, one beside the other; where
// they are computed, it is ScatterAlong. By that one's definition all updates are looked
// at for each element, so that there is a limit to what is still checked.
#include <algorithm>
#include <map>
#include <optional>

#include "constant_values.h"
#include "gopt/interpreter.h"
#include "lowering.h"

namespace gopt::ir {
namespace {

constexpr int64_t kMostComparisons = int64_t{1} << 36, kMostKnownPlaces = int64_t{1} << 24;
constexpr size_t kMostRounds = 16;

int64_t count_of(const Value& x) {
  int64_t count = 1;
  for (size_t k = 0; k < rank_of(x); k++) count *= extent_of(x, static_cast<int64_t>(k));
  return count;
}
int64_t product(const Value& x, size_t begin, size_t end) {
  int64_t count = 1;
  for (size_t k = begin; k < end; k++) count *= extent_of(x, static_cast<int64_t>(k));
  return count;
}

// Places below zero count from the end.
Value wrapped(Lowering& l, const Value& indices, const Value& extents) {
  const Value zero = l.scalar(ElementType::Int64, 0);
  return l.where(l.op(OpKind::Less, {indices, zero}), l.add(indices, extents), indices);
}

// The last axis of `indices`, positions along the axes of x from `first` on, as one position along all of these.
Value flat_places(Lowering& l, const Value& x, size_t first, const Value& indices) {
  const size_t rank = rank_of(indices), last = rank - 1;
  const int64_t named = extent_of(indices, static_cast<int64_t>(last));
  Lowering::require(named >= 1 && first + static_cast<size_t>(named) <= rank_of(x));
  std::vector<double> extents, strides(static_cast<size_t>(named), 1);
  for (int64_t k = 0; k < named; k++)
    extents.push_back(static_cast<double>(extent_of(x, static_cast<int64_t>(first) + k)));
  for (auto k = static_cast<size_t>(named) - 1; k-- > 0;) strides[k] = strides[k + 1] * extents[k + 1];
  const auto axis = static_cast<int64_t>(last);
  const Value wide = l.cast(indices, ElementType::Int64);
  const Value places = wrapped(l, wide, l.along(extents, axis, rank, ElementType::Int64));
  return l.reduce(OpKind::ReduceSum, l.mul(places, l.along(strides, axis, rank, ElementType::Int64)), {Index(axis)},
                  false);
}

// An extent as a number of the graph.
Value counted(Lowering& l, const Index& extent) {
  const Value one = l.scalar(ElementType::Int64, 1);
  if (extent.is_constant()) return l.scalar(ElementType::Int64, static_cast<double>(extent.constant()));
  return l.reduce(OpKind::ReduceSum, l.expand(one, {extent}), {Index(0)}, false);
}

// flat_places() of axes from the first on, of any extents.
Value open_flat_places(Lowering& l, const Value& x, const Value& indices) {
  const auto last = static_cast<int64_t>(rank_of(indices)) - 1, named = extent_of(indices, last);
  Lowering::require(named >= 1 && static_cast<size_t>(named) <= rank_of(x));
  const Value wide = l.cast(indices, ElementType::Int64);
  Value flat, stride = l.scalar(ElementType::Int64, 1);
  for (int64_t k = named; k-- > 0;) {
    const Value extent = counted(l, shape_of(x)[static_cast<size_t>(k)]);
    const Value own = l.op(OpKind::Squeeze, {l.slice(wide, last, k, k + 1)}, {{"axes", std::vector<Index>{last}}});
    const Value places = l.mul(wrapped(l, own, extent), stride);
    flat = flat ? l.add(flat, places) : places;
    stride = l.mul(stride, extent);
  }
  return flat;
}

// Without axes that indices and x share: rows of x, one after another.
Values gather_rows(Lowering& l, const Value& x, const Value& indices) {
  const size_t named = static_cast<size_t>(extent_of(indices, static_cast<int64_t>(rank_of(indices)) - 1));
  const Value flat = open_flat_places(l, x, indices);
  Index places(1);
  Shape rows;
  for (size_t k = 0; k < named; k++) places = places * shape_of(x)[k];
  rows.push_back(places);
  rows.insert(rows.end(), shape_of(x).begin() + static_cast<ptrdiff_t>(named), shape_of(x).end());
  return {l.op(OpKind::Gather, {l.reshape(x, rows), flat}, {{"axis", Index(0)}})};
}

Values lower_gather_nd(Lowering& l) {
  const Value x = l.input(0), indices = l.input(1);
  const auto batch = static_cast<size_t>(l.integer("batch_dims", 0));
  if (batch == 0 && rank_of(indices) >= 1 && !(x.type().has_static_shape() && indices.type().has_static_shape()))
    return gather_rows(l, x, indices);
  Lowering::require(rank_of(indices) >= 1 && batch < rank_of(indices) && batch < rank_of(x));
  const auto named = static_cast<size_t>(extent_of(indices, static_cast<int64_t>(rank_of(indices)) - 1));
  const int64_t batches = product(x, 0, batch), places = product(x, batch, batch + named);
  Value flat = flat_places(l, x, batch, indices);
  Shape shape = shape_of(flat);
  if (batch > 0) {  // each image's own
    flat = l.reshape(flat, {Index(batches), Index(count_of(flat) / std::max<int64_t>(batches, 1))});
    std::vector<double> begins;
    for (int64_t b = 0; b < batches; b++) begins.push_back(static_cast<double>(b * places));
    flat = l.add(flat, l.along(begins, 0, 2, ElementType::Int64));
    flat = l.reshape(flat, shape);
  }
  Shape rows{Index(batches * places)};
  for (size_t k = batch + named; k < rank_of(x); k++) {
    rows.push_back(shape_of(x)[k]);
    shape.push_back(shape_of(x)[k]);
  }
  return {l.reshape(l.op(OpKind::Gather, {l.reshape(x, rows), flat}, {{"axis", Index(0)}}), shape)};
}

// ---- scattering ----

std::string reduction_of(Lowering& l) {
  const std::string name = l.text("reduction", "none");
  Lowering::require(name == "none" || name == "add" || name == "mul" || name == "max" || name == "min");
  return name;
}
Value combined(Lowering& l, const std::string& reduction, const Value& a, const Value& b) {
  if (reduction == "none") return b;
  if (reduction == "add") return l.add(a, b);
  if (reduction == "mul") return l.mul(a, b);
  return l.op(reduction == "max" ? OpKind::Max : OpKind::Min, {a, b});
}

// Rows of updates [m, ...] written to rows of x [n, ...] at known places, in rounds in each of which no place comes
// twice. Without a reduction the last one stays.
Value scattered_at(Lowering& l, Value x, const std::vector<int64_t>& places, const Value& updates,
                   const std::string& reduction) {
  const int64_t rows = extent_of(x, 0);
  Lowering::require(rows <= kMostKnownPlaces);
  std::vector<std::vector<int64_t>> rounds;  // by row: the update that goes there, or none
  std::map<int64_t, size_t> times;
  for (size_t m = 0; m < places.size(); m++) {
    Lowering::require(places[m] >= -rows && places[m] < rows);
    const int64_t place = places[m] < 0 ? places[m] + rows : places[m];
    const size_t round = reduction == "none" ? 0 : times[place]++;
    Lowering::require(round < kMostRounds);
    if (round == rounds.size()) rounds.emplace_back(static_cast<size_t>(rows), -1);
    rounds[round][static_cast<size_t>(place)] = static_cast<int64_t>(m);
  }
  for (const std::vector<int64_t>& round : rounds) {
    std::vector<int64_t> picked;
    std::vector<double> written;
    for (const int64_t m : round) {
      picked.push_back(std::max<int64_t>(m, 0));
      written.push_back(m >= 0 ? 1 : 0);
    }
    const Value fresh = l.op(OpKind::Gather, {updates, l.integers_constant(picked)}, {{"axis", Index(0)}});
    x = l.where(l.along(written, 0, rank_of(x), ElementType::Bool), combined(l, reduction, x, fresh), x);
  }
  return x;
}

// What was expanded behind the axis, and before it or not: one place stands for all there.
Value unexpanded(const Value& places, int64_t axis) {
  if (!places.node->is(OpKind::Expand)) return places;
  const Value& source = places.node->inputs[0];
  if (rank_of(source) != rank_of(places) || extent_of(source, axis) != extent_of(places, axis)) return places;
  bool is_one_before = true, is_same_before = true;
  for (size_t k = 0; k < rank_of(source); k++) {
    const auto at = static_cast<int64_t>(k);
    if (at > axis && extent_of(source, at) != 1) return places;
    if (at >= axis) continue;
    is_one_before = is_one_before && extent_of(source, at) == 1;
    is_same_before = is_same_before && extent_of(source, at) == extent_of(places, at);
  }
  return is_one_before || is_same_before ? source : places;
}

// The same along an axis with places that are computed: of the updates' extents, or 1 beside the axis.
Value scattered_by(Lowering& l, const Value& x, const Value& places, const Value& updates, int64_t axis,
                   const std::string& reduction) {
  Lowering::require(count_of(x) * extent_of(updates, axis) <= kMostComparisons);
  const Value wide = wrapped(l, l.cast(unexpanded(places, axis), ElementType::Int64),
                             l.scalar(ElementType::Int64, static_cast<double>(extent_of(x, axis))));
  return l.op(OpKind::ScatterAlong, {x, wide, updates}, {{"axis", Index(axis)}, {"reduction", reduction}});
}

// Whether some place comes so often that a round for each time would be too many.
bool comes_often(const std::vector<int64_t>& given, int64_t count) {
  const size_t named = given.size() / static_cast<size_t>(count);
  std::map<std::vector<int64_t>, size_t> times;
  for (size_t m = 0; m < static_cast<size_t>(count); m++) {
    const auto first = given.begin() + static_cast<ptrdiff_t>(m * named);
    if (++times[{first, first + static_cast<ptrdiff_t>(named)}] > kMostRounds / 2) return true;  // also from the end
  }
  return false;
}

// The elements of indices that depend on no input, whether or not they were folded: those of a slice of a large tensor
// are many. Nothing: they are computed.
std::optional<std::vector<int64_t>> known_places(const Value& indices) {
  if (count_of(indices) > kMostKnownPlaces || !is_of_constants(indices)) return std::nullopt;
  if (indices.node->is(OpKind::Constant)) return indices.node->tensor.to_ints();
  const Result<Tensor> tensor = evaluate_constant(indices);
  if (!tensor) return std::nullopt;
  return tensor->to_ints();
}

// Begins and counts along the axes that places name.
struct Box {
  std::vector<int64_t> begins, counts;
};

// All places of a box, in order, each once; nothing where `given` is anything else. They may count from the end.
std::optional<Box> as_box(const Value& x, const std::vector<int64_t>& given, size_t named) {
  const size_t count = given.size() / named;
  Box box;
  size_t of_box = 1;
  for (size_t k = 0; k < named; k++) {
    const int64_t extent = extent_of(x, static_cast<int64_t>(k)), first = given[k],
                  last = given[given.size() - named + k];
    box.begins.push_back(first < 0 ? first + extent : first);
    box.counts.push_back(last - first + 1);
    if (box.counts[k] < 1 || box.begins[k] < 0 || box.begins[k] + box.counts[k] > extent) return std::nullopt;
    of_box *= static_cast<size_t>(box.counts[k]);
  }
  if (of_box != count) return std::nullopt;
  for (size_t m = 0; m < count; m++) {
    size_t left = m;
    for (size_t k = named; k-- > 0;) {
      const auto own = static_cast<size_t>(box.counts[k]);
      if (given[m * named + k] != given[k] + static_cast<int64_t>(left % own)) return std::nullopt;
      left /= own;
    }
  }
  return box;
}

// Updates in a box of x, what lies around them beside them.
Value written_in_box(Lowering& l, const Value& x, const Box& box, const Value& updates, const std::string& reduction) {
  const size_t named = box.begins.size();
  Shape shape(box.counts.begin(), box.counts.end());
  shape.insert(shape.end(), shape_of(x).begin() + static_cast<ptrdiff_t>(named), shape_of(x).end());
  Values slabs{x};  // of x: from the box along so many axes
  for (size_t k = 0; k < named; k++)
    slabs.push_back(l.slice(slabs[k], static_cast<int64_t>(k), box.begins[k], box.begins[k] + box.counts[k]));
  Value result = combined(l, reduction, slabs[named], l.reshape(updates, shape));
  for (size_t k = named; k-- > 0;) {
    const auto axis = static_cast<int64_t>(k);
    const int64_t end = box.begins[k] + box.counts[k], extent = extent_of(x, axis);
    Values parts;
    if (box.begins[k] > 0) parts.push_back(l.slice(slabs[k], axis, 0, box.begins[k]));
    parts.push_back(result);
    if (end < extent) parts.push_back(l.slice(slabs[k], axis, end, extent));
    if (parts.size() > 1) result = l.concat(parts, axis);
  }
  return result;
}

Values lower_scatter_nd(Lowering& l) {
  const Value x = l.input(0), indices = l.input(1), updates = l.input(2);
  Lowering::require(rank_of(indices) >= 1);
  const auto named = static_cast<size_t>(extent_of(indices, static_cast<int64_t>(rank_of(indices)) - 1));
  Lowering::require(named <= rank_of(x));
  const std::string reduction = reduction_of(l);
  const int64_t rows = product(x, 0, named), size = product(x, named, rank_of(x)),
                count = product(indices, 0, rank_of(indices) - 1);
  Shape written(shape_of(indices).begin(), shape_of(indices).end() - 1);
  written.insert(written.end(), shape_of(x).begin() + static_cast<ptrdiff_t>(named), shape_of(x).end());
  Lowering::require(shape_of(updates) == written);
  if (count == 0 || rows * size == 0) return {x};
  const std::optional<std::vector<int64_t>> given = known_places(indices);
  if (given && named > 0)
    if (const std::optional<Box> box = as_box(x, *given, named))
      return {written_in_box(l, x, *box, updates, reduction)};
  const Value flat_x = l.reshape(x, {Index(rows), Index(size)}),
              flat_updates = l.reshape(updates, {Index(count), Index(size)});
  Value result;
  if (given && (reduction == "none" || !comes_often(*given, count))) {
    std::vector<int64_t> places;
    for (size_t m = 0; m < static_cast<size_t>(count); m++) {
      int64_t place = 0;
      for (size_t k = 0; k < named; k++) {
        const int64_t extent = extent_of(x, static_cast<int64_t>(k)), at = (*given)[m * named + k];
        Lowering::require(at >= -extent && at < extent);
        place = place * extent + (at < 0 ? at + extent : at);
      }
      places.push_back(place);
    }
    result = scattered_at(l, flat_x, places, flat_updates, reduction);
  } else {
    const Value places = l.reshape(flat_places(l, x, 0, indices), {Index(count), Index(1)});
    result = scattered_by(l, flat_x, places, flat_updates, 0, reduction);
  }
  return {l.reshape(result, shape_of(x))};
}

// What of x lies beyond the updates along other axes stays.
Values lower_scatter_elements(Lowering& l) {
  const Value x = l.input(0), places = l.input(1), updates = l.input(2);
  const size_t rank = rank_of(x);
  Lowering::require(rank >= 1 && rank_of(places) == rank && shape_of(places) == shape_of(updates));
  const std::string reduction = reduction_of(l);
  if (count_of(updates) == 0) return {x};
  const int64_t axis = l.axis(l.integer("axis", 0), rank);
  Value part = x;
  std::vector<Index> pads(2 * rank, Index(0));
  bool is_smaller = false;
  for (size_t k = 0; k < rank; k++) {
    const auto at = static_cast<int64_t>(k);
    const int64_t more = at == axis ? 0 : extent_of(x, at) - extent_of(updates, at);
    Lowering::require(more >= 0);
    if (more == 0) continue;
    is_smaller = true;
    part = l.slice(part, at, 0, extent_of(updates, at));
    pads[rank + k] = Index(more);
  }
  const Value result = scattered_by(l, part, places, updates, axis, reduction);
  if (!is_smaller) return {result};
  const auto all = [&](bool inside, const Shape& shape) {
    return l.expand(l.scalar(ElementType::Int32, inside ? 1 : 0), shape);
  };
  const Value inside = l.op(OpKind::Pad, {all(true, shape_of(part))}, {{"pads", pads}});
  const Value one = l.scalar(ElementType::Int32, 1);
  return {l.where(l.op(OpKind::Equal, {inside, one}), l.op(OpKind::Pad, {result}, {{"pads", pads}}), x)};
}

// Rows written along an axis from a place of each image's own on; in a ring, what leaves at the end comes in at the
// begin.
Values lower_tensor_scatter(Lowering& l) {
  const Value x = l.input(0), update = l.input(1);
  const size_t rank = rank_of(x);
  const int64_t axis = l.axis(l.integer("axis", -2), rank);
  Lowering::require(rank >= 2 && axis > 0 && rank_of(update) == rank);
  const int64_t count = extent_of(update, axis), extent = extent_of(x, axis);
  const std::string mode = l.text("mode", "linear");
  Lowering::require((mode == "linear" || mode == "circular") && count > 0 && count <= extent);
  const auto number = [&](int64_t value) { return l.scalar(ElementType::Int64, static_cast<double>(value)); };
  Value place = l.range(extent, axis, rank);
  if (l.has(2)) {
    Shape each(rank, Index(1));
    each[0] = shape_of(x)[0];
    place = l.sub(place, l.reshape(l.cast(l.input(2), ElementType::Int64), each));
    if (mode == "circular") place = l.op(OpKind::Mod, {place, number(extent)});
  }
  const Value inside =
      l.op(OpKind::And, {l.op(OpKind::Less, {number(-1), place}), l.op(OpKind::Less, {place, number(count)})});
  const Value fresh = l.elements_at(update, l.expand(l.where(inside, place, number(0)), shape_of(x)), axis);
  return {l.where(inside, fresh, x)};
}

Values lower_max_unpool(Lowering& l) {
  const Value x = l.input(0), indices = l.input(1);
  const std::vector<int64_t> kernel = l.integers("kernel_shape", {});
  const size_t spatial = kernel.size(), rank = rank_of(x);
  Lowering::require(spatial > 0 && rank == spatial + 2);
  const std::vector<int64_t> strides = l.integers("strides", std::vector<int64_t>(spatial, 1)),
                             pads = l.integers("pads", std::vector<int64_t>(2 * spatial, 0));
  std::vector<int64_t> extents{extent_of(x, 0), extent_of(x, 1)};
  for (size_t k = 0; k < spatial; k++)
    extents.push_back((extent_of(x, static_cast<int64_t>(k) + 2) - 1) * strides.at(k) + kernel[k] - pads.at(k) -
                      pads.at(spatial + k));
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  const Value zeros = l.expand(l.scalar(type_of(x), 0), {Index(count)});
  const Value flat =
      scattered_by(l, zeros, l.reshape(indices, {Index(count_of(x))}), l.reshape(x, {Index(count_of(x))}), 0, "none");
  // ONNX counts positions in the shape that the attributes give, ONNX Runtime in the one that is asked for.
  Lowering::require(!l.has(2) || l.numbers(2) == extents);
  return {l.reshape(flat, Shape(extents.begin(), extents.end()))};
}

constexpr LoweredOperator kScatter[] = {{"GatherND", lower_gather_nd},
                                        {"ScatterND", lower_scatter_nd},
                                        {"ScatterElements", lower_scatter_elements},
                                        {"Scatter", lower_scatter_elements},
                                        {"TensorScatter", lower_tensor_scatter},
                                        {"MaxUnpool", lower_max_unpool}};

}  // namespace

std::span<const LoweredOperator> lowered_scatter() { return kScatter; }

}  // namespace gopt::ir
