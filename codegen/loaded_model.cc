#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "build_folder.h"
#include "gopt/codegen.h"
#include "prefix.h"
#include "runtime/model.h"

namespace gopt {

namespace {

// A built library and what its functions' names begin with.
struct Library {
  void* handle;
  std::string prefix;
};

template <class F>
Status find(const Library& library, const std::string& what, F& function) {
  const std::string name = library.prefix + "_" + what;
  function = reinterpret_cast<F>(dlsym(library.handle, name.c_str()));
  if (!function) return Error{"the built library has no function " + name};
  return Unit{};
}

std::string prefix_in(const std::string& folder) {
  std::ostringstream header;
  header << std::ifstream(folder + "/model.h").rdbuf();
  return codegen::prefix_of(header.str());
}

ModelValue describe(const gopt_tensor_info& info) {
  Shape shape;
  for (int d = 0; d < info.rank; d++) shape.push_back(info.dims[d] < 0 ? symbol(info.extents[d]) : Index(info.dims[d]));
  return {info.name, {static_cast<ElementType>(info.element), shape}};
}

Status read_sizes(const Library& library, std::vector<std::string>& extents, std::vector<std::vector<int64_t>>& sizes) {
  decltype(&gopt_extent_count) extent_count;
  decltype(&gopt_extent_name) extent_name;
  decltype(&gopt_size_count) size_count;
  decltype(&gopt_size) size;
  GOPT_RETURN_IF_ERROR(find(library, "extent_count", extent_count));
  GOPT_RETURN_IF_ERROR(find(library, "extent_name", extent_name));
  GOPT_RETURN_IF_ERROR(find(library, "size_count", size_count));
  GOPT_RETURN_IF_ERROR(find(library, "size", size));
  for (int i = 0; i < extent_count(); i++) extents.emplace_back(extent_name(i));
  if (extents.empty()) return Unit{};
  for (int i = 0; i < size_count(); i++) sizes.emplace_back(size(i), size(i) + extents.size());
  return Unit{};
}

Status read_operators(const Library& library, std::vector<std::string>& operators) {
  decltype(&gopt_operator_count) count;
  decltype(&gopt_operator) name;
  GOPT_RETURN_IF_ERROR(find(library, "operator_count", count));
  GOPT_RETURN_IF_ERROR(find(library, "operator", name));
  for (int i = 0; i < count(); i++) operators.emplace_back(name(i));
  return Unit{};
}

Status read_infos(const Library& library, std::vector<ModelValue>& inputs, std::vector<ModelValue>& outputs) {
  decltype(&gopt_input_count) input_count, output_count;
  decltype(&gopt_input) input, output;
  GOPT_RETURN_IF_ERROR(find(library, "input_count", input_count));
  GOPT_RETURN_IF_ERROR(find(library, "output_count", output_count));
  GOPT_RETURN_IF_ERROR(find(library, "input", input));
  GOPT_RETURN_IF_ERROR(find(library, "output", output));
  for (int i = 0; i < input_count(); i++) inputs.push_back(describe(*input(i)));
  for (int i = 0; i < output_count(); i++) outputs.push_back(describe(*output(i)));
  return Unit{};
}

// Pointers of a run, and the outputs that they point into.
struct Call {
  std::vector<const void*> inputs;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<void*> outputs;
};

Error does_not_fit(const ModelValue& wanted, const Tensor& given) {
  return {"input `" + wanted.name + "` is " + to_string(given.tensor_type()) + ", the model wants " +
          to_string(wanted.type)};
}

// The open extents, as the inputs have them. Precondition: as many inputs as are wanted.
Result<std::vector<int64_t>> extents_of(const std::vector<ModelValue>& wanted, const std::vector<std::string>& names,
                                        const std::vector<Tensor>& inputs) {
  std::vector<std::optional<int64_t>> extents(names.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    const Shape& shape = *wanted[i].type.shape;
    if (shape.size() != inputs[i].dims().size()) return does_not_fit(wanted[i], inputs[i]);
    for (size_t d = 0; d < shape.size(); d++) {
      const auto name = std::ranges::find(names, extent_name(shape[d]));
      if (shape[d].is_constant() || name == names.end()) continue;
      std::optional<int64_t>& extent = extents[static_cast<size_t>(name - names.begin())];
      if (extent.value_or(inputs[i].dims()[d]) != inputs[i].dims()[d])
        return Error{"input `" + wanted[i].name + "` is " + to_string(inputs[i].tensor_type()) + ", where " + *name +
                     " is " + std::to_string(*extent) + " by an input before"};
      extent = inputs[i].dims()[d];
    }
  }
  std::vector<int64_t> found;
  for (size_t k = 0; k < names.size(); k++) {
    if (!extents[k]) return Error{"no input says the extent " + names[k]};
    found.push_back(*extents[k]);
  }
  return found;
}

Result<Call> prepared(const std::vector<ModelValue>& wanted, const std::vector<ModelValue>& made,
                      const std::vector<Tensor>& inputs) {
  Call call;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!(inputs[i].tensor_type() == wanted[i].type)) return does_not_fit(wanted[i], inputs[i]);
    call.inputs.push_back(inputs[i].bytes().data());
  }
  for (const ModelValue& output : made) {
    // No numbers that what is not written could pass for.
    call.bytes.emplace_back(
        static_cast<size_t>(element_count(output.type.static_shape())) * size_bytes(output.type.element),
        std::byte{0xff});
    call.outputs.push_back(call.bytes.back().data());
  }
  return call;
}

