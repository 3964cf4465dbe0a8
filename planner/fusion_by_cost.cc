// Which nodes are computed inside other kernels, where the rules for it (fusion.cc, library.cc) may be wrong: each such
// decision is turned around, the kernels that it concerns are built alone, and what takes less time is kept. A decision
// looks at one node while the others are as they are (coordinate descent), users first, until nothing changes.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "drafts.h"
#include "gopt/kernel_spec.h"

namespace gopt::planner {
namespace {

constexpr int kPasses = 3;
// Of times that are estimates: their median error.
constexpr double kErrorOfEstimates = 0.3;

using Nodes = std::set<uint32_t>;

// The generated kernels, by the nodes that they end in, which compute what reads the node's results.
void add_kernels_of_users(const Cover& cover, uint32_t id, Nodes& ends) {
  std::vector<uint32_t> left{id};
  Nodes inside;  // each is walked once, however many ways lead to it
  while (!left.empty()) {
    const uint32_t node = left.back();
    left.pop_back();
    for (size_t o = 0; o < cover.node(node).outputs.size(); o++)
      for (const Use& use : cover.values[cover.nodes[node].first_value + o].uses) {
        if (cover.nodes[use.node].role == Role::Generated) ends.insert(use.node);
        if (cover.nodes[use.node].role == Role::Inlined && inside.insert(use.node).second) left.push_back(use.node);
      }
  }
}

// The only one that reads what the last node of a prologue makes.
uint32_t library_behind(const Cover& cover, uint32_t last) {
  return cover.values[cover.nodes[last].first_value].uses[0].node;
}

// A cover as it is where one generated node is stored or not, while this lives.
// Or, with a library kernel behind it, that takes it as its prologue's end.
class Turned {
 public:
  Turned(Cover& cover, const FusionChoice& choice) : cover_(cover), id_(choice.node) {
    if (choice.way == FusionWay::Before) {
      library_ = library_behind(cover, id_);
      for (const uint32_t node : cover.prologues.at(*library_).nodes) roles_[node] = cover.nodes[node].role;
      take_prologue(cover, *library_);
    } else {
      roles_[id_] = cover.nodes[id_].role;
      turn(cover, choice);
    }
  }
  Turned(const Turned&) = delete;
  Turned& operator=(const Turned&) = delete;
  ~Turned() {
    for (const auto& [node, role] : roles_) cover_.nodes[node].role = role;
    if (library_) cover_.nodes[*library_].has_prologue = false;
  }
  std::vector<uint32_t> kernels() const {
    if (library_) return {*library_};
    Nodes ends;
    if (cover_.nodes[id_].role == Role::Generated) ends.insert(id_);
    add_kernels_of_users(cover_, id_, ends);
    return {ends.begin(), ends.end()};
  }
  // For good.
  static void turn(Cover& cover, const FusionChoice& choice) {
    if (choice.way == FusionWay::Before)
      take_prologue(cover, library_behind(cover, choice.node));
    else
      cover.nodes[choice.node].role = choice.way == FusionWay::Inside ? Role::Inlined : Role::Generated;
  }

 private:
  Cover& cover_;
  const uint32_t id_;
  std::optional<uint32_t> library_;
  std::map<uint32_t, Role> roles_;
};

// Whether a prologue can be taken as the cover is: what it would read is stored, and its nodes are a kernel of their
// own.
bool may_be_taken(const Cover& cover, const FusionChoice& choice) {
  if (choice.way != FusionWay::Before) return true;
  const uint32_t library = library_behind(cover, choice.node);
  const PrologueCover& own = cover.prologues.at(library);
  const auto has_role = [&](uint32_t node, std::initializer_list<Role> roles) {
    return std::ranges::count(roles, cover.nodes[node].role) > 0;
  };
  const auto is_stored = [&](const Value& value) {
    return !has_role(cover.id_of(value.node.get()), {Role::Inlined, Role::Covered});
  };
  const bool is_kernel = has_role(own.nodes.back(), {Role::Generated}) &&
                         std::all_of(own.nodes.begin(), own.nodes.end() - 1,
                                     [&](uint32_t node) { return has_role(node, {Role::Inlined}); });
  return !cover.nodes[library].has_prologue && is_kernel && is_stored(own.source) &&
         std::ranges::all_of(own.operands, is_stored);
}

// A library kernel without its steps from some node on, while this lives.
class Shortened {
 public:
  Shortened(Cover& cover, uint32_t step) : own_(cover.nodes[cover.nodes[step].owner]), all_(own_.epilogues) {
    const auto is_step = [&](const EpilogueStep& e) { return e.node == step; };
    own_.epilogues.erase(std::find_if(own_.epilogues.begin(), own_.epilogues.end(), is_step), own_.epilogues.end());
  }
  Shortened(const Shortened&) = delete;
  Shortened& operator=(const Shortened&) = delete;
  ~Shortened() { own_.epilogues = std::move(all_); }
  size_t steps() const { return own_.epilogues.size(); }

