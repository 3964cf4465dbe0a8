// Expressions of open extents as C++ text: a size is "n0", "n1", ... by its number among the open extents.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gopt/plan.h"

namespace gopt::codegen {

// A polynomial, its terms in the order of their text: that of atoms depends on what was made before.
std::string index_text(const Index& index, const std::function<std::string(AtomId)>& atom_text);

// Precondition: it is one of the open extents.
std::string size_name(AtomId symbol, const std::vector<OpenExtent>& open);
// "const int64_t n0 = n[0];...": of those that the code names.
std::string declared_sizes(const std::vector<OpenExtent>& open, const std::string& code);
// Of sizes alone, outside of kernels; divisions are gopt_runtime::floor_div.
std::string size_text(const Index& index, const std::vector<OpenExtent>& open);
std::string size_text(const Cond& cond, const std::vector<OpenExtent>& open);
std::string list(const Shape& shape, const std::vector<OpenExtent>& open);  // "{n0, 3, 2 * n1}"

}  // namespace gopt::codegen
