#include "region_search.h"

#include <algorithm>
#include <map>
#include <set>

#include "conditions/condition_atoms.h"

namespace gopt::verifier {
namespace {

int complexity(const Index& index) {
  int weight = index.constant() == 0 ? 0 : 1 + static_cast<int>(std::min<int64_t>(std::abs(index.constant()), 8));
  for (const Index::Term& term : index.terms()) {
    weight += 2 * static_cast<int>(term.atoms.size()) + (term.coefficient == 1 ? 0 : 1);
    for (AtomId id : term.atoms)
      if (atom(id).kind == AtomKind::FloorDiv) weight += 3 + complexity(atom(id).numerator);
  }
  return weight;
}

std::optional<std::vector<int64_t>> values_of(const Index& index, const std::vector<RegionSample>& samples) {
  std::vector<int64_t> values;
  for (const RegionSample& sample : samples) {
    const auto value = evaluate(index, sample.sizes);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

// Places along the axis where the slice of agreements is not that of the place before.
std::set<int64_t> changes_along(const RegionSample& sample, size_t axis) {
  std::vector<std::vector<bool>> slices(static_cast<size_t>(sample.dims[axis]));
  for (size_t flat = 0; flat < sample.agrees.size(); flat++)
    slices[static_cast<size_t>(position_at(sample, flat)[axis])].push_back(sample.agrees[flat]);
  std::set<int64_t> changes;
  for (size_t place = 1; place < slices.size(); place++)
    if (slices[place] != slices[place - 1]) changes.insert(static_cast<int64_t>(place));
  return changes;
}

struct RegionBound {
  Index index;
  std::vector<int64_t> values;  // by sample
};

// 0, the bounds between, the extent. Samples with fewest changes may be too small to show all; those with most decide.
std::vector<RegionBound> bounds_of(const RewriteRule& rule, size_t output, size_t axis, BoundKind kind,
                                   const std::vector<RegionSample>& samples) {
  std::vector<std::set<int64_t>> changes;
  size_t most = 0;
  for (const RegionSample& sample : samples) {
    changes.push_back(changes_along(sample, axis));
    most = std::max(most, changes.back().size());
  }
  const Index extent = (*rule.left.outputs()[output].value.type().shape)[axis];
  std::vector<RegionBound> bounds{{Index(0), std::vector<int64_t>(samples.size(), 0)}};
  std::set<std::vector<int64_t>> taken;
  if (most > 0) {
    for (const Index& candidate : bound_candidates(rule, output, axis, kind)) {
      const auto values = values_of(candidate, samples);
      if (!values) continue;
      bool fits = true;
      std::vector<int64_t> seen;
      for (size_t i = 0; i < samples.size() && fits; i++) {
        if (changes[i].size() != most) continue;
        fits = changes[i].count((*values)[i]) > 0;
        seen.push_back((*values)[i]);
      }
      if (fits && taken.insert(seen).second) bounds.push_back({candidate, *values});
    }
  }
  bounds.push_back({extent, *values_of(extent, samples)});
  // In the order that they have where most agrees: where a window is as long as its image, its border ends before it
  // begins.
  const auto order_of = [&](const RegionSample& sample) {
    const auto agreeing = std::ranges::count(sample.agrees, true), all = std::ssize(sample.agrees);
    return std::make_pair(agreeing == all ? 0.0 : static_cast<double>(agreeing) / static_cast<double>(all),
                          sample.dims[axis]);
  };
  const auto reference = static_cast<size_t>(std::ranges::max_element(samples, {}, order_of) - samples.begin());
  std::stable_sort(bounds.begin() + 1, bounds.end() - 1, [&](const RegionBound& a, const RegionBound& b) {
    return a.values[reference] < b.values[reference];
  });
  return bounds;
}

struct Interval {
  size_t low, high;  // of the axis' bounds
  bool within(const Interval& other) const { return low >= other.low && high <= other.high; }
};
using Cells = std::vector<Interval>;  // one interval an axis

class BoxSearch {
 public:
  BoxSearch(std::vector<std::vector<RegionBound>> bounds, const std::vector<RegionSample>& samples)
      : bounds_(std::move(bounds)), samples_(samples) {
    for (const RegionSample& sample : samples) {
      places_.emplace_back();
      for (size_t flat = 0; flat < sample.agrees.size(); flat++) {
        const std::vector<int64_t> position = position_at(sample, flat);
        places_.back().insert(places_.back().end(), position.begin(), position.end());
      }
    }
  }

  // None where there are too many to look at: sides that agree here and there, as by a stride, have no region worth it.
  std::vector<Box> run() {
    extend({});
    std::vector<Box> boxes;
    if (looked_at_ > kMostLookedAt) return boxes;
    std::ranges::sort(found_, {}, [](const Cells& cells) {
      std::vector<size_t> places;
      for (const Interval& interval : cells) places.insert(places.end(), {interval.low, interval.high});
      return places;
    });
    for (const Cells& cells : found_) {
      const bool is_largest = std::none_of(
          found_.begin(), found_.end(), [&](const Cells& other) { return &other != &cells && lies_in(cells, other); });
      if (is_largest) boxes.push_back(box_of(cells));
    }
    return boxes;
  }

 private:
  // Positions, a second or two; a box takes as long as so many.
  static constexpr size_t kMostLookedAt = 100'000'000, kLooksOfBox = 64;

  static bool lies_in(const Cells& inner, const Cells& outer) {
    for (size_t axis = 0; axis < inner.size(); axis++)
      if (!inner[axis].within(outer[axis])) return false;
    return true;
  }

  // Long ranges first: what lies in a box that is found is passed over.
  void extend(const Cells& cells) {
    constexpr size_t kMaxBoxes = 4096;
    const size_t axis = cells.size();
    if (looked_at_ > kMostLookedAt) return;
    if (axis == bounds_.size()) {
      looked_at_ += kLooksOfBox;
      const bool is_known = std::ranges::any_of(found_, [&](const Cells& other) { return lies_in(cells, other); });
      if (!is_known && found_.size() < kMaxBoxes && all_agree(cells)) found_.push_back(cells);
      return;
    }
    for (size_t low = 0; low + 1 < bounds_[axis].size(); low++) {
      for (size_t high = bounds_[axis].size() - 1; high > low; high--) {
        Cells longer = cells;
        longer.push_back({low, high});
        extend(longer);
      }
    }
  }

  // All samples agree on the box, and it holds some position of some sample.
  bool all_agree(const Cells& cells) {
    bool has_positions = false;
    for (size_t i = 0; i < samples_.size(); i++) {
      for (size_t flat = 0; flat < samples_[i].agrees.size(); flat++) {
        if (has_positions && samples_[i].agrees[flat]) continue;
        looked_at_++;
        const int64_t* position = &places_[i][flat * cells.size()];
        bool inside = true;
        for (size_t axis = 0; axis < cells.size() && inside; axis++)
          inside = position[axis] >= bounds_[axis][cells[axis].low].values[i] &&
                   position[axis] < bounds_[axis][cells[axis].high].values[i];
        if (inside && !samples_[i].agrees[flat]) return false;
        has_positions |= inside;
      }
    }
    return has_positions;
  }

  Box box_of(const Cells& cells) const {
    Box box;
    for (size_t axis = 0; axis < cells.size(); axis++)
      box.push_back({bounds_[axis][cells[axis].low].index, bounds_[axis][cells[axis].high].index});
    return box;
  }

  std::vector<std::vector<RegionBound>> bounds_;
  const std::vector<RegionSample>& samples_;
  std::vector<Cells> found_;
  std::vector<std::vector<int64_t>> places_;  // by sample: its positions one after another
  size_t looked_at_ = 0;
};

}  // namespace

std::vector<Index> bound_candidates(const RewriteRule& rule, size_t output, size_t axis, BoundKind kind) {
  constexpr int64_t kReach = 4;
  const Index extent = (*rule.left.outputs()[output].value.type().shape)[axis];
  std::vector<Index> bases{Index(0)};
  for (const Index& e : inner_extents(rule)) {
    bases.push_back(e);
    bases.push_back(extent - e);
    bases.push_back(floor_div(e, Index(2)));
  }
  std::set<AtomId> symbols;
  for (const RuleVariable& variable : rule.variables)
    for (const Index& e : *variable.type.shape) collect_symbols(e, symbols);
  for (const NodePtr& node : rule.left.nodes())
    for (const auto& [name, value] : node->attributes)
      if (const auto* list = std::get_if<std::vector<Index>>(&value))
        for (const Index& index : *list) collect_symbols(index, symbols);
  for (AtomId id : symbols) {
    const Index s = Index::from_atom(id);
    for (const Index& base : {s, s + s, extent - s, extent - s - s}) bases.push_back(base);
    if (kind != BoundKind::BesideSeams) continue;
    for (const Index& e : inner_extents(rule))
      for (const Index& base : {e - s, e + s}) bases.push_back(base);
  }
  bases.push_back(extent);
  std::vector<Index> candidates;
  for (const Index& base : bases)
    for (int64_t shift = -kReach; shift <= kReach; shift++) candidates.push_back(base + Index(shift));
  std::stable_sort(candidates.begin(), candidates.end(), [](const Index& a, const Index& b) {
    const int x = complexity(a), y = complexity(b);
    return x != y ? x < y : to_string(a) < to_string(b);
  });
  candidates.erase(std::unique(candidates.begin(), candidates.end()), candidates.end());
  return candidates;
}

std::vector<Box> find_boxes(const RewriteRule& rule, size_t output, const std::vector<RegionSample>& samples) {
  if (samples.empty()) return {};
  std::vector<Box> boxes;
  for (BoundKind kind : {BoundKind::Plain, BoundKind::BesideSeams}) {
    std::vector<std::vector<RegionBound>> bounds;
    for (size_t axis = 0; axis < samples[0].dims.size(); axis++)
      bounds.push_back(bounds_of(rule, output, axis, kind, samples));
    boxes = BoxSearch(std::move(bounds), samples).run();
    if (!boxes.empty()) break;
  }
  return boxes;
}

int64_t places_in(const Box& box, const Environment& sizes) {
  int64_t places = 1;
  for (const AxisRange& range : box)
    places *= std::max<int64_t>(evaluate(range.high - range.low, sizes).value_or(0), 0);
  return places;
}

std::vector<Box> largest_first(std::vector<Box> boxes, const std::vector<Environment>& sizes) {
  std::ranges::stable_sort(boxes, std::greater(), [&](const Box& box) {
    int64_t most = 0;
    for (const Environment& own : sizes) most = std::max(most, places_in(box, own));
    return most;
  });
  return boxes;
}

bool contains(const Box& box, const std::vector<int64_t>& position, const Environment& sizes) {
  for (size_t axis = 0; axis < box.size(); axis++) {
    const auto low = evaluate(box[axis].low, sizes), high = evaluate(box[axis].high, sizes);
    if (!low || !high || position[axis] < *low || position[axis] >= *high) return false;
  }
  return true;
}

bool covers_agreement(const std::vector<Box>& boxes, const std::vector<RegionSample>& samples) {
  for (const RegionSample& sample : samples) {
    if (std::find(sample.agrees.begin(), sample.agrees.end(), false) == sample.agrees.end()) continue;
    for (size_t flat = 0; flat < sample.agrees.size(); flat++) {
      const std::vector<int64_t> position = position_at(sample, flat);
      if (sample.agrees[flat] && std::none_of(boxes.begin(), boxes.end(),
                                              [&](const Box& box) { return contains(box, position, sample.sizes); }))
        return false;
    }
  }
  return true;
}

}  // namespace gopt::verifier
