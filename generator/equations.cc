#include "equations.h"

#include <fmt/core.h>

#include <algorithm>

#include "node_matcher.h"

namespace gopt::generator {
namespace {

constexpr NodeId kNone = ~0U;
constexpr size_t kMaxMembers = 32;  // nodes that a representative stands for in matches
// Kinds of representatives: by rank (longer ones as one), whether some variable may have leading axes, and whether it
// is a weight; and one for constants.
constexpr size_t kRanks = 8;
constexpr uint64_t kConstantKind = uint64_t{1} << (4 * kRanks);
uint64_t kind(size_t rank, bool is_open, bool is_weight) {
  return uint64_t{1} << (std::min(rank, kRanks - 1) + kRanks * ((is_open ? 1 : 0) + (is_weight ? 2 : 0)));
}

// An operator's text with its integers left out, and the integers.
std::string form_of(const AlphabetOp& op, std::vector<Index>& numbers) {
  std::string form = op.name() + "/" + std::to_string(op.inputs) + "/" + std::to_string(op.outputs);
  const auto add = [&](const Attributes& attributes) {
    for (const auto& [name, value] : attributes) {
      form += " " + name;
      if (auto* index = std::get_if<Index>(&value)) {
        numbers.push_back(*index);
      } else if (auto* list = std::get_if<std::vector<Index>>(&value)) {
        form += "[" + std::to_string(list->size()) + "]";
        numbers.insert(numbers.end(), list->begin(), list->end());
      } else {
        form += "=" + gopt::to_string(value);
      }
    }
  };
  add(op.attributes);
  for (const CompositeStep& step : op.steps) {
    form += " " + op_info(step.kind).name;
    for (const CompositeStep::Argument& arg : step.args)
      form += fmt::format(" {},{},{}", static_cast<int>(arg.from), arg.number, arg.constant);
    add(step.attributes);
  }
  return form;
}

}  // namespace

// Flattens one direction of a rule's output.
class RewritingCompiler {
 public:
  RewritingCompiler(Equations& equations, const TermStore& terms) : equations_(equations), terms_(terms) {}

  // Nothing where the left side does not bind all that the right side uses.
  std::optional<Equations::Rewriting> compile(TermId from, TermId to, const Cond& condition) {
    if (!terms_.term(from).is_application()) return std::nullopt;
    may_bind_ = true;
    if (!add(from, made_.from)) return std::nullopt;
    may_bind_ = false;
    if (!add(to, made_.to)) return std::nullopt;
    made_.condition = condition;
    std::set<AtomId> used;
    collect_symbols(condition, used);
    for (AtomId symbol : used)
      if (std::find(made_.symbols.begin(), made_.symbols.end(), symbol) == made_.symbols.end()) return std::nullopt;
    return std::move(made_);
  }

 private:
  using Step = Equations::Step;

  bool pattern_of(const Index& index, Equations::IndexPattern& out) {
    out = {-1, index};
    const auto single = index.as_atom();
    if (single && atom(*single).kind == AtomKind::Symbol) {
      const auto known = std::find(made_.symbols.begin(), made_.symbols.end(), *single);
      out.slot = static_cast<int>(known - made_.symbols.begin());
      if (known == made_.symbols.end()) {
        if (!may_bind_) return false;
        made_.symbols.push_back(*single);
      }
      return true;
    }
    if (may_bind_) return true;  // what is bound is known once all of the left side is matched
    std::set<AtomId> used;
    collect_symbols(index, used);
    return std::all_of(used.begin(), used.end(), [&](AtomId symbol) {
      return std::find(made_.symbols.begin(), made_.symbols.end(), symbol) != made_.symbols.end();
    });
  }

