#include <fmt/format.h>

#include "commands.h"
#include "compare_models.h"
#include "model.h"

namespace gopt::cli {
namespace {

// A line an output, and PASSED or FAILED.
void print_differences(const std::vector<Difference>& differences) {
  bool passed = true;
  for (const Difference& d : differences) {
    passed &= d.passed;
    if (d.comparable)
      fmt::print("{:<24} max abs {:.3g}  max rel {:.3g}  {}\n", d.output, d.max_absolute, d.max_relative,
                 d.passed ? "ok" : "differs");
    else
      fmt::print("{:<24} {}\n", d.output, d.note);
  }
  fmt::print("{}\n", passed ? "PASSED" : "FAILED");
}

Status compare(const CompareOptions& o) {
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<RunnableModel> a,
                        load_model(o.reference, {o.reference_engine, o.threads, o.shapes}));
  GOPT_ASSIGN_OR_RETURN(std::unique_ptr<RunnableModel> b, load_model(o.other, {o.other_engine, o.threads, {}}));
  fmt::print("{} ({}) against {} ({})\n", o.reference, a->engine(), o.other, b->engine());
  GOPT_ASSIGN_OR_RETURN(const ModelsCompared compared, compare_models(*a, *b, o));
  for (size_t k = 0; k < compared.differences.size(); k++) {
    if (!compared.sizes[k].empty()) fmt::print("{}\n", to_string(compared.sizes[k]));
    print_differences(compared.differences[k]);
  }
  if (!compared.passed())
    return Error{"the outputs differ by more than rtol " + fmt::format("{:g}", o.tolerance.relative) + " and atol " +
                 fmt::format("{:g}", o.tolerance.absolute)};
  return Unit{};
}

}  // namespace

Action add_compare(CLI::App& app) {
  auto o = std::make_shared<CompareOptions>();
  add_compare_flags(app, *o);
  return [o] { return compare(*o); };
}

}  // namespace gopt::cli
