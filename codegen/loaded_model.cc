#include <dlfcn.h>
#include <stdlib.h>

#include <chrono>
#include <fstream>
#include <sstream>

#include "build_folder.h"
#include "gopt/codegen.h"
#include "prefix.h"
#include "runtime/model.h"

namespace gopt {

struct LoadedModel::State {
  void* library = nullptr;
  gopt_model* model = nullptr;
  std::vector<ModelValue> inputs, outputs;
  decltype(&gopt_run) run = nullptr;
  decltype(&gopt_profile) profile = nullptr;
  decltype(&gopt_error) error = nullptr;
  decltype(&gopt_kernel_count) kernel_count = nullptr;
  decltype(&gopt_kernel_name) kernel_name = nullptr;
  decltype(&gopt_destroy) destroy = nullptr;

  // The library stays loaded: OpenMP's threads may still be in its code.
  ~State() {
    if (model) destroy(model);
  }
};

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
  for (int d = 0; d < info.rank; d++) shape.push_back(Index(info.dims[d]));
  return {info.name, {static_cast<ElementType>(info.element), shape}};
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

Result<Call> prepare(const std::vector<ModelValue>& wanted, const std::vector<ModelValue>& made,
                     const std::vector<Tensor>& inputs) {
  if (inputs.size() != wanted.size())
    return Error{std::to_string(inputs.size()) + " inputs given, the model has " + std::to_string(wanted.size())};
  Call call;
  for (size_t i = 0; i < inputs.size(); i++) {
    if (!(inputs[i].tensor_type() == wanted[i].type))
      return Error{"input `" + wanted[i].name + "` is " + to_string(inputs[i].tensor_type()) + ", the model wants " +
                   to_string(wanted[i].type)};
    call.inputs.push_back(inputs[i].bytes().data());
  }
  for (const ModelValue& output : made) {
    call.bytes.emplace_back(static_cast<size_t>(element_count(output.type.static_shape())) *
                            size_bytes(output.type.element));
    call.outputs.push_back(call.bytes.back().data());
  }
  return call;
}

}  // namespace

namespace {

// OpenMP's threads spin before they sleep, by default for milliseconds. Where others use the processors as well, that
// keeps the thread that is waited for from running: one run in 28 ms became 730 ms. Spinning for some 25 us covers the
// gaps between kernels. libgomp reads this once, when it is loaded with the first model; what the user has set stays.
void limit_spinning() {
  if (!getenv("OMP_WAIT_POLICY")) setenv("GOMP_SPINCOUNT", "500", 0);
}

}  // namespace

Result<LoadedModel> LoadedModel::build_and_load(const std::string& folder, int threads) {
  GOPT_ASSIGN_OR_RETURN(const std::string path, codegen::build_folder(folder));
  auto state = std::make_shared<State>();
  limit_spinning();
  state->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!state->library) return Error{std::string("cannot load the built library: ") + dlerror()};
  const Library library{state->library, prefix_in(folder)};
  decltype(&gopt_create) create;
  GOPT_RETURN_IF_ERROR(find(library, "create", create));
  GOPT_RETURN_IF_ERROR(find(library, "run", state->run));
  GOPT_RETURN_IF_ERROR(find(library, "profile", state->profile));
  GOPT_RETURN_IF_ERROR(find(library, "error", state->error));
  GOPT_RETURN_IF_ERROR(find(library, "kernel_count", state->kernel_count));
  GOPT_RETURN_IF_ERROR(find(library, "kernel_name", state->kernel_name));
  GOPT_RETURN_IF_ERROR(find(library, "destroy", state->destroy));
  GOPT_RETURN_IF_ERROR(read_infos(library, state->inputs, state->outputs));
  char error[512] = "";
  state->model = create((folder + "/weights.bin").c_str(), threads, error, sizeof error);
  if (!state->model) return Error{error};
  LoadedModel model;
  model.state_ = std::move(state);
  return model;
}

const std::vector<ModelValue>& LoadedModel::inputs() const { return state_->inputs; }
const std::vector<ModelValue>& LoadedModel::outputs() const { return state_->outputs; }

Result<std::vector<Tensor>> LoadedModel::run(const std::vector<Tensor>& inputs) {
  GOPT_ASSIGN_OR_RETURN(Call call, prepare(state_->inputs, state_->outputs, inputs));
  if (state_->run(state_->model, call.inputs.data(), call.outputs.data(), nullptr) != 0)
    return Error{state_->error(state_->model)};
  std::vector<Tensor> results;
  for (size_t i = 0; i < call.bytes.size(); i++)
    results.push_back(Tensor::from_bytes(state_->outputs[i].type.element, state_->outputs[i].type.static_shape(),
                                         std::move(call.bytes[i])));
  return results;
}

Result<std::vector<double>> LoadedModel::time(const std::vector<Tensor>& inputs, int warmup, int runs) {
  GOPT_ASSIGN_OR_RETURN(Call call, prepare(state_->inputs, state_->outputs, inputs));
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

Result<std::vector<std::pair<std::string, double>>> LoadedModel::profile(const std::vector<Tensor>& inputs, int runs) {
  GOPT_ASSIGN_OR_RETURN(Call call, prepare(state_->inputs, state_->outputs, inputs));
  std::vector<double> milliseconds(static_cast<size_t>(state_->kernel_count()));
  for (int i = 0; i < runs; i++)
    if (state_->profile(state_->model, call.inputs.data(), call.outputs.data(), nullptr, milliseconds.data()) != 0)
      return Error{state_->error(state_->model)};
  std::vector<std::pair<std::string, double>> table;
  for (size_t i = 0; i < milliseconds.size(); i++)
    table.emplace_back(state_->kernel_name(static_cast<int>(i)), milliseconds[i]);
  return table;
}

Result<std::optional<double>> LoadedModel::time_kernel(size_t kernel) {
  std::vector<double> milliseconds(static_cast<size_t>(state_->kernel_count()), -1);
  milliseconds.at(kernel) = 0;
  const int status = state_->profile(state_->model, nullptr, nullptr, nullptr, milliseconds.data());
  if (status == 0) return std::optional(milliseconds[kernel]);
  if (status == 1) return std::optional<double>();  // the library has no such kernel
  return Error{state_->error(state_->model)};
}

}  // namespace gopt
