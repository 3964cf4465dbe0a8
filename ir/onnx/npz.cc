// NumPy's .npz: a zip file of .npy entries. Formats: PKWARE's APPNOTE and numpy.lib.format.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "gopt/onnx.h"
#include "mapped_file.h"
#include "stream.h"
#include "tensor_proto.h"

namespace gopt::ir {
namespace {

using Text = std::string_view;

constexpr uint32_t kLocalHeader = 0x04034b50, kCentralHeader = 0x02014b50, kEnd = 0x06054b50;
constexpr uint32_t kEnd64 = 0x06064b50, kEnd64Locator = 0x07064b50;
constexpr uint64_t kLargestStored = 0xffffffff;

struct NumpyType {
  ElementType type;
  const char* text;  // kind and size
};
constexpr NumpyType kNumpyTypes[] = {
    {ElementType::Float32, "f4"}, {ElementType::Float64, "f8"}, {ElementType::Float16, "f2"},
    {ElementType::Int8, "i1"},    {ElementType::Int16, "i2"},   {ElementType::Int32, "i4"},
    {ElementType::Int64, "i8"},   {ElementType::UInt8, "u1"},   {ElementType::UInt16, "u2"},
    {ElementType::UInt32, "u4"},  {ElementType::UInt64, "u8"},  {ElementType::Bool, "b1"},
};

template <class T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
// A little-endian number at `at`. Precondition: it lies within the text.
template <class T>
T get(Text text, size_t at) {
  T value;
  std::memcpy(&value, text.data() + at, sizeof value);
  return value;
}

// ---- .npy ----

Result<std::string> npy_header(const std::string& name, const Tensor& tensor) {
  const auto* type = std::find_if(std::begin(kNumpyTypes), std::end(kNumpyTypes),
                                  [&](const NumpyType& row) { return row.type == tensor.type(); });
  if (type == std::end(kNumpyTypes))
    return Error{"tensor '" + name + "' has elements of " + to_string(tensor.type()) + ", which NumPy lacks"};
  std::string shape;
  for (const int64_t extent : tensor.dims()) shape += std::to_string(extent) + ", ";
  if (tensor.dims().size() > 1) shape.resize(shape.size() - 2);
  if (tensor.dims().size() == 1) shape.pop_back();
  const std::string order = size_bytes(tensor.type()) == 1 ? "|" : "<";
  std::string header = "{'descr': '" + order + type->text + "', 'fortran_order': False, 'shape': (" + shape + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  put(out, static_cast<uint16_t>(header.size()));
  return out + header;
}

struct NpyHeader {
  ElementType type = ElementType::Undefined;
  bool big_endian = false, fortran_order = false;
  std::vector<int64_t> dims;
  size_t size = 0;  // where the data start
};

// What follows 'key': in the header's dictionary.
std::optional<Text> entry(Text header, const std::string& key) {
  const size_t at = header.find("'" + key + "'");
  if (at == Text::npos) return std::nullopt;
  const size_t colon = header.find(':', at);
  if (colon == Text::npos) return std::nullopt;
  const size_t value = header.find_first_not_of(' ', colon + 1);
  return value == Text::npos ? std::nullopt : std::optional(header.substr(value));
}

std::optional<std::vector<int64_t>> parse_shape(Text text) {
  std::vector<int64_t> dims;
  if (text.empty() || text[0] != '(') return std::nullopt;
  for (size_t i = 1; i < text.size() && text[i] != ')';) {
    if (text[i] == ' ' || text[i] == ',') {
      i++;
      continue;
    }
    int64_t extent = 0;
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; i++) {
      if (extent > (int64_t{1} << 55)) return std::nullopt;
      extent = extent * 10 + (text[i] - '0');
    }
    dims.push_back(extent);
  }
  return dims;
}

Result<NpyHeader> parse_npy_header(Text text) {
  const Error damaged{"is no .npy array"};
  if (text.size() < 12 || text.substr(0, 6) != Text("\x93NUMPY", 6)) return damaged;
  const bool wide = text[6] >= 2;
  const size_t start = wide ? 12 : 10;
  const size_t length = wide ? get<uint32_t>(text, 8) : get<uint16_t>(text, 8);
  if (length > text.size() - start) return damaged;
  const Text header = text.substr(start, length);
  const auto type = entry(header, "descr"), order = entry(header, "fortran_order"), shape = entry(header, "shape");
  if (!type || !order || !shape || type->size() < 5) return damaged;
  NpyHeader result;
  result.size = start + length;
  result.big_endian = (*type)[1] == '>';
  result.fortran_order = order->substr(0, 4) == "True";
  for (const NumpyType& row : kNumpyTypes)
    if (type->substr(2, 2) == row.text && (*type)[4] == (*type)[0]) result.type = row.type;
  if (result.type == ElementType::Undefined)
    return Error{"has elements of a type that is not known here: " + std::string(type->substr(0, 12))};
  const auto dims = parse_shape(*shape);
  if (!dims) return damaged;
  result.dims = *dims;
  return result;
}

void swap_bytes(std::vector<std::byte>& bytes, size_t width) {
  for (size_t i = 0; i + width <= bytes.size(); i += width)
    std::reverse(bytes.begin() + static_cast<int64_t>(i), bytes.begin() + static_cast<int64_t>(i + width));
}

// From the first axis running fastest to the last.
std::vector<std::byte> to_row_major(const std::vector<std::byte>& bytes, const std::vector<int64_t>& dims,
                                    size_t width) {
  std::vector<std::byte> out(bytes.size());
  std::vector<int64_t> position(dims.size());
  for (size_t i = 0; i < bytes.size() / width; i++) {
    size_t from = 0;
    for (size_t axis = dims.size(); axis-- > 0;)
      from = from * static_cast<size_t>(dims[axis]) + static_cast<size_t>(position[axis]);
    std::memcpy(out.data() + i * width, bytes.data() + from * width, width);
    for (size_t axis = dims.size(); axis-- > 0 && ++position[axis] == dims[axis];) position[axis] = 0;
  }
  return out;
}

Result<Tensor> parse_npy(Text text) {
  GOPT_ASSIGN_OR_RETURN(NpyHeader header, parse_npy_header(text));
  const auto expected = tensor_bytes(header.type, header.dims);
  if (!expected || text.size() - header.size != *expected)
    return Error{"does not hold as many bytes as its shape asks for"};
  const auto* data = reinterpret_cast<const std::byte*>(text.data()) + header.size;
  std::vector<std::byte> bytes(data, data + *expected);
  const size_t width = size_bytes(header.type);
  if (header.big_endian) swap_bytes(bytes, width);
  if (header.fortran_order && header.dims.size() > 1) bytes = to_row_major(bytes, header.dims, width);
  return Tensor::from_bytes(header.type, std::move(header.dims), std::move(bytes));
}

// ---- zip ----

struct ZipEntry {
  std::string name;
  int method = 0;
  uint64_t packed = 0, size = 0, offset = 0;
};

// Sizes and offset of entries above 4 GiB stand in an extra field, in this order, where the header says all ones.
void read_zip64_extra(Text extra, ZipEntry& entry) {
  for (size_t at = 0; at + 4 <= extra.size();) {
    const size_t length = get<uint16_t>(extra, at + 2);
    if (get<uint16_t>(extra, at) == 1) {
      Text rest = extra.substr(at + 4, length);
      for (uint64_t* field : {&entry.size, &entry.packed, &entry.offset}) {
        if (*field != kLargestStored || rest.size() < 8) continue;
        *field = get<uint64_t>(rest, 0);
        rest.remove_prefix(8);
      }
    }
    at += 4 + length;
  }
}

// Where the central directory starts and how many entries it has.
std::optional<std::pair<uint64_t, uint64_t>> find_directory(Text zip) {
  if (zip.size() < 22) return std::nullopt;
  const size_t lowest = zip.size() - std::min<size_t>(zip.size(), 22 + 65535);
  for (size_t at = zip.size() - 22 + 1; at-- > lowest;) {
    if (get<uint32_t>(zip, at) != kEnd) continue;
    uint64_t count = get<uint16_t>(zip, at + 10), offset = get<uint32_t>(zip, at + 16);
    if (at >= 20 && get<uint32_t>(zip, at - 20) == kEnd64Locator) {
      const uint64_t end64 = get<uint64_t>(zip, at - 12);
      if (end64 > zip.size() || zip.size() - end64 < 56 || get<uint32_t>(zip, end64) != kEnd64) return std::nullopt;
      count = get<uint64_t>(zip, end64 + 32);
      offset = get<uint64_t>(zip, end64 + 48);
    }
    return std::pair(offset, count);
  }
  return std::nullopt;
}

Result<std::vector<ZipEntry>> read_directory(Text zip) {
  const Error damaged{"is no .npz (zip) file, or is truncated"};
  const auto directory = find_directory(zip);
  if (!directory) return damaged;
  auto [at, count] = *directory;
  std::vector<ZipEntry> entries;
  for (uint64_t i = 0; i < count; i++) {
    if (at > zip.size() || zip.size() - at < 46 || get<uint32_t>(zip, at) != kCentralHeader) return damaged;
    const size_t name = get<uint16_t>(zip, at + 28), extra = get<uint16_t>(zip, at + 30),
                 comment = get<uint16_t>(zip, at + 32);
    if (zip.size() - at - 46 < name + extra + comment) return damaged;
    ZipEntry entry{std::string(zip.substr(at + 46, name)), get<uint16_t>(zip, at + 10), get<uint32_t>(zip, at + 20),
                   get<uint32_t>(zip, at + 24), get<uint32_t>(zip, at + 42)};
    read_zip64_extra(zip.substr(at + 46 + name, extra), entry);
    entries.push_back(std::move(entry));
    at += 46 + name + extra + comment;
  }
  return entries;
}

Result<std::string> inflate_entry(Text packed, uint64_t size) {
  if (size / 1100 > packed.size()) return Error{"is damaged: it cannot grow to the size it names"};
  std::string out(size, '\0');
  z_stream stream{};
  if (::inflateInit2(&stream, -MAX_WBITS) != Z_OK) return Error{"cannot be inflated"};
  size_t in_done = 0, out_done = 0;
  int state = Z_OK;
  constexpr size_t kChunk = std::numeric_limits<uInt>::max();
  while (state == Z_OK) {
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data() + in_done));
    stream.avail_in = static_cast<uInt>(std::min(packed.size() - in_done, kChunk));
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + out_done);
    stream.avail_out = static_cast<uInt>(std::min(out.size() - out_done, kChunk));
    const uInt in_before = stream.avail_in, out_before = stream.avail_out;
    state = ::inflate(&stream, Z_NO_FLUSH);
    in_done += in_before - stream.avail_in;
    out_done += out_before - stream.avail_out;
    if (in_before == stream.avail_in && out_before == stream.avail_out) break;
  }
  ::inflateEnd(&stream);
  if (state != Z_STREAM_END || out_done != size) return Error{"is damaged: it does not inflate to the size it names"};
  return out;
}

