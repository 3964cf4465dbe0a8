#include "stream.h"

#include <fcntl.h>
#include <google/protobuf/io/coded_stream.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "gopt/interpreter.h"
#include "tensor_proto.h"

namespace gopt::ir {
namespace {

constexpr int kModelGraph = 7, kGraphInitializer = 5, kTensorRawData = 9;
constexpr int64_t kLargestMessage = (int64_t{1} << 31) - (1 << 20);  // what Protobuf can read
constexpr size_t kInlineBelow = 1024;  // bytes; small tensors stay in the model, where shape inference sees them

// Tag and length of a length-delimited field.
std::string field_head(int number, size_t size) {
  uint8_t buffer[20];
  auto* end =
      google::protobuf::io::CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(number) << 3 | 2, buffer);
  end = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(size, end);
  return {reinterpret_cast<char*>(buffer), static_cast<size_t>(end - buffer)};
}

// One tensor as it will stand in the file.
struct Entry {
  const PendingTensor* source;
  std::string header;  // the message without raw data, or all of it
  size_t bytes = 0;    // of raw data
  bool external = false;
  size_t offset = 0;  // in the external file
  size_t message_size() const {
    const bool raw = !external && bytes > 0;
    return header.size() + (raw ? field_head(kTensorRawData, bytes).size() + bytes : 0);
  }
};

size_t aligned(size_t offset, size_t bytes) {
  const size_t alignment = bytes > (1 << 20) ? 4096 : 64;
  return (offset + alignment - 1) / alignment * alignment;
}

void add_external(onnx::TensorProto& proto, const std::string& location, size_t offset, size_t bytes) {
  proto.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto add = [&](const char* key, const std::string& value) {
    auto& entry = *proto.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  add("location", location);
  add("offset", std::to_string(offset));
  add("length", std::to_string(bytes));
}

onnx::TensorProto header_of(const PendingTensor& tensor) {
  onnx::TensorProto proto;
  proto.set_name(tensor.name);
  const TensorType type = tensor.type();
  proto.set_data_type(static_cast<int>(type.element));
  for (const int64_t extent : type.static_shape()) proto.add_dims(extent);
  return proto;
}

size_t bytes_of(const PendingTensor& tensor) {
  if (!tensor.value) return tensor.tensor.bytes().size();
  return tensor_bytes(tensor.type().element, tensor.type().static_shape()).value_or(0);
}

std::vector<Entry> lay_out(const std::vector<PendingTensor>& tensors, bool external, const std::string& location) {
  std::vector<Entry> entries;
  size_t offset = 0;
  for (const PendingTensor& tensor : tensors) {
    Entry entry{&tensor, {}, bytes_of(tensor), false, 0};
    onnx::TensorProto proto = header_of(tensor);
    if (tensor.tensor.strings()) proto = tensor_message(tensor.tensor, tensor.name);
    if (external && entry.bytes >= kInlineBelow) {
      entry.external = true;
      entry.offset = aligned(offset, entry.bytes);
      offset = entry.offset + entry.bytes;
      add_external(proto, location, entry.offset, entry.bytes);
    }
    entry.header = proto.SerializeAsString();
    entries.push_back(std::move(entry));
  }
  return entries;
}

// The data: of the tensor, or of the value, evaluated now and let go by the caller.
Result<Tensor> data_of(const PendingTensor& pending, size_t expected) {
  if (!pending.value) return pending.tensor;
  GOPT_ASSIGN_OR_RETURN(Tensor tensor, evaluate_constant(pending.value).with_context("weight '" + pending.name + "'"));
  if (tensor.bytes().size() != expected)
    return Error{"weight '" + pending.name + "' is " + to_string(tensor.tensor_type()) + ", expected " +
                 to_string(pending.type())};
  return tensor;
}

Status write_entries(const std::vector<Entry>& entries, TemporaryFile& file, TemporaryFile* data_file) {
  for (const Entry& entry : entries) {
    GOPT_RETURN_IF_ERROR(file.write(field_head(kGraphInitializer, entry.message_size()) + entry.header));
    if (entry.bytes == 0) continue;
    GOPT_ASSIGN_OR_RETURN(const Tensor tensor, data_of(*entry.source, entry.bytes));
    if (entry.external) {
      GOPT_RETURN_IF_ERROR(data_file->write(std::string(entry.offset - data_file->position(), '\0')));
    } else {
      GOPT_RETURN_IF_ERROR(file.write(field_head(kTensorRawData, entry.bytes)));
    }
    GOPT_RETURN_IF_ERROR((entry.external ? *data_file : file).write(tensor.bytes().data(), tensor.bytes().size()));
    let_go(tensor);
  }
  return Unit{};
}

Status refuse_existing(const std::string& path, bool force) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return Unit{};
  if (S_ISDIR(info.st_mode)) return Error{path + ": is a folder, expected a file name"};
  if (force) return Unit{};
  return Error{path + ": exists already; use --force to overwrite it"};
}

}  // namespace

Status stream_model(const onnx::ModelProto& head, const onnx::GraphProto& graph,
                    const std::vector<PendingTensor>& tensors, const std::string& path, const ExportOptions& options,
                    StagedFiles& staged) {
  const std::string data_path = path + ".data";
  const std::string start = head.SerializeAsString(), body = graph.SerializeAsString();
  int64_t total = static_cast<int64_t>(start.size() + body.size());
  for (const PendingTensor& tensor : tensors) total += static_cast<int64_t>(bytes_of(tensor)) + 128;
  const bool is_large = total > std::min(options.external_above, kLargestMessage);
  const auto entries = lay_out(tensors, is_large, std::filesystem::path(data_path).filename().string());
  const bool external = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.external; });
  GOPT_RETURN_IF_ERROR(refuse_existing(path, options.force));
  if (external) GOPT_RETURN_IF_ERROR(refuse_existing(data_path, options.force));

  size_t graph_size = body.size();
  for (const Entry& entry : entries)
    graph_size += field_head(kGraphInitializer, entry.message_size()).size() + entry.message_size();
  GOPT_ASSIGN_OR_RETURN(TemporaryFile file, TemporaryFile::create(path));
  std::optional<TemporaryFile> data_file;
  if (external) {
    GOPT_ASSIGN_OR_RETURN(TemporaryFile created, TemporaryFile::create(data_path));
    data_file.emplace(std::move(created));
  }
  GOPT_RETURN_IF_ERROR(file.write(start + field_head(kModelGraph, graph_size) + body));
  GOPT_RETURN_IF_ERROR(write_entries(entries, file, data_file ? &*data_file : nullptr));
  if (data_file) GOPT_RETURN_IF_ERROR(staged.add(*std::move(data_file)));
  return staged.add(std::move(file));
}

}  // namespace gopt::ir
