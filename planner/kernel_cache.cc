// Measured kernel times: what identifies a kernel, the text file that keeps its time, and the costs that use both.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "gopt/kernel_costs.h"
#include "gopt/temporary.h"
#include "gopt/text_reader.h"

namespace gopt {
namespace {

constexpr const char* kHeader = "gopt kernel times 1";

void describe_buffer(const Plan& plan, BufferId id, std::string& text) {
  const Buffer& b = plan.buffer(id);
  text += " " + to_string(b.element) + "[";
  for (size_t k = 0; k < b.dims.size(); k++) text += (k ? "," : "") + std::to_string(b.dims[k]);
  text += "]" + to_string(b.layout) + (b.place == BufferPlace::Weight ? "w" : "");
}

// Inputs of a covered node: which earlier node of the kernel makes each, else which of the kernel's inputs it is.
void describe_node(const Kernel& kernel, size_t position, std::string& text) {
  const Node& node = *kernel.nodes[position];
  text += " " + op_info(node.op).name + attributes_text(node) + "(";
  for (const Value& v : node.inputs) {
    std::string source = "-";
    for (size_t k = 0; k < kernel.inputs.size() && v; k++)
      if (kernel.inputs[k] == v) source = "i" + std::to_string(k);
    for (size_t k = 0; k < position && v; k++)
      if (kernel.nodes[k] == v.node) source = "n" + std::to_string(k) + "." + std::to_string(v.output);
    text += source + ",";
  }
  text += ")";
}

}  // namespace

std::string kernel_signature(const Plan& plan, const Kernel& kernel) {
  std::string text = to_string(kernel.kind) + " " + kernel.implementation + " t" + std::to_string(plan.target.threads);
  for (size_t k = 0; k < kernel.nodes.size(); k++) describe_node(kernel, k, text);
  for (BufferId b : kernel.input_buffers) describe_buffer(plan, b, text);
  text += " ->";
  for (BufferId b : kernel.output_buffers) describe_buffer(plan, b, text);
  return to_string(hash_bytes(text));
}

Result<KernelCache> KernelCache::load(const std::string& path, const std::string& machine) {
  KernelCache cache;
  cache.path_ = path;
  cache.machine_ = machine;
  std::ifstream file(path);
  if (!file) return cache;  // a new one
  std::string line;
  if (!std::getline(file, line) || line != kHeader)
    return Error{path + ": not a file of kernel times; give another --cache, or remove it"};
  for (int number = 2; std::getline(file, line); number++) {
    std::istringstream fields(line);
    std::string key;
    double ms = 0;
    if (!(fields >> key >> ms) || key.size() != 32 || !(ms >= 0) || !std::isfinite(ms))
      return Error{path + ":" + std::to_string(number) + ": expected a key and milliseconds"};
    cache.times_[key] = ms;
  }
  return cache;
}

Status KernelCache::save() const {
  std::string lines = std::string(kHeader) + "\n";
  for (const auto& [key, ms] : times_) {
    char text[32];
    snprintf(text, sizeof text, "%.6g", ms);
    lines += key + " " + text + "\n";
  }
  return write_whole(path_, lines);
}

std::string KernelCache::key(const std::string& signature) const {
  return to_string(hash_bytes(machine_ + "|" + signature));
}
std::optional<double> KernelCache::find(const std::string& signature) const {
  auto it = times_.find(key(signature));
  if (it == times_.end()) return std::nullopt;
  return it->second;
}
void KernelCache::put(const std::string& signature, double ms) { times_[key(signature)] = ms; }

namespace {

// Known kernels at their measured time; others at the analytic one, scaled by how the two compare on known kernels of
// the same kind, so that neither looks better for having been measured.
class CachedCosts : public KernelCosts {
 public:
  CachedCosts(std::shared_ptr<const KernelCache> cache, std::unique_ptr<KernelCosts> analytic)
      : cache_(std::move(cache)), analytic_(std::move(analytic)) {}

  void calibrate(const Plan& plan) {
    std::map<KernelKind, std::pair<double, double>> sums;
    for (const Kernel& kernel : plan.kernels) {
      const auto measured = cache_->find(kernel_signature(plan, kernel));
      if (!measured) continue;
      sums[kernel.kind].first += *measured;
      sums[kernel.kind].second += analytic_->time_ms(plan, kernel);
    }
    for (const auto& [kind, sum] : sums)
      if (sum.second > 0) scale_[kind] = sum.first / sum.second;
  }

  double time_ms(const Plan& plan, const Kernel& kernel) override {
    if (const auto measured = cache_->find(kernel_signature(plan, kernel))) return *measured;
    auto it = scale_.find(kernel.kind);
    return analytic_->time_ms(plan, kernel) * (it == scale_.end() ? 1.0 : it->second);
  }

 private:
  std::shared_ptr<const KernelCache> cache_;
  std::unique_ptr<KernelCosts> analytic_;
  std::map<KernelKind, double> scale_;
};

}  // namespace

std::unique_ptr<KernelCosts> cached_kernel_costs(std::shared_ptr<const KernelCache> cache,
                                                 std::unique_ptr<KernelCosts> analytic, const Plan& calibration) {
  auto costs = std::make_unique<CachedCosts>(std::move(cache), std::move(analytic));
  costs->calibrate(calibration);
  return costs;
}

}  // namespace gopt
