// Optimizes a model for an ONNX runtime with the rules of one file.
//
// usage: optimize_model IN.onnx OUT.onnx
#include <gopt/driver.h>
#include <gopt/onnx.h>

#include <iostream>

namespace {

gopt::Status optimize(const std::string& in, const std::string& out) {
  GOPT_ASSIGN_OR_RETURN(const gopt::ImportedModel model, gopt::import_onnx(in));
  GOPT_ASSIGN_OR_RETURN(const gopt::RuleDatabase database, gopt::load_rules(RULES));
  gopt::DriverOptions options;
  options.target.kind = gopt::TargetKind::Onnx;
  options.wants_onnx = true;
  options.search.allowed_marks.finite_only = true;
  GOPT_ASSIGN_OR_RETURN(const gopt::Outcome outcome, gopt::optimize_graph(model.graph, database.rules, options));
  for (const gopt::AppliedRule& applied : outcome.result.applied) std::cout << "applied " << applied.rule << "\n";
  std::cout << "check " << (outcome.check.passed ? "passed" : "not passed") << "\n";
  return gopt::export_onnx(outcome.onnx_graph(), out);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: optimize_model IN.onnx OUT.onnx\n";
    return 1;
  }
  const gopt::Status status = optimize(argv[1], argv[2]);
  if (!status) std::cerr << status.error().message << "\n";
  return status ? 0 : 1;
}
