// Finding attention: a softmax between two products of matrices, with a scale and a mask, and the transposes, reshapes,
// slices and scalar factors through which its operands and its result are moved.
#include "attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "access.h"
#include "cover.h"
#include "gopt/bounds.h"
#include "gopt/node_attributes.h"
#include "node_work.h"
#include "strides.h"

namespace gopt::planner {
namespace {

// Of a line: kernels for CUDA keep a line's sums in registers, those for a CPU one of each in the cache.
constexpr int64_t kMostDepth = 128, kMostDepthOnCpu = 512;
constexpr int64_t kFewestRowsOnCpu = 6;  // which are lanes; of fewer, elements of a key are
constexpr size_t kMostMasks = 2;         // a mask and a bias, as relative positions have it
constexpr size_t kMostAxes = 3;          // of a batch, in a kernel's parameters

// The number by which a node multiplies its other operand: the position of that, and the factor.
struct ScalarFactor {
  size_t operand;
  double by;
};
std::optional<ScalarFactor> scalar_factor(const Node& node) {
  const bool is_division = node.is(OpKind::Div);
  if (!is_division && !node.is(OpKind::Mul)) return std::nullopt;
  for (const size_t k : {size_t{1}, size_t{0}}) {
    if (!node.inputs[k] || !is_small_constant(node.inputs[k]) || (is_division && k == 0)) continue;
    const double number = node.inputs[k].node->tensor.to_doubles()[0];
    if (node.inputs[1 - k].type().shape == node.outputs[0].shape)
      return ScalarFactor{1 - k, is_division ? 1 / number : number};
  }
  return std::nullopt;
}

// An operand as it may be read: one of the tensors that it is moved from.
struct MovedOperand {
  Value value;
  FactoredSteps steps;  // of the operand's axes, in the tensor's memory: single ones of the last two
  double scale = 1;     // of what was left out
};

class AttentionFinder {
 public:
  AttentionFinder(Cover& cover, uint32_t product) : cover_(cover), product_(product) {
    for (const OpenExtent& extent : cover.options.target.open) bounds_.counts.insert(extent.symbol);
  }

  std::optional<AttentionCover> run() {
    if (!find_core() || !find_masks()) return std::nullopt;
    const Value operands[] = {scores_->inputs[0], scores_->inputs[1], cover_.node(product_).inputs[1]};
    for (const Value& operand : operands)
      if (shape_of(operand).size() < 2) return std::nullopt;
    for (size_t k = 0; k < 3; k++) paths_[k] = path_from(operands[k], k < 2);
    // Axes of a batch that are several in memory, as those of heads that share keys, may be too many.
    for (const bool cuts_batch : {true, false}) {
      cuts_batch_ = cuts_batch;
      if (!choose_depths(operands)) return std::nullopt;
      if (auto found = describe(operands)) return found;
    }
    return std::nullopt;
  }

 private:
  const NodePtr& node_of(uint32_t id) const { return cover_.graph.nodes()[id]; }
  const ValueCover& value_of(const Value& value) const { return cover_.of(value); }
  static const Shape& shape_of(const Value& value) {
    static const Shape kUnknown;
    return value.type().shape ? *value.type().shape : kUnknown;
  }

  // The node that makes a value for one user alone.
  std::optional<uint32_t> own_maker(const Value& value) const {
    const uint32_t id = cover_.id_of(value.node.get());
    const bool is_own = cover_.nodes[id].role == Role::Generated && value.node->outputs.size() == 1 &&
                        value_of(value).uses.size() == 1 && !value_of(value).is_output;
    return is_own ? std::optional(id) : std::nullopt;
  }

  // Of Where(IsNaN(x), 0, x), as exported models have it for rows that are masked whole, x.
  Value without_guard(const Value& value) {
    const auto id = own_maker(value);
    if (!id || !cover_.node(*id).is(OpKind::Where)) return value;
    const Node& choice = cover_.node(*id);
    const Value &test = choice.inputs[0], &zero = choice.inputs[1], &guarded = choice.inputs[2];
    const auto tester = own_maker(test);
    const bool is_guard = tester && test.node->is(OpKind::IsNaN) && test.node->inputs[0] == guarded &&
                          is_small_constant(zero) && zero.node->tensor.to_doubles()[0] == 0 &&
                          shape_of(value) == shape_of(guarded);
    if (!is_guard || !is_used_by(id_of(guarded), {*id, *tester})) return value;
    const NodeCover& maker = cover_.nodes[id_of(guarded)];
    if (maker.role != Role::Generated || guarded.node->outputs.size() != 1) return value;
    core_.insert(core_.end(), {*id, *tester});
    nan_is_zero_ = true;
    return guarded;
  }

