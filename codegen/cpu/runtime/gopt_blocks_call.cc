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

bool are_blocks_of_floats(const Convolution& c) {
  return block_of(c.src_order) > 1 && c.dst_order == c.src_order && c.constant_weights && c.groups == 1 &&
         c.operands == Element::Float && c.result == Element::Float;
}

template <class Kernel>
std::unique_ptr<BlocksCall<Kernel>> call_of(Library::State& s, Primitive& p, const Convolution& c, const void* src,
                                            const void* weights, const void* bias, void* dst) {
  const int64_t block = block_of(c.src_order);
  BlocksCall<Kernel> own{Kernel(planar_shape(c), block, c.posts, p.threads), {}, {}, {}, {}, {}, {}};
  const memory::desc to = image_desc(c.dst, c.dst_order);
  own.src = s.view(p.src, image_desc(c.src, c.src_order), src);
  own.dst = s.view(p.dst, to, dst);
  own.posts = s.operands(p, c.posts, to, to);
  own.packed = s.packed_as(weights, dense_desc(c.weights), Library::State::floats(own.convolution.packed_floats()),
                           way_of(own.convolution), [&](memory& packed) {
                             own.convolution.pack(static_cast<const float*>(weights),
                                                  static_cast<float*>(packed.get_data_handle()));
                           });
  own.scratch = s.temporary(p, Library::State::floats(own.convolution.scratch_floats()));
  if (bias) own.bias = s.at(Library::State::floats(static_cast<size_t>(c.dst[1])), bias);
  return std::make_unique<BlocksCall<Kernel>>(std::move(own));
}

}  // namespace

bool Library::add_blocks(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst,
                         int own_threads) {
  if (!are_blocks_of_floats(c) || !BlockConvolution::takes_blocks_of(block_of(c.src_order))) return false;
  Primitive p(own_threads);
  p.blocks = call_of<BlockConvolution>(*state_, p, c, src, weights, bias, dst);
  state_->primitives.push_back(std::move(p));
  return true;
}

bool Library::add_winograd(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst,
                           int own_threads) {
  if (!are_blocks_of_floats(c) || !WinogradConvolution::takes(planar_shape(c), block_of(c.src_order))) return false;
  Primitive p(own_threads);
  p.winograd = call_of<WinogradConvolution>(*state_, p, c, src, weights, bias, dst);
  state_->primitives.push_back(std::move(p));
  return true;
}

}  // namespace gopt_runtime
