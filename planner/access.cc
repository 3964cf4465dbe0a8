#include "access.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "gopt/operation_weight.h"

namespace gopt::planner {
namespace {

using Symbols = std::set<AtomId>;

Symbols symbols_of(const Index& index) {
  Symbols symbols;
  if (!index.is_constant()) collect_symbols(index, symbols);
  return symbols;
}

}  // namespace

Index product_of(const Shape& shape) {
  Index product(1);
  for (const Index& extent : shape) product = product * extent;
  return product;
}

std::vector<AtomId> axis_symbols(size_t rank) {
  std::vector<AtomId> symbols;
  for (size_t axis = 0; axis < rank; axis++) symbols.push_back(symbol_atom("at" + std::to_string(axis)));
  return symbols;
}

Element element_of(const TensorExpr& output) {
  Element element{axis_symbols(output.shape.size()), output.shape, {}};
  std::vector<Index> subscripts;
  for (const AtomId axis : element.axes) subscripts.push_back(Index::from_atom(axis));
  element.value = output.at(subscripts);
  return element;
}

bool only_moves(const Expr& value) {
  switch (value->kind) {
    case ExprKind::Constant:
    case ExprKind::Size:
    case ExprKind::Read: return true;
    case ExprKind::Select: return std::all_of(value->args.begin(), value->args.end(), only_moves);
    default: return false;
  }
}

// ---- operations ----

namespace {

class OperationCounter {
 public:
  explicit OperationCounter(const Element& element) {
    for (size_t axis = 0; axis < element.axes.size(); axis++)
      if (element.shape[axis] != Index(1)) axes_.insert(element.axes[axis]);
  }
  double run(const Expr& e) {
    visit(e);
    return operations_;
  }

 private:
  // The axes that e depends on; each expression is counted once.
  const Symbols& visit(const Expr& e) {
    const auto [it, is_new] = done_.try_emplace(e.get());
    if (!is_new) return it->second;
    Symbols own;
    if (e->kind == ExprKind::Reduce) {
      collect_symbols(e, own);
    } else {
      for (const Expr& a : e->args) {
        const Symbols& inner = visit(a);
        own.insert(inner.begin(), inner.end());
      }
      for (const Index& subscript : e->subscripts) collect_symbols(subscript, own);
      if (e->kind == ExprKind::Size) collect_symbols(e->index, own);
      if (e->kind == ExprKind::Select) collect_symbols(e->cond, own);
      const bool is_everywhere = std::includes(own.begin(), own.end(), axes_.begin(), axes_.end());
      if (is_everywhere && !is_fused(e)) operations_ += operation_weight(e);
    }
    return done_[e.get()] = std::move(own);
  }

  // A product and the sum that it goes into are one instruction.
  static bool is_fused(const Expr& e) {
    const bool is_sum = e->kind == ExprKind::Add || e->kind == ExprKind::Subtract;
    return is_sum &&
           std::any_of(e->args.begin(), e->args.end(), [](const Expr& a) { return a->kind == ExprKind::Multiply; });
  }

  Symbols axes_;
  std::unordered_map<const Expr::Node*, Symbols> done_;
  double operations_ = 0;
};

}  // namespace

double operations_outside_reductions(const Element& element) {
  return only_moves(element.value) ? 0 : OperationCounter(element).run(element.value);
}

// ---- reads ----

namespace {

// Calls visit(input, subscripts) for each load from an integer input that the index holds.
template <class Visit>
void visit_loads(const Index& index, const Visit& visit) {
  for (const Index::Term& term : index.terms())
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (a.kind == AtomKind::FloorDiv) {
        visit_loads(a.numerator, visit);
        visit_loads(a.denominator, visit);
      } else if (a.kind == AtomKind::Load) {
        visit(a.input, a.subscripts);
        for (const Index& subscript : a.subscripts) visit_loads(subscript, visit);
      }
    }
}
template <class Visit>
void visit_loads(const Cond& cond, const Visit& visit) {
  if (cond.kind() == CondKind::NonNegative) visit_loads(cond.index(), visit);
  for (const Cond& part : cond.parts()) visit_loads(part, visit);
}
template <class Visit>
void visit_own_loads(const Expr& e, const Visit& visit) {
  for (const Index& subscript : e->subscripts) visit_loads(subscript, visit);
  if (e->kind == ExprKind::Size) visit_loads(e->index, visit);
  if (e->kind == ExprKind::Select) visit_loads(e->cond, visit);
}

// Reads of one stage. The same element is read once in a place: where it is used again, it is at hand.
class ReadCounter {
 public:
  explicit ReadCounter(std::vector<Index>& reads) : reads_(reads) {}

  void add_body(const Expr& body, const Index& evaluations) {
    std::unordered_set<const Expr::Node*> visited;
    std::set<std::pair<int, std::vector<Index>>> seen;
    visit(body, evaluations, visited, seen);
  }

