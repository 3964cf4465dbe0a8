// RoiAlign: parts of images, each sampled at as many places, between four elements each. Col2Im: parts put together.
#include <algorithm>

#include "lowering.h"

namespace gopt::ir {
namespace {

// Places along one axis of all regions, [regions, places]: the elements below and above, and how far above it lies.
struct Places {
  Value below, above, part, inside;
  int64_t count = 0;
};

class RegionSampler {
 public:
  explicit RegionSampler(Lowering& l) : l_(l), x_(l.input(0)), regions_(l.input(1)), images_(l.input(2)) {
    Lowering::require(rank_of(x_) == 4 && rank_of(regions_) == 2 && rank_of(images_) == 1 && is_floating(type_of(x_)));
    samples_ = l.integer("sampling_ratio", 0);
    Lowering::require(samples_ > 0);  // else as many as each region's size asks for
    half_pixel_ =
        l.text("coordinate_transformation_mode", l.opset() >= 16 ? "half_pixel" : "output_half_pixel") == "half_pixel";
  }

  Value run() {
    const int64_t height = l_.integer("output_height", 1), width = l_.integer("output_width", 1);
    const Places rows = along(1, 2, height), columns = along(0, 3, width);
    const Index count = shape_of(regions_)[0], channels = shape_of(x_)[1];
    const int64_t size = extent_of(x_, 2) * extent_of(x_, 3);
    const Value images = l_.op(OpKind::Gather, {x_, l_.cast(images_, ElementType::Int64)}, {{"axis", Index(0)}});
    elements_ = l_.reshape(images, {count, channels, Index(size)});
    sampled_ = {count, channels, Index(rows.count * columns.count)};
    const bool takes_mean = l_.text("mode", "avg") == "avg";
    Value all;
    for (const bool down : {false, true})
      for (const bool right : {false, true}) {
        const Value term = weighted(rows, columns, down, right);
        all = !all ? term : takes_mean ? l_.add(all, term) : l_.op(OpKind::Max, {all, term});
      }
    const Value split =
        l_.reshape(all, {count, channels, Index(height), Index(samples_), Index(width), Index(samples_)});
    return l_.reduce(takes_mean ? OpKind::ReduceMean : OpKind::ReduceMax, split, {Index(3), Index(5)}, false);
  }

 private:
  Value number(double value) { return l_.scalar(type_of(x_), value); }
  Value corner(int64_t k) {  // [regions, 1]
    const Value scaled = l_.mul(l_.slice(regions_, 1, k, k + 1), number(l_.real("spatial_scale", 1)));
    return half_pixel_ ? l_.sub(scaled, number(0.5)) : scaled;
  }

  // `from`: the region's first corner along this axis of x; the opposite one is two later.
  Places along(int64_t from, int64_t axis, int64_t bins) {
    const int64_t extent = extent_of(x_, axis);
    const auto size = static_cast<double>(extent);
    const Value begin = corner(from);
    Value length = l_.sub(corner(from + 2), begin);
    if (!half_pixel_) length = l_.op(OpKind::Max, {length, number(1)});
    std::vector<double> steps;
    for (int64_t bin = 0; bin < bins; bin++)
      for (int64_t s = 0; s < samples_; s++)
        steps.push_back(static_cast<double>(bin) + (static_cast<double>(s) + 0.5) / static_cast<double>(samples_));
    const Value bin_size = l_.div(length, number(static_cast<double>(bins)));
    const Value given = l_.add(begin, l_.mul(bin_size, l_.along(steps, 1, 2, type_of(x_))));
    Places p;
    p.count = bins * samples_;
    p.inside = l_.op(
        OpKind::Not,
        {l_.op(OpKind::Or, {l_.op(OpKind::Less, {given, number(-1)}), l_.op(OpKind::Less, {number(size), given})})});
    const Value place = l_.op(OpKind::Clip, {given}, {{"min", 0.0}, {"max", size - 1}});
    const Value below = l_.op(OpKind::Floor, {place});
    p.part = l_.sub(place, below);
    p.below = l_.cast(below, ElementType::Int64);
    const Value next = l_.add(p.below, l_.scalar(ElementType::Int64, 1));
    p.above = l_.op(OpKind::Min, {next, l_.scalar(ElementType::Int64, size - 1)});
    return p;
  }

