#include "solver.h"

#include <z3++.h>

#include <deque>
#include <functional>
#include <map>
#include <new>
#include <set>
#include <unordered_map>
#include <utility>

#include "equality/real_cells.h"
#include "gopt/graph.h"
#include "linear_facts.h"
#include "linear_question.h"
#include "normal_form/index_hash.h"
#include "normal_form/normal_form.h"
#include "points_at_sizes.h"
#include "smt_text.h"

namespace gopt::verifier {
namespace {

// Z3 terms of indexes and conditions. In linear mode a product of symbols is a variable of its own: what is proved so
// holds for real products as well.
class Encoder {
 public:
  // `numbers` names atoms by when they were first met, so that Z3 sees the same text in every process.
  Encoder(z3::context& context, bool linear, std::map<AtomId, size_t>& numbers)
      : context_(context), linear_(linear), numbers_(numbers) {}

  z3::expr operator()(const Index& index) {
    z3::expr sum = context_.int_val(index.constant());
    bool first = index.constant() == 0;
    for (const Index::Term& term : index.terms()) {
      z3::expr value = product(term.atoms);
      if (term.coefficient != 1) value = context_.int_val(term.coefficient) * value;
      sum = first ? value : sum + value;
      first = false;
    }
    return sum;
  }
  z3::expr operator()(const Cond& cond) {
    switch (cond.kind()) {
      case CondKind::True: return context_.bool_val(true);
      case CondKind::False: return context_.bool_val(false);
      case CondKind::NonNegative: return (*this)(cond.index()) >= 0;
      case CondKind::And:
      case CondKind::Or: {
        z3::expr_vector parts(context_);
        for (const Cond& part : cond.parts()) parts.push_back((*this)(part));
        return cond.kind() == CondKind::And ? z3::mk_and(parts) : z3::mk_or(parts);
      }
    }
    return context_.bool_val(false);
  }

  // Asserts d*q <= n < d*(q+1) for each floor division met, also for those in other divisions, and, where products are
  // variables, what the hypothesis says of the quotient itself.
  void define_divisions(z3::solver& solver, const Cond& hypothesis) {
    std::set<AtomId> done;
    for (bool changed = true; changed;) {
      changed = false;
      for (AtomId id : std::set<AtomId>(atoms_)) {
        const Atom& a = atom(id);
        if (a.kind != AtomKind::FloorDiv || !done.insert(id).second) continue;
        changed = true;
        for (const Index& fact : division_facts(id, linear_ ? conjuncts(hypothesis) : std::vector<Cond>()))
          solver.add((*this)(fact) >= 0);
      }
    }
  }

  bool is_nonlinear() const { return !monomials_.empty(); }
  const std::set<std::vector<AtomId>>& monomials() const { return monomials_; }
  const std::set<AtomId>& atoms() const { return atoms_; }
  z3::expr variable(AtomId id) {
    atoms_.insert(id);
    return context_.int_const(("v" + number(id)).c_str());
  }

 private:
  std::string number(AtomId id) { return std::to_string(numbers_.try_emplace(id, numbers_.size()).first->second); }
  z3::expr product(const std::vector<AtomId>& factors) {
    if (factors.size() == 1) return variable(factors[0]);
    monomials_.insert(factors);
    z3::expr value = variable(factors[0]);
    std::string name = "m" + number(factors[0]);
    for (size_t i = 1; i < factors.size(); i++) {
      const z3::expr factor = variable(factors[i]);
      name += "_" + number(factors[i]);
      if (!linear_) value = value * factor;
    }
    return linear_ ? context_.int_const(name.c_str()) : value;
  }

