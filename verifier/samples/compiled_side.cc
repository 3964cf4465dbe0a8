#include "compiled_side.h"

namespace gopt::verifier {
namespace {

std::vector<AtomId> position_symbols(size_t output, size_t rank) {
  std::vector<AtomId> symbols;
  for (size_t axis = 0; axis < rank; axis++)
    symbols.push_back(symbol_atom("%o" + std::to_string(output) + "_" + std::to_string(axis)));
  return symbols;
}

}  // namespace

std::vector<Index> output_subscripts(size_t output, size_t rank) {
  std::vector<Index> subscripts;
  for (AtomId s : position_symbols(output, rank)) subscripts.push_back(Index::from_atom(s));
  return subscripts;
}

CompiledSide compile_side(const SideMeaning& meaning) {
  CompiledSide side;
  for (size_t o = 0; o < meaning.outputs.size(); o++) {
    const size_t rank = meaning.outputs[o].shape.size();
    side.positions.push_back(position_symbols(o, rank));
    side.values.emplace_back(meaning.outputs[o].at(output_subscripts(o, rank)));
  }
  return side;
}

std::optional<std::vector<int64_t>> numbers(const Shape& shape, const Environment& sizes) {
  std::vector<int64_t> dims;
  for (const Index& extent : shape) {
    const auto value = evaluate(extent, sizes);
    if (!value || *value < 0) return std::nullopt;
    dims.push_back(*value);
  }
  return dims;
}

std::vector<int64_t> position_of_flat(int64_t flat, const std::vector<int64_t>& dims) {
  std::vector<int64_t> position(dims.size());
  for (size_t axis = dims.size(); axis-- > 0; flat /= dims[axis]) position[axis] = flat % dims[axis];
  return position;
}

Cond left_condition(const RewriteRule& rule, const SideMeaning& left, const Cond& condition) {
  Cond all = variable_domain(rule) && condition;
  for (const Requirement& r : left.requirements) all = all && r.cond;
  return all;
}

Cond left_condition(const RewriteRule& rule, const SideMeaning& left) {
  return left_condition(rule, left, rule.condition);
}

std::set<AtomId> extent_symbols(const RewriteRule& rule) {
  std::set<AtomId> symbols;
  for (const RuleVariable& variable : rule.variables)
    for (const Index& extent : *variable.type.shape) collect_symbols(extent, symbols);
  return symbols;
}

}  // namespace gopt::verifier
