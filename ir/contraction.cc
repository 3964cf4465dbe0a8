#include "contraction.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace gopt::ir {
namespace {

// What tables are over: an axis of the stage or a binder of the sum.
struct Variable {
  AtomId symbol;
  int64_t extent;
};
using Table = std::vector<int64_t>;  // by the variable's values

// An index as a number and a table for each variable, whose sum it is.
struct Separated {
  int64_t base = 0;
  std::vector<Table> tables;

  int64_t least() const {
    return extreme([](const Table& t) { return *std::ranges::min_element(t); });
  }
  int64_t most() const {
    return extreme([](const Table& t) { return *std::ranges::max_element(t); });
  }

 private:
  template <class F>
  int64_t extreme(const F& of_table) const {
    int64_t sum = base;
    for (const Table& table : tables) sum += of_table(table);
    return sum;
  }
};

Separated nothing(const std::vector<Variable>& variables) {
  Separated separated;
  for (const Variable& v : variables) separated.tables.emplace_back(static_cast<size_t>(v.extent), 0);
  return separated;
}

bool add_term(const Index::Term& term, const std::vector<Variable>& variables, Separated& sum) {
  Index index(term.coefficient);
  for (const AtomId atom : term.atoms) index = index * Index::from_atom(atom);
  if (has_load(index)) return false;
  std::set<AtomId> symbols;
  collect_symbols(index, symbols);
  if (symbols.size() != 1) return false;
  const auto variable = std::ranges::find(variables, *symbols.begin(), &Variable::symbol);
  if (variable == variables.end()) return false;
  Table& table = sum.tables[static_cast<size_t>(variable - variables.begin())];
  const bool is_linear = term.atoms.size() == 1 && term.atoms[0] == variable->symbol;
  for (int64_t value = 0; value < variable->extent; value++) {
    const auto at = is_linear ? term.coefficient * value : evaluate(index, {{variable->symbol, value}});
    if (!at) return false;
    table[static_cast<size_t>(value)] += *at;
  }
  return true;
}

std::optional<Separated> separate(const Index& index, const std::vector<Variable>& variables) {
  Separated sum = nothing(variables);
  sum.base = index.constant();
  for (const Index::Term& term : index.terms())
    if (!add_term(term, variables, sum)) return std::nullopt;
  return sum;
}

void add_scaled(Separated& sum, const Separated& other, int64_t factor) {
  sum.base += other.base * factor;
  for (size_t v = 0; v < sum.tables.size(); v++)
    for (size_t at = 0; at < sum.tables[v].size(); at++) sum.tables[v][at] += other.tables[v][at] * factor;
}

// Conditions that all have to hold; nothing where it is no such list.
std::optional<std::vector<Index>> conjuncts(const Cond& cond) {
  std::vector<Index> all;
  if (cond.kind() == CondKind::True) return all;
  if (cond.kind() == CondKind::NonNegative) return std::vector<Index>{cond.index()};
  if (cond.kind() != CondKind::And) return std::nullopt;
  for (const Cond& part : cond.parts()) {
    const auto own = conjuncts(part);
    if (!own) return std::nullopt;
    all.insert(all.end(), own->begin(), own->end());
  }
  return all;
}

// Where an operand is read. Nothing where that may lie outside of it: what would be an error there is left to others.
std::optional<Separated> offsets_of(const Expr& read, const TensorView& tensor, const std::vector<Variable>& variables,
                                    const std::vector<Index>& guards) {
  const auto is_guarded = [&](const Index& index) { return std::ranges::find(guards, index) != guards.end(); };
  Separated offsets = nothing(variables);
  int64_t stride = 1;
  for (size_t axis = tensor.dims.size(); axis-- > 0; stride *= tensor.dims[axis]) {
    const Index& subscript = read->subscripts[axis];
    const auto separated = separate(subscript, variables);
    if (!separated) return std::nullopt;
    if (separated->least() < 0 && !is_guarded(subscript)) return std::nullopt;
    const int64_t last = tensor.dims[axis] - 1;
    if (separated->most() > last && !is_guarded(Index(last) - subscript)) return std::nullopt;
    add_scaled(offsets, *separated, stride);
  }
  return offsets;
}

bool is_finite(const TensorView& tensor) {
  for (int64_t at = 0; at < element_count(tensor.dims); at++) {
    float value;
    std::memcpy(&value, tensor.data + at * static_cast<int64_t>(sizeof value), sizeof value);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

// ---- axes ----

enum Side { kRowSide, kColumnSide };

// One axis of the result, or a part of it: what it adds to each offset and guard.
struct Axis {
  Table out;
  Table offsets[2];           // of the operands
  std::vector<Table> guards;  // of whichever operand

  int64_t extent() const { return static_cast<int64_t>(out.size()); }
};

bool varies(const Table& table) {
  return std::ranges::any_of(table, [&](int64_t value) { return value != table[0]; });
}

// Every `step`-th entry, or the first so many.
Table strided(const Table& table, int64_t step) {
  Table result;
  for (size_t at = 0; at < table.size(); at += static_cast<size_t>(step)) result.push_back(table[at]);
  return result;
}
Table first_of(const Table& table, int64_t count) {
  Table result(table.begin(), table.begin() + count);
  for (int64_t& value : result) value -= table[0];
  return result;
}

bool is_sum_of_parts(const Table& table, int64_t block) {
  for (size_t at = 0; at < table.size(); at++) {
    const auto place = at % static_cast<size_t>(block);
    if (table[at] != table[at - place] + table[place] - table[0]) return false;
  }
  return true;
}

// Groups of a convolution: where one operand stays the same for blocks of an axis that both depend on, the axis is two.
std::optional<std::pair<Axis, Axis>> split_groups(const Axis& axis) {
  std::vector<const Table*> tables{&axis.out, &axis.offsets[0], &axis.offsets[1]};
  for (const Table& guard : axis.guards) tables.push_back(&guard);
  for (const Table& steady : axis.offsets) {
    const auto change = std::ranges::adjacent_find(steady, std::not_equal_to<>());
    if (change == steady.end()) continue;
    const int64_t block = change - steady.begin() + 1;
    const auto fits = [&](const Table* table) { return is_sum_of_parts(*table, block); };
    if (block == 1 || axis.extent() % block != 0 || !std::ranges::all_of(tables, fits)) continue;
    Axis blocks{strided(axis.out, block), {strided(axis.offsets[0], block), strided(axis.offsets[1], block)}, {}};
    Axis within{first_of(axis.out, block), {first_of(axis.offsets[0], block), first_of(axis.offsets[1], block)}, {}};
    for (const Table& guard : axis.guards) {
      blocks.guards.push_back(strided(guard, block));
      within.guards.push_back(first_of(guard, block));
    }
    return std::pair(std::move(blocks), std::move(within));
  }
  return std::nullopt;
}

// All sums of an entry of `outer` and one of `inner`.
Table joined(const Table& outer, const Table& inner) {
  Table sums;
  sums.reserve(outer.size() * inner.size());
  for (const int64_t first : outer)
    for (const int64_t second : inner) sums.push_back(first + second);
  return sums;
}

// ---- the product ----

class ProductFinder {
 public:
  ProductFinder(const Stage& stage, std::span<const TensorView> inputs) : stage_(stage), inputs_(inputs) {}

  std::optional<BlockedProduct> find(const Expr& sum) {
    if (sum->kind != ExprKind::Reduce || sum->reduce != ReduceKind::Sum || !take_variables(sum)) return std::nullopt;
    Expr body = sum->args[0];
    std::vector<Index> guards;
    if (body->kind == ExprKind::Select) {
      const auto all = conjuncts(body->cond);
      const Expr& otherwise = body->args[1];
      if (!all || otherwise->kind != ExprKind::Constant || otherwise->value != 0) return std::nullopt;
      guards = *all;
      body = body->args[0];
    }
    if (body->kind != ExprKind::Multiply || !is_float(body->args[0]) || !is_float(body->args[1])) return std::nullopt;
    for (const Side side : {kRowSide, kColumnSide}) {
      const TensorView& tensor = inputs_[static_cast<size_t>(body->args[side]->input)];
      tensors_[side] = &tensor;
      const auto offsets = offsets_of(body->args[side], tensor, variables_, guards);
      if (!offsets) return std::nullopt;
      offsets_[side] = *offsets;
    }
    for (const Index& guard : guards) {
      const auto separated = separate(guard, variables_);
      if (!separated) return std::nullopt;
      if (separated->least() < 0) guards_.push_back(*separated);
    }
    return arranged();
  }

 private:
  bool is_float(const Expr& e) const {
    return e->kind == ExprKind::Read && inputs_[static_cast<size_t>(e->input)].type == ElementType::Float32;
  }

  bool take_variables(const Expr& sum) {
    const auto add = [&](AtomId symbol, const Index& extent) {
      variables_.push_back({symbol, extent.as_constant().value_or(0)});
      return variables_.back().extent > 0;
    };
    for (size_t axis = 0; axis < stage_.axes.size(); axis++)
      if (!add(stage_.axes[axis], stage_.shape[axis])) return false;
    return std::ranges::all_of(sum->binders, [&](const Binder& b) { return add(b.symbol, b.extent); });
  }

  std::vector<Axis> axes() const {
    std::vector<Axis> axes;
    int64_t stride = 1;
    for (size_t v = stage_.axes.size(); v-- > 0; stride *= variables_[v].extent) {
      Axis axis{{}, {offsets_[0].tables[v], offsets_[1].tables[v]}, {}};
      for (int64_t at = 0; at < variables_[v].extent; at++) axis.out.push_back(at * stride);
      for (const Separated& guard : guards_) axis.guards.push_back(guard.tables[v]);
      axes.push_back(std::move(axis));
    }
    std::ranges::reverse(axes);
    return axes;
  }

  // Which axes are rows of the product, which columns, and which are neither since both operands depend on them.
  struct Arrangement {
    std::vector<Axis> rows, columns, batches;
    Side of_rows = kRowSide;  // the operand that rows are of; columns are of the other
  };
  Arrangement sorted_axes() const {
    std::vector<Axis> all;
    for (Axis& axis : axes()) {
      auto parts = varies(axis.offsets[0]) && varies(axis.offsets[1]) ? split_groups(axis) : std::nullopt;
      if (parts) all.insert(all.end(), {std::move(parts->first), std::move(parts->second)});
      if (!parts) all.push_back(std::move(axis));
    }
    Arrangement sorted;
    bool innermost_is_row = false;
    for (Axis& axis : all) {
      const bool first = varies(axis.offsets[0]), second = varies(axis.offsets[1]);
      if (axis.extent() > 1) innermost_is_row = !second;
      (first && second ? sorted.batches : second ? sorted.columns : sorted.rows).push_back(std::move(axis));
    }
    // What is written in a row lies in one where its axis is the innermost.
    if (innermost_is_row) {
      std::swap(sorted.rows, sorted.columns);
      sorted.of_rows = kColumnSide;
    }
    return sorted;
  }

  template <class F>
  static Table table_over(const std::vector<Axis>& axes, const F& of_axis) {
    Table table{0};
    for (const Axis& axis : axes) table = joined(table, of_axis(axis));
    return table;
  }
  Table depth_of(const Separated& index) const {
    Table table{0};
    for (size_t v = stage_.axes.size(); v < variables_.size(); v++) table = joined(table, index.tables[v]);
    return table;
  }

  ProductOperand operand(Side side, const std::vector<Axis>& axes) const {
    return {tensors_[side]->data,
            table_over(axes, [&](const Axis& axis) { return axis.offsets[side]; }),
            depth_of(offsets_[side]),
            {}};
  }

  // Each guard is of rows or of columns alone, or of the depth, as where a window is larger than a padded axis of one
  // place: then of both, since either may be what lies outside there.
  bool add_guards(const Arrangement& sorted, BlockedProduct& product) const {
    for (size_t g = 0; g < guards_.size(); g++) {
      const auto is_varied = [&](const Axis& axis) { return varies(axis.guards[g]); };
      const bool by_rows = std::ranges::any_of(sorted.rows, is_varied),
                 by_columns = std::ranges::any_of(sorted.columns, is_varied);
      if (std::ranges::any_of(sorted.batches, is_varied) || (by_rows && by_columns)) return false;
      const auto add = [&](const std::vector<Axis>& axes, ProductOperand& operand) {
        ProductGuard guard{table_over(axes, [&](const Axis& axis) { return axis.guards[g]; }), depth_of(guards_[g])};
        for (int64_t& value : guard.depth) value += guards_[g].base;
        operand.guards.push_back(std::move(guard));
      };
      if (!by_columns) add(sorted.rows, product.rows);
      if (!by_rows) add(sorted.columns, product.columns);
    }
    const Side columns = sorted.of_rows == kRowSide ? kColumnSide : kRowSide;
    // A zero in place of what is not read is none times what is infinite.
    return (product.columns.guards.empty() || is_finite(*tensors_[sorted.of_rows])) &&
           (product.rows.guards.empty() || is_finite(*tensors_[columns]));
  }

  std::optional<BlockedProduct> arranged() const {
    constexpr size_t kWorthIt = 16;  // elements of a matrix
    const Arrangement sorted = sorted_axes();
    const Side columns = sorted.of_rows == kRowSide ? kColumnSide : kRowSide;
    const auto out = [](const Axis& axis) { return axis.out; };
    BlockedProduct product{operand(sorted.of_rows, sorted.rows),
                           operand(columns, sorted.columns),
                           table_over(sorted.rows, out),
                           table_over(sorted.columns, out),
                           {}};
    if (product.out_rows.size() * product.out_columns.size() < kWorthIt) return std::nullopt;
    if (!add_guards(sorted, product)) return std::nullopt;
    const auto offsets = [&](Side side) {
      return table_over(sorted.batches, [&](const Axis& axis) { return axis.offsets[side]; });
    };
    const Table of_rows = offsets(sorted.of_rows), of_columns = offsets(columns),
                of_out = table_over(sorted.batches, out);
    for (size_t at = 0; at < of_out.size(); at++)
      product.batches.push_back(
          {of_rows[at] + offsets_[sorted.of_rows].base, of_columns[at] + offsets_[columns].base, of_out[at]});
    return product;
  }

  const Stage& stage_;
  std::span<const TensorView> inputs_;
  std::vector<Variable> variables_;  // axes, then binders
  const TensorView* tensors_[2] = {};
  Separated offsets_[2];
  std::vector<Separated> guards_;  // that do not always hold
};

bool is_arithmetic(ExprKind kind) {
  switch (kind) {
    case ExprKind::Add:
    case ExprKind::Subtract:
    case ExprKind::Multiply:
    case ExprKind::Divide:
    case ExprKind::Maximum:
    case ExprKind::Minimum:
    case ExprKind::Call:
    case ExprKind::Convert: return true;
    default: return false;
  }
}

// The expression with its first sum replaced, which is given out. What is guarded is left: it may not be computed
// everywhere.
Expr without_sum(const Expr& e, const Expr& replacement, Expr& sum) {
  if (e->kind == ExprKind::Reduce) {
    sum = e;
    return replacement;
  }
  if (!is_arithmetic(e->kind)) return e;
  Expr::Node node = *e;
  node.height = 0;
  for (Expr& arg : node.args) {
    if (sum) break;
    arg = without_sum(arg, replacement, sum);
  }
  return sum ? Expr::make(std::move(node)) : e;
}

}  // namespace

std::optional<FoundProduct> find_product(const Stage& stage, std::span<const TensorView> inputs, int input) {
  if (stage.value->height == 0) return std::nullopt;
  std::vector<Index> at;
  for (const AtomId axis : stage.axes) at.push_back(Index::from_atom(axis));
  Expr sum, rest = without_sum(stage.value, read(input, std::move(at)), sum);
  if (!sum) return std::nullopt;
  auto product = ProductFinder(stage, inputs).find(sum);
  if (!product) return std::nullopt;
  return FoundProduct{*std::move(product), std::move(rest), sum == stage.value};
}

}  // namespace gopt::ir
