// Protobuf's wire format read in place, so that a large tensor in a model file can be left where it is instead of being
// copied into a message. Only what splitting a message into its fields takes; the fields are parsed by the message
// classes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "gopt/result.h"

namespace gopt::ir {

using Bytes = std::span<const std::byte>;

enum class WireType { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };

struct WireField {
  int number = 0;
  WireType type = WireType::Varint;
  Bytes whole;    // with its tag
  Bytes payload;  // without tag and length
};

class WireReader {
 public:
  // `origin`: the position of `bytes` in the file, for errors.
  explicit WireReader(Bytes bytes, size_t origin = 0) : bytes_(bytes), origin_(origin) {}
  // The next field, nothing at the end. Errors: bytes that are no field, or that end within it, with the position.
  Result<std::optional<WireField>> next();

 private:
  std::optional<uint64_t> varint();
  size_t position() const { return origin_ + at_; }

  Bytes bytes_;
  size_t origin_;
  size_t at_ = 0;
};

inline void append(std::string& text, Bytes bytes) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

}  // namespace gopt::ir
