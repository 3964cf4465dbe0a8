// Lifetimes, in-place results and the arena: largest buffers first, each at the lowest offset that no buffer alive at
// the same time takes.
#include <algorithm>

#include "buffers.h"
#include "gopt/buffer_root.h"

namespace gopt::planner {
namespace {

void touch(BufferLife& life, int kernel) {
  if (life.first < 0) life.first = kernel;
  life.last = std::max(life.last, kernel);
}

// The result of a library kernel goes where the tensor lies that it adds, when nobody reads that afterwards.
void add_in_place(Plan& plan) {
  std::vector<BufferLife> lives = buffer_lives(plan);
  for (size_t k = 0; k < plan.kernels.size(); k++) {
    const Kernel& kernel = plan.kernels[k];
    for (const Epilogue& e : kernel.epilogues) {
      if (e.kind != Epilogue::Kind::AddTensor) continue;
      const BufferId operand = e.operand, out = kernel.output_buffers[0];
      const BufferId root = root_of(plan, operand).buffer;
      const Buffer &from = plan.buffer(operand), &to = plan.buffer(out), &whole = plan.buffer(root);
      if (to.is_view || to.place != BufferPlace::Arena || whole.place != BufferPlace::Arena) continue;
      if (from.size_bytes != whole.size_bytes || from.size_bytes != to.size_bytes || from.layout != to.layout) continue;
      if (lives[static_cast<uint32_t>(root)].last > static_cast<int>(k)) continue;
      bool also_source = false;
      for (size_t i = 0; i < kernel.input_buffers.size(); i++)
        also_source |= kernel.input_buffers[i] != operand && root_of(plan, kernel.input_buffers[i]).buffer == root;
      also_source |= std::count(kernel.input_buffers.begin(), kernel.input_buffers.end(), operand) > 1;
      if (also_source) continue;
      Buffer& result = plan.buffers[static_cast<uint32_t>(out)];
      result.is_view = true;
      result.parent = root;
      result.offset = 0;
      touch(lives[static_cast<uint32_t>(root)], lives[static_cast<uint32_t>(out)].last);
    }
  }
}

}  // namespace

void place_buffers(Plan& plan) {
  add_in_place(plan);
  const std::vector<BufferLife> lives = buffer_lives(plan);
  std::vector<uint32_t> order;
  for (uint32_t b = 0; b < plan.buffers.size(); b++)
    if (!plan.buffers[b].is_view && plan.buffers[b].place == BufferPlace::Arena && lives[b].first >= 0)
      order.push_back(b);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return plan.buffers[a].size_bytes > plan.buffers[b].size_bytes; });
  std::vector<uint32_t> placed;  // by offset
  for (uint32_t b : order) {
    int64_t offset = 0;
    const int64_t size = aligned_size(plan.buffers[b].size_bytes);
    for (uint32_t other : placed) {
      const bool together = lives[other].first <= lives[b].last && lives[b].first <= lives[other].last;
      if (!together) continue;
      if (plan.buffers[other].offset >= offset + size) break;
      const int64_t end = plan.buffers[other].offset + aligned_size(plan.buffers[other].size_bytes);
      offset = std::max(offset, end);
    }
    plan.buffers[b].offset = offset;
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), b,
                         [&](uint32_t x, uint32_t y) { return plan.buffers[x].offset < plan.buffers[y].offset; }),
        b);
    plan.arena_bytes = std::max(plan.arena_bytes, offset + size);
  }
}

}  // namespace gopt::planner

namespace gopt {

BufferRoot root_of(const Plan& plan, BufferId id) {
  int64_t offset = 0;
  for (; plan.buffer(id).is_view; id = plan.buffer(id).parent) offset += plan.buffer(id).offset;
  return {id, offset};
}

int64_t aligned_size(int64_t bytes) {
  constexpr int64_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

std::vector<BufferLife> buffer_lives(const Plan& plan) {
  std::vector<BufferLife> lives(plan.buffers.size());
  for (size_t k = 0; k < plan.kernels.size(); k++)
    for (const auto* buffers : {&plan.kernels[k].input_buffers, &plan.kernels[k].output_buffers})
      for (BufferId b : *buffers)
        planner::touch(lives[static_cast<uint32_t>(root_of(plan, b).buffer)], static_cast<int>(k));
  return lives;
}

}  // namespace gopt
