// A run of the generator: the same output for any number of threads and ranks, and when it was stopped and goes on.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "held_program.h"
#include "program.h"

namespace gopt {
namespace {

const std::string kRun = "--max-ops 2 --family merge,scale ";

class RunTest : public ::testing::Test {
 protected:
  // Rules, then the report without times and memory.
  std::string output_of(const std::string& name, const std::string& arguments, const std::string& launcher = "") {
    const std::string out = folder_.file(name + ".rules"), report = folder_.file(name + ".json");
    const Outcome outcome =
        run_command(launcher + RULEGEN_PROGRAM + " " + kRun + arguments + " --out " + out + " --report " + report);
    EXPECT_EQ(outcome.status, 0) << outcome.text;
    text_ = outcome.text;
    nlohmann::json counts = nlohmann::json::parse(read_file(report));
    for (const char* varying : {"seconds", "proving_seconds", "megabytes"}) EXPECT_EQ(counts.erase(varying), 1u);
    for (nlohmann::json& rejected : counts["rejected"]) rejected.erase("milliseconds");
    EXPECT_GT(counts["proved"], 20);
    return read_file(out) + counts.dump(1);
  }
  std::string text_;  // what was printed
  TestFolder folder_;
};

TEST_F(RunTest, TheSameForAnyNumberOfThreads) {
  const std::string one = output_of("one", "");
  for (const char* threads : {"1", "2", "4"}) EXPECT_EQ(output_of(threads, std::string("--threads ") + threads), one);
}

// As root, and on fewer cores than ranks, Open MPI wants to be told that it may.
const char* const kMpirun =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 "
    "OMPI_MCA_plm=isolated "
    "mpirun -n ";

// That it is there is not enough: it starts nothing where a sandbox gives it no network interface.
bool has_mpirun() {
  static const bool works = GOPT_HAS_MPI && std::system((std::string(kMpirun) + "2 true >/dev/null 2>&1").c_str()) == 0;
  return works;
}

TEST_F(RunTest, TheSameForAnyNumberOfRanks) {
  if (!has_mpirun()) GTEST_SKIP() << "built without MPI, or mpirun starts nothing here";
  const std::string one = output_of("one", "");
  EXPECT_EQ(output_of("two", "", std::string(kMpirun) + "2 "), one);
  EXPECT_EQ(output_of("three", "--threads 2 --checkpoint " + folder_.file("c"), std::string(kMpirun) + "3 "), one);
  // What the ranks have kept is all that one process asks.
  EXPECT_EQ(output_of("again", "--checkpoint " + folder_.file("c")), one);
}

// No text is not the built-in alphabet.
TEST_F(RunTest, AnEmptyAlphabetIsAnError) {
  const std::string path = write_file(folder_.file("empty.txt"), "");
  const Outcome outcome = run_rulegen("stats --max-ops 1 --alphabet " + path);
  EXPECT_EQ(outcome.status, 1) << outcome.text;
  EXPECT_NE(outcome.text.find("empty.txt: the alphabet has no family"), std::string::npos) << outcome.text;
}

TEST_F(RunTest, OneRankSpeaksOfAnError) {
  if (!has_mpirun()) GTEST_SKIP() << "built without MPI, or mpirun starts nothing here";
  const std::string unwritable = "--max-ops 2 --out /nonexistent/x.rules",
                    unknown = "--max-ops 2 --family f --out " + folder_.file("x"),
                    empty = unknown + " --alphabet " + write_file(folder_.file("empty.txt"), "");
  for (const std::string& arguments : {unwritable, unknown, empty}) {
    const Outcome outcome = run_command(std::string(kMpirun) + "2 " + RULEGEN_PROGRAM + " " + arguments);
    EXPECT_EQ(outcome.status, 1) << outcome.text;
    const size_t at = outcome.text.find("rulegen: ");
    ASSERT_NE(at, std::string::npos) << outcome.text;
    EXPECT_EQ(outcome.text.find("rulegen: ", at + 1), std::string::npos) << outcome.text;
  }
}

// ---- checkpoints ----

class CheckpointTest : public RunTest {
 protected:
  std::string lines() const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("c")))
      return read_file(entry.path().string());
    return "";
  }
  size_t line_count() const {
    if (!std::filesystem::exists(folder_.file("c"))) return 0;
    const std::string text = lines();
    return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  std::string checkpoint() const { return "--checkpoint " + folder_.file("c"); }
  void replace_lines(const std::string& text) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.file("c")))
      write_file(entry.path().string(), text);
  }

  // A run that is ended when it has made so many verdicts.
  HeldOutcome stopped_run(int verdicts, int ending) const {
    const std::string command = RULEGEN_PROGRAM " " + kRun + checkpoint() + " --out " + folder_.file("stopped.rules");
    return interrupt_after(verdicts, ending, command, folder_.file("stopped.txt"));
  }
};

