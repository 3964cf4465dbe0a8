#include "enumerate.h"

#include <algorithm>

namespace gopt::generator {
namespace {

class Enumerator {
 public:
  Enumerator(TermStore& terms, const EnumerationLimits& limits, const std::function<bool(TermId)>& take)
      : terms_(terms), limits_(limits), take_(take) {
    for (const AlphabetOp& op : terms.family().ops) ops_.push_back(terms.add_op(op));
  }

  void leaves() {
    auto& level = level_of(0, 0);
    for (size_t number = 0; number < terms_.family().classes.size(); number++)
      add(terms_.variable(static_cast<int>(number), 0), level);
    for (double value : terms_.family().constants) add(terms_.constant(value), level);
  }

  size_t build(int activation_ops, int weight_ops) {
    auto& level = level_of(activation_ops, weight_ops);
    for (int op : ops_) {
      std::vector<TermId> args(static_cast<size_t>(terms_.op(op).inputs));
      // What is left for the arguments once the application itself is counted.
      const bool is_weight = activation_ops == 0;
      choose(op, args, 0, is_weight ? 0 : activation_ops - 1, is_weight ? weight_ops - 1 : weight_ops, is_weight,
             level);
    }
    return level.size();
  }

 private:
  std::vector<TermId>& level_of(int activation_ops, int weight_ops) { return levels_[{activation_ops, weight_ops}]; }
  void add(TermId id, std::vector<TermId>& level) {
    if (take_(id)) level.push_back(id);
  }

  // Fills argument `at` and those after it from levels that use up what is left.
  void choose(int op, std::vector<TermId>& args, size_t at, int activation_ops, int weight_ops, bool weights_only,
              std::vector<TermId>& level) {
    if (at == args.size()) {
      if (activation_ops == 0 && weight_ops == 0) combine(op, args, weights_only, level);
      return;
    }
    const bool is_last = at + 1 == args.size();
    for (int a = is_last ? activation_ops : 0; a <= activation_ops; a++)
      for (int w = is_last ? weight_ops : 0; w <= weight_ops; w++) {
        const auto known = levels_.find({a, w});
        if (known == levels_.end() || &known->second == &level) continue;
        for (size_t i = 0; i < known->second.size(); i++) {
          if (weights_only && !terms_.term(known->second[i]).is_weight) continue;
          args[at] = known->second[i];
          choose(op, args, at + 1, activation_ops - a, weight_ops - w, weights_only, level);
        }
      }
  }

  bool has_variable(TermId id) const {
    const Term& term = terms_.term(id);
    return term.is_variable() || term.is_application();
  }

  // Every way in which variables of later arguments are those of earlier ones or new.
  void combine(int op, const std::vector<TermId>& args, bool weights_only, std::vector<TermId>& level) {
    const bool all_weights =
        std::all_of(args.begin(), args.end(), [&](TermId id) { return terms_.term(id).is_weight; });
    if (all_weights != weights_only || (terms_.op(op).on_weights_only && !all_weights)) return;
    // What constants alone give is a constant.
    if (std::none_of(args.begin(), args.end(), [&](TermId id) { return has_variable(id); })) return;
    const bool commutes = args.size() == 2 && op_info(terms_.op(op).kind).has(kCommutative);
    if (commutes && args[0] < args[1]) return;  // the other order comes too
    if (!terms_.apply(op, 0, args)) return;     // types do not depend on names
    std::vector<TermId> renamed = args;
    std::map<int, int> used;
    for (const auto& [variable_class, number] : terms_.variables_of(args[0]))
      used[variable_class] = std::max(used[variable_class], number + 1);
    rename_from(op, renamed, args, 1, used, level);
  }

  void rename_from(int op, std::vector<TermId>& renamed, const std::vector<TermId>& args, size_t at,
                   std::map<int, int> used, std::vector<TermId>& level) {
    if (at >= args.size()) {
      int variables = 0;
      for (const auto& [variable_class, count] : used) variables += count;
      if (variables > limits_.max_variables) return;
      for (int output = 0; output < terms_.op(op).outputs; output++)
        if (const auto made = terms_.apply(op, output, renamed)) add(*made, level);
      return;
    }
    const auto variables = terms_.variables_of(args[at]);
    name_variables(variables, 0, {}, used, [&](const Renaming& renaming, const std::map<int, int>& now_used) {
      renamed[at] = terms_.rename(args[at], renaming);
      rename_from(op, renamed, args, at + 1, now_used, level);
    });
  }

  // Each variable gets a number in use that no other variable of this argument has, or the next new one.
  void name_variables(const std::vector<std::pair<int, int>>& variables, size_t at, Renaming renaming,
                      std::map<int, int> used,
                      const std::function<void(const Renaming&, const std::map<int, int>&)>& done) {
    if (at == variables.size()) return done(renaming, used);
    const auto [variable_class, number] = variables[at];
    const int limit = terms_.family().classes[static_cast<size_t>(variable_class)].count;
    for (int name = 0; name <= used[variable_class] && name < limit; name++) {
      const bool is_taken = std::any_of(renaming.begin(), renaming.end(), [&, c = variable_class](const auto& entry) {
        return entry.first.first == c && entry.second == name;
      });
      if (is_taken) continue;
      Renaming longer = renaming;
      longer[{variable_class, number}] = name;
      auto now_used = used;
      now_used[variable_class] = std::max(now_used[variable_class], name + 1);
      name_variables(variables, at + 1, std::move(longer), std::move(now_used), done);
    }
  }

  TermStore& terms_;
  const EnumerationLimits limits_;
  const std::function<bool(TermId)>& take_;
  std::vector<int> ops_;
  std::map<std::pair<int, int>, std::vector<TermId>> levels_;
};

}  // namespace

void enumerate_terms(TermStore& terms, const EnumerationLimits& limits, const std::function<bool(TermId)>& take,
                     const std::function<void(int, int, size_t)>& level_done) {
  Enumerator enumerator(terms, limits, take);
  enumerator.leaves();
  for (int total = 1; total <= limits.max_ops + limits.max_weight_ops; total++)
    for (int activation_ops = 0; activation_ops <= std::min(total, limits.max_ops); activation_ops++) {
      const int weight_ops = total - activation_ops;
      // With as many applications as a left side may have, a right side gains little from weights.
      if (weight_ops > (activation_ops == limits.max_ops ? std::min(limits.max_weight_ops, 1) : limits.max_weight_ops))
        continue;
      level_done(activation_ops, weight_ops, enumerator.build(activation_ops, weight_ops));
    }
}

}  // namespace gopt::generator
