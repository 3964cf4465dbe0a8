// The meaning of TASO's operators as graphs of ours. Types of variables are found by running: each side is built, and
// built again whenever an operator made extents equal, until nothing changes.
#include <algorithm>

#include "taso_rule.h"
#include "taso_shapes.h"

namespace gopt::rules {
namespace {

// A tensor's extent along an axis as it was put together, so that a split can take it apart again.
struct Parts {
  Index size;
  std::vector<Parts> pieces;
};
struct TasoTensor {
  Value value;
  std::vector<Parts> axes;
  // Where there is no value: const_one or what is made of it, one number in the shape of what it meets.
  Value fill = {};
  bool is_constant = false;  // a kernel that is no variable's, as large as what it meets
};

class SideBuilder {
 public:
  SideBuilder(TasoShapes& shapes, const std::map<int, TensorType>& variables, bool is_target)
      : shapes_(shapes), is_target_(is_target) {
    for (const auto& [number, type] : variables) {
      TensorType resolved = type;
      for (Index& extent : *resolved.shape) extent = shapes.resolve(extent);
      variables_[number] = plain(builder_.input("v" + std::to_string(-number), resolved));
    }
  }

  Result<Graph> build(const std::vector<TasoOp>& ops, const std::vector<TasoRef>& outputs) {
    for (size_t i = 0; i < ops.size(); i++) {
      position_ = i;
      auto made = translate(ops[i]).with_context("operator " + std::to_string(i) + " (" + ops[i].name + ")");
      if (!made) return made.error();
      nodes_.push_back(*std::move(made));
    }
    for (size_t o = 0; o < outputs.size(); o++) {
      GOPT_ASSIGN_OR_RETURN(const TasoTensor tensor, tensor_of(outputs[o]));
      if (!tensor.value) return Error{"an output is const_one alone, which has no shape"};
      builder_.output("y" + std::to_string(o), tensor.value);
    }
    return builder_.build();
  }

  const Cond& condition() const { return condition_; }

 private:
  using Made = Result<std::vector<TasoTensor>>;

  static TasoTensor plain(const Value& value) {
    TasoTensor tensor{value, {}};
    for (const Index& extent : *value.type().shape) tensor.axes.push_back({extent, {}});
    return tensor;
  }
  static const Shape& shape_of(const TasoTensor& tensor) { return *tensor.value.type().shape; }

  Result<TasoTensor> tensor_of(const TasoRef& ref) const {
    if (ref.node < 0) {
      auto it = variables_.find(ref.node);
      if (it == variables_.end())
        return Error{"variable " + std::to_string(ref.node) + " does not occur in the source"};
      return it->second;
    }
    const std::vector<TasoTensor>& outputs = nodes_[static_cast<size_t>(ref.node)];
    if (ref.port >= static_cast<int>(outputs.size()))
      return Error{"operator " + std::to_string(ref.node) + " has no output " + std::to_string(ref.port)};
    return outputs[static_cast<size_t>(ref.port)];
  }

