#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <atomic>

#include "gopt/type.h"

namespace gopt {
namespace {

constexpr size_t kHashContentBelow =
    64 * 1024;  // larger tensors are identified by where their bytes are: they are not read

uint64_t identity_of(ElementType type, const std::vector<int64_t>& dims, std::span<const std::byte> bytes) {
  uint64_t seed = XXH3_64bits(dims.data(), dims.size() * sizeof(int64_t)) + static_cast<uint64_t>(type);
  if (bytes.size() <= kHashContentBelow) return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
  const std::byte* place = bytes.data();
  return XXH3_64bits_withSeed(&place, sizeof place, seed ^ 0x5bd1e9955bd1e995ULL);
}

}  // namespace

Tensor::Tensor(ElementType type, std::vector<int64_t> dims, Storage storage)
    : type_(type), dims_(std::move(dims)), storage_(std::move(storage)) {
  GOPT_CHECK(storage_.bytes.size() == static_cast<size_t>(element_count(dims_)) * gopt::size_bytes(type) ||
                 type == ElementType::UInt4 || type == ElementType::Int4,
             "tensor bytes do not match its shape");
  content_id_ = identity_of(type_, dims_, storage_.bytes);
}

Tensor Tensor::from_bytes(ElementType type, std::vector<int64_t> dims, std::vector<std::byte> bytes) {
  auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
  const std::span<const std::byte> view(*owner);
  return Tensor(type, std::move(dims), Storage{owner, view});
}
Tensor Tensor::scalar_f32(float value) { return from_values<double>(ElementType::Float32, {}, {value}); }
Tensor Tensor::vector_i64(const std::vector<int64_t>& values) {
  return from_values<int64_t>(ElementType::Int64, {static_cast<int64_t>(values.size())}, values);
}
Tensor Tensor::from_strings(std::vector<int64_t> dims, std::vector<std::string> values) {
  static std::atomic<uint64_t> count{0};
  Tensor t;
  t.type_ = ElementType::String;
  t.dims_ = std::move(dims);
  t.strings_ = std::make_shared<const std::vector<std::string>>(std::move(values));
  t.content_id_ = 0xabcdef0000000000ULL + count++;  // strings are never computed with; each tensor is its own
  return t;
}

TensorType Tensor::tensor_type() const { return TensorType{type_, Shape(dims_.begin(), dims_.end())}; }

std::vector<double> Tensor::to_doubles() const {
  std::vector<double> values(static_cast<size_t>(count()));
  for (size_t i = 0; i < values.size(); i++) values[i] = load_double(bytes().data(), type_, static_cast<int64_t>(i));
  return values;
}
std::vector<int64_t> Tensor::to_ints() const {
  std::vector<int64_t> values(static_cast<size_t>(count()));
  for (size_t i = 0; i < values.size(); i++) values[i] = load_int(bytes().data(), type_, static_cast<int64_t>(i));
  return values;
}

Tensor Tensor::reshaped(std::vector<int64_t> dims) const {
  GOPT_CHECK(element_count(dims) == count(), "reshaped to another number of elements");
  Tensor t = *this;
  t.dims_ = std::move(dims);
  t.content_id_ = identity_of(t.type_, t.dims_, t.storage_.bytes);
  return t;
}

void let_go(const Tensor& tensor) {
  constexpr size_t kWorthIt = 64 * 1024;
  const std::span<const std::byte> bytes = tensor.bytes();
  if (!tensor.is_mapped() || bytes.size() < kWorthIt) return;
  static const auto kPage = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  // Pages that it shares with others are of the same file.
  const auto first = reinterpret_cast<uintptr_t>(bytes.data()) / kPage * kPage;
  const auto end = reinterpret_cast<uintptr_t>(bytes.data() + bytes.size());
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);  // where it fails, they stay
}

}  // namespace gopt
