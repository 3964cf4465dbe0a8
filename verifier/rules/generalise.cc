// A rule that is proved for numbers is proved again with symbols in their place, one number at a time; what depends on
// it follows by guesses that small cases test before the proof.
#include <algorithm>
#include <numeric>
#include <set>

#include "conditions/rule_evaluator.h"
#include "gopt/verifier.h"
#include "rule_slots.h"
#include "samples/size_sampler.h"

namespace gopt::verifier {
namespace {

// The axis of a spatial attribute's entry, so that strides, dilations, pads at both ends and extents of a kernel that
// belong together are known.
size_t spatial_axis(const Slot& slot) {
  if (slot.attribute == "pads" && slot.entries % 2 == 0) return slot.position % (slot.entries / 2);
  if (slot.place == SlotPlace::Extent && slot.entries > 2) return slot.position - std::min<size_t>(slot.position, 2);
  return slot.position;
}

std::string letter_of(const Slot& slot) {
  if (slot.attribute == "extent" || slot.attribute == "kernel_shape") return "k";
  if (slot.attribute == "strides" || slot.attribute == "steps") return "s";
  return slot.attribute.substr(0, 1);
}

std::set<std::string> names_of(const RewriteRule& rule) {
  std::set<AtomId> symbols;
  for (const Slot& slot : slots_of(rule)) collect_symbols(slot.value, symbols);
  std::set<std::string> names;
  for (AtomId id : symbols) names.insert(atom(id).name);
  return names;
}

// The index divided by a number that divides all its coefficients.
std::optional<Index> divided(const Index& index, int64_t by) {
  if (index.constant() % by != 0) return std::nullopt;
  Index r(index.constant() / by);
  for (const Index::Term& term : index.terms()) {
    if (term.coefficient % by != 0) return std::nullopt;
    Index product(term.coefficient / by);
    for (AtomId id : term.atoms) product = product * Index::from_atom(id);
    r += product;
  }
  return r;
}

// Slots that may follow a leader, with how many times they change by what it changes.
struct Followers {
  std::vector<size_t> slots;
  int64_t factor = 1;
  int cost = 0, cost_of_staying = 0;  // forms of least cost are tried first
  bool is_multiple = false;           // of the leader: 2*c becomes g*c where 2 becomes g
};

class Generaliser {
 public:
  Generaliser(RewriteRule rule, const VerifyOptions& options) : rule_(std::move(rule)), options_(options) {}

  std::vector<RewriteRule> run() {
    generalise_integers();
    generalise_floats();
    return with_open_rank();
  }

 private:
  static std::string key_of(const Slot& slot) {
    return std::to_string(static_cast<int>(slot.place)) + "/" + std::to_string(slot.owner) + "/" + slot.attribute +
           "/" + std::to_string(slot.position);
  }

  // Leaders are numbers that the left side binds. Pads that are 0 lead only at windows, where they may be others.
  static bool may_lead(const RewriteRule& rule, const Slot& slot) {
    if (slot.place == SlotPlace::Right || !slot.value.is_constant()) return false;
    if (slot.place == SlotPlace::Left && slot.value.constant() <= 0)
      return slot.attribute == "pads" && rule.left.nodes()[slot.owner]->attributes.contains("strides");
    return true;
  }

  // Pads first: once they are free, kernels and dilations need not be linked to them.
  std::vector<size_t> leaders_in_order(const std::vector<Slot>& slots) const {
    std::vector<size_t> leaders;
    for (size_t i = 0; i < slots.size(); i++)
      if (may_lead(rule_, slots[i])) leaders.push_back(i);
    std::stable_partition(leaders.begin(), leaders.end(), [&](size_t i) { return slots[i].attribute == "pads"; });
    return leaders;
  }

  void generalise_integers() {
    std::set<std::string> tried;
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<Slot> slots = slots_of(rule_);
      for (size_t leader : leaders_in_order(slots)) {
        if (!tried.insert(key_of(slots[leader])).second) continue;
        changed = generalise_slot(slots, leader);
        if (changed) break;
      }
    }
  }

