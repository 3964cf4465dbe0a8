#include "size_table.h"

#include <set>

#include "samples/size_sampler.h"

namespace gopt::verifier {
namespace {

constexpr size_t kPositions = 8;  // beside corners, of a row that is not of the table

class Tabulator {
 public:
  Tabulator(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right, size_t positions, uint64_t seed)
      : evaluator_(rule, left, right), positions_(positions), random_(seed) {}

  // The row of these sizes; nothing where the left side is not defined.
  std::optional<SizeRow> row(const Environment& sizes) {
    evaluator_.set_sizes(sizes);
    if (!evaluator_.is_left_defined()) return std::nullopt;
    SizeRow r{sizes, evaluator_.is_right_defined(), evaluator_.has_elements()};
    const int rounds = evaluator_.rounds(), all = rounds * evaluator_.draws();
    for (int round = 0; round < all && r.holds; round++) {
      evaluator_.draw_inputs(random_, round % rounds);
      r.holds = evaluator_.agree(random_, positions_);
    }
    return r;
  }

 private:
  RuleEvaluator evaluator_;
  size_t positions_;
  std::mt19937_64 random_;
};

std::vector<Range> ranges_of(const std::vector<AtomId>& symbols, const std::set<AtomId>& extents, int64_t lowest,
                             int64_t largest) {
  std::vector<Range> ranges;
  for (AtomId symbol : symbols) ranges.push_back({extents.count(symbol) ? 0 : lowest, largest});
  return ranges;
}
size_t width(const Range& range) { return static_cast<size_t>(range.high - range.low + 1); }
// More than `limit` where there are more.
size_t count_assignments(const std::vector<Range>& ranges, size_t limit) {
  size_t count = 1;
  for (size_t i = 0; i < ranges.size() && count <= limit; i++) count *= width(ranges[i]);
  return count;
}
Environment assignment(const std::vector<AtomId>& symbols, const std::vector<Range>& ranges, size_t number) {
  Environment sizes;
  for (size_t i = 0; i < symbols.size(); i++) {
    sizes[symbols[i]] = ranges[i].low + static_cast<int64_t>(number % width(ranges[i]));
    number /= width(ranges[i]);
  }
  return sizes;
}

}  // namespace

SizeTable tabulate_sizes(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                         const SizeTableOptions& options) {
  const std::vector<AtomId> symbols = rule_symbols(rule);
  const std::set<AtomId> extents = extent_symbols(rule);
  Tabulator tabulator(rule, left, right, options.positions, options.seed);
  SizeTable table;
  for (const int64_t lowest : {-2, 0}) {
    const std::vector<Range> ranges = ranges_of(symbols, extents, lowest, options.largest);
    const size_t assignments = count_assignments(ranges, options.max_assignments);
    if (assignments > options.max_assignments) continue;
    table.is_exhaustive = true;
    for (size_t number = 0; number < assignments; number++)
      if (auto row = tabulator.row(assignment(symbols, ranges, number))) table.rows.push_back(std::move(*row));
    return table;
  }
  const SizeSampler sampler(symbols, extents, left_condition(rule, left));
  std::mt19937_64 random(options.seed);
  std::set<Environment> seen;
  for (size_t draws = 0; draws < 2 * options.max_rows && table.rows.size() < options.max_rows; draws++) {
    Environment sizes;
    if (!sampler.draw(random, sizes)) break;
    if (!seen.insert(sizes).second) continue;
    if (auto row = tabulator.row(sizes)) table.rows.push_back(std::move(*row));
  }
  return table;
}

std::vector<SizeRow> sample_sizes(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                                  int64_t low, int64_t high, size_t count, uint64_t seed) {
  SizeSampler sampler(rule_symbols(rule), extent_symbols(rule), left_condition(rule, left));
  sampler.set_extents({low, high});
  Tabulator tabulator(rule, left, right, kPositions, seed);
  std::mt19937_64 random(seed);
  std::vector<SizeRow> rows;
  for (size_t k = 0; k < count; k++) {
    Environment sizes;
    if (!sampler.draw(random, sizes)) break;
    if (auto row = tabulator.row(sizes)) rows.push_back(std::move(*row));
  }
  return rows;
}

std::vector<SizeRow> rows_at(const RewriteRule& rule, const SideMeaning& left, const SideMeaning& right,
                             const std::vector<Environment>& sizes) {
  Tabulator tabulator(rule, left, right, kPositions, 1);
  std::vector<SizeRow> rows;
  for (const Environment& s : sizes)
    if (auto row = tabulator.row(s)) rows.push_back(std::move(*row));
  return rows;
}

std::optional<SizeRow> find_mismatch(const SizeTable& table, const Cond& condition) {
  for (const SizeRow& row : table.rows)
    if ((evaluate(condition, row.sizes) == true) != row.holds) return row;
  return std::nullopt;
}

}  // namespace gopt::verifier
