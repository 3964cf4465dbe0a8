#include "tensor_proto.h"

#include <charconv>
#include <cstring>

namespace gopt::ir {
namespace {

struct ExternalRegion {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

Result<uint64_t> parse_position(const std::string& key, const std::string& text) {
  int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size())
    return Error{"external data: " + key + " '" + text + "' is no number"};
  if (value < 0) return Error{"external data: " + key + " " + text + " is negative"};
  return static_cast<uint64_t>(value);
}

Result<ExternalRegion> parse_region(const onnx::TensorProto& proto) {
  ExternalRegion region;
  for (const auto& entry : proto.external_data()) {
    if (entry.key() == "location") region.location = entry.value();
    if (entry.key() == "offset") {
      GOPT_ASSIGN_OR_RETURN(region.offset, parse_position("offset", entry.value()));
    }
    if (entry.key() == "length") {
      GOPT_ASSIGN_OR_RETURN(region.length, parse_position("length", entry.value()));
    }
  }
  return region;
}

std::string dims_text(std::span<const int64_t> dims) {
  std::string text = "[";
  for (size_t axis = 0; axis < dims.size(); axis++) text += (axis ? "," : "") + std::to_string(dims[axis]);
  return text + "]";
}

Result<Storage> map_external(const onnx::TensorProto& proto, size_t expected, ExternalFiles& files) {
  GOPT_ASSIGN_OR_RETURN(const ExternalRegion region, parse_region(proto));
  if (region.length && *region.length != expected)
    return Error{"external data '" + region.location + "' gives it " + std::to_string(*region.length) +
                 " bytes, its dims ask for " + std::to_string(expected)};
  GOPT_ASSIGN_OR_RETURN(const auto file, files.open(region.location));
  const size_t size = file->bytes().size();
  if (region.offset > size || expected > size - region.offset)
    return Error{"external data '" + region.location + "' is too short: " + std::to_string(expected) +
                 " bytes are wanted at " + std::to_string(region.offset) + ", the file has " + std::to_string(size)};
  return Storage{file, file->bytes().subspan(region.offset, expected), true};
}

Storage own_string(std::string* text) {
  const auto owner = std::shared_ptr<const std::string>(text);
  return Storage{owner, std::as_bytes(std::span(owner->data(), owner->size()))};
}

template <class T, class Field>
std::vector<std::byte> pack(const Field& field) {
  std::vector<std::byte> bytes(static_cast<size_t>(field.size()) * sizeof(T));
  for (int i = 0; i < field.size(); i++) {
    const T value = static_cast<T>(field.Get(i));
    std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  return bytes;
}

std::vector<std::byte> pack_typed(const onnx::TensorProto& proto, ElementType type) {
  switch (type) {
    case ElementType::Float32:
    case ElementType::Complex64: return pack<float>(proto.float_data());
    case ElementType::Float64:
    case ElementType::Complex128: return pack<double>(proto.double_data());
    case ElementType::Int64: return pack<int64_t>(proto.int64_data());
    case ElementType::UInt64: return pack<uint64_t>(proto.uint64_data());
    case ElementType::UInt32: return pack<uint32_t>(proto.uint64_data());
    case ElementType::Int32: return pack<int32_t>(proto.int32_data());
    case ElementType::UInt16:
    case ElementType::Int16:
    case ElementType::Float16:
    case ElementType::BFloat16: return pack<uint16_t>(proto.int32_data());
    default: return pack<uint8_t>(proto.int32_data());
  }
}

Result<Tensor> take_strings(onnx::TensorProto& proto, std::vector<int64_t> dims, int64_t count) {
  if (proto.string_data_size() != count)
    return Error{"holds " + std::to_string(proto.string_data_size()) + " strings, its dims " + dims_text(dims) +
                 " ask for " + std::to_string(count)};
  std::vector<std::string> values;
  for (std::string& value : *proto.mutable_string_data()) values.push_back(std::move(value));
  return Tensor::from_strings(std::move(dims), std::move(values));
}

constexpr size_t kMostSparseBytes = size_t{1} << 31;

// Where each value goes, by indices that are counted flat or by axis. `dims`: not too many to count.
Result<std::vector<size_t>> sparse_positions(const Tensor& indices, const std::vector<int64_t>& dims, size_t count) {
  const std::vector<int64_t> given = indices.to_ints();
  const bool is_flat = indices.dims().size() != 2;
  const size_t columns = is_flat ? 1 : dims.size();
  int64_t elements = 1;
  for (const int64_t extent : dims) elements *= extent;
  std::vector<size_t> positions;
  for (size_t i = 0; i < count; i++) {
    int64_t position = 0;
    for (size_t axis = 0; axis < columns; axis++) {
      const int64_t extent = is_flat ? elements : dims[axis], index = given[i * columns + axis];
      if (index < 0 || index >= extent) return Error{"is sparse, with an index out of range"};
      position = position * extent + index;
    }
    positions.push_back(static_cast<size_t>(position));
  }
  return positions;
}

}  // namespace

std::optional<size_t> tensor_bytes(ElementType type, std::span<const int64_t> dims) {
  size_t count = 1;
  for (const int64_t extent : dims)
    if (extent < 0 || __builtin_mul_overflow(count, static_cast<size_t>(extent), &count)) return std::nullopt;
  if (type == ElementType::UInt4 || type == ElementType::Int4) return (count + 1) / 2;
  size_t bytes = 0;
  if (size_bytes(type) == 0 || __builtin_mul_overflow(count, size_bytes(type), &bytes)) return std::nullopt;
  if (bytes > size_t{1} << 62) return std::nullopt;
  return bytes;
}

Result<Tensor> take_tensor(TensorSource& source, ExternalFiles& files) {
  onnx::TensorProto& proto = source.proto;
  const auto type = static_cast<ElementType>(proto.data_type());
  std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  if (proto.has_segment()) return Error{"is stored in segments, which no version of ONNX defines"};
  int64_t count = 1;
  for (const int64_t extent : dims) {
    if (extent < 0) return Error{"has a negative extent in its dims " + dims_text(dims)};
    if (__builtin_mul_overflow(count, extent, &count)) return Error{"has dims too large to count: " + dims_text(dims)};
  }
  if (type == ElementType::String) return take_strings(proto, std::move(dims), count);
  const auto expected = tensor_bytes(type, dims);
  if (!expected) return Error{"has element type " + to_string(type) + ", which is not known here"};
  if (proto.data_location() == onnx::TensorProto::EXTERNAL) {
    GOPT_ASSIGN_OR_RETURN(Storage storage, map_external(proto, *expected, files));
    return Tensor(type, std::move(dims), std::move(storage));
  }
  Storage storage;
  if (source.raw) {
    storage = *std::exchange(source.raw, std::nullopt);
  } else if (proto.has_raw_data()) {
    storage = own_string(proto.release_raw_data());
  } else {
    const auto owner = std::make_shared<const std::vector<std::byte>>(pack_typed(proto, type));
    storage = Storage{owner, *owner};
  }
  if (storage.bytes.size() != *expected)
    return Error{"holds " + std::to_string(storage.bytes.size()) + " bytes, its dims " + dims_text(dims) + " of " +
                 to_string(type) + " ask for " + std::to_string(*expected)};
  return Tensor(type, std::move(dims), std::move(storage));
}

Result<Tensor> take_sparse_tensor(onnx::SparseTensorProto& proto, ExternalFiles& files) {
  TensorSource values_source{std::move(*proto.mutable_values()), {}};
  TensorSource indices_source{std::move(*proto.mutable_indices()), {}};
  GOPT_ASSIGN_OR_RETURN(const Tensor values, take_tensor(values_source, files));
  GOPT_ASSIGN_OR_RETURN(const Tensor indices, take_tensor(indices_source, files));
  const std::vector<int64_t> dims(proto.dims().begin(), proto.dims().end());
  const auto total = tensor_bytes(values.type(), dims);
  const size_t width = size_bytes(values.type());
  if (!total || width == 0) return Error{"is sparse, of an element type that has no zeros here"};
  const auto count = static_cast<size_t>(values.count());
  const size_t columns = indices.dims().size() == 2 ? static_cast<size_t>(indices.dims()[1]) : 1;
  const bool fits = indices.type() == ElementType::Int64 && static_cast<size_t>(indices.count()) == count * columns &&
                    (indices.dims().size() < 2 || columns == dims.size());
  if (!fits) return Error{"is sparse, with indices that do not fit its values"};
  if (*total > kMostSparseBytes)
    return Error{"is sparse, and asks for " + std::to_string(*total) + " bytes; more than 2 GiB are not filled in"};
  GOPT_ASSIGN_OR_RETURN(const std::vector<size_t> positions, sparse_positions(indices, dims, count));
  std::vector<std::byte> bytes(*total);
  for (size_t i = 0; i < count; i++)
    std::memcpy(bytes.data() + positions[i] * width, values.bytes().data() + i * width, width);
  return Tensor::from_bytes(values.type(), dims, std::move(bytes));
}

onnx::TensorProto tensor_header(const Tensor& tensor, const std::string& name) {
  onnx::TensorProto proto;
  proto.set_name(name);
  proto.set_data_type(static_cast<int>(tensor.type()));
  for (const int64_t extent : tensor.dims()) proto.add_dims(extent);
  return proto;
}

onnx::TensorProto tensor_message(const Tensor& tensor, const std::string& name) {
  onnx::TensorProto proto = tensor_header(tensor, name);
  if (tensor.strings()) {
    for (const std::string& value : *tensor.strings()) proto.add_string_data(value);
  } else {
    proto.set_raw_data(tensor.bytes().data(), tensor.bytes().size());
  }
  return proto;
}

}  // namespace gopt::ir