  bool add(TermId id, std::vector<Step>& steps) {
    const Term& term = terms_.term(id);
    const size_t at = steps.size();
    Step step;
    if (term.is_variable()) {
      step.kind = Step::Kind::Variable;
      if (!variable(term, step.variable)) return false;
      steps.push_back(std::move(step));
      return true;
    }
    if (!term.is_application()) {
      step.kind = Step::Kind::Constant;
      step.constant = term.constant;
      steps.push_back(std::move(step));
      return true;
    }
    step.kind = Step::Kind::Application;
    step.output = static_cast<uint8_t>(term.output);
    const AlphabetOp& op = terms_.op(term.op);
    std::vector<Index> numbers;
    const std::string form = form_of(op, numbers);
    for (const Index& number : numbers) {
      step.attributes.emplace_back();
      if (!pattern_of(number, step.attributes.back())) return false;
    }
    const auto op_count = static_cast<int>(equations_.space_.terms().family().ops.size());
    for (int own = 0; own < op_count; own++)
      if (equations_.family_op(own).form == form) step.ops |= uint64_t{1} << own;
    if (step.ops == 0) return false;
    step.arguments.commutes = op.inputs == 2 && op_info(op.kind).has(kCommutative);
    steps.push_back(std::move(step));
    if (term.args.size() > kMaxArguments) return false;
    for (TermId arg : term.args) {
      const size_t child = steps.size();
      if (child > UINT8_MAX || !add(arg, steps)) return false;
      Equations::Arguments& arguments = steps[at].arguments;
      arguments.steps[arguments.count] = static_cast<uint8_t>(child);
      arguments.facts[arguments.count++] = facts_for(steps[child]);
    }
    return true;
  }

  Equations::Facts facts_for(const Step& step) const {
    switch (step.kind) {
      case Step::Kind::Variable: return {0, Equations::kinds_for(made_.variables[static_cast<size_t>(step.variable)])};
      case Step::Kind::Constant: return {0, kConstantKind};
      case Step::Kind::Application: return {step.ops, 0};
    }
    return {};
  }

  bool variable(const Term& term, int& number) {
    const auto [entry, is_new] =
        variables_.try_emplace({term.variable_class, term.variable_number}, static_cast<int>(made_.variables.size()));
    number = entry->second;
    if (!is_new) return true;
    if (!may_bind_) return false;
    const VariableClass& description = terms_.family().classes[static_cast<size_t>(term.variable_class)];
    Equations::VariablePattern pattern{description.kind == VariableKind::Weight, description.has_prefix, {}};
    for (const Index& extent : *description.type.shape) {
      pattern.extents.emplace_back();
      if (!pattern_of(extent, pattern.extents.back())) return false;
    }
    made_.variables.push_back(std::move(pattern));
    return true;
  }

