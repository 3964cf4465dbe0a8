#include "lower.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>

#include "gopt/wide_integers.h"
#include "transform.h"

namespace gopt::codegen {
namespace {

// Gives choices of numbers alone a type. Expressions share parts: each is looked at once.
class ChoiceTyping {
 public:
  explicit ChoiceTyping(ElementType type) : type_(type) {}

  Expr run(const Expr& e) {
    if (e->kind != ExprKind::Choose && e->kind != ExprKind::Select) return e;
    if (const auto it = done_.find(e.get()); it != done_.end()) return it->second;
    const auto branch = [&](size_t k) {
      return e->args[k]->kind == ExprKind::Constant && !is_typed(e) ? convert(type_, e->args[k]) : run(e->args[k]);
    };
    const Expr typed =
        e->kind == ExprKind::Choose ? choose(e->args[0], branch(1), branch(2)) : select(e->cond, branch(0), branch(1));
    return done_[e.get()] = typed;
  }

 private:
  // Whether it takes its type from something that it reads.
  bool is_typed(const Expr& e) {
    if (e->kind == ExprKind::Read || e->kind == ExprKind::Size || e->kind == ExprKind::Convert) return true;
    if (const auto it = is_typed_.find(e.get()); it != is_typed_.end()) return it->second;
    const auto first = e->args.begin() + (e->kind == ExprKind::Choose ? 1 : 0);
    return is_typed_[e.get()] = std::any_of(first, e->args.end(), [this](const Expr& part) { return is_typed(part); });
  }

  ElementType type_;
  std::unordered_map<const Expr::Node*, Expr> done_;
  std::unordered_map<const Expr::Node*, bool> is_typed_;
};

// Whether integers go through a function of real numbers, or are multiplied by a fraction. `seen`: parts that do not,
// since expressions share them.
bool is_computed_in_doubles(const Expr& e, std::set<const Expr::Node*>& seen) {
  switch (e->kind) {
    case ExprKind::Read:
    case ExprKind::Size:
    case ExprKind::Convert:
    case ExprKind::Less:
    case ExprKind::Equal: return false;
    case ExprKind::Constant: return e->value != std::floor(e->value);
    case ExprKind::Call:
      if (e->function != Function::Fmod && e->function != Function::Pow && e->function != Function::IsNan) return true;
      break;
    default: break;
  }
  if (!seen.insert(e.get()).second) return false;
  const auto first = e->args.begin() + (e->kind == ExprKind::Choose ? 1 : 0);
  return std::any_of(first, e->args.end(), [&](const Expr& part) { return is_computed_in_doubles(part, seen); });
}
bool is_computed_in_doubles(const Expr& e) {
  std::set<const Expr::Node*> seen;
  return is_computed_in_doubles(e, seen);
}

// Composes the definitions of a kernel's nodes. Elements are remembered by their subscripts, so that a value used twice
// is one expression.
class Composer {
 public:
  explicit Composer(const Kernel& kernel) : kernel_(kernel) {}

  Result<TensorExpr> compose(const Value& value) {
    const auto key = std::pair(value.node.get(), value.output);
    if (auto it = done_.find(key); it != done_.end()) return it->second;
    GOPT_ASSIGN_OR_RETURN(TensorExpr tensor, make(value));
    return done_[key] = remember(std::move(tensor));
  }

