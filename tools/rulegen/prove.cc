#include "prove.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <mutex>

#include "gopt/parallel.h"

namespace gopt::cli {

void VerdictCounts::add(Verdict verdict) {
  switch (verdict) {
    case Verdict::Proved: proved++; return;
    case Verdict::Refuted: refuted++; return;
    case Verdict::Unknown: unknown++; return;
  }
}
void VerdictCounts::add(const VerdictCounts& other) {
  proved += other.proved;
  refuted += other.refuted;
  unknown += other.unknown;
}
std::string VerdictCounts::text() const {
  return fmt::format("{} proved, {} refuted, {} unknown", proved, refuted, unknown);
}

namespace {

// A failure of ours over one rule is no reason to say nothing of the others.
Verification prove_or_explain(RewriteRule& rule, const VerifyOptions& options) {
  try {
    return prove_rule(rule, options);
  } catch (const std::exception& e) {
    rule.proof.reset();
    Verification v;
    v.reason = std::string("an internal error, which is a bug: ") + e.what();
    return v;
  }
}

}  // namespace

std::vector<Verification> prove_on_threads(std::vector<RewriteRule>& rules, const VerifyOptions& options, int threads,
                                           const std::function<void(const RewriteRule&, const Verification&)>& report) {
  std::vector<std::optional<Verification>> found(rules.size());
  size_t reported = 0;
  std::mutex mutex;
  parallel_for(threads, rules.size(), [&](int, size_t i) {
    Verification v = prove_or_explain(rules[i], options);
    const std::lock_guard lock(mutex);
    found[i] = std::move(v);
    for (; reported < rules.size() && found[reported]; reported++) report(rules[reported], *found[reported]);
  });
  std::vector<Verification> results;
  for (std::optional<Verification>& v : found) results.push_back(*std::move(v));
  return results;
}

std::string times_text(double seconds, std::vector<double> milliseconds) {
  if (milliseconds.empty()) return fmt::format("{:.1f} s", seconds);
  std::sort(milliseconds.begin(), milliseconds.end());
  auto quantile = [&](double q) {
    const auto rank = static_cast<size_t>(std::ceil(q * static_cast<double>(milliseconds.size())));
    return milliseconds[std::max<size_t>(rank, 1) - 1];
  };
  return fmt::format("{:.1f} s, median {:.1f} ms, p99 {:.1f} ms a rule", seconds, quantile(0.5), quantile(0.99));
}

std::vector<std::string> condition_texts(const Cond& condition) {
  if (condition.is_true()) return {};
  if (condition.kind() != CondKind::And) return {to_string(condition)};
  std::vector<std::string> texts;
  std::vector<bool> done(condition.parts().size(), false);
  for (size_t i = 0; i < done.size(); i++) {
    if (done[i]) continue;
    Cond whole = condition.parts()[i];
    for (size_t j = i + 1; j < done.size() && whole.kind() == CondKind::NonNegative; j++) {
      const Cond& other = condition.parts()[j];
      if (done[j] || other.kind() != CondKind::NonNegative || other.index() != -whole.index()) continue;
      done[j] = true;
      whole = whole && other;
    }
    texts.push_back(to_string(whole));
  }
  return texts;
}

}  // namespace gopt::cli
