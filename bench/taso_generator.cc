// Makes the rules of TASO's generator anew: all graphs of up to three of its operators over its twenty tensors, in its
// order, evaluated on its random numbers; two graphs whose outputs have one fingerprint are a rule unless its pruning
// says no. At its defaults these are 16,405,411 graphs and 619 rules, written in the form that `rulegen verify
// --format taso-json` reads (docs/grammar.md). What is odd here is odd there: relu is a polynomial, arithmetic wraps
// around, strides and the places of past concatenations are part of a tensor.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

constexpr int kMaxElements = 512;
constexpr int kMaxApplications = 3;
constexpr int kBatch = 2;

uint64_t combine(uint64_t hash, int value) { return hash * 31 + static_cast<uint64_t>(value); }
int product(int a, int b) { return static_cast<int>(static_cast<uint32_t>(a) * static_cast<uint32_t>(b)); }
int sum(int a, int b) { return static_cast<int>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b)); }
int relu_stand_in(int x) { return sum(product(x, sum(x, 1)), 1); }

// Where along an axis tensors were joined, the last seam last.
struct Seams {
  int count = 0;
  std::array<int, 16> places{};
  bool operator==(const Seams& other) const {
    return count == other.count && std::equal(places.begin(), places.begin() + count, other.places.begin());
  }
  void add(int place) { places[static_cast<size_t>(count++)] = place; }
};

// A variable has a negative number; else it is output `port` of application `source`.
struct Ref {
  int8_t source = 0, port = 0;
  bool operator==(const Ref& other) const = default;
  bool is_variable() const { return source < 0; }
};

struct Tensor {
  int rank = 0;
  std::array<int, 4> extents{}, strides{};
  std::array<Seams, 4> seams{};
  Ref ref;
  uint64_t hash = 0;
  std::array<int, kMaxElements> data;

  int size() const {
    int total = 1;
    for (int axis = 0; axis < rank; axis++) total *= extents[static_cast<size_t>(axis)];
    return total;
  }
  int place(int a, int b) const { return a * strides[0] + b * strides[1]; }
  int place(int a, int b, int c, int d) const { return place(a, b) + c * strides[2] + d * strides[3]; }
  int& at(int a, int b) { return data[static_cast<size_t>(place(a, b))]; }
  int at(int a, int b) const { return data[static_cast<size_t>(place(a, b))]; }
  int& at(int a, int b, int c, int d) { return data[static_cast<size_t>(place(a, b, c, d))]; }
  int at(int a, int b, int c, int d) const { return data[static_cast<size_t>(place(a, b, c, d))]; }

  void take_form_of(const Tensor& other) {
    rank = other.rank;
    extents = other.extents;
    strides = other.strides;
    seams = other.seams;
  }
  void make_dense() {
    int step = 1;
    for (size_t axis = static_cast<size_t>(rank); axis-- > 0; step *= extents[axis]) strides[axis] = step;
  }
  void make_hash() {
    hash = combine(17, rank);
    for (size_t axis = 0; axis < static_cast<size_t>(rank); axis++) {
      hash = combine(combine(hash, extents[axis]), strides[axis]);
      uint64_t own = combine(17, seams[axis].count);
      for (int i = 0; i < seams[axis].count; i++) own = combine(own, seams[axis].places[static_cast<size_t>(i)]);
      hash = hash * 31 + own;
    }
    for (int i = 0; i < size(); i++) hash = combine(hash, data[static_cast<size_t>(i)]);
  }
  bool is_same_as(const Tensor& other) const {
    if (hash != other.hash || rank != other.rank) return false;
    for (size_t axis = 0; axis < static_cast<size_t>(rank); axis++)
      if (extents[axis] != other.extents[axis] || strides[axis] != other.strides[axis] ||
          !(seams[axis] == other.seams[axis]))
        return false;
    return std::equal(data.begin(), data.begin() + size(), other.data.begin());
  }
};

