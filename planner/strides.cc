#include "strides.h"

#include "access.h"
#include "node_work.h"

namespace gopt::planner {

MemorySteps row_major_steps(const std::vector<int64_t>& dims) {
  MemorySteps steps{0, std::vector<int64_t>(dims.size())};
  int64_t step = 1;
  for (size_t axis = dims.size(); axis-- > 0; step *= dims[axis]) steps.axes[axis] = step;
  return steps;
}

namespace {

// The same elements in the same order with other extents: axes are merged where one goes on where the other ends.
std::optional<MemorySteps> reshaped(const std::vector<int64_t>& from, const MemorySteps& input,
                                    const std::vector<int64_t>& to) {
  std::vector<int64_t> extents, steps;  // of what is there, without axes of one place
  for (size_t axis = 0; axis < from.size(); axis++) {
    if (from[axis] == 1) continue;
    extents.push_back(from[axis]);
    steps.push_back(input.axes[axis]);
  }
  MemorySteps result{input.offset, std::vector<int64_t>(to.size())};
  size_t next = 0;  // of `extents`
  for (size_t axis = 0; axis < to.size();) {
    if (to[axis] == 1) {
      result.axes[axis++] = 1;
      continue;
    }
    if (next == extents.size()) return std::nullopt;
    // The fewest axes on either side that hold as many elements.
    size_t axis_end = axis + 1, next_end = next + 1;
    int64_t made = to[axis], read = extents[next];
    while (made != read) {
      if (made < read) {
        if (axis_end == to.size()) return std::nullopt;
        made *= to[axis_end++];
      } else {
        if (next_end == extents.size()) return std::nullopt;
        read *= extents[next_end++];
      }
    }
    for (size_t k = next; k + 1 < next_end; k++)
      if (steps[k] != steps[k + 1] * extents[k + 1]) return std::nullopt;
    int64_t step = steps[next_end - 1];
    for (size_t k = axis_end; k-- > axis; step *= to[k]) result.axes[k] = step;
    axis = axis_end;
    next = next_end;
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

// Adds a subscript's part of the way: `step` elements for each of it.
bool add_subscript(const Node& node, const Index& subscript, int64_t step, const std::vector<AtomId>& symbols,
                   MemorySteps& result) {
  result.offset += subscript.constant() * step;
  for (const Index::Term& term : subscript.terms()) {
    if (term.atoms.size() != 1) return false;
    const int64_t by = term.coefficient * step;
    if (const auto number = constant_load(node, atom(term.atoms[0]))) {
      result.offset += *number * by;
      continue;
    }
    size_t axis = 0;
    while (axis < symbols.size() && symbols[axis] != term.atoms[0]) axis++;
    if (axis == symbols.size()) return false;
    result.axes[axis] += by;
  }
  return true;
}

}  // namespace

std::optional<MemorySteps> steps_through(const Value& output, const MemorySteps& input) {
  const Node& node = *output.node;
  const NodeWork& work = work_of(node);
  const auto number = static_cast<size_t>(output.output);
  if (number >= work.moved_from.size() || !node.inputs[0]) return std::nullopt;
  const TensorType &from = node.inputs[0].type(), &to = output.type();
  if (from.element != to.element || !from.has_static_shape() || !to.has_static_shape()) return std::nullopt;
  const std::vector<int64_t> dims = from.static_shape(), made = to.static_shape();
  if (work.keeps_order) return reshaped(dims, input, made);
  const std::vector<Index>& read = work.moved_from[number];
  if (read.size() != dims.size()) return std::nullopt;
  const std::vector<AtomId> symbols = axis_symbols(made.size());
  MemorySteps result{input.offset, std::vector<int64_t>(made.size(), 0)};
  for (size_t axis = 0; axis < dims.size(); axis++)
    if (!add_subscript(node, read[axis], input.axes[axis], symbols, result)) return std::nullopt;
  return result;
}

}  // namespace gopt::planner
