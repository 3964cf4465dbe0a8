// Products of matrices by oneDNN, and by loops of our own where they have few rows; attention; recurrences.
#include <string>

#include "gopt_primitives.h"
#include "gopt_vector.h"

namespace gopt_runtime {
namespace {

memory::dims dense_strides(const std::vector<int64_t>& dims) {
  memory::dims strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * dims[d + 1];
  return strides;
}

MatrixProduct in_floats(MatrixProduct m) {
  if (m.operands != Element::Float) m.src_strides = dense_strides(m.src);
  if (m.operands != Element::Float && !m.constant_weights) m.weight_strides = dense_strides(m.weights);
  m.operands = m.result = Element::Float;
  return m;
}

// The same over three times the depth: operands whose parts lie one after another.
MatrixProduct in_parts(MatrixProduct m) {
  m.src.back() *= 3;
  m.weights[m.weights.size() - 2] *= 3;
  m.src_strides = dense_strides(m.src);
  m.weight_strides = dense_strides(m.weights);
  m.operands = Element::BFloat16;
  return m;
}

using Made = dnnl::matmul::primitive_desc;

memory::desc bias_desc(const MatrixProduct& m, bool bias) {
  if (!bias) return {};
  std::vector<int64_t> dims(m.dst.size(), 1);
  dims.back() = m.dst.back();
  return dense_desc(dims);
}

// Errors: dnnl::error where there is no code at all.
Made describe(const dnnl::engine& engine, const MatrixProduct& m, bool bias) {
  const memory::desc src(dims_of(m.src), type_of(m.operands), dims_of(m.src_strides)),
      dst = dense_desc(m.dst, m.result), added = bias_desc(m, bias);
  const memory::desc weights = m.constant_weights
                                   ? memory::desc(dims_of(m.weights), type_of(m.operands), Tag::any)
                                   : memory::desc(dims_of(m.weights), type_of(m.operands), dims_of(m.weight_strides));
  const dnnl::primitive_attr attr = post_attributes(m.posts, dst);
#if DNNL_VERSION_MAJOR >= 3
  return Made(engine, src, weights, added, dst, attr);
#else
  const dnnl::matmul::desc d =
      bias ? dnnl::matmul::desc(src, weights, added, dst) : dnnl::matmul::desc(src, weights, dst);
  return Made(d, attr, engine);
#endif
}

// Of bfloat16: nothing where there is reference code alone, or none.
std::optional<Made> fast(const dnnl::engine& engine, const MatrixProduct& m, bool bias) {
  try {
    Made made = describe(engine, m, bias);
    const std::string name = made.impl_info_str();
    return name.compare(0, 3, "ref") == 0 ? std::nullopt : std::optional(std::move(made));
  } catch (const dnnl::error&) {
    return std::nullopt;  // not on this processor
  }
}

// Weights as floats, row by row, where they are to be split.
std::vector<float> dense_weights(const MatrixProduct& m, const float* weights) {
  const int64_t depth = m.weights[m.weights.size() - 2], columns = m.weights.back();
  const int64_t row = m.weight_strides[m.weights.size() - 2], column = m.weight_strides.back();
  const auto matrices = static_cast<int64_t>(elements(m.weights)) / (depth * columns);
  std::vector<float> dense;
  dense.reserve(static_cast<size_t>(matrices * depth * columns));
  for (int64_t matrix = 0; matrix < matrices; matrix++)
    for (int64_t k = 0; k < depth; k++)
      for (int64_t i = 0; i < columns; i++) dense.push_back(weights[matrix * depth * columns + k * row + i * column]);
  return dense;
}

class ProductAdder {
 public:
  ProductAdder(Library::State& state, const MatrixProduct& m, int threads) : s_(state), m_(m), p_(threads) {}

  // `computed` is the product in the arithmetic of `made`.
  void add(const MatrixProduct& computed, const Made& made, const void* src, const void* weights, const void* bias,
           void* dst) {
    const bool is_in_parts = computed.src.back() != m_.src.back();
    const memory::desc given(dims_of(m_.src), type_of(m_.operands), dims_of(m_.src_strides));
    const memory::desc wanted(dims_of(computed.src), type_of(computed.operands), dims_of(computed.src_strides));
    const memory own = s_.view(p_.src, given, src);
    const auto rows = static_cast<int64_t>(elements(m_.src)) / m_.src.back();
    const memory from =
        is_in_parts ? s_.split_before(p_, Side::Left, own, wanted, rows) : s_.converted(p_, own, wanted);
    const memory::desc result = dense_desc(m_.dst, m_.result), computed_result = dense_desc(m_.dst, computed.result);
    const auto added = s_.operands(p_, m_.posts, result, computed_result);
    const memory to = s_.destination(p_, s_.view(p_.dst, result, dst), computed_result, m_.posts);
    const memory by =
        m_.constant_weights ? packed(made, is_in_parts, weights) : converted_weights(computed, is_in_parts, weights);
    p_.before.push_back(
        s_.call(p_, dnnl::matmul(made), made, from, by, bias ? s_.at(bias_desc(m_, true), bias) : memory(), to, added));
    s_.primitives.push_back(std::move(p_));
  }

