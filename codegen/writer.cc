#include "writer.h"

#include <algorithm>
#include <cmath>

namespace gopt::codegen {

std::string type_name(Scalar scalar) {
  switch (scalar) {
    case Scalar::Bool: return "int";
    case Scalar::Int: return "int64_t";
    case Scalar::Float: return "float";
    case Scalar::Double: return "double";
  }
  return "";
}

std::string storage_name(ElementType element) {
  switch (element) {
    case ElementType::Float32: return "float";
    case ElementType::Float64: return "double";
    case ElementType::Float16: return "gopt_half";
    case ElementType::BFloat16: return "gopt_bfloat16";
    case ElementType::Bool:
    case ElementType::UInt8: return "uint8_t";
    case ElementType::Int8: return "int8_t";
    case ElementType::UInt16: return "uint16_t";
    case ElementType::Int16: return "int16_t";
    case ElementType::UInt32: return "uint32_t";
    case ElementType::Int32: return "int32_t";
    case ElementType::UInt64: return "uint64_t";
    default: return "int64_t";
  }
}

Scalar scalar_of(ElementType element) {
  if (element == ElementType::Bool) return Scalar::Bool;
  if (element == ElementType::Float64) return Scalar::Double;
  return is_floating(element) ? Scalar::Float : Scalar::Int;
}

std::string thread_loop(const std::string& type, const std::string& name, int64_t extent, const Threads& threads) {
  constexpr int64_t kMostTurns = 8;
  const std::string step = "; " + name + " += " + std::to_string(threads.count) + ") ";
  const std::string head = "for (" + type + " " + name + " = " + threads.own;
  const int64_t turns = (extent + threads.count - 1) / threads.count;
  if (turns > kMostTurns) return head + "; " + name + " < " + std::to_string(extent) + step + "{\n";
  const std::string end = name + "_end", guard = "if (" + name + " < " + std::to_string(extent) + ") ";
  return "#pragma unroll\n" + head + ", " + end + " = " + name + " + " + std::to_string(turns * threads.count) + "; " +
         name + " != " + end + step + (extent % threads.count == 0 ? "" : guard) + "{\n";
}

std::string literal(double value, Scalar scalar) {
  if (scalar == Scalar::Bool || scalar == Scalar::Int) {
    if (std::isnan(value)) return "0";
    if (value >= 9.2e18) return "INT64_MAX";
    if (value <= -9.2e18) return "INT64_MIN";
    const std::string text = std::to_string(static_cast<int64_t>(value));
    return value < 0 ? "(" + text + ")" : text;
  }
  const bool single = scalar == Scalar::Float;
  if (single) value = static_cast<float>(value);
  if (std::isnan(value)) return single ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
  if (std::isinf(value))
    return std::string(value < 0 ? "(-" : "(") + (single ? "__builtin_inff())" : "__builtin_inf())");
  char text[40];
  snprintf(text, sizeof text, single ? "%.9g" : "%.17g", value);
  std::string s = text;
  if (s.find_first_of(".e") == std::string::npos) s += ".0";
  if (single) s += "f";
  return value < 0 || std::signbit(value) ? "(" + s + ")" : s;
}

std::string converted(const std::string& text, Scalar from, Scalar to) {
  if (from == to || (from == Scalar::Bool && to == Scalar::Int)) return text;
  if (to == Scalar::Bool) return "(" + text + " != 0)";
  if (to == Scalar::Int) return "gopt_to_int(" + text + ")";
  return "(" + type_name(to) + ")" + text;
}

namespace {
bool is_real(Scalar scalar) { return scalar == Scalar::Float || scalar == Scalar::Double; }
}  // namespace

std::string stored(const std::string& text, Scalar from, ElementType to) {
  if (to == ElementType::Bool) return "(uint8_t)(" + text + " != 0)";
  if (is_half(to)) return storage_name(to) + "(" + (is_real(from) ? text : converted(text, from, Scalar::Float)) + ")";
  const std::string value = converted(text, from, scalar_of(to));
  return scalar_of(to) == Scalar::Int && to != ElementType::Int64 ? "(" + storage_name(to) + ")" + value : value;
}

Writer::Writer(const KernelBody& body) : body_(body), known_(with_binders(body.value, known_of(body))) {
  scopes_.emplace_back();
  root_ = &scopes_.back();
}

Scope& Writer::add_scope(Scope& parent) {
  scopes_.emplace_back();
  scopes_.back().parent = &parent;
  return scopes_.back();
}

// ---- facts about expressions, remembered ----

const std::set<AtomId>& Writer::free_symbols(const Expr& e) {
  auto it = free_.find(e.get());
  if (it != free_.end()) return it->second;
  kept_.push_back(e);
  std::set<AtomId> symbols;
  collect_symbols(e, symbols);
  return free_.emplace(e.get(), std::move(symbols)).first->second;
}

namespace {

Scalar join(Scalar a, Scalar b) { return std::max(a, b); }

template <class F>
bool any_node(const Expr& e, std::unordered_map<const Expr::Node*, bool>& memo, std::vector<Expr>& kept,
              const F& test) {
  if (auto it = memo.find(e.get()); it != memo.end()) return it->second;
  bool found = test(e);
  for (const Expr& a : e->args) found = any_node(a, memo, kept, test) || found;
  kept.push_back(e);
  return memo[e.get()] = found;
}

}  // namespace

bool Writer::reads(const Expr& e) {
  return any_node(e, reads_, kept_, [](const Expr& x) {
    bool load = x->kind == ExprKind::Size && has_load(x->index);
    return load || x->kind == ExprKind::Read;
  });
}
bool Writer::has_reduction(const Expr& e) {
  return any_node(e, reductions_, kept_, [](const Expr& x) { return x->kind == ExprKind::Reduce; });
}
bool Writer::is_expensive(const Expr& e) {
  return any_node(e, expensive_, kept_, [](const Expr& x) {
    return x->kind == ExprKind::Call || x->kind == ExprKind::Divide || x->kind == ExprKind::Reduce;
  });
}

std::optional<Scalar> Writer::own_type(const Expr& e) {
  if (auto it = types_.find(e.get()); it != types_.end()) return it->second;
  std::optional<Scalar> type;
  // What is chosen among constants alone is of the type of what it is beside, as a constant is.
  auto join_args = [&](size_t first) {
    for (const bool all : {false, true}) {
      for (size_t i = first; i < e->args.size(); i++)
        if (all || !is_of_constants(e->args[i]))
          if (auto t = own_type(e->args[i])) type = type ? join(*type, *t) : *t;
      if (type && *type != Scalar::Bool) return;
    }
  };
  switch (e->kind) {
    case ExprKind::Constant: break;
    case ExprKind::Size: type = Scalar::Int; break;
    case ExprKind::Read: type = scalar_of(body_.inputs[static_cast<size_t>(e->input)]); break;
    case ExprKind::Less:
    case ExprKind::Equal:
      join_args(0);
      if (type) type = Scalar::Bool;
      break;
    case ExprKind::Choose: join_args(1); break;
    case ExprKind::Convert: type = scalar_of(e->type); break;
    default:
      join_args(0);
      // Beside integers a fraction would be cut off.
      if (type == Scalar::Int || type == Scalar::Bool)
        for (const Expr& argument : e->args)
          if (is_of_constants(argument) && !constants_of(argument).are_whole) type = Scalar::Double;
  }
  if ((e->kind == ExprKind::Choose && !type && own_type(e->args[0])) || (e->kind == ExprKind::Select && !type))
    type = constants_of(e).are_floats ? Scalar::Float : Scalar::Double;
  if (e->kind == ExprKind::Reduce) type = !type ? Scalar::Float : *type == Scalar::Bool ? Scalar::Int : *type;
  if (e->kind == ExprKind::Call && type && e->function != Function::Fmod && e->function != Function::Pow) {
    if (e->function == Function::IsNan)
      type = Scalar::Bool;
    else if (*type != Scalar::Float)
      type = Scalar::Double;
  }
  kept_.push_back(e);
  return types_[e.get()] = type;
}

// Whether no data but conditions on data decide the value: constants, and what is chosen among, made or summed of them.
const Writer::Constants& Writer::constants_of(const Expr& e) {
  if (auto it = constants_.find(e.get()); it != constants_.end()) return it->second;
  Constants all;
  switch (e->kind) {
    case ExprKind::Constant:
      all.are_whole = e->value == std::floor(e->value) && std::isfinite(e->value);
      all.are_floats = std::isnan(e->value) || static_cast<double>(static_cast<float>(e->value)) == e->value;
      break;
    case ExprKind::Choose:
    case ExprKind::Select:
    case ExprKind::Reduce:
    case ExprKind::Add:
    case ExprKind::Subtract:
    case ExprKind::Multiply:
    case ExprKind::Maximum:
    case ExprKind::Minimum:
      for (size_t i = e->kind == ExprKind::Choose ? 1 : 0; i < e->args.size(); i++) {
        const Constants own = constants_of(e->args[i]);
        all.is_of_them = all.is_of_them && own.is_of_them;
        all.are_whole = all.are_whole && own.are_whole;
        all.are_floats = all.are_floats && own.are_floats;
      }
      break;
    default: all.is_of_them = false;
  }
  kept_.push_back(e);
  return constants_[e.get()] = all;
}

Scalar Writer::type_of(const Expr& e, Scalar otherwise) {
  const auto own = own_type(e);
  if (own && is_of_constants(e) && otherwise == (constants_of(e).are_whole ? Scalar::Int : Scalar::Double))
    return otherwise;
  return own.value_or(otherwise);
}

// Value of an expression without reads.
double Writer::fold(const Expr& e) {
  auto arg = [&](size_t i) { return fold(e->args[i]); };
  switch (e->kind) {
    case ExprKind::Constant: return e->value;
    case ExprKind::Add: return arg(0) + arg(1);
    case ExprKind::Subtract: return arg(0) - arg(1);
    case ExprKind::Multiply: return arg(0) * arg(1);
    case ExprKind::Divide: return arg(0) / arg(1);
    case ExprKind::Maximum: return std::max(arg(0), arg(1));
    case ExprKind::Minimum: return std::min(arg(0), arg(1));
    case ExprKind::Less: return arg(0) < arg(1);
    case ExprKind::Equal: return arg(0) == arg(1);
    case ExprKind::Choose: return arg(0) != 0 ? arg(1) : arg(2);
    case ExprKind::Call: break;
    default: GOPT_CHECK(false, "no constant: " + to_string(e));
  }
  using T = double;
  const T x = arg(0);
  [[maybe_unused]] const T y = e->args.size() > 1 ? arg(1) : 0;
  switch (e->function) {
#define GOPT_FUNCTION(name, arity, text, numeric) \
  case Function::name:                            \
    return numeric;
#include "gopt/function_table.def"
#undef GOPT_FUNCTION
  }
  return 0;
}

// ---- where a value is computed ----

bool Writer::binds_any(const Scope& scope, const std::set<AtomId>& symbols) const {
  for (const auto& [symbol, name] : scope.bound)
    if (symbols.contains(symbol)) return true;
  return false;
}

Scope* Writer::target(const Expr& e, Scope& scope) {
  const std::set<AtomId>& symbols = free_symbols(e);
  const bool fixed = reads(e);
  Scope* s = &scope;
  while (s->parent && !binds_any(*s, symbols) && !(s->guard && fixed)) s = s->parent;
  return s;
}

Scope* Writer::array_home(const Expr& e, Scope& lanes) {
  const std::set<AtomId>& symbols = free_symbols(e);
  const bool fixed = reads(e);
  Scope* s = lanes.parent;
  while (s->parent && !s->tile && !binds_any(*s, symbols) && !(s->guard && fixed)) s = s->parent;
  return s;
}

const Scope::Entry* Writer::find(const Expr& e, Scope& scope, Scalar type, Scope** where) {
  const bool has_any_type = is_of_constants(e);  // then it may be known in several
  for (Scope* s = &scope; s; s = s->parent) {
    auto [begin, end] = s->known.equal_range(e->hash);
    for (auto it = begin; it != end; ++it)
      if (it->second.expr == e && (!has_any_type || it->second.type == type)) {
        *where = s;
        return &it->second;
      }
    // A name of an outer loop's value is wrong where this loop binds the same symbol again.
    if (s->parent && binds_any(*s, free_symbols(e)) && !s->lanes) return nullptr;
  }
  return nullptr;
}

const Scope& Writer::lanes_scope(const Scope& scope) const {
  const Scope* s = &scope;
  while (!s->lanes) {
    GOPT_CHECK(s->parent != nullptr, "a lane's value outside the vector loop");
    s = s->parent;
  }
  return *s;
}

std::string Writer::entry_text(const Scope::Entry& entry, const Scope& scope) const {
  if (!entry.array) return entry.name;
  const Scope& lanes = lanes_scope(scope);
  return entry.name + "[" + lanes.bound[0].second + (lanes.low == "0" ? "" : " - " + lanes.low) + "]";
}

void Writer::remember(Scope& scope, const Expr& e, std::string name, Scalar type, bool array) {
  scope.known.emplace(e->hash, Scope::Entry{e, std::move(name), type, array});
}

std::string Writer::value(const Expr& e, Scope& scope, Scalar want) {
  if (!own_type(e)) return literal(fold(e), want);
  const Scalar type = type_of(e, want);
  Scope* where = nullptr;
  if (const Scope::Entry* entry = find(e, scope, type, &where))
    return converted(entry_text(*entry, scope), entry->type, want);
  Scope* home = target(e, scope);
  std::string name;
  if (home->lanes && free_symbols(e).contains(home->bound[0].first)) name = array_value(e, *home, type);
  if (name.empty()) {
    if (e->kind == ExprKind::Reduce) {
      name = ReductionWriter(*this, e, type).write_scalar(*home);
    } else {
      const std::string text = compute(e, *home, type);
      name = fresh("v");
      home->code += "const " + type_name(type) + " " + name + " = " + text + ";\n";
    }
    remember(*home, e, name, type, false);
  }
  return converted(name, type, want);
}

// Keeps in an array what would be computed again in loops between its home and the vector loop; empty: not worth it.
std::string Writer::array_value(const Expr& e, Scope& lanes, Scalar type) {
  if (lanes.lane_count > kMaxArray || lanes.lane_count == 0) return "";
  Scope* home = array_home(e, lanes);
  std::string name;
  if (e->kind == ExprKind::Reduce) {
    ReductionWriter reduction(*this, e, type);
    if (!reduction.prefers_lanes(lanes.bound[0].first, lanes.lane_count)) return "";
    name = reduction.write_array(*home, lanes);
  } else {
    if (home == lanes.parent || !is_expensive(e)) return "";
    name = fresh("a");
    Scope& own = add_scope(*home);
    own.lanes = true;
    own.lane_count = lanes.lane_count;
    own.bound = {{lanes.bound[0].first, fresh("j")}};
    own.low = lanes.low;
    own.high = lanes.high;
    const std::string text = compute(e, own, type), lane = own.bound[0].second;
    home->code += "alignas(64) " + type_name(type) + " " + name + "[" + std::to_string(lanes.lane_count) + "];\n";
    if (!own.has_loop && pragmas) home->code += "#pragma omp simd\n";
    home->code += "for (int64_t " + lane + " = " + own.low + "; " + lane + " < " + own.high + "; " + lane + "++) {\n" +
                  own.code + name + "[" + lane + " - " + own.low + "] = " + text + ";\n}\n";
    home->has_loop = true;
  }
  remember(*home, e, name, type, true);
  return entry_text({e, name, type, true}, lanes);
}

}  // namespace gopt::codegen