 private:
  Result<TensorExpr> make(const Value& value) {
    const Node& node = *value.node;
    for (size_t i = 0; i < kernel_.inputs.size(); i++) {
      if (!(kernel_.inputs[i] == value)) continue;
      TensorExpr tensor = input_tensor(static_cast<int>(i), value.type());
      if (node.is(OpKind::Constant)) tensor.data = &node.tensor;
      return tensor;
    }
    if (node.is(OpKind::Constant) && node.tensor.count() == 1 && !has_wide_integers(node.tensor))
      return small_constant(node.tensor);
    if (!covered(node)) return input_tensor(-1, value.type());  // of operators that read no element of it
    std::vector<TensorExpr> inputs;
    for (const Value& in : node.inputs) {
      if (!in) {
        inputs.emplace_back();
        continue;
      }
      GOPT_ASSIGN_OR_RETURN(TensorExpr tensor, compose(in));
      inputs.push_back(std::move(tensor));
    }
    auto definition = define(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
    if (!definition) return Error{"node `" + node.name + "`: " + definition.error().message};
    TensorExpr made = std::move(definition->outputs[static_cast<size_t>(value.output)]);
    return made.element == ElementType::Float64 ? in_doubles(std::move(made), node.is(OpKind::Cast))
                                                : wrapped(std::move(made));
  }

  // What is cast to doubles is the same number, so that definitions say no more: what others compute of it is in
  // doubles all the same. Numbers, and choices of numbers, have no type of their own.
  static TensorExpr in_doubles(TensorExpr tensor, bool is_cast) {
    tensor.at = [is_cast, at = std::move(tensor.at)](const std::vector<Index>& subscripts) {
      const Expr own = ChoiceTyping(ElementType::Float64).run(at(subscripts));
      const bool has_type = own->kind == ExprKind::Convert || (!is_cast && own->kind != ExprKind::Constant);
      return has_type ? own : convert(ElementType::Float64, own);
    };
    return tensor;
  }

  // Integers are computed in 64 bits: what others read of a type of fewer is what these hold. A choice of numbers has
  // no type of its own, which is the node's then.
  static TensorExpr wrapped(TensorExpr tensor) {
    if (!is_integer(tensor.element)) return tensor;
    tensor.at = [type = tensor.element, at = std::move(tensor.at)](const std::vector<Index>& subscripts) {
      const Expr own = ChoiceTyping(type).run(at(subscripts));
      return may_leave(own, type) || is_computed_in_doubles(own) ? convert(type, own) : own;
    };
    return tensor;
  }

  bool covered(const Node& node) const {
    return std::any_of(kernel_.nodes.begin(), kernel_.nodes.end(), [&](const NodePtr& n) { return n.get() == &node; });
  }

  static TensorExpr small_constant(const Tensor& data) {
    const bool real = is_floating(data.type());
    const double number = real ? data.to_doubles()[0] : static_cast<double>(data.to_ints()[0]);
    TensorExpr tensor;
    tensor.element = data.type();
    for (int64_t d : data.dims()) tensor.shape.push_back(Index(d));
    tensor.at = [number](const std::vector<Index>&) { return constant(number); };
    tensor.data = &data;
    return tensor;
  }

  static TensorExpr remember(TensorExpr tensor) {
    auto memo = std::make_shared<std::map<std::vector<Index>, Expr>>();
    tensor.at = [memo, at = std::move(tensor.at)](const std::vector<Index>& subscripts) {
      if (auto it = memo->find(subscripts); it != memo->end()) return it->second;
      return memo->emplace(subscripts, at(subscripts)).first->second;
    };
    return tensor;
  }

  const Kernel& kernel_;
  std::map<std::pair<const Node*, int>, TensorExpr> done_;
};

// Replaces subscripts of reads and loads by offsets in memory. What constants hold is known of loads from them.
class Flattener {
 public:
  Flattener(const Plan& plan, const Kernel& kernel, Known& known) : plan_(plan), kernel_(kernel), known_(known) {}

  Expr operator()(const Expr& e) {
    return map_expr(
        e, [this](const Index& i) { return loads(i); },
        [this](int input, const std::vector<Index>& s) { return flat(input, s); });
  }

 private:
  const Buffer& buffer(int input) const {
    const auto number = static_cast<size_t>(input);
    GOPT_CHECK(number < kernel_.input_buffers.size(), "kernel " + kernel_.name + " reads what is no input of it");
    return plan_.buffer(kernel_.input_buffers[number]);
  }

  Expr flat(int input, const std::vector<Index>& subscripts) {
    const Buffer& b = buffer(input);
    std::vector<Index> inside;
    const Shape& shape = shape_of(b);
    for (size_t d = 0; d < subscripts.size(); d++) inside.push_back(bounded(loads(subscripts[d]), shape[d]));
    return read(input, {b.layout.offset(shape, inside)});
  }

  // A subscript that is itself a loaded number is kept within the tensor whatever the number.
  Index bounded(const Index& subscript, const Index& extent) const {
    const auto id = subscript.as_atom();
    if (!id || atom(*id).kind != AtomKind::Load || atom(*id).subscripts.size() != 1) return subscript;
    const auto it = known_.numbers.find(*id);
    const bool is_inside = it != known_.numbers.end() && it->second.low >= 0 && extent.is_constant() &&
                           it->second.high < extent.constant();
    if (is_inside) return subscript;
    return load_index(atom(*id).input, {atom(*id).subscripts[0], extent});
  }

