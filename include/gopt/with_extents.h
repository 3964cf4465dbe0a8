// Types and attributes where symbols stand for given extents.
#pragma once

#include "gopt/op.h"
#include "gopt/type.h"

namespace gopt {

inline TensorType with_extents(TensorType type, const Substitution& extents) {
  if (type.shape)
    for (Index& extent : *type.shape) extent = substitute(extent, extents);
  return type;
}

inline Attributes with_extents(Attributes attributes, const Substitution& extents) {
  for (auto& [name, value] : attributes) {
    if (auto* number = std::get_if<Index>(&value)) *number = substitute(*number, extents);
    if (auto* list = std::get_if<std::vector<Index>>(&value))
      for (Index& entry : *list) entry = substitute(entry, extents);
  }
  return attributes;
}

}  // namespace gopt
