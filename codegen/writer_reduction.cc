// Loops of reductions: guards become bounds, the binder that walks memory one by one is innermost and vectorized.
#include <algorithm>
#include <cmath>

#include "gopt/wide_integers.h"
#include "transform.h"
#include "writer.h"

namespace gopt::codegen {
double neutral_element(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum: return 0;
    case ReduceKind::Product: return 1;
    case ReduceKind::Max: return -INFINITY;
    case ReduceKind::Min: return INFINITY;
  }
  return 0;
}

namespace {

bool is_constant(const Expr& e, double value) { return e->kind == ExprKind::Constant && e->value == value; }

void conjuncts(const Cond& cond, std::vector<Index>& linear, std::vector<Cond>& rest) {
  if (cond.kind() == CondKind::And) {
    for (const Cond& part : cond.parts()) conjuncts(part, linear, rest);
  } else if (cond.kind() == CondKind::NonNegative) {
    linear.push_back(cond.index());
  } else {
    rest.push_back(cond);
  }
}

}  // namespace

// Of integers of 64 bits without a sign: what is compared is not how they are stored.
bool ReductionWriter::compares_unsigned() const {
  return (e_->reduce == ReduceKind::Max || e_->reduce == ReduceKind::Min) && type_ == Scalar::Int &&
         is_unsigned(e_->args[0], w_.body_.inputs);
}

std::string ReductionWriter::initial() const {
  if (compares_unsigned()) return e_->reduce == ReduceKind::Max ? "0" : "(-1)";
  return literal(neutral_element(e_->reduce), type_);
}

std::string ReductionWriter::combine(const std::string& a, const std::string& b) const {
  if (compares_unsigned())
    return std::string("(int64_t)") + (e_->reduce == ReduceKind::Max ? "gopt_max" : "gopt_min") +
           "<uint64_t>((uint64_t)" + a + ", (uint64_t)" + b + ")";
  const auto together = [&](const char* sign) {
    return type_ == Scalar::Int ? arithmetic(sign, type_, {a, b}) : a + sign + b;
  };
  switch (e_->reduce) {
    case ReduceKind::Sum: return together(" + ");
    case ReduceKind::Product: return together(" * ");
    case ReduceKind::Max: return "gopt_max<" + type_name(type_) + ">(" + a + ", " + b + ")";
    case ReduceKind::Min: return "gopt_min<" + type_name(type_) + ">(" + a + ", " + b + ")";
  }
  return "";
}

// A vector's lanes are combined by comparisons, which lose a NaN: whether there was one is a reduction of its own.
bool ReductionWriter::watches_nan() const {
  return (e_->reduce == ReduceKind::Max || e_->reduce == ReduceKind::Min) &&
         (type_ == Scalar::Float || type_ == Scalar::Double);
}

// The body of a vectorized loop: adds `value` to `sum`.
std::string ReductionWriter::vector_step(const std::string& sum, const std::string& value) const {
  if (!watches_nan()) return sum + " = " + combine(sum, value) + ";\n";
  const std::string v = w_.fresh("v"), sign = e_->reduce == ReduceKind::Max ? " > " : " < ";
  return "const " + type_name(type_) + " " + v + " = " + value + ";\n" + sum + " = " + v + sign + sum + " ? " + v +
         " : " + sum + ";\n" + sum + "_nan |= " + v + " != " + v + ";\n";
}

// Takes guards whose other side is the reduction's neutral element out of the body, also from within products.
void ReductionWriter::lift_guard() {
  body_ = e_->args[0];
  while (true) {
    if (body_->kind == ExprKind::Select && is_constant(body_->args[1], neutral_element(e_->reduce))) {
      conjuncts(body_->cond, guards_, rest_);
      body_ = body_->args[0];
      continue;
    }
    const bool product =
        e_->reduce == ReduceKind::Sum && (body_->kind == ExprKind::Multiply || body_->kind == ExprKind::Divide);
    if (!product) return;
    size_t side = 2;
    for (size_t i = 0; i < (body_->kind == ExprKind::Divide ? 1u : 2u); i++)
      if (body_->args[i]->kind == ExprKind::Select && is_constant(body_->args[i]->args[1], 0)) side = i;
    if (side == 2) return;
    const Expr guarded = body_->args[side];
    conjuncts(guarded->cond, guards_, rest_);
    if (body_->kind == ExprKind::Divide)
      body_ = guarded->args[0] / body_->args[1];
    else
      body_ = side == 0 ? guarded->args[0] * body_->args[1] : body_->args[0] * guarded->args[0];
  }
}

