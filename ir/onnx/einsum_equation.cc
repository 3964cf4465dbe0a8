#include "einsum_equation.h"

#include <algorithm>
#include <map>
#include <set>

namespace gopt::ir {
namespace {

constexpr size_t kMostEllipsisAxes = 20;

// `axes` of an ellipsis that stands for up to `most`.
std::string with_ellipsis(const std::string& term, size_t axes, size_t most) {
  const size_t dots = term.find("...");
  if (dots == std::string::npos) return term;
  std::string labels;
  for (size_t k = most - axes; k < most; k++) labels += static_cast<char>('\x01' + static_cast<char>(k));
  return term.substr(0, dots) + labels + term.substr(dots + 3);
}

std::vector<std::string> split_terms(const std::string& text) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  return terms;
}

bool has_only_known_labels(const EinsumEquation& equation) {
  const std::set<char> distinct(equation.result.begin(), equation.result.end());
  return distinct.size() == equation.result.size() && std::ranges::all_of(equation.result, [&](char label) {
           return std::ranges::any_of(equation.terms,
                                      [&](const std::string& term) { return term.find(label) != std::string::npos; });
         });
}

}  // namespace

std::optional<EinsumEquation> read_einsum(std::string text, const std::vector<size_t>& ranks) {
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  EinsumEquation equation{split_terms(text.substr(0, arrow)), {}};
  if (equation.terms.size() != ranks.size()) return std::nullopt;
  std::vector<size_t> dotted;
  for (size_t k = 0; k < ranks.size(); k++) {
    const std::string& term = equation.terms[k];
    const bool has_ellipsis = term.find("...") != std::string::npos;
    const size_t named = term.size() - (has_ellipsis ? 3 : 0);
    if (ranks[k] < named || (!has_ellipsis && ranks[k] != named)) return std::nullopt;
    dotted.push_back(ranks[k] - named);
  }
  const size_t most = *std::ranges::max_element(dotted);
  if (most >= kMostEllipsisAxes) return std::nullopt;
  std::map<char, int> uses;
  for (size_t k = 0; k < ranks.size(); k++) {
    equation.terms[k] = with_ellipsis(equation.terms[k], dotted[k], most);
    for (const char label : equation.terms[k]) uses[label]++;
  }
  if (arrow != std::string::npos) {
    equation.result = with_ellipsis(text.substr(arrow + 2), most, most);
  } else {
    for (const auto& [label, times] : uses)
      if (times == 1 || label < ' ') equation.result += label;
  }
  if (!has_only_known_labels(equation)) return std::nullopt;
  return equation;
}

std::vector<std::optional<Index>> einsum_extents(const EinsumEquation& equation, const std::vector<Shape>& shapes) {
  std::vector<std::optional<Index>> extents;
  for (const char label : equation.result) {
    std::vector<Index> seen;  // distinct, without 1
    for (size_t k = 0; k < shapes.size(); k++)
      for (size_t axis = 0; axis < shapes[k].size(); axis++) {
        const Index& extent = shapes[k][axis];
        if (equation.terms[k][axis] == label && !(extent == Index(1)) && std::ranges::find(seen, extent) == seen.end())
          seen.push_back(extent);
      }
    // A number that is not 1 decides; a symbol beside others may be 1.
    const auto number = std::ranges::find_if(seen, [](const Index& extent) { return extent.is_constant(); });
    if (seen.empty())
      extents.emplace_back(Index(1));
    else if (number != seen.end())
      extents.emplace_back(*number);
    else
      extents.push_back(seen.size() == 1 ? std::optional(seen[0]) : std::nullopt);
  }
  return extents;
}

}  // namespace gopt::ir