  Made translate(const TasoOp& op) {
    std::vector<TasoTensor> inputs;
    for (const TasoRef& ref : op.inputs) {
      GOPT_ASSIGN_OR_RETURN(TasoTensor tensor, tensor_of(ref));
      inputs.push_back(std::move(tensor));
    }
    using Method = Made (SideBuilder::*)(const TasoOp&, std::vector<TasoTensor>&);
    struct Row {
      size_t inputs;  // 0 for any number
      Method method;
    };
    static const std::map<std::string, Row> table{
        {"conv2d", {2, &SideBuilder::convolution}},   {"pool2d_max", {1, &SideBuilder::pool}},
        {"pool2d_avg", {1, &SideBuilder::pool}},      {"relu", {1, &SideBuilder::unary}},
        {"sigmoid", {1, &SideBuilder::unary}},        {"tanh", {1, &SideBuilder::unary}},
        {"dropout", {1, &SideBuilder::unary}},        {"ewadd", {2, &SideBuilder::elementwise}},
        {"ewmul", {2, &SideBuilder::elementwise}},    {"scalar_mul", {2, &SideBuilder::scale}},
        {"matmul", {2, &SideBuilder::product}},       {"linear", {2, &SideBuilder::product}},
        {"batchnorm", {5, &SideBuilder::normalize}},  {"concat", {0, &SideBuilder::concat}},
        {"split", {1, &SideBuilder::split}},          {"transpose", {1, &SideBuilder::transpose}},
        {"enlarge", {0, &SideBuilder::enlarge}},      {"merge_gconv", {1, &SideBuilder::merge_groups}},
        {"const_imm", {0, &SideBuilder::identity}},   {"const_iconv", {0, &SideBuilder::identity}},
        {"const_pool", {0, &SideBuilder::averaging}}, {"const_one", {0, &SideBuilder::ones}}};
    auto it = table.find(op.name);
    if (it == table.end())
      return Error{op.name == "reshape" ? "this form does not say the shape that reshape makes"
                                        : "unknown operator '" + op.name + "'"};
    if (it->second.inputs != 0 && inputs.size() != it->second.inputs)
      return Error{"it has " + std::to_string(inputs.size()) + " inputs and needs " +
                   std::to_string(it->second.inputs)};
    const bool takes_ones = op.name == "ewadd" || op.name == "ewmul" || op.name == "scalar_mul" || op.name == "relu";
    for (const TasoTensor& input : inputs)
      if (!input.value && !takes_ones)
        return Error{"no tensor says the shape of const_one: it may meet one in ewadd or ewmul"};
    return (this->*it->second.method)(op, inputs);
  }

  // ---- helpers ----

  std::string name_here(const std::string& name) const {
    return name + (is_target_ ? "t" : "") + std::to_string(position_);
  }
  Index symbol_here(const std::string& name) { return shapes_.fresh(name_here(name)); }
  Result<int64_t> parameter(const TasoOp& op, const std::string& name, int64_t low, int64_t high) const {
    const auto value = op.find(name);
    if (!value) return Error{"parameter '" + name + "' is missing"};
    if (*value < low || *value > high)
      return Error{"parameter '" + name + "' is " + std::to_string(*value) + ", from " + std::to_string(low) + " to " +
                   std::to_string(high) + " are known"};
    return *value;
  }
  Result<TasoTensor> apply(OpKind kind, std::vector<Value> inputs, Attributes attributes = {}) {
    GOPT_ASSIGN_OR_RETURN(const Value value, builder_.apply(kind, std::move(inputs), std::move(attributes)));
    return plain(value);
  }
  Made activated(const TasoOp& op, TasoTensor tensor) {
    const auto activation = static_cast<TasoActivation>(op.find("acti").value_or(0));
    if (activation == TasoActivation::None) return std::vector{std::move(tensor)};
    const OpKind kind = activation == TasoActivation::Relu      ? OpKind::Relu
                        : activation == TasoActivation::Sigmoid ? OpKind::Sigmoid
                                                                : OpKind::Tanh;
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(kind, {tensor.value}));
    made.axes = std::move(tensor.axes);
    return std::vector{std::move(made)};
  }
  // Input `number` of the operator at hand. Where a variable's rank is not said, it follows from the operators.
  Status expect_rank(const std::vector<TasoTensor>& in, size_t number, size_t rank, const char* why) const {
    const size_t own = shape_of(in[number]).size();
    if (own == rank) return Unit{};
    return Error{"input " + std::to_string(number) + " has " + std::to_string(own) + " axes and needs " +
                 std::to_string(rank) + ", " + why + "; 'rank' of the rule says how many axes a variable has"};
  }

  // ---- elementwise ----

  Made unary(const TasoOp& op, std::vector<TasoTensor>& in) {
    if (op.name == "dropout") return std::vector{in[0]};  // at inference
    if (!in[0].value) return fill(OpKind::Relu, {in[0].fill});
    const OpKind kind = op.name == "relu" ? OpKind::Relu : op.name == "sigmoid" ? OpKind::Sigmoid : OpKind::Tanh;
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(kind, {in[0].value}));
    made.axes = in[0].axes;
    return std::vector{std::move(made)};
  }

