// Data movement: each output element is an input element, or a constant.
#include <algorithm>
#include <climits>
#include <limits>

#include "context.h"

namespace gopt::ir {

Index product(const Shape& shape, size_t begin, size_t end) {
  Index p(1);
  for (size_t k = begin; k < end; k++) p = p * shape[k];
  return p;
}

Index block_of(const Index& subscript, const Index& extent) {
  return extent == Index(0) ? Index(0) : floor_div(subscript, extent);
}
Index place_in_block(const Index& subscript, const Index& extent) {
  return extent == Index(0) ? Index(0) : modulo(subscript, extent);
}

void define_Concat(DefineContext& c) {
  std::vector<TensorExpr> parts;
  for (size_t k = 0; k < c.input_count(); k++) parts.push_back(c.input(k));
  Shape shape = parts[0].shape;
  const size_t axis = c.axis("axis", shape.size());
  std::vector<Index> starts{Index(0)};
  for (const TensorExpr& t : parts) {
    if (t.element != parts[0].element) c.fail("element types differ");
    if (t.shape.size() != shape.size()) c.fail("ranks differ");
    for (size_t k = 0; k < shape.size(); k++)
      if (k != axis) c.require(equal(t.shape[k], shape[k]), "extents beside the axis are equal");
    starts.push_back(starts.back() + t.shape[axis]);
  }
  shape[axis] = starts.back();
  c.output(parts[0].element, shape, [=](const std::vector<Index>& i) {
    Expr value;
    for (size_t k = parts.size(); k-- > 0;) {
      std::vector<Index> own = i;
      own[axis] = i[axis] - starts[k];
      const Expr part = parts[k].at(own);
      value = value ? select(less(i[axis], starts[k + 1]), part, value) : part;
    }
    return value;
  });
}

void define_Split(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const size_t axis = c.axis("axis", x.shape.size());
  const Index extent = x.shape[axis];
  std::vector<Index> sizes;
  if (c.has("split")) {
    sizes = c.integers("split");
    Index sum(0);
    for (const Index& size : sizes) {
      c.require(at_least(size, Index(0)), "parts are not negative");
      sum += size;
    }
    c.require(equal(sum, extent), "parts, together " + to_string(sum) + ", fill the axis, " + to_string(extent));
  } else {
    const int64_t count = c.has("num_outputs") ? c.number("num_outputs") : c.output_count();
    if (count < 1) c.fail("the number of outputs is positive");
    if (count != c.output_count())
      c.fail("num_outputs is " + std::to_string(count) + ", it has " + std::to_string(c.output_count()) + " outputs");
    if (c.has("num_outputs") && extent.is_constant()) {
      const int64_t part = ceil_div(extent, Index(count)).constant();
      for (int64_t k = 0; k < count; k++)
        sizes.emplace_back(std::clamp(extent.constant() - k * part, int64_t{0}, part));
    } else if (c.has("num_outputs")) {
      const Index part = ceil_div(extent, Index(count)), last = extent - part * Index(count - 1);
      c.require(at_least(last, Index(0)), "the last part, " + to_string(last) + ", is not negative");
      sizes.assign(static_cast<size_t>(count - 1), part);
      sizes.push_back(last);
    } else {
      const Index part = floor_div(extent, Index(count));
      c.require(equal(part * Index(count), extent), "the axis is a multiple of the number of outputs");
      sizes.assign(static_cast<size_t>(count), part);
    }
  }
  Index start(0);
  for (const Index& size : sizes) {
    Shape shape = x.shape;
    shape[axis] = size;
    c.output(x.element, shape, [=](const std::vector<Index>& i) {
      std::vector<Index> s = i;
      s[axis] = i[axis] + start;
      return x.at(s);
    });
    start += size;
  }
}

namespace {

// In words, for the requirement that a range of symbols makes.
std::string range_text(const Index& extent, const Index& start, const Index& end) {
  return "the range " + to_string(start) + " to " + to_string(end) + " lies within the axis of extent " +
         to_string(extent) + ", where a place counted from the end is written " + to_string(extent) + " - k";
}

// From `start` down to, and without, `end`.
SliceRange resolve_backward_slice(DefineContext& c, const Index& extent, const Index& start, const Index& end,
                                  int64_t step) {
  auto is_below = [](const Index& index, int64_t limit) { return index.is_constant() && index.constant() < limit; };
  Index from = start, to = end;
  if (from.is_constant() && from.constant() >= INT_MAX) from = extent - Index(1);
  if (is_below(from, 0)) from = extent + from;
  if (is_below(to, -INT_MAX)) {
    to = Index(-1);
  } else if (is_below(to, 0)) {
    to = extent + to;
  }
  // A symbol that is negative would count from the end.
  const Index lowest(end.is_constant() ? -1 : 0);
  c.require(at_least(to, lowest) && at_least(from, to) && less(from, extent), range_text(extent, start, end));
  if (!start.is_constant()) c.require(at_least(from, Index(0)), "the range begins within the axis");
  return {from, ceil_div(from - to, Index(-step)), step};
}

}  // namespace

SliceRange resolve_slice(DefineContext& c, const Index& extent, const Index& start, const Index& end, int64_t step) {
  if (step == 0) c.fail("a step is 0");
  step = std::max(step, -std::numeric_limits<int64_t>::max());  // its negative is a number
  if (extent.is_constant() && start.is_constant() && end.is_constant()) {
    const int64_t n = extent.constant();
    auto clamp = [n](int64_t v, int64_t low, int64_t high) { return std::clamp(v < 0 ? v + n : v, low, high); };
    const int64_t from = step > 0 ? clamp(start.constant(), 0, n) : clamp(start.constant(), 0, n - 1);
    const int64_t raw_end = end.constant() < INT_MIN ? INT_MIN : end.constant();
    const int64_t to = step > 0 ? clamp(raw_end, 0, n) : clamp(raw_end, -1, n - 1);
    const int64_t span = step > 0 ? to - from : from - to, stride = step > 0 ? step : -step;
    return {Index(from), Index(span > 0 ? (span - 1) / stride + 1 : 0), step};
  }
  if (step < 0) return resolve_backward_slice(c, extent, start, end, step);
  Index from = start, to = end;
  if (to.is_constant() && to.constant() >= INT_MAX) to = extent;
  if (to.is_constant() && to.constant() < 0) to = extent + to;
  if (from.is_constant() && from.constant() < 0) from = extent + from;
  c.require(at_least(from, Index(0)) && at_least(to, from) && at_least(extent, to), range_text(extent, start, end));
  return {from, ceil_div(to - from, Index(step)), step};
}

void define_Slice(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const std::vector<Index> starts = c.integers("starts");
  const std::vector<Index> ends = c.integers_or("ends", starts);
  std::vector<Index> axes(starts.size()), steps(starts.size(), Index(1));
  for (size_t k = 0; k < axes.size(); k++) axes[k] = Index(static_cast<int64_t>(k));
  axes = c.integers_or("axes", axes);
  steps = c.integers_or("steps", steps);
  std::vector<SliceRange> ranges;
  for (const Index& extent : x.shape) ranges.push_back({Index(0), extent, 1});
  std::vector<bool> seen(x.shape.size(), false);
  for (size_t k = 0; k < axes.size(); k++) {
    const size_t axis = c.normalize_axis(axes[k], x.shape.size());
    if (seen[axis]) c.fail("axis " + std::to_string(axis) + " is given twice");
    seen[axis] = true;
    if (!steps[k].is_constant()) c.fail("steps must be numbers");
    ranges[axis] = resolve_slice(c, x.shape[axis], starts[k], ends[k], steps[k].constant());
  }
  Shape shape;
  for (const SliceRange& r : ranges) shape.push_back(r.extent);
  c.output(x.element, shape, [=](const std::vector<Index>& i) {
    std::vector<Index> s;
    for (size_t k = 0; k < i.size(); k++) s.push_back(ranges[k].start + i[k] * Index(ranges[k].step));
    return x.at(s);
  });
}

void define_Transpose(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const size_t rank = x.shape.size();
  std::vector<Index> reversed;
  for (size_t k = rank; k-- > 0;) reversed.emplace_back(static_cast<int64_t>(k));
  const std::vector<Index> perm = c.integers_or("perm", reversed);
  std::vector<size_t> from;
  std::vector<bool> seen(rank, false);
  for (const Index& p : perm) {
    from.push_back(c.normalize_axis(p, rank));
    if (seen[from.back()]) c.fail("perm is not a permutation");
    seen[from.back()] = true;
  }
  Shape shape;
  for (size_t f : from) shape.push_back(x.shape[f]);
  c.output(x.element, shape, [=](const std::vector<Index>& i) {
    std::vector<Index> s(rank);
    for (size_t k = 0; k < rank; k++) s[from[k]] = i[k];
    return x.at(s);
  });
}

// ---- reshape ----

std::vector<Index> reshape_subscripts(const Shape& from, const Shape& to, const std::vector<Index>& i) {
  std::vector<Index> s;
  size_t a = 0, b = 0;  // axes of `from` and `to` that are done
  while (a < from.size() || b < to.size()) {
    // The smallest next groups of axes with one product: a product axis and its factors stay together, the rest apart.
    size_t a_end = a, b_end = b;
    bool found = false;
    for (size_t sum = 1; !found && sum <= from.size() - a + to.size() - b; sum++) {
      for (size_t x = 0; x <= sum && !found; x++) {
        if (a + x > from.size() || b + sum - x > to.size()) continue;
        if (product(from, a, a + x) != product(to, b, b + sum - x)) continue;
        a_end = a + x;
        b_end = b + sum - x;
        found = true;
      }
    }
    if (!found) a_end = from.size(), b_end = to.size();
    Index position(0);
    for (size_t k = b; k < b_end; k++) position = position * to[k] + (to[k] == Index(1) ? Index(0) : i[k]);
    // Division by inner extents from the right; what is left is the outermost subscript.
    std::vector<Index> group(a_end - a);
    for (size_t k = a_end; k-- > a;) {
      if (k == a) {
        group[0] = position;
      } else {
        group[k - a] = place_in_block(position, from[k]);
        position = block_of(position, from[k]);
      }
    }
    s.insert(s.end(), group.begin(), group.end());
    a = a_end;
    b = b_end;
  }
  return s;
}

Shape resolve_reshape(DefineContext& c, const Shape& from, const std::vector<Index>& wanted, bool allow_zero) {
  Shape shape = wanted;
  std::optional<size_t> open;
  for (size_t k = 0; k < shape.size(); k++) {
    if (shape[k] == Index(0) && !allow_zero) {
      if (k >= from.size()) c.fail("shape has 0 at axis " + std::to_string(k) + ", which the input lacks");
      shape[k] = from[k];
    } else if (shape[k] == Index(-1)) {
      if (open) c.fail("shape has -1 twice");
      open = k;
    } else if (shape[k].is_constant() && shape[k].constant() < 0) {
      c.fail("shape has a negative extent");
    }
  }
  const Index total = product(from, 0, from.size());
  if (open) {
    shape[*open] = Index(1);
    const Index rest = product(shape, 0, shape.size());
    if (rest == Index(0)) c.fail("-1 cannot be inferred beside an extent of 0");
    shape[*open] = floor_div(total, rest);
  }
  c.require(
      equal(product(shape, 0, shape.size()), total),
      "elements before, " + to_string(total) + ", are those after, " + to_string(product(shape, 0, shape.size())));
  return shape;
}

namespace {

void reshape(DefineContext& c, Shape shape) {
  const TensorExpr x = c.input(0);
  c.output(x.element, shape,
           [x, shape](const std::vector<Index>& i) { return x.at(reshape_subscripts(x.shape, shape, i)); });
}

}  // namespace

void define_Reshape(DefineContext& c) {
  reshape(c, resolve_reshape(c, c.input(0).shape, c.integers("shape"), c.number("allowzero") != 0));
}
void define_Flatten(DefineContext& c) {
  const Shape& from = c.input(0).shape;
  const size_t axis = c.axis("axis", from.size(), true);
  reshape(c, {product(from, 0, axis), product(from, axis, from.size())});
}
void define_Squeeze(DefineContext& c) {
  const Shape& from = c.input(0).shape;
  std::vector<bool> drop(from.size(), false);
  if (c.has("axes")) {
    for (const Index& a : c.integers("axes")) {
      const size_t axis = c.normalize_axis(a, from.size());
      c.require(equal(from[axis], Index(1)), "the squeezed extent is 1");
      drop[axis] = true;
    }
  } else {
    for (size_t k = 0; k < from.size(); k++) {
      if (!from[k].is_constant()) c.fail("squeezing every axis of extent 1 needs static extents");
      drop[k] = from[k] == Index(1);
    }
  }
  Shape shape;
  for (size_t k = 0; k < from.size(); k++)
    if (!drop[k]) shape.push_back(from[k]);
  reshape(c, shape);
}
void define_Unsqueeze(DefineContext& c) {
  const Shape& from = c.input(0).shape;
  const std::vector<Index> axes = c.integers("axes");
  const size_t rank = from.size() + axes.size();
  std::vector<bool> inserted(rank, false);
  for (const Index& a : axes) {
    const size_t axis = c.normalize_axis(a, rank);
    if (inserted[axis]) c.fail("axis " + std::to_string(axis) + " is given twice");
    inserted[axis] = true;
  }
  Shape shape;
  size_t own = 0;
  for (bool one : inserted) shape.push_back(one ? Index(1) : from[own++]);
  reshape(c, shape);
}

void define_Expand(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const Shape wanted = c.integers("shape");
  for (const Index& e : wanted)
    if (e.is_constant() && e.constant() < 0) c.fail("shape has a negative extent");
  c.output(x.element, broadcast_shapes(c, {&x.shape, &wanted}),
           [x](const std::vector<Index>& i) { return broadcast_at(x, i); });
}

namespace {

// x, each axis of which is `repeats` times as long; `place(subscript, extent, times)` is where an axis is read.
template <class Place>
void define_repeats(DefineContext& c, int64_t fewest, const char* demand, Place place) {
  const TensorExpr x = c.input(0);
  const std::vector<Index> repeats = c.integers("repeats");
  if (repeats.size() != x.shape.size()) c.fail("repeats has an entry an axis");
  Shape shape;
  for (size_t k = 0; k < repeats.size(); k++) {
    c.require(at_least(repeats[k], Index(fewest)), demand);
    shape.push_back(x.shape[k] * repeats[k]);
  }
  c.output(x.element, shape, [x, repeats, place](const std::vector<Index>& i) {
    std::vector<Index> s;
    for (size_t k = 0; k < i.size(); k++)
      s.push_back(repeats[k] == Index(1) ? i[k] : place(i[k], x.shape[k], repeats[k]));
    return x.at(s);
  });
}

}  // namespace

void define_Tile(DefineContext& c) {
  define_repeats(c, 0, "repeats are not negative", [](const Index& i, const Index& extent, const Index&) {
    return extent == Index(1) ? Index(0) : place_in_block(i, extent);
  });
}
void define_Repeat(DefineContext& c) {
  define_repeats(c, 1, "repeats are positive",
                 [](const Index& i, const Index&, const Index& times) { return floor_div(i, times); });
}

// ---- pad ----

namespace {

struct PadAxis {
  size_t axis;
  Index begin, end;
};

// How much of an axis a border of negative width takes.
Index cut_by(const Index& width) {
  return width.is_constant() && width.constant() < 0 ? Index(-width.constant()) : Index(0);
}
Index left_of(const Index& extent, const PadAxis& p) { return extent - cut_by(p.begin) - cut_by(p.end); }

// The element of x at subscripts s, where axes from `k` on may still lie in the border.
Expr padded_at(const TensorExpr& x, const std::vector<PadAxis>& axes, const std::string& mode, const Expr& fill,
               std::vector<Index> s, size_t k) {
  if (k == axes.size()) return x.at(s);
  const PadAxis& p = axes[k];
  const Index position = s[p.axis] - p.begin, extent = x.shape[p.axis];
  auto with = [&](const Index& subscript) {
    std::vector<Index> t = s;
    t[p.axis] = subscript;
    return padded_at(x, axes, mode, fill, t, k + 1);
  };
  if (mode == "wrap") {  // what is left repeats
    const Index first = cut_by(p.begin);
    return with(first + modulo(position - first, left_of(extent, p)));
  }
  const bool low = p.begin != Index(0), high = p.end != Index(0);
  if (mode == "constant") {
    Cond inside;
    if (low) inside = inside && at_least(position, Index(0));
    if (high) inside = inside && less(position, extent);
    return select(inside, with(position), fill);
  }
  const bool reflect = mode == "reflect";
  Expr value = with(position);
  if (high)
    value = select(less(position, extent), value,
                   with(reflect ? extent * Index(2) - Index(2) - position : extent - Index(1)));
  if (low) value = select(at_least(position, Index(0)), value, with(reflect ? -position : Index(0)));
  return value;
}

}  // namespace

void define_Pad(DefineContext& c) {
  const TensorExpr x = c.input(0);
  const std::string mode = c.text("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    c.fail("mode \"" + mode + "\" is not known");
  std::vector<Index> axes;
  for (size_t k = 0; k < x.shape.size(); k++) axes.emplace_back(static_cast<int64_t>(k));
  if (c.has("axes")) axes = c.integers("axes");
  const std::vector<Index> pads = c.integers("pads");
  if (pads.size() != 2 * axes.size()) c.fail("pads has two entries an axis");
  std::vector<PadAxis> padded;
  Shape shape = x.shape;
  std::vector<bool> seen(x.shape.size(), false);
  for (size_t k = 0; k < axes.size(); k++) {
    const PadAxis p{c.normalize_axis(axes[k], x.shape.size()), pads[k], pads[axes.size() + k]};
    if (seen[p.axis]) c.fail("axis " + std::to_string(p.axis) + " is given twice");
    seen[p.axis] = true;
    const Index& extent = x.shape[p.axis];
    shape[p.axis] = extent + p.begin + p.end;
    c.require(at_least(shape[p.axis], Index(0)), "negative pads leave something");
    if (p.begin == Index(0) && p.end == Index(0)) continue;
    if (mode == "reflect")
      c.require(less(p.begin, extent) && less(p.end, extent), "reflected borders are smaller than the axis");
    if (mode == "edge") c.require(at_least(extent, Index(1)), "the axis is not empty");
    if (mode == "wrap")
      c.require(at_least(left_of(extent, p), Index(1)) || equal(shape[p.axis], Index(0)), "the axis is not empty");
    padded.push_back(p);
  }
  std::sort(padded.begin(), padded.end(), [](const PadAxis& a, const PadAxis& b) { return a.axis < b.axis; });
  const Expr fill = c.real("value");
  c.output(x.element, shape, [=](const std::vector<Index>& i) { return padded_at(x, padded, mode, fill, i, 0); });
}

// ---- blocks ----

void define_DepthToSpace(DefineContext& c) {
  const TensorExpr x = c.input(0);
  if (x.shape.size() != 4) c.fail("x has four axes");
  const Index b = c.integer("blocksize");
  const std::string mode = c.text("mode");
  if (mode != "DCR" && mode != "CRD") c.fail("mode \"" + mode + "\" is not known");
  c.require(at_least(b, Index(1)), "blocksize is positive");
  const Index channels = floor_div(x.shape[1], b * b);
  c.require(equal(channels * b * b, x.shape[1]), "channels are a multiple of blocksize squared");
  c.output(x.element, {x.shape[0], channels, x.shape[2] * b, x.shape[3] * b}, [=](const std::vector<Index>& i) {
    const Index block = modulo(i[2], b) * b + modulo(i[3], b);
    const Index channel = mode == "DCR" ? block * channels + i[1] : i[1] * b * b + block;
    return x.at({i[0], channel, floor_div(i[2], b), floor_div(i[3], b)});
  });
}
void define_SpaceToDepth(DefineContext& c) {
  const TensorExpr x = c.input(0);
  if (x.shape.size() != 4) c.fail("x has four axes");
  const Index b = c.integer("blocksize"), channels = x.shape[1];
  c.require(at_least(b, Index(1)), "blocksize is positive");
  const Index h = floor_div(x.shape[2], b), w = floor_div(x.shape[3], b);
  c.require(equal(h * b, x.shape[2]) && equal(w * b, x.shape[3]), "spatial extents are multiples of blocksize");
  c.output(x.element, {x.shape[0], channels * b * b, h, w}, [=](const std::vector<Index>& i) {
    const Index block = block_of(i[1], channels);
    return x.at({i[0], place_in_block(i[1], channels), i[2] * b + floor_div(block, b), i[3] * b + modulo(block, b)});
  });
}

// ---- gather ----

namespace {

// x with subscript `axis` given by an integer tensor; negative values count from the end.
Expr gathered(const TensorExpr& x, size_t axis, std::vector<Index> s, const Index& position) {
  auto at = [&](const Index& subscript) {
    s[axis] = subscript;
    return x.at(s);
  };
  if (position.is_constant()) return at(position.constant() < 0 ? position + x.shape[axis] : position);
  return select(at_least(position, Index(0)), at(position), at(position + x.shape[axis]));
}

// Indices that are a small constant are known where the operator is defined.
constexpr int64_t kMaxKnownIndices = 64;
std::vector<Index> known_indices(const TensorExpr& indices) {
  std::vector<Index> known;
  const int64_t most = indices.plain_input < 0 ? kMaxKnownIndices : 1;  // more are read where they can be
  if (!indices.data || indices.data->count() > most) return known;
  for (int64_t k = 0; k < indices.data->count(); k++)
    known.emplace_back(load_int(indices.data->bytes().data(), indices.element, k));
  return known;
}

// x at the one of the known indices that stands at `place` of their row-major order.
Expr gathered_at_known(const TensorExpr& x, size_t axis, const std::vector<Index>& s, const std::vector<Index>& known,
                       const Index& place) {
  Expr value;
  for (size_t k = known.size(); k-- > 0;) {
    const Expr own = gathered(x, axis, s, known[k]);
    value = value ? select(less(place, Index(static_cast<int64_t>(k) + 1)), own, value) : own;
  }
  return value;
}

// Whether the expression only moves integers of inputs, so that what it says can stand as an index.
bool moves_inputs(const Expr& e) {
  if (e->kind == ExprKind::Select) return moves_inputs(e->args[0]) && moves_inputs(e->args[1]);
  return e->kind == ExprKind::Read;
}
bool moves_inputs(const TensorExpr& indices) {
  std::vector<Index> subscripts;
  for (size_t k = 0; k < indices.shape.size(); k++) subscripts.push_back(symbol("%at" + std::to_string(k)));
  return moves_inputs(indices.at(subscripts));
}

// x at the index that is read; where one of two is, by place, at that one.
Expr gathered_at_read(const TensorExpr& x, size_t axis, const std::vector<Index>& s, const Expr& index) {
  if (index->kind == ExprKind::Select)
    return select(index->cond, gathered_at_read(x, axis, s, index->args[0]),
                  gathered_at_read(x, axis, s, index->args[1]));
  return gathered(x, axis, s, load_index(index->input, index->subscripts));
}

}  // namespace

void define_Gather(DefineContext& c) {
  const TensorExpr x = c.input(0), indices = c.input(1);
  if (x.shape.empty()) c.fail("x has no axis");
  if (!is_integer(indices.element)) c.fail("indices are integers");
  const size_t axis = c.axis("axis", x.shape.size()), rank = indices.shape.size();
  Shape shape(x.shape.begin(), x.shape.begin() + static_cast<ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), x.shape.begin() + static_cast<ptrdiff_t>(axis) + 1, x.shape.end());
  const std::vector<Index> known = known_indices(indices);
  if (known.empty() && !moves_inputs(indices))
    c.fail("the indices must be elements of inputs, moved at most, or few constants");
  // Of a number of elements that is known, who reads beyond it says so.
  if (indices.plain_input < 0 || !x.shape[axis].is_constant())
    for (const Index& position : known)
      c.require(position.constant() < 0 ? at_least(x.shape[axis] + position, Index(0)) : less(position, x.shape[axis]),
                "index " + to_string(position) + " lies within the axis");
  c.output(x.element, shape, [=](const std::vector<Index>& i) {
    const auto begin = i.begin() + static_cast<ptrdiff_t>(axis);
    const std::vector<Index> at_indices(begin, begin + static_cast<ptrdiff_t>(rank));
    std::vector<Index> s(i.begin(), begin);
    s.emplace_back(0);
    s.insert(s.end(), begin + static_cast<ptrdiff_t>(rank), i.end());
    if (known.empty()) return gathered_at_read(x, axis, s, indices.at(at_indices));
    Index place(0);
    for (size_t k = 0; k < rank; k++) place = place * indices.shape[k] + at_indices[k];
    return gathered_at_known(x, axis, s, known, place);
  });
}