  // Subsets of the groups of followers, those that link least first. A form that needs no condition of its own is
  // taken before one that does.
  bool generalise_slot(const std::vector<Slot>& slots, size_t leader) {
    constexpr size_t kMaxForms = 40;
    const std::vector<Followers> groups = follower_groups(slots, leader);
    std::vector<size_t> subsets(size_t{1} << groups.size());
    std::iota(subsets.begin(), subsets.end(), size_t{0});
    std::stable_sort(subsets.begin(), subsets.end(),
                     [&](size_t x, size_t y) { return cost_of(groups, x) < cost_of(groups, y); });
    const std::string name = free_name(slots[leader]);
    const Substitution old_values{{symbol_atom(name), slots[leader].value}};
    std::set<std::string> seen;
    std::optional<RewriteRule> conditional;
    for (size_t subset : subsets) {
      if (seen.size() >= kMaxForms) break;
      const std::vector<Slot> replaced = linked(slots, leader, symbol(name), groups, subset);
      std::string text;
      for (const Slot& slot : replaced) text += key_of(slot) + "=" + to_string(slot.value) + ";";
      if (!seen.insert(text).second) continue;
      const auto candidate = with_slots(rule_, replaced);
      if (!candidate) continue;
      auto proved = prove_candidate(*candidate, old_values);
      if (!proved) continue;
      if (proved->condition == rule_.condition) {
        rule_ = std::move(*proved);
        return true;
      }
      // Under a condition of its own, a form in which the sides part is another rule.
      const bool keeps_twins = groups.empty() || groups[0].cost_of_staying == 0 || (subset & 1);
      if (!conditional && keeps_twins) conditional = std::move(proved);
    }
    if (!conditional) return false;
    rule_ = std::move(*conditional);
    return true;
  }

  std::string free_name(const Slot& slot) const {
    const std::set<std::string> names = names_of(rule_);
    std::string name = letter_of(slot);
    for (int n = 1; names.count(name); n++) name = letter_of(slot) + std::to_string(n);
    return name;
  }

  static int cost_of(const std::vector<Followers>& groups, size_t subset) {
    int cost = 0;
    for (size_t g = 0; g < groups.size(); g++) cost += ((subset >> g) & 1) ? groups[g].cost : groups[g].cost_of_staying;
    return cost;
  }

  static std::vector<Slot> linked(const std::vector<Slot>& slots, size_t leader, const Index& name,
                                  const std::vector<Followers>& groups, size_t subset) {
    std::vector<Slot> replaced{slots[leader]};
    replaced[0].value = name;
    std::set<size_t> done{leader};
    for (size_t g = 0; g < groups.size(); g++) {
      if (!((subset >> g) & 1)) continue;
      for (size_t follower : groups[g].slots) {
        if (!done.insert(follower).second) continue;
        replaced.push_back(slots[follower]);
        Index& value = replaced.back().value;
        if (groups[g].is_multiple) {
          value = *divided(value, slots[leader].value.constant()) * name;
        } else {
          value += Index(groups[g].factor) * (name - slots[leader].value);
        }
      }
    }
    return replaced;
  }