// Calls visit(place in a, place in b) for every position of the box, by the strides of each.
template <typename Visit>
void for_each_position(const Tensor& box, const std::array<int, 4>& a, const std::array<int, 4>& b,
                       const Visit& visit) {
  const int size = box.size();
  for (int i = 0; i < size; i++) {
    int at_a = 0, at_b = 0, rest = i;
    for (auto axis = static_cast<size_t>(box.rank); axis-- > 0; rest /= box.extents[axis]) {
      const int position = rest % box.extents[axis];
      at_a += position * a[axis];
      at_b += position * b[axis];
    }
    visit(static_cast<size_t>(at_a), static_cast<size_t>(at_b));
  }
}

// ---- operators ----

enum class Kind {
  MatMul,
  Add,
  Mul,
  Conv,
  AveragePool,
  MaxPool,
  PoolKernel,
  IdentityKernel,
  IdentityMatrix,
  Ones,
  Enlarge,
  ScalarMul,
  Relu,
  Concat,
  Split,
  Transpose
};

struct Operator {
  Kind kind;
  int first = 0, second = 0;  // a kernel's size; the axis and rank of Concat and Split
  bool flag = false;          // Conv: with relu; Transpose: the data is moved, too

  int inputs() const {
    switch (kind) {
      case Kind::MatMul:
      case Kind::Add:
      case Kind::Mul:
      case Kind::Conv:
      case Kind::ScalarMul:
      case Kind::Concat: return 2;
      case Kind::PoolKernel:
      case Kind::IdentityKernel:
      case Kind::IdentityMatrix:
      case Kind::Ones: return 0;
      default: return 1;
    }
  }
  int outputs() const { return kind == Kind::Split ? 2 : 1; }
};

bool convolve(const Operator& op, const Tensor& x, const Tensor& w, Tensor& out) {
  if (x.rank != 4 || w.rank != 4 || w.extents[2] != op.first || w.extents[3] != op.second) return false;
  if (x.extents[1] % w.extents[1] != 0) return false;
  const int groups = x.extents[1] / w.extents[1];
  if (w.extents[0] % groups != 0) return false;
  out.rank = 4;
  out.extents = {x.extents[0], w.extents[0], x.extents[2], x.extents[3]};
  out.seams = {x.seams[0], w.seams[0], x.seams[2], x.seams[3]};
  out.make_dense();
  if (out.size() > kMaxElements) return false;
  const int pad_h = (op.first - 1) / 2, pad_w = (op.second - 1) / 2, height = x.extents[2], width = x.extents[3];
  for (int n = 0; n < out.extents[0]; n++)
    for (int c = 0; c < out.extents[1]; c++) {
      const int channel = c / (w.extents[0] / groups) * w.extents[1];
      for (int h = 0; h < height; h++)
        for (int v = 0; v < width; v++) {
          int value = 0;
          for (int i = 0; i < w.extents[1]; i++)
            for (int kh = std::max(0, pad_h - h); kh < std::min(op.first, height + pad_h - h); kh++)
              for (int kw = std::max(0, pad_w - v); kw < std::min(op.second, width + pad_w - v); kw++)
                value = sum(value, product(w.at(c, i, kh, kw), x.at(n, channel + i, h + kh - pad_h, v + kw - pad_w)));
          out.at(n, c, h, v) = op.flag ? relu_stand_in(value) : value;
        }
    }
  return true;
}

// The average is the sum; the maximum is 0 at least.
bool pool(const Operator& op, const Tensor& x, Tensor& out) {
  if (x.rank != 4) return false;
  out.take_form_of(x);
  out.seams[1] = {};
  out.make_dense();
  const int height = x.extents[2], width = x.extents[3];
  for (int n = 0; n < x.extents[0]; n++)
    for (int c = 0; c < x.extents[1]; c++)
      for (int h = 0; h < height; h++)
        for (int v = 0; v < width; v++) {
          int value = 0;
          for (int i = std::max(0, h - 1); i <= std::min(height - 1, h + 1); i++)
            for (int j = std::max(0, v - 1); j <= std::min(width - 1, v + 1); j++)
              value = op.kind == Kind::MaxPool ? std::max(value, x.at(n, c, i, j)) : sum(value, x.at(n, c, i, j));
          out.at(n, c, h, v) = value;
        }
  return true;
}

