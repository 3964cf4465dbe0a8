// Fills the space level by level: every operator on every combination of representatives, up to the names of variables.
// An argument that is part of another costs nothing, so that x * x counts x once, however large it is.
// A level has two phases: threads of all ranks emit fingerprints and applications, which all ranks get and sort, and
// the least application of each new fingerprint becomes a representative; so the space, which every rank has whole,
// depends on neither.
#pragma once

#include "parallel.h"
#include "space.h"

namespace gopt::generator {

struct EnumerationLimits {
  int max_ops, max_weight_ops;
  // Operators on weights beside so many that depend on an activation; -1: none such.
  int weight_ops_beside(int activation_ops) const;
};

// An application whose value is that of a representative.
struct EqualApplication {
  Application application;
  Named equal;
};

struct Level {
  size_t candidates = 0;
  std::vector<uint32_t> representatives;  // new ones
  std::vector<EqualApplication> equal;  // in order; a representative that equals itself under other names is among them
};

class Enumerator {
 public:
  Enumerator(Space& space, const EnumerationLimits& limits, const Team& team);

  Level leaves();
  Level build(int activation_ops, int weight_ops);

 private:
  struct Group {  // representatives that are alike to operators
    int activation_ops, weight_ops;
    TypeId type;
    bool is_weight;
    int named_class;  // of which the representative is a variable; -1: of none that has a name
    std::vector<uint32_t> reps;
  };
  struct Output {
    const TermKernel* kernel;
    uint64_t type_key;
    uint32_t size;
    uint32_t number;  // among all of them, the same on every rank
  };
  struct Job {
    int op;
    size_t big;
    std::vector<size_t> groups;
    std::vector<Output> outputs;
  };
  struct Record {       // plain, since it travels between ranks
    Fingerprint least;  // among the permutations of its variables
    Application application;
    uint32_t permutation = 0;  // that gives the least one
    uint32_t symmetries = 0;   // bit i: permutation i changes nothing
    uint32_t output;           // its number
  };
  struct Findings {
    size_t candidates = 0;
    std::vector<Record> records;
    std::vector<EqualApplication> equal;
  };
  struct Image {
    Naming naming;
    Fingerprint fingerprint;
  };
  class Worker;
  using SharedKernels = std::map<std::pair<int, std::pair<TypeId, TypeId>>, Output>;  // by operator and types

  Output output_of(const TermKernel* kernel);
  Findings find_all(int activation_ops, int weight_ops);
  std::vector<Job> jobs(int activation_ops, int weight_ops);
  SharedKernels shared_kernels(int activation_ops, int weight_ops);
  void collect_subterms(Named named, std::vector<Named>& out) const;
  void learn_parts(const Level& level);
  void choose_groups(Job& job, int activation_ops, int weight_ops, bool weights_only, std::vector<Job>& jobs);
  void complete(Job& job, bool weights_only, std::vector<Job>& jobs) const;
  std::vector<TypeId> types_of(const Job& job) const;
  bool find_outputs(Job& job);
  void add_classes(std::vector<Record>& records, Level& level, int activation_ops, int weight_ops);
  void add_class(const Record* begin, const Record* end, const std::vector<Image>& images, Representative rep,
                 Level& level);
  void add_symmetries(const Record& record, uint32_t id, Level& level);
  Representative representative_of(const Record& record);
  void compute_images(Representative& rep, const Record& record, Evaluator& evaluator,
                      std::vector<Image>& images) const;
  void exchange_images(size_t count, std::vector<std::vector<Image>>& images) const;
  void add_to_group(uint32_t rep);
  bool is_final(int activation_ops) const { return activation_ops >= limits_.max_ops; }

  Space& space_;
  const EnumerationLimits limits_;
  const Team team_;
  std::vector<int> ops_;
  std::vector<Group> groups_;
  std::vector<Output> outputs_;
  std::map<const TermKernel*, uint32_t> output_numbers_;
  std::map<Application, Named> parts_;  // outputs of operators that have several
};

}  // namespace gopt::generator
