// Measured kernel times: what identifies a kernel, the text file that keeps its time, and the costs that use both.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "choices.h"
#include "gopt/convolution_shape.h"
#include "gopt/kernel_costs.h"
#include "gopt/kernel_spec.h"
#include "gopt/temporary.h"
#include "gopt/text_reader.h"
#include "gopt/tile.h"
#include "implementations.h"
#include "milliseconds.h"

namespace gopt {
namespace {

// The first version did not say of which machine its times are, the second has none of whole plans, the third no
// searches.
constexpr std::array<std::string_view, 4> kHeaders = {"gopt kernel times 1", "gopt kernel times 2",
                                                      "gopt kernel times 3", "gopt kernel times 4"};
constexpr std::string_view kMachine = "machine ", kPlans = "plans ", kSearch = "search ";

void describe_buffer(const Buffer& b, const Layout& layout, std::string& text) {
  text += " " + to_string(b.element) + "[";
  for (size_t k = 0; k < b.dims.size(); k++) text += (k ? "," : "") + std::to_string(b.dims[k]);
  text += "]" + to_string(layout) + (b.place == BufferPlace::Weight ? "w" : "");
}
void describe_buffer(const Plan& plan, BufferId id, std::string& text) {
  describe_buffer(plan.buffer(id), plan.buffer(id).layout, text);
}

// Inputs of a covered node: which earlier node of the kernel makes each, else which of the kernel's inputs it is.
void describe_node(const Kernel& kernel, size_t position, std::string& text) {
  const Node& node = *kernel.nodes[position];
  text +=
      " " + op_info(node.op).name + (node.is_whole() ? " " + node.opaque->payload : "") + attributes_text(node) + "(";
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

std::string quantized_text(const QuantizedOperands& q) {
  return " bits " + std::to_string(q.bits) + " block " + std::to_string(q.block) + (q.is_transposed ? " turned" : "") +
         (q.zero >= 0 ? " zeros" : "");
}

std::string way_of(const Plan& plan, const Kernel& kernel) {
  const bool is_cpu = plan.target.kind == TargetKind::Cpu;
  return to_string(kernel.kind) + " " + kernel.implementation +
         (is_cpu ? " t" + std::to_string(plan.target.threads) : " cuda") +
         (kernel.quantized ? quantized_text(*kernel.quantized) : "") +
         // Precisions of 16 bits are those of the buffers.
         (is_tf32(plan, kernel) ? " tf32" : "");
}

// On CUDA a product of lines by constant columns and a convolution of one tap over an image of channels last are the
// same tile; nothing of others. What it multiplies: lines, depth and columns.
std::optional<std::string> tile_of_lines(const Plan& plan, const Kernel& kernel) {
  const bool is_tile = parse_tile(kernel.implementation) || parse_warpgroup_tile(kernel.implementation);
  if (plan.target.kind != TargetKind::Cuda || !is_tile || kernel.prologue) return std::nullopt;
  if (kernel.input_buffers.size() < 2 || plan.buffer(kernel.input_buffers[1]).place != BufferPlace::Weight)
    return std::nullopt;
  const Node& node = *kernel.nodes.front();
  const Buffer &x = plan.buffer(kernel.input_buffers[0]), &w = plan.buffer(kernel.input_buffers[1]),
               &y = plan.buffer(kernel.output_buffers[0]);
  int64_t depth = 0, columns = 0;
  if (node.is(OpKind::Conv)) {
    const ConvolutionShape shape = convolution_shape(plan, kernel);
    const bool is_of_lines = x.layout.is_channels_last() && y.layout.is_channels_last();
    if (shape.groups != 1 || !shape.is_pointwise() || !is_of_lines) return std::nullopt;
    depth = x.dims[1], columns = y.dims[1];
  } else if (node.is(OpKind::MatMul) && w.dims.size() == 2 && w.layout.is_transposed() && x.layout.is_plain()) {
    depth = x.dims.back(), columns = y.dims.back();
  } else {
    return std::nullopt;
  }
  std::string text = kernel.implementation + (is_tf32(plan, kernel) ? " tf32" : "");
  for (const int64_t number : {element_count(y.dims) / columns, depth, columns}) text += " " + std::to_string(number);
  for (const Buffer* buffer : {&x, &w, &y}) text += " " + to_string(buffer->element);
  return text;
}

// The same for convolutions or products of the same operands in one way, whatever follows them, and whether or not
// these and the results are parts of longer lines: what a kernel does to its results before it stores them takes a
// small part of its time, and how far lines are apart none. Empty for others.
std::string product_signature(const Plan& plan, const Kernel& kernel) {
  if (kernel.kind != KernelKind::Convolution && kernel.kind != KernelKind::MatrixProduct) return "";
  if (const auto tile = tile_of_lines(plan, kernel)) return to_string(hash_bytes(*tile));
  const Node& node = *kernel.nodes.front();
  std::string text = way_of(plan, kernel) + " " + op_info(node.op).name + attributes_text(node);
  const auto describe_packed = [&](BufferId id) {
    describe_buffer(plan.buffer(id), plan.buffer(id).layout.with_line(0), text);
  };
  // Of quantized weights scales and zero points, too.
  const size_t operands = !kernel.quantized ? 2 : kernel.quantized->zero >= 0 ? 4 : 3;
  for (size_t k = 0; k < operands; k++) {
    const auto at = kernel.quantized ? kernel.inputs.begin() + static_cast<ptrdiff_t>(k)
                                     : std::ranges::find(kernel.inputs, node.inputs[k]);
    if (at == kernel.inputs.end()) return "";
    describe_packed(kernel.input_buffers[static_cast<size_t>(at - kernel.inputs.begin())]);
  }
  for (const BufferId b : kernel.output_buffers) describe_packed(b);
  return to_string(hash_bytes(text));
}

}  // namespace

std::string kernel_signature(const Plan& plan, const Kernel& kernel) {
  if (!kernel.members.empty()) {
    std::string members;
    for (const Kernel& member : kernel.members) members += " " + kernel_signature(plan, member);
    return to_string(hash_bytes(to_string(kernel.kind) + members));
  }
  std::string text = way_of(plan, kernel);
  for (size_t k = 0; k < kernel.nodes.size(); k++) describe_node(kernel, k, text);
  for (BufferId b : kernel.input_buffers) describe_buffer(plan, b, text);
  text += " ->";
  for (BufferId b : kernel.output_buffers) describe_buffer(plan, b, text);
  return to_string(hash_bytes(text));
}

bool has_same_kernels(const Plan& a, const Plan& b) {
  return std::equal(a.kernels.begin(), a.kernels.end(), b.kernels.begin(), b.kernels.end(),
                    [&](const Kernel& x, const Kernel& y) { return kernel_signature(a, x) == kernel_signature(b, y); });
}

Result<KernelCache> KernelCache::load(const std::string& path, const std::string& machine) {
  KernelCache cache;
  cache.path_ = path;
  cache.machine_ = machine;
  const Error error{path + ": not a file of kernel times; give another --cache, or remove it"};
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) return error;  // which may not end
  std::ifstream file(path);
  if (!file || file.peek() == std::ifstream::traits_type::eof()) return cache;  // a new one
  std::string line;
  if (!std::getline(file, line) || std::ranges::find(kHeaders, line) == kHeaders.end()) return error;
  std::string of;  // the machine that the lines are of
  for (int number = 2; std::getline(file, line); number++) {
    if (line.starts_with(kMachine)) {
      of = line.substr(kMachine.size());
      cache.add_machine(of);
      continue;
    }
    Status status = line.starts_with(kPlans)    ? cache.read_plans(line, of)
                    : line.starts_with(kSearch) ? cache.read_search(line, of)
                                                : cache.read_line(line, of);
    GOPT_RETURN_IF_ERROR(std::move(status).with_context(path + ":" + std::to_string(number)));
  }
  return cache;
}

namespace {

constexpr size_t kKeyLength = 32;

// "inf": of a kernel that the library refuses.
std::optional<double> parse_time(const std::string& text) {
  char* end = nullptr;
  const double time = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == 0 && time >= 0 ? std::optional(time) : std::nullopt;
}

std::optional<std::vector<double>> parse_rounds(const std::string& text) {
  std::vector<double> rounds;
  std::istringstream fields(text);
  for (std::string field; std::getline(fields, field, ',');) {
    const auto ms = parse_time(field);
    if (!ms || std::isinf(*ms)) return std::nullopt;
    rounds.push_back(*ms);
  }
  return rounds;
}

// Read again, it is the same number.
std::string exact(double value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string line_of(const std::string& key, const PlanTimes& times) {
  std::string line = std::string(kPlans) + key + " " + exact(times.seconds);
  for (const std::vector<double>& rounds : times.ms)
    for (size_t k = 0; k < rounds.size(); k++) line += (k == 0 ? " " : ",") + exact(rounds[k]);
  return line + "\n";
}

}  // namespace

Status KernelCache::read_line(const std::string& line, const std::string& machine) {
  std::istringstream fields(line);
  std::string key, text;
  fields >> key >> text;
  const auto ms = parse_time(text);
  if (!ms || key.size() != kKeyLength)
    return Error{"expected a key and milliseconds; give another --cache, or remove it"};
  times_[key] = {*ms, machine};
  return Unit{};
}

Status KernelCache::read_plans(const std::string& line, const std::string& machine) {
  const Error error{
      "expected a key, seconds, and for each plan as many milliseconds with commas; give another --cache, or remove "
      "it"};
  std::istringstream fields(line.substr(kPlans.size()));
  std::string key, text;
  fields >> key >> text;
  const auto seconds = parse_time(text);
  if (!seconds || key.size() != kKeyLength) return error;
  PlanTimes times{.seconds = *seconds};
  while (fields >> text) {
    auto rounds = parse_rounds(text);
    if (!rounds || (!times.ms.empty() && times.ms[0].size() != rounds->size())) return error;
    times.ms.push_back(*std::move(rounds));
  }
  plans_[key] = {std::move(times), machine};
  return Unit{};
}

Status KernelCache::read_search(const std::string& line, const std::string& machine) {
  const std::string rest = line.substr(kSearch.size());
  if (rest.find(' ') != kKeyLength) return Error{"expected a key and a text; give another --cache, or remove it"};
  searches_[rest.substr(0, kKeyLength)] = {rest.substr(kKeyLength + 1), machine};
  return Unit{};
}

namespace {
std::string text_of_time(double ms) {
  char text[32];
  snprintf(text, sizeof text, "%.6g", ms);
  return text;
}
}  // namespace

// With what another run has saved there meanwhile.
KernelCache KernelCache::with_file() const {
  auto loaded = load(path_);
  if (!loaded.ok()) return *this;
  KernelCache all = *std::move(loaded);
  for (const std::string& machine : machines_) {
    std::erase(all.machines_, machine);
    all.machines_.push_back(machine);
  }
  for (const auto& [key, time] : times_) all.times_[key] = time;
  for (const auto& [key, search] : searches_) all.searches_[key] = search;
  for (const auto& [key, plans] : plans_) {
    // What was spent only grows.
    OfPlans& there = all.plans_[key];
    const double spent = there.times.ms.empty() && plans.times.ms.empty() ? there.times.seconds : 0;
    there = plans;
    there.times.seconds = std::max(there.times.seconds, spent);
  }
  return all;
}

Status KernelCache::save() const { return with_file().write(); }

Status KernelCache::write() const {
  std::map<std::string, std::string> lines;  // of each machine
  for (const auto& [key, time] : times_) {
    lines[time.machine] += key + " " + text_of_time(time.ms) + "\n";
  }
  for (const auto& [key, plans] : plans_) lines[plans.machine] += line_of(key, plans.times);
  for (const auto& [key, search] : searches_)
    lines[search.machine] += std::string(kSearch) + key + " " + search.text + "\n";
  std::string all = std::string(kHeaders.back()) + "\n" + lines[""];
  for (const std::string& machine : machines_)
    if (!lines[machine].empty()) all += std::string(kMachine) + machine + "\n" + lines[machine];
  return write_whole(path_, all);
}

void KernelCache::add_machine(const std::string& machine) {
  if (std::find(machines_.begin(), machines_.end(), machine) == machines_.end()) machines_.push_back(machine);
}

std::string KernelCache::key(const std::string& signature) const {
  return to_string(hash_bytes(machine_ + "|" + signature));
}
std::optional<double> KernelCache::find(const std::string& signature) const {
  auto it = times_.find(key(signature));
  if (it == times_.end()) return std::nullopt;
  return it->second.ms;
}
void KernelCache::put(const std::string& signature, double ms) {
  add_machine(machine_);
  // As it will be read, so that the next run computes with the same numbers.
  times_[key(signature)] = {std::strtod(text_of_time(ms).c_str(), nullptr), machine_};
}

std::optional<PlanTimes> KernelCache::find_plans(const std::string& signature) const {
  const auto it = plans_.find(key(signature));
  return it == plans_.end() ? std::nullopt : std::optional(it->second.times);
}
void KernelCache::put_plans(const std::string& signature, PlanTimes times) {
  add_machine(machine_);
  plans_[key(signature)] = {std::move(times), machine_};
}

std::optional<std::string> KernelCache::find_search(const std::string& signature) const {
  const auto it = searches_.find(key(signature));
  return it == searches_.end() ? std::nullopt : std::optional(it->second.text);
}
void KernelCache::put_search(const std::string& signature, std::string text) {
  add_machine(machine_);
  searches_[key(signature)] = {std::move(text), machine_};
}

namespace {

// Known kernels at their measured time; others at the analytic one, scaled by how the two compare on known kernels of
// their kind, and then by `unknown_factor`. Products or convolutions that differ in what follows them alone are one
// product timed several times: where their times differ by no more than times do, or one is not known, it takes the
// median, as far as they differ by analytic times. Else a search chooses by noise which of them are
// followed by what.
class CachedCosts : public KernelCosts, public planner::Choices {
 public:
  CachedCosts(std::shared_ptr<const KernelCache> cache, std::unique_ptr<KernelCosts> analytic, double unknown_factor)
      : cache_(std::move(cache)), analytic_(std::move(analytic)), unknown_factor_(unknown_factor) {}

