#include "sequences.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include "gopt/buffer_root.h"
#include "gopt/sequence.h"
#include "gopt/vector_product.h"
#include "implementations.h"
#include "milliseconds.h"
#include "node_work.h"

namespace gopt::planner {
namespace {

// What of which buffers has been written, by whom.
class Writers {
 public:
  explicit Writers(const Plan& plan) : plan_(plan) {}

  void add(const Kernel& kernel, size_t number) {
    for (const BufferId id : kernel.output_buffers) {
      const BufferRoot root = root_of(plan_, id);
      written_[root.buffer].push_back({root.offset, root.offset + plan_.buffer(id).size_bytes, number});
    }
  }
  // Calls `with` for each that wrote some of what the kernel reads.
  template <class With>
  void for_each(const Kernel& kernel, const With& with) const {
    for (const BufferId id : kernel.input_buffers) for_each_of(id, with);
  }
  template <class With>
  void for_each_of(BufferId id, const With& with) const {
    const BufferRoot root = root_of(plan_, id);
    const int64_t end = root.offset + plan_.buffer(id).size_bytes;
    if (const auto it = written_.find(root.buffer); it != written_.end())
      for (const Part& part : it->second)
        if (part.begin < end && root.offset < part.end) with(part.writer);
  }

 private:
  struct Part {
    int64_t begin, end;
    size_t writer;
  };
  const Plan& plan_;
  std::map<BufferId, std::vector<Part>> written_;
};

// Of a set of numbers, those that are connected.
class Connected {
 public:
  explicit Connected(size_t count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  size_t find(size_t a) {
    while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
    return a;
  }
  void join(size_t a, size_t b) {
    const size_t x = find(a), y = find(b);
    parent_[std::max(x, y)] = std::min(x, y);
  }

 private:
  std::vector<size_t> parent_;
};

// ---- what may be a step ----

// Measured on an H200. A product reads what blocks of the whole cluster made: a barrier, some hundred cycles until what
// was written can be read, and as many until it has been. Elements mostly read what their own block made.
constexpr double kOfProductUs = 1.0, kOfElementsUs = 0.3, kLaunchUs = 2.5;
constexpr double kBytesPerUs = 1.5e6;  // of a cluster's processors, from the cache that all share
constexpr double kAheadUs = 0.4;       // of which so much is read before the barrier
constexpr double kThreads = 8192;      // of a cluster

double operations_of(const Kernel& kernel) {
  double operations = 0;
  for (const NodePtr& node : kernel.nodes) operations += work_of(*node).operations;
  return operations;
}

// A step's threads divide its elements, and each reduces alone.
double longest_of(const Plan& plan, const Kernel& kernel) {
  const auto elements = static_cast<double>(element_count(plan.buffer(kernel.output_buffers[0]).dims));
  return operations_of(kernel) / std::max(1.0, std::min(elements, kThreads));
}

bool is_product(const Kernel& kernel) {
  return kernel.kind == KernelKind::MatrixProduct || kernel.kind == KernelKind::Convolution;
}

double step_us(const Plan& plan, const Kernel& kernel) {
  constexpr double kOperationUs = 0.01;  // of a thread
  double bytes = 0;
  for (const auto* ids : {&kernel.input_buffers, &kernel.output_buffers})
    for (const BufferId id : *ids) bytes += static_cast<double>(plan.buffer(id).size_bytes);
  const double read_us = bytes / kBytesPerUs;
  if (is_product(kernel)) return kOfProductUs + std::max(0.0, read_us - kAheadUs);
  return kOfElementsUs + read_us + longest_of(plan, kernel) * kOperationUs;
}

// The kernel as a step, if it may be one: a product of a few lines by one matrix, or elements.
std::optional<Kernel> as_step(const Plan& plan, const Kernel& kernel) {
  constexpr size_t kMostOperands = 12;          // of a step (runtime/gopt_sequence.cuh), with the result
  constexpr int64_t kMostElements = 1LL << 20;  // which it divides in floats
  if (kernel.outputs.size() != 1 || kernel.prologue || kernel.integers ||
      kernel.input_buffers.size() + 1 > kMostOperands)
    return std::nullopt;
  const int64_t elements = element_count(plan.buffer(kernel.output_buffers[0]).dims);
  if (elements == 0 || elements >= kMostElements) return std::nullopt;
  if (kernel.kind == KernelKind::Reorder || (kernel.kind == KernelKind::Generated && kernel.implementation.empty()))
    return kernel;
  if (!is_product(kernel)) return std::nullopt;
  // Which are read before a step waits for the others.
  const Buffer& weights = plan.buffer(kernel.input_buffers[1]);
  if (plan.buffer(root_of(plan, kernel.input_buffers[1]).buffer).place != BufferPlace::Weight) return std::nullopt;
  const bool is_one_matrix = kernel.kind == KernelKind::Convolution ||
                             element_count(std::span(weights.dims).first(weights.dims.size() - 2)) == 1;
  if (!is_one_matrix) return std::nullopt;
  static const std::string name = vector_product_name(1);
  for (const Implementation& row : implementations())
    if (row.kind == kernel.kind && row.target == TargetKind::Cuda && row.name == name &&
        !is_switched_off(plan.target, row) && row.accepts(plan, kernel)) {
      Kernel step = kernel;
      step.implementation = name;
      return step;
    }
  return std::nullopt;
}

bool has_numbers_alone(const Plan& plan, const Kernel& kernel) {
  for (const auto* ids : {&kernel.input_buffers, &kernel.output_buffers})
    for (const BufferId id : *ids)
      if (!root_of(plan, id).inside.as_constant()) return false;
  return true;
}

bool may_be_step(const Plan& plan, const Kernel& kernel) {
  constexpr double kMostUs = 3;
  return has_numbers_alone(plan, kernel) && as_step(plan, kernel) && step_us(plan, kernel) <= kMostUs;
}

// ---- which of them ----

// Kernels that are reached without passing through one that is no step are of one level: they can stand together.
struct Levels {
  std::vector<bool> is_step;
  std::vector<int> level;
  Connected connected;                    // steps of a level that read each other's results
  std::vector<std::vector<size_t>> read;  // by each: who wrote it
};

class LevelFinder {
 public:
  explicit LevelFinder(const Plan& plan)
      : plan_(plan),
        writers_(plan),
        found_{std::vector<bool>(plan.kernels.size()), std::vector<int>(plan.kernels.size()),
               Connected(plan.kernels.size()), std::vector<std::vector<size_t>>(plan.kernels.size())},
        us_(plan.kernels.size()) {}