  Index loads(const Index& index) {
    return map_loads(index, [this](int input, const std::vector<Index>& subscripts) {
      const Buffer& b = buffer(input);
      std::vector<Index> inner;
      for (const Index& s : subscripts) inner.push_back(loads(s));
      const Index loaded = load_index(input, {simplify(b.layout.offset(shape_of(b), inner), known_)});
      if (const auto range = range_of_data(kernel_.inputs[static_cast<size_t>(input)]))
        known_.numbers.try_emplace(*loaded.as_atom(), *range);
      return loaded;
    });
  }

  static std::optional<Range> range_of_data(const Value& value) {
    if (!value.node->is(OpKind::Constant) || value.node->tensor.count() == 0) return std::nullopt;
    const std::vector<int64_t> numbers = value.node->tensor.to_ints();
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    return Range{*low, *high};
  }

  const Plan& plan_;
  const Kernel& kernel_;
  Known& known_;
};

// Loops in memory order and the subscripts that they stand for.
struct Traversal {
  std::vector<Loop> loops;
  std::vector<Index> subscripts;
  Cond inside;  // false in the padding of a blocked layout
};

Traversal traverse(const Shape& shape, const Layout& layout) {
  Traversal t;
  t.subscripts.resize(shape.size());
  const std::vector<size_t> axes = layout.axes(shape.size());
  const Shape extents = layout.extents(shape);
  for (size_t k = 0; k < axes.size(); k++) {
    const size_t axis = axes[k];
    const bool is_lane = layout.is_blocked() && k + 1 == axes.size();
    t.loops.push_back({symbol_atom(is_lane ? "@lane" : "@i" + std::to_string(axis)), Index(0), extents[k]});
    const Index at = Index::from_atom(t.loops.back().symbol);
    t.subscripts[axis] = is_lane ? Index(layout.lanes()) * t.subscripts[axis] + at : at;
    if (is_lane && modulo(shape[axis], Index(layout.lanes())) != Index(0))
      t.inside = less(t.subscripts[axis], shape[axis]);
  }
  return t;
}

}  // namespace

std::optional<int64_t> usual(const Index& index, const std::vector<OpenExtent>& open) {
  if (index.is_constant()) return index.constant();
  Environment sizes;
  for (const OpenExtent& extent : open) sizes[extent.symbol] = extent.usual;
  return evaluate(index, sizes);
}

namespace {

// Factors of extents: of what is a sum, nothing is known.
std::set<AtomId> factors_of(const Shape& shape) {
  std::set<AtomId> factors;
  for (const Index& extent : shape)
    if (extent.constant() == 0 && extent.terms().size() == 1)
      factors.insert(extent.terms()[0].atoms.begin(), extent.terms()[0].atoms.end());
  return factors;
}

}  // namespace

Result<KernelBody> lower_kernel(const Plan& plan, const Kernel& kernel) {
  const Buffer& out = plan.buffer(kernel.output_buffers[0]);
  KernelBody body;
  body.output = out.element;
  body.narrows = is_half(out.element) && kernel.outputs[0].type().element != out.element;
  for (BufferId b : kernel.input_buffers) body.inputs.push_back(plan.buffer(b).element);
  Composer composer(kernel);
  GOPT_ASSIGN_OR_RETURN(const TensorExpr tensor, composer.compose(kernel.outputs[0]));
  const Shape& shape = shape_of(out);
  const Traversal t = traverse(shape, out.layout);
  const Expr element = select(t.inside, tensor.at(t.subscripts), constant(0));
  body.open = plan.target.open;
  body.filled = factors_of(shape);
  body.loops = t.loops;
  Known known = known_of(body);
  const Expr flat = Flattener(plan, kernel, known)(element);
  body.value = simplify(flat, known);
  body.offset = simplify(out.layout.offset(shape, t.subscripts), known);
  std::erase_if(body.loops, [](const Loop& loop) { return loop.extent() == Index(1); });
  return body;
}

}  // namespace gopt::codegen