  z3::context& context_;
  bool linear_;
  std::map<AtomId, size_t>& numbers_;
  std::set<AtomId> atoms_;
  std::set<std::vector<AtomId>> monomials_;
};

using Negation = std::function<z3::expr(Encoder&)>;
using Refutes = std::function<std::optional<bool>(const Assignment&)>;

// Products of two hypotheses whose monomials already occur.
void add_products(const Cond& context, Encoder& encode, z3::solver& solver, size_t most) {
  const std::vector<Cond> literals = conjuncts(context);
  std::vector<Index> facts;
  for (const Cond& literal : literals)
    if (literal.kind() == CondKind::NonNegative) facts.push_back(literal.index());
  for (AtomId id : std::set<AtomId>(encode.atoms())) {
    if (atom(id).kind != AtomKind::FloorDiv) continue;
    const std::vector<Index> more = division_facts(id, literals);
    facts.insert(facts.end(), more.begin(), more.end());
  }
  for (const Index& product : product_facts(facts, encode.monomials(), most)) solver.add(encode(product) >= 0);
}

}  // namespace

uint64_t units_so_far(const z3::solver& solver) {
  const z3::stats stats = solver.statistics();
  for (unsigned i = 0; i < stats.size(); i++)
    if (stats.key(i) == "rlimit count") return stats.uint_value(i);
  return 0;
}

// Cuts of unbounded integers may go on for ever, by ever larger numbers that take time and no units; whether they do
// depends on the order in which Z3 was told things. Branches count.
void prefer_branches() {
  constexpr int kBranchesForACut = 1000;
  static const bool is_set = (z3::set_param("smt.arith.branch_cut_ratio", kBranchesForACut), true);
  static_cast<void>(is_set);
}

// Z3 takes milliseconds to start and to end: it is started by the first question that needs it.
struct Z3 {
  explicit Z3(int milliseconds) {
    prefer_branches();
    context.set("timeout", milliseconds);
  }

  z3::context context;
  // Push and pop on one solver cost far less than a fresh one.
  z3::solver incremental{context};
  unsigned limit = 0;  // of the next question
};

struct Solver::State {
  explicit State(const SolverLimits& of) : limits(of) {}

  const SolverLimits& limits;
  std::optional<Z3> started;
  std::map<AtomId, size_t> numbers;
  std::unordered_map<CondPair, bool, CondPairHash> memo;
  std::map<std::string, bool> of_reals;  // whether facts are impossible, by their text
  int questions = 0;
  uint64_t units = 0;             // that Z3 has counted
  uint64_t spent = 0;             // of all questions, as they are weighed
  std::deque<Assignment> models;  // values that satisfied an earlier context; most contexts are decided by one of them

  Z3& z3() { return started ? *started : started.emplace(limits.milliseconds); }
  z3::context& context() { return z3().context; }

  std::optional<Assignment> model_of(z3::solver& solver, Encoder& encode) {
    Assignment assignment;
    z3::model model = solver.get_model();
    for (AtomId id : encode.atoms()) {
      if (atom(id).kind != AtomKind::Symbol) continue;
      int64_t value = 0;
      z3::expr e = model.eval(encode.variable(id), true);
      if (!e.is_numeral_i64(value)) return std::nullopt;
      assignment[static_cast<uint32_t>(id)] = value;
    }
    return assignment;
  }
  void keep(const Assignment& model) {
    models.push_front(model);
    if (models.size() > limits.models) models.pop_back();
  }
  // For the context, not for a solver: Z3 takes longer to set a parameter of one than to answer most questions.
  void set_limit(unsigned rlimit) {
    if (std::exchange(z3().limit, rlimit) != rlimit) context().set("rlimit", static_cast<int>(rlimit));
  }
  void spend(uint64_t units) {
    if (spent > limits.units_in_all) throw BudgetExceeded(BudgetExceeded::Budget::Units, limits.units_in_all);
    spent += units;
  }
  z3::check_result check(z3::solver& solver, unsigned rlimit, uint64_t weight = 1) {
    spend(0);
    questions++;
    set_limit(rlimit);
    try {
      const z3::check_result result = solver.check();
      const uint64_t counted = units_so_far(solver);
      spent += weight * (counted - units);
      units = counted;
      return result;
    } catch (const z3::exception&) {
      return z3::unknown;
    } catch (const std::bad_alloc&) {
      // Z3's arithmetic throws this where a table would exceed its indexes. Nothing more is asked of it: Unknown.
      throw std::overflow_error("a question exceeds what Z3 can represent");
    }
  }

