// The kernel plan: how a graph is covered by kernels on a device, where each tensor lies, in what layout and on which
// stream each kernel runs. The cost of a graph is the cost of its best plan; code generation prints a plan.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gopt/attention.h"
#include "gopt/graph.h"
#include "gopt/layout.h"

namespace gopt {

enum class TargetKind { Cpu, Cuda, Onnx };

// Arithmetic of products and convolutions; sums are in fp32 in any case. With 16 bits it is also how weights and what
// one kernel hands to another are stored where the graph says f32: inputs and outputs are of the graph's types.
enum class Precision {
  Fp32,
  Tf32,    // CUDA: operands rounded to 11 bits
  Fp16,    // CUDA: operands of 11 bits and a range of 65504
  Bf16,    // operands of 8 bits
  Bf16x3,  // CPU: operands may be sums of two numbers of 8 bits, of whose products the least is left out
};
std::string to_string(Precision precision);                  // as --precision has it
std::optional<Precision> parse_precision(std::string_view);  // the inverse
ElementType storage_of(Precision precision);                 // of what the graph says is f32
// Those that code for a kind of target has, fp32 first.
std::vector<Precision> precisions_of(TargetKind kind);

// A value of a graph by what computes it: the same in a graph that was read again.
using ValueKey = std::pair<Hash128, int>;
ValueKey key_of(const Value& value);

// An extent that stays open in the code that is made: plans are made for `usual` of it, and hold for any, 0 too.
struct OpenExtent {
  AtomId symbol{};
  int64_t usual = 1;
  std::optional<int64_t> maximum = std::nullopt;  // memory is there for so many from the start; more are refused
  friend bool operator==(const OpenExtent&, const OpenExtent&) = default;
};

struct Target {
  TargetKind kind = TargetKind::Cpu;
  int threads = 1;
  int vector_lanes = 16;  // floats in a register of the processor, 8 or 16: channels of a blocked layout
  Precision precision = Precision::Fp32;
  // CPU: the processor that the code is for has matrix tiles (AMX), on which kernels of ours may run; not where that is
  // not known, as where nothing is timed.
  bool has_tiles = false;
  // Values that stay f32 where others have 16 bits: they were seen to leave the range of those. With bf16x3, results of
  // kernels that compute in floats: together with them the others were seen to lose more digits than they may.
  std::set<ValueKey> in_fp32;
  std::set<std::string> without;  // parts of plans that are switched off, of plan_parts()
  std::vector<OpenExtent> open;   // CPU: symbols that plans hold for all sizes of; empty: all extents are numbers
  // CPU: a node without definition whose tensors are of known types and extents is a call of a function that the caller
  // of the code registers (gopt_register). Else it is one that cannot be planned.
  bool calls_functions = false;
};
// What plans for a kind of target can be made without, to see what it is worth: layouts ("layout:blocked"; plain
// tensors always are), ways to run library kernels ("kernel:winograd", tiles of one size "kernel:wgmma:128x64"; kept
// where there is no other), fusion ("fusion:epilogues", "fusion:prologues", "fusion:inlining", "fusion:pieces";
// "fusion:by-cost" leaves it to rules), launches that do not wait ("launch:dependent"), those of several kernels
// ("launch:grouped"; "launch:sequences", of such that read each other's results), a parallel region around kernels in a
// row in place of one for each ("launch:one-region"), and runs by one thread alone while that is faster than by all
// ("launch:alone").
std::vector<std::string> plan_parts(TargetKind kind);
constexpr const char *kDependentLaunch = "launch:dependent", *kGroupedLaunch = "launch:grouped",
                     *kSequences = "launch:sequences", *kOneRegion = "launch:one-region",
                     *kAloneLaunch = "launch:alone", *kFusionByCost = "fusion:by-cost",
                     *kPrologues = "fusion:prologues";

struct Device {
  TargetKind kind = TargetKind::Cpu;
  int ordinal = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

enum class BufferId : uint32_t {};
enum class StreamId : uint32_t {};

enum class BufferPlace { Input, Output, Weight, Arena };

struct Buffer {
  Value value;                                 // what it holds
  std::vector<int64_t> dims;                   // of open extents the usual ones, here and in sizes and offsets
  ElementType element = ElementType::Float32;  // as it is stored; the value's own may be wider
  Layout layout;
  Device device;
  BufferPlace place = BufferPlace::Arena;
  int64_t size_bytes = 0;  // with the layout's rounding
  int64_t offset = 0;  // Arena: bytes from its start; Weight: bytes in the weights file; Input, Output: their number
  // A view lies inside another buffer (an input of a concat made in place, a reshape): offset is relative to it.
  bool is_view = false;
  BufferId parent{};
  Index inside;  // the view's offset at any size of open extents
};

enum class KernelKind {
  Convolution,    // a library call: Conv or ConvTranspose and its epilogue
  Pooling,        // a library call: MaxPool or AveragePool
  MatrixProduct,  // a library call: MatMul or Gemm and its epilogue
  Attention,      // two products and the softmax between them, with what moves their operands
  Generated,      // loops from the definitions of the nodes it covers, fused
  Reorder,        // one layout to another
  Group,          // CUDA: convolutions by tiles that need nothing of each other, in one launch
  Sequence,       // CUDA: short kernels that read each other's results, in one launch (gopt/sequence.h)
  Recurrence,     // all steps of an RNN, GRU or LSTM (gopt/recurrence.h)
  RowFunction,    // running sums and products, what is largest in order (gopt/row_function.h)
  External,       // a function that the code's caller registers for an operator without definition
};
std::string to_string(KernelKind kind);

// What library kernels apply to their results; f(x) with the operator's numbers.
enum class ActivationKind { Relu, LeakyRelu, Clip, Sigmoid, Tanh, Elu, GeluErf, GeluTanh, Swish, HardSwish };
struct Activation {
  ActivationKind kind = ActivationKind::Relu;
  double a = 0, b = 0;  // LeakyRelu and Elu: alpha; Clip: the least and the largest value; Swish: x Sigmoid(a x)
};

// One step that a library kernel applies to its result before it is stored, in order.
struct Epilogue {
  enum class Kind { Bias, AddTensor, Activation, Quantize, Cast };
  Kind kind;
  NodePtr node;        // the node that it stands for; Quantize: with its scale and zero point, which are constants;
                       // Cast: sums of integers are stored as they are
  BufferId operand{};  // Bias: the vector; AddTensor: the tensor
  Activation activation{};
};

// What a kernel does to its input 0 before it multiplies it (on CUDA, convolutions of one tap by tiles): a function of
// each number and its channel, or a factor for each image and channel. Operands are numbers of inputs; -1: there is
// none.
struct Prologue {
  // (x - mean) scale / sqrt(variance + epsilon) + shift
  int scale = -1, shift = -1, mean = -1, variance = -1;
  double epsilon = 0;
  std::optional<Activation> activation;  // of that: Relu or Clip
  int gates = -1;
};

// A convolution or product of integers of 8 bits: input 0 stands for (x - zero) scale, input 1 for the same with a
// scale and a zero point that are inputs, one or one for each channel or column of the result. Without scales, sums of
// integers are the result.
struct IntegerOperands {
  double scale = 1;
  int64_t zero = 0;
  // Numbers of inputs; -1: there is none. `left_zero`: in place of the number, of what is known when it runs.
  int right_scale = -1, right_zero = -1, left_zero = -1;
};

// Its implementation, as Target::without names it.
constexpr const char* kQuantized = "kernel:quantized";

// A product by weights of integers: input 1 stands for (x - zero) scale, as it is under Dequantize, with scales and
// zero points that are inputs.
struct QuantizedOperands {
  int bits = 8;                // 4: that is all that numbers and zero points have
  int64_t block = 1;           // rows of the product's right operand that have one scale and zero point in common
  bool is_transposed = false;  // input 1
  int scale = -1, zero = -1;   // numbers of inputs; without one all zero points are `zero_of_all`
  int64_t zero_of_all = 0;
};

struct Kernel {
  KernelKind kind;
  std::string name;            // unique in the plan, a C identifier
  std::vector<NodePtr> nodes;  // covered, in topological order; those of a prologue last
  std::vector<Value> inputs;   // values read from buffers, parallel to input_buffers
  std::vector<BufferId> input_buffers;
  std::vector<Value> outputs;  // values made, parallel to output_buffers; of a Recurrence those that are read
  std::vector<BufferId> output_buffers;
  std::optional<Prologue> prologue;            // library kernels
  std::vector<Epilogue> epilogues;             // likewise
  std::shared_ptr<const Attention> attention;  // Attention: what it computes
  std::optional<IntegerOperands> integers;     // Convolution, MatrixProduct: of integers
  std::optional<QuantizedOperands> quantized;  // MatrixProduct: by weights of integers
  std::string implementation;                  // "direct", "winograd", ...; empty: the only one
  std::vector<Kernel> members;                 // Group: each with the implementation of all; Sequence: in their order
  Device device;
  StreamId stream{};
  double estimated_ms = 0;
};

// Whether the kernel's floats are sums of two bfloat16 numbers each (Precision::Bf16x3 alone has such).
bool is_of_two_terms(const Kernel& kernel);

// Something that sizes of open extents have to satisfy: elsewhere the model has no meaning, or another one.
struct SizeDemand {
  Cond cond;
  std::string what;  // with the node
};
// What a graph's nodes require of sizes, as far as it is not so at any of at least 0. What depends on data is left out.
std::vector<SizeDemand> size_demands(const Graph& graph, const std::vector<OpenExtent>& open);
// Adds those that are not there yet.
void add_demands(std::vector<SizeDemand>& demands, const std::vector<SizeDemand>& others);

struct Plan {
  Graph graph;
  Target target;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;      // in launch order
  std::vector<SizeDemand> demands;  // of open extents
  int64_t arena_bytes = 0;
  double estimated_ms = 0;
  // A plan that only times its kernels (timing_plan): they have nothing to do with each other, and what one reads is
  // written anew before it runs.
  bool times_kernels = false;

