#include "sizes.h"

#include <algorithm>
#include <cctype>

namespace gopt::codegen {

std::string index_text(const Index& index, const std::function<std::string(AtomId)>& atom_text) {
  std::vector<std::pair<bool, std::string>> terms;  // negative ones last
  for (const Index::Term& term : index.terms()) {
    std::vector<std::string> factors;
    for (AtomId id : term.atoms) factors.push_back(atom_text(id));
    std::sort(factors.begin(), factors.end());
    std::string product;
    if (term.coefficient != 1 && term.coefficient != -1) product = std::to_string(std::abs(term.coefficient));
    for (const std::string& factor : factors) product += (product.empty() ? "" : " * ") + factor;
    terms.emplace_back(term.coefficient < 0, std::move(product));
  }
  if (terms.empty()) return std::to_string(index.constant());
  std::sort(terms.begin(), terms.end());
  std::string text;
  for (const auto& [negative, product] : terms)
    text += negative ? (text.empty() ? "-" : " - ") + product : (text.empty() ? "" : " + ") + product;
  if (index.constant() > 0) text += " + " + std::to_string(index.constant());
  if (index.constant() < 0) text += " - " + std::to_string(-index.constant());
  return text;
}

std::string size_name(AtomId symbol, const std::vector<OpenExtent>& open) {
  for (size_t k = 0; k < open.size(); k++)
    if (open[k].symbol == symbol) return "n" + std::to_string(k);
  throw InternalError("symbol " + atom(symbol).name + " outside its loop");
}

namespace {

bool names(const std::string& code, const std::string& name) {
  const auto is_letter = [&](size_t at) {
    return std::isalnum(static_cast<unsigned char>(code[at])) || code[at] == '_';
  };
  for (size_t at = code.find(name); at != std::string::npos; at = code.find(name, at + 1)) {
    const size_t end = at + name.size();
    if ((at == 0 || !is_letter(at - 1)) && (end == code.size() || !is_letter(end))) return true;
  }
  return false;
}

}  // namespace

std::string declared_sizes(const std::vector<OpenExtent>& open, const std::string& code) {
  std::string text;
  for (size_t k = 0; k < open.size(); k++) {
    const std::string number = std::to_string(k), name = "n" + number;
    if (names(code, name)) text += "const int64_t " + name + " = n[" + number + "];\n";
  }
  return text;
}

std::string size_text(const Index& index, const std::vector<OpenExtent>& open) {
  return index_text(index, [&](AtomId id) -> std::string {
    const Atom& a = atom(id);
    GOPT_CHECK(a.kind != AtomKind::Load, "a size does not depend on data");
    if (a.kind == AtomKind::Symbol) return size_name(id, open);
    return "gopt_runtime::floor_div(" + size_text(a.numerator, open) + ", " + size_text(a.denominator, open) + ")";
  });
}

std::string size_text(const Cond& cond, const std::vector<OpenExtent>& open) {
  switch (cond.kind()) {
    case CondKind::True: return "true";
    case CondKind::False: return "false";
    case CondKind::NonNegative: return size_text(cond.index(), open) + " >= 0";
    case CondKind::And:
    case CondKind::Or: break;
  }
  std::string text;
  for (const Cond& part : cond.parts())
    text += (text.empty() ? "(" : cond.kind() == CondKind::And ? ") && (" : ") || (") + size_text(part, open);
  return text + ")";
}

std::string list(const Shape& shape, const std::vector<OpenExtent>& open) {
  std::string text = "{";
  for (size_t i = 0; i < shape.size(); i++) text += (i ? ", " : "") + size_text(shape[i], open);
  return text + "}";
}

}  // namespace gopt::codegen