  Levels run() {
    for (size_t k = 0; k < plan_.kernels.size(); k++) {
      const Kernel& kernel = plan_.kernels[k];
      writers_.for_each(kernel, [&](size_t before) { found_.read[k].push_back(before); });
      writers_.add(kernel, k);
      found_.is_step[k] = may_be_step(plan_, kernel) && keeps_chains_apart(k);
      found_.level[k] = level_of(k, found_.is_step[k]);
      if (found_.is_step[k]) join(k);
    }
    return std::move(found_);
  }

 private:
  int level_of(size_t k, bool is_step) const {
    int level = 0;
    for (const size_t before : found_.read[k])
      level = std::max(level, found_.level[before] + (found_.is_step[before] && !is_step ? 1 : 0));
    return level;
  }
  // Chains that it would be a step of.
  std::set<size_t> chains_before(size_t k) {
    const int level = level_of(k, true);
    std::set<size_t> chains;
    for (const size_t before : found_.read[k])
      if (found_.is_step[before] && found_.level[before] == level) chains.insert(found_.connected.find(before));
    return chains;
  }
  // What ends several chains, which clusters take side by side, is a launch of its own.
  bool keeps_chains_apart(size_t k) {
    double all_us = 0, longest_us = 0;
    for (const size_t chain : chains_before(k)) all_us += us_[chain], longest_us = std::max(longest_us, us_[chain]);
    return all_us - longest_us <= plan_.kernels[k].estimated_ms * 1e3;
  }
  void join(size_t k) {
    us_[k] = step_us(plan_, plan_.kernels[k]);
    for (const size_t chain : chains_before(k)) {
      const size_t own = found_.connected.find(k);
      const double us = us_[own] + us_[chain];
      found_.connected.join(own, chain);
      us_[found_.connected.find(k)] = us;
    }
  }

