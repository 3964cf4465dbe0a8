// Element types, tensor types (extents may be symbolic, the shape may be unknown) and tensor data. Data is immutable
// and shared: owned bytes, or a region of a mapped file that is never copied. See graph.h next.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gopt/index.h"
#include "gopt/result.h"

namespace gopt {

// The numbering is ONNX's TensorProto.DataType.
enum class ElementType : int {
  Undefined = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
};

std::string to_string(ElementType type);                               // "f32", "i64", "bool", ...
std::optional<ElementType> parse_element_type(std::string_view text);  // the inverse
size_t size_bytes(ElementType type);  // 0 for types without a fixed whole-byte size (strings, 4-bit)
bool is_floating(ElementType type);
bool is_half(ElementType type);     // float16 and bfloat16
bool is_integer(ElementType type);  // signed or unsigned, not bool
// True for the types that the interpreter evaluates: floats of 16 bits or more, integers of 8 bits or more, bool.
bool is_computable(ElementType type);

using Shape = std::vector<Index>;

struct TensorType {
  ElementType element = ElementType::Undefined;
  std::optional<Shape> shape;  // nothing: rank unknown

  bool has_static_shape() const;
  std::vector<int64_t> static_shape() const;  // precondition: has_static_shape()
  friend bool operator==(const TensorType&, const TensorType&) = default;
};

std::string to_string(const Shape& shape);             // "[1,3,h,w]"
std::string to_string(const TensorType& type);         // "f32[1,3,h,w]", "f32[?]" where the rank is unknown
int64_t element_count(std::span<const int64_t> dims);  // throws std::overflow_error above 2^59

// Bytes that somebody keeps alive: a vector, a string moved out of a message, or a mapped file.
struct Storage {
  std::shared_ptr<const void> owner;
  std::span<const std::byte> bytes;
  bool is_mapped = false;  // a file's, which can be read again
};

class Tensor {
 public:
  Tensor() = default;
  // Precondition: bytes.size() is the size that type and dims ask for (callers that read files check it first).
  Tensor(ElementType type, std::vector<int64_t> dims, Storage storage);
  static Tensor from_bytes(ElementType type, std::vector<int64_t> dims, std::vector<std::byte> bytes);
  template <class T>
  static Tensor from_values(ElementType type, std::vector<int64_t> dims, const std::vector<T>& values);
  static Tensor scalar_f32(float value);
  static Tensor vector_i64(const std::vector<int64_t>& values);
  // Strings: one std::string an element, kept as they are.
  static Tensor from_strings(std::vector<int64_t> dims, std::vector<std::string> values);

  ElementType type() const { return type_; }
  const std::vector<int64_t>& dims() const { return dims_; }
  int64_t count() const { return element_count(dims_); }
  std::span<const std::byte> bytes() const { return storage_.bytes; }
  bool is_mapped() const { return storage_.is_mapped; }
  const std::shared_ptr<const std::vector<std::string>>& strings() const { return strings_; }
  TensorType tensor_type() const;

  // Elements converted to double / int64. Precondition: is_computable(type()).
  std::vector<double> to_doubles() const;
  std::vector<int64_t> to_ints() const;

  // Equal ids mean equal contents: a content hash for small tensors, else the identity of the bytes.
  uint64_t content_id() const { return content_id_; }
  Tensor reshaped(std::vector<int64_t> dims) const;  // same bytes; precondition: same count

 private:
  ElementType type_ = ElementType::Undefined;
  std::vector<int64_t> dims_;
  Storage storage_;
  std::shared_ptr<const std::vector<std::string>> strings_;
  uint64_t content_id_ = 0;
};

// Memory that holds what a mapped file has anyway is given back; it is read again where it is looked at again. Of other
// tensors, and of small ones, nothing.
void let_go(const Tensor& tensor);

// One element from / to memory, with ONNX's conversions (float16 and bfloat16 round to nearest even).
double load_double(const std::byte* data, ElementType type, int64_t position);
int64_t load_int(const std::byte* data, ElementType type, int64_t position);
void store_double(std::byte* data, ElementType type, int64_t position, double value);
void store_int(std::byte* data, ElementType type, int64_t position, int64_t value);

template <class T>
Tensor Tensor::from_values(ElementType type, std::vector<int64_t> dims, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * size_bytes(type));
  for (size_t i = 0; i < values.size(); i++) {
    if constexpr (std::is_floating_point_v<T>)
      store_double(bytes.data(), type, static_cast<int64_t>(i), values[i]);
    else
      store_int(bytes.data(), type, static_cast<int64_t>(i), static_cast<int64_t>(values[i]));
  }
  return from_bytes(type, std::move(dims), std::move(bytes));
}

}  // namespace gopt
