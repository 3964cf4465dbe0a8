#include <algorithm>
#include <climits>
#include <set>

#include "definitions/context.h"

namespace gopt {

using namespace ir;

namespace {

bool kind_matches(AttributeKind kind, const AttributeValue& value) {
  switch (kind) {
    case AttributeKind::Int: return std::holds_alternative<Index>(value);
    case AttributeKind::Ints: return std::holds_alternative<std::vector<Index>>(value);
    case AttributeKind::Float:
      return std::holds_alternative<double>(value) || std::holds_alternative<FloatVariable>(value);
    case AttributeKind::Floats: return std::holds_alternative<std::vector<double>>(value);
    case AttributeKind::String: return std::holds_alternative<std::string>(value);
    case AttributeKind::Tensor: return std::holds_alternative<Tensor>(value);
  }
  return false;
}

Status check_attributes(const OpInfo& info, const Attributes& attributes) {
  for (const auto& [name, value] : attributes) {
    const AttributeSchema* schema = info.find_attribute(name);
    if (!schema) return Error{info.name + ": unknown attribute " + name};
    if (!kind_matches(schema->kind, value)) return Error{info.name + ": attribute " + name + " is of the wrong kind"};
  }
  for (const AttributeSchema& schema : info.attributes)
    if (schema.required && !attributes.contains(schema.name))
      return Error{info.name + ": attribute " + schema.name + " is missing"};
  return Unit{};
}

Index as_index(size_t v) { return Index(static_cast<int64_t>(v)); }
std::vector<Index> doubled(const std::vector<Index>& a, const std::vector<Index>& b) {
  std::vector<Index> r = a;
  r.insert(r.end(), b.begin(), b.end());
  return r;
}
bool all_constant(const std::vector<Index>& values) {
  return std::all_of(values.begin(), values.end(), [](const Index& i) { return i.is_constant(); });
}

// One rewriting of attributes `a`, seen through context c (which reads the attributes as they came).
void canonical_window(DefineContext& c, Attributes& a, std::vector<Index> kernel) {
  const Shape& x = c.input(0).shape;
  if (x.size() < 3) c.fail("x has at least three axes");
  const Window w = resolve_window(c, Shape(x.begin() + 2, x.end()), std::move(kernel));
  a["strides"] = w.strides;
  a["dilations"] = w.dilations;
  a["pads"] = doubled(w.pads_begin, w.pads_end);
  a["auto_pad"] = std::string("NOTSET");
}

// The kernel's extents are those of w: the attribute goes where it says the same, and stays where symbols leave that
// open.
void drop_kernel_shape(DefineContext& c, Attributes& a) {
  const Shape& w = c.input(1).shape;
  if (!c.has("kernel_shape") || w.size() < 3) return;
  const std::vector<Index> kernel = c.integers("kernel_shape");
  if (kernel == std::vector<Index>(w.begin() + 2, w.end())) a.erase("kernel_shape");
}

void canonical_conv_transpose(DefineContext& c, Attributes& a) {
  const size_t rank = c.input(0).shape.size();
  if (rank < 3) c.fail("x has at least three axes");
  const size_t axes = rank - 2;
  drop_kernel_shape(c, a);
  a["strides"] = c.integers_or("strides", std::vector<Index>(axes, Index(1)));
  a["dilations"] = c.integers_or("dilations", std::vector<Index>(axes, Index(1)));
  if (c.text("auto_pad") != "NOTSET" || c.has("output_shape")) return;
  a["pads"] = c.integers_or("pads", std::vector<Index>(2 * axes, Index(0)));
  a["output_padding"] = c.integers_or("output_padding", std::vector<Index>(axes, Index(0)));
}

void canonical_reduction(DefineContext& c, Attributes& a) {
  const std::vector<bool> reduced = reduced_axes(c, c.input(0).shape.size());
  std::vector<Index> axes;
  for (size_t k = 0; k < reduced.size(); k++)
    if (reduced[k]) axes.push_back(as_index(k));
  a["noop_with_empty_axes"] = Index(axes.empty() ? 1 : 0);
  a["axes"] = std::move(axes);
}

std::vector<Index> normalized(DefineContext& c, const std::vector<Index>& axes, size_t rank) {
  std::vector<Index> r;
  for (const Index& axis : axes) r.push_back(as_index(c.normalize_axis(axis, rank)));
  return r;
}

void canonical_slice(DefineContext& c, Attributes& a) {
  const Shape& x = c.input(0).shape;
  const std::vector<Index> starts = c.integers("starts");
  std::vector<Index> ends = c.integers_or("ends", starts), axes(starts.size()), steps(starts.size(), Index(1));
  for (size_t k = 0; k < axes.size(); k++) axes[k] = as_index(k);
  axes = normalized(c, c.integers_or("axes", axes), x.size());
  steps = c.integers_or("steps", steps);
  std::vector<size_t> order(axes.size());
  for (size_t k = 0; k < order.size(); k++) order[k] = k;
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) { return axes[i].constant() < axes[j].constant(); });
  std::vector<Index> new_starts, new_ends, new_axes, new_steps;
  for (size_t k : order) {
    const Index& extent = x[static_cast<size_t>(axes[k].constant())];
    Index start = starts[k], end = ends[k];
    if (extent.is_constant() && start.is_constant() && end.is_constant() && steps[k].is_constant()) {
      const SliceRange r = resolve_slice(c, extent, start, end, steps[k].constant());
      start = r.start;
      end = r.start + r.extent * Index(r.step);
      // The end lies a step past the last element, but within the axis; -1 would mean the last element: far below is
      // "before 0".
      if (r.step > 0) end = std::min(end.constant(), extent.constant());
      if (r.step < 0 && end.constant() < 0) end = -(extent + Index(1));
    }
    new_starts.push_back(start);
    new_ends.push_back(end);
    new_axes.push_back(axes[k]);
    new_steps.push_back(steps[k]);
  }
  a["starts"] = new_starts;
  a["ends"] = new_ends;
  a["axes"] = new_axes;
  a["steps"] = new_steps;
}

