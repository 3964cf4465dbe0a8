#include "generator.h"

#include <cstdio>
#include <cstdlib>

namespace taso_generator {
namespace {

struct Variable {
  const char* name;  // its first letter says whether it is a weight
  std::vector<int> shape;
};
const std::vector<Variable>& variables() {
  static const std::vector<Variable> all{{"x1", {kBatch, 4}},
                                         {"x2", {kBatch, 4}},
                                         {"x3", {kBatch, 4}},
                                         {"w1", {4, 4}},
                                         {"w2", {4, 4}},
                                         {"w3", {4, 4}},
                                         {"i1", {kBatch, 4, 5, 5}},
                                         {"i2", {kBatch, 4, 5, 5}},
                                         {"i3", {kBatch, 4, 5, 5}},
                                         {"w4", {4, 4, 3, 3}},
                                         {"w5", {4, 4, 3, 3}},
                                         {"w6", {4, 4, 3, 3}},
                                         {"w7", {4, 4, 1, 3}},
                                         {"w8", {4, 4, 1, 3}},
                                         {"w9", {4, 4, 1, 3}},
                                         {"w10", {4, 4, 3, 1}},
                                         {"w11", {4, 4, 3, 1}},
                                         {"w12", {4, 4, 3, 1}},
                                         {"w13", {4, 1, 3, 3}},
                                         {"s0", {}}};
  return all;
}
bool is_weight(const Ref& ref) {
  return ref.is_variable() && variables()[static_cast<size_t>(-ref.source - 1)].name[0] == 'w';
}

}  // namespace

// The numbers are those of glibc's generator, as it starts.
Generator::Generator() : operators_(operators()), pruning_(operators_) {
  for (const Operator& op : operators_) inputs_.push_back(op.inputs());
  int8_t number = 0;
  for (const Variable& variable : variables()) {
    Tensor& tensor = tensors_[tensor_count_++];
    tensor.rank = static_cast<int>(variable.shape.size());
    std::copy(variable.shape.begin(), variable.shape.end(), tensor.extents.begin());
    tensor.make_dense();
    tensor.ref = {--number, 0};
    for (size_t i = 0; i < static_cast<size_t>(tensor.size()); i++) tensor.data[i] = std::rand() - RAND_MAX / 2;
    tensor.make_hash();
  }
  variable_count_ = tensor_count_;
  seen_.reserve(17'000'000);
}

std::vector<Rule> Generator::rules() const {
  std::vector<Rule> kept;
  std::copy_if(rules_.begin(), rules_.end(), std::back_inserter(kept), [](const Rule& r) { return !r.is_instance; });
  return kept;
}

void Generator::walk(size_t old_tensors) {
  for (size_t added = old_tensors; added < tensor_count_; added++)
    for (size_t other = 0; other < added; other++)
      if (tensors_[added].is_same_as(tensors_[other])) return;
  for (int i = 0; i + 1 < graph_.count; i++)
    if (graph_.applications[static_cast<size_t>(i)] == graph_.applications[graph_.count - 1U]) return;
  visit();
  if (graph_.count == kMaxApplications) return;
  for (size_t op = 0; op < operators_.size(); op++) extend(op);
}

void Generator::extend(size_t number) {
  const Operator& op = operators_[number];
  const size_t count = tensor_count_;
  if (op.inputs() == 0) return apply(number, nullptr, nullptr);
  const bool is_commutative = op.kind == Kind::Add || op.kind == Kind::Mul || op.kind == Kind::Concat;
  for (size_t a = 0; a < count; a++) {
    if (op.inputs() == 1) {
      apply(number, &tensors_[a], nullptr);
      continue;
    }
    if (op.kind == Kind::Conv && is_weight(tensors_[a].ref)) continue;
    for (size_t b = is_commutative ? a + 1 : 0; b < count; b++)
      if (op.kind != Kind::ScalarMul || a != b) apply(number, &tensors_[a], &tensors_[b]);
  }
}

void Generator::apply(size_t number, const Tensor* a, const Tensor* b) {
  const Operator& op = operators_[number];
  const size_t before = tensor_count_;
  if (!evaluate(op, a, b, &tensors_[before])) return;
  for (int port = 0; port < op.outputs(); port++) {
    Tensor& made = tensors_[tensor_count_++];
    made.ref = {static_cast<int8_t>(graph_.count), static_cast<int8_t>(port)};
    made.make_hash();
  }
  Application& application = graph_.applications[graph_.count++];
  application = {static_cast<uint8_t>(number), {a ? a->ref : Ref{}, b ? b->ref : Ref{}}};
  walk(before);
  graph_.count--;
  tensor_count_ = before;
}

bool Generator::is_read(const Ref& ref) const {
  for (size_t i = 0; i < graph_.count; i++)
    for (size_t k = 0; k < static_cast<size_t>(inputs_[graph_.applications[i].op]); k++)
      if (graph_.applications[i].inputs[k] == ref) return true;
  return false;
}

uint64_t Generator::fingerprint() const {
  int outputs = 0;
  for (size_t i = variable_count_; i < tensor_count_; i++) outputs += !is_read(tensors_[i].ref);
  uint64_t hash = combine(17, outputs);
  for (size_t i = tensor_count_; i-- > variable_count_;)
    if (!is_read(tensors_[i].ref)) hash = hash * 31 + tensors_[i].hash;
  return hash;
}

void Generator::visit() {
  if (++graph_count_ % 1'000'000 == 0) std::fprintf(stderr, "%zu graphs, %zu rules\n", graph_count_, rules_.size());
  const auto [known, is_new] = seen_.try_emplace(fingerprint(), graph_);
  if (is_new || !pruning_.is_kept(known->second, graph_)) return;
  for (Rule& rule : rules_) {
    if (rule.is_instance) continue;
    if (pruning_.is_instance(rule.source, rule.target, known->second, graph_) ||
        pruning_.is_instance(rule.source, rule.target, graph_, known->second))
      return;
    if (pruning_.is_instance(known->second, graph_, rule.source, rule.target) ||
        pruning_.is_instance(graph_, known->second, rule.source, rule.target))
      rule.is_instance = true;
  }
  rules_.push_back({known->second, graph_});
}

}  // namespace taso_generator
