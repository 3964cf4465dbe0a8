// Numbers of a subgraph's types as polynomials over symbols, so that what is found for a few small sizes is a rule for
// the model's: equal extents of one role are one symbol, those that are multiples or sums of others are written so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace gopt::driver {

enum class ExtentRole { Batch, Plain, Spatial };

class ExtentNames {
 public:
  // What windows look at: extents of spatial axes are a multiple of `step` where they can be (dilations and strides
  // divide them then), and `reach` or more where terms are evaluated.
  struct Windows {
    int64_t step = 1, reach = 1;
  };
  ExtentNames(const Windows& windows, bool has_products) : windows_(windows), has_products_(has_products) {}

  void add(ExtentRole role, int64_t extent);  // before any text is asked for
  std::string text(ExtentRole role, int64_t extent);
  // Of a number in an attribute that says extents: the one of some role; else it stays a number.
  std::string text_of_any(int64_t extent);
  // Of the extent by a divisor of it; nothing where that is no polynomial.
  std::optional<std::string> quotient(ExtentRole role, int64_t extent, int64_t divisor);
  // Lines of the alphabet that declare the symbols.
  std::string sizes();

 private:
  struct Symbol {
    std::string name;
    int64_t first, second, low, high;
  };
  void name_all();
  void name_plain(int64_t extent);
  void name_spatial(int64_t extent);
  std::optional<std::string> product_of_known(int64_t extent) const;
  std::optional<std::string> from_known_spatial(int64_t extent) const;

  const Windows windows_;
  const bool has_products_;
  std::map<ExtentRole, std::set<int64_t>> extents_;
  std::map<std::pair<ExtentRole, int64_t>, std::string> texts_;
  std::vector<Symbol> symbols_;
  bool is_named_ = false;
};

}  // namespace gopt::driver
