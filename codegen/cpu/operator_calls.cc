// Operators without definition as calls of the functions that are registered for them.
#include <algorithm>
#include <cstdio>

#include "../abi.h"
#include "../buffers.h"
#include "../sizes.h"
#include "emit_cpu.h"
#include "gopt/node_names.h"
#include "gopt/opaque_attributes.h"

namespace gopt::codegen {
namespace {

// As ONNX numbers kinds of attributes.
enum class GivenKind { Float = 1, Int = 2, String = 3, Tensor = 4, Floats = 6, Ints = 7, Strings = 8 };

std::string float_text(double value) {
  char text[40];
  snprintf(text, sizeof text, "%.9g", value);  // all digits of a float
  const std::string number = text;
  if (number.find("nan") != std::string::npos) return "__builtin_nanf(\"\")";
  if (number.find("inf") != std::string::npos) return number[0] == '-' ? "-__builtin_inff()" : "__builtin_inff()";
  return number + (number.find_first_of(".e") == std::string::npos ? ".0f" : "f");
}

std::string int_text(int64_t value) {
  return value == INT64_MIN ? "INT64_MIN" : "INT64_C(" + std::to_string(value) + ")";
}

// One attribute as an entry of a table, and the arrays that it points to.
class AttributePrinter {
 public:
  AttributePrinter(std::string id, std::string name) : id_(std::move(id)), name_(std::move(name)) {}

  std::string arrays;
  std::string entry;

  void print(const AttributeValue& value) {
    if (const auto* number = std::get_if<Index>(&value)) return ints(GivenKind::Int, {*number});
    if (const auto* list = std::get_if<std::vector<Index>>(&value)) return ints(GivenKind::Ints, *list);
    if (const auto* number = std::get_if<double>(&value)) return floats(GivenKind::Float, {*number});
    if (const auto* list = std::get_if<std::vector<double>>(&value)) return floats(GivenKind::Floats, *list);
    if (const auto* text = std::get_if<std::string>(&value)) return strings(GivenKind::String, {*text});
    if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return strings(GivenKind::Strings, *list);
    tensor(std::get<Tensor>(value));
  }

 private:
  void ints(GivenKind kind, const std::vector<Index>& values) {
    for (const Index& value : values) list_ += int_text(value.constant()) + ", ";
    arrays = "const int64_t " + id_ + "[] = {" + list_ + "0};\n";
    add_entry(kind, values.size(), "nullptr, " + id_ + ", nullptr, nullptr, nullptr");
  }
  void floats(GivenKind kind, const std::vector<double>& values) {
    for (const double value : values) list_ += float_text(value) + ", ";
    arrays = "const float " + id_ + "[] = {" + list_ + "0};\n";
    add_entry(kind, values.size(), id_ + ", nullptr, nullptr, nullptr, nullptr");
  }
  void strings(GivenKind kind, const std::vector<std::string>& values) {
    std::string lengths;
    for (const std::string& value : values) {
      list_ += quoted(value) + ", ";
      lengths += std::to_string(value.size()) + ", ";
    }
    arrays = "const char* const " + id_ + "[] = {" + list_ + "nullptr};\nconst size_t " + id_ + "_lengths[] = {" +
             lengths + "0};\n";
    add_entry(kind, values.size(), "nullptr, nullptr, " + id_ + ", " + id_ + "_lengths, nullptr");
  }
  void tensor(const Tensor& value) {
    std::string dims;
    for (const int64_t extent : value.dims()) dims += std::to_string(extent) + ", ";
    for (const std::byte byte : value.bytes()) list_ += std::to_string(static_cast<int>(byte)) + ", ";
    arrays = "const int64_t " + id_ + "_dims[] = {" + dims + "0};\nalignas(16) const unsigned char " + id_ +
             "_bytes[] = {" + list_ + "0};\nconst gopt_tensor " + id_ + " = gopt_runtime::tensor_of(" +
             std::to_string(static_cast<int>(value.type())) + ", " + std::to_string(size_bytes(value.type())) + ", " +
             std::to_string(value.dims().size()) + ", " + id_ + "_dims, " + id_ + "_bytes);\n";
    add_entry(GivenKind::Tensor, 1, "nullptr, nullptr, nullptr, nullptr, &" + id_);
  }
  void add_entry(GivenKind kind, size_t count, const std::string& values) {
    entry = "    {" + quoted(name_) + ", " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(count) +
            ", " + values + "},\n";
  }

