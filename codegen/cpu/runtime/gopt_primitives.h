// What runs a library's primitives: calls of oneDNN and of loops of our own in order, with their operands.
#pragma once

#include <omp.h>

#include <algorithm>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gopt_attention_rows.h"
#include "gopt_attention_tiles.h"
#include "gopt_blocks.h"
#include "gopt_convolution.h"
#include "gopt_dnnl.h"
#include "gopt_memory.h"
#include "gopt_panels.h"
#include "gopt_planar.h"
#include "gopt_pooling.h"
#include "gopt_quantized.h"
#include "gopt_recurrence.h"
#include "gopt_rows.h"
#include "gopt_split.h"
#include "gopt_tiles.h"
#include "gopt_unfolded.h"
#include "gopt_winograd.h"

namespace gopt_runtime {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

inline memory::dims dims_of(const std::vector<int64_t>& v) { return memory::dims(v.begin(), v.end()); }

// Threads that share a primitive: one alone where the others, which are awake as a rule (codegen/loaded_model.cc), come
// and go in the time that they save, a microsecond or two.
constexpr double kSharedWork = 5e5, kSharedFloats = 3e4;  // multiplications, elements of all tensors

// Of the axes from `first` on.
inline int64_t extent_from(const std::vector<int64_t>& dims, size_t first) {
  int64_t n = 1;
  for (size_t d = first; d < dims.size(); d++) n *= dims[d];
  return n;
}

// Of images [batch, channels, axes...].
inline TileOrder tile_order(const std::vector<int64_t>& dims, Order order, Element element) {
  const int64_t channels = dims[1], positions = extent_from(dims, 2);
  switch (order) {
    case Order::Plain: return {channels * positions, 1, 16 * positions, positions, element};
    case Order::ChannelsLast: return {channels * positions, channels, 16, 1, element};
    case Order::Blocked16:
    case Order::Blocked8: break;
  }
  const int64_t block = block_of(order), blocks = (channels + block - 1) / block;
  return {block * blocks * positions, block, block * positions, 1, element, true, block};
}

inline double elements(const std::vector<int64_t>& dims) {
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(d);
  return n;
}

// Weights as floats; empty where they are.
inline std::vector<float> floats_of(const Convolution& c, const void* weights) {
  return widened(c.operands, weights, static_cast<size_t>(elements(c.weights)));
}

// OpenMP's count of threads, which oneDNN asks for, within a scope.
class ThreadScope {
 public:
  ThreadScope(int threads, int usual) : usual_(usual), changed_(threads != usual) {
    if (changed_) omp_set_num_threads(threads);
  }
  ~ThreadScope() {
    if (changed_) omp_set_num_threads(usual_);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int usual_;
  bool changed_;
};

// Floats split into two bfloat16 each (gopt_split.h), from what is bound.
struct SplitCall {
  Side side;
  memory from, to;
  int64_t runs, length;
};

// One call of oneDNN.
struct Step {
  dnnl::primitive primitive;
  std::vector<std::pair<int, memory>> memories;
  std::vector<dnnl_exec_arg_t> arguments;
};

// A convolution in loops of our own, between conversions.
struct PlanarCall {
  PlanarConvolution planar;
  memory src, weights, bias, dst, packed, scratch;
  bool packs;  // before each run: the weights are not constant
  std::vector<std::pair<int, memory>> posts;
};

// The same by products of matrices.
struct UnfoldedCall {
  UnfoldedConvolution unfolded;
  memory src, weights, bias, dst, scratch;
  std::vector<std::pair<int, memory>> posts;
};

struct PoolingCall {
  RowPooling pooling;
  memory src, dst, scratch;
};

template <class Kernel>
struct AttentionCall {
  Kernel attention;
  memory query{}, key{}, value{}, mask{}, bias{}, choice{}, result{}, scratch{};
};

// A product of a few rows in loops of our own.
struct RowsCall {
  RowsProduct product;
  memory src, bias, dst, packed;
  std::vector<std::pair<int, memory>> posts;
};

// A product, or a convolution of one tap, by packed weights.
template <class Product>
struct ProductCall {
  Product product;
  memory src, bias, dst, packed, scratch;
  std::vector<std::pair<int, memory>> posts;
};
using QuantizedCall = ProductCall<QuantizedProduct>;
using PanelsCall = ProductCall<PanelProduct>;

// A convolution of images in blocks of channels.
template <class Kernel>
struct BlocksCall {
  Kernel convolution;
  memory src, bias, dst, packed, scratch;
  std::vector<std::pair<int, memory>> posts;
};

// A convolution or product on tiles.
struct TilesCall {
  TileConvolution tiles;
  memory src, bias, dst, packed, scratch;
  std::vector<std::pair<int, memory>> posts;
};

// A product of integers in loops of our own, for so many images; one has so many bytes.
struct IntegerImages {
  IntegerProduct product;
  WeightStrides strides;
  memory src, weights, dst, packed, scratch;
  bool packs;  // before each run: the weights are not constant
  int64_t images, src_bytes, weight_bytes, dst_bytes;
};

struct RecurrenceCall {
  RecurrenceLoop loop;
  memory packed, scratch;
  bool packs;  // before each run: the weights are not constant
};

struct Primitive {
  explicit Primitive(int shared_by) : threads(shared_by) {}
  int threads;
  bool is_nothing = false;                    // its result has no elements
  std::vector<memory> src, weights, dst;      // views of what is bound
  std::vector<std::pair<int, memory>> posts;  // views of the operand of the post of this number
  std::vector<SplitCall> splits;
  std::vector<Step> before;
  std::unique_ptr<PlanarCall> planar;
  std::unique_ptr<UnfoldedCall> unfolded;
  std::unique_ptr<PoolingCall> pooling;
  std::unique_ptr<RowsCall> rows;
  std::unique_ptr<QuantizedCall> quantized;
  std::unique_ptr<PanelsCall> panels;
  std::unique_ptr<BlocksCall<BlockConvolution>> blocks;
  std::unique_ptr<BlocksCall<WinogradConvolution>> winograd;
  std::unique_ptr<AttentionCall<AttentionRows>> attention;
  std::unique_ptr<AttentionCall<AttentionTiles>> attention_tiles;
  std::unique_ptr<TilesCall> tiles;
  std::unique_ptr<IntegerImages> integers;
  std::unique_ptr<RecurrenceCall> recurrence;
  std::vector<Step> after;
  std::vector<memory> temporaries;  // placed in the scratch memory by finish()
};

// Places one after another, zeroed, in large pages, of which many small blocks would have none.
class PackedMemory {
 public:
  char* take(size_t size) {
    const size_t rounded = (size + 63) / 64 * 64;
    if (rounded > left_) {
      chunks_.push_back(std::make_unique<Reserved>(std::max(rounded, std::clamp(taken_, kLeast, kMost))));
      at_ = chunks_.back()->data();
      left_ = chunks_.back()->size();
    }
    char* taken = at_;
    at_ += rounded;
    left_ -= rounded;
    taken_ += rounded;
    std::memset(taken, 0, rounded);
    return taken;
  }

