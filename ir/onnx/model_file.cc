#include "model_file.h"

namespace gopt::ir {
namespace {

// Field numbers of onnx.proto.
constexpr int kModelGraph = 7, kGraphNode = 1, kGraphInitializer = 5, kTensorRawData = 9;
constexpr int kNodeAttribute = 5, kAttributeTensor = 5;
constexpr size_t kLeaveAbove = 64 * 1024;  // larger tensor values of nodes are left in the file

struct Reader {
  ModelFile& out;
  std::shared_ptr<const MappedFile> file;

  size_t position(Bytes bytes) const { return static_cast<size_t>(bytes.data() - file->bytes().data()); }

  // Parses `bytes` except for fields of `number`, which `visit` gets.
  template <class Visit>
  Result<std::string> split(Bytes bytes, int number, const Visit& visit) const {
    WireReader reader(bytes, position(bytes));
    std::string rest;
    while (true) {
      GOPT_ASSIGN_OR_RETURN(const auto field, reader.next());
      if (!field) return rest;
      if (field->number == number && field->type == WireType::Length) {
        GOPT_RETURN_IF_ERROR(visit(field->payload));
      } else {
        append(rest, field->whole);
      }
    }
  }

  template <class Message>
  Status parse(const std::string& text, Message& message, Bytes bytes) const {
    if (message.ParseFromString(text)) return Unit{};
    return Error{"damaged: no valid message at byte " + std::to_string(position(bytes))};
  }

  Result<TensorSource> tensor(Bytes bytes) const {
    TensorSource source;
    GOPT_ASSIGN_OR_RETURN(const std::string rest, split(bytes, kTensorRawData, [&](Bytes raw) -> Status {
                            source.raw = Storage{file, raw, true};
                            return Unit{};
                          }));
    GOPT_RETURN_IF_ERROR(parse(rest, source.proto, bytes));
    return source;
  }

  Status node(Bytes bytes) const {
    const int index = out.model.graph().node_size();
    onnx::NodeProto& node = *out.model.mutable_graph()->add_node();
    if (bytes.size() < kLeaveAbove) return parse(to_text(bytes), node, bytes);
    std::vector<onnx::AttributeProto> attributes;
    std::optional<TensorSource> value;
    GOPT_ASSIGN_OR_RETURN(const std::string rest, split(bytes, kNodeAttribute, [&](Bytes field) -> Status {
                            GOPT_ASSIGN_OR_RETURN(const std::string text,
                                                  split(field, kAttributeTensor, [&](Bytes t) -> Status {
                                                    GOPT_ASSIGN_OR_RETURN(value, tensor(t));
                                                    return Unit{};
                                                  }));
                            return parse(text, attributes.emplace_back(), field);
                          }));
    GOPT_RETURN_IF_ERROR(parse(rest, node, bytes));
    if (node.op_type() == "Constant" && normal_domain(node.domain()).empty() && attributes.size() == 1 && value) {
      out.node_values.emplace(index, std::move(*value));
      return Unit{};
    }
    return parse(to_text(bytes), node, bytes);
  }

  Status graph(Bytes bytes) const {
    onnx::GraphProto rest_message;
    GOPT_ASSIGN_OR_RETURN(const std::string without_tensors, split_graph(bytes));
    GOPT_RETURN_IF_ERROR(parse(without_tensors, rest_message, bytes));
    out.model.mutable_graph()->MergeFrom(rest_message);
    return Unit{};
  }

  Result<std::string> split_graph(Bytes bytes) const {
    WireReader reader(bytes, position(bytes));
    std::string rest;
    while (true) {
      GOPT_ASSIGN_OR_RETURN(const auto field, reader.next());
      if (!field) return rest;
      if (field->number == kGraphInitializer && field->type == WireType::Length) {
        GOPT_ASSIGN_OR_RETURN(TensorSource source, tensor(field->payload));
        out.initializers.push_back(std::move(source));
      } else if (field->number == kGraphNode && field->type == WireType::Length) {
        GOPT_RETURN_IF_ERROR(node(field->payload));
      } else {
        append(rest, field->whole);
      }
    }
  }

  static std::string to_text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
};

// True where the file's first field may start a ModelProto: tells a damaged model from a file of another kind.
bool starts_like_a_model(Bytes bytes) {
  if (bytes.empty()) return false;
  const auto tag = static_cast<uint8_t>(bytes[0]);
  const int number = tag >> 3, type = tag & 7;
  if (number == 1 || number == 5) return type == 0;
  return type == 2 && tag < 128 && ((number >= 2 && number <= 8) || number == 14);
}

Status read_into(ModelFile& out, const std::shared_ptr<const MappedFile>& file) {
  const Reader reader{out, file};
  std::string rest;
  std::vector<Bytes> graphs;
  GOPT_ASSIGN_OR_RETURN(rest, reader.split(file->bytes(), kModelGraph, [&](Bytes graph) -> Status {
    graphs.push_back(graph);
    return Unit{};
  }));
  GOPT_RETURN_IF_ERROR(reader.parse(rest, out.model, file->bytes()));
  for (const Bytes graph : graphs) GOPT_RETURN_IF_ERROR(reader.graph(graph));
  return Unit{};
}

}  // namespace

std::string describe(const onnx::NodeProto& node) {
  const std::string by_output = node.output_size() > 0 ? "node of '" + node.output(0) + "'" : "node";
  return (node.name().empty() ? by_output : "node '" + node.name() + "'") + " (" + node.op_type() + ")";
}

Result<ModelFile> read_model_file(const std::string& path) {
  GOPT_ASSIGN_OR_RETURN(const auto file, MappedFile::open(path));
  if (file->bytes().empty()) return Error{path + ": the file is empty, expected an ONNX model"};
  ModelFile out;
  out.path = path;
  out.external = ExternalFiles(std::filesystem::path(path).parent_path());
  if (!starts_like_a_model(file->bytes())) return Error{path + ": is not an ONNX model"};
  if (const Status status = read_into(out, file); !status.ok())
    return Error{path + ": is not an ONNX model, or is truncated: " + status.error().message};
  if (!out.model.has_graph()) return Error{path + ": is not an ONNX model: it has no graph"};
  return out;
}

}  // namespace gopt::ir
