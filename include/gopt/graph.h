// The graph: an immutable DAG of nodes that are hashed structurally, so that equal nodes are one node in every graph
// that a builder makes. Names, metadata and the order of nodes are outside the hash. A rewrite builds a new graph that
// shares every node it can. Analyses keep side tables by NodeId, the position in nodes().
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "gopt/definition.h"
#include "gopt/op.h"
#include "gopt/result.h"
#include "gopt/type.h"

namespace gopt {

struct Hash128 {
  uint64_t high = 0, low = 0;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};
struct HashOfHash128 {
  size_t operator()(const Hash128& hash) const { return static_cast<size_t>(hash.low); }
};
std::string to_string(const Hash128& hash);  // 32 hexadecimal digits
Hash128 hash_bytes(std::string_view bytes);

class Node;
using NodePtr = std::shared_ptr<const Node>;

// One output of a node. A null node stands for an optional input that is left out.
struct Value {
  NodePtr node;
  int output = 0;
  explicit operator bool() const { return node != nullptr; }
  const TensorType& type() const;
  friend bool operator==(const Value& a, const Value& b) { return a.node == b.node && a.output == b.output; }
  friend bool operator<(const Value& a, const Value& b) {
    return a.node != b.node ? a.node < b.node : a.output < b.output;
  }
};

struct HashOfValue {
  size_t operator()(const Value& value) const {
    return std::hash<const void*>()(value.node.get()) + static_cast<size_t>(value.output);
  }
};

using ValueMap = std::unordered_map<Value, Value, HashOfValue>;

struct Recurrence;
struct RowFunction;

// What an opaque node keeps: enough to write it again. `payload` is private to the reader and writer of the format; of
// equal payloads nodes are alike but for their inputs.
struct OpaqueOp {
  std::string domain, op_type;
  std::string payload;
  std::vector<std::string> captured_names;  // names under which its subgraphs refer to its last inputs
  // What it computes, where it has a definition in one of these forms alone (gopt/recurrence.h, gopt/row_function.h),
  // by which it is written, too.
  std::shared_ptr<const Recurrence> recurrence;
  std::shared_ptr<const RowFunction> row_function;
};

class Node {
 public:
  OpKind op;
  std::vector<Value> inputs;
  Attributes attributes;  // canonical
  std::vector<TensorType> outputs;
  Tensor tensor;                           // Constant
  std::shared_ptr<const OpaqueOp> opaque;  // Opaque
  Hash128 hash;                            // structural; unique for opaque nodes
  // Outside the hash:
  std::string name;                       // of the node; of the input for Input
  std::vector<std::string> output_names;  // empty strings where unnamed
  std::string annotations;                // private to the reader and writer of the format: documentation and the like

  bool is(OpKind kind) const { return op == kind; }
  bool is_recurrence() const { return opaque && opaque->recurrence; }
  bool is_row_function() const { return opaque && opaque->row_function; }
  // Opaque, and yet defined: a kernel computes it whole.
  bool is_whole() const { return is_recurrence() || is_row_function(); }
};

enum class NodeId : uint32_t {};

struct GraphOutput {
  std::string name;
  Value value;
};

// What the file said beside nodes; survives import and export.
struct Metadata {
  std::string name, doc_string, producer_name, producer_version, domain;
  int64_t model_version = 0;
  int64_t ir_version = 8;
  std::map<std::string, int64_t> opsets;  // domain ("" is ONNX's) to version
  std::map<std::string, std::string> properties;
  std::vector<std::string> functions;          // serialized local functions
  std::map<std::string, TensorType> declared;  // declared types of outputs, where more is known than inferred
  // Private to the reader and writer of the format: declarations of inputs and outputs as the file had them, by name
  // (doc strings, denotations, types that are no tensors), and whatever else it held beside its graph.
  std::map<std::string, std::string> declarations;
  std::string remainder;
};

class Graph {
 public:
  Graph();
  Graph(std::vector<Value> inputs, std::vector<GraphOutput> outputs, Metadata metadata);

  // Nodes that outputs depend on, inputs too, each after what it uses; the order depends on the structure alone.
  const std::vector<NodePtr>& nodes() const;
  const NodePtr& node(NodeId id) const;
  NodeId id_of(const NodePtr& node) const;  // precondition: contains(node)
  bool contains(const NodePtr& node) const;
  const std::vector<Value>& inputs() const;  // Input nodes, in declared order, also unused ones
  const std::vector<GraphOutput>& outputs() const;
  const Metadata& metadata() const;
  // Uses of each node's outputs by other nodes, in node order; graph outputs are not among them.
  const std::vector<std::vector<NodeId>>& users() const;
  const Hash128& hash() const;  // of structure and output names
  // True for nodes that depend on initializers alone (and are no opaque nodes): folded once, free at run time. Not
  // where a gigabyte and several times what the initializers take would be made on the way.
  bool depends_on_weights_only(NodeId id) const;
  bool same_as(const Graph& other) const { return data_ == other.data_; }

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
};

class GraphBuilder {
 public:
  // For models, where two symbolic extents that meet in a broadcast may be equal or 1: outputs then have an unknown
  // shape. For rules (the default) they are taken to be equal.
  void set_broadcast_unknown(bool unknown) { broadcast_unknown_ = unknown; }
  // What nodes of operators that are added from now on carry (Node::annotations), until it is said again.
  void annotate(std::string annotations) { annotations_ = std::move(annotations); }
  Value input(std::string name, TensorType type);
  Value constant(Tensor tensor, std::string name = "");
  // A node with inferred types and canonical attributes; equal nodes are returned, not made again. Errors: as define().
  Result<NodePtr> add(OpKind kind, std::vector<Value> inputs, Attributes attributes = {}, int output_count = 1,
                      std::string name = "", std::vector<std::string> output_names = {});
  // The same for operators with one output.
  Result<Value> apply(OpKind kind, std::vector<Value> inputs, Attributes attributes = {});
  NodePtr opaque(std::shared_ptr<const OpaqueOp> op, std::vector<Value> inputs, std::vector<TensorType> outputs,
                 std::string name = "", std::vector<std::string> output_names = {});
  // The node over other inputs, of the types that its own have, without inferring anything again.
  NodePtr copy(const Node& node, std::vector<Value> inputs);
  void output(std::string name, Value value);
  Metadata& metadata() { return metadata_; }
  // Makes the nodes of `graph` known, so that equal ones are returned instead of made again.
  void adopt(const Graph& graph);
  Graph build() const;

 private:
  NodePtr intern(std::shared_ptr<Node> node);
  bool broadcast_unknown_ = false;
  std::string annotations_;
  std::unordered_map<Hash128, NodePtr, HashOfHash128> interned_;
  std::vector<Value> inputs_;
  std::vector<GraphOutput> outputs_;
  Metadata metadata_;
};

// The graph with each use of a key (and each output that is one) replaced by its value; shares what does not change,
// and is the same graph when nothing does. Errors: types that do not fit, named with the node. Values must not depend
// on keys' users. `became`, where it is given, says which value of the new graph stands for each that the outputs
// depended on, and for each that was put in.
Result<Graph> replace_values(const Graph& graph, const std::map<Value, Value>& replacements,
                             ValueMap* became = nullptr);

// Symbols that are extents of the graph's inputs: only what is over these can be computed wherever it is needed.
std::set<AtomId> input_symbols(const Graph& graph);

// What is wrong with the graph, if anything: each node's types as inferred, inputs before use, outputs typed.
Status validate(const Graph& graph);

}  // namespace gopt
