#include "transposition.h"

#include <algorithm>
#include <set>

#include "../writer.h"
#include "gopt/contains.h"
#include "shared_loops.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kFewest = 8;             // rows for which squares are worth it
constexpr int64_t kFewestColumns = 5;      // fewer, the compiler takes from whole vectors
constexpr int64_t kRows = 64;              // that are read at once
constexpr int64_t kColumns = 512;          // of these; threads share them, too
constexpr int64_t kFewestRowsOfTile = 32;  // fewer, as the lanes of a block, are gathered as fast by the vector loop

bool is_long(const Loop& loop, int64_t fewest) { return loop.extent().as_constant().value_or(0) >= fewest; }

bool is_turned_over(ElementType type) { return type == ElementType::Float32 || type == ElementType::BFloat16; }
bool is_of_8_bits(ElementType type) { return type == ElementType::UInt8 || type == ElementType::Int8; }
// What a tile may hold, and what may be stored of it.
bool is_turned_in_tiles(ElementType type) { return is_turned_over(type) || is_of_8_bits(type); }

// The loop along which what is read lies together, if what is written does along the last one.
std::optional<size_t> loop_across(const KernelBody& body, const Expr& read) {
  if (body.loops.size() < 2 || !is_long(body.loops.back(), kFewest)) return std::nullopt;
  const Index& from = read->subscripts[0];
  const AtomId last = body.loops.back().symbol;
  if (has_load(from) || coefficient(body.offset, last) != 1 || coefficient(from, last).value_or(1) < kFewestColumns)
    return std::nullopt;
  for (size_t l = 0; l + 1 < body.loops.size(); l++) {
    const Loop& loop = body.loops[l];
    const bool is_together = coefficient(from, loop.symbol) == 1 && coefficient(body.offset, loop.symbol).has_value();
    if (is_together && is_long(loop, kFewestColumns)) return l;
  }
  return std::nullopt;
}

// All that is read where each element is computed by arithmetic alone; nothing where it sums, or reads under a guard.
bool collect_reads(const Expr& e, std::vector<Expr>& reads, std::set<const Expr::Node*>& seen) {
  if (!seen.insert(e.get()).second) return true;
  if (e->kind == ExprKind::Reduce || e->kind == ExprKind::Select) return false;
  if (e->kind == ExprKind::Read && !contains(reads, e)) reads.push_back(e);
  return std::ranges::all_of(e->args, [&](const Expr& arg) { return collect_reads(arg, reads, seen); });
}

// Loops of C++ text around a scope.
class LoopText {
 public:
  LoopText(Writer& writer, Scope& scope) : writer_(writer), scope_(scope) {}

  void enter(const Loop& loop, const std::string& name, const std::string& step = "1") {
    loops_.push_back({name, at(loop.low), at(loop.high), step});
    scope_.bound.emplace_back(loop.symbol, name);
  }
  std::string at(const Index& index) const { return writer_.index_text(index, scope_); }

  std::string opening(bool is_shared) const { return opening_of(loops_, is_shared); }
  std::string closing(bool is_shared) const { return closing_of(loops_, is_shared); }

 private:
  Writer& writer_;
  Scope& scope_;
  std::vector<LoopHeader> loops_;
};

std::string stride_text(const Index& index, const Loop& loop) {
  return std::to_string(coefficient(index, loop.symbol).value());
}

// What is read across the order of writing comes turned over into a tile on the stack, where the element is computed.
class TileText {
 public:
  TileText(const KernelBody& body, const Expr& read, size_t across)
      : body_(body), read_(read), across_(across), columns_(body.loops[across]), rows_(body.loops.back()) {
    const auto tile = static_cast<int>(body_.inputs.size());
    body_.inputs.push_back(type_in_tile());
    const Index place =
        (symbol(columns_.symbol) - symbol(first_column_)) * Index(kRows) + symbol(rows_.symbol) - symbol(first_row_);
    body_.value = replace_reads(body.value, [&](int input, const std::vector<Index>& subscripts) {
      const bool is_it = input == read->input && subscripts == read->subscripts;
      return is_it ? gopt::read(tile, {place}) : Expr();
    });
  }

  ~TileText() {
    release_symbol(first_row_);
    release_symbol(first_column_);
  }
  TileText(const TileText&) = delete;
  TileText& operator=(const TileText&) = delete;

  std::string print(bool parallel) {
    Writer writer(body_);
    Scope& tiles = writer.add_scope(writer.root());
    LoopText outer(writer, tiles);
    for (size_t l = 0; l + 1 < body_.loops.size(); l++)
      if (l != across_) outer.enter(body_.loops[l], writer.fresh("i"));
    const std::string step = std::to_string(kRows);
    outer.enter({first_row_, rows_.low, rows_.high}, "row", step);
    outer.enter({first_column_, columns_.low, columns_.high}, "column", step);
    const std::string tile = "in" + std::to_string(body_.inputs.size() - 1);
    const std::string turned = tile_ends(outer) + storage_name(type_in_tile()) + " " + tile + "[" +
                               std::to_string(kRows * kRows) + "];\n" + "gopt_runtime::transpose(in" +
                               std::to_string(read_->input) + " + " + outer.at(at_first(read_->subscripts[0])) + ", " +
                               stride_text(read_->subscripts[0], rows_) + ", " + tile + ", " + std::to_string(kRows) +
                               ", row_end - row, column_end - column);\n";
    Scope& column = writer.add_scope(tiles);
    Scope& lane = writer.add_scope(column);
    column.bound = {{columns_.symbol, "c"}};
    lane.bound = {{rows_.symbol, "r"}};
    const Scalar type = writer.type_of(body_.value, scalar_of(body_.output));
    const std::string value = writer.value(body_.value, lane, type);
    const std::string store =
        "out[" + writer.index_text(body_.offset, lane) + "] = " + stored(value, type, body_.output) + ";\n";
    return "{\n" + writer.root().code + outer.opening(parallel) + turned + tiles.code +
           "for (int64_t c = column; c < column_end; c++) {\n" + column.code + "#pragma omp simd\n" +
           "for (int64_t r = row; r < row_end; r++) {\n" + lane.code + store + "}\n}\n" + outer.closing(parallel) +
           "}\n";
  }

