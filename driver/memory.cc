#include "memory.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace gopt::driver {

double bytes_of_machine() {
  const double all = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  rlimit own{};
  const bool is_limited = getrlimit(RLIMIT_AS, &own) == 0 && own.rlim_cur != RLIM_INFINITY;
  return is_limited ? std::min(all, static_cast<double>(own.rlim_cur)) : all;
}

double bytes_of_tensor(const TensorType& type, size_t of_element) {
  double bytes = static_cast<double>(of_element);
  for (const int64_t extent : type.static_shape()) bytes *= static_cast<double>(extent);
  return bytes;
}

std::string gigabytes(double bytes) { return fmt::format("{:.3g} GB", bytes / 1e9); }

Status must_fit_memory(const Graph& graph) {
  double all = 0, most = 0;
  std::string largest;
  const auto add = [&](const std::string& name, const TensorType& type) {
    if (!type.has_static_shape()) return;
    const double bytes = bytes_of_tensor(type, size_bytes(type.element));
    all += bytes;
    if (bytes <= most) return;
    most = bytes;
    largest = "`" + name + "` is " + to_string(type) + ", " + gigabytes(bytes);
  };
  for (const Value& input : graph.inputs()) add(input.node->name, input.type());
  for (const GraphOutput& output : graph.outputs()) add(output.name, output.value.type());
  const double memory = bytes_of_machine();
  if (all <= memory) return Unit{};
  return Error{"inputs and outputs take " + gigabytes(all) + " (" + largest + "), and this machine has " +
               gigabytes(memory) + " for a process"};
}

}  // namespace gopt::driver