  Made fill(OpKind kind, std::vector<Value> inputs) {
    TasoTensor made;
    GOPT_ASSIGN_OR_RETURN(made.fill, builder_.apply(kind, std::move(inputs)));
    return std::vector{std::move(made)};
  }

  // Both inputs have one shape: broadcasting is no part of this form.
  Made elementwise(const TasoOp& op, std::vector<TasoTensor>& in) {
    if (!in[0].value && !in[1].value)
      return fill(op.name == "ewadd" ? OpKind::Add : OpKind::Mul, {in[0].fill, in[1].fill});
    for (size_t i = 0; i < 2; i++) {
      if (in[i].value) continue;
      const Value number = in[i].fill;
      GOPT_ASSIGN_OR_RETURN(in[i], apply(OpKind::FillLike, {in[1 - i].value}, {{"value", 1.0}}));
      if (number.node->is(OpKind::Constant)) continue;
      GOPT_ASSIGN_OR_RETURN(in[i], apply(OpKind::Mul, {in[i].value, number}));
    }
    GOPT_RETURN_IF_ERROR(expect_rank(in, 1, shape_of(in[0]).size(), "as many as input 0"));
    for (size_t axis = 0; axis < shape_of(in[0]).size(); axis++) {
      const Index &a = shape_of(in[0])[axis], &b = shape_of(in[1])[axis];
      shapes_.make_equal(a, b);
      if (is_target_) condition_ = condition_ && equal(shapes_.resolve(a), shapes_.resolve(b));
    }
    GOPT_ASSIGN_OR_RETURN(TasoTensor made,
                          apply(op.name == "ewadd" ? OpKind::Add : OpKind::Mul, {in[0].value, in[1].value}));
    made.axes = in[0].axes;
    for (size_t axis = 0; axis < made.axes.size(); axis++)
      if (made.axes[axis].pieces.empty()) made.axes[axis] = in[1].axes[axis];
    return std::vector{std::move(made)};
  }

