#include "gopt_dnnl.h"

#include <stdexcept>

#include "gopt_primitives.h"
#include "gopt_team.h"
#include "gopt_threads.h"

namespace gopt_runtime {

PackedWeights::PackedWeights() : state_(std::make_unique<State>()) {}
PackedWeights::~PackedWeights() = default;

Library::Library(int threads, PackedWeights& packed)
    : state_(std::make_unique<State>(thread_count(threads), *packed.state_)) {
  omp_set_num_threads(state_->threads);
}
Library::~Library() = default;

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

namespace {
// Posts: a tensor that is added, and the source's zero point.
void run_integers(const IntegerImages& own, const std::vector<std::pair<int, memory>>& posts) {
  const void* found[2] = {};
  for (const auto& [number, operand] : posts) found[number] = operand.get_data_handle();
  const void *addend = found[0], *src_zero = found[1];
  const auto at = [](const memory& m, int64_t offset) { return static_cast<char*>(m.get_data_handle()) + offset; };
  for (int64_t image = 0; image < own.images; image++) {
    if (own.packs) own.product.pack(at(own.weights, image * own.weight_bytes), own.strides, at(own.packed, 0));
    own.product.run(at(own.src, image * own.src_bytes), at(own.packed, 0),
                    addend ? static_cast<const char*>(addend) + image * own.dst_bytes : nullptr,
                    at(own.dst, image * own.dst_bytes), at(own.scratch, 0), src_zero);
  }
}
}  // namespace

void Library::forget_weights(size_t primitive) {
  const Primitive& p = state_->primitives[primitive];
  const auto forget = [](const memory& m) {
    if (m) flush_lines(static_cast<const char*>(m.get_data_handle()), m.get_desc().get_size());
  };
  for (const auto* steps : {&p.before, &p.after})
    for (const Step& step : *steps)
      for (const auto& [argument, operand] : step.memories)
        if (argument == DNNL_ARG_WEIGHTS) forget(operand);
  const auto forget_packed = [&](const auto& call) {
    if (call) forget(call->packed);
  };
  if (p.unfolded) forget(p.unfolded->weights);
  forget_packed(p.planar);
  forget_packed(p.rows);
  forget_packed(p.quantized);
  forget_packed(p.panels);
  forget_packed(p.blocks);
  forget_packed(p.winograd);
  forget_packed(p.tiles);
  forget_packed(p.integers);
  forget_packed(p.recurrence);
}

// oneDNN's own threads are OpenMP's, which another region would keep from it.
int Library::way_of(size_t primitive) const {
  const Primitive& p = state_->primitives[primitive];
  if (p.threads == 1) return kOneThread;
  return p.before.empty() && p.after.empty() ? kShared : kAlone;
}

void Library::run(size_t primitive) {
  State& s = *state_;
  Primitive& p = s.primitives[primitive];
  if (p.is_nothing) return;
  if (p.before.empty() && !p.planar && !p.unfolded && !p.pooling && !p.rows && !p.quantized && !p.panels && !p.blocks &&
      !p.winograd && !p.integers && !p.tiles && !p.attention && !p.attention_tiles)
    throw std::runtime_error("oneDNN has no such primitive");
  const ThreadScope scope(p.threads, s.threads);
  for (const SplitCall& call : p.splits)
    split(call.side, static_cast<const float*>(call.from.get_data_handle()),
          static_cast<uint16_t*>(call.to.get_data_handle()), call.runs, call.length, p.threads);
  for (const Step& step : p.before) s.execute(step);
  const auto data = [](const memory& m) { return m ? static_cast<float*>(m.get_data_handle()) : nullptr; };
  if (p.rows) {
    RowsCall& call = *p.rows;
    for (const auto& [number, operand] : call.posts) call.product.bind_post(number, operand.get_data_handle());
    call.product.run(data(call.src), data(call.packed), data(call.bias), data(call.dst));
  }
  const auto run_product = [&](auto& call) {
    for (const auto& [number, operand] : call.posts) call.product.bind_post(number, operand.get_data_handle());
    call.product.run(data(call.src), data(call.packed), data(call.bias), data(call.dst), data(call.scratch));
  };
  if (p.quantized) run_product(*p.quantized);
  if (p.panels) run_product(*p.panels);
  const auto run_blocks = [&](auto& call) {
    for (const auto& [number, operand] : call.posts) call.convolution.bind_post(number, operand.get_data_handle());
    call.convolution.run(data(call.src), data(call.packed), data(call.bias), data(call.dst), data(call.scratch));
  };
  if (p.blocks) run_blocks(*p.blocks);
  if (p.winograd) run_blocks(*p.winograd);
  if (p.tiles) {
    TilesCall& call = *p.tiles;
    for (const auto& [number, operand] : call.posts) call.tiles.bind_post(number, operand.get_data_handle());
    call.tiles.run(data(call.src), data(call.packed), data(call.bias), data(call.dst), data(call.scratch));
  }
  if (p.planar) {
    PlanarCall& call = *p.planar;
    for (const auto& [number, operand] : call.posts) call.planar.bind_post(number, operand.get_data_handle());
    if (call.packs) call.planar.pack(data(call.weights), data(call.packed));
    call.planar.run(data(call.src), data(call.packed), data(call.bias), data(call.dst), data(call.scratch));
  }
  if (p.unfolded) {
    UnfoldedCall& call = *p.unfolded;
    for (const auto& [number, operand] : call.posts) call.unfolded.bind_post(number, operand.get_data_handle());
    call.unfolded.run(data(call.src), data(call.weights), data(call.bias), data(call.dst), data(call.scratch));
  }
  if (p.pooling) p.pooling->pooling.run(data(p.pooling->src), data(p.pooling->dst), data(p.pooling->scratch));
  if (p.attention) {
    const auto& call = *p.attention;
    const void* choice = call.choice ? call.choice.get_data_handle() : nullptr;
    call.attention.run({data(call.query), data(call.key), data(call.value), data(call.mask), data(call.bias),
                        static_cast<const uint8_t*>(choice), data(call.result)},
                       data(call.scratch));
  }
  if (p.attention_tiles) {
    const auto& call = *p.attention_tiles;
    call.attention.run(data(call.query), data(call.key), data(call.value), data(call.mask), data(call.result),
                       data(call.scratch));
  }
  if (p.integers) run_integers(*p.integers, p.posts);
  for (const Step& step : p.after) s.execute(step);
}

}  // namespace gopt_runtime
