// Prints element expressions as C++ statements within nested loops. Each subexpression is computed in the outermost
// loop that knows its symbols; what varies over the vector loop alone, and not over loops between, is kept in a small
// array. The loops around are the target's business (cpu/loops.h); guards of reductions become loop bounds.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "lower.h"
#include "transform.h"

namespace gopt::codegen {

// What an expression is computed in.
enum class Scalar { Bool, Int, Float, Double };
std::string type_name(Scalar scalar);
std::string storage_name(ElementType element);  // in memory: "float", "int64_t", "uint8_t" for bool
Scalar scalar_of(ElementType element);
std::string literal(double value, Scalar scalar);
double neutral_element(ReduceKind kind);  // what changes no result
// An expression of one type as another.
std::string converted(const std::string& text, Scalar from, Scalar to);
std::string stored(const std::string& text, Scalar from, ElementType to);
// Threads of a CUDA block that divide a loop: how many, and which of them one is.
struct Threads {
  int64_t count = 1;
  std::string own = "threadIdx.x";
};
// The head of such a loop: a number of turns that the compiler knows, so that it unrolls them and keeps what several
// loops read.
std::string thread_loop(const std::string& type, const std::string& name, int64_t extent, const Threads& threads);

constexpr int64_t kMaxRow = 4096;    // floats on the stack
constexpr int64_t kMaxArray = 4096;  // of a vector loop's lanes

// One loop body, or the function's body, or a branch.
struct Scope {
  struct Entry {
    Expr expr;
    std::string name;
    Scalar type;
    bool array = false;  // over the lanes of the vector loop
  };
  Scope* parent = nullptr;
  std::vector<std::pair<AtomId, std::string>> bound;  // symbols of its loops, and their names
  std::string code;
  std::unordered_multimap<size_t, Entry> known;
  bool guard = false;      // a branch: reads must not move out of it
  bool lanes = false;      // the body of the vector loop over bound[0]
  bool tile = false;       // one tile of the vector loop: arrays over lanes live inside
  bool has_loop = false;   // holds loops or branches: not to be vectorized
  bool divided = false;    // one of its loops is divided among threads
  bool shared = false;     // entered by all threads of a CUDA block together: they divide its reductions
  std::string low, high;   // of the vector loop
  int64_t lane_count = 0;  // at most
};

// Two numbers of one type. Integers wrap around, which those of C++ with a sign may not.
std::string arithmetic(const char* sign, Scalar type, const std::vector<std::string>& operands);

class Writer {
 public:
  explicit Writer(const KernelBody& body);

  Scope& root() { return *root_; }
  Scope& add_scope(Scope& parent);
  std::string fresh(const std::string& prefix) { return prefix + std::to_string(counter_++); }

  // The name or literal of the value, computed where it belongs, as type `want`.
  std::string value(const Expr& e, Scope& scope, Scalar want);
  std::string index_text(const Index& index, const Scope& scope) const;
  Scalar type_of(const Expr& e, Scalar otherwise);

  bool pragmas = true;  // whether vector loops are marked for OpenMP
  Threads threads;
  // Of a CUDA kernel whose threads keep a row in registers (cuda/row_chunks.h): a loop over what a thread has of it, by
  // the name of a place within the row and what is done there.
  std::function<std::string(const std::string& name, const std::string& body)> row_loop;
  std::string reduce = "gopt_block_reduce";  // of the threads that divide a reduction
  // Whether results are rounded so much that functions may be off by up to 1e-6 of themselves.
  bool takes_short_functions = false;
  // The vector loop that runs over a whole row from 0: what a reduction over the row computes of each of its elements
  // is kept for it, in an array of so many, or, of longer rows, where the result will be.
  struct Row {
    AtomId symbol;
    Index extent;
    int64_t capacity;
  };
  std::optional<Row> row;
  bool keeps_row = false;     // something was kept
  bool keeps_result = false;  // in the same way, where the result will be, across the lanes

