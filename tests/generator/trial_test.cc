// Pairs that trials refute though they are equal wherever a residue has a value, and pairs that they must let through.
#include "trial.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "trial_draws.h"

namespace gopt::generator {
namespace {

constexpr char kArithmetic[] = R"(
family arithmetic
size m 2 3
size n 3 2
activation 2 [...,m,n]
activation 2 [...,m,1]
weight 1 []
constant 0 1 2
op Add
op Sub
op Mul
op Div
op Relu
op Exp
op Max inputs=2
op ReduceSum axes=[-1]
op ReduceMax axes=[-1]
op LogSoftmax axis=-1
op MatMul
)";

constexpr char kWindows[] = R"(
family windows
size c 2 3
size h 5 4 4 7
size w 4 5 4 7
size kh 2 1 1 3
size kw 1 2 1 3
size sh 1 2 1 2
size sw 2 1 1 2
size p 1 2 0 2
size q 2 1 0 2
activation 1 [1,c,h,w]
weight 2 [c,1,kh,kw]
op Conv inputs=2 weights-from=1 group=c strides=[sh,sw] pads=[0,0,0,0] dilations=[1,1]
op Identity
op Pad pads=[0,0,p,q,0,0,p,q]
op GlobalMaxPool
op Relu
)";

// A term in brackets: "(Div x0 (Sub 1 x1))"; xN, yN, wN are variables of the first, second and third class.
class Reader {
 public:
  Reader(TermStore& terms, std::string text) : terms_(terms), text_(std::move(text)) {}

  TermId read() {
    const std::string word = next();
    if (word != "(") return leaf(word);
    const std::string name = next();
    std::vector<TermId> args;
    for (skip(); text_[at_] != ')'; skip()) args.push_back(read());
    at_++;
    const auto& ops = terms_.family().ops;
    const auto op = std::find_if(ops.begin(), ops.end(), [&](const AlphabetOp& own) { return own.name() == name; });
    const auto made = terms_.apply(terms_.add_op(*op), 0, args);
    EXPECT_TRUE(made.has_value()) << name << " does not fit";
    return made.value_or(TermId{});
  }

 private:
  void skip() { at_ = std::min(text_.find_first_not_of(' ', at_), text_.size()); }
  std::string next() {
    skip();
    const size_t end = text_[at_] == '(' ? at_ + 1 : std::min(text_.find_first_of(" )", at_), text_.size());
    const std::string word = text_.substr(at_, end - at_);
    at_ = end;
    return word;
  }
  TermId leaf(const std::string& word) {
    const size_t variable_class = std::string("xyw").find(word[0]);
    if (variable_class == std::string::npos) return terms_.constant(std::stod(word));
    return terms_.variable(static_cast<int>(variable_class), std::stoi(word.substr(1)));
  }

  TermStore& terms_;
  const std::string text_;
  size_t at_ = 0;
};

struct Row {
  std::string name, family, left, right;
  bool survives;
};
std::ostream& operator<<(std::ostream& out, const Row& row) { return out << row.name; }

class TrialTest : public testing::TestWithParam<Row> {};

TEST_P(TrialTest, Decides) {
  const Row& row = GetParam();
  const auto families = parse_alphabet(row.family, "test");
  ASSERT_TRUE(families.ok()) << families.error().message;
  TermStore terms(families->front());
  const TermPair pair{{Reader(terms, row.left).read()}, {Reader(terms, row.right).read()}};
  TapeCache tapes;
  for (uint64_t seed : {1, 2, 3})
    for (bool with_prefix : {false, true})
      EXPECT_EQ(survives_trials(terms, pair, with_prefix, seed, tapes), row.survives) << "seed " << seed;
}