  // What belongs together moves together: the right side's slots for the same entry of the same attribute, with the
  // leader's value or another; the left side's; pads, kernels and extents that hang on it.
  static std::vector<Followers> follower_groups(const std::vector<Slot>& slots, size_t leader) {
    const Slot& lead = slots[leader];
    const int64_t value = lead.value.constant();
    Followers twins{{}, 1, 0, 3}, other_right{{}, 1, 1, 1}, twins_left{{}, 1, 2, 0}, pads_right{{}, 1, 2, 0};
    Followers pads_left{{}, 1, 3, 0}, kernels{{}, lead.attribute == "pads" ? 2 : 1, 2, 0}, extents{{}, 1, 2, 0};
    Followers multiples{{}, 1, 1, 2, true};
    const bool counts = (lead.attribute == "group" || lead.attribute == "blocksize") && value >= 2;
    const bool moves_windows = lead.attribute != "strides" && lead.attribute != "steps";
    const bool lead_is_kernel = is_kernel(lead);
    for (size_t i = 0; i < slots.size(); i++) {
      const Slot& slot = slots[i];
      if (i == leader) continue;
      const bool same_axis = spatial_axis(slot) == spatial_axis(lead), is_right = slot.place == SlotPlace::Right;
      if (slot.attribute == lead.attribute && slot.position == lead.position && slot.place != SlotPlace::Extent) {
        if (is_right) (slot.value == lead.value ? twins : other_right).slots.push_back(i);
        if (!is_right && slot.value == lead.value) twins_left.slots.push_back(i);
      } else if (counts && slot.place == SlotPlace::Extent && !slot.value.is_constant() && divided(slot.value, value)) {
        multiples.slots.push_back(i);
      } else if (slot.attribute == "pads" && same_axis && moves_windows) {
        (is_right ? pads_right : pads_left).slots.push_back(i);
      } else if (is_kernel(slot) && (lead.attribute == "pads" || lead_is_kernel) && same_axis &&
                 slot.value.is_constant()) {
        kernels.slots.push_back(i);
      } else if (slot.place == SlotPlace::Extent && slot.value.constant() >= value && value > 0) {
        extents.slots.push_back(i);
      }
    }
    std::vector<Followers> groups;
    for (Followers* group :
         {&twins, &other_right, &twins_left, &pads_right, &pads_left, &kernels, &extents, &multiples})
      if (!group->slots.empty()) groups.push_back(std::move(*group));
    return groups;
  }
  static bool is_kernel(const Slot& slot) {
    return slot.attribute == "kernel_shape" || (slot.place == SlotPlace::Extent && slot.entries > 2);
  }

  // The candidate if it is proved, holds at the old value wherever the rule does, and at other values too.
  std::optional<RewriteRule> prove_candidate(const RewriteRule& candidate, const Substitution& old_values) const {
    if (!holds_at_small_sizes(candidate, old_values)) return std::nullopt;
    RewriteRule proved = candidate;
    const Verification v = prove_rule(proved, options_);
    if (v.verdict != Verdict::Proved || !includes_rule(v.condition, old_values)) return std::nullopt;
    return proved;
  }
  bool accept(const Result<RewriteRule>& candidate) {
    if (!candidate) return false;
    auto proved = prove_candidate(*candidate, {});
    if (proved) rule_ = std::move(*proved);
    return proved.has_value();
  }

  static bool differs_from(const Environment& sizes, const Substitution& old_values) {
    return std::all_of(old_values.begin(), old_values.end(),
                       [&](const auto& old) { return Index(sizes.at(old.first)) != old.second; });
  }

  // Wherever both sides are defined they agree, and that is so at some full sizes with other values than the old.
  bool holds_at_small_sizes(const RewriteRule& candidate, const Substitution& old_values) const {
    constexpr int kDraws = 60, kWanted = 3;
    const auto left = meaning_of(candidate.left), right = meaning_of(candidate.right);
    if (!left || !right) return false;
    // Where the right side needs more, it is drawn so that it has it.
    Cond both = left_condition(candidate, *left);
    for (const Requirement& r : right->requirements) both = both && r.cond;
    for (size_t o = 0; o < left->outputs.size(); o++)
      for (size_t axis = 0; axis < left->outputs[o].shape.size(); axis++)
        both = both && equal(left->outputs[o].shape[axis], right->outputs[o].shape[axis]);
    SizeSampler sampler(rule_symbols(candidate), extent_symbols(candidate), both);
    RuleEvaluator evaluator(candidate, *left, *right);
    std::mt19937_64 random(options_.seed);
    int others = 0;
    for (int draw = 0; draw < kDraws; draw++) {
      Environment sizes;
      if (!sampler.draw(random, sizes)) return false;
      evaluator.set_sizes(sizes);
      if (!evaluator.is_left_defined() || !evaluator.is_right_defined()) continue;
      evaluator.draw_inputs(random, draw % evaluator.rounds());
      if (!evaluator.agree(random, 4)) return false;
      others += evaluator.has_elements() && differs_from(sizes, old_values);
    }
    return others >= kWanted;
  }

