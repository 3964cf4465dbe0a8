#include "general_types.h"

#include <algorithm>
#include <set>

namespace gopt::generator {
namespace {

using Name = std::pair<int, int>;

void collect_attribute_symbols(const TermStore& terms, TermId id, std::set<AtomId>& out) {
  const Term& term = terms.term(id);
  if (!term.is_application()) return;
  for (const auto& [name, value] : terms.op(term.op).attributes) {
    if (auto* index = std::get_if<Index>(&value)) collect_symbols(*index, out);
    if (auto* list = std::get_if<std::vector<Index>>(&value))
      for (const Index& index : *list) collect_symbols(index, out);
  }
  for (TermId arg : term.args) collect_attribute_symbols(terms, arg, out);
}

void collect_literals(const Cond& cond, std::vector<Index>& out) {
  if (cond.kind() == CondKind::NonNegative) out.push_back(cond.index());
  if (cond.kind() == CondKind::And)
    for (const Cond& part : cond.parts()) collect_literals(part, out);
}

// Indexes that the condition says are 0.
std::vector<Index> equations_in(const Cond& cond) {
  std::vector<Index> literals, equations;
  collect_literals(cond, literals);
  for (size_t i = 0; i < literals.size(); i++)
    for (size_t j = i + 1; j < literals.size(); j++)
      if (literals[j] == -literals[i]) equations.push_back(literals[i]);
  return equations;
}

class TypeGeneralizer {
 public:
  explicit TypeGeneralizer(TermStore& terms) : terms_(terms) {}
  ~TypeGeneralizer() {
    for (AtomId symbol : fresh_) release_symbol(symbol);
  }

