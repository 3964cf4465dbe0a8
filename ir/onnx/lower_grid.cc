// Images sampled at places that are computed: GridSample over any number of axes, and the grids of AffineGrid.
#include <algorithm>
#include <cmath>

#include "lowering.h"

namespace gopt::ir {
namespace {

class GridSampler {
 public:
  GridSampler(Lowering& l, const Value& x, const Value& grid) : l_(l), x_(x), grid_(grid), axes_(rank_of(x) - 2) {
    align_corners_ = l.integer("align_corners", 0) != 0;
    padding_ = l.text("padding_mode", "zeros");
    mode_ = l.text("mode", l.opset() >= 20 ? "linear" : "bilinear");
    if (mode_ == "bilinear") mode_ = "linear";
    if (mode_ == "bicubic") mode_ = "cubic";
    Lowering::require(mode_ == "linear" || mode_ == "nearest" || mode_ == "cubic");
    Lowering::require(padding_ == "zeros" || padding_ == "border" || padding_ == "reflection");
  }

  Value run() {
    Index places(1), elements(1);
    Shape shape{shape_of(x_)[0], shape_of(x_)[1]};
    for (size_t d = 0; d < axes_; d++) {
      places = places * shape_of(grid_)[1 + d];
      elements = elements * Index(extent(d));
      shape.push_back(shape_of(grid_)[1 + d]);
      Lowering::require(extent(d) > 0);
    }
    flat_x_ = l_.reshape(x_, {shape_of(x_)[0], shape_of(x_)[1], elements});
    taps_shape_ = {shape_of(x_)[0], shape_of(x_)[1], places};
    const Value flat_grid = l_.reshape(grid_, {shape_of(grid_)[0], places, Index(static_cast<int64_t>(axes_))});
    for (size_t d = 0; d < axes_; d++) {
      // The last axis of x comes first in the grid.
      const auto from = static_cast<int64_t>(axes_ - 1 - d);
      const Value given = l_.reshape(l_.slice(flat_grid, 2, from, from + 1), {shape_of(grid_)[0], places});
      add_taps(d, l_.cast(given, type_of(x_)));
    }
    return l_.reshape(sum_over_taps(0, {}, {}, {}), shape);
  }

 private:
  // Along one axis: a place, whether it is inside (null: always), and its weight (null: 1).
  struct Tap {
    Value place, inside, weight;
  };

  int64_t extent(size_t d) const { return extent_of(x_, static_cast<int64_t>(d) + 2); }
  Value number(double value) { return l_.scalar(type_of(x_), value); }
  Value floor(const Value& v) { return l_.op(OpKind::Floor, {v}); }
  Value clamped(const Value& v, double low, double high) {
    return l_.op(OpKind::Clip, {v}, {{"min", low}, {"max", high}});
  }
  double low() const { return align_corners_ ? 0 : -0.5; }
  double high(size_t d) const { return static_cast<double>(extent(d)) - (align_corners_ ? 1 : 0.5); }

  // Mirrored at both ends as often as it takes: |(v - low) mod 2 range|, counted back from its second half.
  Value reflected(const Value& v, size_t d) {
    const double range = high(d) - low();
    if (range == 0) return l_.mul(v, number(0));
    const Value moved = l_.sub(v, number(low()));
    const Value turns = floor(l_.div(moved, number(2 * range)));
    const Value rest = l_.sub(moved, l_.mul(turns, number(2 * range)));
    return l_.add(l_.op(OpKind::Min, {rest, l_.sub(number(2 * range), rest)}), number(low()));
  }

  void add_taps(size_t d, const Value& given) {
    const auto size = static_cast<double>(extent(d));
    const Value one_up = l_.add(given, number(1));
    Value place =
        align_corners_ ? l_.mul(one_up, number((size - 1) / 2)) : l_.sub(l_.mul(one_up, number(size / 2)), number(0.5));
    if (mode_ == "nearest") place = l_.op(OpKind::Round, {place});
    // Of cubic ones each tap is moved to the border, as ONNX Runtime and PyTorch do, not the place between them.
    if (padding_ == "border" && mode_ != "cubic") place = clamped(place, 0, size - 1);
    if (padding_ == "reflection") place = reflected(place, d);
    std::vector<Tap>& taps = taps_.emplace_back();
    if (mode_ == "nearest") return taps.push_back(tap(place, {}, d));
    const Value below = floor(place), part = l_.sub(place, below);
    if (mode_ == "linear") {
      taps.push_back(tap(below, l_.sub(number(1), part), d));
      taps.push_back(tap(l_.add(below, number(1)), part, d));
      return;
    }
    for (int k = -1; k <= 2; k++)
      taps.push_back(
          tap(l_.add(below, number(k)), cubic(l_.op(OpKind::Abs, {l_.sub(part, number(k))}), k == 0 || k == 1), d));
  }

