#include "shared_loops.h"

#include <cstdint>

namespace gopt::codegen {
namespace {

std::string header(const LoopHeader& loop) {
  return "for (int64_t " + loop.name + " = " + loop.low + "; " + loop.name + " < " + loop.high + "; " + loop.name +
         (loop.step == "1" ? "++" : " += " + loop.step) + ") {\n";
}

bool is_number(const std::string& text) { return text.find_first_not_of("0123456789") == std::string::npos; }

// The turns of a loop.
std::string turns_of(const LoopHeader& loop) {
  if (is_number(loop.low) && is_number(loop.high) && is_number(loop.step)) {
    const int64_t step = std::stoll(loop.step), extent = std::stoll(loop.high) - std::stoll(loop.low);
    return std::to_string((extent + step - 1) / step);
  }
  const std::string extent = loop.low == "0" ? "(" + loop.high + ")" : "((" + loop.high + ") - (" + loop.low + "))";
  return loop.step == "1" ? extent : "((" + extent + " + " + loop.step + " - 1) / " + loop.step + ")";
}

// How many turns these loops have together.
std::string turns_of(const LoopHeader* first, const LoopHeader* last) {
  int64_t number = 1;
  std::string text;
  for (const LoopHeader* loop = first; loop != last; loop++) {
    const std::string own = turns_of(*loop);
    if (is_number(own))
      number *= std::stoll(own);
    else
      text += (text.empty() ? "" : " * ") + own;
  }
  if (text.empty()) return std::to_string(number);
  return "(" + (number == 1 ? text : std::to_string(number) + " * " + text) + ")";
}

// The names of a parameter list.
std::string arguments_of(const std::string& parameters) {
  std::string names;
  for (size_t at = 0; at < parameters.size();) {
    const size_t end = std::min(parameters.find(',', at), parameters.size()), begin = parameters.rfind(' ', end) + 1;
    names += parameters.substr(begin, end - begin) + ", ";
    at = end + 1;
  }
  return names;
}

// Where a loop is at a turn of all.
std::string place_of(const LoopHeader* loop, const LoopHeader* first, const LoopHeader* last) {
  const std::string inner = turns_of(loop + 1, last), own = turns_of(*loop);
  if (own == "1") return loop->low;
  std::string place = "turn";
  if (inner != "1") place += " / " + inner;
  if (loop != first) place += " % " + own;
  if (loop->step != "1") place = (place == "turn" ? place : "(" + place + ")") + " * " + loop->step;
  return (loop->low == "0" ? "" : loop->low + " + ") + place;
}

}  // namespace

std::string opening_of(const std::vector<LoopHeader>& loops, bool is_shared) {
  std::string text;
  if (!is_shared) {
    for (const LoopHeader& loop : loops) text += header(loop);
    return text;
  }
  const LoopHeader *first = loops.data(), *last = first + loops.size();
  const std::string all = turns_of(first, last);
  std::string places;
  for (const LoopHeader* loop = first; loop != last; loop++)
    places += "const int64_t " + loop->name + " = " + place_of(loop, first, last) + ";\n";
  return "for (int64_t turn = " + all + " * part / parts; turn < " + all + " * (part + 1) / parts; turn++) {\n" +
         places;
}

std::string closing_of(const std::vector<LoopHeader>& loops, bool is_shared) {
  std::string text;
  for (size_t l = 0; l < (is_shared ? 1 : loops.size()); l++) text += "}\n";
  return text;
}

// A function of its own, so that its pointers stay apart from each other.
std::string shared_body(const std::string& parameters, const std::string& loops, const std::string& threads) {
  return "struct Shared {\n__attribute__((noinline)) static void run(" + parameters +
         ", const int64_t part, [[maybe_unused]] const int64_t parts) {\n" + loops +
         "}\n};\nconst int threads = " + threads +
         ";\ngopt_runtime::share(threads, threads, [&](const int64_t part, int) {\nShared::run(" +
         arguments_of(parameters) + "part, threads);\n});\n";
}

}  // namespace gopt::codegen
