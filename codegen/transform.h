// Rewriting of element expressions before they are printed: simplification under the ranges of loops, strides of reads.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "gopt/bounds.h"
#include "gopt/expr.h"
#include "lower.h"

namespace gopt::codegen {

using IndexMap = std::function<Index(const Index&)>;
// Rebuilds an expression with indexes (also in guards) and reads replaced. Without a read map, subscripts go through
// the index map.
Expr map_expr(const Expr& e, const IndexMap& index, const ReadFunction& read = {});
Cond map_cond(const Cond& cond, const IndexMap& index);
// Replaces each load within an index.
Index map_loads(const Index& index, const std::function<Index(int input, const std::vector<Index>& subscripts)>& load);

// What a kernel's loops say of their symbols: as numbers, and where extents are open also as expressions of them.
struct Known {
  Ranges numbers;
  std::optional<SymbolBounds> bounds;
};
Known known_of(const KernelBody& body);
// With binders' ranges added: also of those within reductions.
Known with_binders(const Expr& e, Known known);
Index simplify(const Index& index, const Known& known);
Cond simplify(const Cond& cond, const Known& known);
bool is_surely_nonnegative(const Index& index, const Known& known);

// With indexes and guards simplified by what is known, and by the ranges of binders.
Expr simplify(const Expr& e, const Known& known);

// The constant a of index = a * symbol + rest, where rest does not depend on the symbol; nothing where it is not
// linear.
std::optional<int64_t> coefficient(const Index& index, AtomId symbol);
bool depends_on(const Index& index, AtomId symbol);

// Every index of an expression: offsets of reads, sizes and guards (also those of reductions).
void for_each_index(const Cond& cond, const std::function<void(const Index&)>& visit);
void for_each_index(const Expr& e, const std::function<void(const Index&)>& visit);
// Every read, those of reductions too.
void for_each_read(const Expr& e, const std::function<void(const Expr&)>& visit);

}  // namespace gopt::codegen
