#include "choices.h"

#include "gopt/kernel_spec.h"
#include "implementations.h"

namespace gopt::planner {

std::string text_for_choice(const Plan& plan, const Kernel& kernel) {
  const Target& target = plan.target;
  if (!kernel.members.empty() || !is_timed(kernel.kind)) return "";
  if (!target.open.empty() || !target.in_fp32.empty()) return "";  // which values these are is in no text
  constexpr int64_t kAligned = 16;                                 // what lies so may be read in chunks
  std::string text = kernel_signature(plan, kernel);
  const auto add = [&](BufferId id) { text += " " + std::to_string(plan.buffer(id).offset % kAligned); };
  for (const BufferId id : kernel.input_buffers) add(id);
  for (const BufferId id : kernel.output_buffers) add(id);
  for (const Epilogue& e : kernel.epilogues) text += " e" + std::to_string(static_cast<int>(e.kind));
  if (kernel.prologue) text += kernel.prologue->gates >= 0 ? " g" : " p";
  text += " " + std::to_string(static_cast<int>(target.kind)) + " " +
          std::to_string(static_cast<int>(target.precision)) + " " + std::to_string(target.vector_lanes) +
          (target.has_tiles ? " tiles" : "");
  for (const std::string& part : target.without) text += " -" + part;
  return text;
}

void Choices::forget_others() {
  const size_t now = version();
  if (now != version_) choices_.clear();
  version_ = now;
}

std::optional<Choices::Choice> Choices::find(const std::string& text) {
  const std::lock_guard lock(mutex_);
  forget_others();
  const auto it = choices_.find(text);
  return it == choices_.end() ? std::nullopt : std::optional(it->second);
}

void Choices::keep(const std::string& text, Choice choice) {
  const std::lock_guard lock(mutex_);
  forget_others();
  choices_.emplace(text, std::move(choice));
}

}  // namespace gopt::planner
