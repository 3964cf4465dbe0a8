#include "open_sizes.h"

#include <algorithm>
#include <set>

#include "abi.h"
#include "sizes.h"

namespace gopt::codegen {
namespace {

std::string function(const std::string& head, const Plan& plan, const std::string& body) {
  return head + " {\n" + declared_sizes(plan.target.open, body) + body + "}\n\n";
}

std::string print_pieces(const Plan& plan) {
  const std::vector<BufferLife> lives = buffer_lives(plan);
  std::string table, bytes;
  for (size_t b = 0; b < plan.buffers.size(); b++) {
    const Buffer& buffer = plan.buffers[b];
    if (buffer.is_view || buffer.place != BufferPlace::Arena || lives[b].first < 0) continue;
    table +=
        "{" + std::to_string(b) + ", " + std::to_string(lives[b].first) + ", " + std::to_string(lives[b].last) + "}, ";
    const Index size =
        buffer.layout.elements(shape_of(buffer)) * Index(static_cast<int64_t>(size_bytes(buffer.element)));
    bytes += "*bytes++ = " + size_text(size, plan.target.open) + ";\n";
  }
  return "const gopt_runtime::Life kLives[] = {" + table + "{-1, 0, 0}};\n\n" +
         function("void bytes_at([[maybe_unused]] const int64_t* n, [[maybe_unused]] int64_t* bytes)", plan, bytes);
}

}  // namespace

std::string print_open_sizes(const Plan& plan) {
  const std::vector<OpenExtent>& open = plan.target.open;
  std::string maxima, dims, checks;
  for (const OpenExtent& extent : open) maxima += std::to_string(extent.maximum.value_or(0)) + ", ";
  for (const auto& values : {graph_inputs(plan.graph), graph_outputs(plan.graph)})
    for (const ModelValue& value : values)
      for (const Index& extent : *value.type.shape) dims += "*dims++ = " + size_text(extent, open) + ";\n";
  for (const SizeDemand& demand : plan.demands)
    checks += "if (!(" + size_text(demand.cond, open) + ")) return " + quoted(demand.what) + ";\n";
  return "const int64_t kMaxima[] = {" + maxima + "0};\n" + print_pieces(plan) +
         function("const char* why_refused([[maybe_unused]] const int64_t* n)", plan, checks + "return nullptr;\n") +
         function("void dims_at([[maybe_unused]] const int64_t* n, [[maybe_unused]] int64_t* dims)", plan, dims);
}

Status check_open_sizes(const Plan& plan) {
  for (const SizeDemand& demand : plan.demands) {
    if (demand.cond.is_false()) return Error{"no size satisfies " + demand.what};
    std::set<AtomId> symbols;
    collect_symbols(demand.cond, symbols);
    for (const AtomId symbol : symbols)
      if (std::ranges::find(plan.target.open, symbol, &OpenExtent::symbol) == plan.target.open.end())
        return Error{demand.what + " depends on " + atom(symbol).name + ", which no input says"};
  }
  return Unit{};
}

}  // namespace gopt::codegen
