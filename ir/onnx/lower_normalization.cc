// Normalization and pooling by powers.
#include <algorithm>

#include "lowering.h"

namespace gopt::ir {
namespace {

std::vector<Index> axes_between(size_t begin, size_t end) {
  std::vector<Index> axes;
  for (size_t k = begin; k < end; k++) axes.emplace_back(static_cast<int64_t>(k));
  return axes;
}
// [channels] as a tensor that broadcasts along axis 1 of `rank` axes.
Value along_channels(Lowering& l, const Value& x, size_t rank) {
  Shape shape(rank - 1, Index(1));
  shape[0] = shape_of(x).at(0);
  return l.reshape(x, shape);
}

// The sum over neighbouring channels is `size` times a mean under a window of one axis.
Values lower_lrn(Lowering& l) {
  const Value x = l.input(0);
  const int64_t size = l.integer("size", 0), before = (size - 1) / 2;
  Lowering::require(rank_of(x) >= 2 && size > 0 && is_floating(type_of(x)));
  Index after(1);
  for (size_t k = 2; k < rank_of(x); k++) after = after * shape_of(x)[k];
  const Value flat = l.reshape(l.mul(x, x), {shape_of(x)[0], Index(1), shape_of(x)[1], after});
  const Value mean = l.op(OpKind::AveragePool, {flat},
                          {{"kernel_shape", std::vector<Index>{size, 1}},
                           {"pads", std::vector<Index>{before, 0, size - 1 - before, 0}},
                           {"count_include_pad", Index(1)}});
  const auto number = [&](double value) { return l.scalar(type_of(x), value); };
  // alpha / size of the sum is alpha of the mean.
  const Value scaled =
      l.add(l.mul(l.reshape(mean, shape_of(x)), number(l.real("alpha", 1e-4))), number(l.real("bias", 1)));
  return {l.div(x, l.op(OpKind::Pow, {scaled, number(l.real("beta", 0.75))}))};
}

// Each group of channels is a channel of InstanceNormalization. Before opset 21 scale and bias are a group's. What has
// fewer digits than a float is normalized as floats (stash_type 1), and rounded before it is scaled.
Values lower_group_normalization(Lowering& l) {
  const Value given = l.input(0), scale = l.input(1), bias = l.input(2);
  const int64_t groups = l.integer("num_groups", 0), stash = l.integer("stash_type", 1);
  Lowering::require(rank_of(given) >= 2 && groups > 0 && stash == 1 && is_floating(type_of(given)));
  const Value x = is_half(type_of(given)) ? l.cast(given, ElementType::Float32) : given;
  Index others(1);
  for (size_t k = 2; k < rank_of(x); k++) others = others * shape_of(x)[k];
  const int64_t channels = extent_of(x, 1);
  Lowering::require(channels % groups == 0);
  const std::vector<double> ones(static_cast<size_t>(groups), 1), zeros(static_cast<size_t>(groups), 0);
  const Value grouped = l.reshape(x, {shape_of(x)[0], Index(groups), others * Index(channels / groups)});
  const Value normalized =
      l.op(OpKind::InstanceNormalization, {grouped, l.along(ones, 0, 1, type_of(x)), l.along(zeros, 0, 1, type_of(x))},
           {{"epsilon", l.real("epsilon", 1e-5)}});
  const Value normal = type_of(x) == type_of(given) ? normalized : l.cast(normalized, type_of(given));
  if (l.opset() < 21) {
    const Value scaled = l.add(l.mul(normal, along_channels(l, scale, 3)), along_channels(l, bias, 3));
    return {l.reshape(scaled, shape_of(x))};
  }
  const Value back = l.reshape(normal, shape_of(x));
  return {l.add(l.mul(back, along_channels(l, scale, rank_of(x))), along_channels(l, bias, rank_of(x)))};
}

Values lower_rms_normalization(Lowering& l) {
  const Value x = l.input(0), scale = l.input(1);
  Lowering::require(l.integer("stash_type", 1) == 1 && rank_of(x) > 0 &&
                    (type_of(x) == ElementType::Float32 || type_of(x) == ElementType::Float64));
  const auto axis = static_cast<size_t>(l.axis(l.integer("axis", -1), rank_of(x)));
  const Value mean = l.reduce(OpKind::ReduceMean, l.mul(x, x), axes_between(axis, rank_of(x)));
  const Value root = l.op(OpKind::Sqrt, {l.add(mean, l.scalar(type_of(x), l.real("epsilon", 1e-5)))});
  return {l.mul(l.div(x, root), scale)};
}

Values lower_lp_normalization(Lowering& l) {
  const Value x = l.input(0);
  const int64_t p = l.integer("p", 2), axis = l.axis(l.integer("axis", -1), rank_of(x));
  Lowering::require((p == 1 || p == 2) && is_floating(type_of(x)));
  const Value norm = l.reduce(p == 1 ? OpKind::ReduceL1 : OpKind::ReduceL2, x, {axis}), zero = l.scalar(type_of(x), 0);
  return {l.where(l.op(OpKind::Equal, {norm, zero}), zero, l.div(x, norm))};  // a NaN stays
}

Value power(Lowering& l, const Value& x, double exponent) {
  return exponent == 1 ? x : l.op(OpKind::Pow, {x, l.scalar(type_of(x), exponent)});
}

// The p-th root of the window's size times the mean of |x|^p.
Values lower_lp_pool(Lowering& l) {
  const Value x = l.input(0);
  const int64_t p = l.integer("p", 2);
  Lowering::require(rank_of(x) >= 3 && is_floating(type_of(x)) && p > 0 && l.integer("ceil_mode", 0) == 0);
  Attributes attributes{{"count_include_pad", Index(1)}, {"auto_pad", l.text("auto_pad", "NOTSET")}};
  double size = 1;
  for (int64_t extent : l.integers("kernel_shape", {})) size *= static_cast<double>(extent);
  for (const char* name : {"kernel_shape", "strides", "pads", "dilations"}) {
    const std::vector<int64_t> list = l.integers(name, {});
    const bool writable = std::string(name) != "dilations" || l.opset() >= 19;
    Lowering::require(writable || std::all_of(list.begin(), list.end(), [](int64_t d) { return d == 1; }));
    if (!list.empty() && writable) attributes[name] = std::vector<Index>(list.begin(), list.end());
  }
  const Value mean = l.op(OpKind::AveragePool, {power(l, l.op(OpKind::Abs, {x}), static_cast<double>(p))}, attributes);
  return {power(l, l.mul(mean, l.scalar(type_of(x), size)), 1 / static_cast<double>(p))};
}
Values lower_global_lp_pool(Lowering& l) {
  const Value x = l.input(0);
  const int64_t p = l.integer("p", 2);
  Lowering::require(rank_of(x) >= 3 && is_floating(type_of(x)) && p > 0);
  const Value powers = power(l, l.op(OpKind::Abs, {x}), static_cast<double>(p));
  return {power(l, l.reduce(OpKind::ReduceSum, powers, axes_between(2, rank_of(x))), 1 / static_cast<double>(p))};
}

Values lower_mean_variance_normalization(Lowering& l) {
  const Value x = l.input(0);
  Lowering::require(is_floating(type_of(x)));
  const std::vector<int64_t> given = l.integers("axes", {0, 2, 3});
  std::vector<Index> axes;
  for (int64_t axis : given) axes.emplace_back(l.axis(axis, rank_of(x)));
  const Value centered = l.sub(x, l.reduce(OpKind::ReduceMean, x, axes));
  const Value deviation = l.op(OpKind::Sqrt, {l.reduce(OpKind::ReduceMean, l.mul(centered, centered), axes)});
  return {l.div(centered, l.add(deviation, l.scalar(type_of(x), 1e-9)))};
}

// With training_mode, by the batch's own statistics, which are outputs too.
Values lower_training_batch_normalization(Lowering& l) {
  const Value x = l.input(0), scale = l.input(1), bias = l.input(2), mean = l.input(3), variance = l.input(4);
  Lowering::require(l.opset() >= 14 && l.integer("training_mode", 0) == 1 && rank_of(x) >= 2 &&
                    is_floating(type_of(x)));
  for (size_t i = 1; i < 5; i++) Lowering::require(type_of(l.input(i)) == type_of(x));
  std::vector<Index> axes = axes_between(2, rank_of(x));
  axes.insert(axes.begin(), Index(0));
  const auto number = [&](double value) { return l.scalar(type_of(x), value); };
  const Value own_mean = l.reduce(OpKind::ReduceMean, x, axes), centered = l.sub(x, own_mean);
  const Value own_variance = l.reduce(OpKind::ReduceMean, l.mul(centered, centered), axes);
  const Value normal = l.div(centered, l.op(OpKind::Sqrt, {l.add(own_variance, number(l.real("epsilon", 1e-5)))}));
  const Value y = l.add(l.mul(normal, along_channels(l, scale, rank_of(x))), along_channels(l, bias, rank_of(x)));
  const double momentum = l.real("momentum", 0.9);
  const auto running = [&](const Value& before, const Value& own) {
    return l.add(l.mul(before, number(momentum)), l.mul(l.reshape(own, shape_of(before)), number(1 - momentum)));
  };
  return {y, running(mean, own_mean), running(variance, own_variance)};
}

constexpr LoweredOperator kNormalization[] = {{"LRN", lower_lrn},
                                              {"GroupNormalization", lower_group_normalization},
                                              {"RMSNormalization", lower_rms_normalization},
                                              {"LpNormalization", lower_lp_normalization},
                                              {"LpPool", lower_lp_pool},
                                              {"GlobalLpPool", lower_global_lp_pool},
                                              {"MeanVarianceNormalization", lower_mean_variance_normalization},
                                              {"BatchNormalization", lower_training_batch_normalization}};

}  // namespace

std::span<const LoweredOperator> lowered_normalization() { return kNormalization; }

}  // namespace gopt::ir
