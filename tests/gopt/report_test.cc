// The page that --report FILE.html writes: its data is whole, it asks for nothing outside, what a model names stays
// text, and, where there is a browser, it draws every node.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "program.h"

namespace gopt {
namespace {

using nlohmann::json;

constexpr const char* kModel = R"(graph mixed
  input x : f32[1,3,8,8]
  constant k = f32[4,3,1,1] {1, -2, 3, 0.5, 1, 2, -1, 1, 4, 0.25, -3, 1}
  constant scale = f32[4] {1, 2, 0.5, 1}
  constant shift = f32[4] {0, 1, -1, 2}
  constant mean = f32[4] {0.5, -0.5, 0, 1}
  constant variance = f32[4] {1, 4, 0.25, 2}
  c = Conv(x, k)
  b = BatchNormalization(c, scale, shift, mean, variance)
  r = Relu(b)
  p = MaxPool(r) {kernel_shape=[2,2], strides=[2,2]}
  s = Softmax(p) {axis=1}
  output y = s
  output z = r
end
)";

constexpr const char *kDataBegins = "<script type=\"application/json\" id=\"report\">", *kScriptEnds = "</script>";

std::string embedded_text(const std::string& page) {
  const size_t begin = page.find(kDataBegins);
  if (begin == std::string::npos) return "no data";
  const size_t from = begin + std::string(kDataBegins).size();
  return page.substr(from, page.find(kScriptEnds, from) - from);
}
json embedded(const std::string& page) { return json::parse(embedded_text(page), nullptr, false); }

size_t count_of(const std::string& text, const std::string& part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) count++;
  return count;
}

// One optimization with both reports, which the tests look at.
class ReportTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TestFolder;
    write_model(kModel, folder_->file("m.onnx"));
    outcome_ =
        new Outcome(run_program("optimize --cost analytic --budget 1000h " + folder_->file("m.onnx") + " --report " +
                                folder_->file("r.html") + " --report " + folder_->file("r.json")));
  }
  static void TearDownTestSuite() {
    delete folder_;
    delete outcome_;
  }
  void SetUp() override {
    ASSERT_EQ(outcome_->status, 0) << outcome_->text;
    page_ = read_file(folder_->file("r.html"));
    report_ = json::parse(read_file(folder_->file("r.json")));
  }

  static inline TestFolder* folder_ = nullptr;
  static inline Outcome* outcome_ = nullptr;
  std::string page_;
  json report_;
};

TEST_F(ReportTest, ThePageHoldsWhatTheFileForProgramsHas) {
  const json data = embedded(page_);
  ASSERT_TRUE(data.is_object()) << embedded_text(page_).substr(0, 200);
  EXPECT_EQ(data, report_);
}

TEST_F(ReportTest, ThePageAsksForNothingOutside) {
  const std::string without_data = std::regex_replace(page_, std::regex("http://www\\.w3\\.org/2000/svg"), "");
  for (const char* outside :
       {"http:", "https:", "//cdn", " src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("})
    EXPECT_EQ(without_data.find(outside), std::string::npos) << outside;
}

