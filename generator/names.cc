#include "names.h"

#include <algorithm>

namespace gopt::generator {
namespace {

// Extends each map by every permutation of `count` variables of a class.
std::vector<NameMap> with_class(const std::vector<NameMap>& maps, size_t variable_class, unsigned count) {
  std::vector<unsigned> images(count);
  for (unsigned i = 0; i < count; i++) images[i] = i;
  std::vector<NameMap> longer;
  do {
    for (NameMap map : maps) {
      for (unsigned i = 0; i < count; i++)
        map.of_class[variable_class] = with_nibble(map.of_class[variable_class], i, images[i]);
      longer.push_back(map);
    }
  } while (std::next_permutation(images.begin(), images.end()));
  return longer;
}

}  // namespace

uint16_t Signatures::intern(const std::vector<uint8_t>& classes) {
  const auto [entry, is_new] =
      numbers_.try_emplace(std::string(classes.begin(), classes.end()), static_cast<uint16_t>(signatures_.size()));
  if (!is_new) return entry->second;
  Signature made;
  for (uint8_t variable_class : classes) {
    made.classes[made.count] = variable_class;
    made.identity = with_nibble(made.identity, made.count, made.used[variable_class]++);
    made.count++;
  }
  made.permutations = {NameMap::nothing()};
  for (size_t c = 0; c < kMaxClasses; c++)
    if (made.used[c] > 0) made.permutations = with_class(made.permutations, c, made.used[c]);
  signatures_.push_back(std::move(made));
  return entry->second;
}

}  // namespace gopt::generator