 private:
  ElementType type_in_tile() const {
    const ElementType type = body_.inputs[static_cast<size_t>(read_->input)];
    return is_of_8_bits(type) ? type : ElementType::Float32;
  }
  Index at_first(const Index& index) const {
    return substitute(index, {{rows_.symbol, symbol(first_row_)}, {columns_.symbol, symbol(first_column_)}});
  }
  std::string tile_ends(const LoopText& loops) const {
    const auto end = [&](const std::string& name, const Loop& loop) {
      return "const int64_t " + name + "_end = gopt_min<int64_t>(" + name + " + " + std::to_string(kRows) + ", " +
             loops.at(loop.high) + ");\n";
    };
    return end("row", rows_) + end("column", columns_);
  }
  static Index symbol(AtomId atom) { return Index::from_atom(atom); }

  KernelBody body_;
  const Expr read_;
  const size_t across_;
  const Loop columns_, rows_;
  const AtomId first_row_ = fresh_symbol(), first_column_ = fresh_symbol();
};

// What is only moved is turned over from where it lies to where it goes.
class MoveText {
 public:
  MoveText(const KernelBody& body, size_t across) : body_(body), across_(across) {}
  ~MoveText() { release_symbol(first_column_); }
  MoveText(const MoveText&) = delete;
  MoveText& operator=(const MoveText&) = delete;

  std::string print(bool parallel) const {
    const Loop &columns = body_.loops[across_], &rows = body_.loops.back();
    const Index &from = body_.value->subscripts[0], first = Index::from_atom(first_column_);
    Writer writer(body_);
    Scope& scope = writer.add_scope(writer.root());
    LoopText loops(writer, scope);
    for (size_t l = 0; l + 1 < body_.loops.size(); l++)
      if (l != across_) loops.enter(body_.loops[l], writer.fresh("i"));
    const std::string step = std::to_string(kRows), column_step = std::to_string(kColumns);
    loops.enter(rows, "row", step);
    const bool is_divided = columns.extent().as_constant().value_or(kColumns + 1) > kColumns;
    if (is_divided) loops.enter({first_column_, columns.low, columns.high}, "column", column_step);
    const Substitution begin{{columns.symbol, is_divided ? first : columns.low}};
    const auto at = [&](const Index& index) { return loops.at(substitute(index, begin)); };
    const std::string count = is_divided
                                  ? "gopt_min<int64_t>(" + column_step + ", " + loops.at(columns.high) + " - column)"
                                  : loops.at(columns.extent());
    return "{\n" + loops.opening(parallel) + "gopt_runtime::transpose(in" + std::to_string(body_.value->input) + " + " +
           at(from) + ", " + stride_text(from, rows) + ", out + " + at(body_.offset) + ", " +
           stride_text(body_.offset, columns) + ", gopt_min<int64_t>(" + step + ", " + loops.at(rows.high) +
           " - row), " + count + ");\n" + loops.closing(parallel) + "}\n";
  }

 private:
  const KernelBody& body_;
  const size_t across_;
  const AtomId first_column_ = fresh_symbol();
};

std::optional<std::string> print_tiles(const KernelBody& body, bool parallel) {
  std::vector<Expr> reads;
  std::set<const Expr::Node*> seen;
  if (!collect_reads(body.value, reads, seen)) return std::nullopt;
  std::optional<size_t> across;
  const Expr* turned = nullptr;
  if (!is_turned_in_tiles(body.output)) return std::nullopt;
  for (const Expr& read : reads) {
    if (!is_turned_in_tiles(body.inputs[static_cast<size_t>(read->input)])) continue;
    const auto own = loop_across(body, read);
    if (own && body.loops.back().extent().constant() < kFewestRowsOfTile) return std::nullopt;
    if (own && across) return std::nullopt;  // one tile is enough to keep near
    if (own) across = own, turned = &read;
  }
  if (!across) return std::nullopt;
  return TileText(body, *turned, *across).print(parallel);
}

}  // namespace

std::optional<std::string> print_transposition(const KernelBody& body, bool parallel) {
  if (body.value->kind != ExprKind::Read) return print_tiles(body, parallel);
  const ElementType from = body.inputs[static_cast<size_t>(body.value->input)];
  if (is_of_8_bits(from) || is_of_8_bits(body.output)) return print_tiles(body, parallel);
  const bool is_moved = is_turned_over(body.output) && is_turned_over(from);
  const auto across = is_moved ? loop_across(body, body.value) : std::nullopt;
  return across ? std::optional(MoveText(body, *across).print(parallel)) : std::nullopt;
}

}  // namespace gopt::codegen
