// The checker accepts the logs of what is proved, and no log that was changed.
#include <algorithm>
#include <filesystem>

#include "gopt/proof_check.h"
#include "rule_files.h"

namespace gopt {
namespace {

std::string log_of(const RewriteRule& rule) {
  VerifyOptions options;
  options.keep_log = true;
  const Verification v = verify_rule(rule, options);
  EXPECT_EQ(v.verdict, Verdict::Proved) << v.reason;
  return v.log;
}

std::string first_fault(const std::string& log) {
  const auto report = check_proof_log(log);
  if (!report) return report.error().message;
  return report->faults.empty() ? "" : report->faults[0];
}

class AcceptedLog : public ::testing::TestWithParam<NamedRule> {};
TEST_P(AcceptedLog, OfEveryRuleThatIsProved) {
  const auto report = check_proof_log(log_of(GetParam().rule));
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->faults.empty()) << report->faults[0];
  EXPECT_EQ(report->rule, GetParam().rule.name);
  EXPECT_GT(report->by_algebra + report->by_evaluation, 0);
}
INSTANTIATE_TEST_SUITE_P(Hand, AcceptedLog, ::testing::ValuesIn(named_rules(GOPT_SHIPPED_RULES "/hand.rules")),
                         test_name);
INSTANTIATE_TEST_SUITE_P(True, AcceptedLog, ::testing::ValuesIn(named_rules(GOPT_TEST_RULES "/true.rules")), test_name);
INSTANTIATE_TEST_SUITE_P(Hard, AcceptedLog, ::testing::ValuesIn(named_rules(GOPT_TEST_RULES "/corpus/true/hard.rules")),
                         test_name);

// One test a file of the corpus: the checker agrees with what the prover proves, whatever the topic.
class AcceptedLogs : public ::testing::TestWithParam<std::string> {};
TEST_P(AcceptedLogs, OfAllRulesOfAFile) {
  for (const RewriteRule& rule : rules_of_file(GetParam())) EXPECT_EQ(first_fault(log_of(rule)), "") << rule.name;
}
std::vector<std::string> corpus_files() {
  std::vector<std::string> paths{GOPT_TEST_RULES "/conditional.rules"};
  for (const auto& entry : std::filesystem::directory_iterator(GOPT_TEST_RULES "/corpus/true"))
    if (entry.path().stem() != "hard") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  return paths;
}
INSTANTIATE_TEST_SUITE_P(Corpus, AcceptedLogs, ::testing::ValuesIn(corpus_files()),
                         [](const auto& info) { return std::filesystem::path(info.param).stem().string(); });

// ---- logs that were changed ----

// A sum over a split range, padding, and a function with a law: all kinds of steps.
constexpr const char* kSplitSum = R"(rule split-sum
  var a f32[n,k]
  var b f32[n,l]
  left
    c = Concat(a, b) {axis=1}
    s = ReduceSum(c) {axes=[1], keepdims=0}
    return s
  right
    x = ReduceSum(a) {axes=[1], keepdims=0}
    y = ReduceSum(b) {axes=[1], keepdims=0}
    s = Add(x, y)
    return s
end
)";
constexpr const char* kProduct = R"(rule product
  var a f32[n,m]
  var b f32[m,k]
  var c f32[k,l]
  left
    x = MatMul(a, b)
    y = MatMul(x, c)
    return y
  right
    x = MatMul(b, c)
    y = MatMul(a, x)
    return y
end
)";
constexpr const char* kExponentials = R"(rule exponentials
  var a f32[n]
  var b f32[n]
  left
    s = Add(a, b)
    e = Exp(s)
    return e
  right
    x = Exp(a)
    y = Exp(b)
    e = Mul(x, y)
    return e
end
)";
constexpr const char* kPadded = R"(rule padded
  var x f32[n,h]
  left
    p = Pad(x) {pads=[0,1,0,2]}
    r = Relu(p)
    return r
  right
    r = Relu(x)
    p = Pad(r) {pads=[0,1,0,2]}
    return p
