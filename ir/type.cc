#include "gopt/type.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace gopt {
namespace {

struct TypeInfo {
  ElementType type;
  std::string_view text;
  size_t bytes;
};
constexpr std::array<TypeInfo, 23> kTypes = {{
    {ElementType::Undefined, "undefined", 0},
    {ElementType::Float32, "f32", 4},
    {ElementType::UInt8, "u8", 1},
    {ElementType::Int8, "i8", 1},
    {ElementType::UInt16, "u16", 2},
    {ElementType::Int16, "i16", 2},
    {ElementType::Int32, "i32", 4},
    {ElementType::Int64, "i64", 8},
    {ElementType::String, "string", 0},
    {ElementType::Bool, "bool", 1},
    {ElementType::Float16, "f16", 2},
    {ElementType::Float64, "f64", 8},
    {ElementType::UInt32, "u32", 4},
    {ElementType::UInt64, "u64", 8},
    {ElementType::Complex64, "c64", 8},
    {ElementType::Complex128, "c128", 16},
    {ElementType::BFloat16, "bf16", 2},
    {ElementType::Float8E4M3FN, "f8e4m3fn", 1},
    {ElementType::Float8E4M3FNUZ, "f8e4m3fnuz", 1},
    {ElementType::Float8E5M2, "f8e5m2", 1},
    {ElementType::Float8E5M2FNUZ, "f8e5m2fnuz", 1},
    {ElementType::UInt4, "u4", 0},
    {ElementType::Int4, "i4", 0},
}};

double half_to_double(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double value;
  if (exponent == 31) {
    value = mantissa ? std::nan("") : INFINITY;
  } else {
    value = exponent ? std::ldexp(1024 + mantissa, exponent - 25) : std::ldexp(mantissa, -24);
  }
  return bits & 0x8000 ? -value : value;
}

// A 16-bit float format, and the bits of a value rounded to it once, to nearest even; overflow becomes infinity.
struct NarrowFloat {
  int mantissa_bits, exponent_bits;
};
constexpr NarrowFloat kHalf{10, 5}, kBrain{7, 8};

uint16_t double_to_narrow(double value, NarrowFloat format) {
  const uint32_t sign = std::signbit(value) ? 0x8000 : 0;
  const uint32_t infinity = ((1U << format.exponent_bits) - 1) << format.mantissa_bits,
                 hidden = 1U << format.mantissa_bits;
  const double magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<uint16_t>(infinity | hidden >> 1);
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  if (magnitude == 0) return static_cast<uint16_t>(sign);
  // By its bits, where frexp and ldexp would take most of the time of writing a model's weights: that of the power of
  // two above it (of a subnormal double too large, which is smaller than all units).
  constexpr int kMantissa = std::numeric_limits<double>::digits - 1,
                kBias = std::numeric_limits<double>::max_exponent - 1;
  const int exponent = static_cast<int>(std::bit_cast<uint64_t>(magnitude) >> kMantissa) - kBias + 1;
  const int smallest = 2 - (1 << (format.exponent_bits - 1)) - format.mantissa_bits;  // of the subnormals' unit
  const int scale = std::max(exponent - format.mantissa_bits - 1, smallest);
  const auto unit = std::bit_cast<double>(static_cast<uint64_t>(kBias - scale) << kMantissa);  // 2^-scale
  constexpr double kToWhole = 1 / std::numeric_limits<double>::epsilon();  // added to what is far below it, rounds
  const auto units = static_cast<uint32_t>(magnitude * unit + kToWhole - kToWhole);
  // A mantissa that was rounded up to the next power of two carries into the exponent by itself.
  const uint32_t bits = (static_cast<uint32_t>(scale - smallest) << format.mantissa_bits) + units;
  return static_cast<uint16_t>(sign | std::min(bits, infinity));
}

template <class T>
T load_as(const std::byte* data, int64_t position) {
  T value;
  std::memcpy(&value, data + position * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}
template <class T>
void store_as(std::byte* data, int64_t position, T value) {
  std::memcpy(data + position * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// Calls visit(T{}) with the C++ type of a plain numeric element type; false for the others.
template <class F>
bool visit_plain(ElementType type, const F& visit) {
  switch (type) {
    case ElementType::Float32: visit(float{}); return true;
    case ElementType::Float64: visit(double{}); return true;
    case ElementType::Int8: visit(int8_t{}); return true;
    case ElementType::Int16: visit(int16_t{}); return true;
    case ElementType::Int32: visit(int32_t{}); return true;
    case ElementType::Int64: visit(int64_t{}); return true;
    case ElementType::UInt8:
    case ElementType::Bool: visit(uint8_t{}); return true;
    case ElementType::UInt16: visit(uint16_t{}); return true;
    case ElementType::UInt32: visit(uint32_t{}); return true;
    case ElementType::UInt64: visit(uint64_t{}); return true;
    default: return false;
  }
}

// Conversion of a double to an integer type that wraps as ONNX Runtime's casts do and is never undefined.
template <class T>
T to_integral(double value) {
  if (std::isnan(value)) return T(0);
  if constexpr (std::is_same_v<T, uint64_t>) {
    if (value >= 18446744073709551616.0) return ~T(0);
    if (value >= 9223372036854775808.0) return static_cast<uint64_t>(value);
  }
  if (value >= 9223372036854775808.0) return static_cast<T>(INT64_MAX);
  if (value < -9223372036854775808.0) return static_cast<T>(INT64_MIN);
  return static_cast<T>(static_cast<int64_t>(value));
}

}  // namespace

std::string to_string(ElementType type) {
  const auto i = static_cast<size_t>(type);
  return i < kTypes.size() ? std::string(kTypes[i].text) : "type" + std::to_string(i);
}
std::optional<ElementType> parse_element_type(std::string_view text) {
  for (const TypeInfo& info : kTypes)
    if (info.text == text) return info.type;
  return std::nullopt;
}
size_t size_bytes(ElementType type) {
  const auto i = static_cast<size_t>(type);
  return i < kTypes.size() ? kTypes[i].bytes : 0;
}
bool is_half(ElementType type) { return type == ElementType::Float16 || type == ElementType::BFloat16; }
bool is_floating(ElementType type) {
  return type == ElementType::Float32 || type == ElementType::Float64 || type == ElementType::Float16 ||
         type == ElementType::BFloat16;
}
bool is_integer(ElementType type) {
  return type != ElementType::Bool && !is_floating(type) && visit_plain(type, [](auto) {});
}
bool is_computable(ElementType type) {
  return is_floating(type) || visit_plain(type, [](auto) {});
}

bool TensorType::has_static_shape() const {
  if (!shape) return false;
  for (const Index& extent : *shape)
    if (!extent.is_constant()) return false;
  return true;
}
std::vector<int64_t> TensorType::static_shape() const {
  GOPT_CHECK(has_static_shape(), "static_shape of " + to_string(*this));
  std::vector<int64_t> dims;
  for (const Index& extent : *shape) dims.push_back(extent.constant());
  return dims;
}

std::string to_string(const Shape& shape) {
  std::string s = "[";
  for (size_t i = 0; i < shape.size(); i++) s += (i ? "," : "") + to_string(shape[i]);
  return s + "]";
}
std::string to_string(const TensorType& type) {
  return to_string(type.element) + (type.shape ? to_string(*type.shape) : "[?]");
}
int64_t element_count(std::span<const int64_t> dims) {
  constexpr int64_t kMost = int64_t{1} << 59;  // so that their bytes, sixteen each at most, are a number, too
  int64_t count = 1;
  for (int64_t d : dims)
    if (__builtin_mul_overflow(count, d, &count) || count > kMost)
      throw std::overflow_error("a tensor has more than 2^59 elements");
  return count;
}

double load_double(const std::byte* data, ElementType type, int64_t position) {
  double value = 0;
  if (visit_plain(type, [&]<class T>(T) { value = static_cast<double>(load_as<T>(data, position)); })) return value;
  if (type == ElementType::Float16) return half_to_double(load_as<uint16_t>(data, position));
  if (type == ElementType::BFloat16)
    return std::bit_cast<float>(static_cast<uint32_t>(load_as<uint16_t>(data, position)) << 16);
  GOPT_CHECK(false, "load_double of " + to_string(type));
}
int64_t load_int(const std::byte* data, ElementType type, int64_t position) {
  int64_t value = 0;
  const bool plain = visit_plain(type, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>)
      value = to_integral<int64_t>(load_as<T>(data, position));
    else
      value = static_cast<int64_t>(load_as<T>(data, position));
  });
  return plain ? value : to_integral<int64_t>(load_double(data, type, position));
}
void store_double(std::byte* data, ElementType type, int64_t position, double value) {
  if (type == ElementType::Bool) return store_as<uint8_t>(data, position, value != 0);
  const bool plain = visit_plain(type, [&]<class T>(T) {
    if constexpr (std::is_floating_point_v<T>)
      store_as<T>(data, position, static_cast<T>(value));
    else
      store_as<T>(data, position, to_integral<T>(value));
  });
  if (plain) return;
  if (type == ElementType::Float16) return store_as<uint16_t>(data, position, double_to_narrow(value, kHalf));
  if (type == ElementType::BFloat16) return store_as<uint16_t>(data, position, double_to_narrow(value, kBrain));
  GOPT_CHECK(false, "store_double of " + to_string(type));
}
void store_int(std::byte* data, ElementType type, int64_t position, int64_t value) {
  if (type == ElementType::Bool) return store_as<uint8_t>(data, position, value != 0);
  const bool plain = visit_plain(type, [&]<class T>(T) { store_as<T>(data, position, static_cast<T>(value)); });
  if (!plain) store_double(data, type, position, static_cast<double>(value));
}

}  // namespace gopt