  const Plan& plan_;
  Writers writers_;
  Levels found_;
  std::vector<double> us_;  // of chains, by their first kernels
};

Kernel sequence_of(const Plan& plan, const std::vector<size_t>& numbers) {
  Kernel sequence{KernelKind::Sequence};
  const Kernel& first = plan.kernels[numbers[0]];
  sequence.device = first.device;
  sequence.name = first.name + "_and_" + std::to_string(numbers.size() - 1) + "_after_it";
  std::set<BufferId> read;
  Writers made(plan);
  for (const size_t number : numbers) {
    const Kernel& member = sequence.members.emplace_back(*as_step(plan, plan.kernels[number]));
    sequence.nodes.insert(sequence.nodes.end(), member.nodes.begin(), member.nodes.end());
    sequence.outputs.push_back(member.outputs[0]);
    sequence.output_buffers.push_back(member.output_buffers[0]);
    made.add(member, number);
  }
  // What members made is not read from outside, nor are views of it.
  for (const Kernel& member : sequence.members)
    for (size_t i = 0; i < member.inputs.size(); i++) {
      const BufferId id = member.input_buffers[i];
      bool is_made_here = false;
      made.for_each_of(id, [&](size_t) { is_made_here = true; });
      if (is_made_here || !read.insert(id).second) continue;
      sequence.inputs.push_back(member.inputs[i]);
      sequence.input_buffers.push_back(id);
    }
  return sequence;
}

// In an order in which each comes after what it reads, as far as possible that in which they stood.
std::vector<Kernel> in_order(const Plan& plan, std::vector<Kernel>& sequences,
                             const std::vector<int>& sequence_of_kernel, const std::vector<std::vector<size_t>>& read) {
  const size_t count = plan.kernels.size();
  const auto item_of = [&](size_t k) {
    return sequence_of_kernel[k] < 0 ? k : count + static_cast<size_t>(sequence_of_kernel[k]);
  };
  std::vector<std::set<size_t>> next(count + sequences.size());
  std::vector<size_t> missing(next.size()), place(next.size(), count);
  for (size_t k = 0; k < count; k++) {
    const size_t own = item_of(k);
    place[own] = std::min(place[own], k);
    for (const size_t before : read[k])
      if (item_of(before) != own && next[item_of(before)].insert(own).second) missing[own]++;
  }
  using Ready = std::pair<size_t, size_t>;  // place, item
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (size_t item = 0; item < next.size(); item++)
    if (place[item] < count && missing[item] == 0) ready.emplace(place[item], item);
  std::vector<Kernel> kernels;
  while (!ready.empty()) {
    const size_t item = ready.top().second;
    ready.pop();
    kernels.push_back(item < count ? plan.kernels[item] : std::move(sequences[item - count]));
    for (const size_t after : next[item])
      if (--missing[after] == 0) ready.emplace(place[after], after);
  }
  return kernels;
}

// Whether times of the kernels were measured, as on which device a sequence pays is not known otherwise; and their
// results, which all have memory of their own, are few.
bool may_be_joined(const Plan& plan, const std::vector<size_t>& numbers, const KernelCosts& costs) {
  constexpr int64_t kMostBytes = 16LL << 20;
  int64_t bytes = 0;
  std::set<BufferId> ports;  // whose addresses the kernel is given
  for (const size_t number : numbers) {
    const Kernel& kernel = plan.kernels[number];
    if (!costs.is_measured(plan, kernel)) return false;
    bytes += plan.buffer(kernel.output_buffers[0]).size_bytes;
    for (const auto* ids : {&kernel.input_buffers, &kernel.output_buffers})
      for (const BufferId id : *ids)
        if (const BufferId root = root_of(plan, id).buffer;
            plan.buffer(root).place == BufferPlace::Input || plan.buffer(root).place == BufferPlace::Output)
          ports.insert(root);
  }
  constexpr size_t kMostPorts = 128;
  return bytes <= kMostBytes && ports.size() <= kMostPorts;
}

double chain_us(const Plan& plan, const std::vector<Kernel>& members, const SequenceChain& chain) {
  double us = 0;
  for (const size_t member : chain) us += step_us(plan, members[member]);
  return us;
}

}  // namespace

double sequence_ms(const Plan& plan, const Kernel& sequence) {
  double longest = 0;
  for (const SequenceChain& chain : chains_of(plan, sequence.members))
    longest = std::max(longest, chain_us(plan, sequence.members, chain));
  return in_steps((kLaunchUs + longest) * 1e-3);
}

void join_sequences(Plan& plan, const KernelCosts& costs) {
  if (plan.target.kind != TargetKind::Cuda || plan.target.without.contains(kSequences)) return;
  Levels levels = LevelFinder(plan).run();
  std::map<size_t, std::vector<size_t>> chains;  // by the first of each
  for (size_t k = 0; k < plan.kernels.size(); k++)
    if (levels.is_step[k]) chains[levels.connected.find(k)].push_back(k);
  std::map<int, std::vector<size_t>> by_level;  // numbers of those that gain
  constexpr size_t kFewest = 4;                 // a cluster begins later than a block
  for (const auto& [first, numbers] : chains) {
    if (numbers.size() < kFewest || !may_be_joined(plan, numbers, costs)) continue;
    double apart_ms = 0;
    for (const size_t number : numbers) apart_ms += plan.kernels[number].estimated_ms;
    if (sequence_ms(plan, sequence_of(plan, numbers)) >= apart_ms) continue;
    std::vector<size_t>& level = by_level[levels.level[first]];
    level.insert(level.end(), numbers.begin(), numbers.end());
  }
  if (by_level.empty()) return;
  std::vector<Kernel> sequences;
  std::vector<int> sequence_of_kernel(plan.kernels.size(), -1);
  for (auto& [_, numbers] : by_level) {
    std::ranges::sort(numbers);
    Kernel& sequence = sequences.emplace_back(sequence_of(plan, numbers));
    sequence.estimated_ms = sequence_ms(plan, sequence);
    plan.estimated_ms += sequence.estimated_ms;
    for (const size_t number : numbers) {
      plan.estimated_ms -= plan.kernels[number].estimated_ms;
      sequence_of_kernel[number] = static_cast<int>(sequences.size()) - 1;
    }
  }
  size_t joined = 0;
  for (const Kernel& sequence : sequences) joined += sequence.members.size();
  const size_t expected = plan.kernels.size() - joined + sequences.size();
  plan.kernels = in_order(plan, sequences, sequence_of_kernel, levels.read);
  GOPT_CHECK(plan.kernels.size() == expected, "kernels of sequences wait for each other");
}

}  // namespace gopt::planner

namespace gopt {

std::vector<SequenceChain> chains_of(const Plan& plan, const std::vector<Kernel>& members) {
  planner::Writers writers(plan);
  planner::Connected connected(members.size());
  std::vector<int> depths(members.size());
  for (size_t m = 0; m < members.size(); m++) {
    writers.for_each(members[m], [&](size_t before) {
      connected.join(before, m);
      depths[m] = std::max(depths[m], depths[before] + 1);
    });
    writers.add(members[m], m);
  }
  std::map<size_t, SequenceChain> chains;  // by their first members
  for (size_t m = 0; m < members.size(); m++) chains[connected.find(m)].push_back(m);
  std::vector<SequenceChain> found;
  for (auto& [_, chain] : chains) {
    std::ranges::stable_sort(chain, {}, [&](size_t member) { return depths[member]; });
    found.push_back(std::move(chain));
  }
  return found;
}

}  // namespace gopt
