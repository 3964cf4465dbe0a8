// Kernels in launch order, each with the values that it reads and makes, and a buffer for each value.
#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <tuple>

#include "buffers.h"
#include "gopt/buffer_root.h"
#include "gopt/node_attributes.h"
#include "node_work.h"

namespace gopt::planner {

namespace {

class KernelBuilder {
 public:
  explicit KernelBuilder(const Cover& cover) : cover_(cover) {
    plan_.graph = cover.graph;
    plan_.target = cover.options.target;
    device_ = {plan_.target.kind, 0};
  }

  Plan run() {
    choose_output_roots();
    for (uint32_t id = 0; id < cover_.nodes.size(); id++) add_node(id);
    for (size_t i = 0; i < cover_.graph.outputs().size(); i++) finish_output(i);
    return std::move(plan_);
  }

  Plan of_some(const std::vector<uint32_t>& nodes) {
    for (uint32_t id : nodes) {
      const Role role = cover_.nodes[id].role;
      if (role == Role::Convolution || role == Role::MatrixProduct)
        add_library_kernel(id);
      else
        add_node(id);
    }
    return std::move(plan_);
  }

 private:
  // A graph output may be written in place where its root is just that output: one memory, plain, of the same size and
  // type, made here.
  void choose_output_roots() {
    for (size_t i = 0; i < cover_.graph.outputs().size(); i++) {
      const uint32_t value = cover_.index_of(cover_.graph.outputs()[i].value);
      Index offset;
      const uint32_t root = cover_.root_of(value, &offset);
      const ValueCover &v = cover_.values[value], &r = cover_.values[root];
      const Role role = role_of_value(root);
      const bool made = role != Role::Input && role != Role::Weight && role != Role::Unplanned;
      // An image with channels last whose pixels are the output lies as these do.
      const bool is_whole = lies_as(r.layout, Layout(), r.dims) ||
                            (root != value && r.layout.is_channels_last() && !r.layout.is_in_parts());
      if (made && offset == Index(0) && v.elements() == r.elements() && lies_as(v.layout, Layout(), v.dims) &&
          is_whole && r.stored == v.element && !output_roots_.contains(root))
        output_roots_[root] = i;
    }
  }

  Role role_of_value(uint32_t value) const {
    auto after = std::upper_bound(cover_.nodes.begin(), cover_.nodes.end(), value,
                                  [](uint32_t v, const NodeCover& n) { return v < n.first_value; });
    return (after - 1)->role;
  }

  // ---- buffers ----

  BufferId add_buffer(Buffer buffer) {
    plan_.buffers.push_back(std::move(buffer));
    return BufferId{static_cast<uint32_t>(plan_.buffers.size() - 1)};
  }

  Buffer describe_buffer(const Value& value, Layout layout, ElementType element) const {
    const ValueCover& v = cover_.of(value);
    Buffer b{value, v.dims, element, layout.with_line(layout.line()), device_};
    b.size_bytes = layout.bytes(v.dims, element);
    return b;
  }

  // Of a part of longer lines, with the line.
  Layout layout_in_memory(uint32_t value) const {
    const ValueCover &v = cover_.values[value], &root = cover_.values[cover_.root_of(value)];
    const bool is_part = v.layout.is_in_parts() && root.layout.is_in_parts() && root.dims[1] != v.dims[1];
    return v.layout.with_line(is_part ? root.dims[1] : 0);
  }

