#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <vector>

#include "buffers.h"
#include "gopt/temporary.h"
#include "share_weights.h"

namespace gopt {
namespace {

namespace fs = std::filesystem;

// One weight after another: each is evaluated, written and dropped, so that memory holds one at a time.
Status write_weights(const std::vector<Plan>& plans, const fs::path& path) {
  std::ofstream out(path, std::ios::binary);
  if (!out) return Error{"cannot write " + path.string()};
  int64_t written = 0;
  auto pad_to = [&](int64_t offset) {
    static constexpr char zeros[64] = {};
    for (; written < offset; written += std::min<int64_t>(64, offset - written))
      out.write(zeros, std::min<int64_t>(64, offset - written));
  };
  std::map<int64_t, const Buffer*> weights;  // by offset
  int64_t end = 0;
  for (const Plan& plan : plans) {
    end = std::max(end, codegen::weights_file_size(plan));
    for (BufferId id : codegen::weight_buffers(plan)) weights.try_emplace(plan.buffer(id).offset, &plan.buffer(id));
  }
  for (const auto& [offset, buffer] : weights) {
    pad_to(offset);
    GOPT_RETURN_IF_ERROR(codegen::with_weight(*buffer, [&](std::span<const char> bytes) {
      out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    }));
    written += buffer->size_bytes;
  }
  pad_to(end);
  out.close();
  if (!out) return Error{"cannot write " + path.string() + ": is the disk full?"};
  return Unit{};
}

// Names of what was emitted, one a line. A folder without one is somebody else's.
constexpr const char *kManifest = "emitted_files.txt", *kWeights = "weights.bin";

std::vector<std::string> names_of(const EmittedCode& code) {
  std::vector<std::string> names;
  for (const EmittedFile& file : code.files) names.push_back(file.name);
  for (const EmittedFolder& inner : code.folders)
    for (const std::string& name : names_of(inner.code)) names.push_back(inner.name + "/" + name);
  if (!code.plans.empty()) names.emplace_back(kWeights);
  names.emplace_back(kManifest);
  return names;
}

Status write_files(const EmittedCode& code, const fs::path& folder) {
  std::vector<EmittedFile> files = code.files;
  std::string listed;
  for (const std::string& name : names_of(code)) listed += name + "\n";
  files.push_back({kManifest, listed});
  for (const EmittedFile& file : files) {
    std::ofstream out(folder / file.name, std::ios::binary);
    out << file.text;
    out.close();
    if (!out) return Error{"cannot write " + (folder / file.name).string()};
  }
  for (const EmittedFolder& inner : code.folders) {
    std::error_code error;
    fs::create_directory(folder / inner.name, error);
    if (error) return Error{"cannot make " + (folder / inner.name).string() + ": " + error.message()};
    GOPT_RETURN_IF_ERROR(write_files(inner.code, folder / inner.name));
  }
  return code.plans.empty() ? Status(Unit{}) : write_weights(code.plans, folder / kWeights);
}

// Of the folder itself, or of one in it.
bool is_name_inside(const fs::path& name) {
  const auto is_step = [](const fs::path& part) { return part == "." || part == ".."; };
  return !name.empty() && name.is_relative() && std::distance(name.begin(), name.end()) <= 2 &&
         std::none_of(name.begin(), name.end(), is_step);
}

// Names in a manifest that are files of the folder itself, or of a piece in it.
std::set<std::string> read_manifest(const fs::path& folder) {
  std::set<std::string> names;
  std::ifstream in(folder / kManifest);
  for (std::string line; std::getline(in, line);)
    if (is_name_inside(line)) names.insert(line);
  return names;
}

// Each new file takes the place of the old one; old ones that are no more go; what else is there stays.
void replace_files(const std::vector<std::string>& names, std::set<std::string> old, const fs::path& made,
                   const fs::path& target, StagedFiles& staged) {
  std::error_code error;
  for (const std::string& name : names) {
    old.erase(name);
    fs::create_directories((target / name).parent_path(), error);  // of a piece
    staged.add(made / name, target / name);
  }
  for (const std::string& name : old)
    if (fs::is_regular_file(fs::symlink_status(target / name, error))) staged.remove(target / name);
}

fs::path without_last_slash(const std::string& folder) {
  const fs::path target = fs::path(folder).lexically_normal();
  return target.has_filename() ? target : target.parent_path();
}

std::string first_name_in(const fs::path& folder) {
  std::error_code error;
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder, error)) names.insert(entry.path().filename().string());
  return names.empty() ? "unreadable ones" : *names.begin();
}

}  // namespace

Status check_emit_folder(const std::string& folder, bool force) {
  std::error_code error;
  const fs::path target = without_last_slash(folder);
  if (!fs::exists(target, error)) return Unit{};
  if (!fs::is_directory(target, error)) return Error{folder + " is not a folder"};
  if (fs::is_empty(target, error)) return Unit{};
  if (!fs::exists(target / kManifest, error))
    return Error{folder + " holds files that were not emitted, " + first_name_in(target) + " for one (it has no " +
                 kManifest + "); name another folder"};
  if (!force) return Error{folder + " exists already; --force replaces what was emitted there"};
  return Unit{};
}

bool is_emitted(const std::string& folder, const std::string& file) {
  std::error_code error;
  const fs::path target = without_last_slash(folder);
  const std::set<std::string> names = read_manifest(target);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return fs::equivalent(target / name, file, error) && !error; });
}

Status stage_emitted(const EmittedCode& code, const std::string& folder, bool force, StagedFiles& staged) {
  GOPT_RETURN_IF_ERROR(check_emit_folder(folder, force));
  std::error_code error;
  const std::vector<std::string> names = names_of(code);
  const fs::path target = without_last_slash(folder);
  const std::set<std::string> old = read_manifest(target);
  for (const std::string& name : names)
    if (!old.count(name) && fs::exists(fs::symlink_status(target / name, error)))
      return Error{folder + " holds " + name + ", which was not emitted; name another folder"};
  for (const std::string& name : names)
    if (fs::is_directory(target / name, error)) return Error{folder + " holds a folder " + name + "; name another one"};
  GOPT_ASSIGN_OR_RETURN(TemporaryFolder beside, TemporaryFolder::beside(target));
  GOPT_RETURN_IF_ERROR(write_files(code, beside.path()));
  if (fs::exists(target, error) && !fs::is_empty(target, error))
    replace_files(names, old, beside.path(), target, staged);
  else
    staged.add(beside.path(), target);
  staged.keep(std::move(beside));
  return Unit{};
}

Status write_emitted(const EmittedCode& code, const std::string& folder, bool force) {
  StagedFiles staged;
  GOPT_RETURN_IF_ERROR(stage_emitted(code, folder, force, staged));
  return staged.commit();
}

}  // namespace gopt