 private:
  memory packed(const Made& made, bool is_in_parts, const void* weights) {
    const memory::desc given(dims_of(m_.weights), type_of(m_.operands), dims_of(m_.weight_strides));
    return s_.packed_as(weights, given, made.weights_desc(), {0}, [&](memory& to) {
      if (!is_in_parts) return s_.reorder_now(s_.at(given, weights), to);
      const int64_t matrix = m_.weights[m_.weights.size() - 2] * m_.weights.back();
      const std::vector<float> dense = dense_weights(m_, static_cast<const float*>(weights));
      const std::vector<float> parts =
          split(Side::Right, dense.data(), static_cast<int64_t>(dense.size()) / matrix, matrix);
      s_.reorder_now(s_.at(dense_desc(in_parts(m_).weights), parts.data()), to);
    });
  }

  memory converted_weights(const MatrixProduct& computed, bool is_in_parts, const void* weights) {
    const memory::desc given(dims_of(m_.weights), type_of(m_.operands), dims_of(m_.weight_strides)),
        wanted(dims_of(computed.weights), type_of(computed.operands), dims_of(computed.weight_strides));
    const memory own = s_.view(p_.weights, given, weights);
    const int64_t matrix = m_.weights[m_.weights.size() - 2] * m_.weights.back();
    return is_in_parts
               ? s_.split_before(p_, Side::Right, own, wanted, static_cast<int64_t>(elements(m_.weights)) / matrix)
               : s_.converted(p_, own, wanted);
  }

