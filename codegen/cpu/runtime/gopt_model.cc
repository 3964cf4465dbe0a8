// The C interface (model.h) of a model that runs on a CPU, over the code that there is for its sizes.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "gopt_general.h"
#include "gopt_pace.h"
#include "gopt_threads.h"

using gopt_runtime::AnySize;
using gopt_runtime::Block;
using gopt_runtime::description;
using gopt_runtime::Operators;
using gopt_runtime::PackedWeights;
using gopt_runtime::Prepared;
using gopt_runtime::Variant;

// A run of one size, on its part of the rows.
struct Part {
  size_t variant;                                     // variant_count: the code for any size
  std::vector<size_t> input_offsets, output_offsets;  // in bytes
};

struct gopt_model {
  gopt_runtime::Weights weights;
  PackedWeights packed;
  Operators operators;
  int threads;
  std::vector<std::unique_ptr<Prepared>> prepared;  // by variant; null: not yet
  std::vector<std::unique_ptr<Prepared>> alone;   // the same for one thread, which others may leave as the fastest way
  gopt_runtime::Pace pace;                        // at the extents that are set
  std::unique_ptr<AnySize> any;                   // null: not yet
  std::vector<Part> parts;                        // of a run, at the extents that are set
  std::vector<gopt_tensor_info> inputs, outputs;  // then
  std::vector<std::vector<int64_t>> dims;         // of these
  std::vector<const void*> part_inputs;
  std::vector<void*> part_outputs;
  std::string error;
  std::atomic_flag busy = ATOMIC_FLAG_INIT;

  gopt_model(const char* path, int count)
      : weights(path, description.weight_bytes),
        operators(description.operator_count, description.operators),
        threads(gopt_runtime::thread_count(count)),
        prepared(description.variant_count),
        alone(description.variant_count),
        part_inputs(description.input_count),
        part_outputs(description.output_count) {}
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
  auto prepared = std::make_unique<Prepared>(
      model.weights.data(), model.threads, std::make_shared<Block>(variant.arena_bytes), model.packed, model.operators);
  variant.create(*prepared);
  model.prepared[number] = std::move(prepared);
}

// Its kernels for one thread, in the same memory, the first time.
Prepared& prepared_alone(gopt_model& model, size_t number) {
  if (!model.alone[number]) {
    auto prepared = std::make_unique<Prepared>(model.weights.data(), 1, model.prepared[number]->memory, model.packed,
                                               model.operators);
    description.variants[number]->create(*prepared);
    model.alone[number] = std::move(prepared);
  }
  return *model.alone[number];
}

std::string text_of(const int64_t* extents) {
  std::string text;
  for (int i = 0; i < description.extent_count; i++)
    text += std::string(i == 0 ? "" : " ") + description.extents[i] + "=" + std::to_string(extents[i]);
  return text;
}

// Of the code for any size. Throws where these are not allowed.
void check_extents(const int64_t* extents) {
  for (int i = 0; i < description.extent_count; i++) {
    constexpr int64_t kMost = INT32_MAX;  // so that products of a few are numbers
    const int64_t maximum = description.general->maxima[i], most = maximum == 0 ? kMost : std::min(maximum, kMost);
    if (extents[i] >= 0 && extents[i] <= most) continue;
    throw std::runtime_error("there is no code for " + text_of(extents) + ": " + description.extents[i] +
                             " is from 0 to " + std::to_string(most));
  }
  if (const char* why = description.general->why_refused(extents))
    throw std::runtime_error("the model has no meaning at " + text_of(extents) + "; of " + why);
}

[[noreturn]] void refuse(const int64_t* extents) {
  std::string known;
  for (int v = 0; v < description.variant_count; v++)
    known += (v == 0 ? "" : ", ") + text_of(description.variants[v]->extents);
  throw std::runtime_error("there is no code for " + text_of(extents) + ", but for " + known +
                           (description.rows < 0
                                ? std::string()
                                : std::string(", and for sums of their ") + description.extents[description.rows]));
}

// Whether the variant is for these extents, but for the number of rows.
bool differs_in_rows_alone(const Variant& variant, const int64_t* extents) {
  for (int i = 0; i < description.extent_count; i++)
    if (i != description.rows && variant.extents[i] != extents[i]) return false;
  return true;
}

// Variants whose rows together are so many, as few as possible, the largest first.
std::vector<size_t> variants_for_rows(const int64_t* extents) {
  constexpr int64_t kMostRows = 1 << 20;
  const int64_t rows = extents[description.rows];
  if (rows < 1 || rows > kMostRows) refuse(extents);
  const auto count = static_cast<size_t>(rows);
  std::vector<int> fewest(count + 1, -1), last(count + 1, -1);
  fewest[0] = 0;
  for (size_t n = 1; n <= count; n++)
    for (int v = 0; v < description.variant_count; v++) {
      const int64_t own = description.variants[v]->extents[description.rows];
      if (own < 1 || own > static_cast<int64_t>(n) || !differs_in_rows_alone(*description.variants[v], extents))
        continue;
      const int before = fewest[n - static_cast<size_t>(own)];
      if (before >= 0 && (fewest[n] < 0 || before + 1 < fewest[n])) {
        fewest[n] = before + 1;
        last[n] = v;
      }
    }
  if (fewest[count] < 0) refuse(extents);
  std::vector<size_t> variants;
  for (size_t n = count; n > 0; n -= static_cast<size_t>(description.variants[last[n]]->extents[description.rows]))
    variants.push_back(static_cast<size_t>(last[n]));
  std::sort(variants.begin(), variants.end(), [](size_t a, size_t b) {
    return description.variants[a]->extents[description.rows] > description.variants[b]->extents[description.rows];
  });
  return variants;
}

