// The tile kernels of a model: each instance of the template once, as a function that describes it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gopt/codegen.h"

namespace gopt::codegen {

class TileFunctions {
 public:
  // The function that returns the kernel of an instance of a template: "make<Half, ...>". Its name says the instance.
  const std::string& name_for(const std::string& maker);
  // tiles.h, which declares them, and a source for each, which is the same text in whatever model it is used: what was
  // compiled once is found in the cache of objects. None where there are no tiles.
  std::vector<EmittedFile> files() const;

 private:
  std::map<std::string, std::string> names_;  // by instance
};

}  // namespace gopt::codegen