bool multiply(const Tensor& a, const Tensor& b, Tensor& out) {
  if (a.rank != 2 || b.rank != 2 || a.extents[1] != b.extents[0] || b.extents[0] == kBatch) return false;
  if (&a == &b) return false;
  out.rank = 2;
  out.extents = {a.extents[0], b.extents[1]};
  out.seams = {a.seams[0], b.seams[1]};
  out.make_dense();
  for (int i = 0; i < out.extents[0]; i++)
    for (int j = 0; j < out.extents[1]; j++) {
      int value = 0;
      for (int k = 0; k < a.extents[1]; k++) value = sum(value, product(a.at(i, k), b.at(k, j)));
      out.at(i, j) = value;
    }
  return true;
}

bool pointwise(const Operator& op, const Tensor& a, const Tensor& b, Tensor& out) {
  if (a.rank != b.rank) return false;
  for (size_t axis = 0; axis < static_cast<size_t>(a.rank); axis++)
    if (a.extents[axis] != b.extents[axis] || a.strides[axis] != b.strides[axis]) return false;
  out.take_form_of(a);
  for (size_t axis = 0; axis < 4; axis++)
    if (!(a.seams[axis] == b.seams[axis])) out.seams[axis] = {};
  const auto size = static_cast<size_t>(a.size());
  for (size_t i = 0; i < size; i++)
    out.data[i] = op.kind == Kind::Add ? sum(a.data[i], b.data[i]) : product(a.data[i], b.data[i]);
  return true;
}

bool scale(const Tensor& a, const Tensor& scalar, Tensor& out) {
  if (scalar.rank != 0) return false;
  out.take_form_of(a);
  for (size_t i = 0; i < static_cast<size_t>(a.size()); i++) out.data[i] = product(a.data[i], scalar.data[0]);
  return true;
}

bool concat(const Operator& op, const Tensor& a, const Tensor& b, Tensor& out) {
  const auto joined = static_cast<size_t>(op.first);
  if (a.rank != op.second || b.rank != op.second) return false;
  for (size_t axis = 0; axis < static_cast<size_t>(a.rank); axis++)
    if (axis != joined && a.extents[axis] != b.extents[axis]) return false;
  out.take_form_of(a);
  for (size_t axis = 0; axis < static_cast<size_t>(a.rank); axis++)
    if (axis != joined && !(a.seams[axis] == b.seams[axis])) out.seams[axis] = {};
  for (int i = 0; i < b.seams[joined].count; i++)
    out.seams[joined].add(a.extents[joined] + b.seams[joined].places[static_cast<size_t>(i)]);
  out.seams[joined].add(a.extents[joined]);
  out.extents[joined] += b.extents[joined];
  if (out.size() > kMaxElements) return false;
  out.make_dense();
  for_each_position(a, out.strides, a.strides, [&](size_t to, size_t from) { out.data[to] = a.data[from]; });
  const auto start = static_cast<size_t>(a.extents[joined] * out.strides[joined]);
  for_each_position(b, out.strides, b.strides, [&](size_t to, size_t from) { out.data[start + to] = b.data[from]; });
  return true;
}

// At the last seam; those behind it keep their numbers.
bool split(const Operator& op, const Tensor& x, Tensor* outs) {
  const auto axis = static_cast<size_t>(op.first);
  if (x.rank == 0 || x.seams[axis].count == 0) return false;
  const Seams& all = x.seams[axis];
  const int middle = all.places[static_cast<size_t>(all.count - 1)];
  for (int k = 0; k < 2; k++) {
    outs[k].take_form_of(x);
    outs[k].seams[axis] = {};
    outs[k].extents[axis] = k == 0 ? middle : x.extents[axis] - middle;
    outs[k].make_dense();
    const auto start = static_cast<size_t>(k == 0 ? 0 : middle * x.strides[axis]);
    for_each_position(outs[k], outs[k].strides, x.strides,
                      [&](size_t to, size_t from) { outs[k].data[to] = x.data[start + from]; });
  }
  int next = 0;
  while (next < all.count && all.places[static_cast<size_t>(next)] < middle)
    outs[0].seams[axis].add(all.places[static_cast<size_t>(next++)]);
  while (next < all.count - 1) outs[1].seams[axis].add(all.places[static_cast<size_t>(next++)]);
  return true;
}

