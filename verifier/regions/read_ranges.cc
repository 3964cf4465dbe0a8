#include "read_ranges.h"

#include <algorithm>

namespace gopt::verifier {
namespace {

struct Span {
  Index low, high;  // both inclusive
};
using Spans = std::map<AtomId, Span>;

// No text can spell it, so that no rule has it.
std::string position_name(size_t axis) { return "@" + std::to_string(axis); }

std::vector<Index> position_symbols(size_t rank) {
  std::vector<Index> position;
  for (size_t axis = 0; axis < rank; axis++) position.push_back(symbol(position_name(axis)));
  return position;
}

std::vector<TensorExpr> input_tensors(const Node& node) {
  std::vector<TensorExpr> inputs;
  for (size_t i = 0; i < node.inputs.size(); i++)
    inputs.push_back(node.inputs[i] ? input_tensor(static_cast<int>(i), node.inputs[i].type()) : TensorExpr{});
  return inputs;
}

Result<Definition> definition_of(const Node& node, const Attributes& attributes) {
  return define(node.op, input_tensors(node), attributes, static_cast<int>(node.outputs.size()));
}

template <class Visit>
void visit_reads(const Expr& e, const Visit& visit) {
  if (e->kind == ExprKind::Read) visit(*e);
  for (const Expr& a : e->args) visit_reads(a, visit);
}

// Ranges of reads in an expression.
class ReadCollector {
 public:
  ReadCollector(const Node& node, const Box& box, const Shape& shape, const SizeSigns& signs)
      : node_(node), box_(box), shape_(shape), signs_(signs) {
    reads_.resize(node.inputs.size());
    for (size_t axis = 0; axis < box.size(); axis++) {
      const AtomId at = symbol_atom(position_name(axis));
      spans_[at] = {box[axis].low, box[axis].high - Index(1)};
      positions_[at] = axis;
    }
  }

  Status visit(const Expr& e) {
    if (e->kind == ExprKind::Reduce)
      for (const Binder& binder : e->binders) spans_[binder.symbol] = {Index(0), binder.extent - Index(1)};
    if (e->kind == ExprKind::Read && static_cast<size_t>(e->input) < reads_.size()) GOPT_RETURN_IF_ERROR(add(*e));
    for (const Expr& a : e->args) GOPT_RETURN_IF_ERROR(visit(a));
    return Unit{};
  }
  std::vector<InputReads> take() { return std::move(reads_); }

 private:
  Status add(const Expr::Node& read) {
    InputReads& own = reads_[static_cast<size_t>(read.input)];
    const Shape& extents = *node_.inputs[static_cast<size_t>(read.input)].type().shape;
    const bool is_first = !own.is_read;
    own.is_read = true;
    own.axes.resize(extents.size());
    for (size_t axis = 0; axis < extents.size(); axis++) {
      const Index& subscript = read.subscripts[axis];
      own.is_known = own.is_known && !has_load(subscript);
      if (!own.is_known) return Unit{};
      const std::vector<bool> follows = followed_axes(subscript);
      const auto span =
          is_whole(follows) && !is_linear(subscript) ? Span{Index(0), extents[axis] - Index(1)} : span_of(subscript);
      if (!span) return Error{"which places are read depends on the sizes: " + to_string(subscript)};
      GOPT_RETURN_IF_ERROR(widen(own.axes[axis], *span, follows, is_first));
    }
    return Unit{};
  }

  Status widen(ReadRange& range, const Span& span, const std::vector<bool>& follows, bool is_first) {
    const Index high = span.high + Index(1);
    if (is_first) {
      range = {span.low, high, follows};
      return Unit{};
    }
    const auto low = signs_.smaller(range.low, span.low), top = signs_.larger(range.high, high);
    if (!low || !top) return Error{"which of two places is read first depends on the sizes"};
    range.low = *low;
    range.high = *top;
    for (size_t axis = 0; axis < follows.size(); axis++) range.follows[axis] = range.follows[axis] || follows[axis];
    return Unit{};
  }

  std::vector<bool> followed_axes(const Index& subscript) const {
    std::set<AtomId> symbols;
    collect_symbols(subscript, symbols);
    std::vector<bool> follows(box_.size());
    for (AtomId id : symbols)
      if (auto it = positions_.find(id); it != positions_.end()) follows[it->second] = true;
    return follows;
  }
  bool is_whole(const std::vector<bool>& follows) const {
    for (size_t axis = 0; axis < follows.size(); axis++)
      if (follows[axis] && (box_[axis].low != Index(0) || box_[axis].high != shape_[axis])) return false;
    return true;
  }
  static bool is_linear(const Index& subscript) {
    return std::all_of(subscript.terms().begin(), subscript.terms().end(), [](const Index::Term& term) {
      return std::all_of(term.atoms.begin(), term.atoms.end(),
                         [](AtomId id) { return atom(id).kind == AtomKind::Symbol; });
    });
  }