  // The buffer of a value in the layout and type that the cover gave it.
  BufferId buffer_of(const Value& value) {
    const uint32_t index = cover_.index_of(value);
    if (auto it = buffers_.find(index); it != buffers_.end()) return it->second;
    const ValueCover& v = cover_.values[index];
    Buffer b = describe_buffer(value, layout_in_memory(index), v.stored);
    if (v.parent >= 0) {
      const Value parent = value_at(static_cast<uint32_t>(v.parent));
      b.is_view = true;
      b.parent = buffer_of(parent);
      b.inside = v.parent_offset * Index(static_cast<int64_t>(size_bytes(cover_.of(parent).stored)));
      b.offset = evaluate(b.inside, cover_.sizes).value();
    } else if (output_roots_.contains(index)) {
      b.place = BufferPlace::Output;
      b.offset = static_cast<int64_t>(output_roots_[index]);
    } else if (value.node->is(OpKind::Input)) {
      b.place = BufferPlace::Input;
      const auto& inputs = cover_.graph.inputs();
      b.offset = std::find(inputs.begin(), inputs.end(), value) - inputs.begin();
    } else if (cover_.nodes[cover_.id_of(value.node.get())].weight_only) {
      b.place = BufferPlace::Weight;
      b.offset = plan_weights_;
      plan_weights_ += place_of_weight(b.size_bytes);
    }
    return buffers_[index] = add_buffer(std::move(b));
  }

  Value value_at(uint32_t index) const {
    auto after = std::upper_bound(cover_.nodes.begin(), cover_.nodes.end(), index,
                                  [](uint32_t v, const NodeCover& n) { return v < n.first_value; });
    const auto id = static_cast<uint32_t>(after - 1 - cover_.nodes.begin());
    return {cover_.graph.nodes()[id], static_cast<int>(index - cover_.nodes[id].first_value)};
  }

  // The buffer of a value in a given layout and type, with a kernel that converts it the first time. Weights of another
  // type are written so into the file.
  BufferId buffer_in(const Value& value, Layout layout, ElementType element) {
    layout = layout.with_line(0);
    const bool is_weight = cover_.nodes[cover_.id_of(value.node.get())].weight_only;
    if (is_weight && cover_.of(value).stored != element) return weight_in(value, layout, element);
    const BufferId own = buffer_of(value);
    if (lies_as(plan_.buffer(own).layout, layout, cover_.of(value).dims) && plan_.buffer(own).element == element)
      return own;
    const Converted key{cover_.index_of(value), layout, element};
    if (auto it = converted_.find(key); it != converted_.end()) return it->second;
    const BufferId converted = add_buffer(describe_buffer(value, layout, element));
    add_reorder(value, own, converted);
    return converted_[key] = converted;
  }

  void add_reorder(const Value& value, BufferId from, BufferId to) {
    Kernel k{KernelKind::Reorder};
    k.inputs = k.outputs = {value};
    k.input_buffers = {from};
    k.output_buffers = {to};
    add_kernel(std::move(k));
  }

  // ---- kernels ----

