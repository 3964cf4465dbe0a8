// What terms are made of, by family: sizes, classes of variables, constants and operators with their attributes, read
// from text (alphabet.txt is built in; its opening comment is the grammar). See enumerate.h for who builds terms from
// it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gopt/definition.h"
#include "gopt/rule.h"

namespace gopt::generator {

// A symbol of extents or attributes, with its value in each of the two assignments that terms are compared under and
// the range that later tests draw from.
struct Size {
  AtomId symbol;
  int64_t values[2];
  int64_t low, high;
};

// What a float variable ($epsilon) is where terms are compared: a number of few bits that no operator singles out.
constexpr double kFloatVariable = 0.71875;

// Variables of one kind and type, interchangeable. Those of a class with a name are for arguments that name it alone,
// so that an operator of many inputs has few namings.
struct VariableClass {
  VariableKind kind = VariableKind::Activation;
  int count = 1;
  TensorType type;
  bool has_prefix = false;
  std::string name = {};
  int line = 0;  // of the text, for errors
};

// One operator of a composite. An argument is an input of the composite, an earlier step's output, or a scalar.
struct CompositeStep {
  enum class From { Input, Step, Constant };
  struct Argument {
    From from = From::Input;
    size_t number = 0;
    double constant = 0;
  };
  OpKind kind;
  Attributes attributes;
  std::vector<Argument> args;
  int line = 0;
};

// An operator of the table, or a composite: several under one name, which count once (spatial parts moved into the
// batch, say). A composite's kind is Identity.
struct AlphabetOp {
  OpKind kind;
  Attributes attributes;
  int inputs = 1, outputs = 1;
  bool on_weights_only = false;
  int weights_from = 99;  // inputs from this one on are weights
  std::string composite;  // its name; else empty
  std::vector<CompositeStep> steps;
  std::vector<int> classes;  // for each argument the class that its variable is of, -1 where any term will do; or empty
  int line = 0;

  // The class of argument `i`, -1 where any term will do.
  int class_of(size_t i) const { return classes.empty() ? -1 : classes[i]; }
  const std::string& name() const { return composite.empty() ? op_info(kind).name : composite; }
};

// What the operator computes, its steps one after another.
Result<Definition> define(const AlphabetOp& op, const std::vector<TensorExpr>& inputs);
Result<InferredTypes> infer_types(const AlphabetOp& op, const std::vector<TensorType>& inputs);
// With numbers for sizes and for float variables.
Attributes substituted(const Attributes& attributes, const Substitution& sizes);
AlphabetOp substituted(const AlphabetOp& op, const Substitution& sizes);

struct Family {
  std::string name;
  int line = 0;
  int max_ops = 9;                // its own limit, where more is not worth its price
  int max_weight_ops = 1;         // operators on weights alone
  int max_variables = 0;          // its own limit, where rules need more than others; 0: none
  bool is_partial = false;        // pairs that agree on a part of their elements are looked for
  bool has_exponentials = false;  // the laws of exp are looked for
  std::vector<Size> sizes;
  std::vector<VariableClass> classes;
  std::vector<double> constants;  // scalars
  std::vector<AlphabetOp> ops;
};

// Errors: "NAME:12: ..." with what was expected, or what is wrong and what would mend it.
Result<std::vector<Family>> parse_alphabet(std::string_view text, const std::string& name);

// The text of alphabet.txt.
std::string_view built_in_alphabet();

}  // namespace gopt::generator
