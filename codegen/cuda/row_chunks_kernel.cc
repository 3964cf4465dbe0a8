#include "row_chunks_kernel.h"

#include <algorithm>
#include <set>

#include "../transform.h"

namespace gopt::codegen {
namespace {

constexpr int64_t kWarp = 32;

class RowChunksPrinter {
 public:
  RowChunksPrinter(Writer& writer, const KernelBody& body, const RowChunks& row, const std::vector<Loop>& rows,
                   const std::vector<Loop>& lanes, const std::set<int>& constants)
      : writer_(writer), body_(body), row_(row), rows_(rows), lanes_(lanes), constants_(constants) {}

  // The threads of a row, a part of a warp, one, or all of a block or of several, have its chunks.
  CudaKernel print() {
    const bool is_of_warp = row_.threads <= kWarp && row_.blocks == 1;
    const std::string of_row = std::to_string(row_.threads);
    writer_.threads.count = row_.threads;
    if (is_of_warp) writer_.reduce = row_.threads == kWarp ? "gopt_warp_reduce" : "gopt_part_reduce<" + of_row + ">";
    const bool meets = row_.blocks > kBlocksOfCluster;
    if (meets)
      writer_.reduce = "meeting.reduce";
    else if (row_.blocks > 1)
      writer_.reduce = "gopt_cluster_reduce<" + std::to_string(row_.blocks) +
                       (row_.beside > 1 ? ", " + std::to_string(row_.beside) : "") + ">";
    Scope& root = writer_.root();
    root.shared = true;
    Scope& rows = writer_.add_scope(root);
    rows.shared = true;
    const std::string own = row_.beside > 1 ? "threadIdx.x / " + std::to_string(row_.beside) : "threadIdx.x",
                      thread = is_of_warp        ? "threadIdx.x % " + of_row
                               : row_.blocks > 1 ? "(blockIdx.y * " + of_row + " + " + own + ")"
                                                 : own;
    std::string head = "const int64_t of_thread = " + thread + " * " + std::to_string(row_.count) + ";\n";
    std::string text = cuda_decode(writer_, rows_, "row", rows);
    const std::string ahead = kept(root, Kept::Ahead, head), once = kept(root, Kept::Once, head);
    text += kept(rows, Kept::ByRow, head);
    Scope& chunk = bound_to_chunk(rows);
    const std::string read_again = row_.is_kept ? "" : reads_of(chunk);
    writer_.row_loop = [&, read_again](const std::string& name, const std::string& body) {
      return row_loop(place_in_reduction(name), body, read_again);
    };
    const std::string store = lanes_.empty()
                                  ? "if (" + thread + " == 0) {\n" + cuda_element(writer_, body_, rows) + "}\n"
                                  : stored_row(rows, read_again, head);
    const int64_t count = cuda_count(rows_);
    const std::string meeting = meets ? "gopt_meeting<" + std::to_string(row_.blocks) + "> meeting(memory);\n" : "";
    CudaKernel kernel =
        cuda_kernel(body_, false, meeting + once + root.code + loop_of_rows(count) + text + rows.code + store + "}\n",
                    head + ahead, constants_);
    kernel.threads = row_.threads * row_.rows * row_.beside;
    kernel.of_each = row_.blocks, kernel.meets = meets;
    kernel.blocks = std::min(kMostCudaBlocks, (count + row_.rows - 1) / row_.rows / row_.beside);
    return kernel;
  }

 private:
  std::string loop_of_rows(int64_t count) const {
    if (row_.beside > 1) {
      const std::string beside = std::to_string(row_.beside);
      return cuda_loop("first_row", count, "blockIdx.x * " + beside, "gridDim.x * " + beside) + "const " +
             cuda_index_type(count) + " row = first_row + threadIdx.x % " + beside + ";\n";
    }
    if (row_.rows == 1) return cuda_loop("row", count, "blockIdx.x", "gridDim.x");
    const std::string of_block = std::to_string(row_.rows);
    return cuda_loop("row", count, "blockIdx.x * " + of_block + " + threadIdx.x / " + std::to_string(row_.threads),
                     "gridDim.x * " + of_block);
  }

  // Places along a row's axes from one that counts them all, the last fastest.
  std::vector<std::string> places_of(const std::string& place) const {
    if (row_.axes.size() == 1) return {place};
    const std::string inner = std::to_string(row_.axes.back().extent);
    return {place + " / " + inner, place + " % " + inner};
  }

  // In it the axes are where a chunk begins, at `first`.
  Scope& bound_to_chunk(Scope& rows) {
    Scope& at = writer_.add_scope(rows);
    const std::vector<std::string> places = places_of("first");
    for (size_t a = 0; a < places.size(); a++)
      at.bound.push_back({row_.axes[a].symbol, a + 1 == places.size() && a == 0 ? places[a] : "(" + places[a] + ")"});
    return at;
  }

  // A reduction's place of the element e of a chunk.
  std::string place_in_reduction(const std::string& name) const {
    const std::string declared = "[[maybe_unused]] const int64_t " + name + " = ", place = "(first + e)";
    if (!row_.turns) return declared + "first + e;\n";
    const std::vector<std::string> places = places_of(place);
    return declared + places[1] + " * " + std::to_string(row_.axes[0].extent) + " + " + places[0] + ";\n";
  }

