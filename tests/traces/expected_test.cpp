#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "config/files.h"
#include "evidence/input.h"
#include "jobs.h"
#include "support/files.h"
#include "support/paths.h"

// Traces with reference numbers from an independent program: folders with expected.csv, expected_idle.csv and
// expected_waiting.csv. HARNESS_TRACES names a further folder.
namespace harness::traces {
namespace {

using Json = nlohmann::json;
using Row = config::PublishedRow;

class Folder {
 public:
  explicit Folder(std::string path) : path_(std::move(path)) {}

  /// Returns the report of a file as JSON. Databases are unpacked first.
  const Json& read(const std::string& name) {
    Json& json = known_[name];
    if (json.is_null()) json = read_all({name});
    return json;
  }
  Json read_all(const std::vector<std::string>& names) {
    std::vector<std::string> paths;
    for (const std::string& name : names) paths.push_back(usable(name));
    const Report report = read_job(paths);
    return Json::parse(json_of({report}).dump());
  }

 private:
  std::string usable(const std::string& name) {
    if (!name.ends_with(".sqlite.gz")) return path_ + "/" + name;
    evidence::Input bytes(path_ + "/" + name);
    return unpacked_.write(std::filesystem::path(name).stem().string(), evidence::whole_text(bytes, 1u << 30));
  }

  std::string path_;
  test::TemporaryFolder unpacked_;
  std::map<std::string, Json> known_;
};

const Json* found(const Json& list, const char* key, const std::string& value) {
  for (const Json& entry : list) {
    if (entry[key] == value) return &entry;
  }
  return nullptr;
}

// Within 0.1 % or 2 µs; counts must match exactly.
bool near(const std::string& key, const Json& got, const std::string& expected) {
  if (expected.empty()) return got.is_null();
  if (!got.is_number()) return false;
  const double want = std::stod(expected);
  if (key == "kernels" || key == "collectives") return got.get<double>() == want;
  const double least = key.ends_with("_percent") ? 0.02 : 0.002;
  return std::abs(got.get<double>() - want) <= std::max(least, 1e-3 * std::abs(want));
}

void check_folder(const std::string& path) {
  Folder folder(path);
  int checked = 0;
  const auto check = [&](const Row& row, const char* list, const std::string& prefix) {
    const Json* trace = found(folder.read(row.at("file"))["traces"], "device", row.at("device"));
    ASSERT_NE(trace, nullptr) << row.at("file");
    const Json* values = &(*trace)[list];
    if (row.contains("window")) values = found(*values, "window", row.at("window"));
    ASSERT_NE(values, nullptr) << row.at("file") << " " << row.at("window");
    for (const auto& [key, expected] : row) {
      if (!key.starts_with(prefix) || !values->contains(key) || key == "window" || key == "top5") continue;
      EXPECT_TRUE(near(key, (*values)[key], expected)) << row.at("file") << " " << row.at("device") << " " << key
                                                       << ": " << (*values)[key] << ", expected " << expected;
      ++checked;
    }
  };
  for (const Row& row : config::read_published(path + "/expected.csv")) check(row, "windows", "");
  for (const Row& row : config::read_published(path + "/expected_idle.csv")) check(row, "idle", "idle_");
  EXPECT_GT(checked, 0);
}

TEST(ExpectedTraces, OwnSamples) {
  check_folder(test::source_dir() + "/tests/traces/data");
}

TEST(ExpectedTraces, FurtherFolder) {
  const char* folder = std::getenv("HARNESS_TRACES");
  if (folder == nullptr) GTEST_SKIP() << "HARNESS_TRACES names no folder";
  check_folder(folder);
}

TEST(ExpectedTraces, FurtherWaiting) {
  const char* path = std::getenv("HARNESS_TRACES");
  if (path == nullptr) GTEST_SKIP() << "HARNESS_TRACES names no folder";
  Folder folder(path);
  std::map<std::string, std::vector<std::string>> sets{{"2gpu_before", {"nsys/nsys2026.2_2gpu_before.sqlite.gz"}}};
  for (int rank : {5, 0, 3, 7, 1, 2, 6, 4}) sets["dlrm8"].push_back("dlrm8/rank" + std::to_string(rank) + ".json.gz");
  const std::vector<Row> rows = config::read_published(std::string(path) + "/expected_waiting.csv");
  for (const auto& [set, names] : sets) {
    const Json waiting = folder.read_all(names)["waiting"];
    for (const Row& row : rows) {
      if (row.at("set") != set) continue;
      ASSERT_LT(std::stoul(row.at("index")), waiting.size()) << set;
      const Json& got = waiting[std::stoul(row.at("index"))];
      EXPECT_EQ(got["kind"], row.at("kind"));
      EXPECT_TRUE(near("", got["transfer_ms"], row.at("transfer_ms"))) << set << row.at("index");
      EXPECT_TRUE(near("", got["longest_ms"], row.at("longest_ms"))) << set << row.at("index");
      EXPECT_EQ(got["last_rank"], std::stoi(row.at("last_rank"))) << set << row.at("index");
      std::istringstream each(row.at("waiting_ms_by_rank"));
      std::string expected;
      for (std::size_t i = 0; each >> expected; ++i)
        EXPECT_TRUE(near("", got["waiting_ms_by_rank"].at(i), expected)) << set << row.at("index");
    }
  }
}

}  // namespace
}  // namespace harness::traces
