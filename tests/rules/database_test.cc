// Only rules that are proved under today's definitions load.
#include <gtest/gtest.h>

#include "gopt/rule.h"
#include "test_folder.h"
#include "text_files.h"

namespace gopt {
namespace {

std::string stanza(const std::string& name, const std::string& proof) {
  return "rule " + name +
         "\n  var x f32[n]\n  left\n    y = Relu(x)\n    z = Relu(y)\n    return z\n  right\n    z = Relu(x)\n    "
         "return z\n" +
         proof + "end\n";
}
RewriteRule rule_a() { return parse_rules(stanza("a", ""), "test")->at(0); }
// The proof line of a stanza without one.
std::string proof(const std::string& definitions, const std::string& rule = rule_a().content_hash()) {
  return "  proof definitions=\"" + definitions + "\" obligations=1 solver=\"z3 4.8.12\" digest=\"0\" rule=\"" + rule +
         "\"\n";
}

class Database : public ::testing::Test {
 protected:
  std::string write(const std::string& text) { return write_file(folder_.file("database.rules"), text); }
  const TestFolder folder_;
};

TEST_F(Database, ProvedRulesLoad) {
  const auto database = load_rules(write(stanza("a", proof(definitions_hash(rule_a())))));
  ASSERT_TRUE(database.ok());
  EXPECT_EQ(database->rules.size(), 1u);
  EXPECT_TRUE(database->warnings.empty());
}

TEST_F(Database, StaleRulesAreLeftOutWithAWarning) {
  const auto database =
      load_rules(write(stanza("a", proof("0123456789abcdef")) + stanza("b", proof(definitions_hash(rule_a())))));
  ASSERT_TRUE(database.ok());
  ASSERT_EQ(database->rules.size(), 1u);
  EXPECT_EQ(database->rules[0].name, "b");
  ASSERT_EQ(database->warnings.size(), 1u);
  EXPECT_NE(database->warnings[0].find("`a` was proved under definitions 0123456789abcdef"), std::string::npos)
      << database->warnings[0];
}

TEST_F(Database, EditedRulesAreLeftOutWithAWarning) {
  const auto database = load_rules(write(stanza("a", proof(definitions_hash(rule_a()), "0123456789abcdef"))));
  ASSERT_TRUE(database.ok());
  EXPECT_TRUE(database->rules.empty());
  ASSERT_EQ(database->warnings.size(), 1u);
  EXPECT_NE(database->warnings[0].find("`a` is not the rule that its proof is of"), std::string::npos);
}

TEST_F(Database, FolderIsAnError) { EXPECT_FALSE(load_rules(folder_.path().string()).ok()); }

TEST_F(Database, UnprovedRulesAreLeftOutWithAWarning) {
  const auto database = load_rules(write(stanza("a", "")));
  ASSERT_TRUE(database.ok());
  EXPECT_TRUE(database->rules.empty());
  ASSERT_EQ(database->warnings.size(), 1u);
  EXPECT_NE(database->warnings[0].find("`a` has no proof"), std::string::npos);
}

TEST_F(Database, MalformedFileIsAnError) {
  const std::string path = write(stanza("a", proof(definitions_hash(rule_a()))) + "rule b\n  oops\n");
  const auto database = load_rules(path);
  ASSERT_FALSE(database.ok());
  EXPECT_EQ(database.error().message.substr(0, path.size() + 17), path + ":13: rule `b`: 'o");
}

TEST_F(Database, MissingFileIsAnError) {
  const auto database = load_rules("/nonexistent/file.rules");
  ASSERT_FALSE(database.ok());
  EXPECT_EQ(database.error().message, "cannot open rules file /nonexistent/file.rules");
}

// Operators of a rule's stanza by their names, read without what computes the hash.
bool mentions(const RewriteRule& rule, OpKind op) {
  return print_rule(rule).find(" = " + op_info(op).name + "(") != std::string::npos;
}

TEST(DefinitionsHashOfARule, ChangesWithTheDefinitionsOfItsOperatorsAlone) {
  for (const char* file : {"/hand.rules", "/ranks.rules", "/elementwise.rules", "/siblings.rules"}) {
    const auto database = load_rules(std::string(GOPT_SHIPPED_RULES) + file);
    ASSERT_TRUE(database.ok()) << database.error().message;
    for (OpKind changed : {OpKind::Add, OpKind::Softmax, OpKind::Transpose, OpKind::Concat, OpKind::Relu}) {
      const auto hash_after = [changed](OpKind op) { return op == changed ? "another" : definition_hash(op); };
      size_t stale = 0;
      for (const RewriteRule& rule : database->rules) {
        const bool is_stale = definitions_hash(rule, hash_after) != definitions_hash(rule);
        EXPECT_EQ(is_stale, mentions(rule, changed)) << file << " " << rule.name << ", " << op_info(changed).name;
        stale += is_stale ? 1 : 0;
      }
      EXPECT_LT(stale, database->rules.size());
    }
  }
}

TEST_F(Database, ShippedRulesLoadWithoutWarnings) {
  for (const char* file : {"/hand.rules", "/core.rules", "/ranks.rules", "/elementwise.rules", "/siblings.rules"}) {
    const auto database = load_rules(std::string(GOPT_SHIPPED_RULES) + file);
    ASSERT_TRUE(database.ok()) << database.error().message;
    EXPECT_TRUE(database->warnings.empty()) << database->warnings[0];
    EXPECT_GT(database->rules.size(), 40u);
  }
}

}  // namespace
}  // namespace gopt