TEST_F(CheckpointTest, AStoppedRunGoesOn) {
  const std::string whole = output_of("whole", "");
  constexpr int kEach = 5;
  size_t known = 0;
  for (int ending : {SIGINT, SIGTERM, SIGKILL}) {
    const HeldOutcome outcome = stopped_run(kEach, ending);
    ASSERT_TRUE(outcome.was_held) << outcome.text;
    known += kEach;
    EXPECT_EQ(line_count(), known);
    EXPECT_FALSE(std::filesystem::exists(folder_.file("stopped.rules")));
    if (ending == SIGKILL) {
      EXPECT_TRUE(WIFSIGNALED(outcome.status));
    } else {
      EXPECT_TRUE(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 128 + ending) << outcome.status;
      EXPECT_NE(outcome.text.find("goes on from the checkpoint"), std::string::npos) << outcome.text;
    }
  }
  EXPECT_EQ(output_of("resumed", checkpoint()), whole);
  // Nothing was proved twice.
  std::set<std::string> candidates;
  std::istringstream text(lines());
  size_t count = 0;
  for (std::string line; std::getline(text, line); count++)
    candidates.insert(nlohmann::json::parse(line).at("candidate").get<std::string>());
  EXPECT_EQ(candidates.size(), count);
}

TEST_F(CheckpointTest, WhatIsNoVerdictIsLeftOut) {
  const std::string whole = output_of("whole", checkpoint());
  const std::string text = lines();
  // The last line cut short, as where a run was killed while it wrote.
  replace_lines(text.substr(0, text.size() - 40));
  EXPECT_EQ(output_of("short", checkpoint()), whole);
  EXPECT_NE(text_.find("1 line is no verdict"), std::string::npos) << text_;
  // One candidate's proof under another's name, and a proof of another rule.
  const size_t end = text.find('\n'), next = text.find('\n', end + 1);
  nlohmann::json first = nlohmann::json::parse(text.substr(0, end)),
                 second = nlohmann::json::parse(text.substr(end + 1, next - end - 1));
  ASSERT_EQ(first["verdict"], "proved");
  std::string rule = first["rule"];
  first["rule"] = second["rule"];
  nlohmann::json edited = second;
  rule.replace(rule.find("var "), 4, "var other");
  edited["rule"] = rule;
  replace_lines(first.dump() + "\n" + edited.dump() + "\n{}\nnonsense\n" + text.substr(next + 1));
  EXPECT_EQ(output_of("foreign", checkpoint()), whole);
  EXPECT_NE(text_.find("4 lines are no verdict"), std::string::npos) << text_;
}

// Verdicts are on candidates, whatever run found them.
TEST_F(CheckpointTest, AnotherRunsVerdictsAreTakenUp) {
  ASSERT_EQ(
      run_rulegen("--max-ops 2 --family piecewise --seed 7 " + checkpoint() + " --out " + folder_.file("o")).status, 0);
  const size_t before = line_count();
  EXPECT_GT(before, 10u);
  EXPECT_EQ(output_of("after", checkpoint()), output_of("whole", ""));
  EXPECT_GT(line_count(), before);
}