bool transpose(const Operator& op, const Tensor& x, Tensor& out) {
  if (x.rank != 2) return false;
  out.take_form_of(x);
  std::swap(out.extents[0], out.extents[1]);
  std::swap(out.strides[0], out.strides[1]);
  std::swap(out.seams[0], out.seams[1]);
  const std::array<int, 4> from_strides = out.strides;
  if (op.flag) out.make_dense();
  for_each_position(out, out.strides, from_strides, [&](size_t to, size_t from) { out.data[to] = x.data[from]; });
  return true;
}

bool enlarge(const Operator& op, const Tensor& x, Tensor& out) {
  if (x.rank != 4 || !x.ref.is_variable() || x.extents[2] > op.first || x.extents[3] > op.second) return false;
  if (x.extents[2] == op.first && x.extents[3] == op.second) return false;
  out.rank = 4;
  out.extents = {x.extents[0], x.extents[1], op.first, op.second};
  out.seams = {x.seams[0], x.seams[1]};
  out.make_dense();
  std::fill(out.data.begin(), out.data.begin() + out.size(), 0);
  const int above = (op.first - x.extents[2]) / 2, left = (op.second - x.extents[3]) / 2;
  const auto start = static_cast<size_t>(out.place(0, 0, above, left));
  for_each_position(x, out.strides, x.strides, [&](size_t to, size_t from) { out.data[start + to] = x.data[from]; });
  return true;
}

void constant(const Operator& op, Tensor& out) {
  out.rank = op.kind == Kind::IdentityMatrix ? 2 : 4;
  out.extents = op.kind == Kind::PoolKernel ? std::array{4, 1, 3, 3}
                : op.kind == Kind::Ones     ? std::array{kBatch, 4, 5, 5}
                                            : std::array{4, 4, 3, 3};
  out.seams = {};
  out.make_dense();
  const bool is_identity = op.kind == Kind::IdentityKernel || op.kind == Kind::IdentityMatrix;
  std::fill(out.data.begin(), out.data.begin() + out.size(), is_identity ? 0 : 1);
  for (int i = 0; is_identity && i < 4; i++) (out.rank == 2 ? out.at(i, i) : out.at(i, i, 1, 1)) = 1;
}

bool evaluate(const Operator& op, const Tensor* a, const Tensor* b, Tensor* outs) {
  switch (op.kind) {
    case Kind::MatMul: return multiply(*a, *b, *outs);
    case Kind::Add:
    case Kind::Mul: return pointwise(op, *a, *b, *outs);
    case Kind::Conv: return convolve(op, *a, *b, *outs);
    case Kind::AveragePool:
    case Kind::MaxPool: return pool(op, *a, *outs);
    case Kind::PoolKernel:
    case Kind::IdentityKernel:
    case Kind::IdentityMatrix:
    case Kind::Ones: constant(op, *outs); return true;
    case Kind::Enlarge: return enlarge(op, *a, *outs);
    case Kind::ScalarMul: return scale(*a, *b, *outs);
    case Kind::Relu:
      outs->take_form_of(*a);
      for (size_t i = 0; i < static_cast<size_t>(a->size()); i++) outs->data[i] = relu_stand_in(a->data[i]);
      return true;
    case Kind::Concat: return concat(op, *a, *b, *outs);
    case Kind::Split: return split(op, *a, outs);
    case Kind::Transpose: return transpose(op, *a, *outs);
  }
  return false;
}

