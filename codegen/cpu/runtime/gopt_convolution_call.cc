// How a convolution is computed: in the arithmetic that is asked for where there is fast code for it, by oneDNN or in
// loops over planes, its tensors converted where they lie otherwise or are of another type.
#include <algorithm>
#include <cstring>
#include <optional>

#include "gopt_primitives.h"

namespace gopt_runtime {
namespace {

// As it is given to oneDNN: in another arithmetic than its tensors, in parts.
struct Computed {
  Convolution c;
  MadeConvolution made;
};

class ConvolutionAdder {
 public:
  ConvolutionAdder(Library::State& state, const Convolution& c, int threads) : s_(state), c_(c), p_(threads) {}

  void add_call(const Computed& computed, const void* src, const void* weights, const void* bias, void* dst) {
    const MadeConvolution& made = computed.made;
    const memory::desc given = image_desc(made.dst_dims, c_.dst_order, c_.result);
    const memory from = source(computed, src);
    const auto added = s_.operands(p_, c_.posts, given, made.dst);
    const memory to = s_.destination(p_, s_.view(p_.dst, given, dst), made.dst, c_.posts);
    p_.before.push_back(s_.call(p_, dnnl::convolution_forward(made.pd), made.pd, from, weights_for(computed, weights),
                                bias_for(made, bias), to, added));
    s_.primitives.push_back(std::move(p_));
  }

  void add_planar(PlanarConvolution planar, const void* src, const void* weights, const void* bias, void* dst) {
    const memory::desc given = image_desc(c_.dst, c_.dst_order, c_.result), plain = image_desc(c_.dst, Order::Plain);
    PlanarCall own{std::move(planar), {}, {}, {}, {}, {}, {}, !c_.constant_weights, {}};
    own.src = s_.converted(p_, s_.view(p_.src, image_desc(c_.src, c_.src_order, c_.operands), src),
                           image_desc(c_.src, Order::Plain));
    own.posts = s_.operands(p_, c_.posts, given, plain);
    own.dst = s_.destination(p_, s_.view(p_.dst, given, dst), plain, c_.posts);
    const size_t packed = own.planar.packed_floats();
    if (own.packs) {
      own.weights =
          s_.converted(p_, s_.view(p_.weights, dense_desc(c_.weights, c_.operands), weights), dense_desc(c_.weights));
      own.packed = s_.temporary(p_, Library::State::floats(packed));
    } else {
      const std::vector<float> wide = floats_of(c_, weights);
      own.packed = s_.keep(Library::State::floats(packed));
      own.planar.pack(wide.empty() ? static_cast<const float*>(weights) : wide.data(),
                      static_cast<float*>(own.packed.get_data_handle()));
    }
    own.scratch = s_.temporary(p_, Library::State::floats(own.planar.scratch_floats()));
    if (bias) own.bias = s_.at(Library::State::floats(static_cast<size_t>(c_.dst[1])), bias);
    p_.planar = std::make_unique<PlanarCall>(std::move(own));
    s_.primitives.push_back(std::move(p_));
  }

  void add_unfolded(UnfoldedConvolution unfolded, const void* src, const void* weights, const void* bias, void* dst) {
    const memory::desc given = image_desc(c_.dst, c_.dst_order, c_.result), plain = image_desc(c_.dst, Order::Plain);
    UnfoldedCall own{std::move(unfolded), {}, {}, {}, {}, {}, {}};
    own.src = s_.converted(p_, s_.view(p_.src, image_desc(c_.src, c_.src_order, c_.operands), src),
                           image_desc(c_.src, Order::Plain));
    own.posts = s_.operands(p_, c_.posts, given, plain);
    own.dst = s_.destination(p_, s_.view(p_.dst, given, dst), plain, c_.posts);
    const std::vector<float> wide = c_.constant_weights ? floats_of(c_, weights) : std::vector<float>();
    if (!c_.constant_weights) {
      own.weights =
          s_.converted(p_, s_.view(p_.weights, dense_desc(c_.weights, c_.operands), weights), dense_desc(c_.weights));
    } else if (wide.empty()) {
      own.weights = s_.at(dense_desc(c_.weights), weights);
    } else {
      own.weights = s_.keep(dense_desc(c_.weights));
      std::copy(wide.begin(), wide.end(), static_cast<float*>(own.weights.get_data_handle()));
    }
    own.scratch = s_.temporary(p_, Library::State::floats(own.unfolded.scratch_floats()));
    if (bias) own.bias = s_.at(Library::State::floats(static_cast<size_t>(c_.dst[1])), bias);
    p_.unfolded = std::make_unique<UnfoldedCall>(std::move(own));
    s_.primitives.push_back(std::move(p_));
  }

