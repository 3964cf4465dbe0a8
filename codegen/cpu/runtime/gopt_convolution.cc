#include "gopt_convolution.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "gopt_split.h"

namespace gopt_runtime {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;
constexpr auto kDirect = dnnl::algorithm::convolution_direct;

// Up to whole blocks.
int64_t rounded(int64_t channels, Order order) {
  const int64_t block = block_of(order);
  return (channels + block - 1) / block * block;
}

Tag image_tag(Order order, size_t axes) {
  static constexpr Tag tags[4][3] = {{Tag::ncw, Tag::nchw, Tag::ncdhw},
                                     {Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c},
                                     {Tag::nwc, Tag::nhwc, Tag::ndhwc},
                                     {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c}};
  return tags[static_cast<size_t>(order)][axes - 1];
}

Tag weight_tag(bool grouped, size_t axes) {
  static constexpr Tag tags[2][3] = {{Tag::oiw, Tag::oihw, Tag::oidhw}, {Tag::goiw, Tag::goihw, Tag::goidhw}};
  return tags[grouped][axes - 1];
}

// The same convolution over two axes, the first of extent 1: oneDNN has code for depthwise ones over two axes alone.
Convolution with_second_axis(Convolution c) {
  for (std::vector<int64_t>* dims : {&c.src, &c.weights, &c.dst}) dims->insert(dims->begin() + 2, 1);
  c.strides.insert(c.strides.begin(), 1);
  c.dilations.insert(c.dilations.begin(), 1);
  c.pads.insert(c.pads.begin(), 0);
  return c;
}

// In the order in which they are tried.
std::vector<Form> forms(const Convolution& c, Order src, Order dst) {
  const Form own = own_form(c);
  std::vector<Form> list{own};
  const int64_t block = block_of(dst);
  const bool blocked_src = block_of(src) > 1;
  if (!c.constant_weights || block == 1) return list;
  const int64_t all_in = own.groups * own.in, all_out = own.groups * own.out;
  const Form one{1, rounded(all_in, src), rounded(all_out, dst)};
  if (own.groups == 1) {
    list.push_back(one);
    return list;
  }
  constexpr int64_t kMostWork = 4;  // so many times its own
  for (int64_t factor = 2; factor <= std::min(kMostWork, own.groups); factor++) {
    const int64_t in = own.in * factor, out = own.out * factor, groups = (own.groups + factor - 1) / factor;
    const bool fits = groups * factor == own.groups ||
                      (blocked_src && groups * in <= rounded(all_in, src) && groups * out <= rounded(all_out, dst));
    if (fits && in % block == 0 && out % block == 0) list.push_back({groups, in, out});
  }
  if (own.groups <= kMostWork) list.push_back(one);
  return list;
}

memory::dims weight_dims(const Convolution& c, const Form& form) {
  memory::dims dims{form.out, form.in};
  if (form.groups > 1) dims.insert(dims.begin(), form.groups);
  dims.insert(dims.end(), c.weights.begin() + 2, c.weights.end());
  return dims;
}

dnnl::convolution_forward::primitive_desc describe(const dnnl::engine& engine, const Convolution& c, const Form& form,
                                                   const MadeConvolution& made, bool bias) {
  memory::dims strides(c.strides.begin(), c.strides.end()), before(c.pads.begin(), c.pads.end()), dilations, after;
  for (size_t d = 0; d < c.pads.size(); d++) {
    dilations.push_back(c.dilations[d] - 1);
    after.push_back((c.dst[2 + d] - 1) * c.strides[d] + (c.weights[2 + d] - 1) * c.dilations[d] + 1 - c.src[2 + d] -
                    c.pads[d]);
  }
  const memory::desc any(weight_dims(c, form), type_of(c.operands), Tag::any);
  const memory::desc bias_desc = bias ? memory::desc({form.groups * form.out}, kFloat, Tag::x) : memory::desc();
  const dnnl::primitive_attr attr = post_attributes(c.posts, made.dst);
#if DNNL_VERSION_MAJOR >= 3
  return {engine,    dnnl::prop_kind::forward_inference,
          kDirect,   made.src,
          any,       bias_desc,
          made.dst,  strides,
          dilations, before,
          after,     attr};
#else
  const dnnl::convolution_forward::desc d(dnnl::prop_kind::forward_inference, kDirect, made.src, any, bias_desc,
                                          made.dst, strides, dilations, before, after);
  return {d, attr, engine};
#endif
}

// Errors: dnnl::error where there is no code at all.
MadeConvolution make_form(const dnnl::engine& engine, const Convolution& c, const Form& form, Order src, Order dst,
                          bool bias) {
  MadeConvolution made;
  made.form = form;
  made.src_dims = c.src;
  made.dst_dims = c.dst;
  made.src_dims[1] = form.groups * form.in;
  made.dst_dims[1] = form.groups * form.out;
  made.src = image_desc(made.src_dims, src, c.operands);
  made.dst = image_desc(made.dst_dims, dst, c.result);
  made.weight_dims = weight_dims(c, form);
  made.weights = memory::desc(made.weight_dims, kFloat, weight_tag(form.groups > 1, c.pads.size()));
  made.pd = describe(engine, c, form, made, bias);
  return made;
}

bool is_reference(const MadeConvolution& made) {
  return std::string(made.pd.impl_info_str()).compare(0, 3, "ref") == 0;
}

// Unfolds the source: for each group a product of its own, thin where groups are small.
bool unfolds(const MadeConvolution& made) {
  return std::string(made.pd.impl_info_str()).find("gemm") != std::string::npos;
}

dnnl::algorithm algorithm_of(PostKind kind) {
  switch (kind) {
    case PostKind::Relu: return dnnl::algorithm::eltwise_relu;
    case PostKind::Clip: return dnnl::algorithm::eltwise_clip;
    case PostKind::Logistic: return dnnl::algorithm::eltwise_logistic;
    case PostKind::Tanh: return dnnl::algorithm::eltwise_tanh;
    case PostKind::Elu: return dnnl::algorithm::eltwise_elu;
    case PostKind::GeluErf: return dnnl::algorithm::eltwise_gelu_erf;
    case PostKind::GeluTanh: return dnnl::algorithm::eltwise_gelu_tanh;
    case PostKind::Swish: return dnnl::algorithm::eltwise_swish;
    case PostKind::HardSwish: return dnnl::algorithm::eltwise_hardswish;
    case PostKind::Linear: return dnnl::algorithm::eltwise_linear;
    case PostKind::Sum:
    case PostKind::Add: break;
  }
  throw std::runtime_error("no elementwise algorithm");
}

double product(const std::vector<int64_t>& extents, size_t first) {
  double n = 1;
  for (size_t d = first; d < extents.size(); d++) n *= static_cast<double>(extents[d]);
  return n;
}

}  // namespace

