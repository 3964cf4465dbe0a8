#include "build_plan.h"

#include <stdlib.h>

#include <filesystem>

namespace gopt::driver {
namespace {

namespace fs = std::filesystem;

// A folder of our own that is gone afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "gopt-XXXXXX").string();
    if (mkdtemp(pattern.data())) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }  // empty where none could be made

 private:
  std::string path_;
};

}  // namespace

Result<LoadedModel> build_plan(const Plan& plan, int threads) {
  GOPT_ASSIGN_OR_RETURN(const EmittedCode code, emit(plan));
  TemporaryFolder folder;
  if (folder.path().empty()) return Error{"no temporary folder can be made; set TMPDIR"};
  const std::string inside = folder.path() + "/model";
  GOPT_RETURN_IF_ERROR(write_emitted(code, inside, false));
  return LoadedModel::build_and_load(inside, threads);
}

}  // namespace gopt::driver
