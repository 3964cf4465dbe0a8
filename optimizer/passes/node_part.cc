#include "passes/node_part.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <set>
#include <stdexcept>

namespace gopt::optimizer {
namespace {

// Where in the tensor a place of the part lies.
Index place_of(const Part& part, size_t axis, const Index& inner) {
  return part[axis] ? Index(part[axis]->begin) + Index(part[axis]->step) * inner : inner;
}

// What the places that a subscript takes are apart by, or a divisor of it.
int64_t step_of(const Index& subscript, const Ranges& ranges) {
  int64_t step = 0;
  for (const Index::Term& term : subscript.terms()) {
    const bool is_plain = term.atoms.size() == 1 && ranges.contains(term.atoms[0]);
    step = is_plain ? std::gcd(step, term.coefficient) : 1;
    if (!is_plain) break;
  }
  return std::max<int64_t>(step, 1);
}

// The places of an axis that a subscript takes. Nothing where that is not known, or is all of them.
std::optional<PartOfAxis> places_of(const Index& subscript, const Index& extent, const Ranges& ranges) {
  const auto range = range_of(subscript, ranges);
  if (!range) return std::nullopt;
  // What a guard keeps from being read lies outside the tensor, or is read by no harm.
  const int64_t step = step_of(subscript, ranges), outside = std::max<int64_t>(0, -range->low);
  const int64_t first = range->low + (outside + step - 1) / step * step;
  const auto end = extent.as_constant();
  const int64_t last = end ? std::min(range->high, *end - 1) : range->high;
  if (last < first) return std::nullopt;
  PartOfAxis places{first, (last - first) / step + 1, step};
  if (places.size == 1) places.step = 1;
  return !end || places.size < *end ? std::optional(places) : std::nullopt;
}

// Symbols for the axes of a part, which live as long as this.
class Axes {
 public:
  Axes(const Shape& shape, const Part& part) {
    for (size_t axis = 0; axis < shape.size(); axis++) {
      const Index extent = part[axis] ? Index(part[axis]->size) : shape[axis];
      Index inner(0);
      if (!(extent == Index(1))) {
        symbols_.push_back(fresh_symbol());
        inner = Index::from_atom(symbols_.back());
        if (extent.is_constant()) ranges[symbols_.back()] = {0, extent.constant() - 1};
      }
      of_part.push_back(inner);
      of_whole.push_back(place_of(part, axis, inner));
    }
  }
  ~Axes() {
    for (AtomId symbol : symbols_) release_symbol(symbol);
  }
  Axes(const Axes&) = delete;
  Axes& operator=(const Axes&) = delete;

  std::vector<Index> of_part, of_whole;  // subscripts of one element, in the part and in the tensor
  Ranges ranges;

 private:
  std::vector<AtomId> symbols_;
};

// Of each input the part that an expression reads.
class Reads {
 public:
  explicit Reads(const Node& node) : node_(node), parts_(node.inputs.size()) {}

  void visit(const Expr& e, const Ranges& ranges) {
    std::set<const Expr::Node*> seen;
    visit(e, ranges, seen);
  }

  std::vector<std::optional<Part>> take() && { return std::move(parts_); }

 private:
  void visit(const Expr& e, const Ranges& ranges, std::set<const Expr::Node*>& seen) {
    if (!seen.insert(e.get()).second) return;
    if (e->kind == ExprKind::Read) add(e->input, e->subscripts, ranges);
    visit_loads(e->index);
    visit_loads(e->cond);
    for (const Index& subscript : e->subscripts) visit_loads(subscript);
    if (e->kind != ExprKind::Reduce) {
      for (const Expr& a : e->args) visit(a, ranges, seen);
      return;
    }
    Ranges inner = ranges;
    for (const Binder& b : e->binders) {
      inner.erase(b.symbol);
      if (b.extent.is_constant()) inner[b.symbol] = {0, b.extent.constant() - 1};
    }
    for (const Expr& a : e->args) visit(a, inner);
  }

