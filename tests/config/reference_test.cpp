#include "config/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "config/choice.h"
#include "config_files.h"

namespace harness::config {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const Key* find_key(const std::vector<Key>& all, const std::string& name) {
  const auto it = std::ranges::find(all, name, &Key::name);
  return it == all.end() ? nullptr : &*it;
}

// Returns a configuration whose backend and workload honour the variable.
std::string config_with(const Variable& v, const std::string& line) {
  const std::string workload = v.workloads.empty() || v.honoured_by("gpt") ? "gpt" : v.workloads.front();
  std::string text = fmt::format("backend: {}\nhardware: none\nbaseline: {{}}\n", name_of(v.backends.back()));
  if (!line.starts_with("workload:")) text += "workload: " + workload + "\n";
  if (workload == "gpt") text += "model: gpt3-125m\n";
  if (traits_of(v.backends.back()).predicts()) text += "faults: {socket_fallback: true}\n";  // gives `mended` a fault
  return text + line + "\n";
}

TEST(Reference, EveryVariableHasAnExampleThatLoads) {
  for (const Variable& v : registry()) {
    const std::string line = example_of(v), text = config_with(v, line);
    EXPECT_THAT(line, HasSubstr(v.name + ": "));
    EXPECT_EQ(test::complaint_about(text), "") << line;
    EXPECT_EQ(test::loaded(text).changes.size(), v.fixed ? 0 : example_values(v).size()) << line;
  }
}

TEST(Reference, WordsAreTheValuesAmongWhatIsAllowed) {
  const std::vector<Key> all = keys();
  EXPECT_THAT(find_key(all, "backend")->choices.words, ElementsAre("cpu", "cuda", "sim"));
  EXPECT_TRUE(find_key(all, "backend")->choices.all);
  EXPECT_THAT(find_key(all, "measure.steps")->choices.words, ElementsAre("auto"));
  EXPECT_FALSE(find_key(all, "measure.steps")->choices.all);
  EXPECT_TRUE(find_key(all, "measure.rounds")->choices.words.empty());
  EXPECT_THAT(find_key(all, "measure.share_gpus")->choices.words, ElementsAre("true", "false"));
}

TEST(Reference, EveryKeyIsListedAfterItsMap) {
  const std::vector<Key> all = keys();
  for (const char* name :
       {"name", "model.preset", "measure.deadlines.step", "cost.run.tokens", "fabric.node", "combine", "output"}) {
    ASSERT_NE(find_key(all, name), nullptr) << name;
  }
  for (auto key = all.begin(); key != all.end(); ++key) {
    const std::size_t dot = key->name.rfind('.');
    if (dot == std::string::npos) continue;
    const Key* map = find_key(all, key->name.substr(0, dot));
    ASSERT_NE(map, nullptr) << key->name;
    EXPECT_LT(map, &*key);
  }
  EXPECT_EQ(find_key(all, "measure")->takes, Takes::map);
  EXPECT_EQ(find_key(all, "model")->takes, Takes::name_or_map);
}

TEST(Reference, EveryKeySaysWhatItIs) {
  for (const Key& key : keys()) {
    EXPECT_FALSE(key.help.empty()) << key.name;
    EXPECT_EQ(key.help.find('|'), std::string::npos) << key.name << " would break a table";
    EXPECT_FALSE(key.allowed.empty() && key.takes == Takes::value) << key.name;
  }
}

}  // namespace
}  // namespace harness::config
