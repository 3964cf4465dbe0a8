#include "equality/equality_graph.h"

#include <algorithm>

#include "passes/passes.h"

namespace gopt::optimizer {
namespace {

bool is_commutative(OpKind op) {
  return op != OpKind::Input && op != OpKind::Constant && op != OpKind::Opaque && op_info(op).has(kCommutative);
}

bool is_over(const Attributes& attributes, const std::set<AtomId>& symbols) {
  std::set<AtomId> used;
  for (const auto& [name, value] : attributes) collect_symbols(value, used);
  return std::includes(symbols.begin(), symbols.end(), used.begin(), used.end());
}

std::string text_of(const Attributes& attributes) {
  std::string text;
  for (const auto& [name, value] : attributes) {
    text += name + ":" + std::to_string(value.index()) + "=" + to_string(value) + ";";
    if (const auto* tensor = std::get_if<Tensor>(&value)) text += std::to_string(tensor->content_id());
  }
  return text;
}

// Whether an operator of one operand copies it, whatever it is.
bool copies(OpKind op, const TensorType& operand, const Attributes& attributes) {
  GraphBuilder builder;
  const auto made = builder.add(op, {builder.input("x", operand)}, attributes);
  return made.ok() && is_copy(**made);
}

}  // namespace

size_t EqualityGraph::KeyHash::operator()(const Key& key) const {
  uint64_t hash = 0x9e3779b97f4a7c15ULL + key.size();
  for (uint32_t part : key) hash = (hash ^ part) * 0xbf58476d1ce4e5b9ULL, hash ^= hash >> 29;
  return hash;
}

EqualityGraph::Key EqualityGraph::key_of(const EqualityNode& node) const {
  Key key{static_cast<uint32_t>(node.op), node.output, node.output_count, node.attributes, node.leaf};
  for (EqualityId input : node.inputs) key.push_back(input == kNoValue ? kNoValue : find(input));
  if (is_commutative(node.op)) std::sort(key.begin() + 5, key.end());
  return key;
}

EqualityId EqualityGraph::find(EqualityId id) const {
  while (parents_[id] != id) id = parents_[id] = parents_[parents_[id]];
  return id;
}

uint32_t EqualityGraph::type_number(const TensorType& type) {
  const auto [entry, is_new] = type_numbers_.try_emplace(to_string(type), types_.size());
  if (is_new) types_.push_back(type);
  return entry->second;
}

uint32_t EqualityGraph::attribute_number(const Attributes& attributes) {
  const auto [entry, is_new] = attribute_numbers_.try_emplace(text_of(attributes), attribute_lists_.size());
  if (is_new) attribute_lists_.push_back(attributes);
  return entry->second;
}

EqualityId EqualityGraph::intern(EqualityNode node, uint32_t type) {
  Key key = key_of(node);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  const auto id = static_cast<EqualityId>(nodes_.size());
  known_.emplace(std::move(key), id);
  EqualityClass made;
  made.nodes = {id};
  made.type = type;
  made.ops.set(static_cast<size_t>(node.op));
  for (size_t i = 0; i < node.inputs.size(); i++) {
    const EqualityId input = node.inputs[i];
    if (input == kNoValue) continue;
    EqualityClass& used = classes_[find(input)];
    made.is_open = made.is_open || used.is_open;
    if (used.users.empty() || used.users.back() != id) used.users.push_back(id);
  }
  nodes_.push_back(std::move(node));
  links_.emplace_back();
  parents_.push_back(id);
  made.is_weight = is_weight(nodes_.back());
  classes_.push_back(std::move(made));
  class_count_++;
  return id;
}

bool EqualityGraph::is_weight(const EqualityNode& node) const {
  if (node.op == OpKind::Input || node.op == OpKind::Opaque) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](EqualityId input) { return input == kNoValue || class_of(input).is_weight; });
}

EqualityId EqualityGraph::add_input(const std::string& name, const TensorType& type, bool is_open, bool is_weight) {
  const auto [entry, is_new] = input_numbers_.try_emplace(name, input_names_.size());
  if (is_new) input_names_.push_back(name);
  EqualityNode node{OpKind::Input};
  node.leaf = entry->second;
  const EqualityId id = intern(std::move(node), type_number(type));
  EqualityClass& made = classes_[find(id)];
  made.is_open = is_open;
  made.is_weight = is_weight;
  return id;
}

EqualityId EqualityGraph::add_constant(const Tensor& tensor) {
  EqualityNode node{OpKind::Constant};
  const auto same = [&](const Tensor& other) {
    return other.content_id() == tensor.content_id() && other.type() == tensor.type() && other.dims() == tensor.dims();
  };
  const auto known = std::find_if(tensors_.begin(), tensors_.end(), same);
  node.leaf = static_cast<uint32_t>(known - tensors_.begin());
  if (known == tensors_.end()) tensors_.push_back(tensor);
  const EqualityId id = intern(std::move(node), type_number(tensor.tensor_type()));
  EqualityClass& members = classes_[find(id)];
  if (tensor.count() == 1 && members.number == kNoValue) members.number = id;
  return id;
}