  const std::string id_, name_;
  std::string list_;
};

class OperatorPrinter {
 public:
  OperatorPrinter(const Plan& plan, const Kernel& kernel) : plan_(plan), kernel_(kernel), node_(*kernel.nodes[0]) {}

  Result<FunctionCall> print(const std::vector<std::string>& names, size_t number) {
    GOPT_ASSIGN_OR_RETURN(const Attributes attributes, attributes_of(*node_.opaque));
    const std::string table = "kAttributes" + std::to_string(number);
    const auto own = std::ranges::find(names, external_name(node_)) - names.begin();
    const std::string taken = tensors(node_.inputs, kernel_.inputs, kernel_.input_buffers);
    std::vector<Value> results;
    for (size_t o = 0; o < node_.outputs.size(); o++) results.push_back({kernel_.nodes[0], static_cast<int>(o)});
    const std::string made = tensors(results, kernel_.outputs, kernel_.output_buffers);
    const std::string run =
        "{\n" + dims_ + "const gopt_tensor taken[] = {" + taken + "{}};\nconst gopt_tensor made[] = {" + made +
        "{}};\nmodel.operators.call(" + std::to_string(own) + ", {" + quoted(node_.opaque->domain) + ", " +
        quoted(node_.opaque->op_type) + ", " + quoted(name_of_node(node_)) + ", " + std::to_string(attributes.size()) +
        ", " + std::to_string(node_.inputs.size()) + ", " + std::to_string(results.size()) + ", " + table +
        ", taken, made, model.threads, nullptr, 0});\n}";
    return FunctionCall{attribute_table(attributes, table), run};
  }

 private:
  static std::string attribute_table(const Attributes& attributes, const std::string& table) {
    std::string arrays, entries;
    size_t count = 0;
    for (const auto& [name, value] : attributes) {
      AttributePrinter printer(table + "_" + std::to_string(count++), name);
      printer.print(value);
      arrays += printer.arrays;
      entries += printer.entry;
    }
    return arrays + "const gopt_attribute " + table + "[] = {\n" + entries +
           "    {nullptr, 0, 0, nullptr, nullptr, nullptr, nullptr, nullptr}};\n";
  }

  // Of the node's values; those that lie in no buffer are left out, empty, or read by nobody.
  std::string tensors(const std::vector<Value>& values, const std::vector<Value>& known,
                      const std::vector<BufferId>& buffers) {
    std::string text;
    for (const Value& value : values) {
      const auto at = std::ranges::find(known, value);
      const bool is_empty = value && is_computable(value.type().element) && value.type().has_static_shape();
      if (at == known.end() && !is_empty) {
        text += "{}, ";
        continue;
      }
      const std::string dims = "d" + std::to_string(count_++);
      std::string extents;
      for (const Index& extent : *value.type().shape) extents += size_text(extent, plan_.target.open) + ", ";
      dims_ += "const int64_t " + dims + "[] = {" + extents + "0};\n";
      const std::string data =
          at == known.end()
              ? "nullptr"
              : pointer_text(locate(plan_, buffers[static_cast<size_t>(at - known.begin())]), plan_.target.open);
      text += "gopt_runtime::tensor_of(" + std::to_string(static_cast<int>(value.type().element)) + ", " +
              std::to_string(size_bytes(value.type().element)) + ", " + std::to_string(value.type().shape->size()) +
              ", " + dims + ", " + data + "), ";
    }
    return text;
  }

  const Plan& plan_;
  const Kernel& kernel_;
  const Node& node_;
  std::string dims_;
  int count_ = 0;
};

}  // namespace

Result<FunctionCall> print_operator_call(const Plan& plan, const Kernel& kernel, const std::vector<std::string>& names,
                                         size_t number) {
  return OperatorPrinter(plan, kernel).print(names, number);
}

}  // namespace gopt::codegen
