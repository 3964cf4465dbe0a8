#include "scheme_names.h"

#include <algorithm>
#include <numeric>

namespace gopt::rules {
namespace {

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts{""};
  for (char c : name) {
    if (c == '.')
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// 1 where both are equal, else 0; a polynomial of symbols and a quotient, so that it is known once they are.
Index is_equal(const Index& a, const Index& b) {
  const Index difference = a - b;
  return floor_div(Index(1), Index(1) + difference * difference);
}

Index entry_at(const std::vector<Index>& entries, const Index& at) {
  if (at.is_constant()) return entries.at(static_cast<size_t>(at.constant()));
  Index sum;
  for (size_t k = 0; k < entries.size(); k++) sum += entries[k] * is_equal(at, Index(static_cast<int64_t>(k)));
  return sum;
}

Index place_of(const std::vector<Index>& entries, const Index& entry) {
  Index sum;
  for (size_t k = 0; k < entries.size(); k++) sum += Index(static_cast<int64_t>(k)) * is_equal(entries[k], entry);
  return sum;
}

// The letters of a word from `at` on, and perhaps a subset that ends it. False where that is not what is there.
bool read_word(const Scheme& scheme, const std::vector<std::string>& parts, size_t at, AxisName& name) {
  for (; at < parts.size(); at++) {
    if (parts[at] == "inv" && !name.word.empty()) {
      name.word.back().inverse = !name.word.back().inverse;
      continue;
    }
    const AxisSymbol* symbol = find_symbol(scheme, parts[at]);
    if (!symbol || symbol->list != name.list || symbol->kind == AxisSymbolKind::Integers) return false;
    if (symbol->kind == AxisSymbolKind::Permutation) {
      name.word.push_back({symbol->name, false});
      continue;
    }
    name.subset = symbol->name;
    if (at + 1 < parts.size()) return false;
  }
  name.word = product(name.word, {});
  return true;
}

}  // namespace

Word product(const Word& outer, const Word& inner) {
  Word result;
  for (const Word* part : {&outer, &inner})
    for (const Letter& letter : *part) {
      if (!result.empty() && result.back().permutation == letter.permutation && result.back().inverse != letter.inverse)
        result.pop_back();
      else
        result.push_back(letter);
    }
  return result;
}

Word inverse(const Word& word) {
  Word result(word.rbegin(), word.rend());
  for (Letter& letter : result) letter.inverse = !letter.inverse;
  return result;
}

std::string to_string(const Word& word) {
  std::string text;
  for (const Letter& letter : word)
    text += (text.empty() ? "" : ".") + letter.permutation + (letter.inverse ? ".inv" : "");
  return text.empty() ? "as they are" : text;
}

const AxisSymbol* find_symbol(const Scheme& scheme, const std::string& name) {
  for (const AxisSymbol& symbol : scheme.symbols)
    if (symbol.name == name) return &symbol;
  return nullptr;
}

bool is_list(const Scheme& scheme, const std::string& name) {
  return std::find(scheme.lists.begin(), scheme.lists.end(), name) != scheme.lists.end();
}

std::optional<AxisName> axis_name(const Scheme& scheme, const std::string& text) {
  const std::vector<std::string> parts = parts_of(text);
  AxisName name{AxisName::Head::Place, "", "", {}, ""};
  size_t rest = 1;
  if ((parts[0] == "one" || parts[0] == "zero") && parts.size() == 2 && is_list(scheme, parts[1])) {
    name.head = parts[0] == "one" ? AxisName::Head::One : AxisName::Head::Zero;
    name.list = parts[1];
    return name;
  }
  if (is_list(scheme, parts[0])) {
    name.head = AxisName::Head::Extent;
    name.list = parts[0];
  } else if (const AxisSymbol* symbol = find_symbol(scheme, parts[0])) {
    name.list = symbol->list;
    if (symbol->kind == AxisSymbolKind::Integers) {
      name.head = AxisName::Head::Integer;
      name.symbol = symbol->name;
    } else {
      rest = 0;
    }
  } else {
    return std::nullopt;
  }
  if (!read_word(scheme, parts, rest, name)) return std::nullopt;
  return name;
}

std::optional<AxisName> axis_name(const Scheme& scheme, const Index& value) {
  const auto id = value.as_atom();
  if (!id || atom(*id).kind != AtomKind::Symbol) return std::nullopt;
  return axis_name(scheme, atom(*id).name);
}

std::optional<ListNumber> list_number(const Scheme& scheme, const std::string& text) {
  const std::vector<std::string> parts = parts_of(text);
  if (parts.size() != 2 || (parts[0] != "rank" && parts[0] != "size")) return std::nullopt;
  const bool is_rank = parts[0] == "rank";
  const AxisSymbol* symbol = find_symbol(scheme, parts[1]);
  const bool is_subset = symbol && symbol->kind == AxisSymbolKind::Subset;
  if (!is_list(scheme, parts[1]) && !(is_rank && is_subset)) return std::nullopt;
  return ListNumber{is_rank, parts[1]};
}

std::optional<std::string> wrong_name(const Scheme& scheme, const std::string& name) {
  if (axis_name(scheme, name) || list_number(scheme, name)) return std::nullopt;
  const std::vector<std::string> parts = parts_of(name);
  const bool is_dotted = parts.size() > 1;
  if (find_symbol(scheme, parts[0]) || is_list(scheme, parts[0]) || is_dotted)
    return "'" + name + "' says nothing of a list";
  return std::nullopt;
}

int length_of(const std::string& list_or_subset, const RankAssignment& ranks) {
  const auto length = ranks.lengths.find(list_or_subset);
  return length != ranks.lengths.end() ? length->second : static_cast<int>(ranks.places.at(list_or_subset).size());
}

Index value_at(const AxisName& name, size_t axis, const RankAssignment& ranks) {
  if (name.head == AxisName::Head::One) return Index(1);
  if (name.head == AxisName::Head::Zero) return Index(0);
  Index at(static_cast<int64_t>(axis));
  if (!name.subset.empty()) at = ranks.places.at(name.subset).at(axis);
  for (auto letter = name.word.rbegin(); letter != name.word.rend(); ++letter) {
    const std::vector<Index>& entries = ranks.places.at(letter->permutation);
    at = letter->inverse ? place_of(entries, at) : entry_at(entries, at);
  }
  if (name.head == AxisName::Head::Place) return at;
  std::vector<Index> symbols;
  for (int k = 0; k < length_of(name.list, ranks); k++)
    symbols.push_back(
        axis_symbol(name.head == AxisName::Head::Extent ? name.list : name.symbol, static_cast<size_t>(k)));
  return entry_at(symbols, at);
}

}  // namespace gopt::rules