 private:
  static constexpr size_t kLeast = size_t{64} << 10, kMost = size_t{32} << 20;  // of a chunk
  std::vector<std::unique_ptr<Reserved>> chunks_;
  char* at_ = nullptr;
  size_t left_ = 0, taken_ = 0;
};

// Weights as they lie in the file and what was made of them. `way`: all that this depends on beside the descriptions.
struct PackedForm {
  const void* weights;
  memory::desc have, want;
  std::vector<int64_t> way;
  char* data;
};

struct PackedWeights::State {
  std::vector<PackedForm> forms;
  PackedMemory memory;
};

struct Library::State {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  int threads;
  PackedWeights::State& packed;
  std::vector<Primitive> primitives;
  Block scratch{0};
  std::vector<std::unique_ptr<Block>> blocks;  // biases, and weights of loops over planes

  State(int count, PackedWeights::State& forms) : threads(count), packed(forms) {}

  int threads_for(double work, double floats) const {
    return work < kSharedWork && floats < kSharedFloats ? 1 : threads;
  }

  memory at(const memory::desc& desc, const void* data) { return memory(desc, engine, const_cast<void*>(data)); }

  memory keep(const memory::desc& desc) {
    blocks.push_back(std::make_unique<Block>(desc.get_size()));
    return at(desc, blocks.back()->data());
  }

  // The weights in a form that `pack(to)` makes, the first time.
  template <class Pack>
  memory packed_as(const void* weights, const memory::desc& have, const memory::desc& want,
                   const std::vector<int64_t>& way, const Pack& pack) {
    for (const PackedForm& form : packed.forms)
      if (form.weights == weights && form.way == way && form.have == have && form.want == want)
        return at(want, form.data);
    char* data = packed.memory.take(want.get_size());
    memory to = at(want, data);
    pack(to);
    packed.forms.push_back({weights, have, want, way, data});
    return to;
  }

