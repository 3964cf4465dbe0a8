// Reads one line of the alphabet's text: words, numbers, polynomials over sizes, lists of them. Errors say the line and
// what was expected.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "gopt/index.h"
#include "gopt/result.h"

namespace gopt::generator {

class LineReader {
 public:
  LineReader(std::string_view text, std::string where) : text_(text), where_(std::move(where)) {}

  bool at_end() {
    skip_spaces();
    return at_ == text_.size();
  }
  bool accept(char wanted) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    at_++;
    return true;
  }
  bool accept(std::string_view wanted) {
    skip_spaces();
    if (text_.substr(at_, wanted.size()) != wanted) return false;
    at_ += wanted.size();
    return true;
  }
  Error expected(const std::string& what) const {
    return Error{fmt::format("{}: expected {} at `{}`", where_, what, text_.substr(std::min(at_, text_.size())))};
  }

  Result<std::string> word() {
    skip_spaces();
    const size_t start = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_' || text_[at_] == '-'))
      at_++;
    if (at_ == start) return expected("a name");
    return std::string(text_.substr(start, at_ - start));
  }
  // word (, word)*; `_` is a word
  Result<std::vector<std::string>> words() {
    std::vector<std::string> all;
    do {
      GOPT_ASSIGN_OR_RETURN(std::string next, word());
      all.push_back(std::move(next));
    } while (accept(','));
    return all;
  }
  bool at_number() {
    skip_spaces();
    return at_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[at_])) || text_[at_] == '-');
  }
  Result<int64_t> integer() {
    GOPT_ASSIGN_OR_RETURN(const double value, number());
    if (value != static_cast<double>(static_cast<int64_t>(value))) return expected("an integer");
    return static_cast<int64_t>(value);
  }
  Result<double> number() {
    skip_spaces();
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return expected("a number");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  // sum := product (('+' | '-') product)*
  Result<Index> polynomial() {
    const bool negative = accept('-');
    GOPT_ASSIGN_OR_RETURN(Index sum, product());
    if (negative) sum = -sum;
    for (;;) {
      const bool plus = accept('+'), minus = !plus && accept('-');
      if (!plus && !minus) return sum;
      GOPT_ASSIGN_OR_RETURN(const Index term, product());
      sum = plus ? sum + term : sum - term;
    }
  }
  Result<std::vector<Index>> list() {
    std::vector<Index> items;
    if (!accept('[')) return expected("`[`");
    while (!accept(']')) {
      if (!items.empty() && !accept(',')) return expected("`,` or `]`");
      GOPT_ASSIGN_OR_RETURN(Index item, polynomial());
      items.push_back(std::move(item));
    }
    return items;
  }

 private:
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  Result<Index> product() {
    GOPT_ASSIGN_OR_RETURN(Index result, factor());
    while (accept('*')) {
      GOPT_ASSIGN_OR_RETURN(const Index next, factor());
      result = result * next;
    }
    return result;
  }
  Result<Index> factor() {
    skip_spaces();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_]))) {
      int64_t value = 0;
      const auto end = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value).ptr;
      at_ = static_cast<size_t>(end - text_.data());
      return Index(value);
    }
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) at_++;
    if (at_ == start) return expected("a number or a size");
    return symbol(text_.substr(start, at_ - start));
  }

  std::string_view text_;
  std::string where_;
  size_t at_ = 0;
};

}  // namespace gopt::generator