 private:
  NodeCover& own_;
  std::vector<EpilogueStep> all_;
};

struct Price {
  double ms = 0;
  bool is_measured = true;
};

class FusionByCost {
 public:
  FusionByCost(const Cover& described, Drafted& drafted, KernelCosts& costs)
      : described_(described), drafted_(drafted), costs_(costs) {}

  void run() {
    read_prices();
    take_steps_apart();
    const std::vector<FusionChoice> open = drafted_.cover.open;
    Ways ways = drafted_.cover.ways;
    bool changes = true;
    for (int pass = 0; pass < kPasses && changes; pass++) {
      changes = false;
      for (const FusionChoice& choice : open)
        if (choice.way != FusionWay::Apart && !ways.contains(choice.node) && may_be_taken(drafted_.cover, choice) &&
            pays(choice)) {
          ways[choice.node] = choice.way;
          changes = true;
        }
    }
    if (ways.size() > drafted_.cover.ways.size()) keep_cheaper(draft_with(ways));
    for (auto& [node, priced] : choices_) {
      priced.is_taken = drafted_.cover.ways.contains(node);
      drafted_.choices.push_back(priced);
    }
  }

 private:
  using Ways = std::map<uint32_t, FusionWay>;

  void read_prices() {
    prices_.clear();
    for (const Kernel& kernel : drafted_.plan.kernels)
      if (!kernel.nodes.empty()) add_price(drafted_.plan, kernel, prices_[end_of(kernel)]);
  }
  uint32_t end_of(const Kernel& kernel) const {
    const bool is_generated = kernel.kind == KernelKind::Generated;
    return drafted_.cover.id_of((is_generated ? kernel.outputs[0].node : kernel.nodes[0]).get());
  }
  void add_price(const Plan& plan, const Kernel& kernel, Price& price) {
    price.ms += kernel.estimated_ms;
    price.is_measured = price.is_measured && costs_.is_measured(plan, kernel);
  }

  std::map<uint32_t, Price> price_of(Plan plan) {
    std::map<uint32_t, Price> prices;
    for (Kernel& kernel : plan.kernels) {
      if (kernel.nodes.empty()) continue;
      choose_implementation(plan, kernel, costs_);
      add_price(plan, kernel, prices[end_of(kernel)]);
    }
    return prices;
  }
  static Price sum(const std::map<uint32_t, Price>& prices) {
    Price all;
    for (const auto& [end, price] : prices) {
      all.ms += price.ms;
      all.is_measured = all.is_measured && price.is_measured;
    }
    return all;
  }

  // By more than the times are uncertain by.
  bool is_gain(double before_ms, const Price& after) const {
    const double share = after.is_measured ? costs_.uncertainty() : std::max(costs_.uncertainty(), kErrorOfEstimates);
    return before_ms - after.ms > share * std::min(before_ms, after.ms) && before_ms > after.ms;
  }

  // Whether a generated node is better stored, or better not; then the cover is left so.
  bool pays(const FusionChoice& choice) {
    std::map<uint32_t, Price> after;
    Price before;
    {
      const Turned turned(drafted_.cover, choice);
      const std::vector<uint32_t> kernels = turned.kernels();
      for (uint32_t end : kernels)
        if (const auto known = prices_.find(end); known != prices_.end()) before.ms += known->second.ms;
      if (choice.way != FusionWay::Stored) before.ms += prices_[choice.node].ms;
      Plan plan = build_kernels_of(drafted_.cover, kernels);
      if (!has_all_prologues(plan)) return false;
      after = price_of(std::move(plan));
    }
    const Price all = sum(after);
    const bool is_known = all.is_measured || !choice.is_computed_again;
    note({choice, before.ms, is_known ? all.ms : std::numeric_limits<double>::infinity()});
    if (!is_known || !is_gain(before.ms, all)) return false;
    Turned::turn(drafted_.cover, choice);
    prices_.erase(choice.node);
    for (auto& [end, price] : after) prices_[end] = price;
    return true;
  }

