#include "sequence_steps.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "../reshape.h"
#include "../transform.h"
#include "gopt/buffer_root.h"
#include "gopt/runtime/gopt_arena.h"
#include "thread_loops.h"

namespace gopt::codegen {
namespace {

bool is_multiple(const Index& index, int64_t of) {
  return index.constant() % of == 0 &&
         std::ranges::all_of(index.terms(), [of](const Index::Term& term) { return term.coefficient % of == 0; });
}

// The number of an element in the order of loops.
Index number_of(const KernelBody& body) {
  Index number(0), step(1);
  for (size_t l = body.loops.size(); l-- > 0;) {
    number += step * (Index::from_atom(body.loops[l].symbol) - body.loops[l].low);
    step = step * body.loops[l].extent();
  }
  return number;
}

// How far an element of an operand lies from the step's own: by each read of it.
struct Access {
  BufferId buffer{};
  std::vector<Index> distances;
  bool is_anywhere = false;
};

struct Accesses {
  std::vector<Access> inputs;
  Index result;  // likewise
};

// Whether a column's elements are apart from each other by the number of columns.
bool is_packed(const Plan& plan, BufferId id, int64_t columns) {
  const int64_t line = plan.buffer(id).layout.line();
  return line == 0 || line == columns;
}

Accesses accesses_of(const Plan& plan, const ChainStep& step) {
  Accesses found;
  for (const BufferId id : step.member->input_buffers) found.inputs.push_back({id, {}, !step.body});
  if (!step.body) {  // a product: of what is added, a column's is at its own place
    for (const Epilogue& e : step.member->epilogues)
      if (e.kind == Epilogue::Kind::AddTensor && is_packed(plan, e.operand, step.elements))
        for (Access& input : found.inputs)
          if (input.buffer == e.operand && input.buffer != step.member->input_buffers[0])
            input.is_anywhere = false, input.distances = {Index(0)};
    return found;
  }
  const Index own = number_of(*step.body);
  found.result = step.body->offset - own;
  for_each_index(step.body->value, [&](const Index& index) {
    if (has_load(index))
      for (Access& input : found.inputs) input.is_anywhere = true;
  });
  for_each_read(step.body->value, [&](const Expr& read) {
    found.inputs[static_cast<size_t>(read->input)].distances.push_back(read->subscripts[0] - own);
  });
  return found;
}

class ChainDivider {
 public:
  ChainDivider(const Plan& plan, const Kernel& sequence) : plan_(plan), sequence_(sequence) {}

  Result<DividedChain> run(const SequenceChain& chain) {
    for (const size_t member : chain) GOPT_RETURN_IF_ERROR(add(sequence_.members[member]));
    find_dependencies();
    constexpr int64_t kLeast = 16;  // blocks that share a period
    std::set<int64_t> counts, periods{0};
    for (const ChainStep& step : divided_.steps) counts.insert(step.elements);
    for (const int64_t a : counts)
      for (const int64_t b : counts)
        if (const int64_t both = std::gcd(a, b); both >= kLeast) periods.insert(both);
    int64_t best = 0;
    size_t fewest = SIZE_MAX;
    for (const int64_t period : periods) {
      divide_by(period);
      size_t waits = 0;
      for (const ChainStep& step : divided_.steps) waits += step.waits == Waits::Cluster;
      if (waits <= fewest) fewest = waits, best = period;
    }
    divide_by(best);
    place_shared();
    return std::move(divided_);
  }

 private:
  Status add(const Kernel& member) {
    const auto take = [&](ChainStep step) {
      accesses_.push_back(accesses_of(plan_, step));
      divided_.steps.push_back(std::move(step));
    };
    const Buffer& result = plan_.buffer(member.output_buffers[0]);
    if (member.kind != KernelKind::Generated && member.kind != KernelKind::Reorder) {
      const int64_t columns = member.kind == KernelKind::Convolution ? result.dims[1] : result.dims.back();
      take({&member, std::nullopt, 0, is_packed(plan_, member.output_buffers[0], columns) ? columns : 0});
      return Unit{};
    }
    auto body = lower_kernel(plan_, member);
    if (!body) return Error{"kernel " + member.name + ": " + body.error().message};
    for (KernelBody& part : reshape_loops(*body)) {
      const int64_t elements = cuda_count(part.loops);
      take({&member, std::move(part), 0, elements});
    }
    return Unit{};
  }

  // Which steps write what others read.
  void find_dependencies() {
    std::map<BufferId, std::vector<size_t>> writers;
    for (size_t s = 0; s < divided_.steps.size(); s++) {
      std::vector<Dependency>& own = dependencies_.emplace_back();
      for (const Access& access : accesses_[s].inputs) {
        const BufferRoot at = root_of(plan_, access.buffer);
        for (const size_t before : writers[at.buffer]) {
          const BufferId made = divided_.steps[before].member->output_buffers[0];
          const int64_t from = root_of(plan_, made).offset;
          if (from < at.offset + plan_.buffer(access.buffer).size_bytes &&
              at.offset < from + plan_.buffer(made).size_bytes)
            own.push_back({before, &access, at.offset - from});
        }
      }
      writers[root_of(plan_, divided_.steps[s].member->output_buffers[0]).buffer].push_back(s);
    }
  }

  struct Dependency {
    size_t before;
    const Access* access;
    int64_t apart;  // bytes from what was written to what is read
  };