 private:
  void visit(const Expr& e, const Index& evaluations, std::unordered_set<const Expr::Node*>& visited,
             std::set<std::pair<int, std::vector<Index>>>& seen) {
    if (!visited.insert(e.get()).second) return;
    const auto add = [&](int input, const std::vector<Index>& subscripts) {
      if (static_cast<size_t>(input) >= reads_.size()) return;  // of an earlier stage
      if (seen.emplace(input, subscripts).second) reads_[static_cast<size_t>(input)] += evaluations;
    };
    if (e->kind == ExprKind::Read) add(e->input, e->subscripts);
    visit_own_loads(e, add);
    if (e->kind != ExprKind::Reduce) {
      for (const Expr& a : e->args) visit(a, evaluations, visited, seen);
      return;
    }
    Index inner = evaluations;
    for (const Binder& binder : e->binders) inner = inner * binder.extent;
    add_body(e->args[0], inner);
  }

  std::vector<Index>& reads_;
};

void find_index_operands(const Expr& e, std::unordered_set<const Expr::Node*>& visited, std::vector<bool>& found) {
  if (!visited.insert(e.get()).second) return;
  visit_own_loads(e, [&](int input, const std::vector<Index>&) { found[static_cast<size_t>(input)] = true; });
  for (const Expr& a : e->args) find_index_operands(a, visited, found);
}

}  // namespace

std::vector<Index> count_reads(const TensorExpr& output, const std::vector<ElementType>& input_types) {
  std::vector<Index> reads(input_types.size());
  for (const Stage& s : stage(output, input_types, true)) ReadCounter(reads).add_body(s.value, product_of(s.shape));
  return reads;
}

std::vector<bool> index_operands(const Expr& value, size_t input_count) {
  std::vector<bool> found(input_count);
  std::unordered_set<const Expr::Node*> visited;
  find_index_operands(value, visited, found);
  return found;
}

// ---- layouts ----

namespace {

class LayoutFollower {
 public:
  LayoutFollower(const Element& element, const std::vector<TensorExpr>& inputs) : element_(element), inputs_(inputs) {}

  bool run() {
    std::set<int> images;
    return element_.axes.size() >= 3 && visit(element_.value, images) && !images.empty();
  }

 private:
  bool is_image(int input) const {
    if (static_cast<size_t>(input) >= inputs_.size()) return false;  // a float that a rule leaves open
    const TensorExpr& tensor = inputs_[static_cast<size_t>(input)];
    return tensor.at && tensor.shape.size() == element_.axes.size();
  }

  // Whether all reads of e are in place; the images that it reads are added to `images`.
  bool visit(const Expr& e, std::set<int>& images) {
    if (e->kind == ExprKind::Read && is_image(e->input)) {
      images.insert(e->input);
      return is_in_place(e->subscripts);
    }
    if (e->kind == ExprKind::Reduce) {
      std::set<int> combined;
      if (!visit(e->args[0], combined) || combined.size() > 1) return false;
      images.insert(combined.begin(), combined.end());
      return true;
    }
    return std::all_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return visit(a, images); });
  }

  bool is_in_place(const std::vector<Index>& subscripts) const {
    for (size_t axis = 0; axis < subscripts.size(); axis++)
      if (axis < 2 ? !is_shifted(subscripts[axis], axis) : depends_on_others(subscripts[axis], axis)) return false;
    return true;
  }
  bool is_shifted(const Index& subscript, size_t axis) const {
    const auto& terms = subscript.terms();
    return terms.empty() || (terms.size() == 1 && terms[0].atoms == std::vector<AtomId>{element_.axes[axis]});
  }
  bool depends_on_others(const Index& subscript, size_t axis) const {
    const Symbols symbols = symbols_of(subscript);
    for (size_t other = 0; other < element_.axes.size(); other++)
      if (other != axis && symbols.contains(element_.axes[other])) return true;
    return false;
  }

  const Element& element_;
  const std::vector<TensorExpr>& inputs_;
};

Index row_major(const Shape& shape, const std::vector<Index>& subscripts) {
  Index place(0);
  for (size_t axis = 0; axis < shape.size(); axis++) place = place * shape[axis] + subscripts[axis];
  return place;
}

}  // namespace

bool follows_layout(const Element& element, const std::vector<TensorExpr>& inputs) {
  return LayoutFollower(element, inputs).run();
}

bool keeps_order(const Element& element, const TensorExpr& input) {
  const Expr& value = element.value;
  if (value->kind != ExprKind::Read || value->input != 0) return false;
  if (product_of(element.shape) != product_of(input.shape)) return false;
  std::vector<Index> subscripts;
  Substitution alone;  // along an axis of one place
  for (size_t axis = 0; axis < element.axes.size(); axis++) {
    subscripts.push_back(Index::from_atom(element.axes[axis]));
    if (element.shape[axis] == Index(1)) alone[element.axes[axis]] = Index(0);
  }
  const Index read = row_major(input.shape, value->subscripts), own = row_major(element.shape, subscripts);
  return read == own || substitute(read, alone) == substitute(own, alone);
}

}  // namespace gopt::planner