  void add(int input, const std::vector<Index>& subscripts, const Ranges& ranges) {
    const Shape& shape = *node_.inputs[static_cast<size_t>(input)].type().shape;
    Part part(shape.size());
    for (size_t axis = 0; axis < shape.size(); axis++) part[axis] = places_of(subscripts[axis], shape[axis], ranges);
    std::optional<Part>& known = parts_[static_cast<size_t>(input)];
    known = known ? hull(*known, part) : part;
  }

  void visit_loads(const Cond& cond) {
    if (cond.kind() == CondKind::NonNegative) visit_loads(cond.index());
    for (const Cond& part : cond.parts()) visit_loads(part);
  }
  // What is read to know where to read is read as a whole.
  void visit_loads(const Index& index) {
    for (const Index::Term& term : index.terms())
      for (AtomId id : term.atoms) {
        const Atom& a = atom(id);
        if (a.kind == AtomKind::FloorDiv) {
          visit_loads(a.numerator);
          visit_loads(a.denominator);
        }
        if (a.kind != AtomKind::Load) continue;
        const size_t input = static_cast<size_t>(a.input);
        parts_[input] = Part(node_.inputs[input].type().shape->size());
        for (const Index& subscript : a.subscripts) visit_loads(subscript);
      }
  }

  const Node& node_;
  std::vector<std::optional<Part>> parts_;
};

bool has_known_shapes(const Node& node) {
  return std::ranges::all_of(node.inputs, [](const Value& input) { return !input || input.type().shape; });
}

// The definition over the inputs, or over parts of them, which are read where they lie in the whole.
Result<Definition> define_over(const Node& node, const NodePart& what, bool parts) {
  std::vector<TensorExpr> inputs;
  for (size_t k = 0; k < node.inputs.size(); k++) {
    if (what.op != node.op && !what.reads[k]) continue;
    if (!node.inputs[k]) {
      inputs.emplace_back();
      continue;
    }
    const int number = static_cast<int>(k);
    inputs.push_back(input_tensor(number, node.inputs[k].type()));
    if (node.inputs[k].node->is(OpKind::Constant)) inputs.back().data = &node.inputs[k].node->tensor;
    if (!parts || !what.reads[k] || is_whole(*what.reads[k])) continue;
    const Part& part = *what.reads[k];
    inputs.back().data = nullptr;
    inputs.back().shape = extents_of(inputs.back().shape, part);
    inputs.back().at = [number, part](std::vector<Index> s) {
      for (size_t axis = 0; axis < s.size(); axis++) s[axis] = place_of(part, axis, s[axis]);
      return read(number, std::move(s));
    };
  }
  return define(what.op, inputs, what.attributes, static_cast<int>(what.op == node.op ? node.outputs.size() : 1));
}

// Whether what one definition needs of open extents the other needs, too.
bool asks_no_more(const Definition& one, const Definition& other) {
  return std::ranges::all_of(one.requirements, [&](const Requirement& own) {
    return std::ranges::any_of(other.requirements, [&](const Requirement& r) { return r.cond == own.cond; });
  });
}

std::vector<Index> list_of(const Attributes& attributes, const char* name) {
  const auto it = attributes.find(name);
  if (it == attributes.end()) return {};
  const auto* list = std::get_if<std::vector<Index>>(&it->second);
  return list ? *list : std::vector<Index>();
}

// All places of an axis that is read as a whole; nothing where nobody knows how many these are.
std::optional<PartOfAxis> places_in(const Part& part, const Shape& shape, size_t axis) {
  if (part[axis]) return part[axis];
  const auto extent = shape[axis].as_constant();
  return extent ? std::optional(PartOfAxis{0, *extent, 1}) : std::nullopt;
}

// Windows over one axis.
struct AxisWindow {
  Index before, behind, kernel, stride, dilation;
  bool is_of_numbers() const {
    return before.is_constant() && kernel.is_constant() && stride.is_constant() && dilation.is_constant();
  }
};

// The windows at the wanted places over those that are read: before and behind these stands what was padding there.
// False where the steps of both do not fit, or windows are not of numbers.
bool move(AxisWindow& window, const PartOfAxis& wanted, const PartOfAxis& read) {
  if (!window.is_of_numbers()) return false;
  const int64_t stride = window.stride.constant(), dilation = window.dilation.constant();
  const int64_t reach = (window.kernel.constant() - 1) * dilation;
  const int64_t first = wanted.begin * stride - window.before.constant();
  const int64_t last = wanted.last() * stride - window.before.constant() + reach;
  const int64_t step = read.step;
  if ((wanted.size > 1 && wanted.step * stride % step != 0) || (reach > 0 && dilation % step != 0)) return false;
  if (wanted.size > 1) window.stride = Index(wanted.step * stride / step);  // one window is at any
  window.dilation = Index(reach > 0 ? dilation / step : 1);
  window.before = Index(std::max<int64_t>(0, read.begin - first) / step);
  window.behind = Index(std::max<int64_t>(0, last - read.last()) / step);
  return true;
}

bool set_windows(const Node& node, const Part& part, NodePart& what) {
  const Shape& shape = *node.inputs[0].type().shape;
  const size_t axes = shape.size() - 2;
  std::vector<Index> pads = list_of(what.attributes, "pads"), kernel = list_of(what.attributes, "kernel_shape");
  std::vector<Index> strides = list_of(what.attributes, "strides"), dilations = list_of(what.attributes, "dilations");
  if (kernel.empty() && node.inputs.size() > 1) {
    const Shape& weights = *node.inputs[1].type().shape;
    kernel.assign(weights.begin() + 2, weights.end());
  }
  if (pads.size() != 2 * axes || kernel.size() != axes || strides.size() != axes || dilations.size() != axes)
    return false;
  for (size_t a = 0; a < axes; a++) {
    if (!part[2 + a]) continue;
    const auto read = places_in(*what.reads[0], shape, 2 + a);
    AxisWindow window{pads[a], pads[axes + a], kernel[a], strides[a], dilations[a]};
    if (!read || !move(window, *part[2 + a], *read)) return false;
    pads[a] = window.before;
    pads[axes + a] = window.behind;
    strides[a] = window.stride;
    dilations[a] = window.dilation;
  }
  what.attributes["pads"] = std::move(pads);
  what.attributes["strides"] = std::move(strides);
  what.attributes["dilations"] = std::move(dilations);
  return true;
}

bool set_borders(const Node& node, const Part& part, NodePart& what) {
  const Shape& shape = *node.inputs[0].type().shape;
  std::vector<Index> pads = list_of(what.attributes, "pads");
  if (pads.size() != 2 * shape.size() || what.attributes.contains("axes")) return false;
  for (size_t axis = 0; axis < shape.size(); axis++) {
    if (!part[axis]) continue;
    const auto read = places_in(*what.reads[0], shape, axis);
    AxisWindow window{pads[axis], pads[shape.size() + axis], Index(1), Index(1), Index(1)};
    if (!read || !move(window, *part[axis], *read) || !(window.stride == Index(1))) return false;
    pads[axis] = window.before;
    pads[shape.size() + axis] = window.behind;
  }
  what.attributes["pads"] = std::move(pads);
  return true;
}

// Numbers of an operator that say where in a tensor, or how large one is, restated for the part.
bool restate(const Node& node, const Part& part, NodePart& what) {
  switch (node.op) {
    case OpKind::Conv:
    case OpKind::MaxPool:
    case OpKind::AveragePool: return set_windows(node, part, what);
    case OpKind::Pad: return set_borders(node, part, what);
    case OpKind::Reshape:
    case OpKind::Expand: {
      std::vector<Index> shape = list_of(what.attributes, "shape");
      if (shape.size() != part.size()) return false;
      for (size_t axis = 0; axis < part.size(); axis++)
        if (part[axis]) shape[axis] = Index(part[axis]->size);
      what.attributes["shape"] = std::move(shape);
      return true;
    }
    case OpKind::Gather: {  // at one index, a number: all that is read along the axis
      const Value& index = node.inputs[1];
      if (!index.node->is(OpKind::Constant) || index.node->tensor.count() != 1 || !index.type().shape->empty())
        return true;
      what.op = OpKind::Squeeze;
      what.attributes = {{"axes", std::vector<Index>{std::get<Index>(what.attributes.at("axis"))}}};
      what.reads[1].reset();
      return true;
    }
    default: return true;
  }
}

// The number of the input that an element of the part is one of, at its own place.
std::optional<size_t> copied_input(const Expr& element, const std::vector<Index>& subscripts,
                                   const std::vector<std::optional<Part>>& reads) {
  if (element->kind != ExprKind::Read || element->subscripts.size() != subscripts.size()) return std::nullopt;
  const size_t input = static_cast<size_t>(element->input);
  const Part& part = *reads[input];
  for (size_t axis = 0; axis < subscripts.size(); axis++)
    if (!(element->subscripts[axis] == place_of(part, axis, subscripts[axis]))) return std::nullopt;
  return input;
}

std::optional<NodePart> part_by_definition(const Value& value, const Part& part) {
  const Node& node = *value.node;
  NodePart what{node.op, node.attributes, std::vector<std::optional<Part>>(node.inputs.size()), std::nullopt};
  const auto whole = define_over(node, what, false);
  if (!whole.ok()) return std::nullopt;
  const Shape& shape = *value.type().shape;
  const Shape extents = extents_of(shape, part);
  const Axes axes(shape, part);
  const Expr element = simplify(whole->outputs[static_cast<size_t>(value.output)].at(axes.of_whole), axes.ranges);
  Reads reads(node);
  reads.visit(element, axes.ranges);
  what.reads = std::move(reads).take();
  what.copied = copied_input(element, axes.of_part, what.reads);
  if (what.copied) {
    const Part& copied = *what.reads[*what.copied];
    const TensorType& input = node.inputs[*what.copied].type();  // a Cast to a wider type reads alike
    if (input.element == value.type().element && extents_of(*input.shape, copied) == extents) return what;
    what.copied.reset();
  }
  if (node.outputs.size() != 1) return std::nullopt;
  for (size_t k = 0; k < node.inputs.size(); k++) {  // an operator without one of its inputs is another
    if (!node.inputs[k] || what.reads[k]) continue;
    if (!node.inputs[k].node->is(OpKind::Constant)) return std::nullopt;
    what.reads[k] = Part(node.inputs[k].type().shape->size());
  }
  if (!restate(node, part, what)) return std::nullopt;
  const auto own = define_over(node, what, true);
  if (!own.ok() || own->outputs[0].element != value.type().element || !(own->outputs[0].shape == extents))
    return std::nullopt;
  if (!asks_no_more(*own, *whole)) return std::nullopt;
  if (!(simplify(own->outputs[0].at(axes.of_part), axes.ranges) == element)) return std::nullopt;
  return what;
}

}  // namespace

bool is_whole(const Part& part) {
  return std::ranges::none_of(part, [](const std::optional<PartOfAxis>& places) { return places.has_value(); });
}

Part hull(const Part& a, const Part& b) {
  Part both(a.size());
  for (size_t axis = 0; axis < a.size(); axis++) {
    if (!a[axis] || !b[axis]) continue;
    const int64_t begin = std::min(a[axis]->begin, b[axis]->begin), last = std::max(a[axis]->last(), b[axis]->last());
    int64_t step = std::abs(a[axis]->begin - b[axis]->begin);
    for (const PartOfAxis* places : {&*a[axis], &*b[axis]})
      if (places->size > 1) step = std::gcd(step, places->step);
    step = std::max<int64_t>(step, 1);
    both[axis] = PartOfAxis{begin, (last - begin) / step + 1, step};
  }
  return both;
}

Shape extents_of(const Shape& shape, const Part& part) {
  Shape extents = shape;
  for (size_t axis = 0; axis < shape.size(); axis++)
    if (part[axis]) extents[axis] = Index(part[axis]->size);
  return extents;
}

std::optional<NodePart> part_of(const Value& value, const Part& part) {
  const Node& node = *value.node;
  if (node.is(OpKind::Input) || node.is(OpKind::Constant) || node.is(OpKind::Opaque) || !has_known_shapes(node))
    return std::nullopt;
  if (!value.type().shape) return std::nullopt;               // two open extents that may be equal, or 1
  if (op_info(node.op).has(kShapeOnly)) return std::nullopt;  // they read no element, and depend on all extents
  try {
    return part_by_definition(value, part);
  } catch (const std::overflow_error&) {  // extents beyond what subscripts can be computed with
    return std::nullopt;
  }
}

}  // namespace gopt::optimizer