  bool is_last_softmax(const Node& node) const {
    const auto rank = static_cast<int64_t>(shape_of(node.inputs[0]).size());
    const int64_t axis = int_or(node, "axis", -1);
    return node.is(OpKind::Softmax) && (axis == -1 || axis == rank - 1);
  }

  // From the product of values back to that of queries and keys.
  bool find_core() {
    const Node& product = cover_.node(product_);
    core_ = {product_};
    const Value weights = without_guard(product.inputs[0]);
    auto id = nan_is_zero_ ? std::optional(id_of(weights)) : own_maker(weights);
    if (!id || !is_last_softmax(cover_.node(*id))) return false;
    core_.push_back(*id);
    Value value = cover_.node(*id).inputs[0];
    while ((id = own_maker(value))) {
      const Node& node = cover_.node(*id);
      core_.push_back(*id);
      if (node.is(OpKind::MatMul)) {
        scores_ = cover_.graph.nodes()[*id];
        return shape_of(value).size() >= 2;
      }
      if (const auto factor = scalar_factor(node)) {
        scale_ *= factor->by;
        value = node.inputs[factor->operand];
      } else if (node.is(OpKind::Add) && sums_.size() < kMostMasks && scale_ == 1) {
        sums_.push_back(cover_.graph.nodes()[*id]);
        value = node.inputs[mask_position(node) ^ 1U];
      } else if (const auto scores = choose_scores(node)) {
        value = node.inputs[*scores];
      } else {
        return false;
      }
    }
    return false;
  }

  static double as_float(double number) {
    const bool is_beyond = std::fabs(number) > std::numeric_limits<float>::max();
    return is_beyond ? std::copysign(std::numeric_limits<double>::infinity(), number) : number;
  }

  // Of Where(test, scores, number), or the other way around, which of its inputs the scores are; kernels know one such
  // choice, before all sums or after them.
  std::optional<size_t> choose_scores(const Node& node) {
    if (!node.is(OpKind::Where) || choice_test_) return std::nullopt;
    for (const size_t k : {size_t{1}, size_t{2}}) {
      const Value& number = node.inputs[3 - k];
      if (!is_small_constant(number) || shape_of(node.inputs[k]) != node.outputs[0].shape) continue;
      choice_test_ = node.inputs[0];
      choice_.kept = k == 1;
      choice_.otherwise = as_float(number.node->tensor.to_doubles()[0] * scale_);
      sums_after_choice_ = sums_.size();
      return k;
    }
    return std::nullopt;
  }

  // Which operand of a sum is the mask: the scores come from a product, or from a sum with another one.
  size_t mask_position(const Node& sum) const {
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const auto id = own_maker(sum.inputs[k]);
      if (!id || shape_of(sum.inputs[k]) != shape_of(Value{sums_.back(), 0})) continue;
      const Node& maker = cover_.node(*id);
      const bool is_sum = maker.is(OpKind::Add) && std::ranges::any_of(maker.inputs, [&](const Value& input) {
                            const auto of = own_maker(input);
                            return of && (cover_.node(*of).is(OpKind::MatMul) || scalar_factor(cover_.node(*of)));
                          });
      if (maker.is(OpKind::MatMul) || scalar_factor(maker) || is_sum) return k ^ 1U;
    }
    // From a choice, else.
    const auto second = own_maker(sum.inputs[1]);
    const bool is_chosen = second && cover_.node(*second).is(OpKind::Where) && !own_maker(sum.inputs[0]) &&
                           shape_of(sum.inputs[1]) == shape_of(Value{sums_.back(), 0});
    return is_chosen ? 0 : 1;
  }