end
)";

constexpr const char* kRearranged = R"(rule rearranged
  var x f32[n]
  left
    y = Tanh(x)
    return y
  right
    constant two = f32[] {2.0}
    constant one = f32[] {1.0}
    d = Mul(x, two)
    s = Sigmoid(d)
    t = Mul(s, two)
    y = Sub(t, one)
    return y
end
)";
constexpr const char* kEitherWay = R"(rule either-way
  var x f32[4,b]
  left
    constant i = i64[2] {1, 2}
    y = Gather(x, i) {axis=0}
    return y
  right
    y = Slice(x) {starts=[1], ends=[3], axes=[0]}
    return y
end
)";
constexpr const char* kSigns = R"(rule signs
  var x f32[n]
  left
    y = Elu(x) {alpha=1.0}
    return y
  right
    constant one = f32[] {1}
    constant zero = f32[] {0}
    p = Max(x, zero)
    m = Min(x, zero)
    e = Exp(m)
    d = Sub(e, one)
    y = Add(p, d)
    return y
end
)";
// Sums that are not equal one by one: what is summed is, taken together.
constexpr const char* kInside = R"(rule inside
  var x f32[m,n]
  left
    y = ReduceL1(x) {axes=[1]}
    return y
  right
    p = Relu(x)
    n = Neg(x)
    q = Relu(n)
    s = ReduceSum(p) {axes=[1]}
    t = ReduceSum(q) {axes=[1]}
    y = Add(s, t)
    return y
end
)";
constexpr const char* kBooleans = R"(rule booleans
  var a bool[n]
  var b bool[n]
  var c bool[n]
  left
    o = Or(b, c)
    y = And(a, o)
    return y
  right
    p = And(a, b)
    q = And(a, c)
    y = Or(p, q)
    return y
end
)";

std::vector<std::string> lines_of(const std::string& log) {
  std::vector<std::string> lines;
  std::istringstream stream(log);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}
std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

// Logs in which the n-th occurrence of `from` in a line of this kind is replaced, one log an occurrence.
std::vector<std::string> replaced(const std::string& log, const std::string& kind, const std::string& from,
                                  const std::string& to) {
  std::vector<std::string> changed;
  const std::vector<std::string> lines = lines_of(log);
  for (size_t i = 0; i < lines.size(); i++) {
    if (lines[i].rfind("(" + kind + " ", 0) != 0) continue;
    for (size_t at = lines[i].find(from); at != std::string::npos; at = lines[i].find(from, at + 1)) {
      std::vector<std::string> copy = lines;
      copy[i].replace(at, from.size(), to);
      changed.push_back(joined(copy));
    }
  }
  return changed;
}

struct Change {
  const char* name;
  const char* rule;
  const char* kind;
  const char *from, *to;
};
void PrintTo(const Change& change, std::ostream* out) { *out << change.name; }