// Nanoseconds that one turn of a spinning thread takes here: a pause is 24 on some processors, 45 on others.
double nanoseconds_of_a_turn() {
  using Clock = std::chrono::steady_clock;
  constexpr int kTurns = 2000;
  const std::atomic<bool> is_over{false};
  double least = 1e9;
  for (int repeat = 0; repeat < 5; repeat++) {
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kTurns && !is_over.load(std::memory_order_relaxed); i++) {
#if defined(__x86_64__)
      __builtin_ia32_pause();
#endif
    }
    least = std::min(least, std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kTurns);
  }
  return std::max(least, 0.1);
}

// Threads of all processes that run now, this one among them; none where the system does not say.
int running_threads() {
  std::ifstream load("/proc/loadavg");
  std::string averages[3];
  int running = 0;
  load >> averages[0] >> averages[1] >> averages[2] >> running;
  return running;
}

// How many of the processors that this process may use stay idle beside so many threads; below zero where others use
// them as well, or the system does not say.
int processors_left(int threads) {
  cpu_set_t own;
  if (threads <= 0 || sched_getaffinity(0, sizeof own, &own) != 0) return -1;
  int running = running_threads();
  for (int again = 0; again < 4; again++) {  // who runs for a moment is not in the way
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    running = std::min(running, running_threads());
  }
  return running > 0 ? CPU_COUNT(&own) - threads - (running - 1) : -1;
}

// OpenMP's threads spin before they sleep, by default for milliseconds. Where others use the processors as well, that
// keeps the thread that is waited for from running: one run in 28 ms became 730 ms. 50 us cover a small kernel on one
// thread, after which a thread that sleeps takes as long to wake (docs/codegen.md has the times); 200 us some of them
// in a row, where nobody is kept from running. Where as many processors again are idle, a thread that sleeps may wake
// late on a virtual one.
double spin_nanoseconds(int threads) {
  const int left = processors_left(threads);
  if (left < 0) return 50e3;
  return left < threads ? 200e3 : 500e3;
}

// libgomp reads this once, when it is loaded with the first model; what the user has set stays.
class SpinLimit {
 public:
  explicit SpinLimit(int threads) {
    is_set_ = !getenv("OMP_WAIT_POLICY") && !getenv("GOMP_SPINCOUNT");
    if (!is_set_) return;
    static const std::string turns =
        std::to_string(static_cast<int64_t>(spin_nanoseconds(threads) / nanoseconds_of_a_turn()));
    setenv("GOMP_SPINCOUNT", turns.c_str(), 1);
  }
  // Programs that are started later have libraries of their own.
  ~SpinLimit() {
    if (is_set_) unsetenv("GOMP_SPINCOUNT");
  }
  SpinLimit(const SpinLimit&) = delete;
  SpinLimit& operator=(const SpinLimit&) = delete;

 private:
  bool is_set_;
};

TensorType type_of(const gopt_tensor& tensor) {
  return {static_cast<ElementType>(tensor.element), Shape(tensor.dims, tensor.dims + tensor.rank)};
}

bool is_there(const gopt_tensor& tensor) { return tensor.element != 0; }

Tensor tensor_of(const gopt_tensor& tensor) {
  const auto* bytes = static_cast<const std::byte*>(tensor.data);
  return Tensor::from_bytes(static_cast<ElementType>(tensor.element), {tensor.dims, tensor.dims + tensor.rank},
                            {bytes, bytes + (tensor.data ? tensor.size_bytes : 0)});
}