  bool find_masks() {
    for (const NodePtr& sum : sums_) {
      const Value mask = sum->inputs[mask_position(*sum)];
      const ElementType type = value_of(mask).element;
      if (shape_of(Value{sum, 0}) != shape_of(Value{scores_, 0})) return false;
      if (type != ElementType::Float32 && (is_on_cpu() || !is_half(type))) return false;
      masks_.push_back(mask);
    }
    choice_.is_first = sums_after_choice_ == sums_.size();
    return choice_.is_first || sums_after_choice_ == 0;
  }

  // ---- operands ----

  // What an operand is moved from, one value after another.
  std::vector<Value> path_from(Value value, bool takes_factors) const {
    std::vector<Value> path;
    while (true) {
      const uint32_t id = cover_.id_of(value.node.get());
      const Node& node = cover_.node(id);
      if (cover_.nodes[id].role != Role::Generated || value_of(value).is_output) return path;
      const auto factor = takes_factors ? scalar_factor(node) : std::nullopt;
      if (!factor && !is_moved(value)) return path;
      path.push_back(value);
      value = node.inputs[factor ? factor->operand : 0];
    }
  }
  bool is_moved(const Value& value) const {
    const Node& node = *value.node;
    return !node.inputs.empty() && node.inputs[0] &&
           steps_through(value, factored_steps(shape_of(node.inputs[0]))).has_value();
  }

  Value source_value(const Value& operand, const std::vector<Value>& path, size_t depth) const {
    Value value = operand;
    for (size_t k = 0; k < depth; k++) value = input_along(path[k]);
    return value;
  }
  static Value input_along(const Value& value) {
    const auto factor = scalar_factor(*value.node);
    return value.node->inputs[factor ? factor->operand : 0];
  }

  // The operand read past the first nodes of its path; nothing where it does not lie at equal steps there.
  std::optional<MovedOperand> source_at(const Value& operand, const std::vector<Value>& path, size_t depth) const {
    MovedOperand source{source_value(operand, path, depth), {}, 1};
    FactoredSteps steps = factored_steps(shape_of(source.value));
    for (size_t k = depth; k-- > 0;) {
      if (const auto factor = scalar_factor(*path[k].node)) {
        source.scale *= factor->by;
        continue;
      }
      auto moved = steps_through(path[k], steps);
      if (!moved) return std::nullopt;
      steps = *std::move(moved);
    }
    for (size_t axis = 0; axis < steps.axes.size(); axis++)
      if (steps.axes[axis].size() > 1 && (!cuts_batch_ || axis + 2 >= steps.axes.size())) return std::nullopt;
    source.steps = std::move(steps);
    return is_inside(source) ? std::optional(source) : std::nullopt;
  }

  // At any size.
  bool is_inside(const MovedOperand& source) const {
    Index first = source.steps.offset, last = source.steps.offset;
    for (const std::vector<AxisPart>& axis : source.steps.axes)
      for (const AxisPart& part : axis) {
        const bool is_forward = is_surely_nonnegative(part.step, bounds_);
        if (!is_forward && !is_surely_nonnegative(-part.step, bounds_)) return false;
        (is_forward ? last : first) += part.step * (part.extent - 1);
      }
    return is_surely_nonnegative(first, bounds_) &&
           is_surely_nonnegative(product_of(shape_of(source.value)) - last - 1, bounds_);
  }

  bool is_on_cpu() const { return cover_.options.target.kind == TargetKind::Cpu; }

  // Lines of keys lie along the other axis of the product's operand. A CPU reads an element of theirs at a time.
  bool is_readable(size_t operand, const Value& value, size_t depth) const {
    const auto source = source_at(value, paths_[operand], depth);
    if (operand == 1 && is_on_cpu()) return source.has_value();
    const size_t axis = shape_of(value).size() - (operand == 1 ? 2 : 1);
    return source && step_of(source->steps.axes[axis], 1) == Index(1);
  }