INSTANTIATE_TEST_SUITE_P(
    Table, TrialTest,
    testing::Values(
        Row{"QuotientOfEquals", kArithmetic, "(Div x0 x0)", "(Add (Sub x0 x0) 1)", false},
        Row{"ADivisorThatIsZeroWhereAProductIsOne", kArithmetic, "(Div 0 (Sub (Mul w0 x0) 1))", "(Sub x0 x0)", false},
        Row{"AQuotientOfEqualsThatAreZeroForOneValue", kArithmetic, "(Div (Sub (Exp y0) w0) (Sub (Exp y0) w0))",
            "(Div (Exp y0) (Exp y0))", false},
        Row{"ADivisorThatCancels", kArithmetic, "(Div x0 (ReduceSum (Div x0 w0)))", "(Mul (Div x0 (ReduceSum x0)) w0)",
            false},
        Row{"ALargestNumberThatIsZero", kArithmetic, "(Div (ReduceMax x0) (Mul (ReduceMax x0) x0))", "(Div 1 x0)",
            false},
        Row{"ASignThatCancels", kArithmetic, "(Div (Relu x0) x0)", "(Div (Relu (Mul w0 x0)) (Mul w0 x0))", false},
        Row{"ASignOfInfinity", kArithmetic, "(Div (Div (Relu x0) w0) w0)", "(Relu (Div (Div x0 w0) w0))", false},
        Row{"AnInfiniteDivisor", kArithmetic, "(Div x0 (Div 1 w0))", "(Mul x0 w0)", false},
        Row{"NothingIsFinite", kArithmetic, "(Relu (Div 1 (LogSoftmax y0)))", "(Div 1 (LogSoftmax y0))", false},
        Row{"AllButTheLargestOfNoNumbers", kArithmetic, "(ReduceMax (Relu x0))", "(Relu (ReduceMax x0))", true},
        Row{"AnExponentialLaw", kArithmetic, "(Exp (Add x0 x1))", "(Mul (Exp x0) (Exp x1))", true},
        Row{"TheSameDivisor", kArithmetic, "(Add (Div x0 w0) (Div x1 w0))", "(Div (Add x0 x1) w0)", true},
        Row{"ASumByANumber", kArithmetic, "(ReduceSum (Div x0 w0))", "(Div (ReduceSum x0) w0)", true},
        Row{"ALargerSum", kArithmetic, "(Max (Add x0 y0) (Add x1 y0))", "(Add (Max x0 x1) y0)", true},
        Row{"KernelsAtStridesAreNotExchanged", kWindows, "(Conv (Conv x0 y0) y1)", "(Conv (Conv x0 y1) y0)", false},
        Row{"APositivePadIsAZero", kWindows, "(GlobalMaxPool (Pad x0))", "(GlobalMaxPool (Relu x0))", false},
        Row{"ReluAndPad", kWindows, "(Relu (Pad x0))", "(Pad (Relu x0))", true}),
    [](const testing::TestParamInfo<Row>& info) { return info.param.name; });

TEST(TrialDraws, DependOnNamesAlone) {
  PairSymbols one, other;
  one.extents = {symbol_atom("trial_a"), symbol_atom("trial_b")};
  other.extents = {symbol_atom("trial_b")};
  for (uint64_t draw = 0; draw < 20; draw++)
    EXPECT_EQ(drawn_sizes(one, draw).at(symbol_atom("trial_b")), drawn_sizes(other, draw).at(symbol_atom("trial_b")));
}

// Of two numbers, each related to the other in every way that a divisor can become 0 by.
TEST(TrialDraws, HitEveryCoincidence) {
  int equal = 0, opposite = 0, reciprocal = 0, zero = 0;
  for (uint64_t draw = 0; draw < 8; draw++) {
    const Reals a = drawn_values(draw, 0, 1)[0], b = drawn_values(draw, 1, 1)[0];
    for (size_t own = 0; own < kDraws; own++) {
      const double x = a.draws[own], y = b.draws[own];
      zero += x == 0 && y != 0;
      equal += x == y && x != 0;
      opposite += x == -y && x != 0;
      reciprocal += x * y == 1 && x != y;
    }
  }
  for (int count : {zero, equal, opposite, reciprocal}) EXPECT_GE(count, 4);
}

}  // namespace
}  // namespace gopt::generator
