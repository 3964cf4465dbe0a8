// A place at which a program says that it has come there and waits for a signal, so that what an interruption does can
// be seen at a chosen moment, however fast the machine is. For tests: GOPT_HOLD="5 FILE" holds after the fifth verdict
// (of `gopt optimize`: step of the search), and writes a line to FILE (a pipe: /dev/fd/9) when it is there.
#pragma once

#include <cstddef>
#include <string>

#include "gopt/result.h"

namespace gopt::cli {

class Hold {
 public:
  Hold() = default;  // nowhere
  // Errors: a text that is not of that form.
  static Result<Hold> parse(const char* text);  // null: nowhere

  // Returns at once for any other count; else when a signal was handled. SIGINT and SIGTERM that come before it waits
  // are not missed.
  void after(size_t count) const;
  bool is_set() const { return count_ > 0; }

 private:
  size_t count_ = 0;
  std::string file_;
};

}  // namespace gopt::cli
