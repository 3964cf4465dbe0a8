#include "normal_form.h"

#include <algorithm>
#include <cstdio>
#include <map>

namespace gopt::verifier {

AtomId BinderPool::fresh() {
  // Interned in order of their number, so that their ids are ordered alike whatever else the process interned.
  static const bool interned = [] {
    for (int i = 0; i < 4096; i++) symbol_atom("%k" + std::to_string(i));
    return true;
  }();
  (void)interned;
  return symbol_atom("%k" + std::to_string(used_++));
}

NormalForm one() { return {Summand{}}; }
NormalForm as_form(Factor factor) {
  Summand term;
  term.factors.push_back(std::move(factor));
  return {std::move(term)};
}
Factor make_call(Function function, std::vector<NormalForm> args) {
  Factor factor;
  factor.kind = FactorKind::Call;
  factor.function = function;
  factor.args = std::move(args);
  return factor;
}

// ---- substitution ----

Factor substitute(const Factor& factor, const Substitution& substitution) {
  Factor r = factor;
  for (Index& s : r.subscripts) s = substitute(s, substitution);
  for (NormalForm& a : r.args) a = substitute(a, substitution);
  for (Branch& b : r.branches) {
    b.guard = substitute(b.guard, substitution);
    b.value = substitute(b.value, substitution);
  }
  return r;
}
NormalForm substitute(const NormalForm& form, const Substitution& substitution) {
  NormalForm r = form;
  for (Summand& term : r) {
    term.guard = substitute(term.guard, substitution);
    for (Factor& factor : term.factors) factor = substitute(factor, substitution);
  }
  return r;
}

Summand freshen(Summand term, BinderPool& pool) {
  if (term.binders.empty()) return term;
  Substitution renamed;
  for (AtomId& binder : term.binders) {
    const AtomId fresh = pool.fresh();
    renamed[binder] = Index::from_atom(fresh);
    binder = fresh;
  }
  term.guard = substitute(term.guard, renamed);
  for (Factor& factor : term.factors) factor = substitute(factor, renamed);
  return term;
}

void collect_symbols(const Factor& factor, std::set<AtomId>& out) {
  for (const Index& s : factor.subscripts) collect_symbols(s, out);
  for (const NormalForm& a : factor.args) collect_symbols(a, out);
  for (const Branch& b : factor.branches) {
    collect_symbols(b.guard, out);
    collect_symbols(b.value, out);
  }
}
void collect_symbols(const NormalForm& form, std::set<AtomId>& out) {
  for (const Summand& term : form) {
    collect_symbols(term.guard, out);
    for (const Factor& factor : term.factors) collect_symbols(factor, out);
  }
}

NormalForm negated(NormalForm form) {
  for (Summand& term : form) term.coefficient = -term.coefficient;
  return form;
}

// ---- atoms ----

Index replace_atom(const Index& index, AtomId replaced, const Index& value) {
  Index r(index.constant());
  for (const Index::Term& term : index.terms()) {
    Index product(term.coefficient);
    for (AtomId id : term.atoms) {
      const Atom& a = atom(id);
      if (id == replaced) {
        product = product * value;
      } else if (a.kind == AtomKind::FloorDiv) {
        const Index n = replace_atom(a.numerator, replaced, value), d = replace_atom(a.denominator, replaced, value);
        product = product * (n == a.numerator && d == a.denominator ? Index::from_atom(id) : floor_div(n, d));
      } else {
        product = product * Index::from_atom(id);
      }
    }
    r += product;
  }
  return r;
}
Cond replace_atom(const Cond& cond, AtomId replaced, const Index& value) {
  switch (cond.kind()) {
    case CondKind::True:
    case CondKind::False: return cond;
    case CondKind::NonNegative: return at_least(replace_atom(cond.index(), replaced, value), Index(0));
    case CondKind::And: {
      Cond r;
      for (const Cond& part : cond.parts()) r = r && replace_atom(part, replaced, value);
      return r;
    }
    case CondKind::Or: {
      Cond r = Cond::never();
      for (const Cond& part : cond.parts()) r = r || replace_atom(part, replaced, value);
      return r;
    }
  }
  return cond;
}

namespace {

void replace_in(Factor& factor, AtomId replaced, const Index& value) {
  for (Index& s : factor.subscripts) s = replace_atom(s, replaced, value);
  for (NormalForm& a : factor.args)
    for (Summand& term : a) replace_atom(term, replaced, value);
  for (Branch& b : factor.branches) {
    b.guard = replace_atom(b.guard, replaced, value);
    for (Summand& term : b.value) replace_atom(term, replaced, value);
  }
}

}  // namespace

void replace_atom(Summand& term, AtomId replaced, const Index& value) {
  term.guard = replace_atom(term.guard, replaced, value);
  for (Factor& factor : term.factors) replace_in(factor, replaced, value);
}

// ---- keys ----

namespace {

using Names = std::map<AtomId, std::string>;

std::string key_of(const Index& index, const Names& names);

std::string key_of(AtomId id, const Names& names) {
  const Atom& a = atom(id);
  switch (a.kind) {
    case AtomKind::Symbol: {
      auto it = names.find(id);
      return it == names.end() ? a.name : it->second;
    }
    case AtomKind::FloorDiv: return "(" + key_of(a.numerator, names) + "//" + key_of(a.denominator, names) + ")";
    case AtomKind::Load: {
      std::string text = "load" + std::to_string(a.input) + "[";
      for (const Index& s : a.subscripts) text += key_of(s, names) + ",";
      return text + "]";
    }
  }
  return "";
}

std::string sorted_text(std::vector<std::string> parts, const char* separator) {
  std::sort(parts.begin(), parts.end());
  std::string text;
  for (const std::string& part : parts) text += part + separator;
  return text;
}

std::string key_of(const Index& index, const Names& names) {
  std::vector<std::string> terms;
  for (const Index::Term& term : index.terms()) {
    std::vector<std::string> atoms;
    for (AtomId id : term.atoms) atoms.push_back(key_of(id, names));
    terms.push_back(std::to_string(term.coefficient) + "*" + sorted_text(std::move(atoms), "*"));
  }
  return sorted_text(std::move(terms), "+") + std::to_string(index.constant());
}

std::string key_of(const Cond& cond, const Names& names) {
  switch (cond.kind()) {
    case CondKind::True: return "T";
    case CondKind::False: return "F";
    case CondKind::NonNegative: return key_of(cond.index(), names) + ">=0";
    case CondKind::And:
    case CondKind::Or: {
      std::vector<std::string> parts;
      for (const Cond& part : cond.parts()) parts.push_back(key_of(part, names));
      return (cond.kind() == CondKind::And ? "&(" : "|(") + sorted_text(std::move(parts), ",") + ")";
    }
  }
  return "";
}

Names extended(Names names, const std::vector<AtomId>& binders, int depth) {
  for (size_t i = 0; i < binders.size(); i++)
    names[binders[i]] = "%B" + std::to_string(depth) + "_" + std::to_string(i);
  return names;
}

std::string key_of(const NormalForm& form, const Names& names, int depth);

std::string key_of(const Factor& factor, const Names& names, int depth, bool with_exponent) {
  std::string text = std::to_string(static_cast<int>(factor.kind)) + ":" + std::to_string(factor.input) + ":" +
                     std::to_string(static_cast<int>(factor.function)) + ":" + std::to_string(factor.tag);
  if (factor.kind == FactorKind::Literal) {
    char literal[32];
    snprintf(literal, sizeof literal, "%a", factor.literal);
    text += literal;
  }
  if (with_exponent) text += "^" + std::to_string(factor.exponent);
  text += "[";
  for (const Index& s : factor.subscripts) text += key_of(s, names) + ",";
  text += "]";
  for (const NormalForm& a : factor.args) text += "(" + key_of(a, names, depth) + ")";
  std::vector<std::string> branches;
  for (const Branch& b : factor.branches) {
    const Names inner = extended(names, b.binders, depth);
    branches.push_back("{" + std::to_string(b.binders.size()) + key_of(b.guard, inner) +
                       key_of(b.value, inner, depth + 1) + "}");
  }
  return text + sorted_text(std::move(branches), "");
}

std::string key_of(const NormalForm& form, const Names& names, int depth) {
  std::vector<std::string> terms;
  for (const Summand& term : form) {
    const Names inner = extended(names, term.binders, depth);
    std::vector<std::string> factors;
    for (const Factor& factor : term.factors) factors.push_back(key_of(factor, inner, depth + 1, true));
    terms.push_back(std::to_string(term.coefficient.numerator()) + "/" +
                    std::to_string(term.coefficient.denominator()) + "#" + std::to_string(term.binders.size()) +
                    key_of(term.guard, inner) + ";" + sorted_text(std::move(factors), ";"));
  }
  return "<" + sorted_text(std::move(terms), " # ") + ">";
}

}  // namespace

std::string key(const Factor& factor, bool with_exponent) { return key_of(factor, {}, 0, with_exponent); }
std::string key(const NormalForm& form) { return key_of(form, {}, 0); }

// ---- indexes and conditions ----

std::vector<Cond> conjuncts(const Cond& cond) {
  if (cond.is_true()) return {};
  if (cond.kind() == CondKind::And) return cond.parts();
  return {cond};
}

std::vector<AtomId> sorted_by_name(std::vector<AtomId> symbols) {
  auto text = [](AtomId id) { return to_string(Index::from_atom(id)); };
  std::sort(symbols.begin(), symbols.end(), [&](AtomId a, AtomId b) { return text(a) < text(b); });
  return symbols;
}

bool depends_on(const Index& index, AtomId symbol) {
  for (const Index::Term& term : index.terms()) {
    for (AtomId id : term.atoms) {
      if (id == symbol) return true;
      const Atom& a = atom(id);
      if (a.kind == AtomKind::Symbol) continue;
      if (depends_on(a.numerator, symbol) || depends_on(a.denominator, symbol)) return true;
      for (const Index& s : a.subscripts)
        if (depends_on(s, symbol)) return true;
    }
  }
  return false;
}
bool depends_on(const Cond& cond, AtomId symbol) {
  if (cond.kind() == CondKind::NonNegative) return depends_on(cond.index(), symbol);
  return std::any_of(cond.parts().begin(), cond.parts().end(),
                     [&](const Cond& part) { return depends_on(part, symbol); });
}

std::optional<LinearSplit> split_linear(const Index& index, AtomId symbol) {
  int64_t coefficient = 0;
  for (const Index::Term& term : index.terms())
    if (term.atoms.size() == 1 && term.atoms[0] == symbol) coefficient = term.coefficient;
  if (coefficient == 0) return std::nullopt;
  Index rest = index - Index(coefficient) * Index::from_atom(symbol);
  if (depends_on(rest, symbol)) return std::nullopt;
  return LinearSplit{coefficient, std::move(rest)};
}

}  // namespace gopt::verifier
