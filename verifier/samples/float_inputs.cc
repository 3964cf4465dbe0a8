#include "float_inputs.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace gopt::verifier {
namespace {

// In [-1, 1], with all digits of a double.
double rough(std::mt19937_64& random) { return std::ldexp(static_cast<double>(random() >> 11), -52) - 1; }
double sign(std::mt19937_64& random) { return random() % 2 == 0 ? 1 : -1; }
int between(int low, int high, std::mt19937_64& random) {
  return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1));
}
// A number of that binary exponent.
double scaled(int exponent, std::mt19937_64& random) { return std::ldexp(1.5 + 0.5 * rough(random), exponent); }

}  // namespace

RealRange range_of(ElementType real) {
  if (real == ElementType::Float16)
    return {65504, std::ldexp(1, -14), std::ldexp(1, -24), std::ldexp(1, -11), 16, -24, 10, 3};
  if (real == ElementType::BFloat16)
    return {3.3895313892515355e38, std::ldexp(1, -126), std::ldexp(1, -133), std::ldexp(1, -8), 1024, -130, 116, 8};
  if (real == ElementType::Float64)
    return {std::numeric_limits<double>::max(),
            std::ldexp(1, -1022),
            std::ldexp(1, -1074),
            std::ldexp(1, -53),
            1024,
            -1060,
            1010,
            8};
  return {3.4028234663852886e38, std::ldexp(1, -126), std::ldexp(1, -149), std::ldexp(1, -24), 1024, -140, 116, 8};
}

FloatInputs::FloatInputs(const RewriteRule& rule, ElementType real, std::vector<double> constants)
    : rule_(rule),
      real_(real),
      range_(range_of(real)),
      constants_(std::move(constants)),
      floats_(float_variables(rule).size()) {}

FloatInputs::Draw FloatInputs::draw_kind(Kind kind, std::mt19937_64& random) const {
  Draw draw{kind, 1, 0, random() % 2 == 0};
  const bool is_half = real_ == ElementType::Float16;
  switch (kind) {
    case Kind::Scales:
    case Kind::PositiveScales:
      draw.base = std::ldexp(1, between(range_.lowest, range_.highest, random));
      draw.is_positive = kind == Kind::PositiveScales;
      break;
    case Kind::Shifted:
    case Kind::Equal: draw.base = sign(random) * scaled(between(3, is_half ? 9 : 16, random), random); break;
    case Kind::Near:
      draw.base = sign(random) * scaled(between(-3, 2, random), random);
      draw.apart = std::ldexp(1, -between(3, is_half ? 8 : 18, random));
      break;
    case Kind::Logits: draw.base = is_half ? 20 : std::pow(10.0, between(1, 3, random)) * 3; break;
    case Kind::Ordinary:
    case Kind::ElementScales:
    case Kind::Masked:
    case Kind::NearConstants: break;
  }
  return draw;
}

double FloatInputs::draw_element(const Draw& draw, std::mt19937_64& random) const {
  double value = 0;
  switch (draw.kind) {
    case Kind::Ordinary:
    case Kind::Masked: value = 3 * rough(random); break;
    case Kind::Scales:
    case Kind::PositiveScales:
    case Kind::Logits: value = draw.base * rough(random); break;
    case Kind::ElementScales:
      value = sign(random) * scaled(between(range_.lowest, range_.highest, random), random);
      break;
    case Kind::Shifted: value = draw.base + rough(random); break;
    case Kind::Near: value = draw.base * (1 + draw.apart * rough(random)); break;
    case Kind::Equal: return draw.base;
    case Kind::NearConstants:
      if (constants_.empty()) return rough(random);
      value = constants_[random() % constants_.size()] * (1 + 0.25 * rough(random) * static_cast<double>(random() % 2));
      break;
  }
  return draw.is_positive ? std::fabs(value) : value;
}

// Some elements of each row, sometimes all, are what masks put in their place.
void FloatInputs::mask_rows(SampleTensor& tensor, std::mt19937_64& random) const {
  if (tensor.dims.empty()) return;
  const double masks[] = {-1e4, real_ == ElementType::Float16 ? -1e3 : -1e9, -range_.largest / (2 * range_.margin)};
  const double mask = masks[random() % std::size(masks)];
  const auto row = static_cast<size_t>(std::max<int64_t>(tensor.dims.back(), 1));
  for (size_t begin = 0; begin < tensor.values.size(); begin += row) {
    const bool is_whole = random() % 3 == 0;
    for (size_t k = begin; k < std::min(begin + row, tensor.values.size()); k++)
      if (is_whole || random() % 2 == 0) tensor.values[k] = mask;
  }
}

double FloatInputs::weight(bool is_positive, std::mt19937_64& random) const {
  const double value = scaled(between(-range_.weight, range_.weight, random), random);
  return is_positive ? value : sign(random) * value;
}

SampleInputs FloatInputs::draw(const std::vector<std::vector<int64_t>>& dims, int number,
                               std::mt19937_64& random) const {
  static constexpr Kind kKinds[] = {Kind::Scales,         Kind::Masked,   Kind::Shifted,        Kind::Equal,
                                    Kind::PositiveScales, Kind::Logits,   Kind::Near,           Kind::ElementScales,
                                    Kind::NearConstants,  Kind::Ordinary, Kind::PositiveScales, Kind::Scales};
  const Kind kind = kKinds[static_cast<size_t>(number) % std::size(kKinds)];
  const bool is_apart = random() % 3 == 0;   // a kind for each variable
  const bool is_common = random() % 2 == 0;  // one scale, shift or base for all
  const Draw common = draw_kind(kind, random);
  const bool positive_weights = random() % 2 == 0;
  SampleInputs inputs;
  for (size_t i = 0; i < rule_.variables.size(); i++) {
    const RuleVariable& variable = rule_.variables[i];
    const ElementType element = variable.type.element;
    SampleTensor tensor{dims[i], {}};
    const Draw own = is_apart    ? draw_kind(kKinds[random() % std::size(kKinds)], random)
                     : is_common ? common
                                 : draw_kind(kind, random);
    for (int64_t k = element_count(dims[i]); k > 0; k--) {
      double value = 0;
      if (!is_floating(element))
        value = static_cast<double>(random() % (element == ElementType::Bool ? 2 : 3));
      else
        value = rounded_to(element, variable.kind == VariableKind::Weight ? weight(positive_weights, random)
                                                                          : draw_element(own, random));
      tensor.values.push_back(value);
    }
    if (own.kind == Kind::Masked && is_floating(element) && variable.kind == VariableKind::Activation) {
      mask_rows(tensor, random);
      for (double& value : tensor.values) value = rounded_to(element, value);
    }
    inputs[static_cast<int>(i)] = std::move(tensor);
  }
  for (size_t k = 0; k < floats_; k++)
    inputs[kFirstFloatSlot + static_cast<int>(k)] = {
        {}, {rounded_to(ElementType::Float32, weight(positive_weights, random))}};
  return inputs;
}

SampleInputs FloatInputs::perturbed(const SampleInputs& inputs, std::mt19937_64& random) const {
  SampleInputs changed = inputs;
  for (size_t i = 0; i < rule_.variables.size(); i++)
    if (const ElementType element = rule_.variables[i].type.element; is_floating(element))
      for (double& value : changed.at(static_cast<int>(i)).values) value *= 1 + range_of(element).unit * rough(random);
  return changed;
}

}  // namespace gopt::verifier
