// Names of an emitted model under another prefix than the one that the runtime's sources have.
#pragma once

#include <string>
#include <vector>

#include "gopt/codegen.h"

namespace gopt::codegen {

// Every identifier and file name that begins with gopt_ or GOPT_, and the build's targets. What string literals say
// stays, but for the names of included files. Errors: a prefix that is no name in C.
Status rename_symbols(std::vector<EmittedFile>& files, const std::string& prefix);

// The prefix of an emitted folder's functions, as its model.h has them.
std::string prefix_of(const std::string& model_header);

}  // namespace gopt::codegen
