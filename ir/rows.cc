// The proof goes node by node. A value is made of rows where one of its extents is the symbol `extent` times some other
// number m: row i is what lies at [i m, (i + 1) m) along that axis. A node keeps rows apart where element i m + r of
// its output reads inputs that are made of rows at i m' + r' alone, and neither r' nor anything else in its definition
// (guards, reductions, other subscripts) depends on i or on how many rows there are. That r' lies within [0, m') need
// not be shown: the definition stays within its inputs where there is one row, and r' is the same there.
#include "gopt/rows.h"

#include <algorithm>
#include <map>
#include <set>

#include "gopt/definition.h"
#include "gopt/node_names.h"

namespace gopt {
namespace {

struct Rows {
  size_t axis;
  Index each;  // extent of the axis in one row
};

// Nothing: the product is not one of the symbol and others.
std::optional<Index> divided(const Index& extent, AtomId symbol) {
  if (extent.constant() != 0) return std::nullopt;
  Index quotient;
  for (const Index::Term& term : extent.terms()) {
    Index product(term.coefficient);
    int found = 0;
    for (const AtomId id : term.atoms) {
      if (id == symbol)
        found++;
      else
        product = product * Index::from_atom(id);
    }
    if (found != 1) return std::nullopt;
    quotient += product;
  }
  std::set<AtomId> symbols;
  collect_symbols(quotient, symbols);
  return symbols.contains(symbol) ? std::nullopt : std::optional(quotient);
}

class RowProof {
 public:
  RowProof(const Graph& graph, AtomId extent) : graph_(graph), extent_(extent), row_(symbol_atom("@row")) {}

  std::optional<std::string> run() {
    for (const NodePtr& node : graph_.nodes()) {
      const auto why = why_not(*node);
      if (why && node->is(OpKind::Input)) return name_of_node(*node) + ": " + *why;
      if (why) mixed_.emplace(node.get(), cause_of(*node, *why));
    }
    for (const GraphOutput& output : graph_.outputs()) {
      const auto mixed = mixed_.find(output.value.node.get());
      if (mixed != mixed_.end()) return mixed->second;
      if (const auto rows = rows_of(output.value.type()); rows && rows->axis != 0)
        return "output " + output.name + " has the extent on an axis that is not its first";
    }
    return std::nullopt;
  }

 private:
  // Of a node that mixes rows, or reads what does: the first such node. A shape that is only asked for is none.
  std::string cause_of(const Node& node, const std::string& why) const {
    for (const Value& v : node.inputs)
      if (const auto mixed = v ? mixed_.find(v.node.get()) : mixed_.end(); mixed != mixed_.end()) return mixed->second;
    return name_of_node(node) + ": " + why;
  }

  // Precondition: is_made_of_rows_or_none(type).
  std::optional<Rows> rows_of(const TensorType& type) const {
    for (size_t axis = 0; axis < type.shape->size(); axis++)
      if (mentions((*type.shape)[axis])) return Rows{axis, *divided((*type.shape)[axis], extent_)};
    return std::nullopt;
  }
  bool is_made_of_rows_or_none(const TensorType& type) const {
    if (!type.shape) return false;
    int axes = 0;
    for (const Index& extent : *type.shape) {
      if (!mentions(extent)) continue;
      if (!divided(extent, extent_)) return false;
      axes++;
    }
    return axes <= 1;
  }

  bool mentions(const Index& index) const {
    std::set<AtomId> symbols;
    collect_symbols(index, symbols);
    return symbols.contains(extent_) || symbols.contains(row_);
  }

