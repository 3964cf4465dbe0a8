// Short reductions on a CPU, in which each lane of a vector has a sum of its own.
#include <algorithm>
#include <bit>

#include "transform.h"
#include "writer.h"

namespace gopt::codegen {

// A loop so short that what is at its ends, numbers beside whole vectors and the sum of a vector's lanes one after
// another, takes a part of its time, in which each lane has a sum of its own: so many of them. Else 0.
int64_t ReductionWriter::lanes_of_short(const LoopPart& part) const {
  constexpr int64_t kMostLanes = 16, kFewest = 5, kFewestSums = 64, kMostWhole = 64, kMost = 256;
  const bool is_number = part.high.find_first_not_of("0123456789") == std::string::npos && part.high.size() < 9;
  const bool is_plain = part.lows.empty() && part.highs.empty() && part.step == 1 && part.low == "0" && is_number;
  if (!is_plain || type_ != Scalar::Float) return 0;
  const int64_t extent = std::stoll(part.high);
  if (extent < kFewest || extent > kMost) return 0;
  const bool is_ragged = extent % kMostLanes != 0, takes_little = !watches_nan() && !w_.is_expensive(body_);
  if (parts_.size() == 1 && ((extent > kMostWhole && !is_ragged) || (extent < kFewestSums && takes_little))) return 0;
  return std::min(kMostLanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent))));
}

// Adds a number to a lane's; what the vector before had, as the last one begins earlier, is not added again, nor does
// it matter to what is largest or smallest.
std::string ReductionWriter::lane_step(const std::string& sums, const std::string& value, const LoopPart& part) const {
  const std::string own = sums + "[lane]", v = w_.fresh("v"), declared = "const float " + v + " = " + value + ";\n";
  if (!watches_nan())
    return declared + own + " = " +
           combine(own, "(" + part.name + " >= " + part.name + "_first ? " + v + " : " +
                            literal(neutral_element(e_->reduce), type_) + ")") +
           ";\n";
  const std::string sign = e_->reduce == ReduceKind::Max ? " > " : " < ";
  return declared + own + " = " + v + sign + own + " ? " + v + " : " + own + ";\n" + sums + "_nan[lane] |= " + v +
         " != " + v + ";\n";
}

// Of two lanes, none of which is NaN where that is looked for apart.
std::string ReductionWriter::folded(const std::string& a, const std::string& b) const {
  if (!watches_nan()) return combine(a, b);
  return b + (e_->reduce == ReduceKind::Max ? " > " : " < ") + a + " ? " + b + " : " + a;
}

std::string ReductionWriter::close_short(const LoopPart& part, int64_t lanes) const {
  const std::string count = std::to_string(lanes), first = part.name + "_first", from = part.name + "_from";
  const std::string last = std::to_string(std::stoll(part.high) - lanes);
  return "for (int64_t " + first + " = 0; " + first + " < " + part.high + "; " + first + " += " + count +
         ") {\nconst int64_t " + from + " = gopt_min<int64_t>(" + first + ", " + last +
         ");\n#pragma omp simd\nfor (int64_t lane = 0; lane < " + count + "; lane++) {\nconst int64_t " + part.name +
         " = " + from + " + lane;\n" + part.scope->code + "}\n}\n";
}

}  // namespace gopt::codegen
