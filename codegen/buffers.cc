#include "buffers.h"

#include <algorithm>

#include "gopt/buffer_root.h"
#include "sizes.h"

namespace gopt::codegen {

Location locate(const Plan& plan, BufferId id) {
  const BufferRoot at = root_of(plan, id);
  const Buffer& root = plan.buffer(at.buffer);
  const bool is_bound = root.place == BufferPlace::Input || root.place == BufferPlace::Output;
  if (is_bound) return {root.place, at.inside, root.offset};
  const bool is_laid_out_later = root.place == BufferPlace::Arena && !plan.target.open.empty();
  if (is_laid_out_later) return {root.place, at.inside, static_cast<int64_t>(at.buffer)};
  return {root.place, Index(root.offset) + at.inside, 0};
}

std::string pointer_text(const Location& location, const std::vector<OpenExtent>& open) {
  const std::string plus = location.offset == Index(0) ? "" : " + " + size_text(location.offset, open),
                    number = "[" + std::to_string(location.number) + "]";
  switch (location.place) {
    case BufferPlace::Weight: return "weights" + plus;
    case BufferPlace::Arena: return "arena" + (open.empty() ? "" : " + at" + number) + plus;
    case BufferPlace::Input: return "(const char*)inputs" + number + plus;
    case BufferPlace::Output: return "(char*)outputs" + number + plus;
  }
  return "";
}

std::optional<BufferId> result_buffer(const Kernel& kernel, int output) {
  const auto it = std::ranges::find(kernel.outputs, Value{kernel.nodes[0], output});
  if (it == kernel.outputs.end()) return std::nullopt;
  return kernel.output_buffers[static_cast<size_t>(it - kernel.outputs.begin())];
}

std::vector<BufferId> weight_buffers(const Plan& plan) {
  std::vector<BufferId> found;
  for (uint32_t b = 0; b < plan.buffers.size(); b++)
    if (plan.buffers[b].place == BufferPlace::Weight && !plan.buffers[b].is_view) found.push_back(BufferId{b});
  std::sort(found.begin(), found.end(),
            [&](BufferId a, BufferId b) { return plan.buffer(a).offset < plan.buffer(b).offset; });
  const auto same_place = [&](BufferId a, BufferId b) { return plan.buffer(a).offset == plan.buffer(b).offset; };
  found.erase(std::unique(found.begin(), found.end(), same_place), found.end());
  return found;
}

int64_t weights_file_size(const Plan& plan) {
  int64_t size = 0;
  for (BufferId id : weight_buffers(plan))
    size = std::max(size, plan.buffer(id).offset + place_of_weight(plan.buffer(id).size_bytes));
  return size;
}

}  // namespace gopt::codegen
