// Compiles emitted folders with all warnings as errors, as other people's programs do.
#pragma once

#include <string>

#include "run_command.h"

namespace gopt {

// Objects of the folder's sources beside them. Most sources are the runtime's, the same in all folders of one prefix:
// where there is ccache, they are compiled once (named without their folder, for that). In any order: two tests that
// run at once would otherwise compile the same source at the same time.
inline Outcome compile_folder(const std::string& folder) {
  return run_command("cd " + folder +
                     " && for source in $(ls *.cc | shuf); do $(command -v ccache) g++ -std=c++17 -O0 -Wall -Wextra "
                     "-Werror -fopenmp -c $source -o ${source%.cc}.o || exit 1; done");
}

// All but those of the folder's own main().
inline std::string objects_of(const std::string& folder) { return "$(ls " + folder + "/*.o | grep -v example.o)"; }

// A program of sources of others and objects.
inline Outcome link_program(const std::string& sources_and_objects, const std::string& program) {
  return run_command("g++ -std=c++17 -O0 -Wall -Wextra -Werror -fopenmp " + sources_and_objects +
                     " -ldnnl -lpthread -o " + program);
}

}  // namespace gopt
