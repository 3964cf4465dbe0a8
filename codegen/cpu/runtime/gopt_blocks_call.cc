// Convolutions of images in blocks of channels: by taps, and by Winograd's algorithm.
#include "gopt_primitives.h"

namespace gopt_runtime {
namespace {

// Forms of weights are told apart by the order in which a kernel reads them, beside those of other kernels.
int64_t way_of(const BlockConvolution& convolution) {
  return -1 - static_cast<int64_t>(convolution.order_of_weights() >> 2);
}
int64_t way_of(const WinogradConvolution& convolution) {
  return -1000 * (100 + convolution.block()) - WinogradConvolution::panel_channels();
}

bool has_blocks(const Convolution& c) {
  return block_of(c.src_order) > 1 && c.dst_order == c.src_order && c.constant_weights && c.groups == 1 &&
         c.operands == c.result;
}

template <class Kernel>
std::unique_ptr<BlocksCall<Kernel>> call_of(Kernel kernel, Library::State& s, Primitive& p, const Convolution& c,
                                            const void* src, const void* weights, const void* bias, void* dst) {
  BlocksCall<Kernel> own{std::move(kernel), {}, {}, {}, {}, {}, {}};
  const memory::desc to = image_desc(c.dst, c.dst_order, c.result);
  own.src = s.view(p.src, image_desc(c.src, c.src_order, c.operands), src);
  own.dst = s.view(p.dst, to, dst);
  own.posts = s.operands(p, c.posts, to, to);
  own.packed =
      s.packed_as(weights, dense_desc(c.weights, c.operands), Library::State::floats(own.convolution.packed_floats()),
                  {way_of(own.convolution)}, [&](memory& packed) {
                    const std::vector<float> wide = floats_of(c, weights);
                    own.convolution.pack(wide.empty() ? static_cast<const float*>(weights) : wide.data(),
                                         static_cast<float*>(packed.get_data_handle()));
                  });
  own.scratch = s.temporary(p, Library::State::floats(own.convolution.scratch_floats()));
  if (bias) own.bias = s.at(Library::State::floats(static_cast<size_t>(c.dst[1])), bias);
  return std::make_unique<BlocksCall<Kernel>>(std::move(own));
}

}  // namespace

bool Library::add_blocks(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst,
                         int own_threads) {
  const int64_t block = block_of(c.src_order);
  if (!has_blocks(c) || c.operands != Element::Float || !BlockConvolution::takes_blocks_of(block)) return false;
  Primitive p(own_threads);
  BlockConvolution kernel(planar_shape(c), block, c.posts, own_threads);
  p.blocks = call_of(std::move(kernel), *state_, p, c, src, weights, bias, dst);
  state_->primitives.push_back(std::move(p));
  return true;
}

bool Library::add_winograd(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst,
                           int own_threads) {
  const int64_t block = block_of(c.src_order);
  if (!has_blocks(c) || !WinogradConvolution::takes(planar_shape(c), block)) return false;
  Primitive p(own_threads);
  WinogradConvolution kernel(planar_shape(c), block, c.posts, own_threads, c.operands);
  p.winograd = call_of(std::move(kernel), *state_, p, c, src, weights, bias, dst);
  state_->primitives.push_back(std::move(p));
  return true;
}

}  // namespace gopt_runtime
