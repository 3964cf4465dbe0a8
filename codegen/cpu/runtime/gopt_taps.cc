#include "gopt_taps.h"

#include <algorithm>

#include "gopt_activation.h"
#include "gopt_lanes.h"
#include "gopt_planar.h"
#include "gopt_team.h"

namespace gopt_runtime {
namespace {

size_t in_vectors(size_t floats) { return (floats + kLanes - 1) / kLanes * kLanes; }

}  // namespace

TapSums::TapSums(const PlanarShape& s) : plane_(s.src[0] * s.src[1] * s.src[2]) {
  for (int a = 0; a < 3; a++) {
    Axis& axis = axes_[a];
    kernel_[a] = s.kernel[a];
    axis = {s.transposed ? s.strides[a] : 1, s.src[a], s.dst[a], {}};
    axis.taps.resize(static_cast<size_t>(axis.step));
    for (int64_t residue = 0; residue < axis.step; residue++)
      for (int64_t k = 0; k < s.kernel[a]; k++) {
        const int64_t reach = k * s.dilations[a];
        const int64_t at = residue + (s.transposed ? s.pads[a] - reach : reach - s.pads[a]);
        if (at % axis.step == 0) axis.taps[static_cast<size_t>(residue)].push_back({k, at / axis.step});
      }
  }
}

size_t TapSums::scratch_floats() const {
  const Axis& x = axes_[2];
  return in_vectors(static_cast<size_t>(x.dst / x.step + 1 + kLanes));
}

void TapSums::add_taps(const Axis& x, int64_t residue, const float* products, float* sums, int64_t count) const {
  for (const Tap& tap : x.taps[static_cast<size_t>(residue)]) {
    const float* from = products + tap.number * plane_ + tap.shift;
    const int64_t low = std::max<int64_t>(0, -tap.shift), high = std::min(count, x.src - tap.shift);
    for (int64_t i = low; i < high; i += kLanes) {
      const Vector sum = load(sums + i) + load_lanes(from + i, high - i, Vector{});
      std::memcpy(sums + i, &sum, sizeof sum);
    }
  }
}

void TapSums::add_row(const float* products, int64_t z, int64_t y, float* scratch, float* row) const {
  const Axis &depth = axes_[0], &height = axes_[1], &x = axes_[2];
  for (int64_t residue = 0; residue < std::min(x.step, x.dst); residue++) {
    const int64_t count = (x.dst - residue + x.step - 1) / x.step;
    float* sums = x.step == 1 ? row : scratch;
    std::fill(sums, sums + count, 0.0f);
    for (const Tap& d : depth.taps[static_cast<size_t>(z % depth.step)]) {
      const int64_t from_z = z / depth.step + d.shift;
      if (from_z < 0 || from_z >= depth.src) continue;
      for (const Tap& h : height.taps[static_cast<size_t>(y % height.step)]) {
        const int64_t from_y = y / height.step + h.shift;
        if (from_y < 0 || from_y >= height.src) continue;
        const int64_t tap = (d.number * kernel_[1] + h.number) * kernel_[2];
        add_taps(x, residue, products + tap * plane_ + (from_z * height.src + from_y) * x.src, sums, count);
      }
    }
    if (x.step == 1) continue;
    for (int64_t i = 0; i < count; i += kLanes)
      store_apart(sums + i, row + residue + i * x.step, 0, static_cast<int>(std::min<int64_t>(kLanes, count - i)),
                  x.step);
  }
}

// Worth it for few channels, on which the lanes' loads wait, and many to sum over, since all products are stored.
std::unique_ptr<PlanarConvolution> PlanarConvolution::products_of(const PlanarShape& s, int threads) {
  constexpr int64_t kMostOut = 3, kLeastIn = 32, kLeastTaps = 4, kMostProducts = 1 << 19;
  const int64_t taps = area(s.kernel);
  const bool steps = !s.transposed && std::any_of(s.strides, s.strides + 3, [](int64_t stride) { return stride != 1; });
  if (steps || s.out > kMostOut || s.in < kLeastIn || taps < kLeastTaps || s.out * taps * area(s.src) > kMostProducts)
    return nullptr;
  PlanarShape products;
  products.batch = s.batch;
  products.groups = s.groups;
  products.in = s.in;
  products.out = s.out * taps;
  for (int a = 0; a < 3; a++) products.src[a] = products.dst[a] = s.src[a];
  auto made = std::make_unique<PlanarConvolution>(products, std::vector<Post>{}, threads);
  made->by_input_ = s.transposed;
  made->taps_of_channel_ = taps;
  return made;
}

// All in whole vectors, so that each begins aligned.
size_t PlanarConvolution::floats_of_products() const {
  return in_vectors(static_cast<size_t>(s_.batch * products_->s_.groups * products_->s_.out * area(s_.src)) + kLanes);
}
size_t PlanarConvolution::row_floats() const {
  return in_vectors(static_cast<size_t>(s_.dst[2]) + kLanes) + sums_->scratch_floats();
}

void PlanarConvolution::run_taps(const float* src, const float* packed, const float* bias, float* dst,
                                 float* scratch) const {
  float *products = scratch, *rows = products + floats_of_products(), *rest = rows + threads_ * row_floats();
  products_->run(src, packed, nullptr, products, rest);
  const int64_t taps = area(s_.kernel), plane = area(s_.src), lines = s_.dst[0] * s_.dst[1];
  share_each(s_.batch * s_.groups * s_.out * lines, threads_, [&](int64_t line, int slot) {
    float* row = rows + static_cast<size_t>(slot) * row_floats();
    const int64_t channel = line / lines, z = line % lines / s_.dst[1], y = line % s_.dst[1];
    sums_->add_row(products + channel * taps * plane, z, y, row + in_vectors(static_cast<size_t>(s_.dst[2]) + kLanes),
                   row);
    finish_row(posts_, bias, channel % (s_.groups * s_.out), line * s_.dst[2], s_.dst[2], row, dst);
  });
}

}  // namespace gopt_runtime