OperatorCall described(const gopt_call& call) {
  const std::string domain = call.domain;
  OperatorCall described{(domain.empty() ? "" : domain + "::") + call.op_type, call.node, {}, {}};
  for (int i = 0; i < call.input_count; i++) {
    const gopt_tensor& input = call.inputs[i];
    described.inputs.push_back(is_there(input) ? std::optional(tensor_of(input)) : std::nullopt);
  }
  for (int i = 0; i < call.output_count; i++)
    described.outputs.push_back(is_there(call.outputs[i]) ? type_of(call.outputs[i]) : TensorType{});
  return described;
}

Status answer(const gopt_call& call, const OperatorFunction& function) {
  const OperatorCall asked = described(call);
  GOPT_ASSIGN_OR_RETURN(const std::vector<Tensor> made, function(asked));
  for (size_t i = 0; i < asked.outputs.size(); i++) {
    if (asked.outputs[i].element == ElementType::Undefined) continue;
    if (i >= made.size() || !(made[i].tensor_type() == asked.outputs[i]))
      return Error{"output " + std::to_string(i) + " is to be " + to_string(asked.outputs[i])};
    std::ranges::copy(made[i].bytes(), static_cast<std::byte*>(call.outputs[i].data));
  }
  return Unit{};
}

int call_function(const gopt_call* call, void* user) {
  const Status status = answer(*call, *static_cast<const OperatorFunction*>(user));
  if (status.ok()) return 0;
  snprintf(call->error, call->error_size, "%s", status.error().message.c_str());
  return 1;
}

template <class Number>
void write_numbers(const gopt_tensor& tensor) {
  auto* numbers = static_cast<Number*>(tensor.data);
  for (size_t i = 0; i < tensor.size_bytes / sizeof(Number); i++)
    numbers[i] = Number(1) + static_cast<Number>(i % 8) / Number(8);
}

int stand_in(const gopt_call* call, void*) {
  for (int i = 0; i < call->output_count; i++) {
    const gopt_tensor& output = call->outputs[i];
    const auto element = static_cast<ElementType>(output.element);
    if (!output.data) continue;
    if (element == ElementType::Float32)
      write_numbers<float>(output);
    else if (element == ElementType::Float64)
      write_numbers<double>(output);
    else
      memset(output.data, 0, output.size_bytes);
  }
  return 0;
}

}  // namespace

struct LoadedModel::State {
  void* library = nullptr;
  gopt_model* model = nullptr;
  std::vector<ModelValue> inputs, outputs;          // as they are declared
  std::vector<ModelValue> inputs_now, outputs_now;  // at the extents that are set
  std::vector<std::string> extents;
  std::vector<std::vector<int64_t>> sizes;
  std::vector<int64_t> now;  // extents
  std::vector<std::string> operators;
  OperatorFunction function;  // that is registered for these
  decltype(&gopt_set_extents) set_extents = nullptr;
  decltype(&gopt_input_now) input_now = nullptr;
  decltype(&gopt_output_now) output_now = nullptr;
  decltype(&gopt_run) run = nullptr;
  decltype(&gopt_profile) profile = nullptr;
  decltype(&gopt_error) error = nullptr;
  decltype(&gopt_kernel_count) kernel_count = nullptr;
  decltype(&gopt_kernel_name) kernel_name = nullptr;
  decltype(&gopt_device_input) device_input = nullptr;
  decltype(&gopt_device_output) device_output = nullptr;
  decltype(&gopt_destroy) destroy = nullptr;
  decltype(&gopt_register) register_one = nullptr;

  void read_now();
  Status register_all(gopt_function each, void* user);
  Status choose(const std::vector<int64_t>& extents_wanted);
  // Of the size that the inputs say, which is set.
  Result<Call> prepare(const std::vector<Tensor>& given);
  // Where the model has memory of its own for an input or output, that is meant from now on.
  void move_to_device(Call& call) const;

  // The library stays loaded: OpenMP's threads may still be in its code.
  ~State() {
    if (model) destroy(model);
  }
};

void LoadedModel::State::read_now() {
  inputs_now.clear();
  outputs_now.clear();
  for (size_t i = 0; i < inputs.size(); i++) inputs_now.push_back(describe(*input_now(model, static_cast<int>(i))));
  for (size_t i = 0; i < outputs.size(); i++) outputs_now.push_back(describe(*output_now(model, static_cast<int>(i))));
}