  // How far back each operand is read from: as far as nobody else uses what is left out, and lines stay in one piece.
  // One operand that is read further on may need what another leaves out.
  bool choose_depths(const Value (&operands)[3]) {
    for (size_t k = 0; k < 3; k++) depths_[k] = paths_[k].size();
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t k = 0; k < 3; k++) {
        const size_t free = free_depth(operands, k);
        changed = changed || free < depths_[k];
        depths_[k] = free;
        for (; !is_readable(k, operands[k], depths_[k]); depths_[k]--) {
          if (depths_[k] == 0) return false;
          changed = true;
        }
      }
    }
    return true;
  }
  // How many nodes of a path, of those that are left out, only what is covered uses, and nothing that is read.
  size_t free_depth(const Value (&operands)[3], size_t k) const {
    std::set<uint32_t> covered(core_.begin(), core_.end()), read;
    for (const Value& mask : masks_) read.insert(id_of(mask));
    if (choice_test_) read.insert(id_of(choice_test_));
    for (size_t other = 0; other < 3; other++) {
      for (size_t n = 0; n < depths_[other]; n++) covered.insert(id_of(paths_[other][n]));
      read.insert(id_of(source_value(operands[other], paths_[other], depths_[other])));
    }
    for (size_t n = 0; n < depths_[k]; n++) {
      const uint32_t id = id_of(paths_[k][n]);
      if (read.contains(id) || !is_used_by(id, covered)) return n;
    }
    return depths_[k];
  }
  uint32_t id_of(const Value& value) const { return cover_.id_of(value.node.get()); }
  // All outputs that are used at all, by these nodes alone.
  bool is_used_by(uint32_t id, const std::set<uint32_t>& nodes) const {
    for (size_t o = 0; o < cover_.node(id).outputs.size(); o++) {
      const ValueCover& value = cover_.values[cover_.nodes[id].first_value + o];
      if (value.is_output ||
          !std::all_of(value.uses.begin(), value.uses.end(), [&](const Use& use) { return nodes.contains(use.node); }))
        return false;
    }
    return true;
  }

  std::optional<AttentionCover> describe(const Value (&operands)[3]) {
    const Shape &scores = shape_of(Value{scores_, 0}), &made = shape_of(Value{node_of(product_), 0});
    const size_t rank = scores.size();
    if (made.size() != rank || rank < 2 || std::ranges::count(scores, Index(0)) > 0) return std::nullopt;
    const Shape batch(scores.begin(), scores.end() - 2);
    if (!std::equal(batch.begin(), batch.end(), made.begin())) return std::nullopt;
    const auto depth = shape_of(operands[0]).back().as_constant(), value_depth = made.back().as_constant();
    const int64_t most = is_on_cpu() ? kMostDepthOnCpu : kMostDepth;
    if (!depth || !value_depth || std::max(*depth, *value_depth) > most || *depth < 1) return std::nullopt;
    AttentionCover found;
    Attention a;
    a.rows = scores[rank - 2], a.keys = scores[rank - 1], a.depth = *depth, a.value_depth = *value_depth;
    a.scale = scale_;
    a.nan_is_zero = nan_is_zero_;
    std::vector<FactoredSteps> steps;
    Value* const values[] = {&found.query, &found.key, &found.value};
    for (size_t k = 0; k < 3; k++) {
      const MovedOperand source = *source_at(operands[k], paths_[k], depths_[k]);
      *values[k] = source.value;
      a.scale *= source.scale;
      steps.push_back(source.steps);
    }
    steps.push_back(find_result(found, made));
    Value* const added[] = {&found.mask, &found.bias};
    std::optional<StridedMatrices>* const lie[] = {&a.mask, &a.bias};
    for (size_t k = 0; k < masks_.size(); k++) {
      *added[k] = masks_[k];
      steps.push_back(factored_steps(shape_of(masks_[k])));
      lie[k]->emplace();
    }
    if (choice_test_) {
      found.choice = choice_test_;
      steps.push_back(factored_steps(shape_of(choice_test_)));
      a.choice = choice_;
    }
    const std::vector<StridedMatrices*> matrices = matrices_of(a);
    if (!set_batch(batch, steps, matrices, a)) return std::nullopt;
    for (size_t k = 0; k < matrices.size(); k++) set_lines(steps[k], k == 1, *matrices[k]);
    a.result.element = 1;
    if (is_on_cpu() && !has_many_rows(a.rows) && a.key.element != Index(1)) return std::nullopt;
    merge_batch(a);
    if (a.batch.size() > kMostAxes || (cover_.options.target.open.empty() && !is_of_numbers(a))) return std::nullopt;
    found.attention = std::make_shared<Attention>(std::move(a));
    finish_nodes(found);
    return found;
  }

  // Of any size there may be few.
  static bool has_many_rows(const Index& rows) { return rows.is_constant() && rows.constant() >= kFewestRowsOnCpu; }

  // In the order in which a kernel has them, its result before the mask, the bias and the choice.
  static std::vector<StridedMatrices*> matrices_of(Attention& a) {
    std::vector<StridedMatrices*> all{&a.query, &a.key, &a.value, &a.result};
    for (std::optional<StridedMatrices>* added : {&a.mask, &a.bias})
      if (*added) all.push_back(&**added);
    if (a.choice) all.push_back(&a.choice->at);
    return all;
  }

  static bool is_of_numbers(Attention& a) {
    Shape all = a.batch;
    all.insert(all.end(), {a.rows, a.keys});
    for (const StridedMatrices* m : matrices_of(a)) {
      all.insert(all.end(), {m->offset, m->line, m->element});
      all.insert(all.end(), m->batch.begin(), m->batch.end());
    }
    return std::ranges::all_of(all, &Index::is_constant);
  }

  // Along the axes of the scores' batch; false where two operands go along one of them differently.
  static bool set_batch(const Shape& batch, const std::vector<FactoredSteps>& steps,
                        const std::vector<StridedMatrices*>& matrices, Attention& a) {
    std::vector<std::vector<std::vector<AxisPart>>> parts;
    for (const FactoredSteps& own : steps) {
      parts.emplace_back(batch.size());
      const size_t count = own.axes.size() - std::min<size_t>(2, own.axes.size());  // of the last axes of the batch
      std::copy_n(own.axes.begin(), count, parts.back().end() - static_cast<std::ptrdiff_t>(count));
    }
    std::optional<CommonBatch> common = common_batch(batch, std::move(parts));
    if (!common) return false;
    a.batch = std::move(common->extents);
    for (size_t k = 0; k < matrices.size(); k++) matrices[k]->batch = std::move(common->steps[k]);
    return true;
  }

  // Of keys, lines lie along the last axis.
  static void set_lines(const FactoredSteps& steps, bool is_transposed, StridedMatrices& m) {
    const auto step = [&](size_t back) {
      return back < steps.axes.size() ? step_of(steps.axes[steps.axes.size() - 1 - back], 0) : Index(0);
    };
    m.offset = steps.offset;
    m.line = step(is_transposed ? 0 : 1);
    m.element = step(is_transposed ? 1 : 0);
  }

  // Of one part at most; `otherwise` of an axis of one place.
  static Index step_of(const std::vector<AxisPart>& axis, int64_t otherwise) {
    return axis.empty() ? Index(otherwise) : axis[0].step;
  }

  // The result goes where the only node puts it that uses it, where that only permutes axes. Its steps there.
  FactoredSteps find_result(AttentionCover& found, const Shape& made) {
    found.result = Value{node_of(product_), 0};
    MemorySteps steps = row_major_steps(made);
    const ValueCover& own = value_of(found.result);
    if (own.uses.size() == 1 && !own.is_output) {
      const uint32_t id = own.uses[0].node;
      if (const auto moved = permuted(id, made)) {
        steps = *moved;
        found.result = Value{node_of(id), 0};
        core_.push_back(id);
      }
    }
    return factored_steps(steps, made);
  }

  // MemorySteps in the memory of a transpose's result; nothing where the node is none, or lines are taken apart.
  std::optional<MemorySteps> permuted(uint32_t id, const Shape& made) const {
    const Node& node = cover_.node(id);
    const NodeWork& work = work_of(node);
    if (cover_.nodes[id].role != Role::Generated || work.keeps_order || work.moved_from.size() != 1 ||
        work.moved_from[0].size() != made.size())
      return std::nullopt;
    const Shape& moved = shape_of(Value{node_of(id), 0});
    if (moved.size() != made.size()) return std::nullopt;
    const MemorySteps memory = row_major_steps(moved);
    const std::vector<AtomId> symbols = axis_symbols(moved.size());
    MemorySteps steps{0, std::vector<Index>(made.size())};
    std::set<size_t> taken;
    for (size_t axis = 0; axis < made.size(); axis++) {
      const auto symbol = work.moved_from[0][axis].as_atom();
      const auto at = symbol ? std::find(symbols.begin(), symbols.end(), *symbol) : symbols.end();
      const auto to = static_cast<size_t>(at - symbols.begin());
      if (at == symbols.end() || moved[to] != made[axis] || !taken.insert(to).second) {
        if (made[axis] != Index(1)) return std::nullopt;
        continue;
      }
      steps.axes[axis] = memory.axes[to];
    }
    const bool is_whole =
        product_of(moved) == product_of(made) && (steps.axes.back() == Index(1) || made.back() == Index(1));
    return is_whole ? std::optional(steps) : std::nullopt;
  }

  // Axes along which all operands go on where the next axis ends are one.
  static void merge_batch(Attention& a) {
    const std::vector<StridedMatrices*> all = matrices_of(a);
    for (size_t axis = a.batch.size(); axis-- > 0;) {
      const bool is_inner = axis + 1 < a.batch.size();
      const bool merges = is_inner && std::ranges::all_of(all, [&](const StridedMatrices* m) {
                            return m->batch[axis] == m->batch[axis + 1] * a.batch[axis + 1];
                          });
      if (!merges) continue;
      a.batch[axis + 1] = a.batch[axis + 1] * a.batch[axis];
      a.batch.erase(a.batch.begin() + static_cast<std::ptrdiff_t>(axis));
      for (StridedMatrices* m : all) m->batch.erase(m->batch.begin() + static_cast<std::ptrdiff_t>(axis));
    }
  }

  void finish_nodes(AttentionCover& found) const {
    std::set<uint32_t> nodes(core_.begin(), core_.end());
    for (size_t k = 0; k < 3; k++)
      for (size_t n = 0; n < depths_[k]; n++) nodes.insert(id_of(paths_[k][n]));
    found.nodes.assign(nodes.begin(), nodes.end());
  }

  Cover& cover_;
  uint32_t product_;
  std::vector<uint32_t> core_;
  NodePtr scores_;
  std::vector<NodePtr> sums_;  // with a mask and a bias, from the softmax back
  std::vector<Value> masks_;   // what they add
  Value choice_test_;          // null: scores are not chosen
  AttentionChoice choice_;
  size_t sums_after_choice_ = 0;  // between it and the softmax
  double scale_ = 1;
  bool nan_is_zero_ = false;
  std::vector<Value> paths_[3];  // of query, key and value: what moves them, one after another
  size_t depths_[3] = {};        // how many of them are left out
  bool cuts_batch_ = true;       // an axis of the batch may be several of an operand's memory
  SymbolBounds bounds_;          // of open extents
};

}  // namespace

