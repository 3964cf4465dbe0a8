// Symbolic extents in ONNX: computed at run time from the shapes of values that are there already.
#include "export_state.h"

namespace gopt::ir {
namespace {

class IntegerWriter {
 public:
  explicit IntegerWriter(ExportState& state) : state_(state) {}

  // The name of a vector of one element that holds the index.
  Result<std::string> write(const Index& index) {
    if (index.is_constant()) return number(index.constant());
    std::string sum;
    for (const Index::Term& term : index.terms()) {
      GOPT_ASSIGN_OR_RETURN(const std::string product, write_term(term));
      sum = sum.empty() ? product : state_.add("Add", {sum, product});
    }
    return index.constant() == 0 ? sum : state_.add("Add", {sum, number(index.constant())});
  }

 private:
  std::string number(int64_t value) { return state_.constant(Tensor::vector_i64({value})); }

  Result<std::string> write_term(const Index::Term& term) {
    std::string product = term.coefficient == 1 ? "" : number(term.coefficient);
    for (const AtomId id : term.atoms) {
      GOPT_ASSIGN_OR_RETURN(const std::string factor, write_atom(id));
      product = product.empty() ? factor : state_.add("Mul", {product, factor});
    }
    return product;
  }

  Result<std::string> write_atom(AtomId id) {
    const Atom& a = atom(id);
    if (a.kind == AtomKind::Symbol) return write_symbol(id, a.name);
    if (a.kind == AtomKind::Load) return Error{"an extent is read from a tensor, which ONNX has no form for"};
    GOPT_ASSIGN_OR_RETURN(const std::string numerator, write(a.numerator));
    GOPT_ASSIGN_OR_RETURN(const std::string denominator, write(a.denominator));
    return state_.add("Div", {numerator, denominator});  // extents are not negative: truncation is floor
  }

  Result<std::string> write_symbol(AtomId id, const std::string& name) {
    for (const Value& input : state_.graph.inputs())
      if (const auto found = write_extent(id, input)) return *found;
    for (const NodePtr& node : state_.graph.nodes())
      for (int k = 0; state_.written.contains(node.get()) && k < static_cast<int>(node->outputs.size()); k++)
        if (const auto found = write_extent(id, {node, k})) return *found;
    return Error{"the extent '" + name + "' is that of no value before it"};
  }

  // The extent of `value` that is the symbol, if one is.
  std::optional<std::string> write_extent(AtomId id, const Value& value) {
    const auto& shape = value.type().shape;
    const auto name = state_.value_names.find(value);
    if (!shape || name == state_.value_names.end() || name->second.empty()) return std::nullopt;
    for (size_t axis = 0; axis < shape->size(); axis++) {
      if ((*shape)[axis].as_atom() != id) continue;
      const std::string extents = state_.add("Shape", {name->second});
      return state_.add("Gather", {extents, number(static_cast<int64_t>(axis))}, "", {{"axis", Index(0)}});
    }
    return std::nullopt;
  }

  ExportState& state_;
};

}  // namespace

Result<std::string> export_integers(ExportState& state, const std::vector<Index>& entries) {
  std::vector<int64_t> numbers;
  for (const Index& entry : entries)
    if (entry.is_constant()) numbers.push_back(entry.constant());
  if (numbers.size() == entries.size()) return state.constant(Tensor::vector_i64(numbers));
  std::vector<std::string> parts;
  IntegerWriter writer(state);
  for (const Index& entry : entries) {
    GOPT_ASSIGN_OR_RETURN(const std::string part, writer.write(entry));
    parts.push_back(part);
  }
  return parts.size() == 1 ? parts[0] : state.add("Concat", parts, "", {{"axis", Index(0)}});
}

}  // namespace gopt::ir