  void calibrate(const std::vector<KernelSpec>& known) {
    std::map<std::string, std::vector<double>> ratios, scales;
    std::vector<OfProduct> products;
    for (const KernelSpec& spec : known) {
      const std::string signature = kernel_signature(spec);
      const auto measured = cache_->find(signature);
      if (!measured || std::isinf(*measured)) continue;
      const Plan plan = timing_plan({spec});
      const Kernel& kernel = plan.kernels[0];
      const double analytic_ms = analytic_->time_ms(plan, kernel);
      if (analytic_ms <= 0) continue;
      const double scale = *measured / analytic_ms;
      for (const std::string& kind : {narrow_kind(kernel), wide_kind(kernel), std::string(kAnyKind)})
        ratios[kind].push_back(scale);
      const std::string product = product_signature(plan, kernel);
      if (product.empty()) continue;
      const double noise = spec.target.kind == TargetKind::Cpu ? kNoise : kNoiseOfGpu;
      products.push_back({signature, product, analytic_ms, *measured, noise});
      scales[product].push_back(scale);
    }
    for (auto& [kind, of_kind] : ratios) scale_[kind] = at_rank(of_kind, of_kind.size() / 2);
    // Of two the lower: what disturbs a time adds to it.
    for (auto& [product, of_product] : scales)
      scale_of_product_[product] = at_rank(of_product, (of_product.size() - 1) / 2);
    for (const OfProduct& own : products) {
      const double like_others_ms = scale_of_product_.at(own.product) * own.analytic_ms;
      const bool is_like_others =
          own.measured_ms <= (1 + own.noise) * like_others_ms && like_others_ms <= (1 + own.noise) * own.measured_ms;
      if (is_like_others) without_noise_[own.signature] = like_others_ms;
    }
  }

