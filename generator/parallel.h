// The same work on several threads of several ranks; what comes out is put in order by who asks, so that it depends on
// neither.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "gopt/parallel.h"
#include "gopt/ranks.h"

namespace gopt::generator {

// Threads on each of several ranks.
struct Team {
  int threads;
  Ranks& ranks;
  // Called by the first thread as work goes on: so much is done of so much.
  std::function<void(const char* what, size_t done, size_t of)> step;
  // Where there is one (and one rank): once it says so, items are left undone.
  std::function<bool()> is_over = {};

  bool must_end() const { return is_over && is_over(); }

  size_t rank_count() const { return static_cast<size_t>(ranks.count()); }
  // This rank's items: every so manieth, so that each gets its share of the dear ones. `what` is what a step is called.
  template <class F>
  void for_own(size_t count, const F& work, const char* what = nullptr) const {
    const auto first = static_cast<size_t>(ranks.rank());
    const size_t own = count > first ? (count - first + rank_count() - 1) / rank_count() : 0;
    parallel_for(threads, own, [&](int thread, size_t i) {
      if (must_end()) return;
      work(thread, first + i * rank_count());
      if (what && thread == 0 && step) step(what, i + 1, own);
    });
  }
  bool owns(size_t item) const { return item % rank_count() == static_cast<size_t>(ranks.rank()); }
};

// The vectors of all ranks one after another; of plain records, which travel as they are.
template <class T>
std::vector<T> gathered(Ranks& ranks, std::vector<T> own) {
  static_assert(std::is_trivially_copyable_v<T>);
  if (ranks.count() == 1) return own;
  std::string bytes(own.size() * sizeof(T), '\0');
  if (!own.empty()) std::memcpy(bytes.data(), own.data(), bytes.size());
  own = {};
  const std::vector<std::string> all = ranks.gather(std::move(bytes));
  size_t size = 0;
  for (const std::string& part : all) size += part.size();
  std::vector<T> result(size / sizeof(T));
  size_t at = 0;
  for (const std::string& part : all) {
    if (!part.empty()) std::memcpy(reinterpret_cast<char*>(result.data()) + at, part.data(), part.size());
    at += part.size();
  }
  return result;
}

}  // namespace gopt::generator
