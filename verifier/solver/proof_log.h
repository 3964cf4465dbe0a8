// The steps of a proof as text, for the separate checker (checker/, docs/verifier.md): what each output is by the
// definitions, its normal forms, the equalities that the matcher found with their changes of binders, and the questions
// that the solver settled. One step a list, one list a line.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gopt/rule.h"
#include "normal_form/normal_form.h"

namespace gopt::verifier {

struct SharedSum;
struct SignCases;

// Which rule the steps prove, by content and record: the first line of a log.
std::string log_header(const RewriteRule& proved);
// What the steps that follow are about: the rule as it stands ("plain"), below leading axes of these extents
// ("prefix"), or with these symbols equal to 1 ("one").
std::string log_case(const std::string& kind, const std::vector<AtomId>& symbols);

class ProofLog {
 public:
  // An element of an output: its subscripts, and what the condition's equations have put in place of symbols.
  struct Place {
    size_t output = 0;
    std::vector<Index> subscripts;
    Substitution solved;
  };

  // A term of a class and the change of its binders to those of the class's first term.
  using Member = std::pair<size_t, Substitution>;
  using Class = std::vector<Member>;

  void boolean(int input);  // its elements are 1 or 0
  void begin(const std::string& rule);
  void entailed(const std::string& what, const Cond& context, const Cond& goal);
  void sums_to_zero(const std::string& what, const Cond& context, const std::vector<std::pair<int64_t, Cond>>& counts);
  void required(const std::string& what, const Cond& context, const Cond& goal);
  // left - right consists of `terms`, which sum to 0 class by class, or by the cases of their maxima.
  void equal(const Cond& context, const NormalForm& left, const NormalForm& right, const std::vector<Summand>& terms,
             const std::vector<Class>& classes);
  void equal_by_cases(const Cond& context, const NormalForm& left, const NormalForm& right,
                      const std::vector<Summand>& terms);
  // The same by what is known of functions.
  void equal_pointwise(const Cond& context, const NormalForm& left, const NormalForm& right,
                       const std::vector<Summand>& terms);
  // left - right is 0 where `form` is, which is another way to write it, perhaps multiplied by its denominators.
  void equal_rearranged(const Cond& context, const NormalForm& left, const NormalForm& right, const NormalForm& form);
  // left - right consists of `terms`, which sum to 0 where the guard holds and where it does not.
  void equal_either_way(const Cond& context, const NormalForm& left, const NormalForm& right,
                        const std::vector<Summand>& terms, const Cond& guard);
  // The terms fall into sums over shared ranges, each of which is 0 at every value of its binders.
  void equal_inside(const Cond& context, const NormalForm& left, const NormalForm& right,
                    const std::vector<Summand>& terms, const std::vector<SharedSum>& sums);
  // The same terms are the one sum or the other by the difference's sign; both are 0.
  void equal_by_sign(const Cond& context, const NormalForm& left, const NormalForm& right,
                     const std::vector<Summand>& terms, const SignCases& cases);
  void output(const Place& place, const Cond& context, const Expr& left, const NormalForm& left_form, const Expr& right,
              const NormalForm& right_form);
  void empty(const Place& place, const Cond& context);  // the output has no position

  const std::string& text() const { return text_; }

 private:
  void add(const std::string& line);
  std::string text_;
  std::set<std::string> seen_;  // a step is written once
};

}  // namespace gopt::verifier
