// The first half of planning: what each node of the graph is to the plan (a library kernel, an epilogue of one, inlined
// into its users, the root of a generated kernel, a view) and in which layout each value lies. See buffers.h for
// the second.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "attention.h"
#include "gopt/node_plan.h"
#include "gopt/plan.h"
#include "gopt/split_model.h"

namespace gopt::planner {

enum class Role {
  Input,
  Weight,
  View,
  Convolution,
  Pooling,
  MatrixProduct,
  Attention,
  Epilogue,
  Covered,  // by the attention, or as its prologue by the library kernel, that is its owner, or nobody's: what it makes
            // is read another way
  Inlined,
  Generated,
  Whole,     // a recurrence or a row's function
  External,  // a function that the caller registers
  Unplanned
};

// One input position of a node that uses a value.
struct Use {
  uint32_t node;
  int position;
};

struct EpilogueStep {
  Epilogue::Kind kind;
  uint32_t node;
  int operand = -1;  // input position of the operand; -1: none
  // What the same step does before: the nodes of an activation that is written as several, other shapes of the same
  // elements.
  std::vector<uint32_t> inner = {};
  Activation activation = {};  // Kind::Activation
};

// Where the rules of library.cc and fusion.cc may well be wrong: a node that they hand on inside a kernel could be
// stored, or the other way around. Costs decide (fusion_by_cost.cc).
enum class FusionWay {
  Stored,
  Inside,  // its users' kernels
  Apart,   // from the library kernel before it, of which it could be a step
  Before,  // by the library kernel behind it, as the end of its prologue
};
struct FusionChoice {
  uint32_t node;
  FusionWay way;  // other than the rule's
  // An element is computed more than once within one kernel then, or would be if the loops did not see that it is the
  // same: analytic costs, which count each node of a kernel once, know nothing of it.
  bool is_computed_again = false;
};

// What a convolution or product reads in place of its operands where it is one of integers: what these are made of by
// Dequantize, or by Cast: without scale and zero point.
struct IntegerCover {
  Value left, right, right_scale, right_zero;
  Value left_zero;  // where it is no number
  IntegerOperands operands;
};

// What a product of floats reads in place of its weights where these are integers under Dequantize.
struct QuantizedCover {
  Value numbers, scale;
  Value zero;  // where there are several
  QuantizedOperands operands;
  ElementType scale_type = ElementType::Float32;  // as CUDA has scales
};

// What a convolution could do to its source before it is multiplied.
struct PrologueCover {
  Value source;
  std::vector<uint32_t> nodes;  // in order, the last of which the library kernel reads as it is
  Prologue prologue;            // of these operands
  std::vector<Value> operands;
};

struct NodeCover {
  Role role = Role::Generated;
  std::optional<IntegerCover> integers;
  std::optional<QuantizedCover> quantized;
  bool has_prologue = false;              // the library kernel's in Cover::prologues is taken
  std::vector<EpilogueStep> epilogues;    // library kernels
  uint32_t owner = 0;                     // Epilogue, Covered: the library node
  FusionLimit limit = FusionLimit::None;  // why its value (of a library node: its last epilogue's) is stored
  bool weight_only = false;
  uint32_t first_value = 0;  // index of its output 0 among all values
};

struct ValueCover {
  std::vector<int64_t> dims;
  Shape shape;                                   // the same where open extents are symbols: what holds at any size
  ElementType element = ElementType::Undefined;  // the graph's
  ElementType stored = ElementType::Undefined;   // in memory: of 16 bits where precision says so
  bool is_kept = false;                          // stored as it is for its range: whoever reads it has to, too
  Layout layout;
  int layout_class = -1;   // of the values that have to lie as this one; -1: it is plain
  bool is_output = false;  // of the graph
  std::vector<Use> uses;   // by nodes
  // A view: it lies inside another value, so many elements (of that value's layout) from its start.
  int parent = -1;
  Index parent_offset;
  int64_t count() const;
  Index elements() const;  // at any size
  bool is_empty() const;   // at any size
};

struct CoverOptions {
  Target target;
  // Costs of graphs that cannot be run as they are: opaque nodes are left out, and a symbolic extent counts as 1 where
  // the symbol is the leading extent of a graph input (a batch), else as 64.
  bool tolerant = false;
  // Of a part of a graph: what it reads and makes lies as its own nodes want it.
  bool has_free_borders = false;
};

struct Cover {
  Graph graph;
  CoverOptions options;
  std::vector<NodeCover> nodes;  // by NodeId
  std::vector<ValueCover> values;
  std::map<uint32_t, AttentionCover> attentions;  // by NodeId
  std::map<uint32_t, PrologueCover> prologues;    // that library kernels could have, by NodeId
  Environment sizes;                              // of symbols
  int layout_classes = 0;
  // Of each class of values that have to lie alike; of those beyond the end, `layout`.
  std::vector<Layout> layouts;
  Layout layout;
  std::map<uint32_t, FusionWay> ways;  // of nodes: what costs decided, where it is other than the rules
  std::vector<FusionChoice> open;      // what they may decide, users first
  std::vector<NodeWithoutCode> without_code;
  std::unordered_map<const Node*, uint32_t> node_ids;

