// Whether CUDA code can be built and run where the tests are.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "batch.h"

namespace gopt {

// Why generated code cannot be built or run here; both empty: it can.
struct Obstacles {
  std::string build, run;
};
const Obstacles& obstacles();

// That cases, planned by these costs, agree with the interpreter on the device; without one, that they compile and
// link. `name` is that of the program.
void expect_agreement_on_device(const std::vector<BatchCase>& cases, KernelCosts& costs, const std::string& name,
                                Precision precision);

// That the kernels which are generated for a case have the word, or lack `otherwise` where it is empty.
void expect_word_in_kernels(const BatchCase& c, const std::string& word, const std::string& otherwise);

// The implementations that are priced in halves on CUDA: for a graph, and for a product.
std::set<std::string> priced_for_halves(const Graph& graph, const std::set<std::string>& without = {});
std::set<std::string> priced_for_product(int rows, int columns, int depth, const std::set<std::string>& without,
                                         bool is_by_columns = false);

}  // namespace gopt