bool ReductionWriter::unit_stride(AtomId symbol) {
  bool unit = true, any = false;
  for_each_read(e_->args[0], [&](const Expr& r) {
    const auto c = coefficient(r->subscripts[0], symbol);
    unit = unit && c && (*c == 0 || *c == 1);
    any = any || (c && *c == 1);
  });
  return unit && any;
}

bool ReductionWriter::prefers_lanes(AtomId lane, int64_t lane_count) {
  if (unit_stride(lane)) return true;
  for (const Binder& b : e_->binders)
    if (unit_stride(b.symbol) && usual(b.extent, w_.body_.open).value_or(0) >= 8) return false;
  return lane_count >= 8;
}

// The vectorized binder goes innermost.
void ReductionWriter::order_binders(std::optional<AtomId> lane) {
  binders_ = e_->binders;
  if (lane) return;
  for (size_t i = 0; i < binders_.size(); i++) {
    if (!unit_stride(binders_[i].symbol) || usual(binders_[i].extent, w_.body_.open).value_or(0) < 4) continue;
    std::rotate(binders_.begin() + static_cast<long>(i), binders_.begin() + static_cast<long>(i) + 1, binders_.end());
    return;
  }
}

void ReductionWriter::add_binders(Scope& outer) {
  Scope* parent = &outer;
  for (const Binder& b : binders_) {
    Scope& scope = w_.add_scope(*parent);
    const std::string name = w_.fresh("r");
    scope.bound = {{b.symbol, name}};
    parts_.push_back({&scope, b.symbol, name, "0", w_.index_text(b.extent, *parent), {}, {}});
    parent = &scope;
  }
}

// A guard a * s + rest >= 0 bounds the innermost loop that it depends on.
bool ReductionWriter::tighten_one(const Index& guard) {
  for (size_t i = parts_.size(); i-- > 0;) {
    LoopPart& part = parts_[i];
    if (!depends_on(guard, part.symbol)) continue;
    const auto a = coefficient(guard, part.symbol);
    if (!a || has_load(guard)) return false;
    const Index rest = guard - Index(*a) * Index::from_atom(part.symbol);
    const Scope& outside = *part.scope->parent;
    if (*a > 0) {
      const std::string text = w_.index_text(-rest, outside);
      part.lows.push_back(*a == 1 ? text : "gopt_ceil_div(" + text + ", " + std::to_string(*a) + ")");
    } else {
      const std::string text = w_.index_text(rest, outside);
      part.highs.push_back((*a == -1 ? text : "gopt_floor_div(" + text + ", " + std::to_string(-*a) + ")") + " + 1");
    }
    return true;
  }
  return false;
}

void ReductionWriter::tighten() {
  for (const Index& guard : guards_)
    if (!tighten_one(guard)) rest_.push_back(at_least(guard, Index(0)));
  for (LoopPart& part : parts_) {
    for (const std::string& low : part.lows) part.low = "gopt_max<int64_t>(" + low + ", " + part.low + ")";
    for (const std::string& high : part.highs) part.high = "gopt_min<int64_t>(" + high + ", " + part.high + ")";
  }
}

Expr ReductionWriter::guarded_body() const {
  Cond all;
  for (const Cond& c : rest_) all = all && c;
  return select(all, body_, constant(neutral_element(e_->reduce)));
}

std::string ReductionWriter::close(const LoopPart& part, const std::string& pragma, bool divided) const {
  const std::string low = part.name + "_low", high = part.name + "_high";
  std::string text;
  const bool tight = !part.lows.empty() || !part.highs.empty();
  if (tight) text = "const int64_t " + low + " = " + part.low + ", " + high + " = " + part.high + ";\n";
  text += pragma;
  const bool is_number = part.high.find_first_not_of("0123456789") == std::string::npos;
  if (divided && w_.row_loop) return w_.row_loop(part.name, part.scope->code);
  if (divided && !tight && part.low == "0" && is_number)
    return text + thread_loop("int64_t", part.name, std::stoll(part.high), w_.threads) + part.scope->code + "}\n";
  const std::string first = (tight ? low : part.low) + (divided ? " + " + w_.threads.own : ""),
                    step = divided         ? " += " + std::to_string(w_.threads.count)
                           : part.step > 1 ? " += " + std::to_string(part.step)
                                           : "++";
  return text + "for (int64_t " + part.name + " = " + first + "; " + part.name + " < " + (tight ? high : part.high) +
         "; " + part.name + step + ") {\n" + part.scope->code + "}\n";
}