  // Times of the same kernel, taken at different times on a shared machine, are within this of each other.
  double uncertainty() const override { return 0.05; }

  bool is_measured(const Plan& plan, const Kernel& kernel) const override {
    return cache_->find(kernel_signature(plan, kernel)).has_value();
  }

  double time_ms(const Plan& plan, const Kernel& kernel) override {
    const std::string signature = kernel_signature(plan, kernel);
    if (const auto it = without_noise_.find(signature); it != without_noise_.end())
      return planner::in_steps(it->second);
    if (const auto measured = cache_->find(signature)) return planner::in_steps(*measured);
    const double analytic_ms = analytic_->time_ms(plan, kernel);
    if (const auto it = scale_of_product_.find(product_signature(plan, kernel)); it != scale_of_product_.end()) {
      // Of a product that is known an estimate is hardly ever wrong.
      constexpr double kOfUnknown = 0.05;
      return planner::in_steps((1 + kOfUnknown * (unknown_factor_ - 1)) * it->second * analytic_ms);
    }
    auto it = scale_.find(narrow_kind(kernel));
    if (it == scale_.end()) it = scale_.find(wide_kind(kernel));
    if (it == scale_.end()) it = scale_.find(kAnyKind);
    return planner::in_steps(unknown_factor_ * analytic_ms * (it == scale_.end() ? 1.0 : it->second));
  }

