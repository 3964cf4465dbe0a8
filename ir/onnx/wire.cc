#include "wire.h"

namespace gopt::ir {

std::optional<uint64_t> WireReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70 && at_ < bytes_.size(); shift += 7) {
    const auto byte = static_cast<uint8_t>(bytes_[at_++]);
    if (shift < 64) value |= static_cast<uint64_t>(byte & 127) << shift;
    if (byte < 128) return value;
  }
  return std::nullopt;
}

Result<std::optional<WireField>> WireReader::next() {
  if (at_ == bytes_.size()) return std::optional<WireField>();
  const size_t start = at_;
  const std::string where = "the field at byte " + std::to_string(position());
  const auto tag = varint();
  if (!tag) return Error{where + " is cut off"};
  const auto number = *tag >> 3;
  if (number == 0 || number > 536870911) return Error{where + " has no valid number"};
  uint64_t size = 0;
  switch (*tag & 7) {
    case 0: {
      const size_t before = at_;
      if (!varint()) return Error{where + " is cut off"};
      size = at_ - before;
      at_ = before;
      break;
    }
    case 1: size = 8; break;
    case 2: {
      const auto length = varint();
      if (!length) return Error{where + " is cut off"};
      size = *length;
      break;
    }
    case 5: size = 4; break;
    default: return Error{where + " has no valid type"};
  }
  const size_t left = bytes_.size() - at_;
  if (size > left)
    return Error{where + " takes " + std::to_string(size) + " bytes, " + std::to_string(left) + " are left"};
  const WireField field{static_cast<int>(number), static_cast<WireType>(*tag & 7),
                        bytes_.subspan(start, at_ - start + size), bytes_.subspan(at_, size)};
  at_ += size;
  return std::optional<WireField>(field);
}

}  // namespace gopt::ir