memory::data_type type_of(Element element) { return element == Element::Float ? kFloat : memory::data_type::bf16; }

memory::desc image_desc(const std::vector<int64_t>& dims, Order order, Element element) {
  return {memory::dims(dims.begin(), dims.end()), type_of(element), image_tag(order, dims.size() - 2)};
}

dnnl::primitive_attr post_attributes(const std::vector<Post>& posts, const memory::desc& dst) {
  dnnl::post_ops ops;
  for (const Post& post : posts) {
    if (post.kind == PostKind::Sum) {
      ops.append_sum(1.0f);
    } else if (post.kind == PostKind::Add) {
      ops.append_binary(dnnl::algorithm::binary_add, post.dims.empty() ? dst : dense_desc(post.dims, post.element));
    } else {
#if DNNL_VERSION_MAJOR >= 3
      ops.append_eltwise(algorithm_of(post.kind), post.alpha, post.beta);
#else
      ops.append_eltwise(1.0f, algorithm_of(post.kind), post.alpha, post.beta);
#endif
    }
  }
  dnnl::primitive_attr attr;
  attr.set_post_ops(ops);
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

memory::desc dense_desc(const std::vector<int64_t>& dims, Element element) {
  memory::dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * dims[d + 1];
  return {memory::dims(dims.begin(), dims.end()), type_of(element), strides};
}

Form own_form(const Convolution& c) { return {c.groups, c.src[1] / c.groups, c.dst[1] / c.groups}; }

Convolution in_floats(Convolution c) {
  c.operands = c.result = Element::Float;
  return c;
}

Convolution in_parts(Convolution c) {
  c.weights[1] = 3 * rounded(c.src[1] / c.groups, c.src_order);
  c.src[1] = c.groups * c.weights[1];
  c.operands = Element::BFloat16;
  return c;
}

std::vector<float> weights_in_parts(const Convolution& c, const float* weights) {
  const int64_t in = c.weights[1], filled = in_parts(c).weights[1] / 3, out = c.dst[1];
  const auto taps = static_cast<int64_t>(product(c.weights, 2));
  if (filled == in) return split(Side::Right, weights, out, in * taps);
  std::vector<float> padded(static_cast<size_t>(out * filled * taps), 0.0f);
  for (int64_t o = 0; o < out; o++)
    std::copy(weights + o * in * taps, weights + (o + 1) * in * taps, padded.begin() + o * filled * taps);
  return split(Side::Right, padded.data(), out, filled * taps);
}

std::vector<float> widened(Element element, const void* stored, size_t count) {
  if (element == Element::Float) return {};
  std::vector<float> floats(count);
  for (size_t i = 0; i < count; i++) {
    const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(stored)[i]) << 16;
    std::memcpy(&floats[i], &bits, sizeof bits);
  }
  return floats;
}

