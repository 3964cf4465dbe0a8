// The log's outer form: nested lists of words, a list a line.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace gopt::checker {

// What is wrong with the log: its form, or a step that does not hold.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Sexpr {
  bool is_list = false;
  std::string word;
  std::vector<Sexpr> items;

  const std::string& head() const;  // the first word of a list; throws where there is none
  const Sexpr& at(size_t i) const;  // throws where there are fewer
  size_t size() const { return items.size(); }
  int64_t integer() const;
  double number() const;  // hexadecimal, exact
};

// All lists of the text, in order. Throws Fault.
std::vector<Sexpr> parse_sexprs(std::string_view text);

}  // namespace gopt::checker
