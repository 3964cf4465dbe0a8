// The C interface (model.h) of a model that runs on a CPU, over the code that there is for its sizes.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "gopt_variant.h"

using gopt_runtime::description;
using gopt_runtime::Prepared;
using gopt_runtime::Variant;

struct gopt_model {
  gopt_runtime::Weights weights;
  int threads;
  std::vector<std::unique_ptr<Prepared>> prepared;  // by variant; null: not yet
  size_t current = 0;
  std::string error;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;

  gopt_model(const char* path, int count)
      : weights(path, description.weight_bytes), threads(count), prepared(description.variant_count) {}
  const Variant& variant() const { return *description.variants[current]; }
};

#include "gopt_running.h"

namespace {

// 0: what is done with the model succeeded; otherwise gopt_error() says why not.
template <class Work>
int guarded(gopt_model* model, Work work) {
  const Running running(*model);
  if (!running.is_mine) return 1;
  try {
    work();
    return 0;
  } catch (const std::exception& e) {
    model->error = e.what();
    return 1;
  }
}

// Makes a size's kernels, the first time.
void prepare(gopt_model& model, size_t number) {
  if (model.prepared[number]) return;
  const Variant& variant = *description.variants[number];
  auto prepared = std::make_unique<Prepared>(model.weights.data(), model.threads, variant.arena_bytes);
  variant.create(*prepared);
  model.prepared[number] = std::move(prepared);
}

std::string text_of(const int64_t* extents) {
  std::string text;
  for (int i = 0; i < description.extent_count; i++)
    text += std::string(i == 0 ? "" : " ") + description.extents[i] + "=" + std::to_string(extents[i]);
  return text;
}

size_t variant_of(const int64_t* extents) {
  const int count = description.extent_count;
  for (int v = 0; v < description.variant_count; v++)
    if (std::equal(extents, extents + count, description.variants[v]->extents)) return static_cast<size_t>(v);
  std::string known;
  for (int v = 0; v < description.variant_count; v++)
    known += (v == 0 ? "" : ", ") + text_of(description.variants[v]->extents);
  throw std::runtime_error("there is no code for " + text_of(extents) + ", but for " + known);
}

const gopt_tensor_info* at(const gopt_tensor_info* infos, int count, int number) {
  return number >= 0 && number < count ? &infos[number] : nullptr;
}

}  // namespace

int gopt_input_count(void) { return description.input_count; }
int gopt_output_count(void) { return description.output_count; }
const gopt_tensor_info* gopt_input(int number) { return at(description.inputs, description.input_count, number); }
const gopt_tensor_info* gopt_output(int number) { return at(description.outputs, description.output_count, number); }

int gopt_extent_count(void) { return description.extent_count; }
const char* gopt_extent_name(int number) {
  return number >= 0 && number < description.extent_count ? description.extents[number] : nullptr;
}
int gopt_size_count(void) { return description.variant_count; }
const int64_t* gopt_size(int number) {
  return number >= 0 && number < description.variant_count ? description.variants[number]->extents : nullptr;
}

gopt_model* gopt_create(const char* weights_path, int threads, char* error, size_t error_size) {
  try {
    auto model = std::make_unique<gopt_model>(weights_path, threads);
    prepare(*model, 0);
    return model.release();
  } catch (const std::exception& e) {
    if (error && error_size > 0) std::snprintf(error, error_size, "%s", e.what());
    return nullptr;
  }
}

int gopt_set_extents(gopt_model* model, const int64_t* extents) {
  return guarded(model, [&] {
    const size_t variant = variant_of(extents);
    prepare(*model, variant);
    model->current = variant;
  });
}
const gopt_tensor_info* gopt_input_now(const gopt_model* model, int number) {
  return at(model->variant().inputs, description.input_count, number);
}
const gopt_tensor_info* gopt_output_now(const gopt_model* model, int number) {
  return at(model->variant().outputs, description.output_count, number);
}

int gopt_run(gopt_model* model, const void* const* inputs, void* const* outputs, void*) {
  return guarded(model, [&] { model->variant().run(*model->prepared[model->current], inputs, outputs); });
}
int gopt_kernel_count(void) {
  int count = 0;
  for (int v = 0; v < description.variant_count; v++) count += description.variants[v]->kernel_count;
  return count;
}
const char* gopt_kernel_name(int number) {
  for (int v = 0; v < description.variant_count && number >= 0; v++) {
    const Variant& variant = *description.variants[v];
    if (number < variant.kernel_count) return variant.kernel_names[number];
    number -= variant.kernel_count;
  }
  return nullptr;
}
int gopt_profile(gopt_model* model, const void* const* inputs, void* const* outputs, void*, double* milliseconds) {
  return guarded(model, [&] {
    for (size_t v = 0; v < model->current; v++) milliseconds += description.variants[v]->kernel_count;
    model->variant().profile(*model->prepared[model->current], inputs, outputs, milliseconds);
  });
}

void gopt_destroy(gopt_model* model) { delete model; }