std::vector<EqualityId> EqualityGraph::add_opaque(const std::vector<EqualityId>& inputs,
                                                  const std::vector<TensorType>& types) {
  EqualityNode node{OpKind::Opaque};
  node.output_count = static_cast<uint32_t>(types.size());
  node.leaf = opaque_count_++;
  node.inputs = inputs;
  std::vector<EqualityId> outputs;
  for (; node.output < types.size(); node.output++) outputs.push_back(intern(node, type_number(types[node.output])));
  return outputs;
}

const EqualityGraph::Signature* EqualityGraph::signature_of(OpKind op, const std::vector<EqualityId>& inputs,
                                                            const Attributes& attributes, uint32_t output_count) {
  Key key{static_cast<uint32_t>(op), output_count, attribute_number(attributes)};
  std::vector<TensorType> types;
  for (EqualityId input : inputs) {
    key.push_back(input == kNoValue ? kNoValue : class_of(input).type);
    types.push_back(input == kNoValue ? TensorType{} : type(input));
  }
  const auto [entry, is_new] = signatures_.try_emplace(std::move(key));
  if (!is_new) return entry->second ? &*entry->second : nullptr;
  const auto canonical = canonical_attributes(op, types, attributes, static_cast<int>(output_count));
  if (!canonical.ok()) return nullptr;
  if (model_ && !is_over(*canonical, model_->symbols)) return nullptr;
  const auto inferred = infer_types(op, types, *canonical, static_cast<int>(output_count));
  if (!inferred.ok()) return nullptr;
  const auto is_unknown = [](const Requirement& requirement) { return requirement.from_broadcast; };
  if (model_ && std::any_of(inferred->requirements.begin(), inferred->requirements.end(), is_unknown)) return nullptr;
  Signature made;
  made.attributes = attribute_number(*canonical);
  for (const TensorType& output : inferred->outputs) {
    if (!output.shape) return nullptr;
    made.types.push_back(type_number(output));
  }
  for (const Requirement& requirement : inferred->requirements) made.requirements.push_back(requirement.cond);
  made.is_copy = types.size() == 1 && output_count == 1 && types[0].shape && copies(op, types[0], *canonical);
  entry->second = std::move(made);
  return &*entry->second;
}

std::optional<std::vector<TensorType>> EqualityGraph::types_of(OpKind op, const std::vector<EqualityId>& inputs,
                                                               const Attributes& attributes, uint32_t output_count) {
  const Signature* signature = signature_of(op, inputs, attributes, output_count);
  if (!signature) return std::nullopt;
  std::vector<TensorType> types;
  for (uint32_t type : signature->types) types.push_back(types_[type]);
  return types;
}

std::optional<std::vector<EqualityId>> EqualityGraph::add(OpKind op, const std::vector<EqualityId>& inputs,
                                                          const Attributes& attributes, uint32_t output_count,
                                                          bool checked) {
  const Signature* signature = signature_of(op, inputs, attributes, output_count);
  if (!signature) return std::nullopt;
  EqualityNode node{op};
  node.output_count = output_count;
  node.attributes = signature->attributes;
  node.inputs = inputs;
  if (checked && !known_.count(key_of(node)))
    for (const Cond& requirement : signature->requirements)
      if (!facts_.holds(requirement)) return std::nullopt;
  std::vector<EqualityId> outputs;
  for (uint32_t output = 0; output < output_count; output++) {
    node.output = output;
    outputs.push_back(intern(node, signature->types[output]));
  }
  if (signature->is_copy && can_merge(outputs.front(), inputs.front()))
    merge(outputs.front(), inputs.front(), {kCopy, 0, {}, {}});
  return outputs;
}

std::optional<EqualityId> EqualityGraph::find_output(EqualityId id, uint32_t output) const {
  EqualityNode node = nodes_[id];
  node.output = output;
  const auto known = known_.find(key_of(node));
  if (known == known_.end()) return std::nullopt;
  return known->second;
}

bool EqualityGraph::can_merge(EqualityId a, EqualityId b) const {
  const EqualityClass &first = class_of(a), &second = class_of(b);
  return first.type == second.type && first.is_open == second.is_open;
}