std::vector<size_t> variants_for(const int64_t* extents) {
  for (int v = 0; v < description.variant_count; v++)
    if (std::equal(extents, extents + description.extent_count, description.variants[v]->extents))
      return {static_cast<size_t>(v)};
  if (description.general) return {static_cast<size_t>(description.variant_count)};
  if (description.rows < 0) refuse(extents);
  return variants_for_rows(extents);
}

// Of tensors that lie one after another in the rows of a run: where each part's begin, and the whole.
struct Join {
  std::vector<std::vector<size_t>> offsets;  // by part, by tensor
  std::vector<gopt_tensor_info> whole;
  std::vector<std::vector<int64_t>> dims;
};
Join join(const std::vector<size_t>& variants, const gopt_tensor_info* Variant::*infos, const bool* has_rows,
          int count) {
  Join join;
  for (const size_t v : variants) {
    join.offsets.emplace_back();
    const gopt_tensor_info* part = description.variants[v]->*infos;
    for (int i = 0; i < count; i++) {
      const bool is_first = join.offsets.size() == 1;
      if (is_first) {
        join.whole.push_back(part[i]);
        join.dims.emplace_back(part[i].dims, part[i].dims + part[i].rank);
      }
      gopt_tensor_info& whole = join.whole[static_cast<size_t>(i)];
      join.offsets.back().push_back(is_first || !has_rows[i] ? 0 : whole.size_bytes);
      if (is_first || !has_rows[i]) continue;
      whole.size_bytes += part[i].size_bytes;
      join.dims[static_cast<size_t>(i)][0] += part[i].dims[0];
    }
  }
  for (size_t i = 0; i < join.whole.size(); i++) join.whole[i].dims = join.dims[i].data();
  return join;
}

void set_variants(gopt_model& model, const std::vector<size_t>& variants) {
  for (const size_t v : variants) prepare(model, v);
  Join inputs = join(variants, &Variant::inputs, description.input_rows, description.input_count),
       outputs = join(variants, &Variant::outputs, description.output_rows, description.output_count);
  std::vector<Part> parts;
  for (size_t p = 0; p < variants.size(); p++)
    parts.push_back({variants[p], std::move(inputs.offsets[p]), std::move(outputs.offsets[p])});
  model.parts = std::move(parts);
  model.inputs = std::move(inputs.whole);
  model.outputs = std::move(outputs.whole);
  model.dims = std::move(inputs.dims);
  for (std::vector<int64_t>& dims : outputs.dims) model.dims.push_back(std::move(dims));
}

void set_any(gopt_model& model, const int64_t* extents) {
  check_extents(extents);
  if (!model.any)
    model.any = std::make_unique<AnySize>(*description.general, model.weights.data(), model.threads, model.packed,
                                          model.operators);
  model.any->set(extents);
  gopt_runtime::Tensors now = model.any->tensors();
  model.parts = {{static_cast<size_t>(description.variant_count), std::vector<size_t>(now.inputs.size()),
                  std::vector<size_t>(now.outputs.size())}};
  model.inputs = std::move(now.inputs);
  model.outputs = std::move(now.outputs);
  model.dims = std::move(now.dims);
}

void set_extents(gopt_model& model, const int64_t* extents) {
  model.pace = {};
  const std::vector<size_t> variants = variants_for(extents);
  if (variants[0] == static_cast<size_t>(description.variant_count))
    set_any(model, extents);
  else
    set_variants(model, variants);
}

const Variant& code_of(size_t variant) {
  const bool is_any = variant == static_cast<size_t>(description.variant_count);
  return is_any ? description.general->code : *description.variants[variant];
}
// Of all sizes, in the order of their kernels' numbers.
int code_count() { return description.variant_count + (description.general ? 1 : 0); }

// Of code for any size, kernels are there for one way alone.
bool has_choice(const gopt_model& model) {
  return description.may_be_alone && model.threads > 1 &&
         std::all_of(model.parts.begin(), model.parts.end(),
                     [&](const Part& part) { return part.variant < model.prepared.size(); });
}

// False where that fails: memory may be short just then, and all threads run it as before.
bool prepare_alone(gopt_model& model) {
  try {
    for (const Part& part : model.parts) prepared_alone(model, part.variant);
    return true;
  } catch (const std::exception&) {
    model.pace.give_up();
    return false;
  }
}