  Equations& equations_;
  const TermStore& terms_;
  Equations::Rewriting made_;
  std::map<std::pair<int, int>, int> variables_;
  bool may_bind_ = true;
};

int Equations::number_of(const Index& index) {
  const auto [entry, is_new] = numbers_.try_emplace(index, static_cast<int>(indexes_.size()));
  if (is_new) indexes_.push_back(index);
  return entry->second;
}

const Equations::FamilyOp& Equations::family_op(int op) {
  while (family_ops_.size() <= static_cast<size_t>(op)) {
    std::vector<Index> numbers;
    FamilyOp made{form_of(space_.terms().op(static_cast<int>(family_ops_.size())), numbers), {}};
    for (const Index& number : numbers) made.numbers.push_back(number_of(number));
    family_ops_.push_back(std::move(made));
  }
  return family_ops_[static_cast<size_t>(op)];
}

void Equations::learn_types() {
  for (auto type = static_cast<uint32_t>(type_extents_.size()); type < space_.terms().type_count(); type++) {
    std::vector<int> extents;
    for (const Index& extent : *space_.terms().type(static_cast<TypeId>(type)).shape)
      extents.push_back(number_of(extent));
    type_extents_.push_back(std::move(extents));
  }
}

void Equations::add_rule(const KeptRule& rule, size_t number) {
  const size_t op_count = space_.terms().family().ops.size();
  by_root_.resize(op_count);
  for (size_t output = 0; output < rule.left.size(); output++)
    for (bool reversed : {false, true}) {
      const TermId from = reversed ? rule.right[output] : rule.left[output];
      const TermId to = reversed ? rule.left[output] : rule.right[output];
      auto made = RewritingCompiler(*this, *rule.terms).compile(from, to, rule.condition);
      if (!made) continue;
      made->rule = number;
      made->is_reversed = reversed;
      for (size_t op = 0; op < op_count; op++)
        if (made->from.front().ops >> op & 1)
          by_root_[op].push_back({rewritings_.size(), made->from.front().arguments});
      rewritings_.push_back(*std::move(made));
    }
}

void Equations::forget_rules(size_t first) {
  rewritings_.resize(first);
  for (auto& rules : by_root_)
    while (!rules.empty() && rules.back().rewriting >= first) rules.pop_back();
}

std::optional<NodeId> Equations::find_node(const Application& application) const {
  if (slots_.empty()) return std::nullopt;
  const size_t mask = slots_.size() - 1;
  for (size_t at = hash_of(application) & mask; slots_[at] != kNone; at = (at + 1) & mask)
    if (nodes_[slots_[at]].content.application == application) return slots_[at];
  return std::nullopt;
}

const EqualApplication* Equations::find(const Application& application) const {
  const auto id = find_node(application);
  return id ? &nodes_[*id].content : nullptr;
}

NodeId Equations::add_level(const Level& level, bool is_final) {
  learn_types();
  const auto first = node_count();
  const auto add = [&](const Application& application, const Named& equal) {
    nodes_.push_back({{application, equal}, node_count()});
    return node_count() - 1;
  };
  const auto add_representative = [&](uint32_t rep) {
    space_.rep(rep).node = add(space_.rep(rep).application, {rep, space_.signature_of(rep).identity});
  };
  if (!is_final)
    for (uint32_t rep : level.representatives) add_representative(rep);
  // Of the last levels, which nothing is built on, only those matter that something is equal to.
  for (const EqualApplication& equal : level.equal)
    if (space_.rep(equal.equal.rep).node == kNone) add_representative(equal.equal.rep);
  for (const EqualApplication& equal : level.equal) {
    const NodeId id = add(equal.application, equal.equal);
    nodes_[id].is_symmetry = space_.rep(equal.equal.rep).application == equal.application;
  }
  size_t size = std::max<size_t>(slots_.size(), 1024);
  while (size < 2 * nodes_.size()) size *= 2;
  const size_t mask = size - 1;
  const auto place = [&](NodeId id) {
    size_t at = hash_of(nodes_[id].content.application) & mask;
    while (slots_[at] != kNone) at = (at + 1) & mask;
    slots_[at] = id;
  };
  NodeId from = first;
  if (size != slots_.size()) {
    slots_.assign(size, kNone);
    from = 0;
  }
  for (NodeId id = from; id < node_count(); id++)
    if (nodes_[id].content.application.op >= 0 && !nodes_[id].is_symmetry) place(id);
  members_.resize(space_.rep_count());
  for (auto id = static_cast<uint32_t>(targets_.size()); id < space_.rep_count(); id++) {
    const Representative& rep = space_.rep(id);
    const size_t rank = type_extents_[static_cast<size_t>(rep.type)].size();
    targets_.push_back({{0, kinds_of(rep, rank)}, rep.type, rep.is_weight, rep.is_open});
  }
  for (uint32_t rep : level.representatives)
    if (space_.rep(rep).leaf_class < 0 && space_.rep(rep).application.op < 0) constants_.push_back(rep);
  for (uint32_t rep : level.representatives)
    if (!is_final) add_member(rep, space_.rep(rep).node);
  return first;
}

void Equations::add_member(uint32_t rep, NodeId node) {
  members_[rep].push_back(node);
  const int op = nodes_[node].content.application.op;
  if (op >= 0) targets_[rep].facts.ops |= uint64_t{1} << op;
}

uint64_t Equations::kinds_of(const Representative& rep, size_t rank) {
  const bool is_constant = rep.leaf_class < 0 && rep.application.op < 0;
  return kind(rank, rep.is_open, rep.is_weight) | (is_constant ? kConstantKind : 0);
}

uint64_t Equations::kinds_for(const VariablePattern& pattern) {
  uint64_t kinds = 0;
  for (size_t rank = std::min(pattern.extents.size(), kRanks - 1); rank < kRanks; rank++)
    for (bool is_open : {false, true})
      for (bool is_weight : {false, true}) {
        const bool has_prefix = is_open || (rank > pattern.extents.size() && rank < kRanks - 1);
        if ((!has_prefix || pattern.has_prefix) && (is_weight || !pattern.is_weight))
          kinds |= kind(rank, is_open, is_weight);
      }
  return kinds;
}

bool Equations::may_fit(const Arguments& arguments, const Application& application, bool exchanged) const {
  for (size_t i = 0; i < arguments.count; i++)
    if (!fit(arguments.facts[i], targets_[application.args[exchanged ? 1 - i : i].rep].facts)) return false;
  return true;
}

void Equations::derive(NodeId id, size_t first_rule, std::vector<Derived>& out, bool only_representatives) const {
  const Node& node = nodes_[id];
  const Application& application = node.content.application;
  if (static_cast<size_t>(application.op) >= by_root_.size()) return;
  const auto& rules = by_root_[static_cast<size_t>(application.op)];
  NodeMatcher matcher(*this, only_representatives, out);
  const auto is_before = [](const RootPattern& own, size_t number) { return own.rewriting < number; };
  for (auto own = std::lower_bound(rules.begin(), rules.end(), first_rule, is_before); own != rules.end(); ++own) {
    const Arguments& arguments = own->arguments;
    if (!may_fit(arguments, application, false) && !(arguments.commutes && may_fit(arguments, application, true)))
      continue;
    const bool is_joined = matcher.match(rewritings_[own->rewriting], application);
    if (is_joined && !node.is_symmetry) return;
  }
}

NodeId Equations::root(NodeId id) const {
  while (nodes_[id].parent != id) id = nodes_[id].parent;
  return id;
}

bool Equations::is_joined(NodeId id) const {
  if (nodes_[id].is_symmetry) return nodes_[id].is_derived;
  return root(id) == root(space_.rep(nodes_[id].content.equal.rep).node);
}

void Equations::join_to_representative(NodeId id) {
  if (nodes_[id].is_symmetry)
    nodes_[id].is_derived = true;
  else
    nodes_[root(id)].parent = root(space_.rep(nodes_[id].content.equal.rep).node);
}

void Equations::join(NodeId id, const std::vector<Derived>& derived) {
  Node& node = nodes_[id];
  if (!node.is_symmetry) {
    for (const Derived& own : derived)
      if (nodes_[own.node].content.equal.rep == node.content.equal.rep) nodes_[root(id)].parent = root(own.node);
    return;
  }
  // The exchange that it stands for has to be made of those that are derived and those that are plain to see.
  const Signature& signature = space_.signature_of(node.content.equal.rep);
  std::vector<NameMap> generators;
  const Application& application = node.content.application;
  space_.normalized(application.op, application.output, application.args.data(), application.arity, &generators);
  for (const Derived& own : derived)
    if (own.result.rep == node.content.equal.rep) generators.push_back(signature.map_of(own.result.naming));
  std::vector<Naming> group{signature.identity};
  for (size_t i = 0; i < group.size(); i++)
    for (const NameMap& generator : generators) {
      const Naming next = signature.renamed(group[i], generator);
      if (std::find(group.begin(), group.end(), next) == group.end()) group.push_back(next);
    }
  node.is_derived = std::find(group.begin(), group.end(), node.content.equal.naming) != group.end();
}

void Equations::settle(NodeId first, NodeId end) {
  for (Node& node : nodes_) node.parent = root(node.parent);
  for (NodeId id = first; id < end; id++) {
    const Node& node = nodes_[id];
    const uint32_t rep = node.content.equal.rep;
    if (node.is_symmetry || space_.rep(rep).is_final || space_.rep(rep).node == id || !is_joined(id)) continue;
    // Variables that the value does not depend on could be anything.
    if (members_[rep].size() < kMaxMembers &&
        space_.classes_of(node.content.application).size() == space_.signature_of(rep).count)
      add_member(rep, id);
  }
}

}  // namespace gopt::generator