  // At the old values the condition asks for no more than the rule's own, by sampling.
  bool includes_rule(const Cond& condition, const Substitution& old_values) const {
    constexpr int kDraws = 200;
    const Cond at_old = substitute(condition, old_values);
    const auto left = meaning_of(rule_.left);
    const SizeSampler sampler(rule_symbols(rule_), extent_symbols(rule_), left_condition(rule_, *left));
    std::mt19937_64 random(options_.seed);
    for (int draw = 0; draw < kDraws; draw++) {
      Environment sizes;
      if (!sampler.draw(random, sizes)) break;
      if (evaluate(at_old, sizes) != true) return false;
    }
    return true;
  }

  void generalise_floats() {
    std::set<double> numbers;
    std::vector<Tensor> scalars;
    for (const NodePtr& node : rule_.left.nodes()) {
      if (node->is(OpKind::Constant) && node->tensor.dims().empty() && is_floating(node->tensor.type()))
        scalars.push_back(node->tensor);
      for (const auto& [name, value] : node->attributes)
        if (const auto* number = std::get_if<double>(&value)) numbers.insert(*number);
    }
    for (double number : numbers)
      if (!accept(with_float_variable(rule_, number, true))) accept(with_float_variable(rule_, number, false));
    for (const Tensor& scalar : scalars) accept(with_scalar_variable(rule_, scalar));
  }

  // Forms under leading axes, one for each set of variables that may have them: a product of batches and a product of
  // a batch with one matrix are two.
  std::vector<RewriteRule> with_open_rank() const {
    constexpr size_t kMaxVariables = 5, kMaxForms = 3;
    const size_t count = rule_.variables.size();
    const bool is_open =
        std::any_of(rule_.variables.begin(), rule_.variables.end(), [](const RuleVariable& v) { return v.has_prefix; });
    std::vector<RewriteRule> forms;
    if (count > kMaxVariables || is_open) return {rule_};
    std::vector<size_t> sets;
    for (size_t set = 1; set < (size_t{1} << count); set++) sets.push_back(set);
    std::stable_sort(sets.begin(), sets.end(), [&](size_t a, size_t b) { return order_of(a) < order_of(b); });
    for (size_t set : sets) {
      if (forms.size() == kMaxForms) break;
      RewriteRule candidate = rule_;
      for (size_t v = 0; v < count; v++) candidate.variables[v].has_prefix = (set >> v) & 1;
      const auto with_one = with_prefix(candidate, {symbol("prefix")});
      if (!with_one || !check_rule(*with_one) || !holds_at_small_sizes(*with_one, {})) continue;
      const Verification v = prove_rule(candidate, options_);
      if (v.verdict != Verdict::Proved || !includes_rule(v.condition, {})) continue;
      if (!forms.empty()) candidate.name += "-" + std::to_string(forms.size() + 1);
      forms.push_back(std::move(candidate));
    }
    return forms.empty() ? std::vector<RewriteRule>{rule_} : forms;
  }
  // All variables first, then few before many, activations before weights.
  size_t order_of(size_t set) const {
    size_t order = 0, count = 0;
    for (size_t v = 0; v < rule_.variables.size(); v++) {
      if (!((set >> v) & 1)) continue;
      count++;
      order += rule_.variables[v].kind == VariableKind::Activation ? 2 : 3;
    }
    return count == rule_.variables.size() ? 0 : order;
  }

  RewriteRule rule_;
  VerifyOptions options_;
};

}  // namespace

}  // namespace gopt::verifier

namespace gopt {

using namespace verifier;

std::vector<RewriteRule> generalise(const RewriteRule& rule, const VerifyOptions& options) {
  RewriteRule proved = rule;
  if (prove_rule(proved, options).verdict != Verdict::Proved || proved.is_partial() || proved.scheme) return {proved};
  return Generaliser(std::move(proved), options).run();
}

}  // namespace gopt
