#include "context.h"

namespace gopt::ir {
namespace {

// Places where one stands for all of an axis, and updates, each at the update number `m`.
struct Updates {
  TensorExpr places, updates;
  size_t axis;

  Expr place(std::vector<Index> i, const Index& m) const {
    i[axis] = m;
    for (size_t k = 0; k < i.size(); k++)
      if (k != axis && places.shape[k] == Index(1)) i[k] = Index(0);
    return places.at(i);
  }
  Expr update(std::vector<Index> i, const Index& m) const {
    i[axis] = m;
    return updates.at(i);
  }
  // f(m) reduced over the updates at the element, `nothing` in place of the others.
  template <class F>
  Expr reduced(ReduceKind kind, const std::vector<Index>& i, const F& f, const Expr& nothing) const {
    return reduce(kind, {updates.shape[axis]}, [&](const std::vector<Index>& m) {
      return choose(is_equal(place(i, m[0]), size_of(i[axis])), f(m[0]), nothing);
    });
  }
  // The last of the updates at the element; no two are looked at as one, so that a sum picks it.
  Expr last(const std::vector<Index>& i, const Expr& otherwise) const {
    const Expr number = reduced(
        ReduceKind::Max, i, [](const Index& m) { return size_of(m); }, constant(-1));
    const Expr picked = reduce(ReduceKind::Sum, {updates.shape[axis]}, [&](const std::vector<Index>& m) {
      return choose(is_equal(size_of(m[0]), number), update(i, m[0]), constant(0));
    });
    return choose(is_less(number, constant(0)), otherwise, picked);
  }
};

}  // namespace

void define_ScatterAlong(DefineContext& c) {
  const TensorExpr x = c.input(0), places = c.input(1), updates = c.input(2);
  const size_t rank = x.shape.size();
  if (rank == 0 || places.shape.size() != rank || updates.shape.size() != rank)
    c.fail("x, places and updates have one rank, at least one");
  if (updates.element != x.element) c.fail("updates are " + to_string(updates.element) + ", x " + to_string(x.element));
  if (!is_integer(places.element)) c.fail("places are integers");
  const size_t axis = c.axis("axis", rank);
  for (size_t k = 0; k < rank; k++) {
    if (k != axis) c.require(equal(updates.shape[k], x.shape[k]), "updates are as large as x beside the axis");
    if (k == axis || places.shape[k] != Index(1))
      c.require(equal(places.shape[k], updates.shape[k]), "places are one for all or one for each update");
  }
  c.require(at_least(updates.shape[axis], Index(1)), "there are updates");
  const std::string reduction = c.text("reduction");
  const Updates own{places, updates, axis};
  c.output(x.element, x.shape, [=](const std::vector<Index>& i) {
    const auto update = [&](const Index& m) { return own.update(i, m); };
    const Expr before = x.at(i);
    if (reduction == "add") return before + own.reduced(ReduceKind::Sum, i, update, constant(0));
    if (reduction == "mul") return before * own.reduced(ReduceKind::Product, i, update, constant(1));
    if (reduction == "max") return maximum(before, own.reduced(ReduceKind::Max, i, update, before));
    if (reduction == "min") return minimum(before, own.reduced(ReduceKind::Min, i, update, before));
    return own.last(i, before);
  });
  if (reduction != "none" && reduction != "add" && reduction != "mul" && reduction != "max" && reduction != "min")
    c.fail("reduction is " + reduction + ", not none, add, mul, max or min");
}

}  // namespace gopt::ir
