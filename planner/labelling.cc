#include "labelling.h"

#include <algorithm>
#include <limits>
#include <set>

namespace gopt::planner {
namespace {

// A cost by the labels of some variables, the last of them varying fastest.
struct Table {
  std::vector<int> variables;
  std::vector<double> cost;
};

class Elimination {
 public:
  Elimination(const std::vector<std::vector<double>>& own, const std::vector<PairCost>& pairs, int width)
      : own_(own), width_(static_cast<size_t>(width)), labels_(own.size(), -1) {
    for (int v = 0; v < static_cast<int>(own.size()); v++) tables_.push_back({{v}, own[v]});
    for (const PairCost& pair : pairs) {
      Table table{{pair.a, pair.b}, {}};
      for (const std::vector<double>& row : pair.cost) table.cost.insert(table.cost.end(), row.begin(), row.end());
      tables_.push_back(std::move(table));
    }
  }

  std::vector<int> run() {
    std::set<int> left;
    for (int v = 0; v < static_cast<int>(own_.size()); v++) left.insert(v);
    while (!left.empty()) {
      int next = *left.begin();
      size_t fewest = std::numeric_limits<size_t>::max();
      for (int v : left) {
        const size_t count = neighbours(v).size();
        if (count < fewest) fewest = count, next = v;
      }
      left.erase(next);
      if (fewest > width_)
        fix(next);
      else
        eliminate(next);
    }
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) decide(*step);
    return labels_;
  }

 private:
  struct Step {
    int variable;
    std::vector<Table> tables;  // those that it was in
  };

  size_t label_count(int v) const { return own_[static_cast<size_t>(v)].size(); }
  static bool has(const Table& table, int v) {
    return std::find(table.variables.begin(), table.variables.end(), v) != table.variables.end();
  }

  std::set<int> neighbours(int v) const {
    std::set<int> found;
    for (const Table& table : tables_)
      if (has(table, v)) found.insert(table.variables.begin(), table.variables.end());
    found.erase(v);
    return found;
  }

  std::vector<Table> take_tables(int v) {
    std::vector<Table> taken, kept;
    for (Table& table : tables_) (has(table, v) ? taken : kept).push_back(std::move(table));
    tables_ = std::move(kept);
    return taken;
  }

  double value(const Table& table) const {
    size_t at = 0;
    for (int v : table.variables) at = at * label_count(v) + static_cast<size_t>(labels_[static_cast<size_t>(v)]);
    return table.cost[at];
  }

  // The best label of a variable where all others of the tables have theirs, and its cost.
  std::pair<int, double> best_label(int v, const std::vector<Table>& tables) {
    std::pair<int, double> best{0, std::numeric_limits<double>::infinity()};
    for (int label = 0; label < static_cast<int>(label_count(v)); label++) {
      labels_[static_cast<size_t>(v)] = label;
      double sum = 0;
      for (const Table& table : tables) sum += value(table);
      if (sum < best.second) best = {label, sum};
    }
    return best;
  }

  // In place of the tables that the variable is in, one over their other variables.
  void eliminate(int v) {
    const std::set<int> others = neighbours(v);
    Step step{v, take_tables(v)};
    Table table{{others.begin(), others.end()}, {}};
    size_t size = 1;
    for (int o : others) size *= label_count(o);
    for (size_t at = 0; at < size; at++) {
      size_t rest = at;
      for (size_t k = table.variables.size(); k-- > 0;) {
        const int o = table.variables[k];
        labels_[static_cast<size_t>(o)] = static_cast<int>(rest % label_count(o));
        rest /= label_count(o);
      }
      table.cost.push_back(best_label(v, step.tables).second);
    }
    if (!table.variables.empty()) tables_.push_back(std::move(table));
    steps_.push_back(std::move(step));
  }

  // Too many neighbours: what is best for itself, in all tables from here on.
  void fix(int v) {
    const auto& own = own_[static_cast<size_t>(v)];
    const auto label = static_cast<int>(std::min_element(own.begin(), own.end()) - own.begin());
    for (Table& table : take_tables(v)) {
      const auto at =
          static_cast<size_t>(std::find(table.variables.begin(), table.variables.end(), v) - table.variables.begin());
      size_t after = 1;
      for (size_t k = at + 1; k < table.variables.size(); k++) after *= label_count(table.variables[k]);
      Table smaller;
      smaller.variables = table.variables;
      smaller.variables.erase(smaller.variables.begin() + static_cast<std::ptrdiff_t>(at));
      for (size_t i = 0; i < table.cost.size(); i++)
        if (static_cast<int>(i / after % label_count(v)) == label) smaller.cost.push_back(table.cost[i]);
      if (!smaller.variables.empty()) tables_.push_back(std::move(smaller));
    }
    steps_.push_back({v, {Table{{v}, one_hot(v, label)}}});
  }

  std::vector<double> one_hot(int v, int label) const {
    std::vector<double> costs(label_count(v), 1);
    costs[static_cast<size_t>(label)] = 0;
    return costs;
  }

  // Variables are decided in the reverse order: all that its tables hold beside it have labels by then.
  void decide(const Step& step) {
    labels_[static_cast<size_t>(step.variable)] = best_label(step.variable, step.tables).first;
  }

  const std::vector<std::vector<double>>& own_;
  const size_t width_;
  std::vector<Table> tables_;
  std::vector<int> labels_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<int> least_cost_labels(const std::vector<std::vector<double>>& own, const std::vector<PairCost>& pairs,
                                   int width) {
  return Elimination(own, pairs, width).run();
}

}  // namespace gopt::planner