// Threads of a block divide the innermost loop: the longest goes there.
void ReductionWriter::share() {
  auto extent = [&](const Binder& b) { return usual(b.extent, w_.body_.open).value_or(0); };
  auto longest = std::max_element(binders_.begin(), binders_.end(),
                                  [&](const Binder& a, const Binder& b) { return extent(a) < extent(b); });
  if (longest != binders_.end() && extent(binders_.back()) < 32) std::rotate(longest, longest + 1, binders_.end());
}

namespace {

bool contains(const Expr& e, const Expr& part, std::set<const Expr::Node*>& seen) {
  if (e == part) return true;
  if (!seen.insert(e.get()).second) return false;
  return std::any_of(e->args.begin(), e->args.end(), [&](const Expr& a) { return contains(a, part, seen); });
}

Expr with_symbol(const Expr& e, AtomId symbol, AtomId by) {
  const Substitution other{{symbol, Index::from_atom(by)}};
  return map_expr(e, [&](const Index& index) { return substitute(index, other); });
}

}  // namespace

std::string ReductionWriter::row_start(const Scope& scope) const {
  return w_.index_text(substitute(w_.body_.offset, Substitution{{w_.row->symbol, Index(0)}}), scope);
}

// Whether floats may be kept where the result's row will be: none are yet, and the scope knows where that is.
bool ReductionWriter::has_result_row(const Scope& scope) const {
  if (w_.keeps_row || type_ != Scalar::Float || w_.body_.output != ElementType::Float32) return false;
  if (coefficient(w_.body_.offset, w_.row->symbol) != 1) return false;
  std::set<AtomId> symbols;
  collect_symbols(w_.body_.offset, symbols);
  symbols.erase(w_.row->symbol);
  for (const Scope* s = &scope; s; s = s->parent)
    for (const auto& [symbol, name] : s->bound) symbols.erase(symbol);
  return symbols.empty();
}

// The exponentials that softmax sums, for one.
bool ReductionWriter::serves_row(const Expr& body, const Scope& scope) const {
  if (!w_.row || parts_.size() != 1 || !parts_[0].lows.empty() || !parts_[0].highs.empty()) return false;
  if (binders_[0].extent != w_.row->extent || !w_.is_expensive(body)) return false;
  std::set<AtomId> symbols;  // what is the same along the row is no array over it
  collect_symbols(body, symbols);
  if (!symbols.contains(binders_[0].symbol)) return false;
  if (w_.row->capacity > kMaxRow && !has_result_row(scope)) return false;
  std::set<const Expr::Node*> seen;
  return contains(w_.body_.value, with_symbol(body, binders_[0].symbol, w_.row->symbol), seen);
}