  uint32_t id_of(const Node* node) const { return node_ids.at(node); }
  uint32_t index_of(const Value& value) const {
    return nodes[id_of(value.node.get())].first_value + static_cast<uint32_t>(value.output);
  }
  const ValueCover& of(const Value& value) const { return values[index_of(value)]; }
  const Node& node(uint32_t id) const { return *graph.nodes()[id]; }
  uint32_t root_of(uint32_t value, Index* offset = nullptr) const;  // the value that it lies in, through all views
};

// What does not depend on layouts, then what does: the second half for one choice of layouts after another. Errors: a
// node or extent that cannot be planned (none when tolerant).
Result<Cover> describe_graph(const Graph& graph, const CoverOptions& options);
struct CoverChoices {
  std::vector<Layout> layouts;  // of each class
  Layout layout;                // of those beyond them
  std::map<uint32_t, FusionWay> ways = {};
};
Cover cover_with(Cover described, CoverChoices choices);

// Parts of it, in order.
Status describe_values(Cover& cover);
void choose_attention(Cover& cover);        // on CUDA
void choose_integer_kernels(Cover& cover);  // on the CPU
void choose_library_kernels(Cover& cover);
void find_layout_classes(Cover& cover);
void choose_storage(Cover& cover);  // of values; what library kernels read is converted for them
void cut_epilogues(Cover& cover);   // where `ways` say that what a library kernel does beside its own is stored
void choose_layouts(Cover& cover);
void choose_pooling(Cover& cover);  // after layouts: of plain tensors
void find_prologues(Cover& cover);  // after layouts, on CUDA; those that `ways` say are taken
void take_prologue(Cover& cover,
                   uint32_t library);  // its nodes are no kernels of their own. Precondition: it was found
void choose_views(Cover& cover);
void choose_fusion(Cover& cover);

// Parts of plans as Target::without names them; of library kernels "kernel:" and the implementation's name.
constexpr const char *kBlockedLayout = "layout:blocked", *kChannelsLastLayout = "layout:channels-last",
                     *kPartsLayout = "layout:channels-last-in-parts", *kTransposedWeights = "layout:transposed-weights",
                     *kEpilogues = "fusion:epilogues", *kInlining = "fusion:inlining", *kPieces = "fusion:pieces";

// Why the code cannot call a function that its caller registers for a node without definition, as the end of a sentence
// that the node begins; nothing where it can.
std::optional<std::string> why_no_call(const Cover& cover, const NodePtr& node);
// Whether such a function is given the value: its extents and its type are known.
bool is_given_to_function(const Cover& cover, const Value& value);

// The integer convolution or product that the node is, or is a step of; else null.
const IntegerCover* integers_of(const Cover& cover, uint32_t node);
// The integers that a product of floats multiplies by as they are; none where its weights are no such.
std::optional<QuantizedCover> quantized_weights(const Cover& cover, const Node& product);
// Scale and zero point of a Quantize node that library kernels can end in: constants for the whole tensor, of 8 bits.
bool is_library_quantize(const Node& node);

// Layouts that a class may have, the one that is best in general first.
std::vector<Layout> layouts_of(const Target& target);
// The same of a graph: on CUDA also channels last in parts, where something is cut or joined along channels.
std::vector<Layout> layouts_for(const Cover& cover);
// Whether a tensor of these extents that lies in one layout can be read as if it lay in the other: parts of lines are
// read where they are, and single channels lie alike in either order.
bool lies_as(const Layout& layout, const Layout& wanted, const std::vector<int64_t>& dims);
// Elements of what a library kernel reads and makes: images, matrices and what is added to them; vectors of biases.
struct LibraryTypes {
  ElementType operands, result, bias;
};
LibraryTypes library_types(const Cover& cover, uint32_t node);
// Whether library kernels of the target compute on elements of this type.
bool is_library_type(ElementType type, TargetKind target);
// Few channels: an image that convolutions read as it is.
constexpr int64_t kFewChannels = 4;

// What the node is to a library kernel that ends in it. The one list of such operators (composed_activation.h knows
// what is written as several): kernels carry the value.
std::optional<Activation> library_activation(const Node& node);
bool is_small_constant(const Value& value);  // one element of a Constant node: printed into the code
std::string describe(const Node& node);      // "node `name` (Op)"

}  // namespace gopt::planner
