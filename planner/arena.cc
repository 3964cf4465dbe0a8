// Lifetimes, in-place results and the arena.
#include <algorithm>

#include "buffers.h"
#include "gopt/buffer_root.h"
#include "gopt/runtime/gopt_arena.h"

namespace gopt::planner {
namespace {

void touch(BufferLife& life, int kernel) {
  if (life.first < 0) life.first = kernel;
  life.last = std::max(life.last, kernel);
}

// At any size of open extents.
bool is_as_large(const Buffer& a, const Buffer& b) {
  return a.layout.elements(shape_of(a)) * Index(static_cast<int64_t>(size_bytes(a.element))) ==
         b.layout.elements(shape_of(b)) * Index(static_cast<int64_t>(size_bytes(b.element)));
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
      if (!is_as_large(from, whole) || !is_as_large(from, to)) continue;
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
      result.inside = Index(0);
      touch(lives[static_cast<uint32_t>(root)], lives[static_cast<uint32_t>(out)].last);
    }
  }
}

}  // namespace

void place_buffers(Plan& plan) {
  add_in_place(plan);
  const std::vector<BufferLife> lives = buffer_lives(plan);
  std::vector<uint32_t> buffers;
  std::vector<gopt_runtime::Piece> pieces;
  for (uint32_t b = 0; b < plan.buffers.size(); b++) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.is_view || buffer.place != BufferPlace::Arena || lives[b].first < 0) continue;
    buffers.push_back(b);
    pieces.push_back({aligned_size(buffer.size_bytes), lives[b].first, lives[b].last, 0});
  }
  plan.arena_bytes = gopt_runtime::place_pieces(pieces);
  for (size_t i = 0; i < buffers.size(); i++) plan.buffers[buffers[i]].offset = pieces[i].offset;
}

}  // namespace gopt::planner

namespace gopt {

BufferRoot root_of(const Plan& plan, BufferId id) {
  BufferRoot root;
  for (; plan.buffer(id).is_view; id = plan.buffer(id).parent) {
    root.offset += plan.buffer(id).offset;
    root.inside += plan.buffer(id).inside;
  }
  root.buffer = id;
  return root;
}

int64_t aligned_size(int64_t bytes) {
  constexpr int64_t kLine = 64;
  return (bytes + kLine - 1) / kLine * kLine;
}

int64_t place_of_weight(int64_t bytes) { return aligned_size(std::max<int64_t>(1, bytes)); }

std::vector<BufferLife> buffer_lives(const Plan& plan) {
  std::vector<BufferLife> lives(plan.buffers.size());
  for (size_t k = 0; k < plan.kernels.size(); k++)
    for (const auto* buffers : {&plan.kernels[k].input_buffers, &plan.kernels[k].output_buffers})
      for (BufferId b : *buffers)
        planner::touch(lives[static_cast<uint32_t>(root_of(plan, b).buffer)], static_cast<int>(k));
  return lives;
}

}  // namespace gopt
