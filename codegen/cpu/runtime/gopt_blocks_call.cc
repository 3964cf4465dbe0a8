// Convolutions of images in blocks of channels.
#include "gopt_primitives.h"

namespace gopt_runtime {
namespace {

// Forms of weights are told apart by the width of panels and by blocks, beside those of other kernels.
int64_t way_of_blocks(int64_t block) { return -1000 * block - BlockConvolution::panel_channels(); }

}  // namespace

bool Library::add_blocks(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst,
                         int own_threads) {
  const int64_t block = block_of(c.src_order);
  if (block == 1 || c.dst_order != c.src_order || !BlockConvolution::takes_blocks_of(block)) return false;
  if (!c.constant_weights || c.transposed || c.groups != 1) return false;
  if (c.operands != Element::Float || c.result != Element::Float) return false;
  State& s = *state_;
  Primitive p(own_threads);
  BlocksCall own{BlockConvolution(planar_shape(c), block, c.posts, own_threads), {}, {}, {}, {}, {}, {}};
  const memory::desc to = image_desc(c.dst, c.dst_order);
  own.src = s.view(p.src, image_desc(c.src, c.src_order), src);
  own.dst = s.view(p.dst, to, dst);
  own.posts = s.operands(p, c.posts, to, to);
  own.packed = s.packed_as(weights, dense_desc(c.weights), Library::State::floats(own.convolution.packed_floats()),
                           way_of_blocks(block), [&](memory& packed) {
                             own.convolution.pack(static_cast<const float*>(weights),
                                                  static_cast<float*>(packed.get_data_handle()));
                           });
  own.scratch = s.temporary(p, Library::State::floats(own.convolution.scratch_floats()));
  if (bias) own.bias = s.at(Library::State::floats(static_cast<size_t>(c.dst[1])), bias);
  p.blocks = std::make_unique<BlocksCall>(std::move(own));
  s.primitives.push_back(std::move(p));
  return true;
}

}  // namespace gopt_runtime