TEST_F(CheckpointTest, AFolderThatCannotBeIsAnError) {
  write_file(folder_.file("c"), "a file");
  const Outcome outcome = run_rulegen(kRun + checkpoint() + " --out " + folder_.file("o"));
  EXPECT_EQ(outcome.status, 1);
  EXPECT_NE(outcome.text.find(folder_.file("c") + " cannot be made"), std::string::npos) << outcome.text;
}

// What pruning drops follows from what it leaves: a part of all equal pairs is derived. bench/audit_pruning.py asks
// for more.
TEST_F(RunTest, WhatIsPrunedFollowsFromWhatIsKept) {
  const std::string run = "--max-ops 2 --family merge,scale --out ", kept = folder_.file("kept.rules"),
                    every = folder_.file("every.rules"), report = folder_.file("every.json");
  const Outcome pruned = run_rulegen(run + kept + " --report " + folder_.file("kept.json"));
  ASSERT_EQ(pruned.status, 0) << pruned.text;
  const Outcome whole = run_rulegen(run + every + " --prune none --unproved --report " + report);
  ASSERT_EQ(whole.status, 0) << whole.text;
  EXPECT_EQ(nlohmann::json::parse(read_file(report))["classes"],
            nlohmann::json::parse(read_file(folder_.file("kept.json")))["classes"]);
  // Every sixth pair; two of them may have one name.
  const std::string text = read_file(every);
  std::string sample;
  size_t count = 0;
  for (size_t at = text.find("rule "); at != std::string::npos; at = text.find("\nrule ", at + 1)) {
    const size_t end = text.find("\nend\n", at), word = text.find("rule ", at) + 5;
    if (count++ % 6 == 0)
      sample +=
          "rule pair" + std::to_string(count) + text.substr(text.find('\n', word), end + 5 - text.find('\n', word));
  }
  const std::string json = folder_.file("answers.json");
  const Outcome derived = run_rulegen("derive --brief --any-kind --rules " + kept + " --json " + json + " " +
                                      write_file(folder_.file("sample.rules"), sample));
  ASSERT_EQ(derived.status, 0) << derived.text;
  const nlohmann::json rows = nlohmann::json::parse(read_file(json));
  EXPECT_GT(rows.size(), count / 8) << "most pairs are proved";
  for (const nlohmann::json& row : rows) EXPECT_EQ(row["verdict"], "follows") << row["name"];
}

TEST_F(RunTest, VerboseHasALineForEachLevelAndStage) {
  const Outcome outcome = run_rulegen("--max-ops 2 --family merge --verbose --out " + folder_.file("o"));
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  for (const char* wanted : {" MB, 1/1 merge 2+0 found: ", "merge 2+0 decided: ", " candidates, ", " classes, ",
                             " pairs; ", " kept; ", " proved, ", " refuted, ", " unknown"})
    EXPECT_NE(outcome.text.find(wanted), std::string::npos) << wanted << "\n" << outcome.text;
}

TEST_F(RunTest, StatsPrintsTheFunnelForEachNumberOfApplications) {
  const Outcome outcome = run_rulegen("stats --max-ops 2 --family merge");
  ASSERT_EQ(outcome.status, 0) << outcome.text;
  std::map<std::string, std::pair<double, double>> rows;  // a name in 22 columns, then a number for each run
  std::istringstream text(outcome.text);
  for (std::string line; std::getline(text, line);) {
    ASSERT_GT(line.size(), 22u);
    std::pair<double, double> numbers{-1, -1};
    std::istringstream(line.substr(22)) >> numbers.first >> numbers.second;
    rows[line.substr(0, line.find("  "))] = numbers;
  }
  for (const char* name : {"max-ops", "graphs considered", "equal pairs", "after renaming", "after derivability",
                           "after common subgraph", "proved", "refuted", "unknown", "seconds", "megabytes"}) {
    ASSERT_EQ(rows.count(name), 1u) << name << "\n" << outcome.text;
    EXPECT_GE(rows[name].first, 0) << name;
    EXPECT_GE(rows[name].second, rows[name].first) << name;
  }
  EXPECT_GT(rows["proved"].second, 10);
}

}  // namespace
}  // namespace gopt