  // Whether context and negation cannot hold together. A model that `refutes` confirms ends it at once. Where
  // alternatives are given, the negation is that one of them holds.
  bool is_unsatisfiable(const Cond& hypothesis, const std::optional<std::vector<Cond>>& alternatives,
                        const Negation& negation, const Refutes& refutes, unsigned rlimit) {
    for (const Assignment& model : models)
      if (truth_of(hypothesis, model) == true && refutes(model) == true) return false;
    if (alternatives) {
      const LinearAnswer answer = ask_linear(hypothesis, *alternatives);
      spend(limits.linear_cost);
      if (answer.is_infeasible) return true;
      if (is_refuted_at(answer.points, hypothesis, refutes)) return false;
      if (const auto point = point_at_sizes(hypothesis, *alternatives))
        if (is_refuted_at({*point}, hypothesis, refutes)) return false;
    }
    return z3_finds_unsatisfiable(hypothesis, negation, refutes, rlimit);
  }

  bool is_refuted_at(const std::vector<Assignment>& points, const Cond& hypothesis, const Refutes& refutes) {
    for (const Assignment& point : points) {
      if (truth_of(hypothesis, point) != true) continue;
      keep(point);
      if (refutes(point) == true) return true;
    }
    return false;
  }

  bool z3_finds_unsatisfiable(const Cond& hypothesis, const Negation& negation, const Refutes& refutes,
                              unsigned rlimit) {
    z3::solver& incremental = z3().incremental;
    for (const bool linear : {true, false}) {
      Encoder encode(context(), linear, numbers);
      incremental.push();
      incremental.add(encode(hypothesis));
      incremental.add(negation(encode));
      encode.define_divisions(incremental, hypothesis);
      const unsigned limit = rlimit / (linear ? limits.linear_share : limits.nonlinear_share);
      z3::check_result result = check(incremental, limit, linear ? 1 : limits.nonlinear_weight);
      bool refuted = found_model(result, incremental, encode, hypothesis, refutes);
      if (linear && !refuted && result != z3::unsat && encode.is_nonlinear()) {
        add_products(hypothesis, encode, incremental, limits.products);
        result = check(incremental, limit);
        refuted = found_model(result, incremental, encode, hypothesis, refutes);
      }
      incremental.pop();
      if (result == z3::unsat) return true;
      if (refuted || !encode.is_nonlinear()) return false;
      if (!linear && result == z3::sat) return false;
    }
    return is_unsatisfiable_afresh(hypothesis, negation, rlimit);
  }

  bool found_model(z3::check_result result, z3::solver& solver, Encoder& encode, const Cond& hypothesis,
                   const Refutes& refutes) {
    if (result != z3::sat) return false;
    auto model = model_of(solver, encode);
    if (!model || truth_of(hypothesis, *model) != true) return false;
    keep(*model);
    return refutes(*model) == true;
  }