Result<Tensor> read_entry(Text zip, const ZipEntry& entry) {
  const Error damaged{"is truncated"};
  if (entry.offset > zip.size() || zip.size() - entry.offset < 30 || get<uint32_t>(zip, entry.offset) != kLocalHeader)
    return damaged;
  const uint64_t start =
      entry.offset + 30 + get<uint16_t>(zip, entry.offset + 26) + get<uint16_t>(zip, entry.offset + 28);
  if (start > zip.size() || zip.size() - start < entry.packed) return damaged;
  const Text packed = zip.substr(start, entry.packed);
  if (entry.method == 0) return parse_npy(packed);
  if (entry.method != 8)
    return Error{"is compressed by method " + std::to_string(entry.method) +
                 ", only stored and deflated ones are read"};
  GOPT_ASSIGN_OR_RETURN(const std::string data, inflate_entry(packed, entry.size));
  return parse_npy(data);
}

std::string local_header(const std::string& name, uint32_t crc, uint64_t size) {
  std::string out;
  put(out, kLocalHeader);
  put<uint16_t>(out, 20);
  put<uint16_t>(out, 0);  // flags
  put<uint16_t>(out, 0);  // stored
  put<uint16_t>(out, 0);  // time and date: those of the format's epoch, so that equal tensors give equal files
  put<uint16_t>(out, 0x21);
  put(out, crc);
  put(out, static_cast<uint32_t>(size));
  put(out, static_cast<uint32_t>(size));
  put(out, static_cast<uint16_t>(name.size()));
  put<uint16_t>(out, 0);
  return out + name;
}

