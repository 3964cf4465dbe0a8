#include "prove.h"

#include <fmt/format.h>

#include <filesystem>

#include "write_file.h"

namespace gopt::cli {

void VerdictCounts::add(Verdict verdict) {
  switch (verdict) {
    case Verdict::Proved: proved++; return;
    case Verdict::Refuted: refuted++; return;
    case Verdict::Unknown: unknown++; return;
  }
}
std::string VerdictCounts::text() const {
  return fmt::format("{} proved, {} refuted, {} unknown", proved, refuted, unknown);
}

Status write_obligations(const std::string& folder, const RewriteRule& rule, const Verification& verification) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Error{folder + " cannot be made: " + error.message()};
  int number = 0;
  for (const Obligation& o : verification.obligations)
    GOPT_RETURN_IF_ERROR(write_text(fmt::format("{}/{}-{:03}.smt2", folder, rule.name, number++),
                                    "; " + o.what + "\n" + o.smtlib, true));
  return Unit{};
}

}  // namespace gopt::cli
