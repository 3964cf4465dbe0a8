// A part of a value computed by itself: each operator over the slices of its inputs that the part reads, its padding
// cut down to what of it is read. What this gives is a guess like any other, which the proof of the rule it stands in
// tells.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "read_ranges.h"

namespace gopt::verifier {

Box whole_of(const Shape& shape);

class Restriction {
 public:
  // Values are made in `builder` from its inputs, by name. Precondition: all three outlive this.
  Restriction(GraphBuilder& builder, const std::map<std::string, Value>& inputs, const SizeSigns& signs)
      : builder_(builder), inputs_(inputs), signs_(signs) {}

  // The value, of whatever graph, in the box of it: of as little work as the operators' definitions show, and at worst
  // all of the value and a Slice. Errors: operators that do not fit together so.
  Result<Value> part(const Value& value, const Box& box);
  // The whole value, and a Slice of it.
  Result<Value> cut(const Value& value, const Box& box);

 private:
  Result<Value> whole(const Value& value);
  Result<Value> made(const Value& value, const Box& box);
  Result<Value> narrowed(const Value& value, const Box& box);
  bool is_of_extents(const Value& value, const Box& box) const;

  GraphBuilder& builder_;
  const std::map<std::string, Value>& inputs_;
  const SizeSigns& signs_;
  std::map<std::pair<Value, std::string>, Value> parts_;
  std::map<NodePtr, NodePtr> copies_;
};

}  // namespace gopt::verifier
