#include "machine.h"

#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <set>

#include "code_hash.h"
#include "cuda_code_hash.h"
#include "gopt/codegen.h"

namespace gopt::driver {
namespace {

template <class F>
F* function_of(void* library, const char* name) {
  return library ? reinterpret_cast<F*>(dlsym(library, name)) : nullptr;
}

void* open_any(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (void* library = dlopen(name.c_str(), RTLD_LAZY)) return library;
  return nullptr;
}

// As cuDNN and cuBLAS number them: 91302 is 9.13.2.
std::string version_text(size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version % 10000 / 100) + "." +
         std::to_string(version % 100);
}

// oneDNN says its version through its C interface, the same in releases 2 and 3.
std::string dnnl_version_text() {
  struct Version {
    int major, minor, patch;
  };
  void* library = open_any({"libdnnl.so", "libdnnl.so.3", "libdnnl.so.2"});
  const auto version = function_of<const Version*()>(library, "dnnl_version");
  if (!version) return "none";
  return std::to_string(version()->major) + "." + std::to_string(version()->minor) + "." +
         std::to_string(version()->patch);
}

// What a function of the driver, for a text's place, its size and a device, says of the first device.
std::optional<std::string> say_of_gpu(const char* function) {
  void* driver = open_any({"libcuda.so.1"});
  const auto initialize = function_of<int(unsigned)>(driver, "cuInit");
  const auto get_device = function_of<int(int*, int)>(driver, "cuDeviceGet");
  const auto get_text = function_of<int(char*, int, int)>(driver, function);
  int device = 0;
  char text[256] = "";
  if (!initialize || !get_device || !get_text || initialize(0) != 0 || get_device(&device, 0) != 0 ||
      get_text(text, sizeof text, device) != 0)
    return std::nullopt;
  return text;
}
std::optional<std::string> gpu_name() { return say_of_gpu("cuDeviceGetName"); }

// A library of the toolkit: its own, else the system's.
void* open_cuda(const std::string& name, const std::vector<std::string>& releases) {
  std::vector<std::string> names{cuda_toolkit().value_or("") + "/lib64/" + name, name};
  for (const std::string& release : releases) names.push_back(name + "." + release);
  return open_any(names);
}

std::optional<std::string> cuda_version_text() {
  const auto version = function_of<int(int*)>(open_cuda("libcudart.so", {"13", "12"}), "cudaRuntimeGetVersion");
  int number = 0;
  if (!version || version(&number) != 0) return std::nullopt;
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}
std::optional<std::string> cudnn_version_text() {
  const auto version = function_of<size_t()>(open_cuda("libcudnn.so", {"9"}), "cudnnGetVersion");
  return version ? std::optional(version_text(version())) : std::nullopt;
}
std::optional<std::string> cublas_version_text() {
  const auto version = function_of<size_t()>(open_cuda("libcublasLt.so", {"13", "12"}), "cublasLtGetVersion");
  return version ? std::optional(version_text(version())) : std::nullopt;
}

}  // namespace

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  return "unknown";
}

bool has_bf16_products() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512bf16") != 0;
#else
  return false;
#endif
}

std::string cpu_machine() {
  return "cpu: " + processor_name() + "; oneDNN " + dnnl_version_text() + "; code " GOPT_CODE_HASH;
}

std::optional<std::string> cuda_bus() { return say_of_gpu("cuDeviceGetPCIBusId"); }

std::optional<std::string> cuda_machine() {
  const auto gpu = cuda_toolkit() ? gpu_name() : std::nullopt;
  if (!gpu) return std::nullopt;
  const auto cuda = cuda_version_text(), cudnn = cudnn_version_text(), cublas = cublas_version_text();
  if (!cuda || !cudnn || !cublas) return std::nullopt;
  return "cuda: " + *gpu + "; CUDA " + *cuda + "; cuDNN " + *cudnn + "; cuBLASLt " + *cublas +
         "; code " GOPT_CUDA_CODE_HASH;
}

namespace {

constexpr std::string_view kCuda = "cuda: ";

std::string gpu_of(const std::string& machine) {
  return machine.substr(kCuda.size(), machine.find(';') - kCuda.size());
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}
bool is_meant(const std::string& machine, const std::string& gpu) {
  return lower_case(gpu_of(machine)).find(lower_case(gpu)) != std::string::npos;
}

std::string listed(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::set<std::string> gpus_of(const std::vector<std::string>& machines) {
  std::set<std::string> gpus;
  for (const std::string& machine : machines) gpus.insert(gpu_of(machine));
  return gpus;
}

// Of entries of one GPU.
ChosenMachine latest_of(const std::vector<std::string>& machines) {
  for (const std::string& machine : machines)
    if (machine.ends_with("; code " GOPT_CUDA_CODE_HASH)) return {.machine = machine};
  return {.machine = machines.back(),
          .note = "the kernel times of " + gpu_of(machines.back()) +
                  " were taken with code of another version of gopt; they may be somewhat off"};
}

}  // namespace

Result<ChosenMachine> choose_gpu(const std::optional<std::string>& here, const std::vector<std::string>& machines,
                                 const std::string& gpu) {
  if (here && is_meant(*here, gpu)) return ChosenMachine{.machine = *here, .is_here = true};
  std::vector<std::string> known, meant;
  for (const std::string& machine : machines)
    if (machine.starts_with(kCuda)) known.push_back(machine);
  for (const std::string& machine : known)
    if (is_meant(machine, gpu)) meant.push_back(machine);
  const std::set<std::string> all = gpus_of(known), chosen = gpus_of(meant);
  if (chosen.size() > 1)
    return Error{(gpu.empty() ? "there are kernel times" : "--gpu " + gpu + ": there are kernel times") +
                 " of several GPUs; choose one with --gpu: " + listed(chosen)};
  if (chosen.size() == 1) return latest_of(meant);
  if (!gpu.empty())
    return Error{"--gpu " + gpu + ": there are no kernel times of it; " +
                 (all.empty() ? "the cache has none of any GPU" : "the cache has those of " + listed(all))};
  return ChosenMachine{.note =
                           "costs are estimates: there is no GPU here that kernels can be built for and timed on, "
                           "and the cache has no times of any"};
}

}  // namespace gopt::driver
