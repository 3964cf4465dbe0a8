#include "proof_state.h"

#include <cctype>
#include <map>

namespace gopt {

namespace {

// Binders are numbered by first appearance, since both sides draw them from one pool.
std::string without_binder_names(const std::string& text) {
  std::string r;
  std::map<std::string, size_t> numbers;
  for (size_t i = 0; i < text.size();) {
    if (text.compare(i, 2, "%k") != 0) {
      r += text[i++];
      continue;
    }
    size_t end = i + 2;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) end++;
    r += "#" + std::to_string(numbers.try_emplace(text.substr(i, end - i), numbers.size()).first->second);
    i = end;
  }
  return r;
}

}  // namespace

void Domains::demand(std::string function, NormalForm argument) {
  const std::string text = without_binder_names(function + " " + key(argument));
  if (!right_side_) {
    if (left_keys_.insert(text).second) left_.push_back({std::move(function), std::move(argument)});
  } else if (!left_keys_.count(text)) {
    open_.push_back({std::move(function), std::move(argument)});
  }
}

}  // namespace gopt
