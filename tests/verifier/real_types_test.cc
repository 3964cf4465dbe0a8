// The floating-point types for which a rule is proved: conversions round some and leave others as they are.
#include "rule_files.h"

namespace gopt {
namespace {

struct Row {
  const char* name;
  const char* rule;   // variables and sides
  const char* types;  // for which it is proved; "" for every type, "none" where it is not proved
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

class RealTypes : public ::testing::TestWithParam<Row> {};

TEST_P(RealTypes, AreThoseForWhichItIsProved) {
  const Verification v = verify_rule(rule_of(std::string("rule x\n") + GetParam().rule + "\nend\n"));
  std::string types;
  for (ElementType type : v.real_types) types += (types.empty() ? "" : " ") + to_string(type);
  EXPECT_EQ(v.verdict == Verdict::Proved ? types : "none", GetParam().types) << v.reason;
}

INSTANTIATE_TEST_SUITE_P(
    Conversions, RealTypes,
    ::testing::Values(
        Row{"NoConversion", "var x f32[n]\nleft\na = Relu(x)\nz = Relu(a)\nreturn z\nright\nz = Relu(x)\nreturn z", ""},
        Row{"ToSingleIsNothingToSingles",
            "var x f32[n]\nleft\nz = Cast(x) {to=1}\nreturn z\nright\nz = Identity(x)\nreturn z", "f32"},
        // Two doubles may be one single.
        Row{"ComparedAfterConversion",
            "var x f32[n]\nvar y f32[n]\nleft\na = Cast(x) {to=1}\nb = Cast(y) {to=1}\nz = Less(a, b)\nreturn "
            "z\nright\nz = "
            "Less(x, y)\nreturn z",
            "f16 bf16 f32"},
        // 2^24 + 1 as a double is 2^24 as a single.
        Row{"ThroughSingleToInteger",
            "var x f32[n]\nleft\na = Cast(x) {to=1}\nz = Cast(a) {to=7}\nreturn z\nright\nz = Cast(x) {to=7}\nreturn z",
            "f16 bf16 f32"},
        Row{"ThroughSingleToDouble",
            "var x f32[n]\nleft\na = Cast(x) {to=1}\nz = Cast(a) {to=11}\nreturn z\nright\nz = Cast(x) {to=11}\nreturn "
            "z",
            "f16 bf16 f32"},
        Row{"StatedForHalvesAlone",
            "var x f32[n]\nleft\na = Cast(x) {to=1}\nz = Cast(a) {to=11}\nreturn z\nright\nz = Cast(x) {to=11}\nreturn "
            "z\ntypes f16",
            "f16"},
        // That a double fits into single precision is not known of one that was widened.
        Row{"WidenedAndNarrowed",
            "var x f32[n]\nleft\na = Cast(x) {to=11}\nz = Cast(a) {to=1}\nreturn z\nright\nz = "
            "Identity(x)\nreturn z",
            "none"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(RealTypesText, ArePrintedAndReadAgain) {
  RewriteRule rule = rule_of(
      "rule x\nvar x f32[n]\nleft\nz = Cast(x) {to=1}\nreturn z\nright\nz = Identity(x)\nreturn z\ntypes f32 "
      "f16\nend\n");
  EXPECT_EQ(rule.real_types, (std::vector<ElementType>{ElementType::Float16, ElementType::Float32}));
  EXPECT_EQ(print_rule(rule_of(print_rule(rule))), print_rule(rule));
  EXPECT_FALSE(holds_for(rule, ElementType::Float64));
  const std::string hash = rule.content_hash();
  rule.real_types.clear();
  EXPECT_NE(rule.content_hash(), hash);
}

}  // namespace
}  // namespace gopt