  Library::State& s_;
  const MatrixProduct& m_;
  Primitive p_;
};

}  // namespace

void Library::add(const MatrixProduct& m, const void* src, const void* weights, const void* bias, void* dst) {
  State& s = *state_;
  if (elements(m.dst) == 0) return s.add_empty();
  if (m.src.back() == 0) throw std::runtime_error("a product of matrices without columns");
  const int threads = s.threads_for(elements(m.dst) * static_cast<double>(m.src.back()),
                                    elements(m.src) + elements(m.weights) + elements(m.dst));
  if (m.bits != 0) return add_quantized(m, src, weights, bias, dst, threads);
  if (m.tile_terms != kNoTiles && add_tiles(m, src, weights, bias, dst, threads)) return;
  if (m.panels && add_panels(m, src, weights, bias, dst, threads)) return;
  if (m.few_rows) return add_few_rows(m, src, weights, bias, dst, threads);
  const ThreadScope scope(threads, s.threads);
  ProductAdder adder(s, m, threads);
  std::vector<MatrixProduct> ways;  // of bfloat16, the one that is asked for first
  if (m.arithmetic == Arithmetic::Split) ways.push_back(in_parts(m));
  if (m.arithmetic != Arithmetic::Floats && m.operands != Element::Float) ways.push_back(m);
  for (const MatrixProduct& way : ways)
    if (const auto made = fast(s.engine, way, bias != nullptr)) return adder.add(way, *made, src, weights, bias, dst);
  const MatrixProduct floats = in_floats(m);
  adder.add(floats, describe(s.engine, floats, bias != nullptr), src, weights, bias, dst);
}

void Library::add_few_rows(const MatrixProduct& m, const void* src, const void* weights, const void* bias, void* dst,
                           int own_threads) {
  State& s = *state_;
  Primitive p(own_threads);
  RowsCall own{
      RowsProduct(m.src[0], m.src[1], m.dst[1], m.posts, own_threads, m.operands, m.result), {}, {}, {}, {}, {}};
  const memory::desc to = dense_desc(m.dst, m.result);
  own.src = s.view(p.src, dense_desc(m.src, m.operands), src);
  own.dst = s.view(p.dst, to, dst);
  own.posts = s.operands(p, m.posts, to, to);
  const memory::desc given(dims_of(m.weights), type_of(m.operands), dims_of(m.weight_strides));
  own.packed =
      s.packed_as(weights, given, State::floats((own.product.packed_bytes() + 3) / 4), {own.product.panel_columns()},
                  [&](memory& packed) {
                    own.product.pack(weights, m.weight_strides[0], m.weight_strides[1], packed.get_data_handle());
                  });
  if (bias) own.bias = s.at(State::floats(static_cast<size_t>(m.dst[1])), bias);
  p.rows = std::make_unique<RowsCall>(std::move(own));
  s.primitives.push_back(std::move(p));
}

void Library::add_quantized(const MatrixProduct& m, const void* src, const void* weights, const void* bias, void* dst,
                            int own_threads) {
  State& s = *state_;
  Primitive p(own_threads);
  QuantizedWeights given = m.quantized;
  given.numbers = weights;
  given.row = m.weight_strides[0];
  given.column = m.weight_strides[1];
  const QuantizedShape shape{m.src[0], m.src[1], m.dst[1], m.bits, m.block};
  QuantizedCall own{QuantizedProduct(shape, given, m.posts, own_threads, m.result), {}, {}, {}, {}, {}, {}};
  const memory::desc to = dense_desc(m.dst, m.result);
  own.src = s.view(p.src, dense_desc(m.src), src);
  own.dst = s.view(p.dst, to, dst);
  own.posts = s.operands(p, m.posts, to, to);
  own.packed = s.packed_as(weights, State::bytes(static_cast<size_t>(elements(m.weights))),
                           State::bytes(own.product.packed_bytes()), own.product.packed_form(),
                           [&](memory& packed) { own.product.pack(packed.get_data_handle()); });
  own.scratch = s.temporary(p, State::floats(own.product.scratch_floats()));
  if (bias) own.bias = s.at(State::floats(static_cast<size_t>(m.dst[1])), bias);
  p.quantized = std::make_unique<QuantizedCall>(std::move(own));
  s.primitives.push_back(std::move(p));
}

void Library::add(const AttentionShape& a, const void* query, const void* key, const void* value, const void* mask,
                  const void* bias, const void* choice, void* result) {
  State& s = *state_;
  const double matrices = static_cast<double>(a.batch[0] * a.batch[1] * a.batch[2]);
  const auto depths = static_cast<double>(a.depth + a.value_depth), rows = static_cast<double>(a.rows),
             keys = static_cast<double>(a.keys);
  const int threads = s.threads_for(matrices * rows * keys * depths, matrices * (rows + keys) * depths);
  Primitive p(threads);
  // Addresses alone: how far tensors reach is the shape's to say.
  const memory::desc address = State::floats(1);
  const auto bind = [&](auto& own, size_t scratch_floats) {
    own.query = s.view(p.src, address, query);
    own.key = s.view(p.weights, address, key);
    const auto add_post = [&](memory& operand, const void* at) {
      operand = s.at(address, at);
      p.posts.emplace_back(static_cast<int>(p.posts.size()), operand);
    };
    add_post(own.value, value);
    if (a.has_mask) add_post(own.mask, mask);
    if (a.has_bias) add_post(own.bias, bias);
    if (a.has_choice) add_post(own.choice, choice);
    own.result = s.view(p.dst, address, result);
    own.scratch = s.temporary(p, State::floats(scratch_floats));
  };
  const bool is_of_floats = a.operands == Element::Float && a.result_element == Element::Float;
  if (a.tile_terms > 0 && a.keys > 0 && (has_amx() || !is_of_floats)) {  // of no keys, loops make zeros
    AttentionCall<AttentionTiles> own{AttentionTiles(a, threads, TileUnit::Amx, has_amx())};
    bind(own, own.attention.scratch_bytes() / sizeof(float) + 1);
    p.attention_tiles = std::make_unique<AttentionCall<AttentionTiles>>(std::move(own));
  } else {
    AttentionCall<AttentionRows> own{AttentionRows(a, threads)};
    bind(own, own.attention.scratch_floats());
    p.attention = std::make_unique<AttentionCall<AttentionRows>>(std::move(own));
  }
  s.primitives.push_back(std::move(p));
}

void Library::add(const RecurrenceShape& r, const float* weights) {
  State& s = *state_;
  const auto all = static_cast<double>(r.steps * r.batch * r.directions * r.hidden * gates_of(r.cell));
  const int threads = s.threads_for(all * static_cast<double>(r.hidden), all);
  Primitive p(threads);
  RecurrenceCall own{RecurrenceLoop(r, threads), {}, {}, weights == nullptr};
  const memory::desc packed = State::floats(std::max<size_t>(own.loop.packed_floats(), 1));
  if (weights) {
    const memory::desc given({r.directions, r.hidden, gates_of(r.cell) * r.hidden}, kFloat, Tag::abc);
    own.packed = s.packed_as(weights, given, packed, {kLanes},
                             [&](memory& to) { own.loop.pack(weights, static_cast<float*>(to.get_data_handle())); });
  } else {
    own.packed = s.temporary(p, packed);
  }
  own.scratch = s.temporary(p, State::floats(std::max<size_t>(own.loop.scratch_floats(), 1)));
  p.recurrence = std::make_unique<RecurrenceCall>(std::move(own));
  s.primitives.push_back(std::move(p));
}

void Library::run(size_t primitive, const RecurrenceOperands& operands) {
  const RecurrenceCall& call = *state_->primitives[primitive].recurrence;
  const auto data = [](const memory& m) { return static_cast<float*>(m.get_data_handle()); };
  if (call.packs) call.loop.pack(operands.weights, data(call.packed));
  call.loop.run(operands, data(call.packed), data(call.scratch));
}

}  // namespace gopt_runtime