  const Buffer& buffer(BufferId id) const { return buffers[static_cast<uint32_t>(id)]; }
};

// What its graph and its kernels require.
std::vector<SizeDemand> size_demands(const Plan& plan);

// Whether a product or convolution of floats rounds its operands to 11 bits; not those of a few lines, which gain
// nothing by it.
bool is_tf32(const Plan& plan, const Kernel& kernel);

// Whether a recurrence of weights and first states that are the model's may round these, and all states, to halves, by
// which several sequences are multiplied on CUDA's tensor cores: not what Relu gives, which has no bound.
// Preconditions: `kernel` is a recurrence.
bool may_recur_in_halves(const Plan& plan, const Kernel& kernel);

// Time of one kernel of a plan in milliseconds. A pure function of kernel, target and (for measured times) the cache.
class KernelCosts {
 public:
  virtual ~KernelCosts() = default;
  virtual double time_ms(const Plan& plan, const Kernel& kernel) = 0;
  virtual bool is_measured(const Plan&, const Kernel&) const { return false; }  // else it is an estimate
  // Whether it is asked for implementations, too, that are not expected to be the fastest for a kernel.
  virtual bool prices_unlikely() const { return false; }
  virtual double uncertainty() const { return 0; }  // of the time of a kernel that may take another's place, as a share
};

// The extents of what a buffer holds at any size of open extents.
const Shape& shape_of(const Buffer& buffer);
// The sizes that a plan's numbers are of.
Environment usual_sizes(const Target& target);

// Covers the graph by kernels at least estimated cost. Errors: what cannot be planned, with the node: an opaque
// operator (where no function may be called for it), an extent that is not static (say --shape) nor one of the target's
// open ones, an element type without code.
Result<Plan> make_plan(const Graph& graph, const Target& target, KernelCosts& costs);

// An operator that a plan calls registered functions for, as gopt_register names it, and the nodes that apply it.
struct ExternalOperator {
  std::string name;  // "com.acme::Swish"; of ONNX's own domain without a domain
  std::vector<std::string> nodes;
};
std::vector<ExternalOperator> external_operators(const Plan& plan);  // in the order of their first calls
std::string external_name(const Node& node);                         // precondition: it has no definition

// The kernels, by number, between which a buffer's bytes are in use: -1 where none uses them, and for views, whose
// bytes are their parents'.
struct BufferLife {
  int first = -1, last = -1;
};
std::vector<BufferLife> buffer_lives(const Plan& plan);

// A line a kernel: what it covers, what it reads and writes in which layouts and where, and its estimated time. Plans
// that print alike make the same code.
std::string print_plan(const Plan& plan);
std::string print_kernel(const Plan& plan, const Kernel& kernel);  // its lines

// What is wrong with a plan, if anything: live buffers that overlap, views that stick out, reads before writes.
Status check_plan(const Plan& plan);

}  // namespace gopt