  // One of the four elements around each place, times its weight.
  Value weighted(const Places& rows, const Places& columns, bool down, bool right) {
    const auto weight = [&](const Places& p, bool above) { return above ? p.part : l_.sub(number(1), p.part); };
    const Value row = l_.unsqueeze(down ? rows.above : rows.below, 2),
                column = l_.unsqueeze(right ? columns.above : columns.below, 1);
    const Value width = l_.scalar(ElementType::Int64, static_cast<double>(extent_of(x_, 3)));
    const Shape flat{sampled_[0], Index(1), sampled_[2]};
    const Value place = l_.reshape(l_.add(l_.mul(row, width), column), flat);
    const Value taken = l_.elements_at(elements_, l_.expand(place, sampled_), 2);
    const Value factor = l_.mul(l_.unsqueeze(weight(rows, down), 2), l_.unsqueeze(weight(columns, right), 1));
    const Value inside = l_.op(OpKind::And, {l_.unsqueeze(rows.inside, 2), l_.unsqueeze(columns.inside, 1)});
    return l_.mul(taken, l_.reshape(l_.where(inside, factor, number(0)), flat));
  }

  Lowering& l_;
  Value x_, regions_, images_, elements_;
  Shape sampled_;
  int64_t samples_ = 0;
  bool half_pixel_ = false;
};

Values lower_roi_align(Lowering& l) { return {RegionSampler(l).run()}; }

// A transposed convolution, by which each element of a part goes to one place.
Values lower_col2im(Lowering& l) {
  const Value x = l.input(0);
  const std::vector<int64_t> image = l.numbers(1), block = l.numbers(2);
  const size_t axes = image.size();
  Lowering::require(rank_of(x) == 3 && is_floating(type_of(x)) && axes > 0 && block.size() == axes);
  const std::vector<int64_t> dilations = l.integers("dilations", std::vector<int64_t>(axes, 1)),
                             pads = l.integers("pads", std::vector<int64_t>(2 * axes, 0)),
                             strides = l.integers("strides", std::vector<int64_t>(axes, 1));
  int64_t elements = 1, places = 1;
  std::vector<int64_t> counts;
  std::vector<Index> kernel_strides, kernel_dilations, crops(2 * (axes + 2), Index(0));
  for (size_t k = 0; k < axes; k++) {
    const int64_t reach = dilations.at(k) * (block[k] - 1) + 1, wide = image[k] + pads.at(k) + pads.at(axes + k);
    Lowering::require(strides.at(k) > 0 && wide >= reach);
    counts.push_back((wide - reach) / strides[k] + 1);
    elements *= block[k];
    places *= counts[k];
    kernel_strides.emplace_back(strides[k]);
    kernel_dilations.emplace_back(dilations[k]);
    crops[k + 2] = Index(-pads[k]);
    crops[axes + 2 + k + 2] = Index(image[k] + pads[k] - ((counts[k] - 1) * strides[k] + reach));
  }
  Lowering::require(extent_of(x, 2) == places && extent_of(x, 1) % elements == 0 && elements <= 4096);
  const int64_t channels = extent_of(x, 1) / elements, images = extent_of(x, 0) * channels;
  Shape parts{Index(images), Index(elements)}, result{shape_of(x)[0], Index(channels)};
  for (size_t k = 0; k < axes; k++) {
    parts.emplace_back(counts[k]);
    result.emplace_back(image[k]);
  }
  std::vector<int64_t> dims{elements, 1};
  dims.insert(dims.end(), block.begin(), block.end());
  std::vector<double> hot(static_cast<size_t>(elements * elements), 0);
  for (int64_t k = 0; k < elements; k++) hot[static_cast<size_t>(k * elements + k)] = 1;
  const Value weights = l.constant(Tensor::from_values(type_of(x), dims, hot));
  const Value sum = l.op(OpKind::ConvTranspose, {l.reshape(x, parts), weights},
                         {{"strides", kernel_strides}, {"dilations", kernel_dilations}});
  return {l.reshape(l.op(OpKind::Pad, {sum}, {{"pads", crops}}), result)};
}

constexpr LoweredOperator kRegions[] = {{"RoiAlign", lower_roi_align}, {"Col2Im", lower_col2im}};

}  // namespace

std::span<const LoweredOperator> lowered_regions() { return kRegions; }

}  // namespace gopt::ir
