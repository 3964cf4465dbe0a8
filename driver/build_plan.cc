#include "build_plan.h"

#include "gopt/temporary.h"

namespace gopt::driver {

Result<LoadedModel> build_code(const EmittedCode& code, int threads) {
  GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  const std::string inside = folder.path() / "model";
  GOPT_RETURN_IF_ERROR(write_emitted(code, inside, false));
  return LoadedModel::build_and_load(inside, threads);
}

Result<LoadedModel> build_plan(const Plan& plan, int threads) {
  GOPT_ASSIGN_OR_RETURN(const EmittedCode code, emit(plan));
  return build_code(code, threads);
}

std::vector<Status> compile_ahead(const std::vector<const Plan*>& plans) {
  std::vector<EmittedCode> codes;
  std::vector<Status> statuses;
  for (const Plan* plan : plans) {
    auto code = emit(*plan);
    statuses.push_back(code.ok() ? Status(Unit{}) : Status(code.error()));
    if (code.ok()) codes.push_back(*std::move(code));
  }
  std::vector<Status> built = LoadedModel::build(codes);
  auto next = built.begin();
  for (Status& status : statuses)
    if (status.ok()) status = *next++;
  return statuses;
}

}  // namespace gopt::driver
