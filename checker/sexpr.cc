#include "sexpr.h"

#include <cerrno>
#include <cstdlib>

namespace gopt::checker {
namespace {

constexpr int kMaxDepth = 2000;

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::vector<Sexpr> all() {
    std::vector<Sexpr> lists;
    for (skip(); at_ < text_.size(); skip()) {
      lists.push_back(next(0));
      if (!lists.back().is_list) throw Fault("line " + std::to_string(line_) + ": a word outside of any step");
    }
    return lists;
  }

 private:
  void skip() {
    for (; at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t'); at_++)
      line_ += text_[at_] == '\n';
  }
  Sexpr next(int depth) {
    skip();
    if (at_ >= text_.size() || depth > kMaxDepth)
      throw Fault("line " + std::to_string(line_) + ": a list does not end");
    Sexpr result;
    if (text_[at_] == ')') throw Fault("line " + std::to_string(line_) + ": ')' without '('");
    if (text_[at_] == '(') {
      at_++;
      result.is_list = true;
      for (skip(); at_ < text_.size() && text_[at_] != ')'; skip()) result.items.push_back(next(depth + 1));
      if (at_ >= text_.size()) throw Fault("line " + std::to_string(line_) + ": a list does not end");
      at_++;
      return result;
    }
    if (text_[at_] == '|') {
      const size_t end = text_.find('|', at_ + 1);
      if (end == std::string_view::npos) throw Fault("line " + std::to_string(line_) + ": a name does not end");
      result.word = text_.substr(at_ + 1, end - at_ - 1);
      at_ = end + 1;
      return result;
    }
    const size_t begin = at_;
    while (at_ < text_.size() && std::string_view(" \n\t()|").find(text_[at_]) == std::string_view::npos) at_++;
    result.word = text_.substr(begin, at_ - begin);
    return result;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

const std::string& Sexpr::head() const {
  if (!is_list || items.empty() || items[0].is_list) throw Fault("a list that begins with no word");
  return items[0].word;
}
const Sexpr& Sexpr::at(size_t i) const {
  if (i >= items.size()) throw Fault("'" + (items.empty() ? word : items[0].word) + "' is too short");
  return items[i];
}
int64_t Sexpr::integer() const {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(word.c_str(), &end, 10);
  if (is_list || word.empty() || *end != '\0' || errno != 0) throw Fault("'" + word + "' is no integer");
  return value;
}
double Sexpr::number() const {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (is_list || word.empty() || *end != '\0') throw Fault("'" + word + "' is no number");
  return value;
}

std::vector<Sexpr> parse_sexprs(std::string_view text) { return Parser(text).all(); }

}  // namespace gopt::checker
