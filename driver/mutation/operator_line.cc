#include "mutation/operator_line.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "gopt/node_attributes.h"

namespace gopt::driver {
namespace {

using Texts = std::map<std::string, std::string>;  // of attributes, by name

std::string list_text(const std::vector<int64_t>& numbers) { return fmt::format("[{}]", fmt::join(numbers, ",")); }

std::string extents_text(const std::vector<int64_t>& extents, ExtentNames& names) {
  std::vector<std::string> texts;
  for (size_t k = 0; k < extents.size(); k++)
    texts.push_back(k == 0 && extents[0] == 1 ? names.text(ExtentRole::Batch, 1) : names.text_of_any(extents[k]));
  return fmt::format("[{}]", fmt::join(texts, ","));
}

// Whether numbers of the attribute are extents of tensors, which symbols stand for.
bool says_extents(const std::string& attribute) { return attribute == "group" || attribute == "split"; }

std::optional<std::string> text_of(const std::string& name, const AttributeValue& value, const Node& node,
                                   ExtentNames& names) {
  if (name == "shape") return extents_text(node.outputs.front().static_shape(), names);
  if (const auto* index = std::get_if<Index>(&value)) {
    if (!index->is_constant()) return std::nullopt;
    return says_extents(name) ? names.text_of_any(index->constant()) : std::to_string(index->constant());
  }
  if (std::holds_alternative<std::vector<Index>>(value)) {
    const std::vector<int64_t> numbers = ints_or(node, name.c_str(), {});
    return says_extents(name) ? extents_text(numbers, names) : list_text(numbers);
  }
  if (const auto* number = std::get_if<double>(&value)) return fmt::format("{}", *number);
  if (const auto* word = std::get_if<std::string>(&value)) return *word;
  return std::nullopt;
}

std::optional<Texts> texts_of(const Node& node, ExtentNames& names) {
  if (!has_number_attributes(node)) return std::nullopt;
  Texts texts;
  for (const auto& [name, value] : node.attributes) {
    const auto text = text_of(name, value, node, names);
    if (!text) return std::nullopt;
    if (!text->empty()) texts[name] = *text;
  }
  return texts;
}

class OperatorLines {
 public:
  OperatorLines(const Node& node, size_t weights_from, Texts texts, ExtentNames& names)
      : node_(node), weights_from_(weights_from), texts_(std::move(texts)), names_(names) {}

  std::vector<std::string> run() {
    add(texts_);
    if (is_window(node_)) add_windows();
    if (const auto counted = texts_.find("count_include_pad"); counted != texts_.end() && has_pads(node_))
      add_with({{"count_include_pad", counted->second == "0" ? "1" : "0"}});
    if (texts_.contains("perm")) add_with({{"perm", list_text(inverse(ints_or(node_, "perm", {})))}});
    if (texts_.contains("shape") && node_.inputs.size() == 1)
      add_with({{"shape", extents_text(node_.inputs[0].type().static_shape(), names_)}});
    return std::move(lines_);
  }

 private:
  void add(const Texts& texts) {
    const OpInfo& info = op_info(node_.op);
    std::string line = "op " + info.name + fmt::format(" inputs={}", node_.inputs.size());
    const bool is_exchangeable = node_.inputs.size() == 2 && info.has(kCommutative);
    if (weights_from_ > 0 && weights_from_ < node_.inputs.size() && !is_exchangeable)
      line += fmt::format(" weights-from={}", weights_from_);
    if (info.outputs < 0) line += fmt::format(" outputs={}", node_.outputs.size());
    for (const auto& [name, text] : texts) line += fmt::format(" {}={}", name, text);
    lines_.push_back(std::move(line));
  }
  void add_with(const Texts& changes) {
    Texts texts = texts_;
    for (const auto& [name, text] : changes) texts[name] = text;
    add(texts);
  }

  void add_windows() {
    const std::vector<int64_t> pads = ints_or(node_, "pads", {}), dilations = ints_or(node_, "dilations", {});
    const size_t axes = dilations.size();
    if (has_pads(node_)) {
      add_with({{"pads", list_text(std::vector<int64_t>(pads.size(), 0))}});
      std::vector<int64_t> of_all(2 * (axes + 2), 0);
      for (size_t k = 0; k < axes; k++) of_all[2 + k] = pads[k], of_all[axes + 4 + k] = pads[axes + k];
      lines_.push_back("op Pad pads=" + list_text(of_all));
    }
    if (std::ranges::all_of(dilations, [](int64_t d) { return d == 1; })) return;
    std::vector<int64_t> dense_pads;
    for (size_t k = 0; k < pads.size(); k++) {
      if (pads[k] % dilations[k % axes] != 0) return;
      dense_pads.push_back(pads[k] / dilations[k % axes]);
    }
    const std::string ones = list_text(std::vector<int64_t>(axes, 1));
    add_with({{"dilations", ones}, {"pads", list_text(dense_pads)}});
    add_moves_into_batch(dilations);
  }