// Runs each part by `run(variant, prepared, inputs, outputs)`; by one thread alone: where there is a choice.
template <class Run>
void run_parts(gopt_model& model, const void* const* inputs, void* const* outputs, bool is_alone, Run run) {
  for (const Part& part : model.parts) {
    for (size_t i = 0; inputs && i < part.input_offsets.size(); i++)
      model.part_inputs[i] = static_cast<const char*>(inputs[i]) + part.input_offsets[i];
    for (size_t i = 0; outputs && i < part.output_offsets.size(); i++)
      model.part_outputs[i] = static_cast<char*>(outputs[i]) + part.output_offsets[i];
    Prepared& prepared = part.variant >= model.prepared.size() ? model.any->prepared()
                         : is_alone                            ? prepared_alone(model, part.variant)
                                                               : *model.prepared[part.variant];
    run(part.variant, prepared, model.part_inputs.data(), model.part_outputs.data());
  }
}

// OpenMP's number of threads is the model's after a run of one thread, too.
struct OpenMpThreads {
  const int threads;
  explicit OpenMpThreads(int count) : threads(count) {}
  ~OpenMpThreads() {
    if (omp_get_max_threads() != threads) omp_set_num_threads(threads);
  }
  OpenMpThreads(const OpenMpThreads&) = delete;
  OpenMpThreads& operator=(const OpenMpThreads&) = delete;
};

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
int64_t gopt_extent_maximum(int number) {
  if (number < 0 || number >= description.extent_count || !description.general) return -1;
  return description.general->maxima[number];
}
int gopt_size_count(void) { return std::max(1, description.variant_count); }
const int64_t* gopt_size(int number) {
  if (number == 0 && description.variant_count == 0) return description.general->code.extents;
  return number >= 0 && number < description.variant_count ? description.variants[number]->extents : nullptr;
}

gopt_model* gopt_create(const char* weights_path, int threads, char* error, size_t error_size) {
  try {
    auto model = std::make_unique<gopt_model>(weights_path, threads);
    set_extents(*model, gopt_size(0));
    return model.release();
  } catch (const std::exception& e) {
    if (error && error_size > 0) std::snprintf(error, error_size, "%s", e.what());
    return nullptr;
  }
}

int gopt_set_extents(gopt_model* model, const int64_t* extents) {
  return guarded(model, [&] { set_extents(*model, extents); });
}
const gopt_tensor_info* gopt_input_now(const gopt_model* model, int number) {
  return at(model->inputs.data(), description.input_count, number);
}
const gopt_tensor_info* gopt_output_now(const gopt_model* model, int number) {
  return at(model->outputs.data(), description.output_count, number);
}

int gopt_operator_count(void) { return description.operator_count; }
const char* gopt_operator(int number) {
  return number >= 0 && number < description.operator_count ? description.operators[number] : nullptr;
}
int gopt_register(gopt_model* model, const char* name, gopt_function function, void* user) {
  return guarded(model, [&] { model->operators.add(name, function, user); });
}

int gopt_run(gopt_model* model, const void* const* inputs, void* const* outputs, void*) {
  return guarded(model, [&] {
    const OpenMpThreads kept(model->threads);
    const bool has_pace = has_choice(*model), is_alone = has_pace && model->pace.is_alone() && prepare_alone(*model);
    const double begin = gopt_runtime::now_ms(), own_begin = has_pace ? gopt_runtime::thread_ms() : 0;
    run_parts(*model, inputs, outputs, is_alone,
              [](size_t variant, Prepared& prepared, const void* const* part_inputs, void* const* part_outputs) {
                code_of(variant).run(prepared, part_inputs, part_outputs);
              });
    if (has_pace) model->pace.ran(gopt_runtime::now_ms() - begin, gopt_runtime::thread_ms() - own_begin);
  });
}
void* gopt_device_input(gopt_model*, int) { return nullptr; }
void* gopt_device_output(gopt_model*, int) { return nullptr; }
int gopt_kernel_count(void) {
  int count = 0;
  for (int v = 0; v < code_count(); v++) count += code_of(static_cast<size_t>(v)).kernel_count;
  return count;
}
const char* gopt_kernel_name(int number) {
  for (int v = 0; v < code_count() && number >= 0; v++) {
    const Variant& variant = code_of(static_cast<size_t>(v));
    if (number < variant.kernel_count) return variant.kernel_names[number];
    number -= variant.kernel_count;
  }
  return nullptr;
}
int gopt_profile(gopt_model* model, const void* const* inputs, void* const* outputs, void*, double* milliseconds) {
  return guarded(model, [&] {
    run_parts(*model, inputs, outputs, false,
              [&](size_t variant, Prepared& prepared, const void* const* part_inputs, void* const* part_outputs) {
                double* own = milliseconds;
                for (size_t v = 0; v < variant; v++) own += description.variants[v]->kernel_count;
                code_of(variant).profile(prepared, part_inputs, part_outputs, own);
              });
  });
}

void gopt_destroy(gopt_model* model) { delete model; }