// On a CPU of floats, or on matrix tiles.
void choose_attention(Cover& cover) {
  const Target& target = cover.options.target;
  if (target.without.contains(kAttention)) return;
  const bool is_on_cpu = target.kind == TargetKind::Cpu;
  const bool has_kernels = storage_of(target.precision) == ElementType::Float32 || target.has_tiles;
  if (is_on_cpu && !has_kernels) return;
  for (uint32_t id = 0; id < cover.nodes.size(); id++) {
    const Node& node = cover.node(id);
    const bool is_product = cover.nodes[id].role == Role::Generated && node.is(OpKind::MatMul) &&
                            is_library_type(cover.of(node.inputs[0]).element, target.kind);
    if (!is_product || (is_on_cpu && cover.of(node.inputs[0]).element != ElementType::Float32)) continue;
    std::optional<AttentionCover> found = AttentionFinder(cover, id).run();
    if (!found) continue;
    const bool needs_tiles = is_on_cpu && storage_of(target.precision) != ElementType::Float32;
    if (needs_tiles && !is_for_tiles(*found->attention)) continue;
    for (const uint32_t covered : found->nodes) {
      cover.nodes[covered].role = Role::Covered;
      cover.nodes[covered].owner = id;
    }
    cover.nodes[id].role = Role::Attention;
    cover.attentions.emplace(id, *std::move(found));
  }
}

}  // namespace gopt::planner