  // Every so manieth place along each axis is an image of its own, and back: a composite each.
  void add_moves_into_batch(const std::vector<int64_t>& steps) {
    const std::vector<int64_t> in = node_.inputs[0].type().static_shape(), out = node_.outputs[0].static_shape();
    if (!std::equal(in.begin() + 2, in.end(), out.begin() + 2, out.end())) return;
    std::vector<std::string> quotients, wholes;
    int64_t images = 1;
    for (size_t k = 0; k < steps.size(); k++) {
      const auto quotient = names_.quotient(ExtentRole::Spatial, in[k + 2], steps[k]);
      if (!quotient) return;
      quotients.push_back(*quotient);
      wholes.push_back(names_.text(ExtentRole::Spatial, in[k + 2]));
      images *= steps[k];
    }
    const std::string batch = names_.text(ExtentRole::Batch, in[0]);
    const std::string there = step_text(names_.text_of_any(in[1]), batch, images, steps, quotients);
    lines_.push_back("composite SpaceToBatch\n" + there);
    lines_.push_back("composite BatchToSpace\n" +
                     back_text(names_.text_of_any(out[1]), batch, steps, quotients, wholes));
  }
  static std::string step_text(const std::string& channels, const std::string& batch, int64_t images,
                               const std::vector<int64_t>& steps, const std::vector<std::string>& quotients) {
    std::string apart = batch + "," + channels;
    std::vector<size_t> perm;
    for (size_t k = 0; k < steps.size(); k++) {
      apart += fmt::format(",{},{}", quotients[k], steps[k]);
      perm.push_back(2 * k + 3);
    }
    perm.insert(perm.end(), {0, 1});
    for (size_t k = 0; k < steps.size(); k++) perm.push_back(2 * k + 2);
    return fmt::format(
        "step Reshape in0 shape=[{}]\nstep Transpose step0 perm=[{}]\nstep Reshape step1 shape=[{}*{},{},{}]", apart,
        fmt::join(perm, ","), images, batch, channels, fmt::join(quotients, ","));
  }
  static std::string back_text(const std::string& channels, const std::string& batch, const std::vector<int64_t>& steps,
                               const std::vector<std::string>& quotients, const std::vector<std::string>& wholes) {
    const size_t axes = steps.size();
    std::vector<size_t> perm{axes, axes + 1};
    for (size_t k = 0; k < axes; k++) perm.insert(perm.end(), {axes + 2 + k, k});
    return fmt::format(
        "step Reshape in0 shape=[{},{},{},{}]\nstep Transpose step0 perm=[{}]\nstep Reshape step1 shape=[{},{},{}]",
        fmt::join(steps, ","), batch, channels, fmt::join(quotients, ","), fmt::join(perm, ","), batch, channels,
        fmt::join(wholes, ","));
  }

  static std::vector<int64_t> inverse(const std::vector<int64_t>& perm) {
    std::vector<int64_t> result(perm.size());
    for (size_t k = 0; k < perm.size(); k++) result[static_cast<size_t>(perm[k])] = static_cast<int64_t>(k);
    return result;
  }

  const Node& node_;
  const size_t weights_from_;
  const Texts texts_;
  ExtentNames& names_;
  std::vector<std::string> lines_;
};

}  // namespace

bool is_window(const Node& node) {
  const OpInfo& info = op_info(node.op);
  return info.find_attribute("strides") && info.find_attribute("pads");
}

bool has_pads(const Node& node) {
  return std::ranges::any_of(ints_or(node, "pads", {}), [](int64_t pad) { return pad != 0; });
}

std::vector<WindowAxis> windows_of(const Node& node) {
  const std::vector<int64_t> dilations = ints_or(node, "dilations", {}), strides = ints_or(node, "strides", {});
  std::vector<int64_t> extents = ints_or(node, "kernel_shape", {});
  if (extents.empty() && node.inputs.size() > 1) {
    const std::vector<int64_t> kernel = node.inputs[1].type().static_shape();
    extents.assign(kernel.begin() + 2, kernel.end());
  }
  std::vector<WindowAxis> axes;
  for (size_t k = 0; k < extents.size(); k++)
    axes.push_back({extents[k], k < dilations.size() ? dilations[k] : 1, k < strides.size() ? strides[k] : 1});
  return axes;
}

std::optional<std::vector<std::string>> operator_lines(const Node& node, size_t weights_from, ExtentNames& names) {
  auto texts = texts_of(node, names);
  if (!texts) return std::nullopt;
  return OperatorLines(node, weights_from, *std::move(texts), names).run();
}

std::vector<std::string> composed_windows(const std::vector<std::pair<const Node*, const Node*>>& chains,
                                          ExtentNames& names) {
  std::vector<std::string> lines;
  for (const auto& [first, second] : chains) {
    if (first->op != second->op || !is_window(*first) || !first->attributes.contains("kernel_shape")) continue;
    auto texts = texts_of(*second, names);
    const std::vector<WindowAxis> own = windows_of(*first), over = windows_of(*second);
    const std::vector<int64_t> own_pads = ints_or(*first, "pads", {}), over_pads = ints_or(*second, "pads", {});
    if (!texts || own.size() != over.size() || own_pads.size() != over_pads.size()) continue;
    std::vector<int64_t> extents, strides, pads;
    for (size_t k = 0; k < own.size(); k++) {
      extents.push_back((over[k].extent - 1) * own[k].stride + own[k].extent);
      strides.push_back(own[k].stride * over[k].stride);
    }
    for (size_t k = 0; k < own_pads.size(); k++)
      pads.push_back(own_pads[k] + own[k % own.size()].stride * over_pads[k]);
    (*texts)["kernel_shape"] = list_text(extents);
    (*texts)["strides"] = list_text(strides);
    (*texts)["pads"] = list_text(pads);
    std::string line = "op " + op_info(second->op).name + " inputs=1";
    for (const auto& [name, text] : *texts) line += fmt::format(" {}={}", name, text);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace gopt::driver
