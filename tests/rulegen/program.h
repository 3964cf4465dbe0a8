// Runs rulegen as a user does, in a folder of its own.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "rules.h"
#include "run_command.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {

inline Outcome run_rulegen(const std::string& arguments, const char* errors = "2>&1") {
  return run_command(std::string(RULEGEN_PROGRAM) + " " + arguments, errors);
}

inline bool has_cvc5() { return std::system("cvc5 --version >/dev/null 2>&1") == 0; }

}  // namespace gopt
