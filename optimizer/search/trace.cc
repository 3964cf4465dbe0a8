#include "gopt/optimizer.h"

namespace gopt {

std::string to_string(SearchKind kind) {
  switch (kind) {
    case SearchKind::Backtracking: return "backtracking";
    case SearchKind::Greedy: return "greedy";
    case SearchKind::Beam: return "beam";
    case SearchKind::Saturation: return "saturation";
    case SearchKind::None: return "none";
  }
  return {};
}

std::string to_string(StopReason reason) {
  switch (reason) {
    case StopReason::Saturated: return "saturated";
    case StopReason::StepLimit: return "step limit";
    case StopReason::NoGain: return "no gain for long";
    case StopReason::EGraphLimit: return "limit of the e-graph";
    case StopReason::TimeLimit: return "time limit";
    case StopReason::Interrupted: return "interrupted";
    case StopReason::Followed: return "done as in an earlier run";
    case StopReason::Off: return "off";
  }
  return "unknown";
}

RuleTrials& RuleTrials::operator+=(const RuleTrials& other) {
  for (const auto count : {&RuleTrials::tried, &RuleTrials::did_not_fit, &RuleTrials::too_dear, &RuleTrials::known,
                           &RuleTrials::kept, &RuleTrials::improved})
    this->*count += other.*count;
  return *this;
}

}  // namespace gopt