// In TASO's order. No tensor is a kernel of 1x1.
std::vector<Operator> operators() {
  std::vector<Operator> all{{Kind::MatMul}, {Kind::Add}, {Kind::Mul}};
  const std::vector<std::pair<int, int>> kernels{{3, 3}, {1, 1}, {1, 3}};
  for (auto [h, w] : kernels)
    for (bool relu : {false, true}) all.push_back({Kind::Conv, h, w, relu});
  for (Kind kind : {Kind::AveragePool, Kind::MaxPool, Kind::PoolKernel, Kind::IdentityKernel, Kind::IdentityMatrix,
                    Kind::Ones, Kind::Enlarge})
    all.push_back({kind, 3, 3});
  all.push_back({Kind::ScalarMul});
  all.push_back({Kind::Relu});
  for (int rank : {2, 4})
    for (int axis : {1, 0}) all.push_back({Kind::Concat, axis, rank});
  for (int axis : {1, 0}) all.push_back({Kind::Split, axis});
  for (bool moved : {false, true}) all.push_back({Kind::Transpose, 0, 0, moved});
  return all;
}

// ---- variables ----

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

// ---- graphs ----

struct Application {
  uint8_t op = 0;
  std::array<Ref, 2> inputs{};  // those that it has
  bool operator==(const Application& other) const = default;
};
struct Graph {
  uint8_t count = 0;
  std::array<Application, kMaxApplications> applications{};
};
struct Rule {
  Graph source, target;
  bool is_instance = false;
};

