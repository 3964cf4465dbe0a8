#include "gopt/kernel_spec.h"

#include <map>
#include <tuple>

#include "gopt/buffer_root.h"

namespace gopt {
namespace {

class Extraction {
 public:
  Extraction(const Plan& plan, const Kernel& kernel) : plan_(plan), spec_{plan.target, kernel, {}} {}

  KernelSpec run() {
    take_operands(spec_.kernel);
    for (Kernel& member : spec_.kernel.members) take_operands(member);
    for (BufferId& b : spec_.kernel.output_buffers) b = own_output(b);
    for (Kernel& member : spec_.kernel.members)
      for (BufferId& b : member.output_buffers) b = own(b);
    return std::move(spec_);
  }

 private:
  void take_operands(Kernel& kernel) {
    for (BufferId& b : kernel.input_buffers) b = own(b);
    for (Epilogue& e : kernel.epilogues)
      if (e.kind == Epilogue::Kind::Bias || e.kind == Epilogue::Kind::AddTensor) e.operand = own(e.operand);
  }

  BufferId own(BufferId id) {
    const auto [it, is_new] = renamed_.try_emplace(id, BufferId{static_cast<uint32_t>(spec_.buffers.size())});
    if (!is_new) return it->second;
    Buffer buffer = plan_.buffer(id);
    const bool is_weight = plan_.buffer(root_of(plan_, id).buffer).place == BufferPlace::Weight;
    buffer.place = is_weight ? BufferPlace::Weight : BufferPlace::Arena;
    buffer.is_view = false;
    buffer.offset = 0;
    spec_.buffers.push_back(std::move(buffer));
    return it->second;
  }

  // Of a result that is stored over an operand, this is kept.
  BufferId own_output(BufferId id) {
    const BufferRoot place = root_of(plan_, id);
    std::optional<BufferId> over;
    for (const auto& [original, renamed] : renamed_)
      if (root_of(plan_, original) == place) over = renamed;
    const BufferId result = own(id);
    if (over && *over != result) {
      Buffer& buffer = spec_.buffers[static_cast<uint32_t>(result)];
      buffer.is_view = true;
      buffer.parent = *over;
    }
    return result;
  }

  const Plan& plan_;
  KernelSpec spec_;
  std::map<BufferId, BufferId> renamed_;
};

// Kernels one after another; their arena buffers overlap, since each is timed alone.
class TimingPlan {
 public:
  void add(const KernelSpec& spec) {
    plan_.target = spec.target;
    const auto base = static_cast<uint32_t>(plan_.buffers.size());
    auto renamed = [base](BufferId id) { return BufferId{base + static_cast<uint32_t>(id)}; };
    int64_t end = 0;
    for (Buffer buffer : spec.buffers) {
      if (buffer.is_view) {
        buffer.parent = renamed(buffer.parent);
      } else if (buffer.place == BufferPlace::Weight) {
        place_weight(buffer);
      } else {
        buffer.offset = end;
        end += aligned_size(buffer.size_bytes);
      }
      plan_.buffers.push_back(std::move(buffer));
    }
    plan_.arena_bytes = std::max(plan_.arena_bytes, end);
    Kernel kernel = spec.kernel;
    const auto rename_in = [&](Kernel& own) {
      for (auto* buffers : {&own.input_buffers, &own.output_buffers})
        for (BufferId& b : *buffers) b = renamed(b);
      for (Epilogue& e : own.epilogues) e.operand = renamed(e.operand);
    };
    rename_in(kernel);
    for (Kernel& member : kernel.members) rename_in(member);
    kernel.name = "t" + std::to_string(plan_.kernels.size()) + "_" + kernel.name;
    plan_.kernels.push_back(std::move(kernel));
  }

  Plan run() && {
    plan_.times_kernels = true;
    return std::move(plan_);
  }

 private:
  // Alternatives of a kernel share their weights.
  void place_weight(Buffer& buffer) {
    const WeightKey key{{buffer.value.node.get(), buffer.value.output}, buffer.layout, buffer.element};
    const auto [it, is_new] = weights_.try_emplace(key, weight_bytes_);
    if (is_new) weight_bytes_ += place_of_weight(buffer.size_bytes);
    buffer.offset = it->second;
  }

  Plan plan_;
  using WeightKey = std::tuple<std::pair<const Node*, int>, Layout, ElementType>;
  std::map<WeightKey, int64_t> weights_;
  int64_t weight_bytes_ = 0;
};

}  // namespace

KernelSpec spec_of(const Plan& plan, const Kernel& kernel) { return Extraction(plan, kernel).run(); }

Plan timing_plan(const std::vector<KernelSpec>& specs) {
  TimingPlan plan;
  for (const KernelSpec& spec : specs) plan.add(spec);
  return std::move(plan).run();
}

std::string kernel_signature(const KernelSpec& spec) {
  Plan alone;
  alone.target = spec.target;
  alone.buffers = spec.buffers;
  return kernel_signature(alone, spec.kernel);
}

}  // namespace gopt