  // By which barrier the step has to be parted from the one before it.
  Waits between(const Dependency& d, size_t after) const {
    const ChainStep &writer = divided_.steps[d.before], &reader = divided_.steps[after];
    const ElementType element = plan_.buffer(writer.member->output_buffers[0]).element;
    const auto size = static_cast<int64_t>(size_bytes(element));
    if (writer.period == 0 || reader.period == 0 || d.access->is_anywhere ||
        element != plan_.buffer(d.access->buffer).element || d.apart % size != 0)
      return Waits::Cluster;
    const Index& written = accesses_[d.before].result;
    bool are_same = writer.body && reader.body && writer.elements == reader.elements;
    for (const Index& distance : d.access->distances) {
      const Index read = distance + Index(d.apart / size);
      if (!is_multiple(written, writer.period) || !is_multiple(read, writer.period)) return Waits::Cluster;
      are_same &= read == written && read.as_constant();  // symbols are other loops' there
    }
    return are_same ? Waits::Nothing : Waits::Block;
  }

  void divide_by(int64_t period) {
    std::vector<ChainStep>& steps = divided_.steps;
    for (ChainStep& step : steps) {
      const bool fits = period > 0 && step.elements > 0 && step.elements % period == 0;
      step.period = fits && !(step.body && takes_chunks_as_step(*step.body)) ? period : 0;
    }
    std::ptrdiff_t last_block = -1, last_cluster = -1;  // steps before which such a barrier stands
    for (size_t s = 0; s < steps.size(); s++) {
      Waits waits = Waits::Nothing;
      for (const Dependency& dependency : dependencies_[s]) {
        const auto at = static_cast<std::ptrdiff_t>(dependency.before);
        if (at < last_cluster) continue;
        const Waits needed = between(dependency, s);
        if (needed == Waits::Cluster || at >= last_block) waits = std::max(waits, needed);
      }
      steps[s].waits = waits;
      if (waits >= Waits::Block) last_block = static_cast<std::ptrdiff_t>(s);
      if (waits == Waits::Cluster) last_cluster = static_cast<std::ptrdiff_t>(s);
    }
  }

  // Buffers that this chain alone reads, each element in the block that made it.
  void place_shared() {
    constexpr int64_t kMostBytes = 32768;
    std::vector<int> epochs;  // barriers before each step
    for (const ChainStep& step : divided_.steps)
      epochs.push_back((epochs.empty() ? 0 : epochs.back()) + (step.waits == Waits::Nothing ? 0 : 1));
    std::vector<BufferId> buffers;
    std::vector<gopt_runtime::Piece> pieces;
    for (size_t s = 0; s < divided_.steps.size(); s++) {
      const BufferId made = divided_.steps[s].member->output_buffers[0];
      const Buffer& buffer = plan_.buffer(made);
      if (divided_.steps[s].period == 0 || buffer.is_view || buffer.place != BufferPlace::Arena) continue;
      const auto last = last_read_here(s, made);
      if (!last) continue;
      buffers.push_back(made);
      pieces.push_back({aligned_size(buffer.size_bytes), epochs[s], epochs[*last], 0});
    }
    const int64_t bytes = gopt_runtime::place_pieces(pieces);
    if (bytes > kMostBytes) return;
    divided_.shared_bytes = bytes;
    for (size_t i = 0; i < buffers.size(); i++) divided_.shared.emplace(buffers[i], pieces[i].offset);
  }

  // The last step that reads what step `s` alone makes, if nobody reads it but threads of the block that did.
  std::optional<size_t> last_read_here(size_t s, BufferId made) const {
    std::optional<size_t> last;
    std::set<const Kernel*> users{divided_.steps[s].member};
    for (size_t after = s + 1; after < divided_.steps.size(); after++)
      for (const Dependency& dependency : dependencies_[after]) {
        if (dependency.before != s) continue;
        if (between(dependency, after) == Waits::Cluster) return std::nullopt;
        last = after;
        users.insert(divided_.steps[after].member);
      }
    const BufferId root = root_of(plan_, made).buffer;
    const auto is_of_others = [&](const Kernel& kernel) {
      const auto is_it = [&](BufferId id) { return root_of(plan_, id).buffer == root; };
      return !users.contains(&kernel) &&
             (std::ranges::any_of(kernel.input_buffers, is_it) || std::ranges::any_of(kernel.output_buffers, is_it));
    };
    for (const Kernel& kernel : plan_.kernels) {
      const bool is_sequence = kernel.kind == KernelKind::Sequence;
      if (is_sequence ? std::ranges::any_of(kernel.members, is_of_others) : is_of_others(kernel)) return std::nullopt;
    }
    const auto makes_it = [&](const ChainStep& step) {
      return root_of(plan_, step.member->output_buffers[0]).buffer == root;
    };
    return std::ranges::count_if(divided_.steps, makes_it) == 1 ? last : std::nullopt;
  }

  const Plan& plan_;
  const Kernel& sequence_;
  DividedChain divided_;
  std::vector<Accesses> accesses_;
  std::vector<std::vector<Dependency>> dependencies_;  // of each step
};

}  // namespace

Result<DividedChain> divide_chain(const Plan& plan, const Kernel& sequence, const SequenceChain& chain) {
  return ChainDivider(plan, sequence).run(chain);
}

}  // namespace gopt::codegen