class Generator {
 public:
  Generator() : operators_(operators()) {
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

  void walk() { walk(tensor_count_); }

  size_t graph_count() const { return graph_count_; }
  size_t class_count() const { return seen_.size(); }
  std::vector<Rule> rules() const {
    std::vector<Rule> kept;
    std::copy_if(rules_.begin(), rules_.end(), std::back_inserter(kept), [](const Rule& r) { return !r.is_instance; });
    return kept;
  }
  const std::vector<Operator>& known_operators() const { return operators_; }

 private:
  // Goes on from the graph at hand, whose last application made the tensors from `old_tensors` on. None is made twice.
  void walk(size_t old_tensors) {
    for (size_t added = old_tensors; added < tensor_count_; added++)
      for (size_t other = 0; other < added; other++)
        if (tensors_[added].is_same_as(tensors_[other])) return;
    for (int i = 0; i + 1 < graph_.count; i++)
      if (graph_.applications[static_cast<size_t>(i)] == graph_.applications[graph_.count - 1U]) return;
    visit();
    if (graph_.count == kMaxApplications) return;
    for (size_t op = 0; op < operators_.size(); op++) extend(op);
  }

  void extend(size_t number) {
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

  void apply(size_t number, const Tensor* a, const Tensor* b) {
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

  bool is_read(const Ref& ref) const {
    for (size_t i = 0; i < graph_.count; i++)
      for (size_t k = 0; k < static_cast<size_t>(inputs_[graph_.applications[i].op]); k++)
        if (graph_.applications[i].inputs[k] == ref) return true;
    return false;
  }

  uint64_t fingerprint() const {
    int outputs = 0;
    for (size_t i = variable_count_; i < tensor_count_; i++) outputs += !is_read(tensors_[i].ref);
    uint64_t hash = combine(17, outputs);
    for (size_t i = tensor_count_; i-- > variable_count_;)
      if (!is_read(tensors_[i].ref)) hash = hash * 31 + tensors_[i].hash;
    return hash;
  }

  void visit() {
    if (++graph_count_ % 1'000'000 == 0) std::fprintf(stderr, "%zu graphs, %zu rules\n", graph_count_, rules_.size());
    const auto [known, is_new] = seen_.try_emplace(fingerprint(), graph_);
    if (is_new || !is_kept(known->second, graph_)) return;
    for (Rule& rule : rules_) {
      if (rule.is_instance) continue;
      if (is_instance(rule.source, rule.target, known->second, graph_) ||
          is_instance(rule.source, rule.target, graph_, known->second))
        return;
      if (is_instance(known->second, graph_, rule.source, rule.target) ||
          is_instance(graph_, known->second, rule.source, rule.target))
        rule.is_instance = true;
    }
    rules_.push_back({known->second, graph_});
  }

  // ---- pruning ----

  // One operator with the same variables, which the sides could share.
  bool share(const Application& a, const Application& b) const {
    if (a.op != b.op) return false;
    for (size_t k = 0; k < static_cast<size_t>(inputs_[a.op]); k++)
      if (!(a.inputs[k] == b.inputs[k]) || !a.inputs[k].is_variable()) return false;
    return true;
  }
  // The last operators are one with at most one input that is not the same variable.
  bool end_alike(const Application& a, const Application& b) const {
    if (a.op != b.op) return false;
    int different = 0;
    for (size_t k = 0; k < static_cast<size_t>(inputs_[a.op]); k++)
      different += a.inputs[k].source != b.inputs[k].source || !a.inputs[k].is_variable();
    return different <= 1;
  }
  int first_use(const Graph& graph, int variable) const {
    int place = 0;
    for (size_t i = 0; i < graph.count; i++)
      for (size_t k = 0; k < static_cast<size_t>(inputs_[graph.applications[i].op]); k++, place++)
        if (graph.applications[i].inputs[k].source == variable) return place;
    return place;
  }
  // Variables of the larger sorts are used in the order of their names.
  bool is_in_order(const Graph& graph) const {
    for (int first : {-1, -4, -7, -10})
      if (first_use(graph, first) > first_use(graph, first - 1) ||
          first_use(graph, first - 1) > first_use(graph, first - 2))
        return false;
    return true;
  }
  bool is_kept(const Graph& a, const Graph& b) const {
    for (size_t i = 0; i < a.count; i++)
      for (size_t j = 0; j < b.count; j++)
        if (share(a.applications[i], b.applications[j])) return false;
    if (end_alike(a.applications[a.count - 1U], b.applications[b.count - 1U])) return false;
    return is_in_order(a) || is_in_order(b);
  }

  using Substitution = std::array<int8_t, 32>;
  bool matches(const Graph& general, const Graph& special, Substitution& images) const {
    if (general.count != special.count) return false;
    for (size_t i = 0; i < general.count; i++) {
      const Application &g = general.applications[i], &s = special.applications[i];
      if (g.op != s.op) return false;
      for (size_t k = 0; k < static_cast<size_t>(inputs_[g.op]); k++) {
        const Ref &from = g.inputs[k], &to = s.inputs[k];
        if (!from.is_variable() || !to.is_variable()) {
          if (!(from == to)) return false;
          continue;
        }
        int8_t& image = images[static_cast<size_t>(-from.source)];
        if (image != 0 && image != to.source) return false;
        image = to.source;
      }
    }
    return true;
  }
  bool is_instance(const Graph& source, const Graph& target, const Graph& own_source, const Graph& own_target) const {
    Substitution images{};
    return matches(source, own_source, images) && matches(target, own_target, images);
  }

  const std::vector<Operator> operators_;
  std::vector<int> inputs_;  // of each operator
  std::array<Tensor, 32> tensors_{};
  size_t tensor_count_ = 0, variable_count_ = 0, graph_count_ = 0;
  Graph graph_;
  std::unordered_map<uint64_t, Graph> seen_;  // the first graph of each fingerprint
  std::vector<Rule> rules_;
};

// ---- the file ----

std::string text_of(const Operator& op) {
  const auto number = [](const char* name, int value) {
    return "\"" + std::string(name) + "\": " + std::to_string(value);
  };
  const std::string kernel = number("kernel_h", op.first) + ", " + number("kernel_w", op.second);
  const std::string window =
      kernel + ", " + number("stride_h", 1) + ", " + number("stride_w", 1) + ", \"pad\": \"same\"";
  std::string name, parameters;
  switch (op.kind) {
    case Kind::MatMul: name = "matmul", parameters = "\"acti\": \"none\""; break;
    case Kind::Add: name = "ewadd"; break;
    case Kind::Mul: name = "ewmul"; break;
    case Kind::Conv:
      name = "conv2d", parameters = window + ", \"acti\": \"" + (op.flag ? "relu" : "none") + "\"";
      break;
    case Kind::AveragePool: name = "pool2d_avg", parameters = window; break;
    case Kind::MaxPool: name = "pool2d_max", parameters = window; break;
    case Kind::PoolKernel: name = "const_pool", parameters = kernel; break;
    case Kind::IdentityKernel: name = "const_iconv", parameters = kernel; break;
    case Kind::IdentityMatrix: name = "const_imm"; break;
    case Kind::Ones: name = "const_one"; break;
    case Kind::Enlarge: name = "enlarge", parameters = kernel; break;
    case Kind::ScalarMul: name = "scalar_mul"; break;
    case Kind::Relu: name = "relu"; break;
    case Kind::Concat:
      name = "concat";
      parameters = number("num_inputs", 2) + ", " + number("axis", op.first) + ", " + number("numdim", op.second);
      break;
    case Kind::Split: name = "split", parameters = number("num_outputs", 2) + ", " + number("axis", op.first); break;
    case Kind::Transpose:
      name = "transpose";
      parameters = number("numdim", 2) + ", " + number("perm", 2) + ", " + number("outshuffle", op.flag);
      break;
  }
  return "\"op\": \"" + name + "\", \"p\": {" + parameters + "}";
}

std::string text_of(const Ref& ref) { return "[" + std::to_string(ref.source) + ", " + std::to_string(ref.port) + "]"; }

std::string text_of(const Graph& graph, const std::vector<Operator>& operators) {
  std::string text;
  for (size_t i = 0; i < graph.count; i++) {
    const Application& application = graph.applications[i];
    const Operator& op = operators[application.op];
    text += (i == 0 ? "{" : ", {") + text_of(op) + ", \"in\": [";
    for (size_t k = 0; k < static_cast<size_t>(op.inputs()); k++)
      text += (k == 0 ? "" : ", ") + text_of(application.inputs[k]);
    text += "]}";
  }
  return "[" + text + "]";
}

std::vector<Ref> outputs_of(const Graph& graph, const std::vector<Operator>& operators) {
  std::vector<Ref> outputs;
  for (size_t i = 0; i < graph.count; i++)
    for (int port = 0; port < operators[graph.applications[i].op].outputs(); port++) {
      const Ref ref{static_cast<int8_t>(i), static_cast<int8_t>(port)};
      bool is_read = false;
      for (size_t user = i + 1; user < graph.count; user++)
        for (size_t k = 0; k < static_cast<size_t>(operators[graph.applications[user].op].inputs()); k++)
          is_read = is_read || graph.applications[user].inputs[k] == ref;
      if (!is_read) outputs.push_back(ref);
    }
  return outputs;
}

void write(const std::vector<Rule>& rules, const std::vector<Operator>& operators, std::ostream& out) {
  out << "[";
  for (size_t number = 0; number < rules.size(); number++) {
    const Rule& rule = rules[number];
    out << (number == 0 ? "\n" : ",\n") << "{\"id\": " << number << ", \"src\": " << text_of(rule.source, operators)
        << ", \"dst\": " << text_of(rule.target, operators) << ", \"out\": [";
    const std::vector<Ref> from = outputs_of(rule.source, operators), to = outputs_of(rule.target, operators);
    for (size_t i = 0; i < from.size(); i++)
      out << (i == 0 ? "[" : ", [") << text_of(from[i]) << ", " << text_of(to[i]) << "]";
    out << "]}";
  }
  out << "\n]\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: taso_generator OUT.json\n");
    return 1;
  }
  static Generator generator;
  generator.walk();
  const std::vector<Rule> rules = generator.rules();
  std::printf("%zu graphs, %zu fingerprints, %zu rules\n", generator.graph_count(), generator.class_count(),
              rules.size());
  std::ofstream out(argv[1]);
  write(rules, generator.known_operators(), out);
  return out.flush() ? 0 : 1;
}
