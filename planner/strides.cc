#include "strides.h"

#include <algorithm>

#include "access.h"
#include "node_work.h"

namespace gopt::planner {

MemorySteps row_major_steps(const std::vector<int64_t>& dims) {
  MemorySteps steps{0, std::vector<int64_t>(dims.size())};
  int64_t step = 1;
  for (size_t axis = dims.size(); axis-- > 0; step *= dims[axis]) steps.axes[axis] = step;
  return steps;
}

FactoredSteps factored_steps(const std::vector<int64_t>& dims) {
  FactoredSteps steps{0, std::vector<std::vector<AxisPart>>(dims.size())};
  int64_t step = 1;
  for (size_t axis = dims.size(); axis-- > 0; step *= dims[axis])
    if (dims[axis] != 1) steps.axes[axis] = {{dims[axis], step}};
  return steps;
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
std::optional<FactoredSteps> reshaped(const FactoredSteps& input, const std::vector<int64_t>& to) {
  std::vector<AxisPart> parts;
  for (const std::vector<AxisPart>& axis : input.axes)
    for (const AxisPart& part : axis) append(parts, part);
  FactoredSteps result{input.offset, std::vector<std::vector<AxisPart>>(to.size())};
  size_t next = 0;
  for (size_t axis = 0; axis < to.size(); axis++) {
    for (int64_t left = to[axis]; left > 1;) {
      if (next == parts.size()) return std::nullopt;
      AxisPart& part = parts[next];
      if (left % part.extent == 0) {
        result.axes[axis].push_back(part);
        left /= part.extent;
        next++;
      } else if (part.extent % left == 0) {
        part.extent /= left;
        result.axes[axis].push_back({left, part.step * part.extent});
        left = 1;
      } else {
        return std::nullopt;
      }
    }
  }
  return result;
}

// The value of an atom that is an element of a constant.
std::optional<int64_t> constant_load(const Node& node, const Atom& load) {
  const auto input = static_cast<size_t>(load.input);
  if (load.kind != AtomKind::Load || input >= node.inputs.size() || !node.inputs[input]) return std::nullopt;
  const Node& maker = *node.inputs[input].node;
  if (!maker.is(OpKind::Constant) || maker.tensor.count() != 1) return std::nullopt;
  return maker.tensor.to_ints()[0];
}

// Adds a subscript's part of the way, along an axis of one part or none: `step` elements for each of it.
bool add_subscript(const Node& node, const Index& subscript, int64_t step, const std::vector<AtomId>& symbols,
                   const std::vector<int64_t>& made, FactoredSteps& result) {
  result.offset += subscript.constant() * step;
  for (const Index::Term& term : subscript.terms()) {
    if (term.atoms.size() != 1) return false;
    const int64_t by = term.coefficient * step;
    if (const auto number = constant_load(node, atom(term.atoms[0]))) {
      result.offset += *number * by;
      continue;
    }
    const auto axis = static_cast<size_t>(std::ranges::find(symbols, term.atoms[0]) - symbols.begin());
    if (axis == symbols.size()) return false;
    std::vector<AxisPart>& parts = result.axes[axis];
    if (made[axis] == 1) continue;
    if (parts.empty()) parts.push_back({made[axis], 0});
    if (parts.size() > 1) return false;
    parts[0].step += by;
  }
  return true;
}

// A subscript of an axis of several parts: one of the result's axes as it is.
bool move_axis(const Index& subscript, const std::vector<AxisPart>& parts, const std::vector<AtomId>& symbols,
               const std::vector<int64_t>& made, FactoredSteps& result) {
  int64_t extent = 1;
  for (const AxisPart& part : parts) extent *= part.extent;
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
  if (from.element != to.element || !from.has_static_shape() || !to.has_static_shape()) return std::nullopt;
  const std::vector<int64_t> dims = from.static_shape(), made = to.static_shape();
  if (std::ranges::count(made, 0) > 0) return std::nullopt;
  if (work.keeps_order) return reshaped(input, made);
  const std::vector<Index>& read = work.moved_from[number];
  if (read.size() != dims.size()) return std::nullopt;
  const std::vector<AtomId> symbols = axis_symbols(made.size());
  FactoredSteps result{input.offset, std::vector<std::vector<AxisPart>>(made.size())};
  for (size_t axis = 0; axis < dims.size(); axis++) {
    const std::vector<AxisPart>& parts = input.axes[axis];
    const bool is_added =
        parts.size() > 1 ? move_axis(read[axis], parts, symbols, made, result)
                         : add_subscript(node, read[axis], parts.empty() ? 0 : parts[0].step, symbols, made, result);
    if (!is_added) return std::nullopt;
  }
  for (size_t axis = 0; axis < made.size(); axis++)  // the same again along an axis that nothing is read by
    if (made[axis] != 1 && result.axes[axis].empty()) result.axes[axis] = {{made[axis], 0}};
  return result;
}

std::optional<MemorySteps> single_steps(const FactoredSteps& steps) {
  MemorySteps result{steps.offset, {}};
  for (const std::vector<AxisPart>& axis : steps.axes) {
    if (axis.size() > 1) return std::nullopt;
    result.axes.push_back(axis.empty() ? 1 : axis[0].step);
  }
  return result;
}

}  // namespace gopt::planner
