// Updates written at the places that an integer tensor names, one after another: of several at one place the last
// stays, or all of them are reduced.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gopt_team.h"

namespace gopt_runtime {

enum class Scattering { Last, Add, Mul, Max, Min };

// Tensors of [outer, extent or updates, inner] elements. `by_rows`: a place is that of the update's whole row, and each
// of the `outer` blocks has so many places of its own: as many as updates, or none where they are the same in all.
struct ScatterSizes {
  int64_t outer, extent, updates, inner;
  bool by_rows;
  int64_t places_of_block;
};

// NaN wins, integers wrap around.
template <Scattering how, class T>
inline void scatter_onto(T& at, const T& update) {
  if constexpr (how == Scattering::Last) {
    at = update;
  } else if constexpr (how == Scattering::Max || how == Scattering::Min) {
    const bool is_beyond = how == Scattering::Max ? at < update : update < at;
    if (update != update || is_beyond) at = at != at ? at : update;
  } else if constexpr (std::is_integral_v<T>) {
    const auto a = static_cast<uint64_t>(at), b = static_cast<uint64_t>(update);
    at = static_cast<T>(how == Scattering::Add ? a + b : a * b);
  } else {
    at = how == Scattering::Add ? at + update : at * update;
  }
}

// A place beyond the axis writes nothing.
template <Scattering how, class T, class Place>
void scatter_part(const T* x, const Place* places, const T* updates, T* out, const ScatterSizes& s, int64_t block,
                  int64_t begin, int64_t end) {
  T* const first = out + block * s.extent * s.inner;
  if (end - begin == s.inner)
    std::memcpy(first, x + block * s.extent * s.inner, sizeof(T) * static_cast<size_t>(s.extent * s.inner));
  else
    for (int64_t e = 0; e < s.extent; e++)
      std::memcpy(first + e * s.inner + begin, x + (block * s.extent + e) * s.inner + begin,
                  sizeof(T) * static_cast<size_t>(end - begin));
  for (int64_t m = 0; m < s.updates; m++) {
    const T* const own = updates + (block * s.updates + m) * s.inner;
    const auto place = [&](int64_t r) {
      return static_cast<uint64_t>(
          places[s.by_rows ? block * s.places_of_block + m : (block * s.updates + m) * s.inner + r]);
    };
    if (s.by_rows) {
      const uint64_t row = place(0);
      if (row >= static_cast<uint64_t>(s.extent)) continue;
      T* const to = first + static_cast<int64_t>(row) * s.inner;
      for (int64_t r = begin; r < end; r++) scatter_onto<how>(to[r], own[r]);
    } else {
      for (int64_t r = begin; r < end; r++) {
        const uint64_t row = place(r);
        if (row < static_cast<uint64_t>(s.extent))
          scatter_onto<how>(first[static_cast<int64_t>(row) * s.inner + r], own[r]);
      }
    }
  }
}

// Threads take blocks, or parts of the rows where there are few blocks.
template <Scattering how, class T, class Place>
void scatter(const T* x, const Place* places, const T* updates, T* out, const ScatterSizes& s) {
  constexpr int64_t kWorthAThread = 16384, kFewestLanes = 64;  // elements
  const int64_t work = s.outer * (s.extent + s.updates) * s.inner;
  const int64_t helpers = std::min<int64_t>(threads_now(), 1 + work / kWorthAThread);
  const int64_t wanted = s.outer >= helpers ? 1 : (helpers + s.outer - 1) / std::max<int64_t>(1, s.outer);
  const int64_t parts = std::max<int64_t>(1, std::min(wanted, s.inner / kFewestLanes));
  share_each(s.outer * parts, static_cast<int>(helpers), [&](int64_t k, int) {
    const int64_t part = k % parts;
    scatter_part<how>(x, places, updates, out, s, k / parts, s.inner * part / parts, s.inner * (part + 1) / parts);
  });
}

}  // namespace gopt_runtime