 private:
  memory source(const Computed& computed, const void* src) {
    const MadeConvolution& made = computed.made;
    if (!is_in_parts(computed))
      return s_.converted(p_, s_.view(p_.src, image_desc(made.src_dims, c_.src_order, c_.operands), src), made.src);
    std::vector<int64_t> dims = made.src_dims;  // blocks of channels are filled
    dims[1] /= 3;
    int64_t runs = dims[0] * c_.groups;
    if (c_.src_order == Order::ChannelsLast)
      for (size_t d = 2; d < dims.size(); d++) runs *= dims[d];
    const memory given = s_.view(p_.src, image_desc(dims, c_.src_order), src);
    const memory::desc parts = image_desc(made.src_dims, c_.src_order, Element::BFloat16);
    return s_.converted(p_, s_.split_before(p_, Side::Left, given, parts, runs), made.src);
  }

  bool is_in_parts(const Computed& computed) const { return computed.c.src[1] != c_.src[1]; }

  // Constant weights in the primitive's own form, others to be converted before each run.
  memory weights_for(const Computed& computed, const void* weights) {
    const MadeConvolution& made = computed.made;
    if (!c_.constant_weights) {
      const memory::desc given = dense_desc(made.weight_dims, c_.operands);
      return s_.converted(p_, s_.view(p_.weights, given, weights), made.pd.weights_desc());
    }
    return s_.packed_as(weights, made.weights, made.pd.weights_desc(), {0}, [&](memory& to) {
      std::vector<float> floats = floats_of(c_, weights);
      if (is_in_parts(computed)) floats = weights_in_parts(c_, static_cast<const float*>(weights));
      const void* own = floats.empty() ? weights : floats.data();
      const std::vector<float> changed = form_weights(computed.c, made.form, static_cast<const float*>(own));
      s_.reorder_now(s_.at(made.weights, changed.empty() ? own : changed.data()), to);
    });
  }

  memory bias_for(const MadeConvolution& made, const void* bias) {
    const int64_t count = made.form.groups * made.form.out;
    const memory::desc desc({count}, kFloat, Tag::x);
    if (!bias || count == c_.dst[1]) return bias ? s_.at(desc, bias) : memory();
    memory padded = s_.keep(desc);  // zeroed
    std::memcpy(padded.get_data_handle(), bias, static_cast<size_t>(c_.dst[1]) * sizeof(float));
    return padded;
  }

