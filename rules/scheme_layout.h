// The axes of a scheme's values: single ones and whole lists, in their order. What each operator makes of them is the
// table that soundness rests on (docs/verifier.md, "Lists of axes"): an operator that is not in it lets no list
// through.
#pragma once

#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "scheme_names.h"

namespace gopt::rules {

class SchemeError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class AxisState { Full, One, Absent };

// A single axis (no list), or a list's axes: place i of them is axis word(i). States are those of the list's subsets
// and, under "", of the axes in none of them: as they are, reduced to extent 1, or gone.
struct LayoutItem {
  std::string list;
  Word word;
  std::map<std::string, AxisState> states;
  friend bool operator==(const LayoutItem&, const LayoutItem&) = default;
};
using Layout = std::vector<LayoutItem>;

bool is_block(const LayoutItem& item);
bool has_state(const LayoutItem& item, AxisState state);

// What both sides say of the scheme's names, gathered from side to side.
class LayoutAnalysis {
 public:
  explicit LayoutAnalysis(const Scheme& scheme) : scheme_(scheme) {}

  // Layouts of the outputs; fills the nodes' starts. Throws SchemeError.
  std::vector<Layout> analyze(SchemeSide& side);
  void analyze(const SchemeCondition& condition);
  // Why instances of every rank do not follow from few, if they may not.
  const std::string& objection() const { return objection_; }
  void object(const std::string& why);

 private:
  using Layouts = std::vector<Layout>;
  // To an item of a layout, or some of its axes.
  struct Reference {
    size_t item = 0;
    bool is_permuted = false;
    Word word;           // is_permuted
    std::string subset;  // empty: the whole item
  };

  LayoutItem block(const std::string& list, const Word& word, AxisState state) const;
  Layout extents(const SchemeItems& items);
  Layouts outputs_of(const SchemeNode& node, const Layouts& inputs);

  Layout elementwise(const Layouts& inputs) const;
  Layout product(const Layout& a, const Layout& b) const;
  Layout transposed(const SchemeNode& node, const Layout& x);
  Layout reduced(const SchemeNode& node, const Layout& x);
  Layout sliced(const SchemeNode& node, const Layout& x);
  Layout padded(const SchemeNode& node, const Layout& x);
  Layout tiled(const SchemeNode& node, const Layout& x) const;
  Layout squeezed(const SchemeNode& node, const Layout& x);
  Layout unsqueezed(const SchemeNode& node, const Layout& x) const;
  Layout reshaped(const SchemeNode& node, const Layout& x);
  Layout normalized(const SchemeNode& node, const Layouts& inputs) const;
  Layout gathered(const SchemeNode& node, const Layouts& inputs) const;

  Index length(const LayoutItem& item) const;
  size_t single_at(const Layout& layout, const Index& position) const;
  size_t boundary_at(const Layout& layout, const Index& position) const;
  Reference referred(const Layout& layout, const SchemeItem& item);
  void use(const std::string& name, const Word& word);
  void use_at(const LayoutItem& block, const SchemeItem& item);
  void check_flat(const Layout& layout) const;
  void check_numbers(const SchemeNode& node) const;
  void check_numbers(const std::set<AtomId>& symbols, bool is_place) const;

  const Scheme& scheme_;
  std::map<std::string, Word> uses_;  // integers and subsets: at which word of the list's own order they are read
  std::string objection_;
};

// Axes of a list at which an instance that refutes the scheme can be found, if any can: see docs/verifier.md.
int witness_axes(const Scheme& scheme);

}  // namespace gopt::rules
