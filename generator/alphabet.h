// What terms are made of, by family: sizes, classes of variables, constants and operators with their attributes, read
// from text (alphabet.txt is built in; its opening comment is the grammar). See enumerate.h for who builds terms from
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gopt/rule.h"

namespace gopt::generator {

// A symbol of extents or attributes, with its value in each of the two assignments that terms are compared under and
// the range that later tests draw from.
struct Size {
  AtomId symbol;
  int64_t values[2];
  int64_t low, high;
};

// Variables of one kind and type, interchangeable.
struct VariableClass {
  VariableKind kind = VariableKind::Activation;
  int count = 1;
  TensorType type;
  bool has_prefix = false;
};

struct AlphabetOp {
  OpKind kind;
  Attributes attributes;
  int inputs = 1, outputs = 1;
  bool on_weights_only = false;
  int weights_from = 99;  // inputs from this one on are weights
};

struct Family {
  std::string name;
  int max_ops = 9;          // its own limit, where more is not worth its price
  int max_weight_ops = 1;   // operators on weights alone
  bool is_partial = false;  // pairs that agree on a part of their elements are looked for
  std::vector<Size> sizes;
  std::vector<VariableClass> classes;
  std::vector<double> constants;  // scalars
  std::vector<AlphabetOp> ops;
};

// Errors: "NAME:12: ..." with what was expected.
Result<std::vector<Family>> parse_alphabet(std::string_view text, const std::string& name);

// The text of alphabet.txt.
std::string_view built_in_alphabet();

}  // namespace gopt::generator
