#include "compiled_stage.h"

#include <map>

#include "gopt/wide_integers.h"

namespace gopt::ir {
namespace {

class StageCompiler {
 public:
  CompiledStage run(const Stage& stage, std::span<const TensorView> inputs, size_t lane_axis) {
    for (const TensorView& t : inputs) types_.push_back(t.type);
    for (AtomId a : stage.axes) slot_of(a);
    compiled_.lane = stage.axes.empty() ? -1 : static_cast<int>(lane_axis);
    compiled_.root = compile(stage.value);
    compiled_.slots = slot_ids_.size();
    return std::move(compiled_);
  }

 private:
  int slot_of(AtomId id) {
    auto [it, inserted] = slot_ids_.try_emplace(id, static_cast<int>(slot_ids_.size()));
    return it->second;
  }

  CompiledIndex compile(const Index& index) {
    CompiledIndex c;
    c.constant = index.constant();
    for (const Index::Term& term : index.terms()) {
      if (term.atoms.size() == 1 && atom(term.atoms[0]).kind == AtomKind::Symbol) {
        const int slot = slot_of(term.atoms[0]);
        c.linear.emplace_back(slot, term.coefficient);
        if (slot == compiled_.lane) c.lane_coefficient = term.coefficient;
        continue;
      }
      CompiledTerm t{term.coefficient, {}, 0, false};
      for (AtomId id : term.atoms) {
        t.atoms.push_back(compile_atom(id));
        const CompiledAtom& a = t.atoms.back();
        if (a.kind == AtomKind::Symbol)
          t.lane_power += a.slot == compiled_.lane;
        else
          t.lane_inside |= a.uses_lane;
      }
      c.terms.push_back(std::move(t));
    }
    return c;
  }
  CompiledAtom compile_atom(AtomId id) {
    const Atom& a = atom(id);
    CompiledAtom c{a.kind, 0, nullptr, nullptr, a.input, {}, false};
    if (a.kind == AtomKind::Symbol) {
      c.slot = slot_of(id);
      c.uses_lane = c.slot == compiled_.lane;
    }
    if (a.kind == AtomKind::FloorDiv) {
      c.numerator = std::make_shared<const CompiledIndex>(compile(a.numerator));
      c.denominator = std::make_shared<const CompiledIndex>(compile(a.denominator));
      c.uses_lane = c.numerator->uses_lane() || c.denominator->uses_lane();
    }
    for (const Index& s : a.subscripts) {
      c.subscripts.push_back(compile(s));
      c.uses_lane |= c.subscripts.back().uses_lane();
    }
    return c;
  }
  CompiledCond compile(const Cond& cond) {
    CompiledCond c{cond.kind(), compile(cond.index()), {}, false};
    c.uses_lane = c.index.uses_lane();
    for (const Cond& part : cond.parts()) {
      c.parts.push_back(compile(part));
      c.uses_lane |= c.parts.back().uses_lane;
    }
    return c;
  }

  int compile(const Expr& e) {
    if (auto it = known_.find(e.get()); it != known_.end()) return it->second;
    StageExpr c{.kind = e->kind,
                .domain = domain_of(e, types_),
                .value = e->value,
                .input = e->input,
                .function = e->function,
                .type = e->type,
                .is_unsigned = is_unsigned(e, types_),
                .reduce = e->reduce};
    c.index = compile(e->index);
    for (const Index& s : e->subscripts) c.subscripts.push_back(compile(s));
    for (const Binder& b : e->binders) c.binders.emplace_back(slot_of(b.symbol), compile(b.extent));
    for (const Expr& a : e->args) c.args.push_back(compile(a));
    c.cond = compile(e->cond);
    compiled_.nodes.push_back(std::move(c));
    known_[e.get()] = static_cast<int>(compiled_.nodes.size() - 1);
    return static_cast<int>(compiled_.nodes.size() - 1);
  }

  std::vector<ElementType> types_;
  std::map<AtomId, int> slot_ids_;
  std::map<const Expr::Node*, int> known_;
  CompiledStage compiled_;
};

}  // namespace

CompiledStage compile_stage(const Stage& stage, std::span<const TensorView> inputs, size_t lane_axis) {
  return StageCompiler().run(stage, inputs, lane_axis);
}

}  // namespace gopt::ir
