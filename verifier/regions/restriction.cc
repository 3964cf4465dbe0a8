#include "restriction.h"

#include <algorithm>

namespace gopt::verifier {
namespace {

const Shape& shape_of(const Value& value) { return *value.type().shape; }

Shape extents_of(const Box& box) {
  Shape shape;
  for (const AxisRange& range : box) shape.push_back(range.high - range.low);
  return shape;
}

std::vector<TensorType> types_of(const std::vector<Value>& inputs) {
  std::vector<TensorType> types;
  for (const Value& input : inputs) types.push_back(input ? input.type() : TensorType{});
  return types;
}

// What a node becomes for a box of its output: its attributes, and the box of each input. Inputs that are not read are
// left out of operators that take any number of them.
class NarrowedNode {
 public:
  NarrowedNode(const Node& node, const Box& box, const SizeSigns& signs)
      : node_(node), box_(box), signs_(signs), attributes_(node.attributes), pads_(pad_entries(node)) {}

  Status run(const std::vector<InputReads>& reads) {
    for (size_t i = 0; i < reads.size(); i++) {
      if (!node_.inputs[i]) {
        boxes.emplace_back();
        continue;
      }
      const Shape& shape = shape_of(node_.inputs[i]);
      boxes.push_back(whole_of(shape));
      bool is_needed = reads[i].is_read;
      for (size_t axis = 0; reads[i].is_read && reads[i].is_known && axis < shape.size(); axis++) {
        GOPT_ASSIGN_OR_RETURN(boxes[i]->at(axis), clipped(i, axis, shape[axis], reads[i].axes[axis]));
        is_needed = is_needed && !signs_.is_never_below(boxes[i]->at(axis).low, boxes[i]->at(axis).high);
      }
      if (!is_needed && op_info(node_.op).max_inputs < 0) boxes[i].reset();
    }
    // Operators that are told the shape of what they make.
    const auto shape = attributes_.find("shape");
    const Shape own = shape_of({std::make_shared<const Node>(node_), 0});
    if (shape != attributes_.end() && std::holds_alternative<Shape>(shape->second) &&
        std::get<Shape>(shape->second) == own)
      shape->second = extents_of(box_);
    return Unit{};
  }

  std::vector<std::optional<Box>> boxes;  // by input; nothing: left out
  const Attributes& attributes() const { return attributes_; }

 private:
  Index& pad(int entry) { return std::get<std::vector<Index>>(attributes_.at("pads"))[static_cast<size_t>(entry)]; }

  // The part of what is read that lies within the input; what lies outside becomes padding where the operator has some.
  Result<AxisRange> clipped(size_t input, size_t axis, const Index& extent, const ReadRange& read) {
    const auto low = signs_.larger(read.low, Index(0)), high = signs_.smaller(read.high, extent);
    if (!low || !high) return Error{"whether padding is read depends on the sizes"};
    AxisRange range{*low, *high};
    const bool is_padded = input == 0 && axis < pads_.size();
    if (is_padded && pads_[axis].begin >= 0) pad(pads_[axis].begin) = *low - read.low;
    if (is_padded && pads_[axis].end >= 0) {
      // Windows up to the last one: a stride may leave some of the end unread, which is no other padding.
      if (ends_with_output(read))
        range.high = extent;
      else
        pad(pads_[axis].end) = read.high - *high;
    }
    return range;
  }
  bool ends_with_output(const ReadRange& read) const {
    const Shape& shape = *node_.outputs[0].shape;
    for (size_t axis = 0; axis < shape.size(); axis++)
      if (read.follows[axis] && box_[axis].high != shape[axis]) return false;
    return true;
  }

