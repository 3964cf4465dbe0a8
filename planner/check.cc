// What must hold of a plan: buffers alive at the same time do not overlap, views lie inside what they view, nothing is
// read before it is written.
#include <cctype>
#include <set>

#include "buffers.h"
#include "gopt/buffer_root.h"
#include "gopt/tile.h"

namespace gopt {
namespace {

struct Lifetime {
  int first = -1, last = -1;
};

class PlanChecker {
 public:
  explicit PlanChecker(const Plan& plan) : plan_(plan), lives_(plan.buffers.size()) {}

  Status run() {
    GOPT_RETURN_IF_ERROR(check_buffers());
    GOPT_RETURN_IF_ERROR(check_kernels());
    return check_arena();
  }

 private:
  uint32_t number_of_root(BufferId id) const { return static_cast<uint32_t>(root_of(plan_, id).buffer); }

  Status check_buffers() const {
    for (size_t b = 0; b < plan_.buffers.size(); b++) {
      const Buffer& buffer = plan_.buffers[b];
      const std::string name = "buffer " + std::to_string(b);
      if (buffer.size_bytes != buffer.layout.bytes(buffer.dims, buffer.element))
        return Error{name + " has a wrong size"};
      if (!buffer.is_view) continue;
      if (static_cast<uint32_t>(buffer.parent) >= plan_.buffers.size()) return Error{name + " views no buffer"};
      if (buffer.offset < 0 || buffer.offset + buffer.size_bytes > plan_.buffer(buffer.parent).size_bytes)
        return Error{name + " sticks out of what it views"};
    }
    return Unit{};
  }

  Status check_kernels() {
    std::set<uint32_t> written;
    std::set<std::string> names;
    for (size_t k = 0; k < plan_.kernels.size(); k++) {
      const Kernel& kernel = plan_.kernels[k];
      if (!names.insert(kernel.name).second) return Error{"two kernels are named " + kernel.name};
      for (char c : kernel.name)
        if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_')
          return Error{"kernel name " + kernel.name + " is no identifier"};
      if (kernel.prologue && !parse_tile(kernel.implementation) && !parse_warpgroup_tile(kernel.implementation))
        return Error{"kernel " + kernel.name + " has a prologue that its implementation lacks"};
      for (BufferId b : kernel.input_buffers) {
        const uint32_t root = number_of_root(b);
        const bool made_here =
            plan_.buffers[root].place == BufferPlace::Arena || plan_.buffers[root].place == BufferPlace::Output;
        const bool is_empty = plan_.buffer(b).size_bytes == 0;  // what it is a part of may be nobody's then
        if (made_here && !is_empty && !written.contains(root))
          return Error{"kernel " + kernel.name + " reads a buffer that no kernel has written"};
        touch(root, static_cast<int>(k));
      }
      for (BufferId b : kernel.output_buffers) {
        const uint32_t root = number_of_root(b);
        if (plan_.buffers[root].place == BufferPlace::Weight || plan_.buffers[root].place == BufferPlace::Input)
          return Error{"kernel " + kernel.name + " writes to an input"};
        written.insert(root);
        touch(root, static_cast<int>(k));
      }
    }
    return Unit{};
  }

  void touch(uint32_t root, int kernel) {
    if (lives_[root].first < 0) lives_[root].first = kernel;
    lives_[root].last = kernel;
  }

  Status check_arena() const {
    for (size_t a = 0; a < plan_.buffers.size(); a++) {
      if (!lies_in_arena(a)) continue;
      const Buffer& x = plan_.buffers[a];
      if (x.offset % 64 != 0) return Error{"buffer " + std::to_string(a) + " is not aligned"};
      if (x.offset + x.size_bytes > plan_.arena_bytes)
        return Error{"buffer " + std::to_string(a) + " sticks out of the arena"};
      for (size_t b = a + 1; b < plan_.buffers.size(); b++) {
        if (!lies_in_arena(b)) continue;
        const Buffer& y = plan_.buffers[b];
        const bool together = lives_[a].first <= lives_[b].last && lives_[b].first <= lives_[a].last;
        if (together && x.offset < y.offset + y.size_bytes && y.offset < x.offset + x.size_bytes)
          return Error{"buffers " + std::to_string(a) + " and " + std::to_string(b) + " overlap while both live"};
      }
    }
    return Unit{};
  }

  bool lies_in_arena(size_t b) const {
    return !plan_.buffers[b].is_view && plan_.buffers[b].place == BufferPlace::Arena && lives_[b].first >= 0;
  }

  const Plan& plan_;
  std::vector<Lifetime> lives_;
};

}  // namespace

Status check_plan(const Plan& plan) { return PlanChecker(plan).run(); }

}  // namespace gopt