class ChangedLog : public ::testing::TestWithParam<Change> {};
TEST_P(ChangedLog, IsRejected) {
  const Change& c = GetParam();
  const std::string log = log_of(rule_of(c.rule));
  ASSERT_EQ(first_fault(log), "");
  const std::vector<std::string> changed = replaced(log, c.kind, c.from, c.to);
  ASSERT_FALSE(changed.empty()) << log;
  for (const std::string& tampered : changed) EXPECT_NE(first_fault(tampered), "") << tampered;
}
INSTANTIATE_TEST_SUITE_P(
    Checker, ChangedLog,
    ::testing::Values(Change{"SignOfATermOfAForm", kSplitSum, "output", "(term 1 1", "(term -1 1"},
                      Change{"SignOfATermOfAClass", kSplitSum, "equal", "(term 1 1", "(term -1 1"},
                      Change{"CoefficientOfTheOtherSide", kSplitSum, "equal", "(term -1 1", "(term -2 1"},
                      Change{"FormWithAnotherFunction", kExponentials, "output", "(call 1 exp", "(call 1 sin"},
                      Change{"ExpressionWithAnotherFunction", kExponentials, "output", "(call exp", "(call tanh"},
                      Change{"AnotherLaw", kExponentials, "output", "(* (call exp", "(+ (call exp"},
                      Change{"AnotherInput", kProduct, "output", "(read 1 2", "(read 1 1"},
                      Change{"ChangeThatIsNoBijection", kProduct, "equal", "(+ (* 1 %k", "(+ (* 2 %k"},
                      Change{"ObligationOfOtherCounts", kProduct, "cancels", "(-1 ", "(-2 "},
                      Change{"ObligationUnderMore", kProduct, "cancels", "(and (>=", "(and (>= -1) (>="},
                      Change{"SignInARearrangedSum", kRearranged, "rearranged", "(term 1 1", "(term -1 1"},
                      Change{"FunctionInARearrangedSum", kRearranged, "rearranged", "(call 1 tanh", "(call 1 sin"},
                      Change{"SignOfACaseOfAGuard", kEitherWay, "either", "(term 1 1", "(term -1 1"},
                      Change{"InputOfACaseOfAGuard", kEitherWay, "either", "(read 1 0 ", "(read 1 1 "},
                      Change{"TermOfAJoinedSum", kInside, "inside", "(members (0", "(members (1"},
                      Change{"SignInAJoinedSum", kInside, "inside", "(term -1 1", "(term 1 1"},
                      Change{"FunctionInASumByASign", kSigns, "signs", "(call 1 exp", "(call 1 sin"},
                      Change{"InputThatIsNoTruthValue", kBooleans, "boolean", "(boolean ", "(boolean 1"},
                      Change{"PaddingForgotten", kPadded, "output", "(if (and", "(if (or"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Checker, AGuardThatIsDroppedIsSeen) {
  const std::string log = log_of(rule_of(kSplitSum));
  int dropped = 0;
  const std::vector<std::string> lines = lines_of(log);
  for (size_t i = 0; i < lines.size(); i++) {
    if (lines[i].rfind("(output ", 0) != 0) continue;
    for (size_t at = lines[i].find("(term "); at != std::string::npos; at = lines[i].find("(term ", at + 1)) {
      const size_t guard = lines[i].find("(and ", at);
      if (guard == std::string::npos) continue;
      size_t end = guard;
      int depth = 0;
      do {
        depth += lines[i][end] == '(' ? 1 : lines[i][end] == ')' ? -1 : 0;
        end++;
      } while (depth > 0);
      std::vector<std::string> copy = lines;
      copy[i].replace(guard, end - guard, "true");
      EXPECT_NE(first_fault(joined(copy)), "") << joined(copy);
      dropped++;
    }
  }
  EXPECT_GT(dropped, 0);
}

TEST(Checker, NoStepThatAnOutputRestsOnMayBeMissing) {
  for (const char* rule : {kSplitSum, kProduct, kRearranged, kEitherWay}) {
    const std::vector<std::string> lines = lines_of(log_of(rule_of(rule)));
    int missing = 0;
    for (size_t i = 0; i < lines.size(); i++) {
      const std::string kind = lines[i].substr(1, lines[i].find(' ') - 1);
      if (!std::set<std::string>{"equal", "cancels", "rearranged", "either", "signs"}.count(kind)) continue;
      std::vector<std::string> copy = lines;
      copy.erase(copy.begin() + static_cast<ptrdiff_t>(i));
      EXPECT_NE(first_fault(joined(copy)), "") << lines[i];
      missing++;
    }
    EXPECT_GT(missing, 1);
  }
}

TEST(Checker, SumsAreNotJoinedWithoutTheStepThatSaysSo) {
  std::vector<std::string> lines = lines_of(log_of(rule_of(kInside)));
  const size_t before = lines.size();
  std::erase_if(lines, [](const std::string& line) { return line.rfind("(inside ", 0) == 0; });
  ASSERT_EQ(lines.size() + 1, before);
  EXPECT_NE(first_fault(joined(lines)), "");
}

TEST(Checker, AFalseObligationIsRefutedAtSmallNumbers) {
  // 1 where n >= 1 does not cancel -1 where n >= 2.
  const std::string log =
      "(rule x)\n"
      "(cancels || (>= (+ (* 1 n) 0)) (1 (>= (+ (* 1 n) -1))) (-1 (>= (+ (* 1 n) -2))))\n"
      "(equal (>= n) (form (term 1 1 () (>= (+ (* 1 n) -1)))) (form (term 1 1 () (>= (+ (* 1 n) -2))))"
      " (form (term 1 1 () (>= (+ (* 1 n) -1))) (term -1 1 () (>= (+ (* 1 n) -2)))) (class (0) (1)))\n"
      "(output 0 (>= n) (if (>= (+ (* 1 n) -1)) (const 0x1p+0) (const 0x0p+0)) (form (term 1 1 () (>= (+ (* 1 n) -1))))"
      " (if (>= (+ (* 1 n) -2)) (const 0x1p+0) (const 0x0p+0)) (form (term 1 1 () (>= (+ (* 1 n) -2)))))\n";
  EXPECT_NE(first_fault(log).find("obligation is false"), std::string::npos) << first_fault(log);
}

// A requirement follows from what the condition says in each of its cases, where that is a multiple of what is 0.
TEST(Checker, RequirementsFollowFromEquationsCaseByCase) {
  const std::string empty = "(empty 0 (and (>= (+ -1 (* 1 n))) false))\n";
  auto fault = [&](const std::string& one, const std::string& other, const std::string& goal) {
    return first_fault("(rule x)\n" + empty + "(required what (and (>= c) (or (and (>= " + one + ") (>= (* -1 " + one +
                       "))) (and (>= " + other + ") (>= (* -1 " + other + "))))) (>= " + goal + "))\n");
  };
  EXPECT_EQ(fault("c", "(+ h (* -1 k))", "(+ (* c h) (* -1 c k))"), "");
  EXPECT_NE(fault("c", "(+ h k)", "(+ (* c h) (* -1 c k))"), "") << "in the second case it is not 0";
  EXPECT_NE(fault("c", "(+ h (* -1 k))", "(+ (* c h) (* -1 k))"), "") << "no multiple in the first case";
}
TEST(Checker, AnOutputWithoutPositionsIsShownToHaveNone) {
  EXPECT_NE(first_fault("(rule x)\n(empty 0 (>= n))\n"), "");
  EXPECT_EQ(first_fault("(rule x)\n(implies why (>= n) false)\n(empty 0 (>= n))\n").find("there is no position"),
            std::string::npos);
  EXPECT_NE(first_fault("(rule x)\n(implies why (>= n) false)\n(empty 0 (>= n))\n"), "") << "n = 0 refutes it";
}

TEST(Checker, AnEqualityMayNotRestOnItself) {
  const std::string form = "(form (term 1 1 () true (call 1 exp (form (term 1 1 () true (read 1 0))))))";
  const std::string other = "(form (term 1 1 () true (call 1 exp (form (term 1 1 () true (read 1 1))))))";
  const std::string log =
      "(rule x)\n(equal true (form (term 1 1 () true (read 1 0))) (form (term 1 1 () true (read 1 1))) (form) )\n"
      "(output 0 true (call exp (read 0)) " +
      form + " (call exp (read 1)) " + other + ")\n";
  EXPECT_NE(first_fault(log), "");
}

TEST(Checker, TextThatIsNoLogIsAnError) {
  for (const char* text : {"word", "(rule x", "(frob 1)", "(output)", "(rule x))", "(implies a b)",
                           "(equal true (form) (form (term)))", "(cancels a true (x true))"})
    EXPECT_FALSE(check_proof_log(text).ok() && check_proof_log(text)->faults.empty()) << text;
  EXPECT_FALSE(check_proof_log(std::string(100000, '(')).ok());
  EXPECT_EQ(check_proof_log("(rule x)")->faults.size(), 1u) << "a log without outputs proves nothing";
}

}  // namespace
}  // namespace gopt
