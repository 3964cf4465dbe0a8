#include "well_formed.h"

#include "normal_form/normal_form.h"

namespace gopt::verifier {
namespace {

class Checker {
 public:
  Checker(const std::vector<TensorType>& inputs, Solver& solver) : inputs_(inputs), solver_(solver) {}

  // The first complaint, empty if there is none.
  std::string operator()(const Expr& e, const Cond& context) {
    switch (e->kind) {
      case ExprKind::Read: return check_read(e, context);
      case ExprKind::Select: {
        const Cond yes = context && e->cond, no = context && !e->cond;
        if (!solver_.is_infeasible(yes))
          if (std::string complaint = (*this)(e->args[0], yes); !complaint.empty()) return complaint;
        return solver_.is_infeasible(no) ? "" : (*this)(e->args[1], no);
      }
      case ExprKind::Divide:
        if (e->args[1]->kind == ExprKind::Size && !solver_.entails(context, at_least(e->args[1]->index, Index(1))))
          return "division by a size that may be 0: " + to_string(e->args[1]);
        return check_args(e, context);
      case ExprKind::Reduce: return check_reduction(e, context);
      default: return check_args(e, context);
    }
  }

 private:
  std::string check_args(const Expr& e, const Cond& context) {
    for (const Expr& a : e->args)
      if (std::string complaint = (*this)(a, context); !complaint.empty()) return complaint;
    return "";
  }

  std::string check_read(const Expr& e, const Cond& context) {
    const TensorType& type = inputs_.at(static_cast<size_t>(e->input));
    if (e->subscripts.size() != type.shape->size()) return "rank of " + to_string(e);
    for (size_t k = 0; k < e->subscripts.size(); k++)
      if (!solver_.entails(context, within(e->subscripts[k], Index(0), (*type.shape)[k])))
        return to_string(e) + " may be out of bounds on axis " + std::to_string(k) + " of " + to_string(*type.shape);
    return "";
  }

  std::string check_reduction(const Expr& e, const Cond& context) {
    Substitution renamed;
    Cond domain;
    for (const Binder& b : e->binders) {
      const Index fresh = pool_.fresh_index();
      renamed[b.symbol] = fresh;
      domain = domain && within(fresh, Index(0), b.extent);
      const bool needs_elements = e->reduce == ReduceKind::Max || e->reduce == ReduceKind::Min;
      if (needs_elements && !solver_.entails(context, at_least(b.extent, Index(1))))
        return "a maximum may be over nothing: " + to_string(b.extent);
    }
    return (*this)(substitute(e->args[0], renamed), context && domain);
  }

  const std::vector<TensorType>& inputs_;
  Solver& solver_;
  BinderPool pool_;
};

}  // namespace

std::string find_ill_formed(const TensorExpr& output, const std::vector<TensorType>& inputs, const Cond& context,
                            Solver& solver) {
  std::vector<Index> subscripts;
  Cond all = context;
  for (size_t axis = 0; axis < output.shape.size(); axis++) {
    subscripts.push_back(symbol("%o_" + std::to_string(axis)));
    all = all && within(subscripts.back(), Index(0), output.shape[axis]);
  }
  return Checker(inputs, solver)(output.at(subscripts), all);
}

}  // namespace gopt::verifier