std::string ReductionWriter::write_scalar(Scope& scope) {
  lift_guard();
  order_binders(std::nullopt);
  if (scope.shared) share();
  const std::string name = w_.fresh("t");
  add_binders(scope);
  tighten();
  scope.has_loop = true;
  const Expr body = guarded_body();
  if (e_->reduce == ReduceKind::Sum && body->kind == ExprKind::Constant) {
    // A count: the product of the loops' lengths, where none depends on another.
    const bool apart = std::all_of(parts_.begin(), parts_.end(), [&](const LoopPart& p) {
      for (const LoopPart& q : parts_)
        if ((p.low + p.high).find(q.name) != std::string::npos) return false;
      return true;
    });
    if (apart) {
      std::string text = literal(body->value, type_);
      for (const LoopPart& p : parts_)
        text += " * (" + type_name(type_) + ")gopt_max<int64_t>(0, " + p.high + " - (" + p.low + "))";
      scope.code += "const " + type_name(type_) + " " + name + " = " + text + ";\n";
      return name;
    }
  }
  scope.code += type_name(type_) + " " + name + " = " + initial() + ";\n";
  if (parts_.empty()) {
    const std::string value = w_.value(body, scope, type_);
    scope.code += name + " = " + combine(name, value) + ";\n";
    return name;
  }
  Scope& inner = *parts_.back().scope;
  const std::string value = w_.value(body, inner, type_);
  const bool vector = !inner.has_loop && w_.pragmas && !compares_unsigned();
  const char* operators[] = {"+", "max", "min", "*"};
  const bool watches = vector && watches_nan();
  const int64_t lanes = vector ? lanes_of_short(parts_.back()) : 0;
  const std::string sums = name + "_of", count = "[" + std::to_string(lanes) + "]";
  const std::string pragma = !vector ? ""
                                     : "#pragma omp simd reduction(" +
                                           std::string(operators[static_cast<int>(e_->reduce)]) + ":" + name + ")" +
                                           (watches ? " reduction(|:" + name + "_nan)\n" : "\n");
  if (lanes > 0)
    scope.code += "float " + sums + count + ";\ngopt_fill(" + sums + ", " + name + ");\n" +
                  (watches ? "int " + sums + "_nan" + count + " = {};\n" : "");
  else if (watches)
    scope.code += "int " + name + "_nan = 0;\n";
  inner.code += lanes > 0 ? lane_step(sums, value, parts_.back())
                : vector  ? vector_step(name, value)
                          : name + " = " + combine(name, value) + ";\n";
  if (serves_row(body, scope)) {
    const std::string row = w_.fresh("a");
    w_.keeps_row = true;
    if (w_.row->capacity > kMaxRow)
      scope.code += type_name(type_) + "* const " + row + " = out + (" + row_start(scope) + ");\n";
    else
      scope.code += "alignas(64) " + type_name(type_) + " " + row + "[" + std::to_string(w_.row->capacity) + "];\n";
    inner.code += row + "[" + parts_[0].name + "] = " + value + ";\n";
    w_.remember(scope, with_symbol(body, binders_[0].symbol, w_.row->symbol), row, type_, true);
  }
  for (size_t i = parts_.size(); i-- > 0;) {
    const bool innermost = i + 1 == parts_.size();
    const std::string text = innermost && lanes > 0
                                 ? close_short(parts_[i], lanes)
                                 : close(parts_[i], innermost ? pragma : "", innermost && scope.shared);
    Scope& outside = i == 0 ? scope : *parts_[i - 1].scope;
    outside.code += text;
    outside.has_loop = true;
  }
  if (lanes > 0)
    scope.code += name + " = gopt_fold(" + sums + ", [](auto a, auto b) { return " + folded("a", "b") + "; });\n";
  if (watches)
    scope.code += "if (" + (lanes > 0 ? "gopt_has_any(" + sums + "_nan)" : name + "_nan") + ") " + name + " = NAN;\n";
  if (scope.shared)
    scope.code +=
        name + " = " + w_.reduce + "(" + name + ", [](auto a, auto b) { return " + combine("a", "b") + "; });\n";
  return name;
}

// Several steps of the innermost binder at once, so that a lane's sum is loaded and stored once for them, and memory is
// read in several streams.
void ReductionWriter::unroll(Scope& lanes) {
  if (parts_.size() < 2) return;
  LoopPart &part = parts_[parts_.size() - 2], &lane = parts_.back();
  const int64_t extent = binders_.back().extent.as_constant().value_or(0);
  const bool depends = (lane.low + lane.high).find(part.name) != std::string::npos;
  if (!part.lows.empty() || !part.highs.empty() || depends || lanes.has_loop) return;
  for (int64_t step : {4, 3, 2})
    if (extent > 0 && extent % step == 0) {
      part.step = step;
      return;
    }
}