bool EqualityGraph::merge(EqualityId a, EqualityId b, EqualityReason reason) {
  EqualityId into = find(a), from = find(b);
  if (into == from) return false;
  // The proof tree of b gets b as its root, and then hangs on a.
  Link link{a, std::move(reason), false};
  for (EqualityId id = b; id != kNoValue;) {
    Link next = std::exchange(links_[id], std::move(link));
    const EqualityId up = next.to;
    if (up == kNoValue) break;
    link = {id, std::move(next.reason), !next.is_forward};
    id = up;
  }
  const auto size = [&](EqualityId id) { return classes_[id].users.size() + classes_[id].nodes.size(); };
  if (size(into) < size(from)) std::swap(into, from);
  const EqualityClass source = std::exchange(classes_[from], {});
  class_count_--;
  EqualityClass& target = classes_[into];
  target.nodes.insert(target.nodes.end(), source.nodes.begin(), source.nodes.end());
  target.users.insert(target.users.end(), source.users.begin(), source.users.end());
  target.ops |= source.ops;
  if (target.number == kNoValue) target.number = source.number;
  const bool learned = target.is_weight != source.is_weight;
  target.is_weight = target.is_weight || source.is_weight;
  parents_[from] = into;
  merged_.push_back(into);
  if (learned) mark_weights(into);
  return true;
}

void EqualityGraph::mark_weights(EqualityId id) {
  std::vector<EqualityId> open = {id};
  while (!open.empty()) {
    const EqualityId at = open.back();
    open.pop_back();
    for (EqualityId user : class_of(at).users) {
      EqualityClass& above = classes_[find(user)];
      if (above.is_weight || !is_weight(nodes_[user])) continue;
      above.is_weight = true;
      open.push_back(user);
    }
  }
}

void EqualityGraph::restore_users(EqualityId id) {
  std::vector<EqualityId> users = class_of(id).users;
  std::sort(users.begin(), users.end());
  users.erase(std::unique(users.begin(), users.end()), users.end());
  std::vector<EqualityId> kept;
  for (EqualityId user : users) {
    if (nodes_[user].is_duplicate) continue;
    const auto [entry, is_new] = known_.try_emplace(key_of(nodes_[user]), user);
    const EqualityId other = entry->second;
    if (other != user) {
      nodes_[user].is_duplicate = true;
      if (find(other) != find(user) && can_merge(user, other)) {
        merge(user, other, {kCongruence, 0, order_of(other, nodes_[user].inputs), {}});
      }
      continue;
    }
    kept.push_back(user);
  }
  // A union of this class with another may have happened on the way; what it brought is looked at in its turn.
  EqualityClass& members = classes_[find(id)];
  if (find(id) == id && members.users.size() >= users.size()) {
    const std::vector<EqualityId> later(members.users.begin(), members.users.end());
    std::vector<EqualityId> all = kept;
    for (EqualityId user : later)
      if (!nodes_[user].is_duplicate && !std::binary_search(users.begin(), users.end(), user)) all.push_back(user);
    members.users = std::move(all);
  }
}

void EqualityGraph::restore_congruence() {
  while (!merged_.empty()) {
    std::vector<EqualityId> open = std::exchange(merged_, {});
    for (EqualityId& id : open) id = find(id);
    std::sort(open.begin(), open.end());
    open.erase(std::unique(open.begin(), open.end()), open.end());
    for (EqualityId id : open) restore_users(find(id));
  }
  for (auto& ids : by_op_) ids.clear();
  for (EqualityId id = 0; id < classes_.size(); id++) {
    if (find(id) != id) continue;
    EqualityClass& members = classes_[id];
    std::erase_if(members.nodes, [&](EqualityId n) { return nodes_[n].is_duplicate; });
    for (size_t op = 0; op < kMaxOperators; op++)
      if (members.ops.test(op)) by_op_[op].push_back(id);
  }
}

EqualityGraph::Paths EqualityGraph::paths_between(EqualityId from, EqualityId to) const {
  const auto path_to_root = [this](EqualityId id) {
    std::vector<EqualityId> path;
    for (; id != kNoValue; id = link(id).to) path.push_back(id);
    return path;
  };
  Paths paths{path_to_root(from), path_to_root(to)};
  GOPT_CHECK(paths.up.back() == paths.down.back(), "values that are not equal are to be explained");
  while (!paths.up.empty() && !paths.down.empty() && paths.up.back() == paths.down.back()) {
    paths.up.pop_back();
    paths.down.pop_back();
  }
  return paths;
}

std::vector<uint8_t> EqualityGraph::order_of(EqualityId id, const std::vector<EqualityId>& inputs) const {
  const EqualityNode& node = nodes_[id];
  std::vector<uint8_t> order(inputs.size());
  std::vector<bool> taken(inputs.size());
  for (size_t i = 0; i < inputs.size(); i++) {
    const auto fits = [&](size_t at) {
      const EqualityId own = node.inputs[at];
      if (taken[at] || own == kNoValue || inputs[i] == kNoValue) return !taken[at] && own == inputs[i];
      return find(own) == find(inputs[i]);
    };
    size_t at = is_commutative(node.op) ? 0 : i;
    while (at < inputs.size() && !fits(at)) at++;
    GOPT_CHECK(at < inputs.size(), "arguments that are not those of the application");
    taken[at] = true;
    order[i] = static_cast<uint8_t>(at);
  }
  return order;
}

}  // namespace gopt::optimizer
