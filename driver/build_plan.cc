#include "build_plan.h"

#include <fstream>

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

Status compile_ahead(const Plan& plan) {
  GOPT_ASSIGN_OR_RETURN(const EmittedCode code, emit(plan));
  GOPT_ASSIGN_OR_RETURN(const TemporaryFolder folder, TemporaryFolder::create());
  for (const EmittedFile& file : code.files) std::ofstream(folder.path() / file.name, std::ios::binary) << file.text;
  return LoadedModel::build(folder.path());
}

}  // namespace gopt::driver
