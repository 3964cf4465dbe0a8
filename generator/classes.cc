#include "classes.h"

#include <fmt/core.h>

#include <algorithm>

namespace gopt::generator {
namespace {

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

TermId replaced(TermStore& terms, TermId id, TermId part, TermId by) {
  if (id == part) return by;
  const Term term = terms.term(id);
  if (!term.is_application()) return id;
  std::vector<TermId> args;
  for (TermId arg : term.args) args.push_back(replaced(terms, arg, part, by));
  const auto made = terms.apply(term.op, term.output, args);
  return made ? *made : id;
}

// The same for pairs that differ by the names of variables.
std::string pair_key(TermStore& terms, TermKeys& keys, const TermPair& pair) {
  Renaming renaming;
  std::map<int, int> used;
  for (const auto& name : terms.variables_of(pair.left)) renaming[name] = used[name.first]++;
  const std::string left = keys.key(terms.rename(pair.left, renaming));
  return left + " = " + keys.key(terms.rename(pair.right, renaming));
}

bool binds_all(const TermStore& terms, const TermPair& pair) {
  const auto left = terms.variables_of(pair.left), right = terms.variables_of(pair.right);
  return std::all_of(right.begin(), right.end(),
                     [&](const auto& name) { return std::find(left.begin(), left.end(), name) != left.end(); });
}

}  // namespace

Classes::Classes(TermStore& terms, uint64_t seed, std::vector<KeptRule>& rules, GeneratorStats& stats,
                 std::function<bool(const TermPair&)> offer)
    : terms_(terms),
      first_(terms, sizes_of(terms.family(), 0), {}, mix(seed)),
      second_(terms, sizes_of(terms.family(), 1), {}, mix(seed + 1)),
      keys_(terms, [this](TermId id) { return weight_name(id); }),
      rules_(rules),
      stats_(stats),
      offer_(std::move(offer)) {}

std::optional<Fingerprint> Classes::fingerprint(TermId id, bool keep) {
  Fingerprint result;
  for (World* world : {&first_, &second_}) {
    const auto value = world->value(id, keep);
    if (!value) return std::nullopt;
    world->add_to(result, *value);
  }
  return result;
}

// Every exchange of variables within their classes, the identity first.
std::vector<Renaming> Classes::permutations_of(TermId id) const {
  std::map<int, std::vector<int>> numbers;
  for (const auto& [variable_class, number] : terms_.variables_of(id)) numbers[variable_class].push_back(number);
  std::vector<Renaming> renamings{{}};
  for (auto& [variable_class, own] : numbers) {
    std::sort(own.begin(), own.end());
    std::vector<int> images = own;
    std::vector<Renaming> longer;
    do {
      for (Renaming renaming : renamings) {
        for (size_t i = 0; i < own.size(); i++) renaming[{variable_class, own[i]}] = images[i];
        longer.push_back(std::move(renaming));
      }
    } while (std::next_permutation(images.begin(), images.end()));
    renamings = std::move(longer);
  }
  return renamings;
}

bool Classes::take(TermId id) {
  if (!seen_.insert(terms_.canonical_key(id)).second) return false;
  stats_.candidates++;
  std::optional<Fingerprint> identity;
  for (const Renaming& renaming : permutations_of(id)) {
    const TermId renamed = terms_.rename(id, renaming);
    const auto own = fingerprint(renamed, false);
    if (!own) return false;
    if (!identity) identity = own;
    if (const auto known = class_of_.find(*own); known != class_of_.end()) {
      stats_.equal_pairs++;
      join(known->second, renamed);
      return false;
    }
  }
  class_of_[*identity] = classes_.size();
  classes_.push_back({id, {first_.cost(id), second_.cost(id)}, {keys_.key(id)}});
  stats_.classes++;
  join_with_itself(classes_.size() - 1, id, *identity);
  return true;
}

std::string Classes::weight_name(TermId id) {
  const auto value = fingerprint(id, true);
  return value ? fmt::format("w{:x}{:x}", value->high, value->low) : terms_.to_string(id);
}

// Pairs of equal cost are kept both ways where tensors are moved or summed over, since what becomes cheap next to them
// differs; elementwise ones only towards the class's representative.
bool Classes::may_go_both_ways(const TermPair& pair) const {
  std::vector<TermId> parts;
  collect_applications(terms_, pair.left, parts);
  collect_applications(terms_, pair.right, parts);
  return std::any_of(parts.begin(), parts.end(), [&](TermId part) {
    const Term& term = terms_.term(part);
    return !term.is_weight && !op_info(terms_.op(term.op).kind).has(kElementwise);
  });
}

void Classes::join(size_t number, TermId id) {
  stats_.after_renaming++;
  Class& found = classes_[number];
  const double cost[2] = {first_.cost(id), second_.cost(id)};
  const bool is_cheaper = cost[0] < found.cost[0] && cost[1] < found.cost[1];
  const bool is_dearer = cost[0] > found.cost[0] && cost[1] > found.cost[1];
  const bool is_equal = cost[0] == found.cost[0] && cost[1] == found.cost[1];
  const TermPair forward{id, found.best}, backward{found.best, id};
  if (!is_cheaper) add_pair(forward, number, true);
  if (is_cheaper || (!is_dearer && (!is_equal || may_go_both_ways(forward)))) add_pair(backward, number, false);
  if (is_cheaper) {
    found.best = id;
    std::copy(cost, cost + 2, found.cost);
  }
}

// A term that stays the same when its variables are exchanged, other than by commuting: (x+y)+z = (z+y)+x.
void Classes::join_with_itself(size_t own, TermId id, const Fingerprint& identity) {
  const auto permutations = permutations_of(id);
  for (size_t i = 1; i < permutations.size(); i++) {
    const TermId renamed = terms_.rename(id, permutations[i]);
    if (keys_.key(renamed) == keys_.key(id) || fingerprint(renamed, false) != identity) continue;
    stats_.equal_pairs++;
    stats_.after_renaming++;
    add_pair({id, renamed}, own, false);
  }
}

// The pair with a subterm of both sides replaced by a variable, where it still holds.
std::optional<TermPair> Classes::generalised(const TermPair& pair) {
  std::vector<TermId> parts;
  collect_applications(terms_, pair.left, parts);
  const auto& classes = terms_.family().classes;
  for (TermId part : parts) {
    if (part == pair.left || !is_within(terms_, part, pair.right)) continue;
    for (size_t number = 0; number < classes.size(); number++) {
      const bool is_weight = classes[number].kind == VariableKind::Weight;
      if (!(classes[number].type == terms_.type(part)) || is_weight != terms_.term(part).is_weight) continue;
      const TermId variable = terms_.variable(static_cast<int>(number), classes[number].count);
      const TermPair general{replaced(terms_, pair.left, part, variable), replaced(terms_, pair.right, part, variable)};
      const auto left = fingerprint(general.left, false);
      if (left && left == fingerprint(general.right, false)) return general;
    }
  }
  return std::nullopt;
}

void Classes::add_pair(const TermPair& pair, size_t own_class, bool to_best) {
  // A model's weights are folded, so that a left side which applies something to weights would find nothing.
  const Term from = terms_.term(pair.left);
  if (!from.is_application() || from.is_weight || from.weight_ops > 0 || !binds_all(terms_, pair)) return;
  if (const auto general = generalised(pair)) return add_pair(*general, own_class, false);
  if (!offered_.insert(pair_key(terms_, keys_, pair)).second) return;
  stats_.after_subgraph++;
  const Term &left = terms_.term(pair.left), &right = terms_.term(pair.right);
  const int ops = left.activation_ops + right.activation_ops;
  const auto variables = static_cast<int>(terms_.variables_of(pair.left).size());
  pending_.push_back({pair, own_class, to_best, 8 * ops + left.weight_ops + right.weight_ops - 2 * variables});
}

void Classes::decide_pairs() {
  std::stable_sort(pending_.begin(), pending_.end(),
                   [](const PendingPair& a, const PendingPair& b) { return a.generality < b.generality; });
  for (const PendingPair& pending : pending_) decide(pending);
  pending_.clear();
}

void Classes::decide(const PendingPair& pending) {
  const TermPair& pair = pending.pair;
  KeySet& members = classes_[pending.own_class].members;
  const bool follows = pending.to_best ? leads_to(terms_, keys_, pair.left, members, rules_)
                                       : leads_to(terms_, keys_, pair.left, {keys_.key(pair.right)}, rules_);
  bool is_kept = false;
  if (!follows) {
    stats_.after_derivable++;
    is_kept = offer_(pair);
    if (is_kept) rules_.push_back({&terms_, pair.left, pair.right});
  }
  if (pending.to_best && (follows || is_kept)) members.insert(keys_.key(pair.left));
}

}  // namespace gopt::generator