std::optional<MadeConvolution> make_convolution(const dnnl::engine& engine, const Convolution& c, Order src, Order dst,
                                                bool bias) {
  if (c.transposed) return std::nullopt;
  const auto attempt = [&](const Convolution& d, const Form& form) -> std::optional<MadeConvolution> {
    try {
      auto made = make_form(engine, d, form, src, dst, bias);
      if (is_reference(made)) return std::nullopt;
      if (unfolds(made) && (form.groups > 1 || src != Order::Plain)) return std::nullopt;
      return made;
    } catch (const dnnl::error&) {
      return std::nullopt;  // not on this processor
    }
  };
  for (const Form& form : forms(c, src, dst)) {
    if (auto made = attempt(c, form)) return made;
    if (c.pads.size() == 1)
      if (auto made = attempt(with_second_axis(c), form)) return made;
  }
  return std::nullopt;
}

std::vector<float> form_weights(const Convolution& c, const Form& form, const float* weights) {
  const Form own = own_form(c);
  if (form == own) return {};
  const auto taps = static_cast<int64_t>(product(c.weights, 2));
  std::vector<float> result(static_cast<size_t>(form.groups * form.out * form.in * taps), 0.0f);
  for (int64_t o = 0; o < own.groups * own.out; o++) {
    const int64_t first = o / own.out * own.in - o / form.out * form.in;  // of its inputs, among those of its new group
    std::copy(weights + o * own.in * taps, weights + (o + 1) * own.in * taps,
              result.begin() + (o * form.in + first) * taps);
  }
  return result;
}

PlanarShape planar_shape(const Convolution& c) {
  PlanarShape s;
  const Form own = own_form(c);
  s.batch = c.src[0];
  s.groups = own.groups;
  s.in = own.in;
  s.out = own.out;
  s.transposed = c.transposed;
  s.lanes_are_channels = c.method == Method::ChannelLanes && own.in == 1 && own.out == 1 && !c.transposed;
  set_windows(s, c);
  return s;
}

// Channels last, oneDNN computes half again as fast as loops over planes do, but the tensors are converted twice, and
// groups of few channels leave its lanes empty.
Method best_conversion(const Convolution& c, const PlanarConvolution& planar) {
  if (c.transposed) return Method::Planar;
  const Form own = own_form(c);
  const double operations = 2 * product(c.dst, 0) * static_cast<double>(own.in) * product(c.weights, 2);
  const double moved = product(c.src, 0) + product(c.dst, 0);
  if (own.in < 8 || own.out < 8) return Method::Planar;
  return operations * (1 / planar.used_lanes() - 0.7) > 100 * moved ? Method::ChannelsLast : Method::Planar;
}

}  // namespace gopt_runtime
