#include "proof_log.h"

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "equality/shared_sums.h"
#include "equality/sign_cases.h"

namespace gopt::verifier {
namespace {

std::string word(const std::string& name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '%' || c == '.';
  });
  std::string safe = name;
  std::replace(safe.begin(), safe.end(), '|', '/');
  std::replace(safe.begin(), safe.end(), '\n', ' ');
  return plain ? name : "|" + safe + "|";
}

std::string number_text(double value) {
  char buffer[40];
  snprintf(buffer, sizeof buffer, "%a", value);
  return buffer;
}

std::string text_of(const Index& index);

std::string text_of(AtomId id) {
  const Atom& a = atom(id);
  switch (a.kind) {
    case AtomKind::Symbol: return word(a.name);
    case AtomKind::FloorDiv: return "(// " + text_of(a.numerator) + " " + text_of(a.denominator) + ")";
    case AtomKind::Load: {
      std::string text = "(load " + std::to_string(a.input);
      for (const Index& s : a.subscripts) text += " " + text_of(s);
      return text + ")";
    }
  }
  return "";
}

std::string text_of(const Index& index) {
  if (index.is_constant()) return std::to_string(index.constant());
  std::string text = "(+";
  if (index.constant() != 0) text += " " + std::to_string(index.constant());
  for (const Index::Term& term : index.terms()) {
    text += " (* " + std::to_string(term.coefficient);
    for (AtomId id : term.atoms) text += " " + text_of(id);
    text += ")";
  }
  return text + ")";
}

std::string text_of(const Cond& cond) {
  switch (cond.kind()) {
    case CondKind::True: return "true";
    case CondKind::False: return "false";
    case CondKind::NonNegative: return "(>= " + text_of(cond.index()) + ")";
    case CondKind::And:
    case CondKind::Or: {
      std::string text = cond.kind() == CondKind::And ? "(and" : "(or";
      for (const Cond& part : cond.parts()) text += " " + text_of(part);
      return text + ")";
    }
  }
  return "";
}

std::string text_of(const std::vector<AtomId>& binders) {
  std::string text;
  for (AtomId b : binders) text += (text.empty() ? "" : " ") + text_of(b);
  return "(" + text + ")";
}

std::string text_of(const NormalForm& form);

const char* kind_text(FactorKind kind) {
  switch (kind) {
    case FactorKind::Read: return "read";
    case FactorKind::Size: return "size";
    case FactorKind::Literal: return "literal";
    case FactorKind::Call: return "call";
    case FactorKind::Reciprocal: return "reciprocal";
    case FactorKind::Maximum: return "max";
    case FactorKind::Product: return "product";
    case FactorKind::IsLess: return "less";
    case FactorKind::IsEqual: return "equal";
    case FactorKind::Opaque: return "opaque";
  }
  return "";
}

std::string text_of(const Factor& factor) {
  // The inverse of a factor that is no reciprocal itself is its exponent; that of a reciprocal is 1.
  std::string text = std::string("(") + kind_text(factor.kind) + " " + std::to_string(factor.exponent);
  if (factor.kind == FactorKind::Read) text += " " + std::to_string(factor.input);
  if (factor.kind == FactorKind::Opaque) text += " " + std::to_string(factor.tag);
  if (factor.kind == FactorKind::Literal) text += " " + number_text(factor.literal);
  if (factor.kind == FactorKind::Call) text += " " + std::string(function_text(factor.function));
  for (const Index& s : factor.subscripts) text += " " + text_of(s);
  for (const NormalForm& a : factor.args) text += " " + text_of(a);
  for (const Branch& b : factor.branches)
    text += " (branch " + text_of(b.binders) + " " + text_of(b.guard) + " " + text_of(b.value) + ")";
  return text + ")";
}

std::string text_of(const Summand& term) {
  std::string text = "(term " + std::to_string(term.coefficient.numerator()) + " " +
                     std::to_string(term.coefficient.denominator()) + " " + text_of(term.binders) + " " +
                     text_of(term.guard);
  for (const Factor& f : term.factors) text += " " + text_of(f);
  return text + ")";
}
std::string text_of(const NormalForm& form) {
  std::string text = "(form";
  for (const Summand& term : form) text += " " + text_of(term);
  return text + ")";
}

std::string kind_text(ExprKind kind) {
  switch (kind) {
    case ExprKind::Constant: return "const";
    case ExprKind::Size: return "size";
    case ExprKind::Read: return "read";
    case ExprKind::Add: return "+";
    case ExprKind::Subtract: return "-";
    case ExprKind::Multiply: return "*";
    case ExprKind::Divide: return "/";
    case ExprKind::Maximum: return "max";
    case ExprKind::Minimum: return "min";
    case ExprKind::Less: return "<";
    case ExprKind::Equal: return "=";
    case ExprKind::Call: return "call";
    case ExprKind::Select: return "if";
    case ExprKind::Choose: return "choose";
    case ExprKind::Convert: return "convert";
    case ExprKind::Reduce: return "reduce";
  }
  return "";
}
const char* kind_text(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum: return "sum";
    case ReduceKind::Max: return "max";
    case ReduceKind::Min: return "min";
    case ReduceKind::Product: return "product";
  }
  return "";
}

std::string text_of(const Expr& e) {
  std::string text = "(" + kind_text(e->kind);
  if (e->kind == ExprKind::Constant) text += " " + number_text(e->value);
  if (e->kind == ExprKind::Size) text += " " + text_of(e->index);
  if (e->kind == ExprKind::Read) text += " " + std::to_string(e->input);
  if (e->kind == ExprKind::Call) text += " " + std::string(function_text(e->function));
  if (e->kind == ExprKind::Convert) text += " " + std::to_string(static_cast<int>(e->type));
  if (e->kind == ExprKind::Select) text += " " + text_of(e->cond);
  for (const Index& s : e->subscripts) text += " " + text_of(s);
  if (e->kind == ExprKind::Reduce) {
    text += std::string(" ") + kind_text(e->reduce) + " (";
    for (const Binder& b : e->binders) text += "(" + text_of(b.symbol) + " " + text_of(b.extent) + ")";
    text += ")";
  }
  for (const Expr& a : e->args) text += " " + text_of(a);
  return text + ")";
}