  const Node& node_;
  const Box& box_;
  const SizeSigns& signs_;
  Attributes attributes_;
  std::vector<PadEntries> pads_;
};

}  // namespace

Box whole_of(const Shape& shape) {
  Box box;
  for (const Index& extent : shape) box.push_back({Index(0), extent});
  return box;
}

Result<Value> Restriction::part(const Value& value, const Box& box) {
  const auto key = std::make_pair(value, to_string(box));
  if (auto it = parts_.find(key); it != parts_.end()) return it->second;
  GOPT_ASSIGN_OR_RETURN(const Value found, made(value, box));
  parts_[key] = found;
  return found;
}

Result<Value> Restriction::made(const Value& value, const Box& box) {
  if (box == whole_of(shape_of(value))) return whole(value);
  const Node& node = *value.node;
  if (node.is(OpKind::Input) || node.is(OpKind::Constant)) return cut(value, box);
  if (const auto offsets = offsets_of(node, value.output)) {
    Box moved = box;
    for (size_t axis = 0; axis < box.size(); axis++)
      moved[axis] = {box[axis].low + (*offsets)[axis], box[axis].high + (*offsets)[axis]};
    return part(node.inputs[0], moved);
  }
  if (auto own = narrowed(value, box); own.ok() && is_of_extents(*own, box)) return own;
  return cut(value, box);
}

Result<Value> Restriction::whole(const Value& value) {
  const Node& node = *value.node;
  if (node.is(OpKind::Input)) return inputs_.at(node.name);
  if (node.is(OpKind::Constant)) return builder_.constant(node.tensor, node.name);
  if (auto it = copies_.find(value.node); it != copies_.end()) return Value{it->second, value.output};
  std::vector<Value> inputs;
  for (const Value& input : node.inputs) {
    inputs.emplace_back();
    if (input) {
      GOPT_ASSIGN_OR_RETURN(inputs.back(), whole(input));
    }
  }
  GOPT_ASSIGN_OR_RETURN(copies_[value.node],
                        builder_.add(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size())));
  return Value{copies_[value.node], value.output};
}

Result<Value> Restriction::narrowed(const Value& value, const Box& box) {
  const Node& node = *value.node;
  if (node.outputs.size() != 1) return Error{"one of several outputs"};
  GOPT_ASSIGN_OR_RETURN(const std::vector<InputReads> reads, reads_of(node, value.output, box, signs_));
  NarrowedNode own(node, box, signs_);
  GOPT_RETURN_IF_ERROR(own.run(reads));
  std::vector<Value> inputs;
  for (size_t i = 0; i < node.inputs.size(); i++) {
    if (!own.boxes[i]) {
      if (!node.inputs[i]) inputs.emplace_back();
      continue;
    }
    GOPT_ASSIGN_OR_RETURN(inputs.emplace_back(), part(node.inputs[i], *own.boxes[i]));
  }
  if (inputs.empty()) return Error{"nothing is read"};
  // A Reshape that takes up more of its input than the box has elements, say.
  GOPT_ASSIGN_OR_RETURN(const InferredTypes types, infer_types(node.op, types_of(inputs), own.attributes()));
  for (const Requirement& r : types.requirements)
    if (signs_.is_mostly_false(r.cond)) return Error{"a part of it is not defined: " + r.what};
  GOPT_ASSIGN_OR_RETURN(const NodePtr made, builder_.add(node.op, inputs, own.attributes()));
  const auto offsets = offsets_of(*made, 0);
  const bool is_identity =
      offsets && std::all_of(offsets->begin(), offsets->end(), [](const Index& o) { return o == Index(0); }) &&
      shape_of(made->inputs[0]) == shape_of({made, 0});
  return is_identity ? made->inputs[0] : Value{made, 0};
}

Result<Value> Restriction::cut(const Value& value, const Box& box) {
  GOPT_ASSIGN_OR_RETURN(const Value all, whole(value));
  std::vector<Index> starts, ends, axes;
  for (size_t axis = 0; axis < box.size(); axis++) {
    if (box[axis].low == Index(0) && box[axis].high == shape_of(value)[axis]) continue;
    starts.push_back(box[axis].low);
    ends.push_back(box[axis].high);
    axes.emplace_back(static_cast<int64_t>(axis));
  }
  if (axes.empty()) return all;
  return builder_.apply(OpKind::Slice, {all}, {{"starts", starts}, {"ends", ends}, {"axes", axes}});
}

bool Restriction::is_of_extents(const Value& value, const Box& box) const {
  const Shape& own = shape_of(value);
  const Shape wanted = extents_of(box);
  return std::equal(own.begin(), own.end(), wanted.begin(), wanted.end(),
                    [&](const Index& a, const Index& b) { return signs_.is_same(a, b); });
}

}  // namespace gopt::verifier