  static std::string operator_in_name(const Node& node) {
    std::string name = node.opaque ? node.opaque->op_type : op_info(node.op).name;
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c); }, '_');
    return name;
  }

  static std::string names_of_nodes(const Kernel& kernel) {
    constexpr size_t kNamed = 4;
    std::string names;
    for (size_t i = 0; i < std::min(kernel.nodes.size(), kNamed); i++)
      names += "_" + operator_in_name(*kernel.nodes[i]);
    if (kernel.nodes.size() > kNamed) names += "_" + std::to_string(kernel.nodes.size() - kNamed) + "more";
    return names;
  }

  void add_kernel(Kernel kernel) {
    kernel.name = "k" + std::to_string(plan_.kernels.size());
    if (kernel.kind == KernelKind::Reorder) kernel.name += "_reorder";
    kernel.name += kernel.kind == KernelKind::Attention ? "_Attention" : names_of_nodes(kernel);
    kernel.device = device_;
    plan_.kernels.push_back(std::move(kernel));
  }

  void add_node(uint32_t id) {
    const NodeCover& own = cover_.nodes[id];
    // A library kernel runs where its last epilogue stands: what that adds is ready then.
    if (own.role == Role::Convolution || own.role == Role::MatrixProduct) {
      if (own.epilogues.empty()) add_library_kernel(id);
    } else if (own.role == Role::Epilogue) {
      if (cover_.nodes[own.owner].epilogues.back().node == id) add_library_kernel(own.owner);
    } else if (own.role == Role::Attention) {
      add_attention_kernel(id);
    } else if (own.role == Role::Pooling) {
      add_pooling_kernel(cover_.graph.nodes()[id]);
    } else if (own.role == Role::Whole) {
      add_whole(cover_.graph.nodes()[id]);
    } else if (own.role == Role::External) {
      add_external_kernel(cover_.graph.nodes()[id]);
    } else if (own.role == Role::Generated) {
      const NodePtr& node = cover_.graph.nodes()[id];
      for (size_t o = 0; o < node->outputs.size(); o++) {
        const ValueCover& value = cover_.values[own.first_value + o];
        if ((value.is_output || !value.uses.empty()) && value.count() > 0)
          add_generated_kernel({node, static_cast<int>(o)});
      }
    }
  }

  Layout library_input_layout(uint32_t id, const Value& x) const {
    const ValueCover& v = cover_.of(x);
    if (cover_.nodes[id].role == Role::MatrixProduct) return Layout();
    const Layout out = cover_.values[cover_.nodes[id].first_value].layout;
    if (cover_.nodes[id].integers) return Layout::channels_last();
    if (!v.layout.is_plain() || v.dims[1] > kFewChannels) return out;
    // The first convolution reads a plain image of few channels as it is.
    if (out.is_blocked()) return Layout();
    return fills_positions(id, v) ? Layout::blocked(kFewChannels) : out;
  }

  // Tiles copy an image's channels by four: three are filled up.
  bool fills_positions(uint32_t id, const ValueCover& image) const {
    const Target& target = plan_.target;
    const bool is_last = cover_.values[cover_.nodes[id].first_value].layout.is_channels_last();
    return target.kind == TargetKind::Cuda && is_last && image.dims[1] == kFewChannels - 1 &&
           cover_.node(id).is(OpKind::Conv) && int_or(cover_.node(id), "group", 1) == 1 &&
           !target.without.contains("kernel:tiles");
  }

  // A convolution on CUDA reads its weights in the order of its images, a product a column at a time; those on the CPU
  // take theirs as they are and arrange them when the model is created.
  Layout layout_of_weights(uint32_t id, const Value& weights, ElementType element, const Layout& images) const {
    if (plan_.target.kind != TargetKind::Cuda) return {};
    if (cover_.nodes[id].role == Role::Convolution) return images.with_line(0);
    return is_written_by_columns(weights, element) ? Layout::transposed() : Layout();
  }

  // One matrix, read by such products alone. Lines of whole chunks stay where columns would have none.
  bool is_written_by_columns(const Value& weights, ElementType element) const {
    if (plan_.target.without.contains(kTransposedWeights) ||
        !cover_.nodes[cover_.id_of(weights.node.get())].weight_only)
      return false;
    const ValueCover& own = cover_.of(weights);
    if (own.dims.size() < 2 || own.is_output) return false;
    const int64_t columns = own.dims.back(), depth = own.dims[own.dims.size() - 2];
    const int64_t chunk = 16 / static_cast<int64_t>(size_bytes(element));
    if (own.count() != columns * depth || (columns % chunk == 0 && depth % chunk != 0)) return false;
    return std::ranges::all_of(own.uses, [&](const Use& use) {
      const Node& user = cover_.node(use.node);
      return cover_.nodes[use.node].role == Role::MatrixProduct && use.position == 1 &&
             !(user.is(OpKind::Gemm) && int_or(user, "transB", 0) != 0);
    });
  }

  // Of images that are read in this layout. Weights that are computed are brought into it in each run.
  void read_weights(uint32_t id, const Value& weights, ElementType element, const Layout& images, Kernel& kernel) {
    const Layout layout = layout_of_weights(id, weights, element, images);
    const bool is_made = layout.is_plain() || !cover_.nodes[cover_.id_of(weights.node.get())].weight_only;
    kernel.inputs.push_back(weights);
    kernel.input_buffers.push_back(is_made ? buffer_in(weights, layout, element) : weight_in(weights, layout, element));
  }

  // A weight is written into the file in any order and type that somebody wants.
  BufferId weight_in(const Value& weights, Layout layout, ElementType element) {
    const Converted key{cover_.index_of(weights), layout, element};
    if (auto it = converted_.find(key); it != converted_.end()) return it->second;
    Buffer b = describe_buffer(weights, layout, element);
    b.place = BufferPlace::Weight;
    b.offset = plan_weights_;
    plan_weights_ += place_of_weight(b.size_bytes);
    return converted_[key] = add_buffer(std::move(b));
  }

  void add_library_kernel(uint32_t id) {
    const NodeCover& own = cover_.nodes[id];
    const NodePtr& node = cover_.graph.nodes()[id];
    Kernel k{own.role == Role::Convolution ? KernelKind::Convolution : KernelKind::MatrixProduct};
    k.nodes = {node};
    const LibraryTypes types = library_types(cover_, id);
    auto read = [&](const Value& value, Layout layout, ElementType element) {
      k.inputs.push_back(value);
      k.input_buffers.push_back(buffer_in(value, layout, element));
      return k.input_buffers.back();
    };
    const auto read_plain = [&](const Value& value) {
      read(value, Layout(), cover_.of(value).element);
      return static_cast<int>(k.inputs.size()) - 1;
    };
    if (own.integers) {
      k.integers = own.integers->operands;
      read(own.integers->left, library_input_layout(id, own.integers->left), cover_.of(own.integers->left).element);
      read_plain(own.integers->right);
      if (own.integers->right_scale) k.integers->right_scale = read_plain(own.integers->right_scale);
      if (own.integers->right_zero) k.integers->right_zero = read_plain(own.integers->right_zero);
      if (own.integers->left_zero) k.integers->left_zero = read_plain(own.integers->left_zero);
    } else {
      const Value& left = own.has_prologue ? cover_.prologues.at(id).source : node->inputs[0];
      const Layout images = library_input_layout(id, left);
      read(left, images, types.operands);
      if (own.quantized) {
        read_quantized(*own.quantized, k);
      } else {
        read_weights(id, node->inputs[1], types.operands, images, k);
      }
    }
    Value result{node, 0};
    if (node->inputs.size() > 2 && node->inputs[2]) {
      const ValueCover& c = cover_.of(node->inputs[2]);
      const Shape& made = cover_.of(result).shape;
      const bool vector = c.elements() == (k.kind == KernelKind::Convolution ? made[1] : made.back());
      k.epilogues.push_back({vector ? Epilogue::Kind::Bias : Epilogue::Kind::AddTensor, node,
                             read(node->inputs[2], c.layout, vector ? types.bias : types.result)});
    }
    for (const EpilogueStep& step : own.epilogues) {
      Epilogue e{step.kind, cover_.graph.nodes()[step.node]};
      if (e.kind == Epilogue::Kind::Activation) e.activation = step.activation;
      for (const uint32_t inner : step.inner) k.nodes.push_back(cover_.graph.nodes()[inner]);
      k.nodes.push_back(e.node);
      result = {e.node, 0};
      const Layout layout = cover_.of(result).layout;
      const bool is_bias = step.kind == Epilogue::Kind::Bias;
      if (step.operand >= 0) {
        const Value& operand = e.node->inputs[step.operand];
        if (own.integers && !is_bias)  // under Dequantize
          e.operand = read(operand.node->inputs[0], layout, cover_.of(operand.node->inputs[0]).element);
        else
          e.operand = read(operand, is_bias ? Layout() : layout, is_bias ? types.bias : types.result);
      }
      k.epilogues.push_back(e);
    }
    if (own.has_prologue) add_prologue(cover_.prologues.at(id), k);
    k.outputs = {result};
    k.output_buffers = {buffer_of(result)};
    add_kernel(std::move(k));
  }

  // As they are; on CUDA those of a column one after another, in chunks.
  void read_quantized(const QuantizedCover& own, Kernel& kernel) {
    kernel.quantized = own.operands;
    const bool is_cuda = cover_.options.target.kind == TargetKind::Cuda;
    const auto read = [&](const Value& value, ElementType type, int bits) {
      const bool is_turned = is_cuda && !own.operands.is_transposed && cover_.of(value).dims.size() == 2;
      Layout layout = is_turned ? Layout::transposed() : Layout();
      if (is_cuda && bits > 0) layout = layout.in_chunks(bits);
      kernel.inputs.push_back(value);
      kernel.input_buffers.push_back(is_cuda ? weight_in(value, layout, type) : buffer_in(value, layout, type));
      return static_cast<int>(kernel.inputs.size()) - 1;
    };
    const auto type_of = [&](const Value& value) { return cover_.of(value).element; };
    read(own.numbers, type_of(own.numbers), own.operands.bits);
    kernel.quantized->scale = read(own.scale, is_cuda ? own.scale_type : type_of(own.scale), 0);
    if (own.zero) kernel.quantized->zero = read(own.zero, type_of(own.zero), 0);
  }

  // What it reads, as it lies, behind all else that the kernel reads.
  void add_prologue(const PrologueCover& own, Kernel& kernel) {
    const auto first = static_cast<int>(kernel.inputs.size());
    kernel.prologue = own.prologue;
    for (int* number : {&kernel.prologue->scale, &kernel.prologue->shift, &kernel.prologue->mean,
                        &kernel.prologue->variance, &kernel.prologue->gates})
      if (*number >= 0) *number += first;
    for (const Value& operand : own.operands) {
      kernel.inputs.push_back(operand);
      kernel.input_buffers.push_back(buffer_of(operand));
    }
    for (const uint32_t node : own.nodes) kernel.nodes.push_back(cover_.graph.nodes()[node]);
  }

  void add_attention_kernel(uint32_t id) {
    const AttentionCover& own = cover_.attentions.at(id);
    const LibraryTypes types = library_types(cover_, id);
    Kernel k{KernelKind::Attention};
    k.attention = own.attention;
    for (const uint32_t node : own.nodes) k.nodes.push_back(cover_.graph.nodes()[node]);
    for (const Value& operand : {own.query, own.key, own.value}) {
      k.inputs.push_back(operand);
      k.input_buffers.push_back(buffer_in(operand, Layout(), types.operands));
    }
    const bool is_on_cpu = cover_.options.target.kind == TargetKind::Cpu;
    for (const Value& added : {own.mask, own.bias}) {
      if (!added) continue;
      k.inputs.push_back(added);
      k.input_buffers.push_back(buffer_in(added, Layout(), is_on_cpu ? ElementType::Float32 : cover_.of(added).stored));
    }
    if (own.choice) {
      k.inputs.push_back(own.choice);
      k.input_buffers.push_back(buffer_in(own.choice, Layout(), cover_.of(own.choice).stored));
    }
    k.outputs = {own.result};
    k.output_buffers = {buffer_of(own.result)};
    add_kernel(std::move(k));
  }

  void add_pooling_kernel(const NodePtr& node) {
    Kernel k{KernelKind::Pooling};
    k.nodes = {node};
    k.inputs = {node->inputs[0]};
    k.input_buffers = {buffer_in(node->inputs[0], Layout(), cover_.of(node->inputs[0]).stored)};
    k.outputs = {{node, 0}};
    k.output_buffers = {buffer_of(k.outputs[0])};
    add_kernel(std::move(k));
  }

  // Of plain tensors, as far as the node has operands and its results are read.
  void add_whole(const NodePtr& node) {
    Kernel k{node->is_recurrence() ? KernelKind::Recurrence : KernelKind::RowFunction};
    k.nodes = {node};
    for (const Value& input : node->inputs) {
      if (!input) continue;
      k.inputs.push_back(input);
      k.input_buffers.push_back(buffer_in(input, Layout(), cover_.of(input).element));
    }
    for (size_t o = 0; o < node->outputs.size(); o++) {
      const Value output{node, static_cast<int>(o)};
      if (!cover_.of(output).is_output && cover_.of(output).uses.empty()) continue;
      k.outputs.push_back(output);
      k.output_buffers.push_back(buffer_of(output));
    }
    add_kernel(std::move(k));
  }

  // A function takes and gives plain tensors of the graph's types; what is empty is not read.
  void add_external_kernel(const NodePtr& node) {
    Kernel k{KernelKind::External};
    k.nodes = {node};
    for (const Value& input : node->inputs) {
      if (!input || cover_.of(input).is_empty() || std::ranges::count(k.inputs, input) > 0) continue;
      k.inputs.push_back(input);
      k.input_buffers.push_back(buffer_in(input, Layout(), cover_.of(input).element));
    }
    for (size_t o = 0; o < node->outputs.size(); o++) {
      const Value output{node, static_cast<int>(o)};
      if (!is_given_to_function(cover_, output)) continue;  // nobody reads it
      k.outputs.push_back(output);
      k.output_buffers.push_back(buffer_of(output));
    }
    add_kernel(std::move(k));
  }

  void add_generated_kernel(const Value& result) {
    Kernel k{KernelKind::Generated};
    std::set<uint32_t> covered;
    std::set<uint32_t> seen;
    collect(result, k, covered, seen);
    for (uint32_t id : covered) k.nodes.push_back(cover_.graph.nodes()[id]);
    k.outputs = {result};
    k.output_buffers = {buffer_of(result)};
    add_kernel(std::move(k));
  }

  void collect(const Value& value, Kernel& k, std::set<uint32_t>& covered, std::set<uint32_t>& seen) {
    const uint32_t id = cover_.id_of(value.node.get());
    if (!covered.insert(id).second) return;
    for (size_t i = 0; i < value.node->inputs.size(); i++) {
      const Value& in = value.node->inputs[i];
      if (!in || (is_small_constant(in) && !work_of(*value.node).is_index[i])) continue;
      const NodeCover& maker = cover_.nodes[cover_.id_of(in.node.get())];
      if (maker.role == Role::Inlined) {
        collect(in, k, covered, seen);
      } else if (!op_info(value.node->op).has(kShapeOnly) && seen.insert(cover_.index_of(in)).second) {
        k.inputs.push_back(in);
        k.input_buffers.push_back(is_transposed_weight(*value.node, i) ? transposed_buffer(in) : buffer_of(in));
      }
    }
  }

  // The weights of Gemm(transB) in loops of ours: the loops run along memory when they lie the other way around.
  bool is_transposed_weight(const Node& node, size_t position) const {
    if (plan_.target.kind != TargetKind::Cpu || !node.is(OpKind::Gemm) || position != 1) return false;
    const auto transposed = node.attributes.find("transB");
    if (transposed == node.attributes.end() || std::get<Index>(transposed->second) == Index(0)) return false;
    const Value& weights = node.inputs[1];
    return cover_.nodes[cover_.id_of(weights.node.get())].weight_only && cover_.of(weights).uses.size() == 1;
  }

  BufferId transposed_buffer(const Value& weights) {
    const BufferId id = buffer_of(weights);
    plan_.buffers[static_cast<uint32_t>(id)].layout = Layout::transposed();
    return id;
  }

  void finish_output(size_t i) {
    const Value& value = cover_.graph.outputs()[i].value;
    const auto root = output_roots_.find(cover_.root_of(cover_.index_of(value)));
    if (root != output_roots_.end() && root->second == i) {
      buffer_of(value);
      return;
    }
    if (role_of_value(cover_.index_of(value)) == Role::Unplanned || cover_.of(value).is_empty()) return;
    if (cover_.options.has_free_borders) return;
    Buffer out = describe_buffer(value, Layout(), cover_.of(value).element);
    out.place = BufferPlace::Output;
    out.offset = static_cast<int64_t>(i);
    const BufferId from = buffer_of(value), to = add_buffer(std::move(out));
    add_reorder(value, from, to);
  }

  const Cover& cover_;
  Plan plan_;
  Device device_;
  int64_t plan_weights_ = 0;
  std::map<uint32_t, size_t> output_roots_;  // value to number of the graph output
  std::map<uint32_t, BufferId> buffers_;
  using Converted = std::tuple<uint32_t, Layout, ElementType>;
  std::map<Converted, BufferId> converted_;
};

}  // namespace

Plan build_kernels(const Cover& cover) { return KernelBuilder(cover).run(); }
Plan build_kernels_of(const Cover& cover, const std::vector<uint32_t>& nodes) {
  return KernelBuilder(cover).of_some(nodes);
}

}  // namespace gopt::planner
