#include "machine_speed.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "gopt/clock.h"
#include "gopt/temporary.h"
#include "machine.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace gopt::driver {
namespace {

constexpr int kChains = 12;  // independent ones, which hide the latency of a fused multiply-add

#if defined(__x86_64__)

constexpr int kRounds = 200'000;

__attribute__((target("avx512f"))) float multiply_add_512() {
  __m512 sums[kChains];
  for (__m512& sum : sums) sum = _mm512_set1_ps(1);
  const __m512 factor = _mm512_set1_ps(0.999F), addend = _mm512_set1_ps(0.001F);
  for (int i = 0; i < kRounds; i++)
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, addend);
  __m512 all = sums[0];
  for (const __m512& sum : sums) all = _mm512_add_ps(all, sum);
  return _mm512_cvtss_f32(all);
}

__attribute__((target("avx2,fma"))) float multiply_add_256() {
  __m256 sums[kChains];
  for (__m256& sum : sums) sum = _mm256_set1_ps(1);
  const __m256 factor = _mm256_set1_ps(0.999F), addend = _mm256_set1_ps(0.001F);
  for (int i = 0; i < kRounds; i++)
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, addend);
  __m256 all = sums[0];
  for (const __m256& sum : sums) all = _mm256_add_ps(all, sum);
  return _mm256_cvtss_f32(all);
}

// Billions of operations a second of one thread; nothing without fused multiply-adds.
std::optional<double> measured_gflops() {
  const bool is_wide = __builtin_cpu_supports("avx512f");
  if (!is_wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) return std::nullopt;
  constexpr int kTries = 5;  // what disturbs a shared machine only ever adds
  const double operations = 2.0 * kRounds * kChains * (is_wide ? 16 : 8);
  double best = 0;
  volatile float kept = 0;
  for (int i = 0; i < kTries; i++) {
    const auto start = std::chrono::steady_clock::now();
    kept = is_wide ? multiply_add_512() : multiply_add_256();
    const double seconds = seconds_since(start);
    best = std::max(best, operations / seconds * 1e-9);
  }
  (void)kept;
  return best;
}

#else

std::optional<double> measured_gflops() { return std::nullopt; }

#endif

}  // namespace

double kept_gflops(const std::string& path, const std::string& processor, double measured) {
  constexpr double kNoise = 1.05;
  std::string others;
  double kept = 0;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    double speed = 0;
    std::string name;
    if (!(words >> speed) || !std::getline(words >> std::ws, name)) continue;
    if (name == processor)
      kept = speed;
    else
      others += line + "\n";
  }
  if (measured <= kept * kNoise) return kept;
  std::ostringstream own;  // as it is read again
  own << measured;
  (void)write_whole(path, others + own.str() + " " + processor + "\n");
  return std::stod(own.str());
}

const Roofline& machine_roofline() {
  static const Roofline roofline = [] {
    Roofline r;
    if (const auto measured = measured_gflops()) {
      const auto folder = cache_folder();
      const double gflops =
          folder.ok() ? kept_gflops((*folder / "processor_speed").string(), processor_name(), *measured) : *measured;
      const double faster = gflops / r.gflops;
      r = {r.gflops * faster, r.gbps * faster, r.launch_us / faster, r.next_thread};
    }
    return r;
  }();
  return roofline;
}

double weight_bytes(const Graph& graph) {
  double bytes = 0;
  for (const NodePtr& node : graph.nodes())
    if (node->is(OpKind::Constant)) bytes += static_cast<double>(node->tensor.bytes().size());
  return bytes;
}

Roofline machine_roofline(const Graph& model) {
  // A server's last cache; what it says itself of its size is no guide, where it is shared or virtual. Matrix-vector
  // products whose weights fit ran at 3.7 and 4.9 times the speed that the memory of two machines allows.
  constexpr double kCacheBytes = 24e6, kCacheSpeed = 4;
  Roofline r = machine_roofline();
  if (weight_bytes(model) <= kCacheBytes) r.gbps *= kCacheSpeed;
  return r;
}

}  // namespace gopt::driver
