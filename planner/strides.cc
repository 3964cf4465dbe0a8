#include "strides.h"

#include <algorithm>

#include "access.h"
#include "node_work.h"

namespace gopt::planner {

MemorySteps row_major_steps(const Shape& shape) {
  MemorySteps steps{0, std::vector<Index>(shape.size())};
  Index step = 1;
  for (size_t axis = shape.size(); axis-- > 0; step = step * shape[axis]) steps.axes[axis] = step;
  return steps;
}

FactoredSteps factored_steps(const MemorySteps& steps, const Shape& shape) {
  FactoredSteps factored{steps.offset, std::vector<std::vector<AxisPart>>(shape.size())};
  for (size_t axis = 0; axis < shape.size(); axis++)
    if (shape[axis] != Index(1)) factored.axes[axis] = {{shape[axis], steps.axes[axis]}};
  return factored;
}
FactoredSteps factored_steps(const Shape& shape) { return factored_steps(row_major_steps(shape), shape); }

std::optional<Index> exact_quotient(const Index& a, const Index& b) {
  if (b.is_constant() && b.constant() <= 0) return std::nullopt;
  const Index quotient = floor_div(a, b);
  return quotient * b == a ? std::optional(quotient) : std::nullopt;
}

std::optional<CommonBatch> common_batch(const Shape& batch, std::vector<std::vector<std::vector<AxisPart>>> tensors) {
  CommonBatch common{{}, std::vector<std::vector<Index>>(tensors.size())};
  for (size_t axis = batch.size(); axis-- > 0;) {
    if (batch[axis] == Index(1)) continue;
    for (auto& tensor : tensors)
      if (tensor[axis].empty()) tensor[axis] = {{batch[axis], 0}};
    while (std::ranges::none_of(tensors, [&](const auto& tensor) { return tensor[axis].empty(); })) {
      // The fastest part of one that those of all others are multiples of.
      const auto divides_all = [&](const auto& tensor) {
        return std::ranges::all_of(tensors, [&](const auto& other) {
          return exact_quotient(other[axis].back().extent, tensor[axis].back().extent).has_value();
        });
      };
      const auto least = std::ranges::find_if(tensors, divides_all);
      if (least == tensors.end()) return std::nullopt;
      const Index extent = (*least)[axis].back().extent;
      common.extents.insert(common.extents.begin(), extent);
      for (size_t k = 0; k < tensors.size(); k++) {
        std::vector<AxisPart>& parts = tensors[k][axis];
        const Index left = *exact_quotient(parts.back().extent, extent), step = parts.back().step;
        common.steps[k].insert(common.steps[k].begin(), step);
        parts.pop_back();
        if (left != Index(1)) parts.push_back({left, step * extent});
      }
    }
    if (std::ranges::any_of(tensors, [&](const auto& tensor) { return !tensor[axis].empty(); })) return std::nullopt;
  }
  return common;
}

namespace {

// Adds what varies faster: one part with the last where that goes on where this ends.
void append(std::vector<AxisPart>& parts, const AxisPart& part) {
  if (!parts.empty() && parts.back().step == part.step * part.extent)
    parts.back() = {parts.back().extent * part.extent, part.step};
  else
    parts.push_back(part);
}

// The same elements in the same order with other extents.
std::optional<FactoredSteps> reshaped(const FactoredSteps& input, const Shape& to) {
  std::vector<AxisPart> parts;
  for (const std::vector<AxisPart>& axis : input.axes)
    for (const AxisPart& part : axis) append(parts, part);
  FactoredSteps result{input.offset, std::vector<std::vector<AxisPart>>(to.size())};
  size_t next = 0;
  for (size_t axis = 0; axis < to.size(); axis++) {
    for (Index left = to[axis]; left != Index(1);) {
      if (next == parts.size()) return std::nullopt;
      AxisPart& part = parts[next];
      if (const auto others = exact_quotient(left, part.extent)) {
        result.axes[axis].push_back(part);
        left = *others;
        next++;
      } else if (const auto faster = exact_quotient(part.extent, left)) {
        part.extent = *faster;
        result.axes[axis].push_back({left, part.step * *faster});
        left = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  return next == parts.size() ? std::optional(result) : std::nullopt;
}

// The value of an atom that is an element of a constant.
std::optional<int64_t> constant_load(const Node& node, const Atom& load) {
  const auto input = static_cast<size_t>(load.input);
  if (load.kind != AtomKind::Load || input >= node.inputs.size() || !node.inputs[input]) return std::nullopt;
  const Node& maker = *node.inputs[input].node;
  if (!maker.is(OpKind::Constant) || maker.tensor.count() != 1) return std::nullopt;
  return maker.tensor.to_ints()[0];
}

// Of extents alone.
bool is_size(const Index::Term& term, const std::vector<AtomId>& symbols) {
  return std::ranges::all_of(term.atoms, [&](AtomId id) {
    return atom(id).kind == AtomKind::Symbol && std::ranges::find(symbols, id) == symbols.end();
  });
}
Index value_of(const Index::Term& term) {
  Index product = term.coefficient;
  for (const AtomId id : term.atoms) product = product * Index::from_atom(id);
  return product;
}

// Adds a subscript's part of the way, along an axis of one part or none: `step` elements for each of it.
bool add_subscript(const Node& node, const Index& subscript, const Index& step, const std::vector<AtomId>& symbols,
                   const Shape& made, FactoredSteps& result) {
  result.offset += subscript.constant() * step;
  for (const Index::Term& term : subscript.terms()) {
    if (is_size(term, symbols)) {
      result.offset += value_of(term) * step;
      continue;
    }
    if (term.atoms.size() != 1) return false;
    const Index by = term.coefficient * step;
    if (const auto number = constant_load(node, atom(term.atoms[0]))) {
      result.offset += *number * by;
      continue;
    }
    const auto axis = static_cast<size_t>(std::ranges::find(symbols, term.atoms[0]) - symbols.begin());
    if (axis == symbols.size()) return false;
    std::vector<AxisPart>& parts = result.axes[axis];
    if (made[axis] == Index(1)) continue;
    if (parts.empty()) parts.push_back({made[axis], 0});
    if (parts.size() > 1) return false;
    parts[0].step += by;
  }
  return true;
}

// A subscript of an axis of several parts: one of the result's axes as it is.
bool move_axis(const Index& subscript, const std::vector<AxisPart>& parts, const std::vector<AtomId>& symbols,
               const Shape& made, FactoredSteps& result) {
  Index extent = 1;
  for (const AxisPart& part : parts) extent = extent * part.extent;
  for (size_t axis = 0; axis < symbols.size(); axis++)
    if (subscript == Index::from_atom(symbols[axis]) && made[axis] == extent && result.axes[axis].empty()) {
      result.axes[axis] = parts;
      return true;
    }
  return false;
}

}  // namespace

std::optional<FactoredSteps> steps_through(const Value& output, const FactoredSteps& input) {
  const Node& node = *output.node;
  const NodeWork& work = work_of(node);
  const auto number = static_cast<size_t>(output.output);
  if (number >= work.moved_from.size() || !node.inputs[0]) return std::nullopt;
  const TensorType &from = node.inputs[0].type(), &to = output.type();
  if (from.element != to.element || !from.shape || !to.shape) return std::nullopt;
  const Shape& made = *to.shape;
  if (std::ranges::count(made, Index(0)) > 0) return std::nullopt;
  if (work.keeps_order) return reshaped(input, made);
  const std::vector<Index>& read = work.moved_from[number];
  if (read.size() != from.shape->size()) return std::nullopt;
  const std::vector<AtomId> symbols = axis_symbols(made.size());
  FactoredSteps result{input.offset, std::vector<std::vector<AxisPart>>(made.size())};
  for (size_t axis = 0; axis < read.size(); axis++) {
    const std::vector<AxisPart>& parts = input.axes[axis];
    const bool is_added = parts.size() > 1 ? move_axis(read[axis], parts, symbols, made, result)
                                           : add_subscript(node, read[axis], parts.empty() ? Index(0) : parts[0].step,
                                                           symbols, made, result);
    if (!is_added) return std::nullopt;
  }
  for (size_t axis = 0; axis < made.size(); axis++)  // the same again along an axis that nothing is read by
    if (made[axis] != Index(1) && result.axes[axis].empty()) result.axes[axis] = {{made[axis], 0}};
  return result;
}

}  // namespace gopt::planner
