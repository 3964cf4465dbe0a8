#include "dimensions.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace gopt::ir {
namespace {

std::string extents_text(const std::vector<int64_t>& extents) {
  std::string text;
  for (const int64_t extent : extents) text += (text.empty() ? "" : ",") + std::to_string(extent);
  return text;
}

// Some exporters write "?" or "None" for every extent that they do not know: these are no names, and not one extent.
bool names_dimension(const std::string& text) {
  const auto is_letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  return std::any_of(text.begin(), text.end(), is_letter) && text != "None" && text != "none";
}

// Symbols of rules and of loops begin with other signs than letters; a model's do not.
AtomId dimension_symbol(const std::string& name) {
  return symbol_atom(std::isalnum(static_cast<unsigned char>(name[0])) || name[0] == '_' ? name : "dim " + name);
}

Status check_shape_option(const std::string& name, const std::vector<int64_t>& extents, const onnx::TypeProto& type) {
  const std::string what = "--shape " + name + "=" + extents_text(extents) + ": ";
  if (std::any_of(extents.begin(), extents.end(), [](int64_t extent) { return extent < 0; }))
    return Error{what + "an extent is negative"};
  if (!type.has_tensor_type()) return Error{what + "this input is no tensor"};
  if (!type.tensor_type().has_shape()) return Unit{};
  const int rank = type.tensor_type().shape().dim_size();
  if (static_cast<size_t>(rank) != extents.size())
    return Error{what + std::to_string(extents.size()) + " extents are given, the input has " + std::to_string(rank)};
  return Unit{};
}

// Symbols that the options give a number. Errors: one symbol with two numbers.
Status bind_symbols(ImportState& state, const std::string& name, const std::vector<int64_t>& extents,
                    const onnx::TypeProto& type, std::map<std::string, std::string>& bound_by) {
  const auto& dims = type.tensor_type().shape().dim();
  for (int axis = 0; axis < dims.size(); axis++) {
    const std::string& symbol_name = dims[axis].dim_param();
    if (!names_dimension(symbol_name)) continue;
    const int64_t extent = extents[static_cast<size_t>(axis)];
    const auto [it, added] = state.fixed.emplace(dimension_symbol(symbol_name), extent);
    if (!added && it->second != Index(extent))
      return Error{"--shape: dimension '" + symbol_name + "' is " + to_string(it->second) + " by " +
                   (bound_by[symbol_name] == symbol_name ? "its name" : "input '" + bound_by[symbol_name] + "'") +
                   " and " + std::to_string(extent) + " by input '" + name + "'"};
    bound_by[symbol_name] = name;
  }
  return Unit{};
}

// A dimension that is given by its own name.
Status bind_symbol(ImportState& state, const std::string& name, int64_t extent,
                   std::map<std::string, std::string>& bound_by) {
  if (extent < 0) return Error{"--shape " + name + "=" + std::to_string(extent) + ": an extent is negative"};
  state.fixed.emplace(dimension_symbol(name), extent);
  bound_by[name] = name;
  return Unit{};
}

// Exporters write "past + length" for an extent that is the sum of two others: it is that sum, where these are inputs'
// own, and not a name of its own that --shape gives a number.
std::optional<Index> sum_of_dimensions(const ImportState& state, const std::string& text) {
  if (text.find('+') == std::string::npos || text[text.find_last_not_of(' ')] == '+') return std::nullopt;
  if (state.fixed.contains(dimension_symbol(text))) return std::nullopt;
  Index sum(0);
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, '+');) {
    const size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    if (first == std::string::npos) return std::nullopt;
    part = part.substr(first, last - first + 1);
    const bool is_number =
        part.size() < 10 && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c); });
    if (!is_number && !state.dimensions.contains(part)) return std::nullopt;
    sum += is_number ? Index(std::stoll(part)) : Index::from_atom(dimension_symbol(part));
  }
  return sum;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

