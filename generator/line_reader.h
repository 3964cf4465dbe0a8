// Reads one line of the alphabet's text: words, numbers, polynomials over sizes, lists of them. Errors say the line and
// what was expected.
#pragma once

#include <fmt/core.h>

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gopt/index.h"
#include "gopt/result.h"

namespace gopt::generator {

class LineReader {
 public:
  LineReader(std::string_view text, std::string_view file, int number) : text_(text), file_(file), number_(number) {}

  int number_of_line() const { return number_; }

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
  Error expected(const std::string& what) const { return expected_near("at", what); }
  // What was read last is not it.
  Error expected_before(const std::string& what) const { return expected_near("before", what); }
  // Says what is wrong, and after a semicolon what would mend it.
  Error wrong(const std::string& what) const { return Error{fmt::format("{}:{}: {}", file_, number_, what)}; }

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
    constexpr double kExact = 1LL << 53;  // integers up to here are exact as doubles
    if (std::abs(value) > kExact || value != std::trunc(value))
      return wrong(fmt::format("{} is no integer; give one", value));
    return static_cast<int64_t>(value);
  }
  // What `what` is set to.
  Result<int64_t> integer_within(const std::string& what, int64_t low, int64_t high) {
    GOPT_ASSIGN_OR_RETURN(const int64_t value, integer());
    if (value >= low && value <= high) return value;
    return wrong(low < high ? fmt::format("{} is {}; give a number from {} to {}", what, value, low, high)
                            : fmt::format("{} is {}; only {} is possible", what, value, low));
  }
  Result<double> number() {
    skip_spaces();
    double value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) return expected("a number");
    if (!std::isfinite(value)) return expected("a finite number");
    at_ += static_cast<size_t>(end - begin);
    return value;
  }

  Result<Index> polynomial() {
    try {
      return sum();
    } catch (const std::overflow_error&) {
      return wrong("a coefficient exceeds 64 bits; make its numbers smaller");
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
  Error expected_near(const char* where, const std::string& what) const {
    const size_t next = text_.find_first_not_of(' ', at_);
    if (next == std::string_view::npos) return wrong(fmt::format("expected {} at the end of the line", what));
    return wrong(fmt::format("expected {} {} `{}`", what, where, text_.substr(next)));
  }
  void skip_spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') at_++;
  }
  // sum := product (('+' | '-') product)*
  Result<Index> sum() {
    const bool negative = accept('-');
    GOPT_ASSIGN_OR_RETURN(Index all, product());
    if (negative) all = -all;
    for (;;) {
      const bool plus = accept('+'), minus = !plus && accept('-');
      if (!plus && !minus) return all;
      GOPT_ASSIGN_OR_RETURN(const Index term, product());
      all = plus ? all + term : all - term;
    }
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
      const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
      if (error != std::errc()) return expected("a number of 64 bits");
      at_ = static_cast<size_t>(end - text_.data());
      return Index(value);
    }
    const size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) || text_[at_] == '_')) at_++;
    if (at_ == start) return expected("a number or a size");
    return symbol(text_.substr(start, at_ - start));
  }

  std::string_view text_;
  std::string_view file_;
  int number_;
  size_t at_ = 0;
};

}  // namespace gopt::generator