 private:
  size_t version() const override { return cache_->size(); }

  // By which two times of one kernel may differ that were taken minutes apart: a processor is shared, and so is its
  // clock.
  static constexpr double kNoise = 0.3, kNoiseOfGpu = 0.1;
  struct OfProduct {
    std::string signature, product;
    double analytic_ms, measured_ms, noise;
  };

  static double at_rank(std::vector<double>& values, size_t rank) {
    const auto place = values.begin() + static_cast<std::ptrdiff_t>(rank);
    std::nth_element(values.begin(), place, values.end());
    return *place;
  }

  static constexpr const char* kAnyKind = "any";
  static std::string wide_kind(const Kernel& kernel) { return to_string(kernel.kind); }
  static std::string narrow_kind(const Kernel& kernel) {
    return wide_kind(kernel) + " " + kernel.implementation +
           (kernel.nodes.empty() ? "" : " " + op_info(kernel.nodes.back()->op).name);
  }

  std::shared_ptr<const KernelCache> cache_;
  std::unique_ptr<KernelCosts> analytic_;
  double unknown_factor_;
  std::map<std::string, double> scale_;
  std::map<std::string, double> scale_of_product_;  // the median
  std::map<std::string, double> without_noise_;     // milliseconds of known kernels
};

}  // namespace

std::unique_ptr<KernelCosts> cached_kernel_costs(std::shared_ptr<const KernelCache> cache,
                                                 std::unique_ptr<KernelCosts> analytic,
                                                 const std::vector<KernelSpec>& known, double unknown_factor) {
  auto costs = std::make_unique<CachedCosts>(std::move(cache), std::move(analytic), unknown_factor);
  costs->calibrate(known);
  return costs;
}

}  // namespace gopt
