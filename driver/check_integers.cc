#include "check_integers.h"

#include "check_inputs.h"

namespace gopt::driver {

Status check_integers(CheckReport& report, const GraphRunner& reference, const RunModel& other,
                      const std::map<std::string, Tensor>& ordinary, const CheckOptions& options,
                      const Tolerance& tolerance, uint64_t seed) {
  if (!report.passed || reference.code) return Unit{};
  const InputDraws draws(ordinary, options, {}, seed, integer_draws(reference.graph));
  if (!draws.has(InputKind::Integers)) return Unit{};
  for (int round = 0; round < draws.rounds(InputKind::Integers) && report.passed; round++) {
    const auto inputs = draws.of(InputKind::Integers, round);
    const auto expected = reference.run(inputs);
    if (!expected.ok()) continue;
    GOPT_ASSIGN_OR_RETURN(const auto found, other(inputs));
    add_draw(report, reference.graph, InputKind::Integers, *expected, found, tolerance);
    report.round = round;
  }
  return Unit{};
}

}  // namespace gopt::driver
