#include "general_pair.h"

#include <algorithm>

#include "general_types.h"
#include "orientation.h"
#include "world.h"

namespace gopt::generator {
namespace {

constexpr size_t kMaxKeptValues = 20000;

bool is_within(const TermStore& terms, TermId part, TermId whole) {
  if (part == whole) return true;
  const auto& args = terms.term(whole).args;
  return std::any_of(args.begin(), args.end(), [&](TermId arg) { return is_within(terms, part, arg); });
}

void collect_applications(const TermStore& terms, TermId id, std::vector<TermId>& out) {
  if (!terms.term(id).is_application()) return;
  out.push_back(id);
  for (TermId arg : terms.term(id).args) collect_applications(terms, arg, out);
}

TermId replaced(TermStore& terms, TermId id, const std::map<TermId, TermId>& replacements) {
  if (const auto by = replacements.find(id); by != replacements.end()) return by->second;
  const Term term = terms.term(id);
  if (!term.is_application()) return id;
  std::vector<TermId> args;
  for (TermId arg : term.args) args.push_back(replaced(terms, arg, replacements));
  const auto made = terms.apply(term.op, term.output, args);
  return made ? *made : id;
}

}  // namespace

bool has_prefix(const TermStore& terms, const std::vector<TermId>& roots) {
  const auto variables = variables_of(terms, roots);
  return std::any_of(variables.begin(), variables.end(), [&](const auto& name) {
    return terms.family().classes[static_cast<size_t>(name.first)].has_prefix;
  });
}

TermPair renamed(TermStore& terms, const TermPair& pair) {
  Renaming renaming;
  std::map<int, int> used;
  for (const auto& name : variables_of(terms, pair.left)) renaming[name] = used[name.first]++;
  TermPair result;
  for (TermId root : pair.left) result.left.push_back(terms.rename(root, renaming));
  for (TermId root : pair.right) result.right.push_back(terms.rename(root, renaming));
  return result;
}

TermPair PairGeneralizer::generalised(TermPair pair) {
  while (auto general = with_part_as_variable(pair)) pair = *std::move(general);
  if (weight_ops(terms_, pair.left) + weight_ops(terms_, pair.right) == 0) pair = with_activations(pair);
  const auto general = with_general_types(terms_, pair);
  return general && have_equal_values(general->left[0], general->right[0]) ? *general : pair;
}

// Where nothing is folded, weights may as well be activations.
TermPair PairGeneralizer::with_activations(const TermPair& pair) {
  std::map<TermId, TermId> replacements;
  std::map<int, int> used;
  for (const auto* side : {&pair.left, &pair.right})
    for (const auto& [variable_class, number] : variables_of(terms_, *side))
      used[variable_class] = std::max(used[variable_class], number + 1);
  for (const auto& [variable_class, number] : variables_of(terms_, pair.left)) {
    const VariableClass description = terms_.family().classes[static_cast<size_t>(variable_class)];
    if (description.kind != VariableKind::Weight) continue;
    const TermId variable = terms_.variable(variable_class, number);
    const int general = terms_.class_for(terms_.type(variable), VariableKind::Activation, description.has_prefix);
    replacements[variable] = terms_.variable(general, used[general]++);
  }
  TermPair result;
  for (TermId root : pair.left) result.left.push_back(replaced(terms_, root, replacements));
  for (TermId root : pair.right) result.right.push_back(replaced(terms_, root, replacements));
  return result;
}

// The pair with a subterm of both sides replaced by a variable, where it still holds.
std::optional<TermPair> PairGeneralizer::with_part_as_variable(const TermPair& pair) {
  std::vector<TermId> parts;
  collect_applications(terms_, pair.left[0], parts);
  for (TermId part : parts) {
    if (part == pair.left[0] || !is_within(terms_, part, pair.right[0])) continue;
    const Term term = terms_.term(part);
    const int variable_class =
        terms_.class_for(TensorType(terms_.type(part)),
                         term.is_weight ? VariableKind::Weight : VariableKind::Activation, has_prefix(terms_, {part}));
    int number = 0;
    for (const auto& name : variables_of(terms_, pair.left))
      if (name.first == variable_class) number = std::max(number, name.second + 1);
    const std::map<TermId, TermId> replacements{{part, terms_.variable(variable_class, number)}};
    const TermPair general{{replaced(terms_, pair.left[0], replacements)},
                           {replaced(terms_, pair.right[0], replacements)}};
    if (have_equal_values(general.left[0], general.right[0])) return general;
  }
  return std::nullopt;
}

const Values* PairGeneralizer::value(TermId id) {
  const auto [entry, is_new] = values_.try_emplace(static_cast<uint32_t>(id));
  if (!is_new) return entry->second ? &*entry->second : nullptr;
  const Term term = terms_.term(id);
  std::optional<Values> made;
  if (!term.is_application()) {
    made.emplace();
    TapeCache tapes;
    for (int assignment : {0, 1}) {  // a world each time, since the family's sizes grow
      World world(terms_, sizes_of(terms_.family(), assignment), {}, mix(seed_ + static_cast<uint64_t>(assignment)),
                  tapes);
      const auto own = world.value(id, false);
      if (!own) return nullptr;  // an extent that is no size here
      made->insert(made->end(), own->values.begin(), own->values.end());
    }
  } else {
    std::vector<TypeId> types;
    std::vector<const Scalar*> inputs;
    for (TermId arg : term.args) {
      const Values* input = value(arg);
      if (!input) return nullptr;
      inputs.push_back(input->data());
      types.push_back(terms_.term(arg).type);
    }
    if (const TermKernel* kernel = kernels_.find(term.op, term.output, types)) {
      made.emplace(kernel->tapes[0].size() + kernel->tapes[1].size());
      if (!kernel->run(inputs.data(), made->data(), registers_)) made.reset();
    }
  }
  auto& kept = values_[static_cast<uint32_t>(id)];
  kept = std::move(made);
  return kept ? &*kept : nullptr;
}

bool PairGeneralizer::have_equal_values(TermId left, TermId right) {
  if (values_.size() > kMaxKeptValues) values_.clear();
  const Values *a = value(left), *b = value(right);
  return a && b && a->size() == b->size() &&
         std::equal(a->begin(), a->end(), b->begin(),
                    [](const Scalar& x, const Scalar& y) { return x.residue == y.residue; });
}

}  // namespace gopt::generator