  std::optional<std::string> why_not(const Node& node) const {
    for (const TensorType& type : node.outputs)
      if (!is_made_of_rows_or_none(type)) return to_string(type) + " is not made of rows";
    if (node.is(OpKind::Constant)) return std::nullopt;
    if (node.is(OpKind::Input)) {
      const auto rows = rows_of(node.outputs[0]);
      if (rows && (rows->axis != 0 || rows->each != Index(1))) return "the extent is not its first, by itself";
      return std::nullopt;
    }
    if (node.is(OpKind::Opaque)) return "it has no definition";
    std::vector<TensorExpr> inputs;
    for (size_t k = 0; k < node.inputs.size(); k++) {
      const Value& v = node.inputs[k];
      if (v && !v.type().shape) return "it reads a tensor of unknown rank";
      inputs.push_back(v ? input_tensor(static_cast<int>(k), v.type()) : TensorExpr{});
      // Definitions look at numbers that an operator is told: the exponent of Pow, the ends of Range.
      if (v && v.node->is(OpKind::Constant) && v.node->tensor.count() == 1 && is_computable(v.node->tensor.type()))
        inputs.back().data = &v.node->tensor;
    }
    const auto definition = define(node.op, inputs, node.attributes, static_cast<int>(node.outputs.size()));
    if (!definition.ok()) return definition.error().message;
    for (const Requirement& requirement : definition->requirements)
      if (!is_free(requirement.cond)) return "it asks for " + requirement.what;
    if (definition->outputs.size() < node.outputs.size()) return "it has outputs that its definition lacks";
    for (size_t o = 0; o < node.outputs.size(); o++)
      if (!keeps_rows_apart(node, node.outputs[o], definition->outputs[o])) return "its rows may depend on each other";
    return std::nullopt;
  }

  bool keeps_rows_apart(const Node& node, const TensorType& type, const TensorExpr& output) const {
    const auto rows = rows_of(type);
    std::vector<Index> at;
    for (size_t axis = 0; axis < type.shape->size(); axis++) {
      at.push_back(symbol("@r" + std::to_string(axis)));
      if (!rows || rows->axis != axis) continue;
      if (rows->each == Index(1)) at.back() = Index(0);
      at.back() += rows->each * Index::from_atom(row_);
    }
    std::set<const Expr::Node*> seen;
    return is_of_own_row(node, output.at(at), seen);
  }

  bool is_of_own_row(const Node& node, const Expr& e, std::set<const Expr::Node*>& seen) const {
    if (!seen.insert(e.get()).second) return true;
    if (e->kind == ExprKind::Read && !reads_own_row(node, e->input, e->subscripts)) return false;
    if (e->kind == ExprKind::Size && !is_free(node, e->index)) return false;
    if (e->kind == ExprKind::Select && !is_free(node, e->cond)) return false;
    for (const Binder& binder : e->binders)
      if (!is_free(node, binder.extent)) return false;
    return std::all_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return is_of_own_row(node, a, seen); });
  }

  bool reads_own_row(const Node& node, int input, const std::vector<Index>& subscripts) const {
    const Value& read = node.inputs[static_cast<size_t>(input)];
    if (mixed_.contains(read.node.get())) return false;
    const auto rows = rows_of(read.type());
    for (size_t axis = 0; axis < subscripts.size(); axis++) {
      const bool is_row = rows && rows->axis == axis;
      const Index rest = is_row ? subscripts[axis] - rows->each * Index::from_atom(row_) : subscripts[axis];
      if (!is_free(node, rest)) return false;
    }
    return true;
  }

  // Of the row's number and of how many there are; what is loaded is of the own row.
  bool is_free(const Node& node, const Index& index) const {
    for (const Index::Term& term : index.terms())
      for (const AtomId id : term.atoms) {
        const Atom& a = atom(id);
        const bool is_own = a.kind == AtomKind::Symbol     ? id != extent_ && id != row_
                            : a.kind == AtomKind::FloorDiv ? is_free(node, a.numerator) && is_free(node, a.denominator)
                                                           : reads_own_row(node, a.input, a.subscripts);
        if (!is_own) return false;
      }
    return true;
  }
  bool is_free(const Node& node, const Cond& cond) const {
    if (cond.kind() == CondKind::NonNegative) return is_free(node, cond.index());
    return std::all_of(cond.parts().begin(), cond.parts().end(), [&](const Cond& c) { return is_free(node, c); });
  }
  // Without loads.
  bool is_free(const Cond& cond) const {
    std::set<AtomId> symbols;
    collect_symbols(cond, symbols);
    return !symbols.contains(extent_);
  }

  const Graph& graph_;
  AtomId extent_, row_;
  std::map<const Node*, std::string> mixed_;  // values that are not made row by row, and why
};

}  // namespace

std::optional<std::string> why_rows_depend(const Graph& graph, AtomId extent) { return RowProof(graph, extent).run(); }

}  // namespace gopt