  // Steps of library kernels. Equal ones are taken apart together, and the graph is drafted anew: what follows is then
  // fused otherwise, too.
  void take_steps_apart() {
    std::map<std::string, std::vector<FusionChoice>> equal;
    std::vector<std::string> order;
    for (const FusionChoice& choice : drafted_.cover.open) {
      if (choice.way != FusionWay::Apart) continue;
      const std::string key = key_of_step(choice.node);
      if (!equal.contains(key)) order.push_back(key);
      equal[key].push_back(choice);
    }
    for (const std::string& key : order)
      if (drafted_.cover.nodes[equal[key][0].node].role == Role::Epilogue) take_apart(equal[key]);
  }

  std::string key_of_step(uint32_t step) {
    const uint32_t owner = drafted_.cover.nodes[step].owner;
    const NodePtr& node = drafted_.cover.graph.nodes()[owner];
    const auto kernel = std::find_if(drafted_.plan.kernels.begin(), drafted_.plan.kernels.end(),
                                     [&](const Kernel& k) { return !k.nodes.empty() && k.nodes[0] == node; });
    return kernel_signature(drafted_.plan, *kernel) + std::to_string(Shortened(drafted_.cover, step).steps());
  }

  void take_apart(const std::vector<FusionChoice>& choices) {
    const uint32_t owner = drafted_.cover.nodes[choices[0].node].owner;
    const double before_ms = prices_[owner].ms;
    Price shortened;
    {
      const Shortened without_step(drafted_.cover, choices[0].node);
      shortened = sum(price_of(build_kernels_of(drafted_.cover, {owner})));
    }
    // The step by itself comes on top of that.
    if (!is_gain(before_ms, shortened)) {
      for (const FusionChoice& choice : choices) note({choice, before_ms, shortened.ms, true});
      return;
    }
    Ways ways = drafted_.cover.ways;
    for (const FusionChoice& choice : choices) ways[choice.node] = choice.way;
    Drafted other = draft_with(std::move(ways));
    const double gain_ms = (drafted_.plan.estimated_ms - other.plan.estimated_ms) / static_cast<double>(choices.size());
    for (const FusionChoice& choice : choices) note({choice, before_ms, before_ms - gain_ms});
    if (gain_ms <= costs_.uncertainty() * std::min(before_ms, before_ms - gain_ms)) return;
    drafted_ = std::move(other);
    read_prices();
  }

  Drafted draft_with(Ways ways) {
    Drafted other = draft(described_, {drafted_.cover.layouts, drafted_.cover.layout, std::move(ways)});
    price(other.plan, costs_);
    return other;
  }

  // Else the cover is again what the plan is of.
  void keep_cheaper(Drafted other) {
    if (other.plan.estimated_ms < drafted_.plan.estimated_ms) {
      drafted_ = std::move(other);
      return;
    }
    drafted_ = draft_with(drafted_.cover.ways);
  }

  void note(const PricedChoice& choice) { choices_[choice.choice.node] = choice; }

  const Cover& described_;
  Drafted& drafted_;
  KernelCosts& costs_;
  std::map<uint32_t, Price> prices_;  // by end_of
  std::map<uint32_t, PricedChoice> choices_;
};

}  // namespace

void choose_fusion_by_cost(const Cover& described, Drafted& drafted, KernelCosts& costs) {
  const bool is_off = described.options.target.without.contains(kFusionByCost);
  if (!is_off && !drafted.cover.open.empty()) FusionByCost(described, drafted, costs).run();
}

std::vector<Plan> plans_by_other_choices(const Cover& described, Drafted& drafted) {
  std::vector<Plan> plans;
  if (described.options.target.without.contains(kFusionByCost)) return plans;
  std::map<uint32_t, FusionWay> first, last;  // of each library kernel's steps
  std::set<uint32_t> owners;
  for (const FusionChoice& choice : drafted.cover.open) {
    if (choice.way != FusionWay::Apart) {
      if (!may_be_taken(drafted.cover, choice)) continue;
      const Turned turned(drafted.cover, choice);
      Plan plan = build_kernels_of(drafted.cover, turned.kernels());
      if (has_all_prologues(plan)) plans.push_back(std::move(plan));
    } else if (owners.insert(drafted.cover.nodes[choice.node].owner).second) {
      first[choice.node] = choice.way;
    } else {
      last[choice.node] = choice.way;
    }
  }
  for (const auto& ways : {first, last}) {
    if (ways.empty()) continue;
    plans.push_back(draft(described, {drafted.cover.layouts, drafted.cover.layout, ways}).plan);
    place_buffers(plans.back());
  }
  return plans;
}

}  // namespace gopt::planner