  void reorder_now(memory from, memory& to) {
    dnnl::reorder(from, to).execute(stream, from, to);
    stream.wait();
  }

  memory temporary(Primitive& p, const memory::desc& desc) {
    p.temporaries.push_back(at(desc, nullptr));
    return p.temporaries.back();
  }

  Step reorder(const memory& from, const memory& to) {
    Step step;
    step.primitive = dnnl::reorder(dnnl::reorder::primitive_desc(engine, from.get_desc(), engine, to.get_desc()));
    step.memories = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    return step;
  }

  // The tensor in another order, converted before each run.
  memory converted(Primitive& p, const memory& have, const memory::desc& want) {
    if (have.get_desc() == want) return have;
    memory to = temporary(p, want);
    p.before.push_back(reorder(have, to));
    return to;
  }

  // The parts of floats that lie in so many runs, made before each run.
  memory split_before(Primitive& p, Side side, const memory& from, const memory::desc& parts, int64_t runs) {
    memory to = temporary(p, parts);
    const auto count = static_cast<int64_t>(from.get_desc().get_size() / sizeof(float));
    p.splits.push_back({side, from, to, runs, count / runs});
    return to;
  }

  void add_empty() {
    primitives.emplace_back(1);
    primitives.back().is_nothing = true;
  }

  static memory::desc floats(size_t count) { return {{static_cast<int64_t>(count)}, kFloat, Tag::x}; }

  static memory::desc bytes(size_t count) { return {{static_cast<int64_t>(count)}, memory::data_type::u8, Tag::x}; }

  memory view(std::vector<memory>& views, const memory::desc& desc, const void* data) {
    views.push_back(at(desc, data));
    return views.back();
  }

  // Operands of the additions, in the order `want` where they have the destination's shape, which are given as `have`.
  std::vector<std::pair<int, memory>> operands(Primitive& p, const std::vector<Post>& posts, const memory::desc& have,
                                               const memory::desc& want) {
    std::vector<std::pair<int, memory>> found;
    for (size_t i = 0; i < posts.size(); i++) {
      if (posts[i].kind != PostKind::Add) continue;
      const bool whole = posts[i].dims.empty();
      memory given = at(whole ? have : dense_desc(posts[i].dims, posts[i].element), posts[i].operand);
      p.posts.emplace_back(static_cast<int>(i), given);
      found.emplace_back(static_cast<int>(i), whole ? converted(p, given, want) : given);
    }
    return found;
  }

  // Where the result is computed: in place, or beside it in another order, to be converted by `after`.
  memory destination(Primitive& p, const memory& given, const memory::desc& want, const std::vector<Post>& posts) {
    if (given.get_desc() == want) return given;
    memory own = temporary(p, want);
    const bool adds =
        std::any_of(posts.begin(), posts.end(), [](const Post& post) { return post.kind == PostKind::Sum; });
    if (adds) p.before.push_back(reorder(given, own));
    p.after.push_back(reorder(own, given));
    return own;
  }

  // The call itself, whose operands lie as it wants them.
  template <class Desc>
  Step call(Primitive& p, const dnnl::primitive& primitive, const Desc& pd, const memory& src, const memory& weights,
            const memory& bias, const memory& dst, const std::vector<std::pair<int, memory>>& posts) {
    Step step;
    step.primitive = primitive;
    step.memories = {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}};
    if (bias) step.memories.emplace_back(DNNL_ARG_BIAS, bias);
    for (const auto& [number, operand] : posts)
      step.memories.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(number) | DNNL_ARG_SRC_1, operand);
    if (pd.scratchpad_desc().get_size() > 0)
      step.memories.emplace_back(DNNL_ARG_SCRATCHPAD, temporary(p, pd.scratchpad_desc()));
    return step;
  }

  void execute(const Step& step) {
    const dnnl_status_t status = dnnl_primitive_execute(step.primitive.get(), stream.get(),
                                                        static_cast<int>(step.arguments.size()), step.arguments.data());
    if (status != dnnl_success) throw std::runtime_error("oneDNN: a primitive failed");
  }
};

}  // namespace gopt_runtime
