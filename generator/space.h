// The space of enumerated terms: a representative for each class of equal terms, known by 128-bit fingerprints of its
// values under every naming of its variables. An application is compact: an operator over representatives under
// namings. See enumerate.h for who fills the space, equations.h for what is derived in it.
#pragma once

#include <deque>

#include "kernels.h"
#include "names.h"
#include "world.h"

namespace gopt::generator {

constexpr int kMaxArguments = 5;

struct Application {
  int16_t op = -1;
  uint8_t output = 0, arity = 0;
  std::array<Named, kMaxArguments> args{};
  friend auto operator<=>(const Application&, const Application&) = default;
};
size_t hash_of(const Application& application);

using LocalPermutation = std::array<uint8_t, kMaxVariables>;  // of a representative's variables, by position

struct Representative {
  Application application;  // op < 0: a leaf
  int leaf_class = -1;      // of a variable; -1: a constant
  double constant = 0;
  TypeId type{};
  const TermKernel* kernel = nullptr;  // of the application
  uint32_t size = 0;                   // of its values
  uint16_t signature = 0;
  uint8_t activation_ops = 0, weight_ops = 0;
  bool is_weight = true, is_final = false;
  bool is_open = false;                      // some variable of it may have leading axes
  std::vector<LocalPermutation> symmetries;  // exchanges that do not change its value, but for the identity
  std::vector<Values> images;                // values by naming, where they are kept
  uint32_t node = ~0U;                       // the node that it stands for, see equations.h
  int total_ops() const { return activation_ops + weight_ops; }
};

// From fingerprint to Named.
class FingerprintTable {
 public:
  // Whether it is new.
  bool insert(const Fingerprint& fingerprint, Named named);
  const Named* find(const Fingerprint& fingerprint) const;
  size_t size() const { return count_; }
  size_t bytes() const { return entries_.size() * sizeof(Entry); }

 private:
  struct Entry {
    Fingerprint fingerprint;
    Named named;
  };
  size_t place(const Fingerprint& fingerprint) const;
  void grow();
  std::vector<Entry> entries_;  // the zero fingerprint is empty
  size_t count_ = 0;
};

class Space {
 public:
  Space(TermStore& terms, Kernels& kernels, int max_variables, uint64_t seed);

  TermStore& terms() { return terms_; }
  const TermStore& terms() const { return terms_; }
  Kernels& kernels() { return kernels_; }
  int max_variables() const { return max_variables_; }
  uint64_t seed() const { return seed_; }
  // Variables of a class that a term may have.
  unsigned pool(size_t variable_class) const { return pools_[variable_class]; }
  const Representative& rep(uint32_t id) const { return reps_[id]; }
  Representative& rep(uint32_t id) { return reps_[id]; }
  uint32_t rep_count() const { return static_cast<uint32_t>(reps_.size()); }
  uint32_t add(Representative rep);
  const Signature& signature_of(uint32_t rep) const { return signatures_[reps_[rep].signature]; }
  const Signature& signature(uint16_t number) const { return signatures_[number]; }

  uint16_t intern_signature(const std::vector<uint8_t>& classes) { return signatures_.intern(classes); }
  // Classes of the joint variables of an application in normal form.
  std::vector<uint8_t> classes_of(const Application& application) const;

  struct Normal {
    Application application;
    NameMap back;  // from the application's numbers to those of the arguments given
  };
  // The one form for all orders of commutative inputs, symmetries of representatives and names of variables. `ways`,
  // where given, receives `back` of every way that leads to it.
  Normal normalized(int op, int output, const Named* args, int arity, std::vector<NameMap>* ways = nullptr) const;
  // The least naming among those that symmetries make equal.
  Named canonical(Named named) const;
  Named renamed(Named named, const NameMap& map) const {
    return {named.rep, signature_of(named.rep).renamed(named.naming, map)};
  }
  size_t big_argument(const Named* args, int arity) const;

  // Every naming of a representative's variables by those of the pools.
  std::vector<Naming> namings_of(uint32_t rep) const;
  size_t image_number(const Signature& signature, Naming naming) const;
  size_t image_count(const Signature& signature) const;

  Fingerprint fingerprint(uint64_t type_key, const Scalar* values, size_t size) const;
  uint64_t type_key(TypeId type);  // of the extents in both assignments
  FingerprintTable& table() { return table_; }
  const FingerprintTable& table() const { return table_; }

  // A term of it; the naming's numbers become the variables' numbers.
  TermId term_of(Named named);
  TermId term_of(const Application& application, const NameMap& map);

 private:
  TermStore& terms_;
  Kernels& kernels_;
  int max_variables_;
  uint64_t seed_;
  std::vector<unsigned> pools_;
  Signatures signatures_;
  std::deque<Representative> reps_;
  FingerprintTable table_;
  std::vector<std::array<uint64_t, 2>> keys_;  // of the words of a value
};

// Values of named representatives; kept ones are looked up, others are computed into room that reset() frees.
class Evaluator {
 public:
  explicit Evaluator(const Space& space) : space_(space) {}
  // Null where it has no value.
  const Scalar* value(Named named);
  const Scalar* apply(const TermKernel& kernel, size_t size, const Named* args, int arity);
  const Scalar* run(const TermKernel& kernel, size_t size, const Scalar* const* inputs);
  void reset();

 private:
  Scalar* room(size_t size);
  const Space& space_;
  Values registers_;
  std::vector<Values> blocks_;
  size_t block_ = 0, used_ = 0;
};

}  // namespace gopt::generator
