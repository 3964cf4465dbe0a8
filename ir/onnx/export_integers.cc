// Symbolic extents in ONNX: computed at run time from the shapes of values that are there already.
#include <algorithm>

#include "export_state.h"
#include "gopt/bounds.h"

namespace gopt::ir {
namespace {

class IntegerWriter {
 public:
  explicit IntegerWriter(ExportState& state) : state_(state) {}

  // A vector of the entries where they are extents of one value, so that its Shape has them all.
  std::optional<std::string> write_extents(const std::vector<Index>& entries) {
    const std::vector<Value> values = values_before();
    for (const Value& value : values)
      if (value.type().shape == entries) return extents_of(value);
    for (const Value& value : values)
      if (const auto found = write_some_extents(entries, value)) return found;
    return std::nullopt;
  }

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
    SymbolBounds extents;
    collect_symbols(Index::from_atom(id), extents.counts);
    const auto quotient = [&](const Index& numerator) -> Result<std::string> {  // truncated
      GOPT_ASSIGN_OR_RETURN(const std::string written, write(numerator));
      GOPT_ASSIGN_OR_RETURN(const std::string denominator, write(a.denominator));
      // 1 / x, as whether x is 1: ONNX Runtime makes n / x of n * (1 / x), of integers, too.
      if (numerator == Index(1))
        return state_.add("Cast", {state_.add("Equal", {denominator, written})}, "",
                          {{"to", Index(static_cast<int64_t>(ElementType::Int64))}});
      return state_.add("Div", {written, denominator});
    };
    if (is_surely_nonnegative(a.numerator, extents)) return quotient(a.numerator);
    const Index negative = a.denominator - Index(1) - a.numerator;
    if (is_surely_nonnegative(negative, extents)) {
      GOPT_ASSIGN_OR_RETURN(const std::string ceiling, quotient(negative));
      return state_.add("Mul", {ceiling, number(-1)});
    }
    GOPT_ASSIGN_OR_RETURN(const std::string numerator, write(a.numerator));
    GOPT_ASSIGN_OR_RETURN(const std::string denominator, write(a.denominator));
    const std::string rest = state_.add("Mod", {numerator, denominator});
    return state_.add("Div", {state_.add("Sub", {numerator, rest}), denominator});
  }

  Result<std::string> write_symbol(AtomId id, const std::string& name) {
    if (const auto found = write_extents({Index::from_atom(id)})) return *found;
    return Error{"the extent '" + name + "' is that of no value before it"};
  }

  // The values of known shape that the file has so far.
  std::vector<Value> values_before() const {
    std::vector<Value> values = state_.graph.inputs();
    for (const NodePtr& node : state_.graph.nodes())
      for (int k = 0; state_.written.contains(node.get()) && k < static_cast<int>(node->outputs.size()); k++)
        values.push_back({node, k});
    std::erase_if(values, [&](const Value& value) {
      const auto name = state_.value_names.find(value);
      return !value.type().shape || name == state_.value_names.end() || name->second.empty();
    });
    return values;
  }

  std::string extents_of(const Value& value) { return state_.add_once("Shape", {state_.value_names.at(value)}); }

  // As extents of `value`, if they are that.
  std::optional<std::string> write_some_extents(const std::vector<Index>& entries, const Value& value) {
    const Shape& shape = *value.type().shape;
    std::vector<int64_t> axes;
    for (const Index& entry : entries) {
      const auto found = std::ranges::find(shape, entry);
      if (found == shape.end()) return std::nullopt;
      axes.push_back(found - shape.begin());
    }
    const std::string positions = state_.constant(Tensor::vector_i64(axes));
    return state_.add_once("Gather", {extents_of(value), positions}, {{"axis", Index(0)}});
  }

  ExportState& state_;
};

}  // namespace

Result<std::string> export_integers(ExportState& state, const std::vector<Index>& entries) {
  std::vector<int64_t> numbers;
  for (const Index& entry : entries)
    if (entry.is_constant()) numbers.push_back(entry.constant());
  if (numbers.size() == entries.size()) return state.constant(Tensor::vector_i64(numbers));
  IntegerWriter writer(state);
  if (auto whole = writer.write_extents(entries)) return *std::move(whole);
  std::vector<std::string> parts;
  for (const Index& entry : entries) {
    GOPT_ASSIGN_OR_RETURN(const std::string part, writer.write(entry));
    parts.push_back(part);
  }
  return parts.size() == 1 ? parts[0] : state.add("Concat", parts, "", {{"axis", Index(0)}});
}

}  // namespace gopt::ir
