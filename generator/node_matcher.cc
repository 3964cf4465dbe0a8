#include "node_matcher.h"

#include <algorithm>

namespace gopt::generator {

NodeMatcher::NodeMatcher(const Equations& equations, bool only_representatives, std::vector<Equations::Derived>& out)
    : equations_(equations), space_(equations.space_), only_representatives_(only_representatives), out_(out) {
  symbols_.fill(-1);
}

// Whatever a match binds it lets go of in the end, so that the next one starts afresh.
bool NodeMatcher::match(const Equations::Rewriting& rule, const Application& application) {
  rule_ = &rule;
  visits_ = 0;
  is_done_ = false;
  if (rule_->from.size() > kMaxSteps || rule_->variables.size() > variables_.size() ||
      rule_->symbols.size() > symbols_.size())
    return false;
  const size_t before = out_.size();
  enter(0, application, nullptr);
  return is_done_ && out_.size() > before;
}

bool NodeMatcher::unify(const Equations::IndexPattern& pattern, int number) {
  if (pattern.slot >= 0) {
    int& bound = symbols_[static_cast<size_t>(pattern.slot)];
    if (bound < 0) {
      bound = number;
      trail_.push_back(static_cast<size_t>(pattern.slot));
    }
    return bound == number;
  }
  if (pattern.index.is_constant()) return equations_.indexes_[static_cast<size_t>(number)] == pattern.index;
  waiting_.emplace_back(&pattern.index, number);
  return true;
}

// Goes on with the arguments of an application in the place of step `at`; `map` renames them.
void NodeMatcher::enter(size_t at, const Application& application, const NameMap* map) {
  const Step& step = rule_->from[at];
  if (!(step.ops >> application.op & 1) || step.output != application.output) return;
  is_done_ = is_done_ || visits_++ == kMaxVisits;
  if (is_done_) return;
  const Equations::Arguments& arguments = step.arguments;
  const size_t trail = trail_.size(), waiting = waiting_.size();
  bool fits = true;
  const auto& numbers = equations_.family_ops_[static_cast<size_t>(application.op)].numbers;
  for (size_t i = 0; fits && i < numbers.size(); i++) fits = unify(step.attributes[i], numbers[i]);
  if (fits) {
    for (bool exchanged : {false, true}) {
      if (exchanged && (!arguments.commutes || application.args[0] == application.args[1])) break;
      if (!equations_.may_fit(arguments, application, exchanged)) continue;
      for (size_t i = 0; i < arguments.count; i++) {
        const Named& arg = application.args[exchanged ? 1 - i : i];
        targets_[arguments.steps[i]] = map ? space_.renamed(arg, *map) : arg;
      }
      this->step(at + 1);
    }
  }
  while (trail_.size() > trail) {
    symbols_[trail_.back()] = -1;
    trail_.pop_back();
  }
  waiting_.resize(waiting);
}

bool NodeMatcher::bind(const Step& step, Named target) {
  const Equations::VariablePattern& pattern = rule_->variables[static_cast<size_t>(step.variable)];
  const Equations::Target& rep = equations_.targets_[target.rep];
  if (pattern.is_weight && !rep.is_weight) return false;
  const auto& extents = equations_.type_extents_[static_cast<size_t>(rep.type)];
  if (extents.size() < pattern.extents.size()) return false;
  const size_t leading = extents.size() - pattern.extents.size();
  if ((leading > 0 || rep.is_open) && !pattern.has_prefix) return false;
  if (pattern.has_prefix) {
    // What may have leading axes and what may not are of one shape where there are none, and else not.
    if (has_prefix_ && (is_open_ != rep.is_open || prefix_.size() != leading ||
                        !std::equal(prefix_.begin(), prefix_.end(), extents.begin())))
      return false;
    is_open_ = rep.is_open;
    prefix_.assign(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(leading));
    has_prefix_ = true;
  }
  for (size_t i = 0; i < pattern.extents.size(); i++)
    if (!unify(pattern.extents[i], extents[leading + i])) return false;
  variables_[static_cast<size_t>(step.variable)] = target;
  return true;
}

void NodeMatcher::step(size_t at) {
  if (at == rule_->from.size()) return finish();
  const Step& step = rule_->from[at];
  const Named target = targets_[at];
  switch (step.kind) {
    case Step::Kind::Variable: {
      const Named named = space_.canonical(target);
      const auto number = static_cast<size_t>(step.variable);
      if (is_bound_[number]) {
        if (variables_[number] == named) this->step(at + 1);
        return;
      }
      const size_t trail = trail_.size(), waiting = waiting_.size();
      const bool had_prefix = has_prefix_;
      if (bind(step, named)) {
        is_bound_[number] = true;
        this->step(at + 1);
        is_bound_[number] = false;
      }
      while (trail_.size() > trail) {
        symbols_[trail_.back()] = -1;
        trail_.pop_back();
      }
      waiting_.resize(waiting);
      has_prefix_ = had_prefix;
      return;
    }
    case Step::Kind::Constant: {
      const Representative& rep = space_.rep(target.rep);
      if (rep.leaf_class < 0 && rep.application.op < 0 && rep.constant == step.constant) this->step(at + 1);
      return;
    }
    case Step::Kind::Application: {
      const Signature& signature = space_.signature_of(target.rep);
      for (NodeId member : equations_.members_[target.rep]) {
        if (is_done_) return;
        if (only_representatives_ && member != space_.rep(target.rep).node) break;
        const EqualApplication& content = equations_.nodes_[member].content;
        if (content.application.op < 0 || !(step.ops >> content.application.op & 1)) continue;
        NameMap map = NameMap::nothing();
        for (unsigned i = 0; i < signature.count; i++) {
          uint32_t& own = map.of_class[signature.classes[i]];
          own = with_nibble(own, nibble(content.equal.naming, i), nibble(target.naming, i));
        }
        enter(at, content.application, &map);
      }
      return;
    }
  }
}

Substitution NodeMatcher::substitution() const {
  Substitution made;
  for (size_t i = 0; i < rule_->symbols.size(); i++)
    if (symbols_[i] >= 0) made[rule_->symbols[i]] = equations_.indexes_[static_cast<size_t>(symbols_[i])];
  return made;
}

bool NodeMatcher::is_settled() const {
  if (std::any_of(symbols_.begin(), symbols_.begin() + static_cast<std::ptrdiff_t>(rule_->symbols.size()),
                  [](int number) { return number < 0; }))
    return false;
  if (waiting_.empty() && rule_->condition.is_true()) return true;
  substitution_ = substitution();
  return substitute(rule_->condition, *substitution_).is_true() &&
         std::all_of(waiting_.begin(), waiting_.end(), [&](const auto& equation) {
           return substitute(*equation.first, *substitution_) ==
                  equations_.indexes_[static_cast<size_t>(equation.second)];
         });
}

void NodeMatcher::finish() {
  substitution_.reset();
  if (!is_settled()) return;
  std::optional<NodeId> node;
  const auto result = build(0, node);
  if (!result || !node) return;
  out_.push_back({*node, *result, rule_->rule, rule_->is_reversed});
  is_done_ = !only_representatives_ && equations_.is_joined(*node);
}

bool NodeMatcher::is_op(const Step& step, int op) const {
  const auto& numbers = equations_.family_ops_[static_cast<size_t>(op)].numbers;
  for (size_t i = 0; i < numbers.size(); i++) {
    const Equations::IndexPattern& pattern = step.attributes[i];
    if (pattern.slot >= 0) {
      if (symbols_[static_cast<size_t>(pattern.slot)] != numbers[i]) return false;
      continue;
    }
    if (!substitution_) substitution_ = substitution();
    if (substitute(pattern.index, *substitution_) != equations_.indexes_[static_cast<size_t>(numbers[i])]) return false;
  }
  return true;
}

// The right side's step `at` under the instance; `node` is the one that applies it.
std::optional<Named> NodeMatcher::build(size_t at, std::optional<NodeId>& node) const {
  const Step& step = rule_->to[at];
  if (step.kind == Step::Kind::Variable) {
    const Named named = variables_[static_cast<size_t>(step.variable)];
    node = space_.rep(named.rep).node;
    return named;
  }
  if (step.kind == Step::Kind::Constant) {
    for (uint32_t id : equations_.constants_)
      if (space_.rep(id).constant == step.constant) {
        node = space_.rep(id).node;
        return Named{id, 0};
      }
    return std::nullopt;
  }
  std::array<Named, kMaxArguments> args{};
  for (size_t i = 0; i < step.arguments.count; i++) {
    std::optional<NodeId> below;
    const auto arg = build(step.arguments.steps[i], below);
    // What is not joined to its representative may not be taken for it.
    if (!arg || !below || !equations_.is_joined(*below)) return std::nullopt;
    args[i] = space_.canonical(*arg);
  }
  for (size_t op = 0; op < equations_.family_ops_.size(); op++) {
    if (!(step.ops >> op & 1) || !is_op(step, static_cast<int>(op))) continue;
    const auto arity = static_cast<int>(step.arguments.count);
    const Space::Normal normal = space_.normalized(static_cast<int>(op), step.output, args.data(), arity);
    node = equations_.find_node(normal.application);
    if (!node) return std::nullopt;
    return space_.renamed(equations_.nodes_[*node].content.equal, normal.back);
  }
  return std::nullopt;
}

}  // namespace gopt::generator