  Made scale(const TasoOp&, std::vector<TasoTensor>& in) {
    GOPT_RETURN_IF_ERROR(expect_rank(in, 1, 0, "as it is one number"));
    if (!in[0].value) return fill(OpKind::Mul, {in[0].fill, in[1].value});
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::Mul, {in[0].value, in[1].value}));
    made.axes = in[0].axes;
    made.is_constant = in[0].is_constant;
    return std::vector{std::move(made)};
  }

  Made normalize(const TasoOp&, std::vector<TasoTensor>& in) {
    GOPT_RETURN_IF_ERROR(expect_rank(in, 0, 4, "as it is an image or a kernel"));
    std::vector<Value> inputs{in[0].value};
    for (size_t i = 1; i < 5; i++) {
      GOPT_RETURN_IF_ERROR(expect_rank(in, i, 1, "as it is a number a channel"));
      shapes_.make_equal(shape_of(in[0])[1], shape_of(in[i])[0]);
      inputs.push_back(in[i].value);
    }
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::BatchNormalization, inputs));
    made.axes = in[0].axes;
    return std::vector{std::move(made)};
  }

  // ---- products ----

  Made product(const TasoOp& op, std::vector<TasoTensor>& in) {
    const Shape &a = shape_of(in[0]), &b = shape_of(in[1]);
    if (a.size() < 2 || a.size() != b.size()) return Error{"the operands need one rank, two at least"};
    const size_t rows = a.size() - 2, columns = a.size() - 1;
    shapes_.make_equal(a[columns], b[rows]);
    for (size_t axis = 0; axis < rows; axis++) shapes_.make_equal(a[axis], b[axis]);
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::MatMul, {in[0].value, in[1].value}));
    for (size_t axis = 0; axis <= rows; axis++) made.axes[axis] = in[0].axes[axis];
    made.axes[columns] = in[1].axes[columns];
    return activated(op, std::move(made));
  }

  // TASO infers groups from shapes: channels of x over those of w.
  // A constant kernel has a row a channel where it averages, else all channels.
  Index groups(const Index& x_channels, const TasoTensor& kernel) {
    const Shape& w = shape_of(kernel);
    if (kernel.is_constant) {
      const bool is_averaging = w[1] == Index(1);
      shapes_.make_equal(is_averaging ? w[0] : w[1], x_channels);
      return is_averaging ? x_channels : Index(1);
    }
    if (auto quotient = exact_quotient(shapes_.meaning(x_channels), shapes_.meaning(w[1]))) return *quotient;
    if (is_target_ && shapes_.is_open(w[1])) {
      shapes_.make_equal(w[1], x_channels);
      return Index(1);
    }
    if (is_target_ || !(shapes_.is_open(x_channels) || shapes_.is_open(w[0]))) return floor_div(x_channels, w[1]);
    const Index group = shapes_.fresh_group(name_here("g"));
    if (shapes_.is_open(w[0])) shapes_.make_equal(w[0], group * symbol_here("o"));
    if (shapes_.is_open(x_channels))
      shapes_.make_equal(x_channels, group * w[1]);
    else
      condition_ = condition_ && equal(x_channels, group * w[1]);
    return group;
  }

  // Padding of one axis, the same on both sides: TASO's 'same' is cuDNN's, (k - 1) / 2 for the odd kernels that it has.
  Index same_pad(const Index& kernel, const std::string& name) {
    if (shapes_.is_open(kernel)) shapes_.make_equal(kernel, Index(2) * symbol_here(name) + Index(1));
    const Index twice = shapes_.resolve(kernel) - Index(1);
    if (auto half = exact_quotient(twice, Index(2))) return *half;
    return floor_div(twice, Index(2));
  }

  Result<Attributes> window(const TasoOp& op, const Index& kernel_h, const Index& kernel_w) {
    GOPT_ASSIGN_OR_RETURN(const int64_t stride_h, parameter(op, "stride_h", 1, 1024));
    GOPT_ASSIGN_OR_RETURN(const int64_t stride_w, parameter(op, "stride_w", 1, 1024));
    GOPT_ASSIGN_OR_RETURN(const int64_t padding, parameter(op, "pad", kTasoSame, kTasoValid));
    Attributes attributes;
    attributes["strides"] = std::vector<Index>{Index(stride_h), Index(stride_w)};
    if (padding == kTasoSame) {
      const Index h = same_pad(kernel_h, "p"), w = same_pad(kernel_w, "q");
      attributes["pads"] = std::vector<Index>{h, w, h, w};
    }
    return attributes;
  }

  // The kernel's size is that of the weight: TASO reads none from the rule.
  Made convolution(const TasoOp& op, std::vector<TasoTensor>& in) {
    GOPT_RETURN_IF_ERROR(expect_rank(in, 0, 4, "as it is an image or a kernel"));
    GOPT_RETURN_IF_ERROR(expect_rank(in, 1, 4, "as it is an image or a kernel"));
    const Shape &x = shape_of(in[0]), &w = shape_of(in[1]);
    GOPT_ASSIGN_OR_RETURN(Attributes attributes, window(op, w[2], w[3]));
    if (auto group = op.find("group"); group && *group > 0) {
      attributes["group"] = Index(*group);
      shapes_.make_equal(x[1], Index(*group) * w[1]);
    } else {
      attributes["group"] = groups(x[1], in[1]);
    }
    if (!is_target_ && op.inputs[1].node < 0)
      shapes_.groups_of[op.inputs[1].node] = std::get<Index>(attributes["group"]);
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::Conv, {in[0].value, in[1].value}, attributes));
    made.axes[0] = in[0].axes[0];
    made.axes[1] = in[1].axes[0];
    return activated(op, std::move(made));
  }

  Made pool(const TasoOp& op, std::vector<TasoTensor>& in) {
    GOPT_RETURN_IF_ERROR(expect_rank(in, 0, 4, "as it is an image or a kernel"));
    GOPT_ASSIGN_OR_RETURN(const int64_t kernel_h, parameter(op, "kernel_h", 1, 1024));
    GOPT_ASSIGN_OR_RETURN(const int64_t kernel_w, parameter(op, "kernel_w", 1, 1024));
    GOPT_ASSIGN_OR_RETURN(Attributes attributes, window(op, Index(kernel_h), Index(kernel_w)));
    attributes["kernel_shape"] = std::vector<Index>{Index(kernel_h), Index(kernel_w)};
    const bool average = op.name == "pool2d_avg";
    // TASO's rules were generated and checked with padding counted.
    if (average) attributes["count_include_pad"] = Index(1);
    GOPT_ASSIGN_OR_RETURN(TasoTensor made,
                          apply(average ? OpKind::AveragePool : OpKind::MaxPool, {in[0].value}, attributes));
    for (size_t axis = 0; axis < 2; axis++) made.axes[axis] = in[0].axes[axis];
    return activated(op, std::move(made));
  }

  // ---- movement ----

  Made concat(const TasoOp& op, std::vector<TasoTensor>& in) {
    if (in.empty()) return Error{"it has no inputs"};
    const size_t rank = shape_of(in[0]).size();
    GOPT_ASSIGN_OR_RETURN(const int64_t axis, parameter(op, "axis", 0, static_cast<int64_t>(rank) - 1));
    if (auto count = op.find("num_inputs"); count && *count != static_cast<int64_t>(in.size()))
      return Error{"'num_inputs' says " + std::to_string(*count) + " of " + std::to_string(in.size()) + " inputs"};
    std::vector<Value> inputs;
    std::vector<Parts> pieces;
    for (size_t i = 0; i < in.size(); i++) {
      const TasoTensor& tensor = in[i];
      GOPT_RETURN_IF_ERROR(expect_rank(in, i, rank, "as many as input 0"));
      for (size_t k = 0; k < rank; k++)
        if (static_cast<int64_t>(k) != axis) shapes_.make_equal(shape_of(in[0])[k], shape_of(tensor)[k]);
      inputs.push_back(tensor.value);
      pieces.push_back(tensor.axes[static_cast<size_t>(axis)]);
    }
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::Concat, inputs, {{"axis", Index(axis)}}));
    for (size_t k = 0; k < rank; k++) made.axes[k] = in[0].axes[k];
    made.axes[static_cast<size_t>(axis)] = {shape_of(made)[static_cast<size_t>(axis)], std::move(pieces)};
    return std::vector{std::move(made)};
  }

  // Where the axis was concatenated of as many parts, it is split there; else evenly.
  Made split(const TasoOp& op, std::vector<TasoTensor>& in) {
    const size_t rank = shape_of(in[0]).size();
    GOPT_ASSIGN_OR_RETURN(const int64_t axis, parameter(op, "axis", 0, static_cast<int64_t>(rank) - 1));
    GOPT_ASSIGN_OR_RETURN(const int64_t count, parameter(op, "num_outputs", 1, 64));
    Parts own = in[0].axes[static_cast<size_t>(axis)];
    if (static_cast<int64_t>(own.pieces.size()) != count) {
      const Index even = floor_div(own.size, Index(count));
      own.pieces.assign(static_cast<size_t>(count), Parts{even, {}});
    }
    std::vector<Index> sizes;
    for (const Parts& piece : own.pieces) sizes.push_back(shapes_.resolve(piece.size));
    GOPT_ASSIGN_OR_RETURN(
        const NodePtr node,
        builder_.add(OpKind::Split, {in[0].value}, {{"axis", Index(axis)}, {"split", sizes}}, static_cast<int>(count)));
    std::vector<TasoTensor> made;
    for (int k = 0; k < static_cast<int>(count); k++) {
      made.push_back(plain(Value{node, k}));
      made.back().axes = in[0].axes;
      made.back().axes[static_cast<size_t>(axis)] = own.pieces[static_cast<size_t>(k)];
    }
    return made;
  }

  // The permutation is a number whose digits, to the base of the rank, are its images.
  Made transpose(const TasoOp& op, std::vector<TasoTensor>& in) {
    const auto rank = static_cast<int64_t>(shape_of(in[0]).size());
    GOPT_ASSIGN_OR_RETURN(int64_t code, parameter(op, "perm", 0, 1'000'000));
    std::vector<Index> perm(static_cast<size_t>(rank));
    std::set<int64_t> seen;
    for (size_t k = perm.size(); k-- > 0; code /= rank) {
      perm[k] = Index(code % rank);
      seen.insert(code % rank);
    }
    if (code != 0 || static_cast<int64_t>(seen.size()) != rank)
      return Error{"'perm' is no permutation of " + std::to_string(rank) + " axes"};
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::Transpose, {in[0].value}, {{"perm", perm}}));
    for (size_t k = 0; k < perm.size(); k++) made.axes[k] = in[0].axes[static_cast<size_t>(perm[k].constant())];
    return std::vector{std::move(made)};
  }

  // ---- kernels ----

  // Zeros around a kernel, up to a size that is given or another kernel's.
  Made enlarge(const TasoOp& op, std::vector<TasoTensor>& in) {
    if (in.empty() || in.size() > 2) return Error{"it has " + std::to_string(in.size()) + " inputs, not one or two"};
    GOPT_RETURN_IF_ERROR(expect_rank(in, 0, 4, "as it is an image or a kernel"));
    std::vector<Index> before, after;
    for (size_t axis : {2, 3}) {
      Index wanted;
      if (in.size() == 2) {
        GOPT_RETURN_IF_ERROR(expect_rank(in, 1, 4, "as it is an image or a kernel"));
        wanted = shape_of(in[1])[axis];
      } else {
        GOPT_ASSIGN_OR_RETURN(const int64_t size, parameter(op, axis == 2 ? "kernel_h" : "kernel_w", 1, 1024));
        wanted = Index(size);
      }
      const Index missing = wanted - shape_of(in[0])[axis];
      if (missing.is_constant() && missing.constant() < 0) wanted = shape_of(in[0])[axis];
      const Index border = wanted - shape_of(in[0])[axis];
      condition_ = condition_ && at_least(border, Index(0));
      before.push_back(exact_quotient(border, Index(2)).value_or(floor_div(border, Index(2))));
      after.push_back(border - before.back());
    }
    const std::vector<Index> pads{Index(0), Index(0), before[0], before[1], Index(0), Index(0), after[0], after[1]};
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::Pad, {in[0].value}, {{"pads", pads}}));
    for (size_t axis = 0; axis < 2; axis++) made.axes[axis] = in[0].axes[axis];
    return std::vector{std::move(made)};
  }

  // A kernel of one channel a group whose elements are one over their number.
  Made averaging(const TasoOp& op, std::vector<TasoTensor>& in) {
    if (!in.empty()) return Error{"it has no inputs"};
    GOPT_ASSIGN_OR_RETURN(const int64_t h, parameter(op, "kernel_h", 1, 64));
    GOPT_ASSIGN_OR_RETURN(const int64_t w, parameter(op, "kernel_w", 1, 64));
    const Index n = shapes_.resolve(symbol_here("n"));
    GOPT_ASSIGN_OR_RETURN(const TasoTensor ones, apply(OpKind::ConstantOfShape, {},
                                                       {{"shape", std::vector<Index>{n, Index(1), Index(h), Index(w)}},
                                                        {"value", scalar(1)}}));
    GOPT_ASSIGN_OR_RETURN(const TasoTensor count,
                          apply(OpKind::ReduceSum, {ones.value}, {{"axes", std::vector<Index>{2, 3}}}));
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::Div, {ones.value, count.value}));
    made.is_constant = true;
    return std::vector{std::move(made)};
  }

  // The identity matrix; a kernel that is it at its centre.
  Made identity(const TasoOp& op, std::vector<TasoTensor>& in) {
    if (!in.empty()) return Error{"it has no inputs"};
    const Index n = shapes_.resolve(symbol_here("n"));
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::ConstantOfShape, {},
                                                 {{"shape", std::vector<Index>{n, n}}, {"value", scalar(1)}}));
    for (int64_t upper : {1, 0}) {
      GOPT_ASSIGN_OR_RETURN(made, apply(OpKind::Trilu, {made.value}, {{"upper", Index(upper)}}));
    }
    if (op.name == "const_imm") return std::vector{std::move(made)};
    GOPT_ASSIGN_OR_RETURN(const int64_t h, parameter(op, "kernel_h", 1, 64));
    GOPT_ASSIGN_OR_RETURN(const int64_t w, parameter(op, "kernel_w", 1, 64));
    GOPT_ASSIGN_OR_RETURN(made, apply(OpKind::Unsqueeze, {made.value}, {{"axes", std::vector<Index>{2, 3}}}));
    const std::vector<Index> pads{0, 0, (h - 1) / 2, (w - 1) / 2, 0, 0, h / 2, w / 2};
    GOPT_ASSIGN_OR_RETURN(made, apply(OpKind::Pad, {made.value}, {{"pads", pads}}));
    made.is_constant = true;
    return std::vector{std::move(made)};
  }
  static Tensor scalar(float value) { return Tensor::from_values<double>(ElementType::Float32, {1}, {value}); }

  Made ones(const TasoOp&, std::vector<TasoTensor>& in) {
    if (!in.empty()) return Error{"it has no inputs"};
    TasoTensor made;
    made.fill = builder_.constant(Tensor::from_values<double>(ElementType::Float32, {}, {1}));
    return std::vector{std::move(made)};
  }

  // Every `count` groups become one: a weight's channels move to the place of its group in the larger one, the rest is
  // zero. The source must have as many groups as that needs, which narrows it.
  Made merge_groups(const TasoOp& op, std::vector<TasoTensor>& in) {
    GOPT_RETURN_IF_ERROR(expect_rank(in, 0, 4, "as it is an image or a kernel"));
    GOPT_ASSIGN_OR_RETURN(const int64_t count, parameter(op, "merge_gconv_count", 1, 8));
    auto known = shapes_.groups_of.find(op.inputs[0].node);
    if (known == shapes_.groups_of.end()) return Error{"no convolution of the source has this weight"};
    const Index group = shapes_.resolve(known->second);
    const auto merged = exact_quotient(group, Index(count));
    if (!merged) {
      shapes_.narrow(group, Index(count) * symbol_here("g"));
      return std::vector{in[0]};  // built again with what is now known
    }
    const Shape w = shape_of(in[0]);
    const auto rows = exact_quotient(w[0], group);
    if (!rows) return Error{"the weight's rows are not so many for each group"};
    std::vector<double> diagonal;
    for (int64_t i = 0; i < count * count; i++) diagonal.push_back(i % (count + 1) == 0 ? 1 : 0);
    const Tensor mask = Tensor::from_values<double>(ElementType::Float32, {1, count, 1, count, 1, 1, 1}, diagonal);
    const std::vector<Index> apart{*merged, count, *rows, 1, w[1], w[2], w[3]};
    const std::vector<Index> together{w[0], Index(count) * w[1], w[2], w[3]};
    GOPT_ASSIGN_OR_RETURN(TasoTensor made, apply(OpKind::Reshape, {in[0].value}, {{"shape", apart}}));
    GOPT_ASSIGN_OR_RETURN(made, apply(OpKind::Mul, {made.value, builder_.constant(mask)}));
    GOPT_ASSIGN_OR_RETURN(made, apply(OpKind::Reshape, {made.value}, {{"shape", together}}));
    made.axes[0] = in[0].axes[0];
    return std::vector{std::move(made)};
  }

  TasoShapes& shapes_;
  bool is_target_;
  GraphBuilder builder_;
  Cond condition_;
  std::map<int, TasoTensor> variables_;
  std::vector<std::vector<TasoTensor>> nodes_;
  size_t position_ = 0;
};