  // Nothing where a factor's sign is not known, or two that vary are multiplied.
  std::optional<Span> span_of(const Index& index) const {
    Span sum{Index(index.constant()), Index(index.constant())};
    for (const Index::Term& term : index.terms()) {
      Index factor(term.coefficient);
      std::optional<Span> varying;
      for (AtomId id : term.atoms) {
        const auto own = span_of_atom(id);
        if (!own) return std::nullopt;
        if (own->low == own->high) {
          factor = factor * own->low;
        } else if (varying) {
          return std::nullopt;
        } else {
          varying = own;
        }
      }
      if (!varying) varying = Span{Index(1), Index(1)};
      const bool rises = signs_.is_never_below(factor, Index(0));
      if (!rises && !signs_.is_never_below(Index(0), factor)) return std::nullopt;
      sum.low += factor * (rises ? varying->low : varying->high);
      sum.high += factor * (rises ? varying->high : varying->low);
    }
    return sum;
  }
  std::optional<Span> span_of_atom(AtomId id) const {
    if (auto it = spans_.find(id); it != spans_.end()) return it->second;
    const Atom& a = atom(id);
    if (a.kind == AtomKind::Symbol) return Span{Index::from_atom(id), Index::from_atom(id)};
    if (a.kind != AtomKind::FloorDiv) return std::nullopt;
    const auto numerator = span_of(a.numerator), denominator = span_of(a.denominator);
    if (!numerator || !denominator || denominator->low != denominator->high) return std::nullopt;
    return Span{signs_.quotient(numerator->low, denominator->low), signs_.quotient(numerator->high, denominator->low)};
  }

  const Node& node_;
  const Box& box_;
  const Shape& shape_;
  const SizeSigns& signs_;
  Spans spans_;
  std::map<AtomId, size_t> positions_;
  std::vector<InputReads> reads_;
};

bool mentions(const Index& index, AtomId id) {
  std::set<AtomId> symbols;
  collect_symbols(index, symbols);
  return symbols.contains(id);
}

}  // namespace

Result<std::vector<InputReads>> reads_of(const Node& node, int output, const Box& box, const SizeSigns& signs) {
  GOPT_ASSIGN_OR_RETURN(const Definition definition, definition_of(node, node.attributes));
  const TensorExpr& own = definition.outputs[static_cast<size_t>(output)];
  ReadCollector collector(node, box, own.shape, signs);
  GOPT_RETURN_IF_ERROR(collector.visit(own.at(position_symbols(box.size()))));
  return collector.take();
}

std::optional<std::vector<Index>> offsets_of(const Node& node, int output) {
  const auto definition = definition_of(node, node.attributes);
  if (!definition || !node.inputs[0]) return std::nullopt;
  const TensorExpr& own = definition->outputs[static_cast<size_t>(output)];
  const std::vector<Index> position = position_symbols(own.shape.size());
  const Expr value = own.at(position);
  if (value->kind != ExprKind::Read || value->input != 0 || value->subscripts.size() != position.size())
    return std::nullopt;
  std::vector<Index> offsets;
  for (size_t axis = 0; axis < position.size(); axis++) {
    offsets.push_back(value->subscripts[axis] - position[axis]);
    for (const Index& at : position)
      if (mentions(offsets.back(), *at.as_atom())) return std::nullopt;
  }
  return offsets;
}

std::vector<PadEntries> pad_entries(const Node& node) {
  const auto it = node.attributes.find("pads");
  if (it == node.attributes.end() || node.inputs.empty() || !node.inputs[0]) return {};
  const auto* pads = std::get_if<std::vector<Index>>(&it->second);
  std::vector<PadEntries> entries(node.inputs[0].type().shape->size());
  for (size_t k = 0; pads && k < pads->size(); k++) {
    const AtomId moved = symbol_atom("@moved");
    std::vector<Index> changed = *pads;
    changed[k] = Index::from_atom(moved);
    Attributes attributes = node.attributes;
    attributes.insert_or_assign("pads", changed);
    const auto definition = definition_of(node, attributes);
    if (!definition || definition->outputs[0].shape.size() != entries.size()) return {};
    const TensorExpr& own = definition->outputs[0];
    for (size_t axis = 0; axis < entries.size(); axis++) {
      if (!mentions(own.shape[axis], moved)) continue;
      bool moves = false;
      visit_reads(own.at(position_symbols(entries.size())), [&](const Expr::Node& read) {
        moves = moves || (read.input == 0 && mentions(read.subscripts[axis], moved));
      });
      (moves ? entries[axis].begin : entries[axis].end) = static_cast<int>(k);
    }
  }
  return entries;
}

}  // namespace gopt::verifier
