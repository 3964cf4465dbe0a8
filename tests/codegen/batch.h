// Many small graphs as one: emitted, built and run together, so that the compiler starts once, and compared with the
// interpreter one by one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gopt/codegen.h"
#include "gopt/interpreter.h"

namespace gopt {

struct BatchCase {
  std::string name;
  Graph graph;
  std::map<std::string, Tensor> inputs;  // by the graph's names
  double step = 0;                       // by so much one element in a hundred may differ
};

// A graph from text whose inputs with names that begin with `w` become constants; all data are drawn with the seed,
// integers within [0, integer_limit).
BatchCase make_case(const std::string& name, const std::string& text, uint64_t seed, int64_t integer_limit = 3);

// What differs; empty: nothing by more than 1e-4 of the largest magnitude, or what the precision loses.
std::string difference(const Tensor& got, const Tensor& wanted, Precision precision, double step = 0);

// Kernel costs that make every plan equal but for the layout that they charge for.
class LayoutCosts : public KernelCosts {
 public:
  explicit LayoutCosts(bool plain) : plain_(plain) {}
  double time_ms(const Plan& plan, const Kernel& kernel) override;

 private:
  bool plain_;
};

// What went wrong, a line a case; empty: all agree with the interpreter within 1e-4 of the largest magnitude, or what
// the target's precision loses.
std::vector<std::string> run_batch(const std::vector<BatchCase>& cases, bool plain, const Target& target);
// The same by the plan of these costs; `name` is that of the folder.
std::vector<std::string> run_batch(const std::vector<BatchCase>& cases, KernelCosts& costs, const std::string& name,
                                   const Target& target);

// The small graphs of graphs_test.cc, and random nodes of every operator (operators_test.cc).
std::vector<BatchCase> graph_cases();
std::vector<BatchCase> operator_cases();
// Graphs whose types are of 16 bits (graphs_test.cc).
std::vector<BatchCase> half_cases();

// Graphs whose kernels reduce rows (row_chunks_test.cc).
std::vector<BatchCase> row_chunk_cases();
// Graphs whose kernels move several elements at once, or must not (chunks_test.cc).
std::vector<BatchCase> chunk_cases();
// Graphs whose kernels reduce across lines (columns_test.cc).
std::vector<BatchCase> column_cases();
std::vector<BatchCase> square_cases();
// Graphs that write at places which a tensor names (matches_test.cc).
std::vector<BatchCase> match_cases();

// Of the emitted files whose names begin so, one after another.
std::string text_of(const EmittedCode& code, const std::string& prefix);

// A folder of this process for emitted code, removed at exit.
std::string scratch_folder(const std::string& name);

}  // namespace gopt