// Builds both sides until no extent changes.
class RuleTranslator {
 public:
  explicit RuleTranslator(const TasoRule& rule) : rule_(rule), ranks_(infer_taso_ranks(rule)) {}

  Result<RewriteRule> run() {
    GOPT_RETURN_IF_ERROR(declare_variables());
    constexpr int kMaxRounds = 200;
    GOPT_ASSIGN_OR_RETURN(Graph left, side(rule_.source, true, kMaxRounds));
    const std::map<int, TensorType> as_source_says = resolved_variables();
    shapes_.freeze();
    // The target's constants have shapes of their own to be found; what they are depends on the source's shapes only.
    GOPT_ASSIGN_OR_RETURN(Graph right, side(rule_.target, false, kMaxRounds));
    open_narrowed(as_source_says);
    GOPT_ASSIGN_OR_RETURN(left, side(rule_.source, true, kMaxRounds));
    GOPT_ASSIGN_OR_RETURN(right, side(rule_.target, false, kMaxRounds));
    RewriteRule rule;
    rule.name = rule_.name;
    for (const auto& [number, type] : resolved_variables())
      rule.variables.push_back({"v" + std::to_string(-number), VariableKind::Activation, type, is_polymorphic_});
    rule.left = std::move(left);
    rule.right = std::move(right);
    rule.condition = condition_;
    rule.origin = "taso " + rule_.name.substr(rule_.name.find('-') + 1);
    GOPT_RETURN_IF_ERROR(check_rule(rule));
    return rule;
  }

