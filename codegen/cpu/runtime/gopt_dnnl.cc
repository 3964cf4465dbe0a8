#include "gopt_dnnl.h"

#include <omp.h>

#include <algorithm>
#include <cstring>
#include <oneapi/dnnl/dnnl.hpp>
#include <stdexcept>
#include <string>

#include "gopt_convolution.h"
#include "gopt_memory.h"
#include "gopt_planar.h"
#include "gopt_rows.h"

namespace gopt_runtime {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;
constexpr auto kFloat = memory::data_type::f32;

memory::dims dims_of(const std::vector<int64_t>& v) { return memory::dims(v.begin(), v.end()); }

// Threads that share a primitive: one alone where waking the others, some 50 us, costs more than they save.
constexpr double kSharedWork = 2e6, kSharedFloats = 1e5;  // multiplications, elements of all tensors

double elements(const std::vector<int64_t>& dims) {
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(d);
  return n;
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

// A product of a few rows in loops of our own.
struct RowsCall {
  RowsProduct product;
  memory src, bias, dst, packed;
  std::vector<std::pair<int, memory>> posts;
};

struct Primitive {
  explicit Primitive(int shared_by) : threads(shared_by) {}
  int threads;
  bool is_nothing = false;                    // its result has no elements
  std::vector<memory> src, weights, dst;      // views of what is bound
  std::vector<std::pair<int, memory>> posts;  // views of the operand of the post of this number
  std::vector<Step> before;
  std::unique_ptr<PlanarCall> planar;
  std::unique_ptr<RowsCall> rows;
  std::vector<Step> after;
  std::vector<memory> temporaries;  // placed in the scratch memory by finish()
};

// Weights as they lie in the file and what was made of them. `way`: how, where that is not by the descriptions alone.
struct PackedForm {
  const void* weights;
  memory::desc have, want;
  int64_t way;
  std::unique_ptr<Block> block;
};

}  // namespace

struct PackedWeights::State {
  std::vector<PackedForm> forms;
};

PackedWeights::PackedWeights() : state_(std::make_unique<State>()) {}
PackedWeights::~PackedWeights() = default;

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
  memory packed_as(const void* weights, const memory::desc& have, const memory::desc& want, int64_t way, Pack pack) {
    for (const PackedForm& form : packed.forms)
      if (form.weights == weights && form.way == way && form.have == have && form.want == want)
        return at(want, form.block->data());
    auto block = std::make_unique<Block>(want.get_size());
    memory to = at(want, block->data());
    pack(to);
    packed.forms.push_back({weights, have, want, way, std::move(block)});
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

  void add_empty() {
    primitives.emplace_back(1);
    primitives.back().is_nothing = true;
  }

  static memory::desc floats(size_t count) { return {{static_cast<int64_t>(count)}, kFloat, Tag::x}; }

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
      memory given = at(whole ? have : dense_desc(posts[i].dims), posts[i].operand);
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

  // Constant weights in the primitive's own form, others to be converted before each run.
  memory weights_for(Primitive& p, const Convolution& c, const MadeConvolution& made, const void* weights) {
    if (!c.constant_weights) return converted(p, view(p.weights, made.weights, weights), made.pd.weights_desc());
    return packed_as(weights, made.weights, made.pd.weights_desc(), 0, [&](memory& to) {
      const std::vector<float> changed = form_weights(c, made.form, static_cast<const float*>(weights));
      reorder_now(at(made.weights, changed.empty() ? weights : changed.data()), to);
    });
  }

  memory bias_for(const Convolution& c, const MadeConvolution& made, const void* bias) {
    const int64_t count = made.form.groups * made.form.out;
    const memory::desc desc({count}, kFloat, Tag::x);
    if (!bias || count == c.dst[1]) return bias ? at(desc, bias) : memory();
    memory padded = keep(desc);  // zeroed
    std::memcpy(padded.get_data_handle(), bias, static_cast<size_t>(c.dst[1]) * sizeof(float));
    return padded;
  }

  void add_call(const Convolution& c, const MadeConvolution& made, const void* src, const void* weights,
                const void* bias, void* dst, int own_threads) {
    Primitive p(own_threads);
    const memory::desc given = image_desc(made.dst_dims, c.dst_order);
    memory from = converted(p, view(p.src, image_desc(made.src_dims, c.src_order), src), made.src);
    const auto added = operands(p, c.posts, given, made.dst);
    memory to = destination(p, view(p.dst, given, dst), made.dst, c.posts);
    p.before.push_back(call(p, dnnl::convolution_forward(made.pd), made.pd, from, weights_for(p, c, made, weights),
                            bias_for(c, made, bias), to, added));
    primitives.push_back(std::move(p));
  }

  void add_planar(const Convolution& c, PlanarConvolution planar, const void* src, const void* weights,
                  const void* bias, void* dst, int own_threads) {
    Primitive p(own_threads);
    const memory::desc given = image_desc(c.dst, c.dst_order), plain = image_desc(c.dst, Order::Plain);
    PlanarCall own{std::move(planar), {}, {}, {}, {}, {}, {}, !c.constant_weights, {}};
    own.src = converted(p, view(p.src, image_desc(c.src, c.src_order), src), image_desc(c.src, Order::Plain));
    own.posts = operands(p, c.posts, given, plain);
    own.dst = destination(p, view(p.dst, given, dst), plain, c.posts);
    own.weights = view(p.weights, dense_desc(c.weights), weights);
    own.packed =
        own.packs ? temporary(p, floats(own.planar.packed_floats())) : keep(floats(own.planar.packed_floats()));
    if (!own.packs)
      own.planar.pack(static_cast<const float*>(weights), static_cast<float*>(own.packed.get_data_handle()));
    own.scratch = temporary(p, floats(own.planar.scratch_floats()));
    if (bias) own.bias = at(floats(static_cast<size_t>(c.dst[1])), bias);
    p.planar = std::make_unique<PlanarCall>(std::move(own));
    primitives.push_back(std::move(p));
  }
};

Library::Library(int threads, PackedWeights& packed)
    : state_(std::make_unique<State>(threads > 0 ? threads : omp_get_max_threads(), *packed.state_)) {
  omp_set_num_threads(state_->threads);
}
Library::~Library() = default;

void Library::add(const Convolution& c, const void* src, const void* weights, const void* bias, void* dst) {
  State& s = *state_;
  if (elements(c.dst) == 0) return s.add_empty();
  const auto make = [&](Order from, Order to, bool winograd) {
    return make_convolution(s.engine, c, from, to, bias != nullptr, winograd);
  };
  const double taps = elements(c.weights) / static_cast<double>(c.weights[0] * c.weights[1]);
  const double work = elements(c.transposed ? c.src : c.dst) * static_cast<double>(c.weights[1]) * taps;
  const int threads = s.threads_for(work, elements(c.src) + elements(c.dst) + elements(c.weights));
  const ThreadScope scope(threads, s.threads);
  PlanarConvolution planar(planar_shape(c), c.posts, threads);
  std::optional<MadeConvolution> made;
  Method method = c.method;
  if (method == Method::Winograd) made = make(c.src_order, c.dst_order, true);
  if (!made && (method == Method::Winograd || method == Method::Direct)) {
    made = make(c.src_order, c.dst_order, false);
    if (!made) method = best_conversion(c, planar);
  }
  if (!made && method == Method::ChannelsLast) made = make(Order::ChannelsLast, Order::ChannelsLast, false);
  if (made)
    s.add_call(c, *made, src, weights, bias, dst, threads);
  else
    s.add_planar(c, std::move(planar), src, weights, bias, dst, threads);
}

void Library::add(const Pooling& pooling, const void* src, void* dst) {
  State& s = *state_;
  if (elements(pooling.dst) == 0) return s.add_empty();
  const int threads =
      s.threads_for(elements(pooling.dst) * elements(pooling.kernel), elements(pooling.src) + elements(pooling.dst));
  Primitive p(threads);
  PlanarCall call{planar_pooling(pooling, threads), {}, {}, {}, {}, {}, {}, false, {}};
  call.src = s.view(p.src, dense_desc(pooling.src), src);
  call.dst = s.view(p.dst, dense_desc(pooling.dst), dst);
  call.scratch = s.temporary(p, s.floats(call.planar.scratch_floats()));
  p.planar = std::make_unique<PlanarCall>(std::move(call));
  s.primitives.push_back(std::move(p));
}

void Library::add(const MatrixProduct& m, const void* src, const void* weights, const void* bias, void* dst) {
  State& s = *state_;
  if (elements(m.dst) == 0) return s.add_empty();
  if (m.src.back() == 0) throw std::runtime_error("a product of matrices without columns");
  const int threads = s.threads_for(elements(m.dst) * static_cast<double>(m.src.back()),
                                    elements(m.src) + elements(m.weights) + elements(m.dst));
  if (m.few_rows) return add_few_rows(m, src, weights, bias, dst, threads);
  const ThreadScope scope(threads, s.threads);
  const memory::desc src_desc(dims_of(m.src), kFloat, dims_of(m.src_strides)), dst_desc = dense_desc(m.dst);
  const memory::desc given(dims_of(m.weights), kFloat, dims_of(m.weight_strides));
  const memory::desc weight_desc = m.constant_weights ? memory::desc(dims_of(m.weights), kFloat, Tag::any) : given;
  memory::desc bias_desc;
  if (bias) {
    std::vector<int64_t> bd(m.dst.size(), 1);
    bd.back() = m.dst.back();
    bias_desc = dense_desc(bd);
  }
  const dnnl::primitive_attr attr = post_attributes(m.posts, dst_desc);
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::matmul::primitive_desc pd(s.engine, src_desc, weight_desc, bias_desc, dst_desc, attr);
#else
  const dnnl::matmul::desc d = bias ? dnnl::matmul::desc(src_desc, weight_desc, bias_desc, dst_desc)
                                    : dnnl::matmul::desc(src_desc, weight_desc, dst_desc);
  const dnnl::matmul::primitive_desc pd(d, attr, s.engine);
#endif
  Primitive p(threads);
  memory from = s.view(p.src, src_desc, src), to = s.view(p.dst, dst_desc, dst);
  memory by = m.constant_weights ? s.packed_as(weights, given, pd.weights_desc(), 0,
                                               [&](memory& to) { s.reorder_now(s.at(given, weights), to); })
                                 : s.view(p.weights, given, weights);
  const auto added = s.operands(p, m.posts, dst_desc, dst_desc);
  p.before.push_back(s.call(p, dnnl::matmul(pd), pd, from, by, bias ? s.at(bias_desc, bias) : memory(), to, added));
  s.primitives.push_back(std::move(p));
}

void Library::add_few_rows(const MatrixProduct& m, const void* src, const void* weights, const void* bias, void* dst,
                           int own_threads) {
  State& s = *state_;
  Primitive p(own_threads);
  RowsCall own{RowsProduct(m.src[0], m.src[1], m.dst[1], m.posts, own_threads), {}, {}, {}, {}, {}};
  own.src = s.view(p.src, dense_desc(m.src), src);
  own.dst = s.view(p.dst, dense_desc(m.dst), dst);
  own.posts = s.operands(p, m.posts, dense_desc(m.dst), dense_desc(m.dst));
  const memory::desc given(dims_of(m.weights), kFloat, dims_of(m.weight_strides));
  own.packed = s.packed_as(weights, given, State::floats(own.product.packed_floats()), own.product.panel_columns(),
                           [&](memory& to) {
                             own.product.pack(static_cast<const float*>(weights), m.weight_strides[0],
                                              m.weight_strides[1], static_cast<float*>(to.get_data_handle()));
                           });
  if (bias) own.bias = s.at(State::floats(static_cast<size_t>(m.dst[1])), bias);
  p.rows = std::make_unique<RowsCall>(std::move(own));
  s.primitives.push_back(std::move(p));
}

void Library::add_nothing() { state_->primitives.emplace_back(1); }

void Library::finish() {
  State& s = *state_;
  const auto rounded = [](const memory& m) { return (m.get_desc().get_size() + 63) / 64 * 64; };
  size_t most = 0;
  for (const Primitive& p : s.primitives) {
    size_t size = 0;
    for (const memory& m : p.temporaries) size += rounded(m);
    most = std::max(most, size);
  }
  s.scratch.grow(most);
  for (Primitive& p : s.primitives) {
    char* next = s.scratch.data();
    for (memory& m : p.temporaries) {
      m.set_data_handle(next);
      next += rounded(m);
    }
    for (std::vector<Step>* steps : {&p.before, &p.after})
      for (Step& step : *steps)
        for (auto& [argument, m] : step.memories) step.arguments.push_back({argument, m.get()});
  }
}

void Library::clear() {
  state_->primitives.clear();
  state_->blocks.clear();
}

void Library::bind(size_t primitive, const void* src, const void* weights, void* dst) {
  Primitive& p = state_->primitives[primitive];
  const auto put = [](std::vector<memory>& views, const void* data) {
    if (data)
      for (memory& view : views) view.set_data_handle(const_cast<void*>(data));
  };
  put(p.src, src);
  put(p.weights, weights);
  put(p.dst, dst);
}

void Library::bind_post(size_t primitive, int post, const void* operand) {
  for (auto& [number, view] : state_->primitives[primitive].posts)
    if (number == post) view.set_data_handle(const_cast<void*>(operand));
}

void Library::run(size_t primitive) {
  State& s = *state_;
  Primitive& p = s.primitives[primitive];
  if (p.is_nothing) return;
  if (p.before.empty() && !p.planar && !p.rows) throw std::runtime_error("oneDNN has no such primitive");
  const ThreadScope scope(p.threads, s.threads);
  for (const Step& step : p.before) s.execute(step);
  const auto data = [](const memory& m) { return m ? static_cast<float*>(m.get_data_handle()) : nullptr; };
  if (p.rows) {
    RowsCall& call = *p.rows;
    for (const auto& [number, operand] : call.posts) call.product.bind_post(number, operand.get_data_handle());
    call.product.run(data(call.src), data(call.packed), data(call.bias), data(call.dst));
  }
  if (p.planar) {
    PlanarCall& call = *p.planar;
    for (const auto& [number, operand] : call.posts) call.planar.bind_post(number, operand.get_data_handle());
    if (call.packs) call.planar.pack(data(call.weights), data(call.packed));
    call.planar.run(data(call.src), data(call.packed), data(call.bias), data(call.dst), data(call.scratch));
  }
  for (const Step& step : p.after) s.execute(step);
}

}  // namespace gopt_runtime