  Library::State& s_;
  const Convolution& c_;
  Primitive p_;
};

// By the method that is asked for; nothing where that comes to loops over planes.
std::optional<Computed> by_method(const dnnl::engine& engine, const Convolution& c, const PlanarConvolution& planar,
                                  bool bias) {
  const auto attempt = [&](Order from, Order to) -> std::optional<Computed> {
    auto made = make_convolution(engine, c, from, to, bias);
    return made ? std::optional(Computed{c, *std::move(made)}) : std::nullopt;
  };
  std::optional<Computed> found;
  Method method = c.method;
  // What panels, blocks and Winograd's algorithm are not for is computed directly.
  const bool is_direct =
      method == Method::Winograd || method == Method::Direct || method == Method::Panels || method == Method::Blocks;
  if (is_direct) {
    found = attempt(c.src_order, c.dst_order);
    if (!found) method = best_conversion(c, planar);
  }
  if (!found && method == Method::ChannelsLast) found = attempt(Order::ChannelsLast, Order::ChannelsLast);
  return found;
}

std::optional<Computed> by_arithmetic(const dnnl::engine& engine, const Convolution& c, const PlanarConvolution& planar,
                                      bool bias) {
  if (c.arithmetic == Arithmetic::Split)
    if (auto found = by_method(engine, in_parts(c), planar, bias)) return found;
  if (c.arithmetic != Arithmetic::Floats && c.operands != Element::Float)
    if (auto found = by_method(engine, c, planar, bias)) return found;
  return by_method(engine, in_floats(c), planar, bias);
}

// A transposed convolution in steps of one is a convolution, its kernel turned over and its padding what the kernel
// reaches beyond its own.
std::optional<Convolution> as_forward(Convolution c) {
  if (!c.transposed || !c.constant_weights || c.operands != Element::Float) return std::nullopt;
  for (size_t d = 0; d < c.pads.size(); d++) {
    c.pads[d] = (c.weights[2 + d] - 1) * c.dilations[d] - c.pads[d];
    if (c.strides[d] != 1 || c.pads[d] < 0) return std::nullopt;
  }
  c.transposed = false;
  c.weights[0] = c.dst[1];
  c.weights[1] = c.src[1] / c.groups;
  return c;
}

// Weights [in, out / groups, taps...] as [out, in / groups, ...taps].
void turn_over(const Convolution& forward, const float* weights, float* turned) {
  const int64_t in = forward.weights[1], out = forward.weights[0] / forward.groups,
                taps = static_cast<int64_t>(elements(forward.weights)) / (forward.weights[0] * in);
  for (int64_t g = 0; g < forward.groups; g++)
    for (int64_t o = 0; o < out; o++)
      for (int64_t i = 0; i < in; i++, turned += taps)
        std::reverse_copy(weights + ((g * in + i) * out + o) * taps, weights + ((g * in + i) * out + o + 1) * taps,
                          turned);
}

}  // namespace

bool has_empty_windows(const Convolution& c) {
  for (size_t d = 0; d < c.pads.size(); d++) {
    const int64_t last_tap = (c.weights[2 + d] - 1) * c.dilations[d],
                  last_window = (c.dst[2 + d] - 1) * c.strides[d] - c.pads[d];
    if (c.pads[d] > last_tap || last_window >= c.src[2 + d]) return true;
  }
  return false;
}

void Library::add(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst) {
  State& s = *state_;
  if (elements(c.dst) == 0) return s.add_empty();
  if (const auto forward = as_forward(c)) {
    constexpr int64_t kTurned = -1;
    const memory turned =
        s.packed_as(weights, dense_desc(c.weights), dense_desc(forward->weights), {kTurned}, [&](memory& to) {
          turn_over(*forward, static_cast<const float*>(weights), static_cast<float*>(to.get_data_handle()));
        });
    return add(*forward, src, turned.get_data_handle(), bias, dst);
  }
  const double taps = elements(c.weights) / static_cast<double>(c.weights[0] * c.weights[1]);
  const double work = elements(c.transposed ? c.src : c.dst) * static_cast<double>(c.weights[1]) * taps;
  const int threads = s.threads_for(work, elements(c.src) + elements(c.dst) + elements(c.weights));
  if (c.tile_terms != kNoTiles && add_tiles(c, src, weights, bias, dst, threads)) return;
  if (c.method == Method::Panels && add_panels(c, src, weights, bias, dst, threads)) return;
  if (c.method == Method::Blocks && add_blocks(c, src, weights, bias, dst, threads)) return;
  if (c.method == Method::Winograd && add_winograd(c, src, weights, bias, dst, threads)) return;
  const ThreadScope scope(threads, s.threads);
  if (c.method == Method::Unfolded && !c.transposed)
    return ConvolutionAdder(s, c, threads)
        .add_unfolded(UnfoldedConvolution(planar_shape(c), c.posts, threads), src, weights, bias, dst);
  PlanarConvolution planar(planar_shape(c), c.posts, threads);
  // Of oneDNN's kernels some read tables that they did not set up where a window lies in the padding alone.
  const bool is_for_loops = !c.transposed && has_empty_windows(c);
  const auto computed = is_for_loops ? std::nullopt : by_arithmetic(s.engine, c, planar, bias != nullptr);
  ConvolutionAdder adder(s, c, threads);
  if (computed)
    adder.add_call(*computed, src, weights, bias, dst);
  else
    adder.add_planar(std::move(planar), src, weights, bias, dst);
}

void Library::add(const Pooling& pooling, const void* src, void* dst) {
  State& s = *state_;
  if (elements(pooling.dst) == 0) return s.add_empty();
  const int threads =
      s.threads_for(elements(pooling.dst) * elements(pooling.kernel), elements(pooling.src) + elements(pooling.dst));
  Primitive p(threads);
  PoolingCall call{RowPooling(pooling, threads), {}, {}, {}};
  call.src = s.converted(p, s.view(p.src, dense_desc(pooling.src, pooling.element), src), dense_desc(pooling.src));
  call.dst =
      s.destination(p, s.view(p.dst, dense_desc(pooling.dst, pooling.element), dst), dense_desc(pooling.dst), {});
  call.scratch = s.temporary(p, s.floats(call.pooling.scratch_floats()));
  p.pooling = std::make_unique<PoolingCall>(std::move(call));
  s.primitives.push_back(std::move(p));
}

}  // namespace gopt_runtime
