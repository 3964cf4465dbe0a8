// Resize and Upsample: along each axis in turn, a weighted sum of elements at places that are known.
#include <algorithm>
#include <array>
#include <cmath>

#include "lowering.h"

namespace gopt::ir {
namespace {

// One axis: how each place of the result is made of places of x.
struct AxisSampling {
  int64_t axis = 0, extent = 0, result = 0;
  float scale = 1;
  float roi_begin = 0, roi_end = 1;
};
struct ResizeForm {
  std::string mode, coordinates, nearest;
  double cubic_coefficient = -0.75, extrapolation = 0;
  bool exclude_outside = false, antialias = false;
};

// In single precision, as runtimes compute it: where a place is halfway between two, they round alike.
float original_place(const AxisSampling& s, const std::string& transformation, int64_t i) {
  const auto place = static_cast<float>(i), extent = static_cast<float>(s.extent);
  const auto result = static_cast<float>(s.result);
  if (transformation == "half_pixel") return (place + 0.5F) / s.scale - 0.5F;
  if (transformation == "pytorch_half_pixel") return s.result > 1 ? (place + 0.5F) / s.scale - 0.5F : 0.0F;
  if (transformation == "asymmetric") return place / s.scale;
  if (transformation == "tf_half_pixel_for_nn") return (place + 0.5F) / s.scale;
  if (transformation == "align_corners") return s.result == 1 ? 0.0F : place * (extent - 1) / (result - 1);
  if (transformation == "half_pixel_symmetric") {
    const float adjustment = result / (s.scale * extent), center = extent / 2;
    return center * (1 - adjustment) + (place + 0.5F) / s.scale - 0.5F;
  }
  Lowering::require(transformation == "tf_crop_and_resize");
  if (s.result == 1) return 0.5F * (s.roi_begin + s.roi_end) * (extent - 1);
  return s.roi_begin * (extent - 1) + place * (s.roi_end - s.roi_begin) * (extent - 1) / (result - 1);
}

int64_t nearest_place(float place, const std::string& how) {
  const float below = std::floor(place);
  const bool is_half = place - below == 0.5F;
  if (how == "floor") return static_cast<int64_t>(below);
  if (how == "ceil") return static_cast<int64_t>(std::ceil(place));
  if (how == "round_prefer_floor") return static_cast<int64_t>(is_half ? below : std::round(place));
  Lowering::require(how == "round_prefer_ceil");
  return static_cast<int64_t>(is_half ? below + 1 : std::round(place));
}

// Places and weights of taps, each a list along the result's axis.
struct Taps {
  std::vector<std::vector<int64_t>> places;
  std::vector<std::vector<double>> weights;
};

double cubic_weight(double distance, double a) {
  const double d = std::fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

Taps taps_of(const AxisSampling& s, const ResizeForm& form) {
  Taps taps;
  const int64_t count = form.mode == "nearest" ? 1 : form.mode == "linear" ? 2 : 4;
  taps.places.resize(static_cast<size_t>(count));
  taps.weights.resize(static_cast<size_t>(count));
  for (int64_t i = 0; i < s.result; i++) {
    const float place = original_place(s, form.coordinates, i);
    const auto below = static_cast<int64_t>(std::floor(place));
    const double part = static_cast<double>(place) - static_cast<double>(below);
    std::array<double, 4> weights{1, 0, 0, 0};
    std::array<int64_t, 4> places{};
    double together = 0;
    for (int64_t t = 0; t < count; t++) {
      const auto k = static_cast<size_t>(t);
      places[k] = count == 1 ? nearest_place(place, form.nearest) : below + t - (count == 4 ? 1 : 0);
      const double distance = part - static_cast<double>(places[k] - below);
      if (count == 2) weights[k] = 1 - std::fabs(distance);
      if (count == 4) weights[k] = cubic_weight(distance, form.cubic_coefficient);
      if (count == 4 && form.exclude_outside && (places[k] < 0 || places[k] >= s.extent)) weights[k] = 0;
      together += weights[k];
    }
    for (size_t k = 0; k < static_cast<size_t>(count); k++) {
      taps.places[k].push_back(std::clamp<int64_t>(places[k], 0, s.extent - 1));
      taps.weights[k].push_back(form.exclude_outside && count == 4 ? weights[k] / together : weights[k]);
    }
  }
  return taps;
}

// x at known places along the axis: a slice or a repetition where they are one, which needs no table of places.
Value at_places(Lowering& l, const Value& x, int64_t axis, const std::vector<int64_t>& places) {
  const auto count = static_cast<int64_t>(places.size());
  const int64_t extent = extent_of(x, axis), step = count > 1 ? places[1] - places[0] : 1;
  const auto all = [&](auto expected) {
    for (int64_t i = 0; i < count; i++)
      if (places[static_cast<size_t>(i)] != expected(i)) return false;
    return true;
  };
  if (count == extent && all([](int64_t i) { return i; })) return x;
  if (step > 0 && all([&](int64_t i) { return places[0] + i * step; }))
    return l.slice(x, axis, places[0], places.back() + 1, step);
  const int64_t times = count / extent;
  if (times > 0 && count % extent == 0 && all([times](int64_t i) { return i / times; })) {
    std::vector<Index> repeats(rank_of(x), Index(1));
    repeats[static_cast<size_t>(axis)] = Index(times);
    return l.op(OpKind::Repeat, {x}, {{"repeats", repeats}});
  }
  return l.op(OpKind::Gather, {x, l.integers_constant(places)}, {{"axis", Index(axis)}});
}

// Downwards, weights are spread over as many places as the scale takes together: a product with a matrix.
std::vector<double> antialias_matrix(const AxisSampling& s, const ResizeForm& form) {
  const double scale = std::min(1.0, static_cast<double>(s.scale)), reach = (form.mode == "linear" ? 1 : 2) / scale;
  std::vector<double> matrix(static_cast<size_t>(s.result * s.extent), 0);
  for (int64_t i = 0; i < s.result; i++) {
    const auto center = static_cast<double>(original_place(s, form.coordinates, i));
    double together = 0;
    std::vector<std::pair<int64_t, double>> row;
    for (auto k = static_cast<int64_t>(std::ceil(center - reach)); static_cast<double>(k) <= center + reach; k++) {
      const double distance = (static_cast<double>(k) - center) * scale;
      double weight = form.mode == "linear" ? std::max(0.0, 1 - std::fabs(distance))
                                            : cubic_weight(distance, form.cubic_coefficient);
      if (form.exclude_outside && (k < 0 || k >= s.extent)) weight = 0;
      row.emplace_back(std::clamp<int64_t>(k, 0, s.extent - 1), weight);
      together += weight;
    }
    for (const auto& [k, weight] : row) matrix[static_cast<size_t>(i * s.extent + k)] += weight / together;
  }
  return matrix;
}
Value multiplied_along(Lowering& l, const Value& x, const AxisSampling& s, const std::vector<double>& matrix) {
  const Value weights = l.constant(Tensor::from_values(type_of(x), {s.result, s.extent}, matrix));
  const size_t rank = rank_of(x);
  std::vector<int64_t> perm;
  for (size_t k = 0; k < rank; k++) perm.push_back(static_cast<int64_t>(k));
  std::swap(perm[static_cast<size_t>(s.axis)], perm.back());  // its own inverse
  const Value last = l.transpose(x, perm);
  return l.transpose(l.op(OpKind::MatMul, {last, l.transpose(weights, {1, 0})}), perm);
}

Value resized_along(Lowering& l, Value x, const AxisSampling& s, const ResizeForm& form) {
  if (form.antialias && form.mode != "nearest") return multiplied_along(l, x, s, antialias_matrix(s, form));
  const Taps taps = taps_of(s, form);
  if (taps.places.size() == 1) return at_places(l, x, s.axis, taps.places[0]);
  Value sum;
  for (size_t k = 0; k < taps.places.size(); k++) {
    const Value part =
        l.mul(at_places(l, x, s.axis, taps.places[k]), l.along(taps.weights[k], s.axis, rank_of(x), type_of(x)));
    sum = sum ? l.add(sum, part) : part;
  }
  return sum;
}

// Where a place outside of x is asked for, tf_crop_and_resize gives one value.
Value extrapolated(Lowering& l, const Value& y, const std::vector<AxisSampling>& axes, const ResizeForm& form) {
  Value result = y;
  for (const AxisSampling& s : axes) {
    std::vector<double> inside;
    for (int64_t i = 0; i < s.result; i++) {
      const float place = original_place(s, form.coordinates, i);
      inside.push_back(place >= 0 && place <= static_cast<float>(s.extent - 1) ? 1 : 0);
    }
    result = l.where(l.along(inside, s.axis, rank_of(y), ElementType::Bool), result,
                     l.scalar(type_of(y), form.extrapolation));
  }
  return result;
}

Value resized(Lowering& l, const Value& x, const std::vector<AxisSampling>& axes, const ResizeForm& form) {
  Lowering::require(form.mode == "nearest" || is_floating(type_of(x)));
  Value y = x;
  const bool crops = form.coordinates == "tf_crop_and_resize";
  for (const AxisSampling& s : axes) {
    Lowering::require(s.extent > 0 && s.result > 0);
    // Of a result whose extent was rounded down, ONNX's tests align other corners than runtimes do.
    const bool is_rounded = static_cast<float>(s.extent) * s.scale - static_cast<float>(s.result) > 1e-3F;
    Lowering::require(form.coordinates != "align_corners" || !is_rounded);
    if (s.result != s.extent || s.scale != 1 || crops) y = resized_along(l, y, s, form);
  }
  return crops ? extrapolated(l, y, axes, form) : y;
}

int64_t scaled_extent(int64_t extent, float scale) {
  const double result = std::floor(static_cast<double>(static_cast<float>(extent) * scale));
  Lowering::require(scale > 0 && result < 9e15);
  return static_cast<int64_t>(result);
}

std::vector<AxisSampling> by_scales(const Value& x, const std::vector<int64_t>& axes,
                                    const std::vector<double>& scales) {
  Lowering::require(scales.size() == axes.size());
  std::vector<AxisSampling> all;
  for (size_t k = 0; k < axes.size(); k++) {
    if (scales[k] == 1) continue;  // such an axis may be symbolic
    const int64_t extent = extent_of(x, axes[k]);
    const auto scale = static_cast<float>(scales[k]);
    all.push_back({axes[k], extent, scaled_extent(extent, scale), scale});
  }
  return all;
}

std::vector<AxisSampling> by_sizes(Lowering& l, const Value& x, const std::vector<int64_t>& axes,
                                   const std::string& policy) {
  const std::vector<int64_t> sizes = l.numbers(3);
  Lowering::require(sizes.size() == axes.size());
  std::vector<AxisSampling> all;
  for (size_t k = 0; k < axes.size(); k++) {
    const int64_t extent = extent_of(x, axes[k]);
    Lowering::require(extent > 0);
    all.push_back({axes[k], extent, sizes[k], static_cast<float>(sizes[k]) / static_cast<float>(extent)});
  }
  if (policy == "stretch") return all;
  Lowering::require(policy == "not_larger" || policy == "not_smaller");
  float common = all.at(0).scale;
  for (const AxisSampling& s : all)
    common = policy == "not_larger" ? std::min(common, s.scale) : std::max(common, s.scale);
  for (AxisSampling& s : all) {
    s.scale = common;
    s.result = static_cast<int64_t>(std::floor(common * static_cast<float>(s.extent) + 0.5F));
  }
  return all;
}

std::vector<int64_t> all_axes(const Value& x) {
  std::vector<int64_t> axes;
  for (size_t k = 0; k < rank_of(x); k++) axes.push_back(static_cast<int64_t>(k));
  return axes;
}

Values lower_resize(Lowering& l) {
  const Value x = l.input(0);
  if (l.opset() < 11) {
    const ResizeForm form{l.text("mode", "nearest"), "asymmetric", "floor"};
    return {resized(l, x, by_scales(x, all_axes(x), l.reals(1)), form)};
  }
  ResizeForm form{l.text("mode", "nearest"), l.text("coordinate_transformation_mode", "half_pixel"),
                  l.text("nearest_mode", "round_prefer_floor")};
  form.cubic_coefficient = l.real("cubic_coeff_a", -0.75);
  form.extrapolation = l.real("extrapolation_value", 0);
  form.exclude_outside = l.integer("exclude_outside", 0) != 0;
  form.antialias = l.integer("antialias", 0) != 0;
  // Of sizes alone; exporters write it beside scales, too.
  const std::string policy = l.text("keep_aspect_ratio_policy", "stretch");
  Lowering::require(form.mode == "nearest" || form.mode == "linear" || form.mode == "cubic");
  std::vector<int64_t> axes = l.integers("axes", all_axes(x));
  for (int64_t& axis : axes) axis = l.axis(axis, rank_of(x));
  const bool crops = form.coordinates == "tf_crop_and_resize";
  const bool scaled = l.has(2) && extent_of(l.input(2), 0) > 0;
  Lowering::require(scaled || l.has(3));
  std::vector<AxisSampling> all = scaled ? by_scales(x, axes, l.reals(2)) : by_sizes(l, x, axes, policy);
  if (crops) {
    const std::vector<double> roi = l.reals(1);
    Lowering::require(!scaled && roi.size() == 2 * axes.size());
    for (size_t k = 0; k < axes.size(); k++) {
      all[k].roi_begin = static_cast<float>(roi[k]);
      all[k].roi_end = static_cast<float>(roi[axes.size() + k]);
    }
  }
  return {resized(l, x, all, form)};
}

Values lower_upsample(Lowering& l) {
  const Value x = l.input(0);
  const ResizeForm form{l.text("mode", "nearest"), "asymmetric", "floor"};
  const std::vector<double> scales = l.opset() >= 9 ? l.reals(1) : l.floats("scales");
  return {resized(l, x, by_scales(x, all_axes(x), scales), form)};
}

constexpr LoweredOperator kSampling[] = {{"Resize", lower_resize}, {"Upsample", lower_upsample}};

}  // namespace

std::span<const LoweredOperator> lowered_sampling() { return kSampling; }

}  // namespace gopt::ir
