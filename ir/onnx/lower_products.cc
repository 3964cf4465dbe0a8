// Products over named axes (Einsum) and attention.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "lowering.h"

namespace gopt::ir {
namespace {

// ---- Einsum ----

// A tensor with a label for each axis; labels are distinct.
struct Labeled {
  Value value;
  std::string labels;
};

class Contraction {
 public:
  explicit Contraction(Lowering& l) : l_(l) {}

  Value run(std::vector<Labeled> terms, const std::string& result) {
    for (Labeled& term : terms) note_extents(term);
    Labeled product = terms.at(0);
    for (size_t k = 1; k < terms.size(); k++) {
      std::string later = result;
      for (size_t j = k + 1; j < terms.size(); j++) later += terms[j].labels;
      product = contract(product, terms[k], later);
    }
    product = summed(product, result);
    for (char label : result) Lowering::require(product.labels.find(label) != std::string::npos);
    return arranged(product, result).value;
  }

  // Axes that have one label are one: the diagonal. An axis of extent 1 of another one's label broadcasts, and goes.
  Labeled diagonal(Labeled term) {
    for (size_t first = 0; first < term.labels.size(); first++)
      for (size_t second; (second = term.labels.find(term.labels[first], first + 1)) != std::string::npos;) {
        std::vector<int64_t> perm;
        for (size_t k = 0; k < term.labels.size(); k++)
          if (k != first && k != second) perm.push_back(static_cast<int64_t>(k));
        perm.push_back(static_cast<int64_t>(first));
        perm.push_back(static_cast<int64_t>(second));
        const Value last = l_.transpose(term.value, perm);
        Shape shape = shape_of(last);
        const int64_t extent = extent_of(last, static_cast<int64_t>(perm.size()) - 1);
        Lowering::require(extent == extent_of(last, static_cast<int64_t>(perm.size()) - 2));
        shape.pop_back();
        shape.back() = Index(extent * extent);
        const char label = term.labels[first];
        term.value =
            l_.slice(l_.reshape(last, shape), static_cast<int64_t>(shape.size()) - 1, 0, extent * extent, extent + 1);
        std::erase(term.labels, label);
        term.labels += label;
        first = 0;
      }
    return term;
  }

 private:
  void note_extents(const Labeled& term) {
    Lowering::require(rank_of(term.value) == term.labels.size());
    for (size_t k = 0; k < term.labels.size(); k++) {
      const auto [it, added] = extents_.emplace(term.labels[k], shape_of(term.value)[k]);
      Lowering::require(added || it->second == shape_of(term.value)[k]);  // broadcasting of an extent of 1 is left
    }
  }
  Labeled summed(Labeled term, const std::string& kept) {
    std::vector<Index> axes;
    std::string labels;
    for (size_t k = 0; k < term.labels.size(); k++) {
      if (kept.find(term.labels[k]) == std::string::npos)
        axes.emplace_back(static_cast<int64_t>(k));
      else
        labels += term.labels[k];
    }
    if (!axes.empty()) term.value = l_.reduce(OpKind::ReduceSum, term.value, axes, false);
    return {term.value, labels};
  }
  Labeled arranged(const Labeled& term, const std::string& labels) {
    std::vector<int64_t> perm;
    for (char label : labels) perm.push_back(static_cast<int64_t>(term.labels.find(label)));
    return {l_.transpose(term.value, perm), labels};
  }
  Index count(const std::string& labels) const {
    Index product(1);
    for (char label : labels) product = product * extents_.at(label);
    return product;
  }
  Shape shape(const std::string& labels) const {
    Shape result;
    for (char label : labels) result.push_back(extents_.at(label));
    return result;
  }

  // A matrix product: images are labels of both that stay, the inner axis those that go.
  Labeled contract(Labeled a, Labeled b, const std::string& later) {
    a = summed(a, b.labels + later);
    b = summed(b, a.labels + later);
    std::string images, inner, rows, columns;
    for (char label : a.labels) {
      const bool shared = b.labels.find(label) != std::string::npos, stays = later.find(label) != std::string::npos;
      (!shared ? rows : stays ? images : inner) += label;
    }
    for (char label : b.labels)
      if (a.labels.find(label) == std::string::npos) columns += label;
    const Value left = arranged(a, images + rows + inner).value, right = arranged(b, images + inner + columns).value;
    Value product;
    if (inner.empty()) {
      product = l_.mul(l_.reshape(left, images_and(images, count(rows), Index(1))),
                       l_.reshape(right, images_and(images, Index(1), count(columns))));
    } else {
      product = l_.op(OpKind::MatMul, {l_.reshape(left, images_and(images, count(rows), count(inner))),
                                       l_.reshape(right, images_and(images, count(inner), count(columns)))});
    }
    return {l_.reshape(product, shape(images + rows + columns)), images + rows + columns};
  }
  Shape images_and(const std::string& images, const Index& rows, const Index& columns) const {
    Shape result = shape(images);
    result.push_back(rows);
    result.push_back(columns);
    return result;
  }

