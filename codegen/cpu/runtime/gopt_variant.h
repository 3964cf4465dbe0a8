// What model.cc says of a model: its tensors, and the code that there is for each size of its open extents, or for any.
// gopt_model.cc makes the C interface of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gopt_dnnl.h"
#include "gopt_memory.h"
#include "gopt_operators.h"
#include "gopt_team.h"
#include "model.h"

namespace gopt_runtime {

// The kernels of one size, made for a model.
struct Prepared {
  const char* weights;
  int threads;
  std::shared_ptr<Block> memory;
  Block& arena;  // that memory
  Library library;
  const Operators& operators;
  Team team;
  // Of code for any size: the extents that are set, and where each buffer lies in the arena then, in bytes.
  std::vector<int64_t> extents, at;

  // Those that never run at once may have one arena.
  Prepared(const char* mapped, int count, std::shared_ptr<Block> own, PackedWeights& packed,
           const Operators& registered)
      : weights(mapped),
        threads(count),
        memory(std::move(own)),
        arena(*memory),
        library(count, packed),
        operators(registered),
        team(count) {}
};

// Calls run(kernel) for all kernels in order, those in a row of which threads share some by the model's team. `runs`:
// for each its primitive, or one of kOneThread, kShared and kAlone (gopt_team.h).
template <class Run>
void run_in_order(Prepared& model, const int* runs, int count, const Run& run) {
  const auto way = [&](int kernel) {
    return runs[kernel] < 0 ? runs[kernel] : model.library.way_of(static_cast<size_t>(runs[kernel]));
  };
  for (int next = 0; next < count;) {
    int first = count, last = next, shared = 0, end = next;  // of those that are shared before the next that is alone
    for (; end < count && way(end) != kAlone; end++)
      if (way(end) == kShared) {
        if (shared++ == 0) first = end;
        last = end + 1;
      }
    const auto run_until = [&](int stop) {
      for (; next < stop; next++) run(next);
    };
    if (shared > 1) {  // one alone is a region of its own
      run_until(first);
      model.team.lead([&] { run_until(last); });
    }
    run_until(std::min(end + 1, count));
  }
}

// The same with a parallel region for each kernel that threads share.
template <class Run>
void run_one_by_one(Prepared&, const int*, int count, const Run& run) {
  for (int kernel = 0; kernel < count; kernel++) run(kernel);
}

// The code for one size.
struct Variant {
  const int64_t* extents;
  const gopt_tensor_info *inputs, *outputs;
  int kernel_count;
  const char* const* kernel_names;
  size_t arena_bytes;
  void (*create)(Prepared& prepared);
  void (*run)(Prepared& prepared, const void* const* inputs, void* const* outputs);
  // Adds the milliseconds of each kernel.
  void (*profile)(Prepared& prepared, const void* const* inputs, void* const* outputs, double* milliseconds);
};

// A buffer of the arena, in use from one kernel to another.
struct Life {
  int buffer, first, last;
};

// The code for any size: functions of the extents say what that of one size has as numbers.
struct General {
  Variant code;           // its extents: those that it was planned for
  const int64_t* maxima;  // of the extents; 0: none
  int buffer_count;
  const Life* lives;                                         // up to one of buffer -1
  void (*bytes_at)(const int64_t* extents, int64_t* bytes);  // parallel to lives
  const char* (*why_refused)(const int64_t* extents);        // null: nothing is wrong with them
  void (*dims_at)(const int64_t* extents, int64_t* dims);    // of all inputs, then outputs, one after another
};

// Throws at extents of which nothing is a multiple.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == 0) throw std::runtime_error("an extent of 0 divides another: there is no code for that");
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}

struct Description {
  int input_count, output_count, extent_count, variant_count;
  const gopt_tensor_info *inputs, *outputs;  // with open extents
  const char* const* extents;
  size_t weight_bytes;
  // An extent along which the model may be run in parts, and which inputs and outputs have it, as their first; -1:
  // none.
  int rows;
  const bool *input_rows, *output_rows;
  const Variant* const* variants;
  const General* general;  // null: none
  int operator_count;      // that functions are registered for
  const char* const* operators;
  bool may_be_alone;  // one thread alone runs it while that is faster (gopt_pace.h)
};
extern const Description description;  // in model.cc

}  // namespace gopt_runtime
