#include "proof_state.h"

#include <cctype>
#include <map>

namespace gopt {

// Binders are numbered by first appearance, since both sides draw them from one pool.
std::string Domains::without_binder_names(const std::string& text) {
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

}  // namespace gopt
