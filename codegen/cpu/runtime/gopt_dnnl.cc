#include "gopt_dnnl.h"

#include <omp.h>

#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>

#include "gopt_memory.h"

namespace gopt_runtime {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

memory::dims dims_of(const std::vector<int64_t>& v) { return memory::dims(v.begin(), v.end()); }

memory::desc image(const std::vector<int64_t>& dims, Order order) {
  const Tag tag = order == Order::Blocked16 ? Tag::nChw16c : order == Order::ChannelsLast ? Tag::nhwc : Tag::nchw;
  return {dims_of(dims), kFloat, tag};
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
    case PostKind::Linear: return dnnl::algorithm::eltwise_linear;
    case PostKind::Sum:
    case PostKind::Add: break;
  }
  throw std::runtime_error("no elementwise algorithm");
}

memory::dims row_major(const std::vector<int64_t>& dims) {
  memory::dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * dims[d + 1];
  return strides;
}

dnnl::primitive_attr attributes(const std::vector<Post>& posts, const memory::desc& dst) {
  dnnl::post_ops ops;
  for (const Post& post : posts) {
    if (post.kind == PostKind::Sum) {
      ops.append_sum(1.0f);
    } else if (post.kind == PostKind::Add) {
      ops.append_binary(dnnl::algorithm::binary_add,
                        post.dims.empty() ? dst : memory::desc(dims_of(post.dims), kFloat, row_major(post.dims)));
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

// Groups of fewer than 16 channels are joined, with zeros between, since oneDNN's kernels work on whole blocks of 16.
struct Joined {
  int64_t factor = 1;
  std::vector<float> weights;
};
Joined join_groups(const Convolution& c, const float* weights) {
  const int64_t in = c.weights[1], out = c.weights[0] / c.groups, area = c.weights[2] * c.weights[3];
  Joined joined;
  const bool depthwise = in == 1 && out == 1;
  if (c.groups == 1 || depthwise || in != out || in >= 16 || 16 % in != 0 || c.groups % (16 / in) != 0) return joined;
  joined.factor = 16 / in;
  joined.weights.assign(static_cast<size_t>(c.weights[0] * 16 * area), 0.0f);
  for (int64_t o = 0; o < c.weights[0]; o++) {
    const int64_t group = o / out % joined.factor;
    std::memcpy(&joined.weights[static_cast<size_t>((o * 16 + group * in) * area)], weights + o * in * area,
                static_cast<size_t>(in * area) * sizeof(float));
  }
  return joined;
}

}  // namespace

struct Library::State {
  struct Primitive {
    dnnl::primitive primitive;
    memory src, weights, bias, dst;
    std::vector<std::pair<int, memory>> posts;
    std::vector<dnnl_exec_arg_t> args;
    memory::desc scratch_desc;
    memory scratch;
  };
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  int threads;
  std::vector<Primitive> primitives;
  std::unique_ptr<Block> scratch;
  std::vector<std::unique_ptr<Block>> blocks;  // reordered weights

  memory at(const memory::desc& desc, const void* data) { return memory(desc, engine, const_cast<void*>(data)); }

  // The weights in the primitive's own form.
  memory prepare(const memory::desc& have, const void* data, const memory::desc& want) {
    blocks.push_back(std::make_unique<Block>(want.get_size()));
    memory from = at(have, data), to = at(want, blocks.back()->data());
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
    return to;
  }

  template <class Desc>
  void finish(Primitive p, const Desc& pd, const std::vector<Post>& posts) {
    p.scratch_desc = pd.scratchpad_desc();
    for (size_t i = 0; i < posts.size(); i++) {
      if (posts[i].kind != PostKind::Add) continue;
      const memory::desc desc = posts[i].dims.empty()
                                    ? pd.dst_desc()
                                    : memory::desc(dims_of(posts[i].dims), kFloat, row_major(posts[i].dims));
      p.posts.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(static_cast<int>(i)) | DNNL_ARG_SRC_1,
                           at(desc, posts[i].operand));
    }
    primitives.push_back(std::move(p));
  }
};

Library::Library(int threads) : state_(std::make_unique<State>()) {
  state_->threads = threads > 0 ? threads : omp_get_max_threads();
  omp_set_num_threads(state_->threads);
}
Library::~Library() = default;

void Library::add(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst) {
  State& s = *state_;
  const Joined joined = join_groups(c, static_cast<const float*>(weights));
  const int64_t groups = c.groups / joined.factor, in = c.weights[1] * joined.factor;
  memory::dims wd{c.weights[0], in, c.weights[2], c.weights[3]};
  if (groups > 1) wd = {groups, c.weights[0] / groups, in, c.weights[2], c.weights[3]};
  const memory::desc src_desc = image(c.src, c.src_order), dst_desc = image(c.dst, c.dst_order);
  const memory::desc any(wd, kFloat, Tag::any), plain(wd, kFloat, groups > 1 ? Tag::goihw : Tag::oihw);
  const memory::desc bias_desc = bias ? memory::desc({c.weights[0]}, kFloat, Tag::x) : memory::desc();
  const memory::dims strides{c.strides[0], c.strides[1]}, dilations{c.dilations[0] - 1, c.dilations[1] - 1},
      before{c.pads[0], c.pads[1]};
  memory::dims after;
  for (int d = 0; d < 2; d++)
    after.push_back((c.dst[2 + d] - 1) * c.strides[d] + (c.weights[2 + d] - 1) * c.dilations[d] + 1 - c.src[2 + d] -
                    c.pads[d]);
  const dnnl::primitive_attr attr = attributes(c.posts, dst_desc);
  auto describe = [&](dnnl::algorithm algorithm) {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl::convolution_forward::primitive_desc(s.engine, dnnl::prop_kind::forward_inference, algorithm, src_desc,
                                                     any, bias_desc, dst_desc, strides, dilations, before, after, attr);
#else
    const dnnl::convolution_forward::desc d(dnnl::prop_kind::forward_inference, algorithm, src_desc, any, bias_desc,
                                            dst_desc, strides, dilations, before, after);
    return dnnl::convolution_forward::primitive_desc(d, attr, s.engine);
#endif
  };
  dnnl::convolution_forward::primitive_desc pd;
  bool made = false;
  if (c.winograd) {
    try {
      pd = describe(dnnl::algorithm::convolution_winograd);
      made = true;
    } catch (const dnnl::error&) {
      made = false;  // not on this processor
    }
  }
  if (!made) pd = describe(dnnl::algorithm::convolution_direct);
  State::Primitive p;
  p.primitive = dnnl::convolution_forward(pd);
  p.src = s.at(src_desc, src);
  p.dst = s.at(dst_desc, dst);
  p.weights = s.prepare(plain, joined.factor > 1 ? joined.weights.data() : weights, pd.weights_desc());
  if (bias) p.bias = s.at(bias_desc, bias);
  s.finish(std::move(p), pd, c.posts);
}

void Library::add(const MatrixProduct& m, const void* src, const void* weights, const void* bias, void* dst) {
  State& s = *state_;
  const memory::desc src_desc(dims_of(m.src), kFloat, dims_of(m.src_strides)),
      dst_desc(dims_of(m.dst), kFloat, row_major(m.dst));
  const memory::desc given(dims_of(m.weights), kFloat, dims_of(m.weight_strides));
  const memory::desc weight_desc = m.constant_weights ? memory::desc(dims_of(m.weights), kFloat, Tag::any) : given;
  memory::desc bias_desc;
  if (bias) {
    std::vector<int64_t> bd(m.dst.size(), 1);
    bd.back() = m.dst.back();
    bias_desc = memory::desc(dims_of(bd), kFloat, row_major(bd));
  }
  const dnnl::primitive_attr attr = attributes(m.posts, dst_desc);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc pd(s.engine, src_desc, weight_desc, bias_desc, dst_desc, attr);
#else
  const dnnl::matmul::desc d = bias ? dnnl::matmul::desc(src_desc, weight_desc, bias_desc, dst_desc)
                                    : dnnl::matmul::desc(src_desc, weight_desc, dst_desc);
  const dnnl::matmul::primitive_desc pd(d, attr, s.engine);
#endif
  State::Primitive p;
  p.primitive = dnnl::matmul(pd);
  p.src = s.at(src_desc, src);
  p.dst = s.at(dst_desc, dst);
  p.weights = m.constant_weights ? s.prepare(given, weights, pd.weights_desc()) : s.at(given, weights);
  if (bias) p.bias = s.at(bias_desc, bias);
  s.finish(std::move(p), pd, m.posts);
}

void Library::add_nothing() { state_->primitives.emplace_back(); }

void Library::finish() {
  State& s = *state_;
  size_t most = 0;
  for (State::Primitive& p : s.primitives)
    if (p.primitive) most = std::max(most, p.scratch_desc.get_size());
  s.scratch = std::make_unique<Block>(most);
  for (State::Primitive& p : s.primitives) {
    if (!p.primitive) continue;
    auto put = [&p](int arg, const memory& m) {
      if (m) p.args.push_back({arg, m.get()});
    };
    put(DNNL_ARG_SRC, p.src);
    put(DNNL_ARG_WEIGHTS, p.weights);
    put(DNNL_ARG_BIAS, p.bias);
    put(DNNL_ARG_DST, p.dst);
    for (auto& [arg, m] : p.posts) put(arg, m);
    if (p.scratch_desc.get_size() > 0) {
      p.scratch = s.at(p.scratch_desc, s.scratch->data());
      put(DNNL_ARG_SCRATCHPAD, p.scratch);
    }
  }
}

void Library::bind(size_t primitive, const void* src, const void* weights, void* dst) {
  State::Primitive& p = state_->primitives[primitive];
  if (src) p.src.set_data_handle(const_cast<void*>(src));
  if (weights) p.weights.set_data_handle(const_cast<void*>(weights));
  if (dst) p.dst.set_data_handle(dst);
}

void Library::bind_post(size_t primitive, int post, const void* operand) {
  for (auto& [arg, m] : state_->primitives[primitive].posts)
    if (arg == (DNNL_ARG_ATTR_MULTIPLE_POST_OP(post) | DNNL_ARG_SRC_1)) m.set_data_handle(const_cast<void*>(operand));
}

void Library::run(size_t primitive) {
  State::Primitive& p = state_->primitives[primitive];
  if (!p.primitive) throw std::runtime_error("oneDNN has no such primitive");
  const dnnl_status_t status =
      dnnl_primitive_execute(p.primitive.get(), state_->stream.get(), static_cast<int>(p.args.size()), p.args.data());
  if (status != dnnl_success) throw std::runtime_error("oneDNN: primitive " + std::to_string(primitive) + " failed");
}

}  // namespace gopt_runtime