Status LoadedModel::State::choose(const std::vector<int64_t>& extents_wanted) {
  if (extents_wanted == now) return Unit{};
  if (set_extents(model, extents_wanted.data()) != 0) return Error{error(model)};
  now = extents_wanted;
  read_now();
  return Unit{};
}

Result<Call> LoadedModel::State::prepare(const std::vector<Tensor>& given) {
  if (given.size() != inputs.size())
    return Error{std::to_string(given.size()) + " inputs given, the model has " + std::to_string(inputs.size())};
  if (!extents.empty()) {
    GOPT_ASSIGN_OR_RETURN(const auto wanted, extents_of(inputs, extents, given));
    GOPT_RETURN_IF_ERROR(choose(wanted));
  }
  return prepared(inputs_now, outputs_now, given);
}

void LoadedModel::State::move_to_device(Call& call) const {
  for (size_t i = 0; i < call.inputs.size(); i++)
    if (const void* own = device_input(model, static_cast<int>(i))) call.inputs[i] = own;
  for (size_t i = 0; i < call.outputs.size(); i++)
    if (void* own = device_output(model, static_cast<int>(i))) call.outputs[i] = own;
}

Status LoadedModel::State::register_all(gopt_function each, void* user) {
  for (const std::string& name : operators)
    if (register_one(model, name.c_str(), each, user) != 0) return Error{error(model)};
  return Unit{};
}

Status LoadedModel::build(const std::string& folder) {
  GOPT_RETURN_IF_ERROR(codegen::build_folder(folder));
  return Unit{};
}

std::vector<Status> LoadedModel::build(const std::vector<EmittedCode>& codes) {
  std::vector<std::vector<codegen::Source>> all;
  for (const EmittedCode& code : codes) {
    auto& sources = all.emplace_back();
    for (const EmittedFile& file : code.files)
      if (codegen::is_source(file.name)) sources.push_back({file.name, file.text});
  }
  std::vector<Status> statuses;
  for (const auto& library : codegen::build_all(std::move(all)))
    statuses.push_back(library.ok() ? Status(Unit{}) : Status(library.error()));
  return statuses;
}

Result<LoadedModel> LoadedModel::build_and_load(const std::string& folder, int threads) {
  GOPT_ASSIGN_OR_RETURN(const std::string path, codegen::build_folder(folder));
  auto state = std::make_shared<State>();
  {
    const SpinLimit limit(threads);
    state->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!state->library) return Error{std::string("cannot load the built library: ") + dlerror()};
  const Library library{state->library, prefix_in(folder)};
  decltype(&gopt_create) create;
  GOPT_RETURN_IF_ERROR(find(library, "create", create));
  GOPT_RETURN_IF_ERROR(find(library, "run", state->run));
  GOPT_RETURN_IF_ERROR(find(library, "profile", state->profile));
  GOPT_RETURN_IF_ERROR(find(library, "error", state->error));
  GOPT_RETURN_IF_ERROR(find(library, "device_input", state->device_input));
  GOPT_RETURN_IF_ERROR(find(library, "device_output", state->device_output));
  GOPT_RETURN_IF_ERROR(find(library, "kernel_count", state->kernel_count));
  GOPT_RETURN_IF_ERROR(find(library, "kernel_name", state->kernel_name));
  GOPT_RETURN_IF_ERROR(find(library, "destroy", state->destroy));
  GOPT_RETURN_IF_ERROR(find(library, "register", state->register_one));
  GOPT_RETURN_IF_ERROR(find(library, "set_extents", state->set_extents));
  GOPT_RETURN_IF_ERROR(find(library, "input_now", state->input_now));
  GOPT_RETURN_IF_ERROR(find(library, "output_now", state->output_now));
  GOPT_RETURN_IF_ERROR(read_infos(library, state->inputs, state->outputs));
  GOPT_RETURN_IF_ERROR(read_sizes(library, state->extents, state->sizes));
  GOPT_RETURN_IF_ERROR(read_operators(library, state->operators));
  char error[512] = "";
  state->model = create((folder + "/weights.bin").c_str(), threads, error, sizeof error);
  if (!state->model) return Error{error};
  if (!state->sizes.empty()) state->now = state->sizes[0];
  state->read_now();
  LoadedModel model;
  model.state_ = std::move(state);
  return model;
}

