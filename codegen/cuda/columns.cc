#include "columns.h"

#include <algorithm>
#include <set>
#include <utility>

#include "../transform.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kSector = 32;  // bytes that memory gives at once
constexpr int64_t kMost = 32;    // rows of a block
constexpr int64_t kMultiprocessors = 132;
constexpr int64_t kMostThreads = 1024, kFewestThreads = 128;  // of a block
constexpr int64_t kTurns = 8;  // that are unrolled, so that their reads are on their way together

// How many rows one after another are read beside each other by all reductions.
class Reach {
 public:
  explicit Reach(const std::vector<Loop>& rows) : rows_(rows) {}

  void visit(const Expr& e, std::set<AtomId> binders) {
    if (!seen_.insert({e.get(), !binders.empty()}).second) return;
    if (e->kind == ExprKind::Read && !binders.empty()) return note(e->subscripts[0], binders);
    if (e->kind == ExprKind::Reduce) {
      std::set<AtomId> symbols;
      collect_symbols(e, symbols);
      is_of_rows_ &= symbols.contains(rows_.back().symbol);
      for (const Binder& b : e->binders) binders.insert(b.symbol);
    }
    for (const Expr& arg : e->args) visit(arg, binders);
  }
  int64_t rows() const { return is_of_rows_ && has_reads_ ? reach_ : 0; }

 private:
  void note(const Index& offset, const std::set<AtomId>& binders) {
    std::set<AtomId> symbols;
    collect_symbols(offset, symbols);
    const bool is_of_rows = std::ranges::any_of(rows_, [&](const Loop& loop) { return symbols.contains(loop.symbol); });
    if (!is_of_rows) return;
    has_reads_ = true;
    const auto is_along = [&](AtomId binder) { return coefficient(offset, binder) == 1; };
    int64_t beside = 1;
    for (size_t l = rows_.size(); l-- > 0;) {
      const auto extent = rows_[l].extent().as_constant();
      if (!extent || coefficient(offset, rows_[l].symbol) != beside) break;
      beside *= *extent;
    }
    reach_ = std::ranges::any_of(binders, is_along) ? 0 : std::min(reach_, beside);
  }

  const std::vector<Loop>& rows_;
  std::set<std::pair<const Expr::Node*, bool>> seen_;  // and whether in a reduction
  int64_t reach_ = INT64_MAX;
  bool is_of_rows_ = true, has_reads_ = false;
};

}  // namespace

std::optional<Columns> columns_of(const KernelBody& body, const std::vector<Loop>& rows, int64_t longest) {
  if (rows.empty()) return std::nullopt;
  Reach reach(rows);
  reach.visit(body.value, {});
  Columns columns{kMost, 1};
  while (columns.count > 1 && columns.count > reach.rows()) columns.count /= 2;
  int64_t least = kSector, count = 1;
  for (const ElementType type : body.inputs) least = std::min(least, kSector / static_cast<int64_t>(size_bytes(type)));
  for (const Loop& loop : rows) count *= loop.extent().as_constant().value_or(1);
  if (columns.count < least) return std::nullopt;
  while (columns.count > least && count / columns.count < kMultiprocessors) columns.count /= 2;
  const auto grows = [&] {
    const int64_t threads = columns.threads * columns.count;
    return threads < kFewestThreads || (threads < kMostThreads && columns.threads * kTurns < longest);
  };
  while (grows()) columns.threads *= 2;
  return columns;
}

}  // namespace gopt::codegen