// Adds the body to a lane's sum, once for each unrolled step. `kept_along`: the loop of the result along whose places
// what is added is kept.
void ReductionWriter::accumulate(Scope& lanes, const std::string& sum, std::optional<AtomId> kept_along) {
  const Expr body = guarded_body();
  const int64_t steps = parts_.size() < 2 ? 1 : parts_[parts_.size() - 2].step;
  std::string so_far = sum;
  for (int64_t i = 0; i < steps; i++) {
    Expr step = body;
    if (i > 0) {
      const Substitution next{{binders_.back().symbol, Index::from_atom(binders_.back().symbol) + Index(i)}};
      step = map_expr(body, [&](const Index& index) { return substitute(index, next); });
    }
    const std::string value = w_.value(step, lanes, type_), name = w_.fresh("u");
    if (kept_along) {
      const Substitution here{{*kept_along, Index::from_atom(binders_.back().symbol) + Index(i)}};
      lanes.code += "out[" + w_.index_text(substitute(w_.body_.offset, here), lanes) + "] = " + value + ";\n";
    }
    lanes.code += "const " + type_name(type_) + " " + name + " = " + combine(so_far, value) + ";\n";
    so_far = name;
  }
  lanes.code += sum + " = " + so_far + ";\n";
}

// The exponentials that a softmax along another axis than the lanes' sums: kept where the result will be, along its
// loop between `home` and the lanes, which is returned.
std::optional<AtomId> ReductionWriter::serves_lanes(const Scope& home, const Scope& lanes) const {
  if (w_.keeps_result || w_.keeps_row || type_ != Scalar::Float || w_.body_.output != ElementType::Float32) return {};
  if (binders_.size() != 1 || !guards_.empty() || !rest_.empty() || !w_.is_expensive(body_)) return {};
  std::set<AtomId> known{lanes.bound[0].first}, between, needed;
  for (const Scope* s = lanes.parent; s && s != &home; s = s->parent) {
    if (s->guard || s->divided) return {};  // a thread would write what another has read already
    for (const auto& [symbol, name] : s->bound) between.insert(symbol);
  }
  for (const Scope* s = &home; s; s = s->parent)
    for (const auto& [symbol, name] : s->bound) known.insert(symbol);
  if (between.size() != 1 || known.contains(*between.begin())) return {};
  const AtomId along = *between.begin();
  known.insert(along);
  const auto& loops = w_.body_.loops;
  const auto loop = std::ranges::find_if(loops, [&](const Loop& l) { return l.symbol == along; });
  if (loop == loops.end() || loop->low != Index(0) || loop->high != binders_[0].extent) return {};
  collect_symbols(w_.body_.offset, needed);
  for (const OpenExtent& extent : w_.body_.open) known.insert(extent.symbol);
  if (!std::ranges::includes(known, needed)) return {};
  std::set<const Expr::Node*> seen;
  if (!contains(w_.body_.value, with_symbol(body_, binders_[0].symbol, along), seen)) return {};
  return along;
}

std::string ReductionWriter::write_array(Scope& home, Scope& lanes) {
  lift_guard();
  order_binders(lanes.bound[0].first);
  const std::optional<AtomId> kept_along = serves_lanes(home, lanes);
  const std::string name = w_.fresh("a");
  add_binders(home);
  Scope& innermost = parts_.empty() ? home : *parts_.back().scope;
  Scope& own = w_.add_scope(innermost);
  own.lanes = true;
  own.bound = {{lanes.bound[0].first, w_.fresh("j")}};
  own.low = lanes.low;
  own.high = lanes.high;
  own.lane_count = lanes.lane_count;
  const std::string lane = own.bound[0].second, at = "[" + lane + (own.low == "0" ? "" : " - " + own.low) + "]";
  parts_.push_back({&own, lanes.bound[0].first, lane, own.low, own.high, {}, {}});
  tighten();
  const std::string simd = w_.pragmas ? "#pragma omp simd\n" : "";
  const std::string count = std::to_string(lanes.lane_count);
  home.code += "alignas(64) " + type_name(type_) + " " + name + "[" + count + "];\n";
  home.code += simd + "for (int64_t z = 0; z < " + count + "; z++) " + name + "[z] = " + initial() + ";\n";
  unroll(own);
  accumulate(own, name + at, kept_along);
  if (kept_along) {
    w_.keeps_result = true;
    w_.remember(lanes, with_symbol(body_, binders_[0].symbol, *kept_along),
                "out[" + w_.index_text(w_.body_.offset, lanes) + "]", type_, false);
  }
  for (size_t i = parts_.size(); i-- > 0;) {
    const std::string text = close(parts_[i], i + 1 == parts_.size() && !own.has_loop ? simd : "");
    Scope& outside = i == 0 ? home : *parts_[i - 1].scope;
    outside.code += text;
    outside.has_loop = true;
  }
  return name;
}

}  // namespace gopt::codegen