void define_GatherElements(DefineContext& c) {
  const TensorExpr x = c.input(0), indices = c.input(1);
  if (x.shape.empty() || indices.shape.size() != x.shape.size()) c.fail("x and indices have one rank, at least one");
  if (!is_integer(indices.element)) c.fail("indices are integers");
  if (!moves_inputs(indices)) c.fail("the indices must be elements of inputs, moved at most");
  const size_t axis = c.axis("axis", x.shape.size());
  for (size_t k = 0; k < x.shape.size(); k++)
    if (k != axis) c.require(at_least(x.shape[k], indices.shape[k]), "indices are no larger than x beside the axis");
  c.output(x.element, indices.shape,
           [=](const std::vector<Index>& i) { return gathered_at_read(x, axis, i, indices.at(i)); });
}

void define_Trilu(DefineContext& c) {
  const TensorExpr x = c.input(0);
  if (x.shape.size() < 2) c.fail("x has at least two axes");
  const Index k = c.integer("k");
  const bool upper = c.number("upper") != 0;
  c.output(x.element, x.shape, [=](const std::vector<Index>& i) {
    const Index diagonal = i[i.size() - 2] + k, column = i.back();
    return select(upper ? at_least(column, diagonal) : at_least(diagonal, column), x.at(i), constant(0));
  });
}

}  // namespace gopt::ir
