#include "mutation/extent_names.h"

#include <fmt/core.h>

#include <iterator>

namespace gopt::driver {
namespace {

constexpr int64_t kLargestFactor = 4, kLargestShift = 4;  // by which extents of spatial axes are told from others

// Of symbols and numbers, so that it may be multiplied as it is written. Texts that are being made are empty.
bool is_product(const std::string& text) { return !text.empty() && text.find('+') == std::string::npos; }

}  // namespace

void ExtentNames::add(ExtentRole role, int64_t extent) { extents_[role].insert(extent); }

std::string ExtentNames::text(ExtentRole role, int64_t extent) {
  name_all();
  const auto known = texts_.find({role, extent});
  return known == texts_.end() ? std::to_string(extent) : known->second;
}

std::string ExtentNames::text_of_any(int64_t extent) {
  name_all();
  if (extent <= 1) return std::to_string(extent);
  for (const ExtentRole role : {ExtentRole::Plain, ExtentRole::Spatial, ExtentRole::Batch})
    if (const auto known = texts_.find({role, extent}); known != texts_.end()) return known->second;
  return product_of_known(extent).value_or(std::to_string(extent));
}

std::optional<std::string> ExtentNames::quotient(ExtentRole role, int64_t extent, int64_t divisor) {
  const std::string whole = text(role, extent), start = fmt::format("{}*", divisor);
  if (divisor == 1) return whole;
  if (!is_product(whole) || !whole.starts_with(start)) return std::nullopt;
  return whole.substr(start.size());
}

std::string ExtentNames::sizes() {
  name_all();
  std::string lines;
  for (const Symbol& s : symbols_)
    lines += fmt::format("size {} {} {} {} {}\n", s.name, s.first, s.second, s.low, s.high);
  return lines;
}

// Smaller ones first: larger ones may be made of them.
void ExtentNames::name_all() {
  if (is_named_) return;
  is_named_ = true;
  for (int64_t extent : extents_[ExtentRole::Batch]) {
    const std::string name = fmt::format("n{}", texts_.size());
    texts_[{ExtentRole::Batch, extent}] = name;
    symbols_.push_back({name, 1, 2, 1, 2});
  }
  for (int64_t extent : extents_[ExtentRole::Plain]) name_plain(extent);
  for (int64_t extent : extents_[ExtentRole::Spatial]) name_spatial(extent);
}

// Any two differ in one assignment at least, so that what need not agree does not.
void ExtentNames::name_plain(int64_t extent) {
  static constexpr int64_t kValues[][2] = {{2, 3}, {3, 2}, {3, 4}, {2, 4}, {4, 3}, {4, 2}};
  if (extent == 1) return;
  std::string& text = texts_[{ExtentRole::Plain, extent}];
  if (const auto product = has_products_ ? product_of_known(extent) : std::nullopt) {
    text = *product;
    return;
  }
  text = fmt::format("c{}", symbols_.size());
  const auto& values = kValues[symbols_.size() % std::size(kValues)];
  symbols_.push_back({text, values[0], values[1], 1, 4});
}

void ExtentNames::name_spatial(int64_t extent) {
  if (extent == 1) return;
  std::string& text = texts_[{ExtentRole::Spatial, extent}];
  if (const auto made = from_known_spatial(extent)) {
    text = *made;
    return;
  }
  const int64_t step = extent % windows_.step == 0 ? windows_.step : 1;
  const int64_t least = (windows_.reach + step - 1) / step, number = static_cast<int64_t>(symbols_.size());
  const std::string name = fmt::format("h{}", number);
  text = step == 1 ? name : fmt::format("{}*{}", step, name);
  symbols_.push_back({name, least + number % 2, least + 1 - number % 2, least, least + 2});
}

std::optional<std::string> ExtentNames::product_of_known(int64_t extent) const {
  for (const auto& [own, text] : texts_) {
    const int64_t factor = own.second;
    if (!is_product(text) || factor < 2 || extent % factor != 0) continue;
    for (const auto& [other, its_text] : texts_)
      if (is_product(its_text) && other.second == extent / factor && other.second > 1) return text + "*" + its_text;
  }
  return std::nullopt;
}

std::optional<std::string> ExtentNames::from_known_spatial(int64_t extent) const {
  for (const auto& [own, text] : texts_) {
    if (own.first != ExtentRole::Spatial || text.empty()) continue;
    const int64_t other = own.second;
    if (extent % other == 0 && extent / other <= kLargestFactor && is_product(text))
      return fmt::format("{}*{}", extent / other, text);
    if (extent - other <= kLargestShift) return fmt::format("{}+{}", text, extent - other);
  }
  return std::nullopt;
}

}  // namespace gopt::driver
