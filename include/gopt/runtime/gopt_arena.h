// Where tensors lie in one block of memory, by the times in which they are needed: the planner's, and, as this file
// goes out with the model, that of code whose sizes are known when it runs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace gopt_runtime {

// A tensor in use from kernel `first` to `last`; `size` in bytes, of whole cache lines, as `offset` is.
struct Piece {
  int64_t size;
  int first, last;
  int64_t offset;
};

// Sets the offsets: largest first, each at the lowest offset that no piece in use at the same time takes. Returns the
// bytes of all.
inline int64_t place_pieces(std::vector<Piece>& pieces) {
  std::vector<size_t> order(pieces.size()), placed;  // placed: by offset
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return pieces[a].size > pieces[b].size; });
  int64_t end = 0;
  for (const size_t i : order) {
    Piece& own = pieces[i];
    own.offset = 0;
    for (const size_t other : placed) {
      const Piece& there = pieces[other];
      if (there.first > own.last || own.first > there.last) continue;
      if (there.offset >= own.offset + own.size) break;
      own.offset = std::max(own.offset, there.offset + there.size);
    }
    placed.insert(std::upper_bound(placed.begin(), placed.end(), i,
                                   [&](size_t a, size_t b) { return pieces[a].offset < pieces[b].offset; }),
                  i);
    end = std::max(end, own.offset + own.size);
  }
  return end;
}

}  // namespace gopt_runtime
