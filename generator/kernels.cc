#include "kernels.h"

#include <set>

#include "gopt/parallel.h"

namespace gopt::generator {

bool TermKernel::run(const Scalar* const* inputs, Scalar* output, Values& registers) const {
  if (!tapes[0].run(inputs, output, registers)) return false;
  std::array<const Scalar*, 8> second{};
  for (size_t i = 0; i < first_sizes.size(); i++) second[i] = inputs[i] + first_sizes[i];
  return tapes[1].run(second.data(), output + tapes[0].size(), registers);
}

std::array<size_t, 2> Kernels::sizes(TypeId type) {
  const auto number = static_cast<size_t>(type);
  if (sizes_.size() <= number) sizes_.resize(number + 1);
  auto& known = sizes_[number];
  if (!known) {
    known.emplace();
    for (int assignment : {0, 1}) {
      const TensorType own = substituted(terms_.type(type), sizes_of(terms_.family(), assignment));
      (*known)[static_cast<size_t>(assignment)] = static_cast<size_t>(element_count(own.static_shape()));
    }
  }
  return *known;
}

Kernels::Tapes Kernels::tapes_of(int op, int output, const std::vector<TypeId>& inputs) const {
  Tapes tapes(std::in_place);
  const AlphabetOp& description = terms_.op(op);
  for (size_t assignment : {0, 1}) {
    const Substitution sizes = sizes_of(terms_.family(), static_cast<int>(assignment));
    std::vector<TensorType> own;
    for (TypeId input : inputs) own.push_back(substituted(terms_.type(input), sizes));
    auto tape = Tape::make(substituted(description, sizes), own, output, terms_.family().has_exponentials);
    if (!tape.ok()) return std::nullopt;
    (*tapes)[assignment] = *std::move(tape);
  }
  return tapes;
}

Kernels::Prepared Kernels::prepared(const Wanted& wanted) const {
  const auto& [op, inputs] = wanted;
  Prepared made{terms_.inferred_types(op, inputs), {}};
  if (!made.types) return made;
  for (int output = 0; output < terms_.op(op).outputs; output++) made.tapes.push_back(tapes_of(op, output, inputs));
  return made;
}

void Kernels::prepare(const std::vector<Wanted>& wanted, int threads) {
  prepared_.clear();
  std::vector<std::pair<const Wanted, Prepared>*> open;
  for (const Wanted& own : wanted) {
    if (kernels_.count({{own.first, 0}, own.second}) > 0) continue;
    const auto [entry, is_new] = prepared_.try_emplace(own);
    if (is_new) open.push_back(&*entry);
  }
  parallel_for(threads, open.size(), [&](int, size_t i) { open[i]->second = prepared(open[i]->first); });
}

const TermKernel* Kernels::find(int op, int output, const std::vector<TypeId>& inputs) {
  const auto [entry, is_new] = kernels_.try_emplace({{op, output}, inputs});
  if (!is_new) return entry->second.get();
  const auto made = prepared_.find({op, inputs});
  const bool is_made = made != prepared_.end();
  const auto types = terms_.infer(op, inputs, is_made ? &made->second.types : nullptr);
  if (!types) return nullptr;
  Tapes tapes = is_made ? std::move(made->second.tapes[static_cast<size_t>(output)]) : tapes_of(op, output, inputs);
  if (!tapes) return nullptr;
  auto kernel = std::make_unique<TermKernel>();
  kernel->type = (*types)[static_cast<size_t>(output)];
  for (TypeId input : inputs) kernel->first_sizes.push_back(first_size(input));
  for (size_t assignment : {0, 1}) kernel->tapes[assignment] = std::move((*tapes)[assignment]);
  entry->second = std::move(kernel);
  return entry->second.get();
}

std::array<double, 2> Kernels::cost(const std::vector<TermId>& roots) {
  std::array<double, 2> total{};
  std::set<std::pair<int, std::vector<TermId>>> counted;
  std::vector<TermId> open = roots;
  while (!open.empty()) {
    const Term term = terms_.term(open.back());
    open.pop_back();
    // Outputs of one application share its cost.
    if (!term.is_application() || term.is_weight || !counted.insert({term.op, term.args}).second) continue;
    std::vector<TypeId> types;
    for (TermId arg : term.args) types.push_back(terms_.term(arg).type);
    for (size_t assignment : {0, 1}) {
      total[assignment] += kApplicationCost;
      for (TypeId type : types) total[assignment] += static_cast<double>(sizes(type)[assignment]);
      for (int output = 0; output < terms_.op(term.op).outputs; output++)
        if (const TermKernel* kernel = find(term.op, output, types)) {
          const Tape& tape = kernel->tapes[assignment];
          total[assignment] += tape.operations() + static_cast<double>(tape.size());
        }
    }
    open.insert(open.end(), term.args.begin(), term.args.end());
  }
  return total;
}

}  // namespace gopt::generator
