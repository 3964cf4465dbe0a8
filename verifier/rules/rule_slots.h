// Places of a rule that hold an integer which might as well be another: attributes that are quantities (strides, pads,
// splits; not axes, permutations or flags) and the variables' extents. A rule is read as a list of slots, and built
// again with other values in them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gopt/rule.h"

namespace gopt::verifier {

enum class SlotPlace { Extent, Left, Right };

struct Slot {
  SlotPlace place = SlotPlace::Left;
  size_t owner = 0;       // variable, or position of the node among its side's nodes
  std::string attribute;  // "extent" for extents
  size_t position = 0;    // axis, or entry of the list
  size_t entries = 1;     // of the list
  Index value;
};

// In order: extents, left side, right side.
std::vector<Slot> slots_of(const RewriteRule& rule);

// The rule with slots replaced; its proof and condition are dropped. Errors: a side that is not well typed then.
Result<RewriteRule> with_slots(const RewriteRule& rule, const std::vector<Slot>& replaced);

// The rule with each float attribute of this value replaced by a new float variable, on the right side too if
// `also_right`. Errors: as above, or the left side has no such attribute.
Result<RewriteRule> with_float_variable(const RewriteRule& rule, double value, bool also_right);

// The rule with a scalar constant of this value as a variable, a weight, on both sides. Errors: as above.
Result<RewriteRule> with_scalar_variable(const RewriteRule& rule, const Tensor& constant);

}  // namespace gopt::verifier
