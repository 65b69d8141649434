#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "analysis/summary.h"
#include "base/text.h"
#include "full_result.h"
#include "golden.h"

// The output for programs. docs/json.md describes every printed key, and every metric in the words of its help. CSV has
// clean cells, one per value, and no spreadsheet formulas from the outside.

namespace harness::report {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

const std::string path = test::source_dir() + "/docs/json.md";

std::string page() {
  return test::text_of(path);
}

// Collects the keys of all objects except those that the user names: settings.
void collect_keys(const Json& json, std::set<std::string>& keys) {
  if (json.is_array()) {
    for (const Json& element : json) collect_keys(element, keys);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    keys.insert(key);
    if (key != "settings") collect_keys(value, keys);
  }
}

std::set<std::string> keys_of(const std::string& text) {
  std::set<std::string> keys;
  collect_keys(Json::parse(text), keys);
  return keys;
}

void expect_described(const std::set<std::string>& keys) {
  const std::string text = page();
  for (const std::string& key : keys) {
    const bool described =
        text.find("`" + key + "`") != std::string::npos || text.find("." + key + "`") != std::string::npos;
    EXPECT_TRUE(described) << key << " is not in docs/json.md";
  }
}

store::Result collectives() {
  store::Result result = test::samples::sweep({"in_place=false", "message_size=2 kB"}, {1, 1, 1.1, 1.5});
  for (int c = 0; c < 4; ++c) result.points.push_back({c, "all_reduce", 10, 1000, 1.5, 16e3, "the data sheet"});
  return result;
}

// Returns the keys of a training run with everything that can be known about it, and of single operations.
std::set<std::string> keys_of_show() {
  const store::Result training = test::samples::full(), operation = collectives();
  const analysis::Summary summary = analysis::summarise(training);
  const auto cost = analysis::estimate_cost(training, summary, {2.5, "USD", 300e9});
  EXPECT_TRUE(cost && !cost->after.empty());
  std::set<std::string> keys = keys_of(show_json(training, summary, cost, test::samples::explanation()));
  keys.merge(keys_of(show_json(operation, analysis::summarise(operation))));
  return keys;
}

TEST(JsonPage, DescribesEveryKeyOfShow) {
  const std::set<std::string> keys = keys_of_show();
  EXPECT_GT(keys.size(), 70u);
  for (const char* of_prediction : {"or_else", "measured_owns_s", "part", "why"})
    EXPECT_TRUE(keys.contains(of_prediction)) << of_prediction;
  expect_described(keys);
}

// Returns the keys in the first column of the page's table of `show`.
std::vector<std::string> keys_in_table_of_show() {
  const std::string text = page();
  const std::size_t from = text.find("## `show`");
  std::vector<std::string> keys;
  for (const std::string& line : split_text(text.substr(from, text.find("### A case") - from), "\n")) {
    if (!line.starts_with("| `")) continue;
    const std::vector<std::string> parts = split_text(line.substr(0, line.find(" | ")), "`");
    for (std::size_t i = 1; i < parts.size(); i += 2) keys.push_back(parts[i]);
  }
  return keys;
}

TEST(JsonPage, NamesNoKeyThatShowLacks) {
  const std::set<std::string> keys = keys_of_show();
  EXPECT_GT(keys_in_table_of_show().size(), 30u);
  for (const std::string& key : keys_in_table_of_show()) EXPECT_TRUE(keys.contains(key)) << key;
}

TEST(JsonPage, DescribesEveryKeyOfCompare) {
  test::ComparedFiles two, runs;
  two.add("a", test::samples::full());
  two.add("b", test::samples::everything());
  two.compare(1);
  ASSERT_FALSE(two.report.differences.empty());
  expect_described(keys_of(show(two.report, Format::json)));
  two.reproduce();
  ASSERT_FALSE(two.report.nothing_in_common());
  expect_described(keys_of(show(two.report, Format::json)));
  for (int run = 0; run < 8; ++run) runs.add(fmt::format("r{}", run), test::samples::nothing_moved());
  runs.pool();
  expect_described(keys_of(show(runs.report, Format::json)));
  runs.report.answer = analysis::find_history(runs.report.files);
  expect_described(keys_of(show(runs.report, Format::json)));
}

// HARNESS_UPDATE_GOLDEN=1 writes the rows into the page.
TEST(JsonPage, HasARowForEveryMetricInTheWordsOfItsHelp) {
  std::string text = page(), rows;
  for (const Metric& metric : case_metrics()) {
    EXPECT_FALSE(metric.help.empty()) << metric.key;
    rows += "| `" + std::string(metric.key) + "` | " + std::string(metric.help) + " |\n";
  }
  const std::size_t table = text.find("|\n", text.find("|:---", text.find("<!-- Written by"))) + 2;
  const std::size_t end = text.find("<!-- end -->", table);
  ASSERT_NE(end, std::string::npos);
  if (std::getenv("HARNESS_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << text.replace(table, end - table, rows);
    return;
  }
  EXPECT_EQ(text.substr(table, end - table), rows);
}

TEST(Metrics, AreInCsvAndJsonAlike) {
  const store::Result result = collectives();
  const analysis::Summary summary = analysis::summarise(result);
  const std::string csv = show(result, summary, Format::csv);
  const Json row = Json::parse(show(result, summary, Format::json))["cases"][2];
  for (const Metric& metric : case_metrics()) {
    const std::string pointer = "/" + replaced(metric.key, {{'.', "/"}});
    EXPECT_THAT(csv.substr(0, csv.find('\n')), HasSubstr(replaced(metric.key, {{'.', "_"}})));
    EXPECT_TRUE(row.contains(Json::json_pointer(pointer))) << pointer;
  }
}

// Parses CSV by RFC 4180, line by line.
std::vector<std::vector<std::string>> cells_of(const std::string& csv) {
  std::vector<std::vector<std::string>> lines(1, std::vector<std::string>(1));
  bool quoted = false;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    std::string& cell = lines.back().back();
    if (quoted && csv[i] == '"' && i + 1 < csv.size() && csv[i + 1] == '"') {
      cell += csv[++i];
    } else if (csv[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && csv[i] == ',') {
      lines.back().emplace_back();
    } else if (!quoted && csv[i] == '\n') {
      lines.emplace_back(1);
    } else {
      cell += csv[i];
    }
  }
  lines.pop_back();
  return lines;
}

std::string case_named(const std::string& name) {
  static const store::Result sample = [] {
    store::Result result = test::samples::full();
    result.timeline.clear();  // thousands, which the table does not show
    return result;
  }();
  store::Result result = sample;
  result.cases[4].name = name;
  const auto lines = cells_of(show_csv(result, analysis::summarise(result)));
  for (const auto& line : lines) EXPECT_EQ(line.size(), lines.front().size()) << escaped(name);
  return lines.at(5).at(0);
}

TEST(Csv, ATextThatASpreadsheetWouldComputeHasAnApostrophe) {
  for (const char* formula : {"=HYPERLINK(\"http://x\",\"y\")", "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(1)", "=", "-",
                              "  =1", "\t=1", "+", "-x", "-="}) {
    EXPECT_EQ(case_named(formula), std::string("'") + formula) << formula;
  }
  for (const char* text : {"-1", "+1.5", "-1e-5", "a=b", "1-2", "x@y", ""}) EXPECT_EQ(case_named(text), text);
}

TEST(Csv, AnyTextIsOneCleanCell) {
  std::mt19937 random(20261126);
  for (int i = 0; i < 300; ++i) {
    std::string name;
    for (unsigned n = random() % 12; n > 0; --n)
      name += static_cast<char>(random() % 4 == 0 ? random() : ",\"\n\r=a\x1b"[random() % 7]);
    const std::string cell = case_named(name);
    EXPECT_EQ(cell, escaped_lines(cell)) << escaped(name);
  }
}

}  // namespace

}  // namespace harness::report