std::string equality_text(const Cond& context, const NormalForm& left, const NormalForm& right,
                          const std::vector<Summand>& terms) {
  return text_of(context) + " " + text_of(left) + " " + text_of(right) + " " + text_of(NormalForm(terms));
}

std::string text_of(const ProofLog::Class& members) {
  std::string text;
  for (const auto& [position, change] : members) {
    text += " (" + std::to_string(position);
    for (const auto& [binder, value] : change) text += " (" + text_of(binder) + " " + text_of(value) + ")";
    text += ")";
  }
  return text;
}

std::string text_of(const ProofLog::Place& place) {
  std::string at = "(at", where = "(where";
  for (const Index& s : place.subscripts) at += " " + text_of(s);
  for (const auto& [symbol, value] : place.solved) where += " (" + text_of(symbol) + " " + text_of(value) + ")";
  return at + ") " + where + ")";
}

}  // namespace

std::string log_header(const RewriteRule& proved) {
  const ProofRecord& proof = *proved.proof;
  return "(proof " + word(proved.name) + " (rule " + proof.rule + ") (definitions " + proof.definitions +
         ") (outputs " + std::to_string(proved.left.outputs().size()) + ") (obligations " +
         std::to_string(proof.obligations) + ") (digest " + proof.digest + "))\n";
}

std::string log_case(const std::string& kind, const std::vector<AtomId>& symbols) {
  std::string line = "(case " + kind;
  for (AtomId id : symbols) line += " " + text_of(id);
  return line + ")\n";
}

void ProofLog::add(const std::string& line) {
  if (seen_.insert(line).second) text_ += line + "\n";
}

void ProofLog::begin(const std::string& rule) { add("(rule " + word(rule) + ")"); }
void ProofLog::boolean(int input) { add("(boolean " + std::to_string(input) + ")"); }
void ProofLog::entailed(const std::string& what, const Cond& context, const Cond& goal) {
  add("(implies " + word(what) + " " + text_of(context) + " " + text_of(goal) + ")");
}
void ProofLog::sums_to_zero(const std::string& what, const Cond& context,
                            const std::vector<std::pair<int64_t, Cond>>& counts) {
  std::string line = "(cancels " + word(what) + " " + text_of(context);
  for (const auto& [coefficient, cond] : counts) line += " (" + std::to_string(coefficient) + " " + text_of(cond) + ")";
  add(line + ")");
}
void ProofLog::required(const std::string& what, const Cond& context, const Cond& goal) {
  add("(required " + word(what) + " " + text_of(context) + " " + text_of(goal) + ")");
}

void ProofLog::equal(const Cond& context, const NormalForm& left, const NormalForm& right,
                     const std::vector<Summand>& terms, const std::vector<Class>& classes) {
  std::string line = "(equal " + equality_text(context, left, right, terms);
  for (const Class& members : classes) line += " (class" + text_of(members) + ")";
  add(line + ")");
}
void ProofLog::equal_inside(const Cond& context, const NormalForm& left, const NormalForm& right,
                            const std::vector<Summand>& terms, const std::vector<SharedSum>& sums) {
  std::string line = "(inside " + equality_text(context, left, right, terms);
  for (const SharedSum& sum : sums)
    line += " (sum " + text_of(sum.guard) + " " + text_of(sum.integrand) + " (members" + text_of(sum.members) + "))";
  add(line + ")");
}
void ProofLog::equal_by_cases(const Cond& context, const NormalForm& left, const NormalForm& right,
                              const std::vector<Summand>& terms) {
  add("(cases " + equality_text(context, left, right, terms) + ")");
}
void ProofLog::equal_pointwise(const Cond& context, const NormalForm& left, const NormalForm& right,
                               const std::vector<Summand>& terms) {
  add("(pointwise " + equality_text(context, left, right, terms) + ")");
}
void ProofLog::equal_rearranged(const Cond& context, const NormalForm& left, const NormalForm& right,
                                const NormalForm& form) {
  add("(rearranged " + equality_text(context, left, right, form) + ")");
}
void ProofLog::equal_either_way(const Cond& context, const NormalForm& left, const NormalForm& right,
                                const std::vector<Summand>& terms, const Cond& guard) {
  add("(either " + equality_text(context, left, right, terms) + " " + text_of(guard) + ")");
}
void ProofLog::equal_by_sign(const Cond& context, const NormalForm& left, const NormalForm& right,
                             const std::vector<Summand>& terms, const SignCases& cases) {
  add("(signs " + equality_text(context, left, right, terms) + " " + text_of(cases.difference) + " " +
      text_of(cases.where_positive) + " " + text_of(cases.where_zero) + " " + text_of(cases.where_negative) + ")");
}
void ProofLog::empty(const Place& place, const Cond& context) {
  add("(empty " + std::to_string(place.output) + " " + text_of(context) + " " + text_of(place) + ")");
}
void ProofLog::output(const Place& place, const Cond& context, const Expr& left, const NormalForm& left_form,
                      const Expr& right, const NormalForm& right_form) {
  add("(output " + std::to_string(place.output) + " " + text_of(context) + " " + text_of(left) + " " +
      text_of(left_form) + " " + text_of(right) + " " + text_of(right_form) + " " + text_of(place) + ")");
}

}  // namespace gopt::verifier
