// Products over named axes: Einsum.
#include <cmath>
#include <map>

#include "einsum_equation.h"
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

Values lower_einsum(Lowering& l) {
  std::vector<size_t> ranks;
  for (int k = 0; k < l.input_count(); k++) ranks.push_back(rank_of(l.input(static_cast<size_t>(k))));
  const auto equation = read_einsum(l.text("equation", ""), ranks);
  Lowering::require(equation.has_value());
  std::vector<Labeled> labeled;
  Contraction contraction(l);
  for (size_t k = 0; k < ranks.size(); k++) labeled.push_back(contraction.diagonal({l.input(k), equation->terms[k]}));
  return {contraction.run(std::move(labeled), equation->result)};
}

constexpr LoweredOperator kProducts[] = {{"Einsum", lower_einsum}};

}  // namespace

std::span<const LoweredOperator> lowered_products() { return kProducts; }

}  // namespace gopt::ir
