#include "transposition.h"

#include <algorithm>

#include "../writer.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kFewest = 8;  // of either side, for which squares are worth it
constexpr int64_t kRows = 64;   // that are read at once

bool is_long(const Loop& loop) { return loop.extent().as_constant().value_or(0) >= kFewest; }

bool is_turned_over(ElementType type) { return type == ElementType::Float32 || type == ElementType::BFloat16; }

// The loop along which what is read lies together, if what is written does along the last one and nothing else is done.
std::optional<size_t> loop_across(const KernelBody& body) {
  const Expr& value = body.value;
  if (value->kind != ExprKind::Read || body.loops.size() < 2 || !is_long(body.loops.back())) return std::nullopt;
  if (!is_turned_over(body.output) || !is_turned_over(body.inputs[static_cast<size_t>(value->input)]))
    return std::nullopt;
  const Index& from = value->subscripts[0];
  const AtomId last = body.loops.back().symbol;
  if (has_load(from) || coefficient(body.offset, last) != 1 || coefficient(from, last).value_or(1) < kFewest)
    return std::nullopt;
  for (size_t l = 0; l + 1 < body.loops.size(); l++) {
    const Loop& loop = body.loops[l];
    const bool is_together = coefficient(from, loop.symbol) == 1 && coefficient(body.offset, loop.symbol).has_value();
    if (is_together && is_long(loop)) return l;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> print_transposition(const KernelBody& body, bool parallel) {
  const auto across = loop_across(body);
  if (!across) return std::nullopt;
  const Loop &columns = body.loops[*across], &rows = body.loops.back();
  const Index& from = body.value->subscripts[0];
  Writer writer(body);
  Scope& scope = writer.add_scope(writer.root());
  std::string loops, closing;
  const auto enter = [&](const Loop& loop, const std::string& name, const std::string& step) {
    loops += "for (int64_t " + name + " = " + writer.index_text(loop.low, scope) + "; " + name + " < " +
             writer.index_text(loop.high, scope) + "; " + name + step + ") {\n";
    scope.bound.emplace_back(loop.symbol, name);
    closing += "}\n";
  };
  for (size_t l = 0; l + 1 < body.loops.size(); l++)
    if (l != *across) enter(body.loops[l], writer.fresh("i"), "++");
  enter(rows, "row", " += " + std::to_string(kRows));
  const size_t depth = scope.bound.size();
  const Substitution first{{columns.symbol, columns.low}};
  const auto at = [&](const Index& index) { return writer.index_text(substitute(index, first), scope); };
  const auto stride = [](const Index& index, const Loop& loop) {
    return std::to_string(coefficient(index, loop.symbol).value());
  };
  const std::string pragma =
      parallel ? "#pragma omp for schedule(static) nowait collapse(" + std::to_string(depth) + ")\n" : "";
  return "{\n" + pragma + loops + "gopt_runtime::transpose(in" + std::to_string(body.value->input) + " + " + at(from) +
         ", " + stride(from, rows) + ", out + " + at(body.offset) + ", " + stride(body.offset, columns) +
         ", gopt_min<int64_t>(" + std::to_string(kRows) + ", " + writer.index_text(rows.high, scope) + " - row), " +
         writer.index_text(columns.extent(), scope) + ");\n" + closing + "}\n";
}

}  // namespace gopt::codegen