void canonical_split(DefineContext& c, Attributes& a) {
  const Shape& x = c.input(0).shape;
  const size_t axis = c.axis("axis", x.size());
  a["axis"] = as_index(axis);
  if (a.contains("split")) return;
  DefineContext probe = c;  // the definition says the parts
  define_Split(probe);
  std::vector<Index> parts;
  for (const TensorExpr& t : probe.take().outputs) parts.push_back(t.shape[axis]);
  a["split"] = parts;
  a.erase("num_outputs");
}

void canonical_pad(DefineContext& c, Attributes& a) {
  const size_t rank = c.input(0).shape.size();
  if (!a.contains("axes")) return;
  const std::vector<Index> axes = normalized(c, c.integers("axes"), rank), pads = c.integers("pads");
  if (pads.size() != 2 * axes.size()) c.fail("pads has two entries an axis");
  if (std::set<Index>(axes.begin(), axes.end()).size() != axes.size()) c.fail("an axis is given twice");
  std::vector<Index> full(2 * rank, Index(0));
  for (size_t k = 0; k < axes.size(); k++) {
    full[static_cast<size_t>(axes[k].constant())] = pads[k];
    full[rank + static_cast<size_t>(axes[k].constant())] = pads[axes.size() + k];
  }
  a["pads"] = full;
  a.erase("axes");
}

// Extents that are numbers replace 0 and -1; in shapes with symbols those stay, since ONNX can say them in no other
// way.
// The shape of the result, which a shorter one or one of ones may stand for.
void canonical_expand(DefineContext& c, Attributes& a) {
  const Shape x = c.input(0).shape;
  Shape wanted = c.integers("shape");
  const auto are_numbers = [](const Shape& shape) { return std::ranges::all_of(shape, &Index::is_constant); };
  if (!are_numbers(x) || !are_numbers(wanted)) return;
  if (wanted.size() < x.size()) wanted.insert(wanted.begin(), x.size() - wanted.size(), Index(1));
  for (size_t k = 0; k < x.size(); k++) {
    Index& extent = wanted[wanted.size() - x.size() + k];
    if (extent == Index(1)) extent = x[k];
  }
  a["shape"] = wanted;
}

void canonical_reshape(DefineContext& c, Attributes& a) {
  const std::vector<Index> wanted = c.integers("shape");
  const Shape shape = resolve_reshape(c, c.input(0).shape, wanted, c.number("allowzero") != 0);
  if (!all_constant(shape)) return;
  const bool zero = std::find(shape.begin(), shape.end(), Index(0)) != shape.end();
  a["shape"] = shape;
  a["allowzero"] = Index(zero ? 1 : 0);
}

