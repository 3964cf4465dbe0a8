// Compiles an emitted folder into a shared library with the system's C++ compiler, or nvcc where it holds CUDA. Objects
// and libraries are kept in a cache folder ($XDG_CACHE_HOME/gopt, else ~/.cache/gopt), under a hash of all that they
// are made of.
#pragma once

#include <string>
#include <vector>

#include "gopt/result.h"

namespace gopt::codegen {

// Path of the library. Errors: no compiler, the first lines of what it said.
Result<std::string> build_folder(const std::string& folder);

// The same for sources by name and text: what build_folder does after reading.
struct Source {
  std::string name, text;
};
Result<std::string> build_sources(const std::vector<Source>& sources);
// The same for several at once, for one target: what they have in common is compiled once.
std::vector<Result<std::string>> build_all(std::vector<std::vector<Source>> all);
bool is_source(const std::string& name);  // of a file of a folder

}  // namespace gopt::codegen
