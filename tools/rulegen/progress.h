// A progress bar that is drawn over on a terminal, and nothing elsewhere.
#pragma once

#include <string>

namespace gopt::cli {

class Progress {
 public:
  explicit Progress(size_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step(const std::string& what);  // one more is done, of which `what` was the last
  void clear();                        // before a line is printed

 private:
  size_t total_, done_ = 0;
  bool shown_;
};

}  // namespace gopt::cli