std::string central_header(const std::string& local, uint64_t offset, const std::string& name) {
  std::string out;
  put(out, kCentralHeader);
  put<uint16_t>(out, 20);
  out += local.substr(4, 26);    // version to extra length, as in the local header
  out += std::string(10, '\0');  // comment length, disk, attributes
  put(out, static_cast<uint32_t>(offset));
  return out + name;
}

uint32_t checksum(uint32_t crc, const void* data, size_t size) {
  if (size == 0) return crc;  // zlib takes a null pointer for a request to start anew
  return static_cast<uint32_t>(::crc32_z(crc, static_cast<const Bytef*>(data), size));
}

}  // namespace

}  // namespace gopt::ir

namespace gopt {

using namespace ir;

Result<NamedTensors> read_npz(const std::string& path) {
  GOPT_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  const Text zip(reinterpret_cast<const char*>(file->bytes().data()), file->bytes().size());
  if (path.ends_with(".npy")) {
    auto tensor = parse_npy(zip);
    if (!tensor.ok()) return Error{path + ": " + tensor.error().message};
    return NamedTensors{{"", *std::move(tensor)}};
  }
  auto entries = read_directory(zip);
  if (!entries.ok()) return Error{path + ": " + entries.error().message};
  NamedTensors tensors;
  for (const ZipEntry& entry : *entries) {
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    auto tensor = read_entry(zip, entry);
    if (!tensor.ok()) return Error{path + ": entry '" + entry.name + "' " + tensor.error().message};
    tensors.emplace_back(std::move(name), *std::move(tensor));
  }
  return tensors;
}

namespace {

Status write_npy(const NamedTensors& tensors, const std::string& path) {
  if (tensors.size() != 1)
    return Error{path + ": a .npy file holds one tensor, not " + std::to_string(tensors.size()) +
                 "; write a .npz file"};
  GOPT_ASSIGN_OR_RETURN(const std::string header, npy_header(tensors[0].first, tensors[0].second).with_context(path));
  GOPT_ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::create(path));
  GOPT_RETURN_IF_ERROR(file.write(header));
  GOPT_RETURN_IF_ERROR(file.write(tensors[0].second.bytes().data(), tensors[0].second.bytes().size()));
  return file.commit();
}

}  // namespace