  std::optional<TermPair> run(const TermPair& pair) {
    for (const auto* side : {&pair.left, &pair.right})
      for (TermId root : *side) collect_attribute_symbols(terms_, root, rigid_);
    for (const Name& name : variables_of(terms_, pair.left)) open(name);
    for (const Name& name : variables_of(terms_, pair.right))
      if (!shapes_.count(name)) return std::nullopt;
    // Each round solves one equation, until nothing is left to solve.
    for (size_t round = 0; round <= fresh_.size(); round++) {
      problem_.reset();
      failed_ = false;
      for (size_t i = 0; i < pair.left.size() && !problem_ && !failed_; i++) {
        const auto left = infer(pair.left[i]), right = infer(pair.right[i]);
        if (left && right) compare(*left, *right);
      }
      if (failed_) return std::nullopt;
      if (!problem_) return rebuilt(pair);
      if (!solve(*problem_)) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  void open(const Name& name) {
    Shape shape = *terms_.family().classes[static_cast<size_t>(name.first)].type.shape;
    for (Index& extent : shape) {
      std::set<AtomId> symbols;
      collect_symbols(extent, symbols);
      if (symbols.empty()) continue;
      fresh_.push_back(fresh_symbol());
      origins_.push_back(extent);
      extent = Index::from_atom(fresh_.back());
    }
    shapes_[name] = std::move(shape);
  }

  void compare(const TensorType& left, const TensorType& right) {
    if (left.shape->size() != right.shape->size()) {
      failed_ = true;
      return;
    }
    for (size_t axis = 0; axis < left.shape->size(); axis++)
      if (const Index difference = (*left.shape)[axis] - (*right.shape)[axis]; difference != Index(0)) {
        problem_ = difference;
        return;
      }
  }

  // Nothing where an equation is to be solved first, or the operator does not fit.
  std::optional<TensorType> infer(TermId id) {
    const Term& term = terms_.term(id);
    if (term.is_variable())
      return TensorType{ElementType::Float32, shapes_.at({term.variable_class, term.variable_number})};
    if (!term.is_application()) return terms_.type(id);
    std::vector<TensorType> inputs;
    for (TermId arg : term.args) {
      auto input = infer(arg);
      if (!input) return std::nullopt;
      inputs.push_back(*std::move(input));
    }
    const AlphabetOp& op = terms_.op(term.op);
    const auto inferred = infer_types(op, inputs);
    if (!inferred.ok()) {
      failed_ = true;
      return std::nullopt;
    }
    for (const Requirement& requirement : inferred->requirements)
      for (const Index& equation : equations_in(requirement.cond)) {
        problem_ = equation;
        return std::nullopt;
      }
    return inferred->outputs[static_cast<size_t>(term.output)];
  }

  // Replaces the latest symbol that occurs once, with factor 1 or -1. The order is that of the variables, since symbols
  // themselves are in an order that depends on what was made before.
  bool solve(const Index& equation) {
    for (size_t i = fresh_.size(); i-- > 0;) {
      for (const Index::Term& term : equation.terms()) {
        if (term.atoms.size() != 1 || term.atoms[0] != fresh_[i]) continue;
        if (term.coefficient != 1 && term.coefficient != -1) continue;
        const Index rest = equation - Index(term.coefficient) * Index::from_atom(fresh_[i]);
        std::set<AtomId> others;
        collect_symbols(rest, others);
        if (others.count(fresh_[i])) continue;
        const Substitution replacement{{fresh_[i], term.coefficient == 1 ? -rest : rest}};
        for (auto& [name, shape] : shapes_)
          for (Index& extent : shape) extent = substitute(extent, replacement);
        return true;
      }
    }
    return false;
  }

  // Symbols that are left take the name that they come from, with a number where it is taken: "m_2", which no family
  // has.
  std::optional<TermPair> rebuilt(const TermPair& pair) {
    std::set<AtomId> left_over;
    for (const auto& [name, shape] : shapes_)
      for (const Index& extent : shape) collect_symbols(extent, left_over);
    Substitution names;
    std::set<std::string> taken;
    for (AtomId symbol : rigid_) taken.insert(atom(symbol).name);
    for (size_t i = 0; i < fresh_.size(); i++)
      if (left_over.count(fresh_[i])) names[fresh_[i]] = named(origins_[i], taken);
    std::map<Name, TermId> variables;
    std::map<int, int> used;
    bool is_same = true;
    for (const Name& name : variables_of(terms_, pair.left)) {
      const VariableClass description = terms_.family().classes[static_cast<size_t>(name.first)];
      TensorType type{ElementType::Float32, shapes_.at(name)};
      type = substituted(type, names);
      is_same = is_same && type == description.type;
      const int variable_class = terms_.class_for(type, description.kind, description.has_prefix);
      variables[name] = terms_.variable(variable_class, used[variable_class]++);
    }
    if (is_same) return std::nullopt;
    TermPair result;
    for (TermId root : pair.left)
      if (!append(root, variables, result.left)) return std::nullopt;
    for (TermId root : pair.right)
      if (!append(root, variables, result.right)) return std::nullopt;
    return result;
  }

  Index named(const Index& origin, std::set<std::string>& taken) {
    std::set<AtomId> symbols;
    collect_symbols(origin, symbols);
    const AtomId model = *std::min_element(symbols.begin(), symbols.end(),
                                           [](AtomId a, AtomId b) { return atom(a).name < atom(b).name; });
    const std::string stem = atom(model).name;
    std::string name = stem;
    for (int number = 2; !taken.insert(name).second; number++) name = stem + "_" + std::to_string(number);
    terms_.add_size_like(symbol_atom(name), origin, model);
    return symbol(name);
  }

  bool append(TermId root, const std::map<Name, TermId>& variables, std::vector<TermId>& out) {
    const auto made = with_variables(root, variables);
    if (made) out.push_back(*made);
    return made.has_value();
  }
  std::optional<TermId> with_variables(TermId id, const std::map<Name, TermId>& variables) {
    const Term term = terms_.term(id);
    if (term.is_variable()) return variables.at({term.variable_class, term.variable_number});
    if (!term.is_application()) return id;
    std::vector<TermId> args;
    for (TermId arg : term.args) {
      const auto made = with_variables(arg, variables);
      if (!made) return std::nullopt;
      args.push_back(*made);
    }
    return terms_.apply(term.op, term.output, args);
  }

  TermStore& terms_;
  std::set<AtomId> rigid_;
  std::vector<AtomId> fresh_;
  std::vector<Index> origins_;  // what each fresh symbol stands for in the pair given
  std::map<Name, Shape> shapes_;
  std::optional<Index> problem_;  // has to be 0
  bool failed_ = false;
};

}  // namespace

std::optional<TermPair> with_general_types(TermStore& terms, const TermPair& pair) {
  return TypeGeneralizer(terms).run(pair);
}

}  // namespace gopt::generator
