#include "derive.h"

#include <algorithm>

namespace gopt::generator {
namespace {

// What a rule's variables and symbols stand for in a term.
struct Instance {
  std::map<std::pair<int, int>, TermId> variables;
  Substitution symbols;
  std::vector<std::pair<Index, Index>> waiting;  // extents that are no bare symbol
  std::optional<Shape> prefix;
};

bool unify(Instance& instance, const Index& pattern, const Index& actual) {
  if (const auto single = pattern.as_atom(); single && atom(*single).kind == AtomKind::Symbol)
    return instance.symbols.try_emplace(*single, actual).first->second == actual;
  instance.waiting.emplace_back(pattern, actual);
  return true;
}

bool unify(Instance& instance, const std::vector<Index>& pattern, const std::vector<Index>& actual) {
  if (pattern.size() != actual.size()) return false;
  for (size_t i = 0; i < pattern.size(); i++)
    if (!unify(instance, pattern[i], actual[i])) return false;
  return true;
}

bool unify(Instance& instance, const AlphabetOp& pattern, const AlphabetOp& actual) {
  if (pattern.kind != actual.kind || pattern.outputs != actual.outputs || pattern.inputs != actual.inputs) return false;
  if (pattern.attributes.size() != actual.attributes.size()) return false;
  for (auto a = pattern.attributes.begin(), b = actual.attributes.begin(); a != pattern.attributes.end(); ++a, ++b) {
    if (a->first != b->first || a->second.index() != b->second.index()) return false;
    if (auto* index = std::get_if<Index>(&a->second)) {
      if (!unify(instance, *index, std::get<Index>(b->second))) return false;
    } else if (auto* list = std::get_if<std::vector<Index>>(&a->second)) {
      if (!unify(instance, *list, std::get<std::vector<Index>>(b->second))) return false;
    } else if (!equal(a->second, b->second)) {
      return false;
    }
  }
  return true;
}

bool settles(const Instance& instance) {
  return std::all_of(instance.waiting.begin(), instance.waiting.end(), [&](const auto& equation) {
    return substitute(equation.first, instance.symbols) == equation.second;
  });
}

class TermMatcher {
 public:
  TermMatcher(const TermStore& rule_terms, TermStore& terms) : rule_(rule_terms), terms_(terms) {}

  // All instances of `pattern` at `id`.
  std::vector<Instance> match(TermId pattern, TermId id) const {
    std::vector<Instance> found;
    for (Instance& instance : extend({Instance{}}, pattern, id))
      if (settles(instance)) found.push_back(std::move(instance));
    return found;
  }

  // The rule's term under an instance. Nothing where its types do not fit.
  std::optional<TermId> instantiate(TermId pattern, const Instance& instance) const {
    const Term term = rule_.term(pattern);  // a copy: the stores may be one
    if (term.is_variable()) {
      const auto bound = instance.variables.find({term.variable_class, term.variable_number});
      return bound == instance.variables.end() ? std::nullopt : std::optional(bound->second);
    }
    if (!term.is_application()) return terms_.constant(term.constant);
    std::vector<TermId> args;
    for (TermId arg : term.args) {
      const auto made = instantiate(arg, instance);
      if (!made) return std::nullopt;
      args.push_back(*made);
    }
    AlphabetOp op = rule_.op(term.op);
    op.attributes = substituted(op.attributes, instance.symbols);
    return terms_.apply(terms_.add_op(op), term.output, args);
  }

 private:
  std::vector<Instance> extend(std::vector<Instance> instances, TermId pattern, TermId id) const {
    const Term& wanted = rule_.term(pattern);
    const Term& actual = terms_.term(id);
    std::vector<Instance> extended;
    if (wanted.is_variable()) {
      for (Instance& instance : instances)
        if (bind(instance, wanted, id)) extended.push_back(std::move(instance));
      return extended;
    }
    if (wanted.is_application() != actual.is_application() || actual.is_variable()) return {};
    if (!wanted.is_application()) return wanted.constant == actual.constant ? instances : extended;
    if (wanted.output != actual.output || wanted.args.size() != actual.args.size()) return {};
    for (Instance& instance : instances) {
      if (!unify(instance, rule_.op(wanted.op), terms_.op(actual.op))) continue;
      extend_args(instance, wanted, actual, extended);
    }
    return extended;
  }