  // A solver of its own runs Z3's tactics for non-linear arithmetic, which the incremental one does not.
  bool is_unsatisfiable_afresh(const Cond& hypothesis, const Negation& negation, unsigned rlimit) {
    Encoder encode(context(), false, numbers);
    z3::solver solver(context());
    solver.add(encode(hypothesis));
    solver.add(negation(encode));
    encode.define_divisions(solver, hypothesis);
    return check(solver, rlimit / limits.afresh_share) == z3::unsat;
  }
};

Solver::Solver(const SolverOptions& options) : options_(options) {}
Solver::~Solver() = default;

Solver::State& Solver::state() {
  if (!state_) state_ = std::make_unique<State>(options_.limits.solver);
  return *state_;
}

std::string Solver::version() {
  unsigned major, minor, build, revision;
  Z3_get_version(&major, &minor, &build, &revision);
  return "z3 " + std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(build);
}

std::vector<Environment> Solver::recent_models() const {
  std::vector<Environment> found;
  if (!state_) return found;
  for (const Assignment& model : state_->models) {
    found.emplace_back();
    for (const auto& [id, value] : model) found.back()[AtomId{id}] = value;
  }
  return found;
}

int Solver::questions() const { return state_ ? state_->questions : 0; }

std::string Solver::digest() const { return to_string(hash_bytes(digest_state_)).substr(0, 16); }

void Solver::record(const Cond& context, const std::string& negated_goal, const std::string& declarations) {
  SmtText text;
  const std::string hypothesis = text(context);
  const std::string question = "(assert " + hypothesis + ")\n(assert " + negated_goal + ")\n";
  digest_state_ = to_string(hash_bytes(digest_state_ + question));
  obligation_count_++;
  if (!options_.keep_obligations) return;
  kept_.push_back({topic_, "(set-logic ALL)\n" + declarations + question + "(check-sat)\n"});
}

namespace {

// Decided without a solver: the goal is a hypothesis, or exceeds one by what is plainly not negative.
bool is_plainly_entailed(const std::vector<Cond>& hypotheses, const Cond& goal) {
  if (goal.is_true()) return true;
  for (const Cond& h : hypotheses)
    if (h == goal) return true;
  if (goal.kind() == CondKind::And) {
    for (const Cond& part : goal.parts())
      if (!is_plainly_entailed(hypotheses, part)) return false;
    return true;
  }
  if (goal.kind() != CondKind::NonNegative) return false;
  for (const Cond& h : hypotheses) {
    if (h.kind() != CondKind::NonNegative) continue;
    const Index difference = goal.index() - h.index();
    if (difference.is_constant() && difference.constant() >= 0) return true;
  }
  return false;
}

}  // namespace

void Solver::work(uint64_t units) { state().spend(units); }

bool Solver::entails(const Cond& context, const Cond& goal) {
  if (goal.is_true() || context.is_false()) return true;
  if (auto it = state().memo.find({context, goal}); it != state().memo.end()) return it->second;
  const Cond negated = !goal;
  bool holds = is_plainly_entailed(conjuncts(context), goal);
  if (!holds)
    holds = state().is_unsatisfiable(
        context, std::vector<Cond>{negated}, [&](Encoder& encode) { return encode(negated); },
        [&](const Assignment& model) { return truth_of(negated, model); }, options_.rlimit / share_);
  state().memo.emplace(CondPair{context, goal}, holds);
  if (holds) {
    if (options_.log) options_.log->entailed(topic_, context, goal);
    SmtText text;
    const std::string goal_text = text(negated);
    if (options_.keep_obligations) text(context);
    record(context, goal_text, options_.keep_obligations ? text.declarations() : "");
  }
  return holds;
}

bool Solver::sums_to_zero(const Cond& context, const std::vector<GuardedCount>& counts) {
  auto negation = [&](Encoder& encode) {
    z3::context& z3 = state().context();
    z3::expr sum = z3.int_val(0);
    for (const GuardedCount& c : counts) sum = sum + z3::ite(encode(c.cond), z3.int_val(c.coefficient), z3.int_val(0));
    return sum != 0;
  };
  auto refutes = [&](const Assignment& model) -> std::optional<bool> {
    int64_t sum = 0;
    for (const GuardedCount& c : counts) {
      const auto truth = truth_of(c.cond, model);
      if (!truth) return std::nullopt;
      if (*truth) sum += c.coefficient;
    }
    return sum != 0;
  };
  if (!state().is_unsatisfiable(context, where_not_zero(context, counts), negation, refutes, options_.rlimit / share_))
    return false;
  if (options_.log) {
    std::vector<std::pair<int64_t, Cond>> logged;
    for (const GuardedCount& c : counts) logged.push_back({c.coefficient, c.cond});
    options_.log->sums_to_zero(topic_, context, logged);
  }
  SmtText text;
  std::string sum;
  for (const GuardedCount& c : counts)
    sum += " (ite " + text(c.cond) + " " +
           (c.coefficient < 0 ? "(- " + std::to_string(-c.coefficient) + ")" : std::to_string(c.coefficient)) + " 0)";
  if (options_.keep_obligations) text(context);
  record(context, "(not (= 0 (+ 0" + sum + ")))", options_.keep_obligations ? text.declarations() : "");
  return true;
}

bool Solver::is_satisfiable(const Cond& cond) {
  for (const Assignment& model : state().models)
    if (truth_of(cond, model) == true) return true;
  const LinearAnswer answer = ask_linear(cond, {Cond()});
  state().spend(limits().solver.linear_cost);
  if (answer.is_infeasible) return false;
  if (state().is_refuted_at(answer.points, cond, [](const Assignment&) { return true; })) return true;
  if (const auto point = point_at_sizes(cond, {Cond()})) {
    state().keep(*point);
    return true;
  }
  Encoder encode(state().context(), false, state().numbers);
  z3::solver solver(state().context());
  solver.add(encode(cond));
  encode.define_divisions(solver, cond);
  if (state().check(solver, options_.rlimit / share_ / limits().solver.afresh_share) != z3::sat) return false;
  auto model = state().model_of(solver, encode);
  if (model && truth_of(cond, *model) == true) state().keep(*model);
  return true;
}

// ---- reals ----

namespace {

struct RealText {
  SmtText index_text;
  std::set<std::string> variables;