  // Makes the elements of a row and stores them, in chunks where results lie along the row.
  std::string stored_row(Scope& rows, const std::string& read_again, std::string& head) {
    const std::string type = storage_name(body_.output),
                      chunk = "gopt_chunk<" + type + ", " + std::to_string(row_.count) + ">";
    Scope &at = bound_to_chunk(rows), &own = writer_.add_scope(rows);
    std::string places;
    for (size_t a = 0; a < row_.axes.size(); a++) {
      const std::string name = writer_.fresh("i");
      own.bound.push_back({row_.axes[a].symbol, name});
      places += "[[maybe_unused]] const int64_t " + name + " = " +
                (row_.axes.size() == 1 ? "first + e" : places_of("(first + e)")[a]) + ";\n";
    }
    const std::string value = cuda_element(writer_, body_, own);
    if (coefficient(body_.offset, row_.axes.back().symbol) != 1) return row_loop(places, own.code + value, read_again);
    head += type + "* const all_out = out;\n";
    return row_loop(places, "const auto out = own_out.element(e);\n" + own.code + value,
                    read_again + chunk + " own_out(" + writer_.index_text(body_.offset, at) + ");\n",
                    "own_out.store(all_out);\n");
  }

  // Before the kernel before has ended, for all rows, or for one.
  enum class Kept { Ahead, Once, ByRow };
  Kept kept_of(int input, const Index& offset) const {
    std::set<AtomId> symbols;
    collect_symbols(offset, symbols);
    if (!std::ranges::all_of(symbols, [&](AtomId symbol) { return row_.is_along(symbol); })) return Kept::ByRow;
    return constants_.contains(input) ? Kept::Ahead : Kept::Once;
  }

  std::string chunk_type(int input) const {
    return "gopt_chunk<" + storage_name(body_.inputs[static_cast<size_t>(input)]) + ", " + std::to_string(row_.count) +
           ">";
  }
  std::string chunk_text(int input, const Index& offset, const Scope& at) const {
    return chunk_type(input) + "(all_in" + std::to_string(input) + ", " + writer_.index_text(offset, at) + ")";
  }

  // Of a row that is not kept: its inputs' chunks at `first`.
  std::string reads_of(const Scope& at) const {
    std::string text;
    for (const auto& [input, offset] : row_.offsets)
      text +=
          "[[maybe_unused]] const auto row_in" + std::to_string(input) + " = " + chunk_text(input, offset, at) + ";\n";
    return text;
  }

  // Reads these inputs' chunks, where they are kept; `head` names what they are read from.
  std::string kept(Scope& rows, Kept when, std::string& head) {
    Scope& at = bound_to_chunk(rows);
    std::string text, reads;
    for (const auto& [input, offset] : row_.offsets) {
      if (kept_of(input, offset) != when) continue;
      const std::string name = "in" + std::to_string(input),
                        type = storage_name(body_.inputs[static_cast<size_t>(input)]);
      head += "const " + type + "* const all_" + name + " = " + name + ";\n";
      text += chunk_type(input) + " row_" + name + "[" + std::to_string(row_.each) + "];\n";
      reads += "row_" + name + "[k] = " + chunk_text(input, offset, at) + ";\n";
    }
    return reads.empty() || !row_.is_kept ? "" : text + at.code + chunk_loop(reads);
  }

  // Over a thread's chunks: k, whose first element is `first`.
  std::string chunk_loop(const std::string& body) const {
    const std::string step = std::to_string(row_.threads * row_.blocks * row_.count),
                      guard = row_.is_whole() ? "" : "if (first < " + std::to_string(row_.elements) + ") {\n";
    return std::string(row_.is_kept ? "#pragma unroll" : "#pragma unroll 4") + "\nfor (int k = 0; k < " +
           std::to_string(row_.each) + "; k++) {\nconst int64_t first = of_thread + k * " + step + ";\n" + guard +
           body + (guard.empty() ? "" : "}\n") + "}\n";
  }

  // Over their elements: e, whose places are declared first.
  std::string row_loop(const std::string& places, const std::string& body, const std::string& before,
                       const std::string& after = "") const {
    std::string elements;
    for (const auto& [input, _] : row_.offsets) {
      const std::string own = "in" + std::to_string(input);
      elements +=
          "[[maybe_unused]] const auto " + own + " = row_" + own + (row_.is_kept ? "[k]" : "") + ".element(e);\n";
    }
    return chunk_loop(before + "#pragma unroll\nfor (int e = 0; e < " + std::to_string(row_.count) + "; e++) {\n" +
                      places + elements + body + "}\n" + after);
  }

  Writer& writer_;
  const KernelBody& body_;
  const RowChunks& row_;
  const std::vector<Loop>&rows_, &lanes_;
  const std::set<int>& constants_;
};

}  // namespace

CudaKernel print_row_chunks(Writer& writer, const KernelBody& body, const RowChunks& row, const std::vector<Loop>& rows,
                            const std::vector<Loop>& lanes, const std::set<int>& constants) {
  return RowChunksPrinter(writer, body, row, rows, lanes, constants).print();
}

}  // namespace gopt::codegen
