#include "term.h"

#include <fmt/core.h>

#include <algorithm>

namespace gopt::generator {
namespace {

std::string text_of(const AlphabetOp& op) {
  std::string text = op.name();
  for (const auto& [name, value] : op.attributes) text += " " + name + "=" + gopt::to_string(value);
  for (const CompositeStep& step : op.steps)
    for (const auto& [name, value] : step.attributes) text += " " + name + "=" + gopt::to_string(value);
  return text + fmt::format("/{}/{}", op.inputs, op.outputs);
}

// Whether the requirements and extents make sense in an assignment.
bool holds_under(const InferredTypes& types, const Substitution& sizes) {
  for (const Requirement& requirement : types.requirements)
    if (!substitute(requirement.cond, sizes).is_true()) return false;
  for (const TensorType& type : types.outputs)
    for (const Index& extent : *type.shape) {
      const auto value = substitute(extent, sizes).as_constant();
      if (!value || *value < 1) return false;
    }
  return true;
}

}  // namespace

Substitution sizes_of(const Family& family, int assignment) {
  Substitution sizes;
  for (const Size& size : family.sizes) sizes[size.symbol] = size.values[assignment];
  return sizes;
}

TensorType substituted(const TensorType& type, const Substitution& sizes) {
  TensorType result = type;
  for (Index& extent : *result.shape) extent = substitute(extent, sizes);
  return result;
}

TypeId TermStore::intern(const TensorType& type) {
  const auto [entry, is_new] = type_of_.try_emplace(gopt::to_string(type), static_cast<TypeId>(types_.size()));
  if (is_new) types_.push_back(type);
  return entry->second;
}

TermId TermStore::intern(Term term) {
  std::string key = fmt::format("{},{},{},{},{}", term.variable_class, term.variable_number, term.op, term.output,
                                term.op < 0 ? term.constant : 0.0);
  for (TermId arg : term.args) key += fmt::format(",{}", static_cast<uint32_t>(arg));
  const auto [entry, is_new] = interned_.try_emplace(std::move(key), static_cast<TermId>(terms_.size()));
  if (is_new) terms_.push_back(std::move(term));
  return entry->second;
}

TermId TermStore::variable(int variable_class, int number) {
  const VariableClass& description = family_.classes[static_cast<size_t>(variable_class)];
  Term made;
  made.variable_class = variable_class;
  made.variable_number = number;
  made.type = intern(description.type);
  made.is_weight = description.kind == VariableKind::Weight;
  return intern(std::move(made));
}

TermId TermStore::constant(double value) {
  Term made;
  made.constant = value;
  made.type = intern(TensorType{ElementType::Float32, Shape{}});
  return intern(std::move(made));
}

int TermStore::add_op(const AlphabetOp& op) {
  const auto [entry, is_new] = op_of_.try_emplace(text_of(op), static_cast<int>(ops_.size()));
  if (is_new) {
    ops_.push_back(op);
    op_texts_.push_back(entry->first);
  }
  return entry->second;
}

int TermStore::class_for(const TensorType& type, VariableKind kind, bool has_prefix) {
  for (size_t i = 0; i < family_.classes.size(); i++) {
    const VariableClass& known = family_.classes[i];
    if (known.kind == kind && known.has_prefix == has_prefix && known.type == type) return static_cast<int>(i);
  }
  family_.classes.push_back({kind, 0, type, has_prefix});
  return static_cast<int>(family_.classes.size()) - 1;
}

void TermStore::add_size_like(AtomId symbol, const Index& extent, AtomId model) {
  Size made{symbol, {0, 0}, 1, 5};
  for (const Size& size : family_.sizes) {
    if (size.symbol == symbol) return;
    if (size.symbol == model) {
      made.low = size.low;
      made.high = size.high;
    }
  }
  for (int assignment : {0, 1}) made.values[assignment] = substitute(extent, sizes_of(family_, assignment)).constant();
  family_.sizes.push_back(made);
}

std::optional<std::vector<TensorType>> TermStore::inferred_types(int op, const std::vector<TypeId>& inputs) const {
  std::vector<TensorType> types;
  if (const auto known = inferred_.find({op, inputs}); known != inferred_.end()) {
    if (!known->second) return std::nullopt;
    for (TypeId id : *known->second) types.push_back(type(id));
    return types;
  }
  for (TypeId id : inputs) types.push_back(type(id));
  auto inferred = infer_types(ops_[static_cast<size_t>(op)], types);
  if (!inferred.ok()) return std::nullopt;
  for (int assignment : {0, 1})
    if (!holds_under(*inferred, sizes_of(family_, assignment))) return std::nullopt;
  return std::move(inferred->outputs);
}

std::optional<std::vector<TypeId>> TermStore::infer(int op, const std::vector<TypeId>& inputs,
                                                    const std::optional<std::vector<TensorType>>* known) {
  if (const auto entry = inferred_.find({op, inputs}); entry != inferred_.end()) return entry->second;
  const std::optional<std::vector<TensorType>> types = known ? *known : inferred_types(op, inputs);
  std::optional<std::vector<TypeId>> outputs;
  if (types) outputs.emplace();
  if (types)
    for (const TensorType& output : *types) outputs->push_back(intern(output));
  return inferred_.try_emplace({op, inputs}, std::move(outputs)).first->second;
}

std::optional<TermId> TermStore::apply(int op, int output, const std::vector<TermId>& args) {
  std::vector<TypeId> inputs;
  for (TermId arg : args) inputs.push_back(term(arg).type);
  const auto types = infer(op, inputs);
  if (!types) return std::nullopt;
  Term made;
  made.op = op;
  made.output = output;
  made.args = args;
  made.type = (*types)[static_cast<size_t>(output)];
  for (TermId arg : args) {
    made.is_weight = made.is_weight && term(arg).is_weight;
    made.activation_ops += term(arg).activation_ops;
    made.weight_ops += term(arg).weight_ops;
  }
  if (!args.empty()) (made.is_weight ? made.weight_ops : made.activation_ops)++;
  return intern(std::move(made));
}

TermId TermStore::rename(TermId id, const Renaming& renaming) {
  Term made = term(id);
  if (made.is_variable()) {
    const auto number = renaming.find({made.variable_class, made.variable_number});
    return number == renaming.end() ? id : variable(made.variable_class, number->second);
  }
  if (!made.is_application()) return id;
  for (TermId& arg : made.args) arg = rename(arg, renaming);
  return intern(std::move(made));
}

void TermStore::collect_variables(TermId id, std::vector<std::pair<int, int>>& out) const {
  const Term& at = term(id);
  if (at.is_variable()) {
    const std::pair<int, int> name{at.variable_class, at.variable_number};
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  for (TermId arg : at.args) collect_variables(arg, out);
}

void TermStore::collect_attribute_symbols(TermId id, std::set<AtomId>& out) const {
  const Term& own = term(id);
  if (!own.is_application()) return;
  const AlphabetOp& applied = op(own.op);
  for (const auto& [name, value] : applied.attributes) collect_symbols(value, out);
  for (const CompositeStep& step : applied.steps)
    for (const auto& [name, value] : step.attributes) collect_symbols(value, out);
  for (TermId arg : own.args) collect_attribute_symbols(arg, out);
}

std::vector<std::pair<int, int>> TermStore::variables_of(TermId id) const {
  std::vector<std::pair<int, int>> variables;
  collect_variables(id, variables);
  return variables;
}

std::string TermStore::to_string(TermId id) const {
  const Term& at = term(id);
  if (at.is_variable()) return fmt::format("v{}_{}", at.variable_class, at.variable_number);
  if (!at.is_application()) return fmt::format("{}", at.constant);
  std::string text = op_text(at.op) + fmt::format(".{}(", at.output);
  for (size_t i = 0; i < at.args.size(); i++) text += (i ? "," : "") + to_string(at.args[i]);
  return text + ")";
}

// Texts of a term under every order of commutative inputs.
std::vector<std::string> TermStore::spellings(TermId id) const {
  const Term& at = term(id);
  if (!at.is_application()) return {to_string(id)};
  std::vector<std::string> heads{op_text(at.op) + fmt::format(".{}(", at.output)};
  std::vector<std::vector<std::string>> args;
  for (TermId arg : at.args) args.push_back(spellings(arg));
  std::vector<std::vector<size_t>> orders{{}};
  for (size_t i = 0; i < args.size(); i++) orders.front().push_back(i);
  if (args.size() == 2 && op_info(op(at.op).kind).has(kCommutative)) orders.push_back({1, 0});
  std::vector<std::string> texts;
  for (const auto& order : orders) {
    std::vector<std::string> partial = heads;
    for (size_t i : order) {
      std::vector<std::string> longer;
      for (const std::string& head : partial)
        for (const std::string& arg : args[i]) longer.push_back(head + arg + ",");
      partial = std::move(longer);
    }
    for (std::string& text : partial) texts.push_back(std::move(text) + ")");
  }
  return texts;
}

std::string TermStore::canonical_key(TermId id) const {
  std::string best;
  for (const std::string& text : spellings(id)) {
    // Variables "vC_N" numbered by first occurrence.
    std::map<std::string, std::string> names;
    std::map<std::string, int> counts;
    std::string key;
    for (size_t at = 0; at < text.size();) {
      size_t digits = at + 1;
      const bool starts_name = text[at] == 'v' && at > 0 && (text[at - 1] == '(' || text[at - 1] == ',');
      if (!starts_name && !(text[at] == 'v' && at == 0)) {
        key += text[at++];
        continue;
      }
      while (digits < text.size() && (std::isdigit(static_cast<unsigned char>(text[digits])) || text[digits] == '_'))
        digits++;
      const std::string name = text.substr(at, digits - at), variable_class = name.substr(0, name.find('_'));
      const auto [entry, is_new] = names.try_emplace(name);
      if (is_new) entry->second = fmt::format("{}_{}", variable_class, counts[variable_class]++);
      key += entry->second;
      at = digits;
    }
    if (best.empty() || key < best) best = std::move(key);
  }
  return best;
}

}  // namespace gopt::generator
