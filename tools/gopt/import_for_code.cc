#include "import_for_code.h"

#include <algorithm>
#include <map>
#include <set>

#include "gopt/split_model.h"

namespace gopt::cli {

size_t count_without_code(const Graph& graph) {
  Target target;
  target.open = own_extents(graph, target);
  const auto opaque =
      std::ranges::count_if(graph.nodes(), [](const NodePtr& n) { return n->is(OpKind::Opaque) && !n->is_whole(); });
  return nodes_without_code(graph, target).size() + static_cast<size_t>(opaque);
}

namespace {

// Extents that are taken to be as others are, so that more nodes have code.
class EqualExtents {
 public:
  EqualExtents(const std::string& path, const ImportOptions& options) : path_(path), options_(options) {}

  Result<ImportedModel> import() {
    GOPT_ASSIGN_OR_RETURN(model_, import_onnx(path_, options_));
    left_ = count_without_code(model_.graph);
    take_meeting();
    if (left_ > 0) take(alike(model_.graph), true);
    for (const MeetingExtents& own : taken_)
      model_.warnings.push_back(to_string(Index::from_atom(own.symbol)) + " is taken to be " + to_string(own.value) +
                                own.where +
                                ": code for any size does not run where it is another; --specialize or --shape name "
                                "such sizes");
    return std::move(model_);
  }

 private:
  // What is behind a node of unknown extents shows when that is known.
  void take_meeting() {
    for (bool goes_on = left_ > 0; goes_on;) {
      const std::vector<MeetingExtents> meeting = meeting_extents(model_.graph);
      std::vector<MeetingExtents> said = meeting;
      for (MeetingExtents& own : said) own.where = ", to which " + own.where + " broadcasts it";
      goes_on = take(said, false);
      // Those of one node, where not all are good.
      for (size_t first = 0, end; !goes_on && first < meeting.size(); first = end) {
        for (end = first; end < meeting.size() && meeting[end].where == meeting[first].where;) end++;
        goes_on =
            take({said.begin() + static_cast<std::ptrdiff_t>(first), said.begin() + static_cast<std::ptrdiff_t>(end)},
                 false);
      }
    }
  }

  // Whether fewer nodes are without code then, or none where `of_all`; else nothing is changed.
  bool take(const std::vector<MeetingExtents>& more, bool of_all) {
    if (more.empty()) return false;
    ImportOptions options = options_;
    Substitution values;
    for (const MeetingExtents& own : more) values.emplace(own.symbol, own.value);
    for (auto& [symbol, value] : options.equal) value = substitute(value, values);
    options.equal.insert(values.begin(), values.end());
    Result<ImportedModel> next = import_onnx(path_, options);
    if (!next.ok()) return false;
    const size_t left = count_without_code(next->graph);
    if (left >= left_ || (of_all && left > 0)) return false;
    left_ = left;
    model_ = *std::move(next);
    options_ = std::move(options);
    for (MeetingExtents& own : taken_) own.value = substitute(own.value, values);
    taken_.insert(taken_.end(), more.begin(), more.end());
    return true;
  }

  // Extents of other names at the same axes of inputs of as many: exporters that were not told that two are equal give
  // each its own.
  static std::vector<MeetingExtents> alike(const Graph& graph) {
    std::map<std::pair<size_t, size_t>, AtomId> first;  // by rank and axis
    std::set<AtomId> seen;
    std::vector<MeetingExtents> found;
    for (const Value& input : graph.inputs()) {
      const Shape shape = input.type().shape.value_or(Shape{});
      for (size_t axis = 0; axis < shape.size(); axis++) {
        const auto symbol = shape[axis].as_atom();
        if (!symbol || !seen.insert(*symbol).second) continue;
        const auto [same, is_new] = first.emplace(std::pair(shape.size(), axis), *symbol);
        if (!is_new)
          found.push_back({*symbol, Index::from_atom(same->second),
                           ", as in another input, since some nodes have no code for others"});
      }
    }
    return found;
  }

  const std::string& path_;
  ImportOptions options_;
  ImportedModel model_;
  size_t left_ = 0;  // nodes without code
  std::vector<MeetingExtents> taken_;
};

}  // namespace

Result<ImportedModel> import_for_any_size(const std::string& path, const ImportOptions& options) {
  return EqualExtents(path, options).import();
}

}  // namespace gopt::cli