  Lowering& l_;
  std::map<char, Index> extents_;
};

// Labels of an ellipsis are upper case digits' places: characters that no equation can name.
std::string with_ellipsis(const std::string& term, size_t axes, size_t most) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  std::string labels;
  for (size_t k = most - axes; k < most; k++) labels += static_cast<char>('\x01' + static_cast<char>(k));
  return term.substr(0, dots) + labels + term.substr(dots + 3);
}

Values lower_einsum(Lowering& l) {
  std::string equation = l.text("equation", "");
  std::erase(equation, ' ');
  const size_t arrow = equation.find("->");
  std::vector<std::string> terms(1);
  for (char c : equation.substr(0, arrow)) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  std::vector<size_t> dotted;
  size_t most = 0;
  for (size_t k = 0; k < terms.size(); k++) {
    const size_t named = terms[k].size() - (terms[k].find("...") == std::string::npos ? 0 : 3),
                 rank = rank_of(l.input(k));
    Lowering::require(rank >= named);
    dotted.push_back(rank - named);
    most = std::max(most, rank - named);
  }
  Lowering::require(most < 20);
  std::string result = arrow == std::string::npos ? "" : with_ellipsis(equation.substr(arrow + 2), most, most);
  std::map<char, int> uses;
  std::vector<Labeled> labeled;
  Contraction contraction(l);
  for (size_t k = 0; k < terms.size(); k++) {
    const std::string labels = with_ellipsis(terms[k], dotted[k], most);
    for (char label : labels) uses[label]++;
    labeled.push_back(contraction.diagonal({l.input(k), labels}));
  }
  if (arrow == std::string::npos)  // what stands once, in alphabetical order, after the ellipsis
    for (const auto& [label, times] : uses)
      if (times == 1 || label < ' ') result += label;
  Lowering::require(std::set<char>(result.begin(), result.end()).size() == result.size());
  return {contraction.run(std::move(labeled), result)};
}

// ---- attention ----

// [batch, length, heads x size] as [batch, heads, length, size].
Value split_heads(Lowering& l, const Value& x, int64_t heads) {
  if (rank_of(x) == 4) return x;
  Lowering::require(rank_of(x) == 3 && heads > 0 && extent_of(x, 2) % heads == 0);
  const Value split = l.reshape(x, {shape_of(x)[0], shape_of(x)[1], Index(heads), Index(extent_of(x, 2) / heads)});
  return l.transpose(split, {0, 2, 1, 3});
}
// Each head as often as query heads share it.
Value repeated_heads(Lowering& l, const Value& x, int64_t times) {
  if (times == 1) return x;
  const Shape& s = shape_of(x);
  const Value wide = l.expand(l.unsqueeze(x, 2), {s[0], s[1], Index(times), s[2], s[3]});
  return l.reshape(wide, {s[0], s[1] * Index(times), s[2], s[3]});
}

// softmax(scale q k' + mask) v, by opset 23.
Values lower_attention(Lowering& l) {
  const Value given_q = l.input(0);
  const ElementType type = type_of(given_q);
  Lowering::require(l.integer("qk_matmul_output_mode", 0) == 0 && !l.has(6) &&
                    (type == ElementType::Float32 || type == ElementType::Float64));
  const Value q = split_heads(l, given_q, l.integer("q_num_heads", 0));
  Value k = split_heads(l, l.input(1), l.integer("kv_num_heads", 0)),
        v = split_heads(l, l.input(2), l.integer("kv_num_heads", 0));
  if (l.has(4)) k = l.concat({l.input(4), k}, 2);
  if (l.has(5)) v = l.concat({l.input(5), v}, 2);
  const Values present{k, v};
  const int64_t heads = extent_of(q, 1), shared = extent_of(k, 1);
  Lowering::require(shared > 0 && heads % shared == 0);
  const double scale =
      l.has_attribute("scale") ? l.real("scale", 1) : 1 / std::sqrt(static_cast<double>(extent_of(q, 3)));
  Lowering::require(scale > 0 && !l.has(6) && l.integer("qk_matmul_output_mode", 0) == 0);
  Lowering::require(!l.has(4) ||
                    l.integer("is_causal", 0) == 0);  // where the rows begin, versions of ONNX say otherwise
  const Value factor = l.scalar(type, std::sqrt(scale));
  Value scores = l.op(OpKind::MatMul, {l.mul(q, factor),
                                       l.transpose(l.mul(repeated_heads(l, k, heads / shared), factor), {0, 1, 3, 2})});
  const Value raw = scores;
  if (l.has(3)) {
    const Value mask = l.input(3);
    Lowering::require(rank_of(mask) >= 2 && (type_of(mask) == ElementType::Bool || type_of(mask) == type));
    scores =
        type_of(mask) == ElementType::Bool ? l.where(mask, scores, l.scalar(type, -INFINITY)) : l.add(scores, mask);
  }
  if (l.integer("is_causal", 0) != 0) {
    const int64_t rows = extent_of(q, 2), columns = extent_of(k, 2);
    std::vector<double> later;
    for (int64_t i = 0; i < rows; i++)
      for (int64_t j = 0; j < columns; j++) later.push_back(j > i + (l.has(4) ? columns - rows : 0) ? -INFINITY : 0);
    scores = l.add(scores, l.constant(Tensor::from_values(type, {rows, columns}, later)));
  }
  if (const double cap = l.real("softcap", 0); cap > 0) {
    // Whether masked positions are capped, too, differs between versions of ONNX.
    Lowering::require(!l.has(3) && l.integer("is_causal", 0) == 0);
    const Value bound = l.scalar(type, cap);
    scores = l.mul(l.op(OpKind::Tanh, {l.div(scores, bound)}), bound);
  }
  const Value weights = l.op(OpKind::Softmax, {scores}, {{"axis", Index(-1)}});
  Value y = l.op(OpKind::MatMul, {weights, repeated_heads(l, v, heads / shared)});
  if (rank_of(given_q) == 3) {
    y = l.transpose(y, {0, 2, 1, 3});
    y = l.reshape(y, {shape_of(y)[0], shape_of(y)[1], shape_of(y)[2] * shape_of(y)[3]});
  }
  return {y, present[0], present[1], raw};
}

// Pairs of places of each head turned by an angle: halves, or neighbours where they are interleaved.
Values lower_rotary_embedding(Lowering& l) {
  const Value given = l.input(0);
  const int64_t heads = l.integer("num_heads", 0);
  const bool interleaved = l.integer("interleaved", 0) != 0;
  Value x = rank_of(given) == 3 ? split_heads(l, given, heads) : given;  // [batch, heads, length, size]
  Lowering::require(rank_of(x) == 4 && is_floating(type_of(x)));
  const int64_t size = extent_of(x, 3),
                turned = l.integer("rotary_embedding_dim", 0) > 0 ? l.integer("rotary_embedding_dim", 0) : size;
  Lowering::require(turned % 2 == 0 && turned <= size);
  const int64_t half = turned / 2;
  const auto angles = [&](size_t i) {  // [batch, 1, length, half]
    Value cache = l.input(i);
    if (l.has(3)) cache = l.op(OpKind::Gather, {cache, l.input(3)}, {{"axis", Index(0)}});
    Lowering::require(rank_of(cache) == 3 && extent_of(cache, 2) == half);
    return l.unsqueeze(cache, 1);
  };
  const Value cosine = angles(1), sine = angles(2);
  const Value first = interleaved ? l.slice(x, 3, 0, turned, 2) : l.slice(x, 3, 0, half);
  const Value second = interleaved ? l.slice(x, 3, 1, turned, 2) : l.slice(x, 3, half, turned);
  const Value real = l.sub(l.mul(cosine, first), l.mul(sine, second));
  const Value imaginary = l.add(l.mul(sine, first), l.mul(cosine, second));
  Value y = l.concat({real, imaginary}, 3);
  if (interleaved) {
    Shape shape = shape_of(real);
    shape.back() = Index(turned);
    y = l.reshape(l.concat({l.unsqueeze(real, 4), l.unsqueeze(imaginary, 4)}, 4), shape);
  }
  if (turned < size) y = l.concat({y, l.slice(x, 3, turned, size)}, 3);
  if (rank_of(given) == 3) y = l.reshape(l.transpose(y, {0, 2, 1, 3}), shape_of(given));
  return {y};
}

constexpr LoweredOperator kProducts[] = {
    {"Einsum", lower_einsum}, {"Attention", lower_attention}, {"RotaryEmbedding", lower_rotary_embedding}};

}  // namespace

std::span<const LoweredOperator> lowered_products() { return kProducts; }

}  // namespace gopt::ir
