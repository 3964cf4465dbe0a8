// A world gives every size a number and every variable random elements; terms have values in it. Two worlds decide
// equality while terms are enumerated, fresh ones test each hit again, and worlds of reals try what is left (trial.h).
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "tape.h"
#include "term.h"

namespace gopt::generator {

struct Fingerprint {
  uint64_t high = 0, low = 0;
  friend auto operator<=>(const Fingerprint&, const Fingerprint&) = default;
};

// Tapes of a family's operators at given shapes, for many worlds; threads may share it.
class TapeCache {
 public:
  // Operator, output, shapes and attributes in numbers.
  using Key = std::vector<int64_t>;
  // Null where there is none for the key; `make` is asked once.
  std::shared_ptr<const Tape> find(const Key& key, const std::function<std::shared_ptr<const Tape>()>& make);

 private:
  struct Hash {
    size_t operator()(const Key& key) const;
  };
  std::mutex mutex_;
  std::unordered_map<Key, std::shared_ptr<const Tape>, Hash> tapes_;
};

// Over scalars or reals.
template <class Number>
class WorldOf {
 public:
  // Elements of a variable that has so many.
  using Draw = std::function<std::vector<Number>(const Term& variable, size_t count)>;
  // `prefix`: leading extents of the variables whose class has one.
  WorldOf(const TermStore& terms, Environment sizes, std::vector<int64_t> prefix, TapeCache& tapes, Draw draw)
      : terms_(terms), sizes_(std::move(sizes)), prefix_(std::move(prefix)), tapes_(tapes), draw_(std::move(draw)) {}

  struct Tensor {
    std::vector<int64_t> dims;
    std::vector<Number> values;
    bool has_prefix = false;
  };
  // Null where the term has no value here: an operator does not fit, a number is not defined. Kept where `keep` says
  // so.
  std::shared_ptr<const Tensor> value(TermId id, bool keep);

 private:
  std::shared_ptr<const Tensor> variable(const Term& term) const;
  std::shared_ptr<const Tensor> application(const Term& term);
  AlphabetOp description_of(int op, bool has_prefix) const;
  std::shared_ptr<const Tape> tape_for(int op, int output, const std::vector<std::shared_ptr<const Tensor>>& args);

  const TermStore& terms_;
  const Environment sizes_;
  const std::vector<int64_t> prefix_;
  std::unordered_map<uint32_t, std::shared_ptr<const Tensor>> kept_;
  TapeCache& tapes_;
  const Draw draw_;
};

// Scalars that the seed picks.
class World : public WorldOf<Scalar> {
 public:
  World(const TermStore& terms, const Substitution& sizes, std::vector<int64_t> prefix, uint64_t seed,
        TapeCache& tapes);
  // Adds dims and residues to the fingerprint.
  void add_to(Fingerprint& fingerprint, const Tensor& tensor) const;
};

}  // namespace gopt::generator