Status write_npz(const NamedTensors& tensors, const std::string& path) {
  if (path.ends_with(".npy")) return write_npy(tensors, path);
  GOPT_ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::create(path));
  std::string directory;
  for (const auto& [name, tensor] : tensors) {
    GOPT_ASSIGN_OR_RETURN(const std::string header, npy_header(name, tensor).with_context(path));
    const uint32_t crc =
        checksum(checksum(0, header.data(), header.size()), tensor.bytes().data(), tensor.bytes().size());
    const uint64_t size = header.size() + tensor.bytes().size(), offset = file.position();
    if (size >= kLargestStored || offset >= kLargestStored)
      return Error{path + ": .npz files above 4 GiB are not written"};
    const std::string entry_name = name + ".npy", local = local_header(entry_name, crc, size);
    directory += central_header(local, offset, entry_name);
    GOPT_RETURN_IF_ERROR(file.write(local + header));
    GOPT_RETURN_IF_ERROR(file.write(tensor.bytes().data(), tensor.bytes().size()));
  }
  std::string end;
  put(end, kEnd);
  put<uint32_t>(end, 0);
  put(end, static_cast<uint16_t>(tensors.size()));
  put(end, static_cast<uint16_t>(tensors.size()));
  put(end, static_cast<uint32_t>(directory.size()));
  put(end, static_cast<uint32_t>(file.position()));
  put<uint16_t>(end, 0);
  GOPT_RETURN_IF_ERROR(file.write(directory + end));
  return file.commit();
}

}  // namespace gopt
