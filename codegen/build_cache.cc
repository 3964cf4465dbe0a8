#include "build_cache.h"

#include <algorithm>
#include <system_error>
#include <vector>

namespace gopt::codegen {
namespace {

namespace fs = std::filesystem;

struct Built {
  fs::path path;
  uint64_t bytes;
  fs::file_time_type used;
};

bool is_built(const fs::path& path) { return path.extension() == ".o" || path.extension() == ".so"; }

// TemporaryFolder's name beside the sources' folder or a library: ".XXXXXX" after its own.
bool is_of_a_build(const fs::path& path) {
  constexpr size_t kSuffix = 7;
  const std::string extension = path.extension().string();
  return extension.size() == kSuffix && (path.stem() == "work" || path.stem().extension() == ".so");
}

}  // namespace

void mark_used(const fs::path& file) {
  std::error_code error;
  fs::last_write_time(file, fs::file_time_type::clock::now(), error);
}

void trim_build_cache(const fs::path& folder, const BuildCacheLimits& limits) {
  const auto now = fs::file_time_type::clock::now();
  std::vector<Built> all;
  uint64_t bytes = 0;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code gone;  // another run may remove it meanwhile
    const fs::file_time_type used = entry->last_write_time(gone);
    if (gone) continue;
    if (entry->is_directory(gone)) {
      if (is_of_a_build(entry->path()) && now - used > limits.abandoned) fs::remove_all(entry->path(), gone);
    } else if (is_built(entry->path()) && entry->is_regular_file(gone)) {
      const uint64_t size = entry->file_size(gone);
      if (gone) continue;
      all.push_back({entry->path(), size, used});
      bytes += size;
    }
  }
  std::ranges::sort(all, {}, &Built::used);
  for (const Built& built : all) {
    if (bytes <= limits.bytes || now - built.used < limits.in_use) return;
    if (fs::remove(built.path, error)) bytes -= built.bytes;
  }
}

}  // namespace gopt::codegen