TEST_F(ReportTest, HasEveryNodeOfBothGraphs) {
  const auto model = import_onnx(folder_->file("m.onnx"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  const json &before = report_["graphs"]["before"]["nodes"], &after = report_["graphs"]["after"]["nodes"];
  ASSERT_EQ(before.size(), model->graph.nodes().size());
  for (size_t id = 0; id < before.size(); id++) EXPECT_EQ(before[id]["op"], op_info(model->graph.nodes()[id]->op).name);
  std::set<size_t> origins;
  for (const json& node : after) {
    EXPECT_FALSE(node["types"].empty());
    for (const json& input : node["inputs"])
      if (!input.is_null()) {
        EXPECT_LT(input[0], after.size());
      }
    for (const json& origin : node["from"]) origins.insert(origin.get<size_t>());
  }
  for (size_t id = 0; id < before.size(); id++)
    if (!before[id]["weight"]) {
      EXPECT_TRUE(origins.contains(id)) << before[id];
    }
}

TEST_F(ReportTest, HasEveryRewriteWithItsRuleAndProof) {
  ASSERT_FALSE(report_["applied"].empty());
  for (const json& applied : report_["applied"]) {
    const json& rule = report_["rules"].at(applied["rule"]);
    const std::string text = rule["text"];
    for (const char* part : {"rule ", "\n  left\n", "\n  right\n", "\n  proof "})
      EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_FALSE(rule["left"]["nodes"].empty());
    EXPECT_GT(applied["proof"]["obligations"], 0);
    EXPECT_FALSE(applied["replaced"].empty());
    EXPECT_FALSE(applied["made"].empty());
  }
}

TEST_F(ReportTest, HasTheSearchsCourse) {
  const json& trajectory = report_["search"]["trajectory"];
  ASSERT_GE(trajectory.size(), 2U);
  EXPECT_EQ(trajectory.back()["step"], report_["search"]["steps"]);
  EXPECT_LT(trajectory.back()["best_ms"], trajectory.front()["best_ms"]);
}

TEST_F(ReportTest, HasTheKernelsOfBothPlans) {
  for (const char* side : {"before", "after"}) {
    const json &plan = report_["plans"][side], &nodes = report_["graphs"][side]["nodes"];
    std::set<size_t> computed;
    double sum = 0;
    for (const json& kernel : plan["kernels"]) {
      for (const json& node : kernel["nodes"]) computed.insert(node.get<size_t>());
      EXPECT_GT(kernel["bytes"], 0);
      sum += kernel["estimated_ms"].get<double>();
    }
    EXPECT_NEAR(sum, plan["estimated_ms"].get<double>(), 1e-9);
    EXPECT_EQ(plan["kernels"].size(), report_["cost"][std::string(side) + "_kernels"]);
    for (size_t id = 0; id < nodes.size(); id++)
      EXPECT_EQ(computed.contains(id), !nodes[id]["weight"] && nodes[id]["kind"] != "input") << side << nodes[id];
  }
  EXPECT_GT(report_["cost"]["roofline"]["gflops"], 0);
}

TEST_F(ReportTest, HasTheArenaOverTheKernels) {
  const json& plan = report_["plans"]["after"];
  ASSERT_EQ(plan["live_bytes"].size(), plan["kernels"].size());
  std::vector<int64_t> live(plan["kernels"].size());
  for (const json& buffer : plan["buffers"]) {
    if (buffer["place"] != "arena" || !buffer["view_of"].is_null()) continue;
    EXPECT_LE(buffer["offset"].get<int64_t>() + buffer["bytes"].get<int64_t>(), plan["arena_bytes"]);
    for (int k = buffer["first_kernel"]; k <= buffer["last_kernel"]; k++) live[k] += buffer["bytes"].get<int64_t>();
  }
  EXPECT_EQ(plan["live_bytes"], json(live));
  EXPECT_GT(*std::max_element(live.begin(), live.end()), 0);
}

TEST_F(ReportTest, HasAccuracyByKindOfInputsAndTheSeconds) {
  const json& check = report_["check"];
  EXPECT_TRUE(check["passed"]);
  ASSERT_EQ(check["by_draw"].size(), check["draws"].size());
  for (const json& draw : check["by_draw"]) ASSERT_EQ(draw["outputs"].size(), 2U);
  double sum = 0;
  std::set<std::string> phases;
  for (const json& phase : report_["phases"]) {
    sum += phase["seconds"].get<double>();
    phases.insert(phase["name"]);
  }
  EXPECT_LE(sum, report_["seconds"].get<double>());
  for (const char* name : {"reading rules", "reading the model", "searching", "proving rules", "checking", "planning"})
    EXPECT_TRUE(phases.contains(name)) << name;
}

// ---- names that were chosen to do harm ----

constexpr const char *kScriptName = "</script><script>alert(1)</script>",
                     *kQuotedName = "\"'`&<b onload=alert(2)>--><!--", *kNotUtf8Name = "\xff\xfe\xc3(";

void write_hostile_model(const std::string& path) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  model.add_opset_import()->set_version(17);
  onnx::GraphProto& graph = *model.mutable_graph();
  graph.set_name(kScriptName);
  const auto declare = [](onnx::ValueInfoProto& value, const std::string& name) {
    value.set_name(name);
    auto& type = *value.mutable_type()->mutable_tensor_type();
    type.set_elem_type(1);
    for (int64_t extent : {2, 3}) type.mutable_shape()->add_dim()->set_dim_value(extent);
  };
  declare(*graph.add_input(), kQuotedName);
  declare(*graph.add_output(), "<img src=x onerror=alert(3)>");
  const std::vector<std::string> values = {kQuotedName, kNotUtf8Name, "b", "<img src=x onerror=alert(3)>"};
  const std::vector<std::pair<std::string, std::string>> nodes = {
      {"Relu", kScriptName}, {"Relu", kQuotedName}, {"Sin", kNotUtf8Name}};
  for (size_t k = 0; k < nodes.size(); k++) {
    onnx::NodeProto& node = *graph.add_node();
    node.set_op_type(nodes[k].first);
    node.set_name(nodes[k].second);
    node.add_input(values[k]);
    node.add_output(values[k + 1]);
  }
  write_file(path, model.SerializeAsString());
}

std::string hostile_page(const TestFolder& folder) {
  write_hostile_model(folder.file("m.onnx"));
  const Outcome outcome = run_program("optimize --cost analytic --budget 1000h " + folder.file("m.onnx") +
                                      " --report " + folder.file("r.html"));
  EXPECT_EQ(outcome.status, 0) << outcome.text;
  return read_file(folder.file("r.html"));
}

TEST(Report, NamesOfAModelAreTextAndNothingElse) {
  TestFolder folder;
  const std::string page = hostile_page(folder);
  EXPECT_EQ(count_of(page, "<script"), 2U) << "the data and the page's own";
  EXPECT_EQ(count_of(page, kScriptEnds), 2U);
  EXPECT_EQ(embedded_text(page).find('<'), std::string::npos);
  const json data = embedded(page);
  ASSERT_TRUE(data.is_object());
  std::vector<std::string> names;
  for (const json& node : data["graphs"]["before"]["nodes"]) names.push_back(node["name"]);
  ASSERT_EQ(names.size(), 4U);
  EXPECT_EQ(names[0], kQuotedName);
  EXPECT_EQ(names[1], kScriptName);
  EXPECT_EQ(names[3].substr(0, 3), "\xef\xbf\xbd") << "what is not UTF-8 is U+FFFD";
}

// ---- in a browser ----

// The browser's command; empty where there is none.
std::string browser() {
  for (const std::string name : {"chromium", "chromium-browser", "google-chrome"})
    if (std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0) return name;
  return "";
}

// The document as the browser has it when the page's script has run.
std::string drawn(const std::string& page, const TestFolder& folder) {
  const std::string command = browser() +
                              " --headless --no-sandbox --disable-gpu --user-data-dir=" + folder.file("profile") +
                              " --dump-dom file://" + page;
  const Outcome outcome = run_command(command, "2>/dev/null");
  EXPECT_EQ(outcome.status, 0);
  return outcome.text;
}

// Numbers of the nodes in one of the two drawings.
std::set<size_t> drawn_nodes(const std::string& document, const std::string& side) {
  const size_t begin = document.find("id=\"graph-" + side + "\"");
  if (begin == std::string::npos) return {};
  const std::string svg = document.substr(begin, document.find("</svg>", begin) - begin);
  const std::regex node("data-node=\"([0-9]+)\"");
  std::set<size_t> ids;
  for (std::sregex_iterator it(svg.begin(), svg.end(), node), end; it != end; ++it) ids.insert(std::stoul((*it)[1]));
  return ids;
}
std::set<size_t> nodes_to_draw(const json& nodes) {
  std::set<size_t> ids;
  for (size_t id = 0; id < nodes.size(); id++)
    if (!nodes[id]["weight"]) ids.insert(id);
  return ids;
}

void expect_no_failure(const std::string& document) {
  const std::string root =
      document.substr(document.find("<html"), document.find('>', document.find("<html")) - document.find("<html"));
  EXPECT_NE(root.find("data-ready=\"yes\""), std::string::npos) << root;
  EXPECT_NE(root.find("data-drawn=\"yes\""), std::string::npos) << root;
  EXPECT_EQ(root.find("data-error"), std::string::npos) << root;
}

TEST_F(ReportTest, ABrowserDrawsEveryNodeAndKernel) {
  if (browser().empty()) GTEST_SKIP() << "no chromium: the page is not drawn";
  TestFolder folder;
  const std::string document = drawn(folder_->file("r.html"), folder);
  expect_no_failure(document);
  for (const char* side : {"before", "after"})
    EXPECT_EQ(drawn_nodes(document, side), nodes_to_draw(report_["graphs"][side]["nodes"])) << side;
  for (const json& kernel : report_["plans"]["after"]["kernels"])
    EXPECT_NE(document.find("data-kernel-row=\"" + kernel["name"].get<std::string>() + "\""), std::string::npos);
  for (const json& applied : report_["applied"])
    EXPECT_NE(document.find("data-rule=\"" + applied["rule"].get<std::string>() + "\""), std::string::npos);
}

TEST(Report, ABrowserRunsNoNameOfAModel) {
  if (browser().empty()) GTEST_SKIP() << "no chromium: the page is not drawn";
  TestFolder folder, profile;
  hostile_page(folder);
  const std::string document = drawn(folder.file("r.html"), profile);
  expect_no_failure(document);
  EXPECT_EQ(count_of(document, "<script"), 2U);
  EXPECT_EQ(count_of(document, "<img"), 0U);
  EXPECT_EQ(drawn_nodes(document, "before").size(), 4U);
}

}  // namespace
}  // namespace gopt