 private:
  // A rule of operators that know no rank holds under any axes; where some variable's rank is known, one that is not is
  // taken to be a matrix.
  Status declare_variables() {
    const std::set<int> numbers = variables_of(rule_);
    is_polymorphic_ =
        std::none_of(numbers.begin(), numbers.end(), [&](int number) { return ranks_.of_variable.count(number) > 0; });
    for (const int number : std::set<int, std::greater<>>(numbers.begin(), numbers.end())) {
      TensorType type{ElementType::Float32, Shape{}};
      auto known = ranks_.of_variable.find(number);
      const int rank = is_polymorphic_ ? 0 : known == ranks_.of_variable.end() ? 2 : known->second;
      for (int axis = 0; axis < rank; axis++)
        type.shape->push_back(shapes_.fresh("v" + std::to_string(-number) + "_" + std::to_string(axis)));
      variables_[number] = type;
    }
    if (variables_.empty()) return Error{"there are no variables"};
    return Unit{};
  }

  std::map<int, TensorType> resolved_variables() const {
    std::map<int, TensorType> resolved = variables_;
    for (auto& [number, type] : resolved)
      for (Index& extent : *type.shape) extent = shapes_.resolve(extent);
    return resolved;
  }

  // An extent that the target narrowed is a symbol of its own again, and what it must be is the rule's condition; but
  // an extent that alone binds a symbol stays as it is.
  void open_narrowed(const std::map<int, TensorType>& before) {
    const std::map<int, TensorType> after = resolved_variables();
    std::map<AtomId, int> occurrences;
    for (const auto& [number, type] : after)
      for (const Index& extent : *type.shape) {
        std::set<AtomId> symbols;
        collect_symbols(extent, symbols);
        for (AtomId s : symbols) occurrences[s]++;
      }
    for (const auto& [number, type] : variables_) {
      for (size_t axis = 0; axis < type.shape->size(); axis++) {
        const Index &was = (*before.at(number).shape)[axis], &is = (*after.at(number).shape)[axis];
        std::set<AtomId> symbols;
        collect_symbols(is, symbols);
        const bool binds_alone =
            std::any_of(symbols.begin(), symbols.end(), [&](AtomId s) { return occurrences[s] == 1; });
        if (was == is || binds_alone) continue;
        const Index& extent = (*type.shape)[axis];
        shapes_.reopen(*extent.as_atom());
        condition_ = condition_ && equal(extent, is);
      }
    }
  }

  Result<Graph> side(const std::vector<TasoOp>& ops, bool is_source, int rounds) {
    std::vector<TasoRef> outputs;
    for (const auto& [source, target] : rule_.outputs) outputs.push_back(is_source ? source : target);
    while (rounds-- > 0) {
      shapes_.clear_changed();
      SideBuilder builder(shapes_, variables_, !is_source);
      auto graph = builder.build(ops, outputs).with_context(is_source ? "source" : "target");
      if (shapes_.changed()) continue;
      if (!graph) return graph;
      condition_ = condition_ && builder.condition();
      return graph;
    }
    return Error{"its extents never settle"};
  }

  const TasoRule& rule_;
  TasoRanks ranks_;
  TasoShapes shapes_;
  std::map<int, TensorType> variables_;
  bool is_polymorphic_ = false;
  Cond condition_;
};

}  // namespace

Result<RewriteRule> rule_of_taso(const TasoRule& rule) { return RuleTranslator(rule).run(); }

}  // namespace gopt::rules