  std::string operator()(const RealExpr& e) {
    switch (e.kind) {
      case RealExpr::Kind::Constant: {
        const int64_t n = e.constant.numerator();
        const std::string top = n < 0 ? "(- " + std::to_string(-n) + ".0)" : std::to_string(n) + ".0";
        return "(/ " + top + " " + std::to_string(e.constant.denominator()) + ".0)";
      }
      case RealExpr::Kind::Variable: variables.insert(e.variable); return e.variable;
      case RealExpr::Kind::Add: return nary("+", e);
      case RealExpr::Kind::Multiply: return nary("*", e);
      case RealExpr::Kind::Maximum: {
        std::string r = (*this)(*e.parts[0]);
        for (size_t i = 1; i < e.parts.size(); i++) {
          const std::string part = (*this)(*e.parts[i]);
          r = "(ite (> " + part + " " + r + ") " + part + " " + r + ")";
        }
        return r;
      }
      case RealExpr::Kind::IsLess: return "(ite (< " + (*this)(*e.parts[0]) + " " + (*this)(*e.parts[1]) + ") 1.0 0.0)";
      case RealExpr::Kind::IsEqual:
        return "(ite (= " + (*this)(*e.parts[0]) + " " + (*this)(*e.parts[1]) + ") 1.0 0.0)";
      case RealExpr::Kind::Guarded: return "(ite " + index_text(e.cond) + " " + (*this)(*e.parts[0]) + " 0.0)";
    }
    return "";
  }
  std::string nary(const char* op, const RealExpr& e) {
    if (e.parts.size() == 1) return (*this)(*e.parts[0]);
    std::string text = std::string("(") + op;
    for (const RealExprPtr& part : e.parts) text += " " + (*this)(*part);
    return text + ")";
  }
};

z3::expr encode_real(const RealExpr& e, Encoder& encode, z3::context& context) {
  auto part = [&](size_t i) { return encode_real(*e.parts[i], encode, context); };
  const z3::expr zero = context.real_val(0), unit = context.real_val(1);
  switch (e.kind) {
    case RealExpr::Kind::Constant:
      return context.real_val(
          (std::to_string(e.constant.numerator()) + "/" + std::to_string(e.constant.denominator())).c_str());
    case RealExpr::Kind::Variable: return context.real_const(e.variable.c_str());
    case RealExpr::Kind::Add: {
      z3::expr sum = part(0);
      for (size_t i = 1; i < e.parts.size(); i++) sum = sum + part(i);
      return sum;
    }
    case RealExpr::Kind::Multiply: {
      z3::expr product = part(0);
      for (size_t i = 1; i < e.parts.size(); i++) product = product * part(i);
      return product;
    }
    case RealExpr::Kind::Maximum: {
      z3::expr largest = part(0);
      for (size_t i = 1; i < e.parts.size(); i++) {
        const z3::expr next = part(i);
        largest = z3::ite(next > largest, next, largest);
      }
      return largest;
    }
    case RealExpr::Kind::IsLess: return z3::ite(part(0) < part(1), unit, zero);
    case RealExpr::Kind::IsEqual: return z3::ite(part(0) == part(1), unit, zero);
    case RealExpr::Kind::Guarded: return z3::ite(encode(e.cond), part(0), zero);
  }
  return zero;
}

}  // namespace

namespace {

std::string text_of(const std::vector<RealFact>& facts, RealText& text) {
  using Relation = RealFact::Relation;
  std::string all;
  for (const RealFact& fact : facts) {
    const std::string value = text(*fact.value);
    const char* relation = fact.relation == Relation::Positive      ? ">"
                           : fact.relation == Relation::NotNegative ? ">="
                                                                    : "=";
    const std::string compared = std::string("(") + relation + " " + value + " 0.0)";
    all += fact.relation == Relation::NotZero ? " (not " + compared + ")" : " " + compared;
  }
  return all;
}

// What is not 0 has no sign that is known.
std::vector<RealSign> signs_of(const std::vector<RealFact>& facts) {
  std::vector<RealSign> signs;
  for (const RealFact& fact : facts) {
    if (fact.relation == RealFact::Relation::NotZero) continue;
    signs.push_back({fact.value, fact.relation == RealFact::Relation::Positive});
    if (fact.relation != RealFact::Relation::Zero) continue;
    const RealExprPtr minus =
        std::make_shared<const RealExpr>(RealExpr{RealExpr::Kind::Constant, Rational(-1), "", {}, {}});
    signs.push_back(
        {std::make_shared<const RealExpr>(RealExpr{RealExpr::Kind::Multiply, {}, "", {minus, fact.value}, {}}), false});
  }
  return signs;
}

}  // namespace

bool Solver::is_impossible(const std::vector<RealFact>& facts) {
  using Relation = RealFact::Relation;
  RealText text;
  const std::string all = text_of(facts, text);
  const std::string question = "(and true" + all + ")";
  if (const auto it = state().of_reals.find(question); it != state().of_reals.end()) return it->second;
  z3::solver solver = z3::tactic(state().context(), "qfnra-nlsat").mk_solver();
  Encoder encode(state().context(), true, state().numbers);
  for (const RealFact& fact : facts) {
    const z3::expr value = encode_real(*fact.value, encode, state().context());
    solver.add(fact.relation == Relation::Positive      ? value > 0
               : fact.relation == Relation::NotNegative ? value >= 0
               : fact.relation == Relation::Zero        ? value == 0
                                                        : value != 0);
  }
  const bool is_settled = state().check(solver, options_.rlimit / share_ / limits().solver.cell_share) == z3::unsat;
  state().of_reals.emplace(question, is_settled);
  if (!is_settled) return false;
  std::string declarations;
  for (const std::string& variable : text.variables) declarations += "(declare-const " + variable + " Real)\n";
  record(Cond(), question, declarations);
  return true;
}

bool Solver::is_zero(const Cond& context, const RealExprPtr& value, const std::vector<RealFact>& facts) {
  // A cell that is hard to find empty is given up early: the others of the value would be no easier.
  const unsigned limit = options_.rlimit / share_ / limits().solver.cell_share;
  const auto ask = [&](z3::solver solver, const std::vector<RealSign>& cell, const RealExprPtr& rest) {
    Encoder encode(state().context(), true, state().numbers);
    solver.add(encode(context));
    for (const RealSign& sign : cell) {
      const z3::expr own = encode_real(*sign.value, encode, state().context());
      solver.add(sign.is_strict ? own > 0 : own >= 0);
    }
    solver.add(encode_real(*rest, encode, state().context()) != 0);
    encode.define_divisions(solver, context);
    return state().check(solver, limit);
  };
  // What Z3 has for polynomials over reals alone is started in a fraction of the time.
  const auto is_empty = [&](const std::vector<RealSign>& cell, const RealExprPtr& rest) {
    z3::check_result result = ask(z3::tactic(state().context(), "qfnra-nlsat").mk_solver(), cell, rest);
    if (result == z3::unknown) result = ask(z3::solver(state().context()), cell, rest);
    return result == z3::unsat;
  };
  if (!is_zero_in_cells(
          value, signs_of(facts), is_empty, [&] { return is_satisfiable(context); },
          [&](uint64_t units) { work(units); }, limits().cells))
    return false;
  RealText text;
  const std::string value_text = text(*value);
  const std::string known = facts.empty() ? "" : "(and true" + text_of(facts, text) + ")";
  text.index_text(context);
  std::string declarations = text.index_text.declarations();
  for (const std::string& variable : text.variables) declarations += "(declare-const " + variable + " Real)\n";
  const std::string negated = "(not (= 0.0 " + value_text + "))";
  record(context, known.empty() ? negated : "(and " + known + " " + negated + ")", declarations);
  return true;
}

}  // namespace gopt::verifier