 private:
  friend class ReductionWriter;
  std::optional<Scalar> own_type(const Expr& e);
  double fold(const Expr& e);
  struct Constants {  // that an expression is made of
    bool is_of_them = true, are_whole = true, are_floats = true;
  };
  const Constants& constants_of(const Expr& e);
  bool is_of_constants(const Expr& e) { return constants_of(e).is_of_them; }
  const std::set<AtomId>& free_symbols(const Expr& e);
  bool reads(const Expr& e);
  bool has_reduction(const Expr& e);
  bool is_rounded_product(const Expr& e);
  std::string sum_of_rounded(const Expr& e, Scalar type, const std::vector<std::string>& a);
  bool is_expensive(const Expr& e);
  bool binds_any(const Scope& scope, const std::set<AtomId>& symbols) const;
  Scope* target(const Expr& e, Scope& scope);
  const Scope::Entry* find(const Expr& e, Scope& scope, Scalar type, Scope** where);
  Scope* array_home(const Expr& e, Scope& lanes);
  std::string entry_text(const Scope::Entry& entry, const Scope& scope) const;
  const Scope& lanes_scope(const Scope& scope) const;
  void remember(Scope& scope, const Expr& e, std::string name, Scalar type, bool array);

  std::string compute(const Expr& e, Scope& scope, Scalar type);
  std::string by_reciprocal(const Expr& e, Scope& scope, Scalar type);
  std::string inline_text(const Expr& e, Scope& scope, Scalar want);
  std::string unsigned_operation(const Expr& e, const std::vector<std::string>& a) const;
  std::string operation(const Expr& e, Scalar type, const std::vector<std::string>& args);
  bool is_lone(const Scope& scope) const;
  std::vector<Scalar> argument_types(const Expr& e, Scalar type);
  std::string branch(const Expr& e, Scope& scope, Scalar type);
  std::string read_text(const Expr& e, const Scope& scope) const;
  std::string cond_text(const Cond& cond, const Scope& scope) const;
  std::string atom_text(AtomId id, const Scope& scope) const;
  std::string array_value(const Expr& e, Scope& lanes, Scalar type);

  const KernelBody& body_;
  Known known_;
  std::deque<Scope> scopes_;
  Scope* root_;
  int counter_ = 0;
  std::unordered_map<const Expr::Node*, std::set<AtomId>> free_;
  std::unordered_map<const Expr::Node*, std::optional<Scalar>> types_;
  std::unordered_map<const Expr::Node*, bool> reads_, reductions_, expensive_;
  std::unordered_map<const Expr::Node*, Constants> constants_;
  std::vector<Expr> kept_;  // keeps the keys above alive
};

// Loops of one reduction, written into the scope where its value is needed.
class ReductionWriter {
 public:
  ReductionWriter(Writer& writer, const Expr& e, Scalar type) : w_(writer), e_(e), type_(type) {}

  // True where lanes of the vector loop walk memory better than the binders do.
  bool prefers_lanes(AtomId lane, int64_t lane_count);
  std::string write_scalar(Scope& scope);
  // An array over the lanes, in `home`.
  std::string write_array(Scope& home, Scope& lanes);

 private:
  struct LoopPart {
    Scope* scope;
    AtomId symbol;
    std::string name, low, high;
    std::vector<std::string> lows, highs;  // tightened
    int64_t step = 1;
  };
  void lift_guard();
  void order_binders(std::optional<AtomId> lane);
  bool unit_stride(AtomId symbol);
  void share();
  std::string combine(const std::string& a, const std::string& b) const;
  bool watches_nan() const;
  bool compares_unsigned() const;
  std::string vector_step(const std::string& sum, const std::string& value) const;
  std::string initial() const;
  void add_binders(Scope& outer);
  void tighten();
  bool tighten_one(const Index& guard);
  std::string close(const LoopPart& part, const std::string& pragma, bool divided = false) const;
  int64_t lanes_of_short(const LoopPart& part) const;
  std::string folded(const std::string& a, const std::string& b) const;
  std::string close_short(const LoopPart& part, int64_t lanes) const;
  std::string lane_step(const std::string& sums, const std::string& value, const LoopPart& part) const;
  Expr guarded_body() const;
  bool serves_row(const Expr& body, const Scope& scope) const;
  bool has_result_row(const Scope& scope) const;
  std::string row_start(const Scope& scope) const;
  void unroll(Scope& lanes);
  void accumulate(Scope& lanes, const std::string& sum, std::optional<AtomId> kept_along);
  std::optional<AtomId> serves_lanes(const Scope& home, const Scope& lanes) const;

  Writer& w_;
  Expr e_;
  Scalar type_;
  std::vector<Binder> binders_;
  std::vector<Index> guards_;
  std::vector<Cond> rest_;
  Expr body_;
  std::vector<LoopPart> parts_;
};

}  // namespace gopt::codegen