void canonical_squeeze(DefineContext& c, Attributes& a) {
  const Shape& x = c.input(0).shape;
  std::vector<Index> axes;
  if (c.has("axes")) {
    axes = normalized(c, c.integers("axes"), x.size());
  } else {
    for (size_t k = 0; k < x.size(); k++) {
      if (!x[k].is_constant()) return;
      if (x[k] == Index(1)) axes.push_back(as_index(k));
    }
  }
  std::sort(axes.begin(), axes.end());
  a["axes"] = axes;
}

void canonicalize(OpKind kind, DefineContext& c, Attributes& a) {
  const size_t rank = c.has_input(0) ? c.input(0).shape.size() : 0;
  switch (kind) {
    case OpKind::Conv: {
      const Shape& w = c.input(1).shape;
      if (w.size() < 3) c.fail("w has at least three axes");
      drop_kernel_shape(c, a);
      return canonical_window(c, a, Shape(w.begin() + 2, w.end()));
    }
    case OpKind::MaxPool:
    case OpKind::AveragePool: return canonical_window(c, a, c.integers("kernel_shape"));
    case OpKind::ConvTranspose: return canonical_conv_transpose(c, a);
    case OpKind::ReduceSum:
    case OpKind::ReduceMean:
    case OpKind::ReduceMax:
    case OpKind::ReduceMin:
    case OpKind::ReduceProd:
    case OpKind::ReduceL1:
    case OpKind::ReduceL2:
    case OpKind::ReduceSumSquare:
    case OpKind::ReduceLogSum:
    case OpKind::ReduceLogSumExp: return canonical_reduction(c, a);
    case OpKind::Concat:
    case OpKind::Softmax:
    case OpKind::LogSoftmax:
    case OpKind::LayerNormalization:
    case OpKind::Gather:
    case OpKind::GatherElements:
    case OpKind::ScatterAlong: a["axis"] = as_index(c.axis("axis", rank)); return;
    // Momentum is of training alone.
    case OpKind::BatchNormalization:
      if (c.number("training_mode") == 0) a["momentum"] = *op_info(kind).find_attribute("momentum")->default_value;
      return;
    case OpKind::Flatten: a["axis"] = as_index(c.axis("axis", rank, true)); return;
    case OpKind::Slice: return canonical_slice(c, a);
    case OpKind::Split: return canonical_split(c, a);
    case OpKind::Pad: return canonical_pad(c, a);
    case OpKind::Expand: return canonical_expand(c, a);
    case OpKind::Reshape: return canonical_reshape(c, a);
    case OpKind::Squeeze: return canonical_squeeze(c, a);
    case OpKind::Unsqueeze: {
      std::vector<Index> axes = normalized(c, c.integers("axes"), rank + c.integers("axes").size());
      std::sort(axes.begin(), axes.end());
      a["axes"] = axes;
      return;
    }
    case OpKind::Transpose: {
      std::vector<Index> perm;
      for (size_t k = rank; k-- > 0;) perm.push_back(as_index(k));
      a["perm"] = normalized(c, c.integers_or("perm", perm), rank);
      return;
    }
    default: return;  // no form but the defaults
  }
}

}  // namespace

Result<Attributes> canonical_attributes(OpKind kind, const std::vector<TensorType>& inputs,
                                        const Attributes& attributes, int output_count) {
  const OpInfo& info = op_info(kind);
  GOPT_RETURN_IF_ERROR(check_attributes(info, attributes));
  Attributes canonical = attributes;
  for (const AttributeSchema& schema : info.attributes)
    if (schema.default_value && !canonical.contains(schema.name)) canonical[schema.name] = *schema.default_value;
  std::vector<TensorExpr> tensors;
  for (size_t i = 0; i < inputs.size(); i++) {
    const bool missing = inputs[i].element == ElementType::Undefined;
    if (!missing && !inputs[i].shape) return canonical;
    tensors.push_back(missing ? TensorExpr{} : input_tensor(static_cast<int>(i), inputs[i]));
  }
  DefineContext c(kind, tensors, attributes, output_count);
  try {
    canonicalize(kind, c, canonical);
  } catch (const DefinitionError& e) {
    return Error{e.what()};
  } catch (const std::overflow_error& e) {
    return Error{info.name + ": " + e.what()};
  }
  return canonical;
}

}  // namespace gopt
