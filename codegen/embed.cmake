# gopt_embed(OUTPUT NAMESPACE FUNCTION FILE...): a source file with `std::string_view FUNCTION(std::string_view file)` in that namespace
# that returns the text of each file by its name, and throws InternalError where there is none.
function(gopt_embed output namespace function)
  set(cases "")
  foreach(file ${ARGN})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
    file(READ ${file} text)
    get_filename_component(name ${file} NAME)
    string(APPEND cases "  if (file == \"${name}\") return R\"_GOPT_(${text})_GOPT_\";\n")
  endforeach()
  file(CONFIGURE OUTPUT ${output} CONTENT "// Made by embed.cmake.\n#include <string>\n#include <string_view>\n\n#include \"gopt/result.h\"\n\nnamespace @namespace@ {\n\nstd::string_view ${function}(std::string_view file) {\n@cases@  throw gopt::InternalError(\"no embedded file is named '\" + std::string(file) + \"'\");\n}\n\n}  // namespace @namespace@\n" @ONLY)
endfunction()
