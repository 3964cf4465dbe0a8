#include "enumerate.h"

#include <algorithm>
#include <set>

#include "enumerator_worker.h"

namespace gopt::generator {
namespace {

constexpr size_t kBigsAtOnce = 16;

}  // namespace

int EnumerationLimits::weight_ops_beside(int activation_ops) const {
  if (activation_ops > max_ops) return -1;
  const int total = std::max(std::min(max_ops, 3) + 1, max_weight_ops + 1);
  // With as many applications as a left side may have, a right side gains little from weights.
  const int most = activation_ops == max_ops ? std::min(max_weight_ops, 1) : max_weight_ops;
  return std::min(most, std::max(total - activation_ops, 0));
}

Enumerator::Enumerator(Space& space, const EnumerationLimits& limits, const Team& team)
    : space_(space), limits_(limits), team_(team) {
  for (const AlphabetOp& op : space.terms().family().ops) ops_.push_back(space.terms().add_op(op));
}

void Enumerator::add_to_group(uint32_t id) {
  const Representative& rep = space_.rep(id);
  const auto& classes = space_.terms().family().classes;
  const bool is_named = rep.leaf_class >= 0 && !classes[static_cast<size_t>(rep.leaf_class)].name.empty();
  const int named_class = is_named ? rep.leaf_class : -1;
  for (Group& group : groups_)
    if (group.activation_ops == rep.activation_ops && group.weight_ops == rep.weight_ops && group.type == rep.type &&
        group.is_weight == rep.is_weight && group.named_class == named_class)
      return group.reps.push_back(id);
  groups_.push_back({rep.activation_ops, rep.weight_ops, rep.type, rep.is_weight, named_class, {id}});
}

Level Enumerator::leaves() {
  Level level;
  TapeCache tapes;
  World first(space_.terms(), sizes_of(space_.terms().family(), 0), {}, mix(space_.seed()), tapes),
      second(space_.terms(), sizes_of(space_.terms().family(), 1), {}, mix(space_.seed() + 1), tapes);
  const auto value_of = [&](TermId id) {
    Values both;
    for (World* world : {&first, &second}) {
      const auto own = world->value(id, false);
      both.insert(both.end(), own->values.begin(), own->values.end());
    }
    return both;
  };
  const auto add = [&](Representative rep) {
    rep.size = static_cast<uint32_t>(space_.kernels().size(rep.type));
    const uint64_t key = space_.type_key(rep.type);
    const uint32_t id = space_.add(rep);
    for (size_t number = 0; number < rep.images.size(); number++)
      space_.table().insert(space_.fingerprint(key, rep.images[number].data(), rep.size),
                            {id, static_cast<Naming>(number)});
    add_to_group(id);
    level.representatives.push_back(id);
  };
  const auto& classes = space_.terms().family().classes;
  for (size_t c = 0; c < classes.size(); c++) {
    Representative rep;
    rep.leaf_class = static_cast<int>(c);
    rep.is_weight = classes[c].kind == VariableKind::Weight;
    rep.is_open = classes[c].has_prefix;
    rep.signature = space_.intern_signature({static_cast<uint8_t>(c)});
    for (unsigned number = 0; number < space_.pool(c); number++) {
      const TermId id = space_.terms().variable(static_cast<int>(c), static_cast<int>(number));
      rep.type = space_.terms().term(id).type;
      rep.images.push_back(value_of(id));
    }
    add(std::move(rep));
  }
  for (double constant : space_.terms().family().constants) {
    Representative rep;
    rep.constant = constant;
    rep.signature = space_.intern_signature({});
    const TermId id = space_.terms().constant(constant);
    rep.type = space_.terms().term(id).type;
    rep.images.push_back(value_of(id));
    add(std::move(rep));
  }
  // Operators of no input are constants too.
  Values registers;
  for (int op : ops_) {
    if (space_.terms().op(op).inputs != 0) continue;
    const TermKernel* kernel = space_.kernels().find(op, 0, {});
    if (!kernel) continue;
    Representative rep;
    rep.application.op = static_cast<int16_t>(op);
    rep.kernel = kernel;
    rep.type = kernel->type;
    rep.signature = space_.intern_signature({});
    rep.images.emplace_back(kernel->tapes[0].size() + kernel->tapes[1].size());
    if (kernel->run(nullptr, rep.images[0].data(), registers)) add(std::move(rep));
  }
  return level;
}

std::vector<Enumerator::Job> Enumerator::jobs(int activation_ops, int weight_ops) {
  std::vector<Job> jobs;
  const bool weights_only = activation_ops == 0;
  for (int op : ops_) {
    if (space_.terms().op(op).inputs == 0 || (space_.terms().op(op).on_weights_only && !weights_only)) continue;
    Job job{op, 0, {}, {}};
    // What is left for the arguments once the application itself is counted.
    choose_groups(job, weights_only ? 0 : activation_ops - 1, weights_only ? weight_ops - 1 : weight_ops, weights_only,
                  jobs);
  }
  std::vector<Kernels::Wanted> wanted;
  for (const Job& job : jobs) wanted.emplace_back(job.op, types_of(job));
  space_.kernels().prepare(wanted, team_.threads);
  std::erase_if(jobs, [&](Job& job) { return !find_outputs(job); });
  return jobs;
}

void Enumerator::choose_groups(Job& job, int activation_ops, int weight_ops, bool weights_only,
                               std::vector<Job>& jobs) {
  const auto inputs = static_cast<size_t>(space_.terms().op(job.op).inputs);
  if (job.groups.size() == inputs) {
    if (activation_ops == 0 && weight_ops == 0) complete(job, weights_only, jobs);
    return;
  }
  for (size_t g = 0; g < groups_.size(); g++) {
    const Group& group = groups_[g];
    if (group.activation_ops > activation_ops || group.weight_ops > weight_ops) continue;
    const bool is_weight_input = static_cast<int>(job.groups.size()) >= space_.terms().op(job.op).weights_from;
    if ((weights_only || is_weight_input) && !group.is_weight) continue;
    if (group.named_class != space_.terms().op(job.op).class_of(job.groups.size())) continue;
    job.groups.push_back(g);
    choose_groups(job, activation_ops - group.activation_ops, weight_ops - group.weight_ops, weights_only, jobs);
    job.groups.pop_back();
  }
}

Enumerator::Output Enumerator::output_of(const TermKernel* kernel) {
  const auto [entry, is_new] = output_numbers_.try_emplace(kernel, static_cast<uint32_t>(outputs_.size()));
  if (is_new)
    outputs_.push_back({kernel, space_.type_key(kernel->type),
                        static_cast<uint32_t>(kernel->tapes[0].size() + kernel->tapes[1].size()), entry->second});
  return outputs_[entry->second];
}

std::vector<TypeId> Enumerator::types_of(const Job& job) const {
  std::vector<TypeId> types;
  for (size_t g : job.groups) types.push_back(groups_[g].type);
  return types;
}

// Whether the operator takes the types, with a kernel for each output.
bool Enumerator::find_outputs(Job& job) {
  const std::vector<TypeId> types = types_of(job);
  for (int output = 0; output < space_.terms().op(job.op).outputs; output++) {
    const TermKernel* kernel = space_.kernels().find(job.op, output, types);
    if (!kernel) return false;
    job.outputs.push_back(output_of(kernel));
  }
  return true;
}

void Enumerator::complete(Job& job, bool weights_only, std::vector<Job>& jobs) const {
  const auto total = [&](size_t g) { return groups_[g].activation_ops + groups_[g].weight_ops; };
  bool all_weights = true;
  job.big = 0;
  for (size_t i = 0; i < job.groups.size(); i++) {
    const Group& group = groups_[job.groups[i]];
    all_weights = all_weights && group.is_weight;
    if (total(job.groups[i]) > total(job.groups[job.big])) job.big = i;
  }
  if (all_weights != weights_only) return;
  const AlphabetOp& op = space_.terms().op(job.op);
  if (is_commutative(op) && total(job.groups[0]) < total(job.groups[1])) return;  // the other order comes too
  jobs.push_back(job);
}

// Kernels of binary operators on whatever has one application less, and on its parts.
Enumerator::SharedKernels Enumerator::shared_kernels(int activation_ops, int weight_ops) {
  SharedKernels kernels;
  std::set<TypeId> wholes, parts;
  for (const Group& group : groups_) {
    if (group.is_weight || group.activation_ops == 0) continue;
    if (group.activation_ops == activation_ops - 1 && group.weight_ops == weight_ops) wholes.insert(group.type);
    parts.insert(group.type);
  }
  std::vector<Kernels::Wanted> wanted;
  for (int op : ops_) {
    const AlphabetOp& description = space_.terms().op(op);
    if (description.inputs != 2 || description.outputs != 1 || description.on_weights_only ||
        description.weights_from < 2 || !description.classes.empty())
      continue;
    for (TypeId whole : wholes)
      for (TypeId part : parts)
        for (const auto& types : {std::pair{whole, part}, std::pair{part, whole}})
          wanted.push_back({op, {types.first, types.second}});
  }
  space_.kernels().prepare(wanted, team_.threads);
  for (const auto& [op, types] : wanted)
    if (const TermKernel* kernel = space_.kernels().find(op, 0, types))
      kernels.try_emplace({op, {types[0], types[1]}}, output_of(kernel));
  return kernels;
}

// Applications that depend on an activation, each once, and other outputs of the same ones.
void Enumerator::collect_subterms(Named named, std::vector<Named>& out) const {
  named = space_.canonical(named);
  const Representative& rep = space_.rep(named.rep);
  if (rep.is_weight || rep.application.op < 0 || std::find(out.begin(), out.end(), named) != out.end()) return;
  out.push_back(named);
  const NameMap map = space_.signature_of(named.rep).map_of(named.naming);
  Application other = rep.application;
  for (int output = 0; output < space_.terms().op(other.op).outputs; output++) {
    other.output = static_cast<uint8_t>(output);
    if (output == rep.application.output) continue;
    if (const auto known = parts_.find(other); known != parts_.end()) {
      const Named part = space_.canonical(space_.renamed(known->second, map));
      if (std::find(out.begin(), out.end(), part) == out.end()) out.push_back(part);
    }
  }
  for (size_t i = 0; i < rep.application.arity; i++)
    collect_subterms(space_.renamed(rep.application.args[i], map), out);
}

void Enumerator::learn_parts(const Level& level) {
  const auto learn = [&](const Application& application, Named equal) {
    if (application.op >= 0 && space_.terms().op(application.op).outputs > 1) parts_[application] = equal;
  };
  for (uint32_t rep : level.representatives)
    learn(space_.rep(rep).application, {rep, space_.signature_of(rep).identity});
  for (const EqualApplication& equal : level.equal) learn(equal.application, equal.equal);
}

// Phase one of a level, by all ranks.
Enumerator::Findings Enumerator::find_all(int activation_ops, int weight_ops) {
  const std::vector<Job> all = jobs(activation_ops, weight_ops);
  struct Chunk {
    const Job* job;
    size_t begin, end;
  };
  std::vector<Chunk> chunks;
  for (const Job& job : all) {
    const size_t count = groups_[job.groups[job.big]].reps.size();
    for (size_t begin = 0; begin < count; begin += kBigsAtOnce)
      chunks.push_back({&job, begin, std::min(count, begin + kBigsAtOnce)});
  }
  std::vector<uint32_t> wholes;
  for (const Group& group : groups_)
    if (!group.is_weight && group.activation_ops > 0 && group.activation_ops == activation_ops - 1 &&
        group.weight_ops == weight_ops)
      wholes.insert(wholes.end(), group.reps.begin(), group.reps.end());
  const SharedKernels shared = wholes.empty() ? SharedKernels() : shared_kernels(activation_ops, weight_ops);
  std::vector<Findings> findings(static_cast<size_t>(team_.threads));
  std::vector<Worker> workers;
  for (Findings& own : findings) workers.emplace_back(*this, own);
  team_.for_own(
      chunks.size(),
      [&](int thread, size_t item) {
        const Chunk& chunk = chunks[item];
        workers[static_cast<size_t>(thread)].run(*chunk.job, chunk.begin, chunk.end);
      },
      "enumerating");
  team_.for_own(shared.empty() ? 0 : wholes.size(), [&](int thread, size_t item) {
    for (int op : ops_)
      if (space_.terms().op(op).inputs == 2) workers[static_cast<size_t>(thread)].run_shared(op, wholes[item], shared);
  });
  Findings total;
  for (Findings& own : findings) {
    total.candidates += own.candidates;
    total.equal.insert(total.equal.end(), own.equal.begin(), own.equal.end());
    total.records.insert(total.records.end(), own.records.begin(), own.records.end());
    own = {};
  }
  total.equal = gathered(team_.ranks, std::move(total.equal));
  total.records = gathered(team_.ranks, std::move(total.records));
  size_t candidates = 0;
  for (size_t count : gathered(team_.ranks, std::vector<size_t>{total.candidates})) candidates += count;
  total.candidates = candidates;
  return total;
}

Level Enumerator::build(int activation_ops, int weight_ops) {
  Findings findings = find_all(activation_ops, weight_ops);
  Level level;
  level.candidates = findings.candidates;
  level.equal = std::move(findings.equal);
  add_classes(findings.records, level, activation_ops, weight_ops);
  // Symmetries of one application stay in the order of their permutations.
  std::stable_sort(level.equal.begin(), level.equal.end(),
                   [](const auto& a, const auto& b) { return a.application < b.application; });
  learn_parts(level);
  return level;
}

}  // namespace gopt::generator
