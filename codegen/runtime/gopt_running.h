// A model runs in one thread at a time. Included where gopt_model is whole, which has a member
// `std::atomic_flag busy = ATOMIC_FLAG_INIT` and what went wrong last as `error`.
#pragma once

#include <atomic>

#include "model.h"

namespace {

// The model that refused this thread last, as it was running in another.
thread_local const gopt_model* refused = nullptr;

struct Running {
  gopt_model& model;
  const bool is_mine;
  explicit Running(gopt_model& wanted) : model(wanted), is_mine(!wanted.busy.test_and_set(std::memory_order_acquire)) {
    refused = is_mine ? nullptr : &model;
  }
  ~Running() {
    if (is_mine) model.busy.clear(std::memory_order_release);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
};

}  // namespace

const char* gopt_error(const gopt_model* model) {
  return refused == model ? "another thread is running this model; create one for each thread" : model->error.c_str();
}
