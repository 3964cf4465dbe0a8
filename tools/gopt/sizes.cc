#include "sizes.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

namespace gopt::cli {
namespace {

constexpr size_t kMostSizes = 64;  // each is optimized on its own

using Sizes = std::vector<std::vector<std::string>>;

Sizes combined(const Sizes& first, const Sizes& second) {
  Sizes all;
  for (const auto& a : first)
    for (const auto& b : second) {
      all.push_back(a);
      all.back().insert(all.back().end(), b.begin(), b.end());
    }
  return all;
}

// The sizes of one word, and the names in it.
Result<Sizes> parse_word(const std::string& word, std::set<std::string>& names) {
  const Error bad{"--specialize " + word + ": expected SYMBOL=1,8 or SYMBOL=1,OTHER=64"};
  Sizes sizes{{}}, own;
  std::string name;
  std::istringstream parts(word + ",");
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = part.rfind('=');
    const std::string number = equals == std::string::npos ? part : part.substr(equals + 1);
    if (equals != std::string::npos) {
      if (!own.empty()) sizes = combined(sizes, own);
      own.clear();
      name = part.substr(0, equals);
      if (!names.insert(name).second) return Error{"--specialize " + word + ": " + name + " is there twice"};
    }
    const bool is_number = !number.empty() && std::ranges::all_of(number, [](unsigned char c) {
      return std::isdigit(c) != 0 || c == 'x';
    });
    if (name.empty() || !is_number) return bad;
    own.push_back({name + "=" + number});
  }
  return combined(sizes, own);
}

std::string text_of(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ",") + name;
  return text;
}

}  // namespace

Result<Sizes> parse_sizes(const std::vector<std::string>& words) {
  std::map<std::set<std::string>, Sizes> groups;
  for (const std::string& word : words) {
    std::set<std::string> names;
    GOPT_ASSIGN_OR_RETURN(const Sizes sizes, parse_word(word, names));
    Sizes& group = groups[names];
    group.insert(group.end(), sizes.begin(), sizes.end());
  }
  std::map<std::string, std::set<std::string>> named_with;
  Sizes all{{}};
  for (const auto& [names, sizes] : groups) {
    for (const std::string& name : names)
      if (const auto [other, is_new] = named_with.emplace(name, names); !is_new)
        return Error{"--specialize gives " + name + " with " + text_of(names) + " and with " + text_of(other->second) +
                     ": name the same symbols in both"};
    if (all.size() * sizes.size() > kMostSizes)
      return Error{"--specialize gives more than " + std::to_string(kMostSizes) +
                   " sizes, each of which is optimized on its own; name fewer"};
    all = combined(all, sizes);
  }
  std::set<std::vector<std::string>> seen;
  for (const auto& size : all)
    if (!seen.insert(size).second) return Error{"--specialize gives " + joined_size(size) + " twice"};
  return all;
}

std::string joined_size(const std::vector<std::string>& size) {
  std::string text;
  for (const std::string& one : size) text += (text.empty() ? "" : " ") + one;
  return text;
}

}  // namespace gopt::cli