std::set<std::string> initializer_names(const ModelFile& file) {
  std::set<std::string> names;
  for (const TensorSource& source : file.initializers) names.insert(source.proto.name());
  for (const auto& sparse : file.model.graph().sparse_initializer()) names.insert(sparse.values().name());
  return names;
}

TensorType declared_type(const ImportState& state, const onnx::TypeProto& type, const std::string& name) {
  TensorType result;
  if (!type.has_tensor_type()) return result;
  result.element = static_cast<ElementType>(type.tensor_type().elem_type());
  if (!type.tensor_type().has_shape()) return result;
  Shape shape;
  for (const auto& dim : type.tensor_type().shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() >= 0) {
      shape.emplace_back(dim.dim_value());
    } else {
      const bool named = names_dimension(dim.dim_param());
      const AtomId extent =
          named ? dimension_symbol(dim.dim_param()) : symbol_atom(name + "_dim" + std::to_string(shape.size()));
      const auto sum = named ? sum_of_dimensions(state, dim.dim_param()) : std::nullopt;
      shape.push_back(substitute(sum.value_or(Index::from_atom(extent)), state.fixed));
    }
  }
  result.shape = std::move(shape);
  return result;
}

Status apply_shape_options(ImportState& state) {
  std::map<std::string, const onnx::TypeProto*> inputs;
  std::set<std::string> names, symbols;
  const std::set<std::string> constants = initializer_names(state.file);
  for (const auto& input : state.file.model.graph().input()) {
    if (constants.contains(input.name())) continue;
    inputs[input.name()] = &input.type();
    names.insert(input.name());
    for (const auto& dim : input.type().tensor_type().shape().dim())
      if (names_dimension(dim.dim_param())) symbols.insert(dim.dim_param());
  }
  for (const std::string& symbol : symbols)
    if (symbol.find('+') == std::string::npos) state.dimensions.insert(symbol);
  std::map<std::string, std::string> bound_by;
  for (const auto& [name, extents] : state.options.shapes)
    if (!inputs.contains(name) && symbols.contains(name) && extents.size() == 1)
      GOPT_RETURN_IF_ERROR(bind_symbol(state, name, extents[0], bound_by));
  for (const auto& [name, extents] : state.options.shapes) {
    if (bound_by.contains(name) && !inputs.contains(name)) continue;
    const auto it = inputs.find(name);
    if (it == inputs.end())
      return Error{"--shape: the model has no input '" + name + "'; its inputs are: " + joined(names) +
                   (symbols.empty() ? "" : "; its dimensions, of one extent each: " + joined(symbols))};
    GOPT_RETURN_IF_ERROR(check_shape_option(name, extents, *it->second));
    GOPT_RETURN_IF_ERROR(bind_symbols(state, name, extents, *it->second, bound_by));
  }
  const Substitution numbers = state.fixed;
  for (const auto& [symbol, value] : state.options.equal) state.fixed.emplace(symbol, substitute(value, numbers));
  return Unit{};
}

std::optional<ImportOptions> without_changed_extents(const ModelFile& file, const ImportOptions& options,
                                                     std::vector<std::pair<int64_t, int64_t>>& changed) {
  ImportOptions kept = options;
  for (const auto& input : file.model.graph().input()) {
    const auto it = kept.shapes.find(input.name());
    if (it == kept.shapes.end() || !input.type().tensor_type().has_shape()) continue;
    const auto& dims = input.type().tensor_type().shape().dim();
    if (static_cast<size_t>(dims.size()) != it->second.size()) continue;
    for (int axis = 0; axis < dims.size(); axis++) {
      int64_t& extent = it->second[static_cast<size_t>(axis)];
      if (!dims[axis].has_dim_value() || dims[axis].dim_value() < 0 || dims[axis].dim_value() == extent) continue;
      changed.emplace_back(dims[axis].dim_value(), extent);
      extent = dims[axis].dim_value();
    }
  }
  return changed.empty() ? std::nullopt : std::optional(kept);
}

}  // namespace gopt::ir