  Value cubic(const Value& t, bool near) {
    const double a = -0.75;
    const auto times = [&](const Value& v, double by) { return l_.mul(v, number(by)); };
    if (near) {
      const Value inner = l_.sub(times(t, a + 2), number(a + 3));
      return l_.add(l_.mul(l_.mul(inner, t), t), number(1));
    }
    const Value inner = l_.add(l_.mul(l_.sub(times(t, a), number(5 * a)), t), number(8 * a));
    return l_.sub(l_.mul(inner, t), number(4 * a));
  }

  Tap tap(const Value& place, const Value& weight, size_t d) {
    const double last = static_cast<double>(extent(d)) - 1;
    Tap t{clamped(padding_ == "reflection" ? reflected(place, d) : place, 0, last), {}, weight};
    if (padding_ == "zeros") {
      const Value outside =
          l_.op(OpKind::Or, {l_.op(OpKind::Less, {place, number(0)}), l_.op(OpKind::Less, {number(last), place})});
      t.inside = l_.op(OpKind::Not, {outside});
    }
    t.place = l_.cast(t.place, ElementType::Int64);
    return t;
  }

  Value sum_over_taps(size_t d, const Value& place, const Value& inside, const Value& weight) {
    if (d == axes_) return sampled(place, inside, weight);
    Value sum;
    for (const Tap& t : taps_[d]) {
      const Value here =
          place ? l_.add(l_.mul(place, l_.scalar(ElementType::Int64, static_cast<double>(extent(d)))), t.place)
                : t.place;
      const Value both = inside && t.inside ? l_.op(OpKind::And, {inside, t.inside}) : t.inside;
      const Value product = weight && t.weight ? l_.mul(weight, t.weight) : t.weight;
      const Value part = sum_over_taps(d + 1, here, both, product);
      sum = sum ? l_.add(sum, part) : part;
    }
    return sum;
  }
  // All channels at the same places.
  Value sampled(const Value& place, const Value& inside, const Value& weight) {
    const Value everywhere = l_.expand(l_.unsqueeze(place, 1), taps_shape_);
    Value value = l_.op(OpKind::GatherElements, {flat_x_, everywhere}, {{"axis", Index(2)}});
    if (inside) value = l_.where(l_.unsqueeze(inside, 1), value, number(0));
    return weight ? l_.mul(value, l_.unsqueeze(weight, 1)) : value;
  }

  Lowering& l_;
  Value x_, grid_, flat_x_;
  size_t axes_;
  bool align_corners_ = false;
  std::string padding_, mode_;
  std::vector<std::vector<Tap>> taps_;
  Shape taps_shape_;
};

Values lower_grid_sample(Lowering& l) {
  const Value x = l.input(0), grid = l.input(1);
  Lowering::require(rank_of(x) >= 3 && rank_of(grid) == rank_of(x) && is_floating(type_of(x)) &&
                    is_floating(type_of(grid)));
  Lowering::require(extent_of(grid, static_cast<int64_t>(rank_of(grid)) - 1) == static_cast<int64_t>(rank_of(x)) - 2);
  return {GridSampler(l, x, grid).run()};
}

// Places of the result, from -1 to 1 along each axis, the last axis first, then 1.
Values lower_affine_grid(Lowering& l) {
  const Value theta = l.input(0);
  const std::vector<int64_t> size = l.numbers(1);
  Lowering::require((size.size() == 4 || size.size() == 5) && rank_of(theta) == 3);
  const size_t axes = size.size() - 2;
  const bool align_corners = l.integer("align_corners", 0) != 0;
  int64_t count = 1;
  for (size_t d = 0; d < axes; d++) count *= size[2 + d];
  std::vector<double> places;
  for (int64_t i = 0; i < count; i++) {
    int64_t rest = i;
    for (size_t d = axes; d-- > 0;) {
      const auto extent = static_cast<double>(size[2 + d]), at = static_cast<double>(rest % size[2 + d]);
      rest /= size[2 + d];
      places.push_back(!align_corners ? (2 * at + 1) / extent - 1 : extent == 1 ? -1 : 2 * at / (extent - 1) - 1);
    }
    places.push_back(1);
  }
  const auto columns = static_cast<int64_t>(axes);
  const Value base = l.constant(Tensor::from_values(type_of(theta), {count, columns + 1}, places));
  Shape shape{Index(size[0])};
  for (size_t d = 0; d < axes; d++) shape.emplace_back(size[2 + d]);
  shape.emplace_back(columns);
  return {l.reshape(l.op(OpKind::MatMul, {base, l.transpose(theta, {0, 2, 1})}), shape)};
}

constexpr LoweredOperator kGrids[] = {{"GridSample", lower_grid_sample}, {"AffineGrid", lower_affine_grid}};

}  // namespace

std::span<const LoweredOperator> lowered_grids() { return kGrids; }

}  // namespace gopt::ir
