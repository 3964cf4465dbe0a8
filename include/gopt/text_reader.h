// The grammar that graphs and rules share: names, indexes, conditions, types, attributes and node lines. text.h has
// graphs, rule.h rules; docs/grammar.md is the grammar. A reader throws TextError; the entry points turn it into an
// Error.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "gopt/graph.h"

namespace gopt {

class TextError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Reads one text from front to back. A comment runs from # to the end of its line; only newlines separate lines.
class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  bool at_end();       // nothing but blanks and comments is left
  bool at_line_end();  // of this line; does not pass it
  void skip_blank_lines();
  void end_line();             // expects the line's end and passes it
  void rewind_line();          // back to the start of this line
  void skip_line();            // passes what is left of this line
  std::string rest_of_line();  // what is left of this line as it stands, without blanks at its ends
  int line() const { return line_; }
  [[noreturn]] void fail(const std::string& what) const;  // "line 3, column 7: what"

  bool peek(std::string_view token);    // the characters come next; words only whole
  bool accept(std::string_view token);  // the same, and passes them
  void expect(std::string_view token);
  std::string word();  // letters, digits, _ . - (rule names hold hyphens)
  std::string name();  // [A-Za-z_][A-Za-z0-9_.]* or a "quoted string"
  std::string quoted();
  int64_t integer();
  double number();

  Index index();                            // a polynomial: + - * //, % and parentheses over integers and symbols
  Cond cond();                              // comparisons joined by and, or, not, parentheses; true, false
  TensorType type(bool* prefix = nullptr);  // f32[a,b], f32[?]; f32[...,a,b] where a prefix may be said
  AttributeValue attribute(OpKind kind, const std::string& name);
  Tensor tensor();  // f32[2] {1.0, 2.0}
  // Float attribute variables, written $name, by name.
  void set_float_variables(std::map<std::string, int> slots) { float_slots_ = std::move(slots); }

  // "a, b = Split(y) {axis=1, split=[2,3]}": adds the node and binds its outputs.
  void node_line(GraphBuilder& builder, std::map<std::string, Value>& values);
  // A value by name. Throws where it is not bound.
  Value value(const std::map<std::string, Value>& values);

 private:
  void skip_blanks();
  char next_char();
  double attribute_number();
  class Nesting;  // one level of what is being read; the reader fails where there are too many
  template <class F>
  auto checked(const F& arithmetic) const;  // its result; fails where it exceeds 64 bits
  Index index_term();
  Index index_factor();
  Cond cond_and();
  Cond cond_not();
  Attributes attributes(OpKind kind);
  void take_attributes(const OpInfo& info, std::vector<Value>& inputs, Attributes& attributes) const;

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  size_t line_start_ = 0;
  int depth_ = 0;  // of what is being read
  std::map<std::string, int> float_slots_;
};

// "{axis=1, split=[2,3]}" with a blank before it, or nothing; attributes at their defaults are left out.
std::string attributes_text(const Node& node);
// "f32[2] {1.0, 2.0}"
std::string tensor_text(const Tensor& tensor);

}  // namespace gopt