  void extend_args(const Instance& instance, const Term& wanted, const Term& actual, std::vector<Instance>& out) const {
    const bool commutes = wanted.args.size() == 2 && op_info(rule_.op(wanted.op).kind).has(kCommutative);
    for (bool exchanged : {false, true}) {
      if (exchanged && !commutes) break;
      std::vector<Instance> instances{instance};
      for (size_t i = 0; i < wanted.args.size(); i++)
        instances = extend(std::move(instances), wanted.args[i], actual.args[exchanged ? 1 - i : i]);
      std::move(instances.begin(), instances.end(), std::back_inserter(out));
    }
  }

  bool bind(Instance& instance, const Term& wanted, TermId id) const {
    const auto [bound, is_new] = instance.variables.try_emplace({wanted.variable_class, wanted.variable_number}, id);
    if (!is_new) return bound->second == id;
    const VariableClass& description = rule_.family().classes[static_cast<size_t>(wanted.variable_class)];
    if (description.kind == VariableKind::Weight && !terms_.term(id).is_weight) return false;
    const Shape& pattern = *description.type.shape;
    const Shape& actual = *terms_.type(id).shape;
    if (actual.size() < pattern.size()) return false;
    const auto middle = actual.begin() + static_cast<std::ptrdiff_t>(actual.size() - pattern.size());
    const Shape prefix(actual.begin(), middle);
    if (!description.has_prefix && !prefix.empty()) return false;
    if (description.has_prefix && instance.prefix.value_or(prefix) != prefix) return false;
    if (description.has_prefix) instance.prefix = prefix;
    return unify(instance, pattern, Shape(middle, actual.end()));
  }

  const TermStore& rule_;
  TermStore& terms_;
};

// `id` with each rewrite of argument number `at` in its place.
void rewrite_argument(TermStore& terms, TermId id, size_t at, const std::vector<KeptRule>& rules,
                      std::vector<TermId>& out) {
  const Term term = terms.term(id);
  for (TermId rewritten : rewrites_of(terms, term.args[at], rules)) {
    std::vector<TermId> args = term.args;
    args[at] = rewritten;
    if (const auto made = terms.apply(term.op, term.output, args)) out.push_back(*made);
  }
}

}  // namespace

std::vector<TermId> rewrites_of(TermStore& terms, TermId id, const std::vector<KeptRule>& rules) {
  std::vector<TermId> results;
  if (!terms.term(id).is_application()) return results;
  for (const KeptRule& rule : rules) {
    if (rule.terms->op(rule.terms->term(rule.left).op).kind != terms.op(terms.term(id).op).kind) continue;
    const TermMatcher matcher(*rule.terms, terms);
    for (const Instance& instance : matcher.match(rule.left, id))
      if (const auto made = matcher.instantiate(rule.right, instance); made && terms.type(*made) == terms.type(id))
        results.push_back(*made);
  }
  for (size_t at = 0; at < terms.term(id).args.size(); at++) rewrite_argument(terms, id, at, rules, results);
  return results;
}

bool leads_to(TermStore& terms, TermKeys& keys, TermId from, const KeySet& targets, const std::vector<KeptRule>& rules,
              int max_steps, size_t max_terms) {
  if (targets.count(keys.key(from))) return true;
  KeySet seen{keys.key(from)};
  std::vector<TermId> layer{from};
  for (int step = 0; step < max_steps && !layer.empty() && seen.size() < max_terms; step++) {
    std::vector<TermId> next;
    for (TermId id : layer) {
      for (TermId rewritten : rewrites_of(terms, id, rules)) {
        const std::string& key = keys.key(rewritten);
        if (targets.count(key)) return true;
        if (seen.insert(key).second) next.push_back(rewritten);
      }
    }
    layer = std::move(next);
  }
  return false;
}

const std::string& TermKeys::key(TermId id) {
  if (const auto known = known_.find(static_cast<uint32_t>(id)); known != known_.end()) return known->second;
  const Term term = terms_.term(id);
  std::string key;
  if (!term.is_application()) {
    key = terms_.to_string(id);
  } else if (term.is_weight) {
    key = weight_name_(id);
  } else {
    std::vector<std::string> args;
    for (TermId arg : term.args) args.push_back(this->key(arg));
    if (op_info(terms_.op(term.op).kind).has(kCommutative)) std::sort(args.begin(), args.end());
    key = terms_.op_text(term.op) + "." + std::to_string(term.output) + "(";
    for (const std::string& arg : args) key += arg + ",";
    key += ")";
  }
  return known_.emplace(static_cast<uint32_t>(id), std::move(key)).first->second;
}

}  // namespace gopt::generator
