// The Python that goes along in the program, by its file's name in runtime/.
#pragma once

#include <string_view>

namespace gopt::driver {

std::string_view runtime_text(std::string_view file);

}  // namespace gopt::driver