const std::vector<ModelValue>& LoadedModel::inputs() const { return state_->inputs; }
const std::vector<ModelValue>& LoadedModel::outputs() const { return state_->outputs; }
const std::vector<std::string>& LoadedModel::extents() const { return state_->extents; }
const std::vector<std::vector<int64_t>>& LoadedModel::sizes() const { return state_->sizes; }

const std::vector<std::string>& LoadedModel::operators() const { return state_->operators; }

Status LoadedModel::register_function(OperatorFunction function) {
  state_->function = std::move(function);
  return state_->register_all(call_function, &state_->function);
}

Status LoadedModel::stand_in_for_operators() { return state_->register_all(stand_in, nullptr); }

Result<std::vector<ModelValue>> LoadedModel::inputs_at(const std::vector<int64_t>& extents) {
  GOPT_CHECK(extents.size() == state_->extents.size(), "an extent for each name");
  if (!extents.empty()) GOPT_RETURN_IF_ERROR(state_->choose(extents));
  return state_->inputs_now;
}

Result<std::vector<Tensor>> LoadedModel::run(const std::vector<Tensor>& inputs) {
  GOPT_ASSIGN_OR_RETURN(Call call, state_->prepare(inputs));
  if (state_->run(state_->model, call.inputs.data(), call.outputs.data(), nullptr) != 0)
    return Error{state_->error(state_->model)};
  std::vector<Tensor> results;
  for (size_t i = 0; i < call.bytes.size(); i++)
    results.push_back(Tensor::from_bytes(state_->outputs_now[i].type.element,
                                         state_->outputs_now[i].type.static_shape(), std::move(call.bytes[i])));
  return results;
}

Result<std::vector<double>> LoadedModel::time(const std::vector<Tensor>& inputs, int warmup, int runs) {
  GOPT_ASSIGN_OR_RETURN(Call call, state_->prepare(inputs));
  std::vector<double> times;
  for (int i = -warmup; i < runs; i++) {
    const auto start = std::chrono::steady_clock::now();
    if (state_->run(state_->model, call.inputs.data(), call.outputs.data(), nullptr) != 0)
      return Error{state_->error(state_->model)};
    if (i >= 0)
      times.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  }
  return times;
}

Result<double> LoadedModel::time_queued(const std::vector<Tensor>& inputs, int runs) {
  GOPT_ASSIGN_OR_RETURN(Call call, state_->prepare(inputs));
  const auto run = [&](void* stream) -> Status {
    if (state_->run(state_->model, call.inputs.data(), call.outputs.data(), stream) == 0) return Unit{};
    return Error{state_->error(state_->model)};
  };
  GOPT_RETURN_IF_ERROR(run(nullptr));
  state_->move_to_device(call);
  // CUDA's name for the stream that a null one is, on which a call only queues.
  void* const queue = reinterpret_cast<void*>(uintptr_t{1});
  const auto start = std::chrono::steady_clock::now();
  for (int i = 1; i < runs; i++) GOPT_RETURN_IF_ERROR(run(queue));
  GOPT_RETURN_IF_ERROR(run(nullptr));
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count() / runs;
}

Result<std::vector<std::pair<std::string, double>>> LoadedModel::profile(const std::vector<Tensor>& inputs, int runs) {
  GOPT_ASSIGN_OR_RETURN(Call call, state_->prepare(inputs));
  std::vector<double> milliseconds(static_cast<size_t>(state_->kernel_count()));
  for (int i = 0; i < runs; i++)
    if (state_->profile(state_->model, call.inputs.data(), call.outputs.data(), nullptr, milliseconds.data()) != 0)
      return Error{state_->error(state_->model)};
  std::vector<std::pair<std::string, double>> table;
  for (size_t i = 0; i < milliseconds.size(); i++)
    if (state_->extents.empty() || milliseconds[i] > 0)
      table.emplace_back(state_->kernel_name(static_cast<int>(i)), milliseconds[i]);
  return table;
}

Result<std::optional<double>> LoadedModel::time_kernel(size_t kernel, bool weights_from_memory) {
  std::vector<double> milliseconds(static_cast<size_t>(state_->kernel_count()), -1);
  milliseconds.at(kernel) = weights_from_memory ? 1 : 0;
  const int status = state_->profile(state_->model, nullptr, nullptr, nullptr, milliseconds.data());
  if (status == 0) return std::optional(milliseconds[kernel]);
  if (status == 1) return std::optional<double>();  // the library has no such kernel
  return Error{state_->error(state_->model)};
}

}  // namespace gopt
