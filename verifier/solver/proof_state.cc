#include "proof_state.h"

#include <algorithm>
#include <cctype>
#include <map>

namespace gopt::verifier {

namespace {

// Binders are numbered by first appearance, since both sides draw them from one pool.
std::string without_binder_names(const std::string& text, std::vector<AtomId>& binders) {
  std::string r;
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "%k") != 0) {
      r += text[i++];
      continue;
    }
    size_t end = i + 2;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) end++;
    const std::string name = text.substr(i, end - i);
    const auto [it, is_new] = numbers.try_emplace(name, numbers.size());
    if (is_new) binders.push_back(symbol_atom(name));
    r += "#" + std::to_string(it->second);
    i = end;
  }
  return r;
}

}  // namespace

void Domains::demand(std::string function, NormalForm argument, const Cond& context) {
  Demand made{std::move(function), std::move(argument), context, "", {}};
  made.text = without_binder_names(made.function + " " + key(made.argument), made.binders);
  std::vector<Demand>& known = right_side_ ? right_ : left_;
  const bool is_known = std::any_of(known.begin(), known.end(), [&](const Demand& d) {
    return d.text == made.text && d.binders == made.binders && d.context == made.context;
  });
  if (!is_known) known.push_back(std::move(made));
}

}  // namespace gopt::verifier
