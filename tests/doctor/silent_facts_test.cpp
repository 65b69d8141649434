// Facts that cannot be read or that are not there: no check accuses or acquits by them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "check_rows.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

using namespace check_rows;

// Facts that are there or not, but are never unreadable by themselves.
bool is_made(const std::string& fact) {
  return fact.starts_with("nvml/") || fact.starts_with("driver/gpu/");
}

// Every kind of fact of a healthy node, on its first device and on all: where it cannot be read, no check accuses the
// node; and where a check finds a fault, hiding any fact does not make it pass.
TEST(Checks, HidingAFactNeitherAccusesNorAcquits) {
  std::map<std::string, std::vector<std::string>> kinds;
  for (const auto& [name, reading] : test::healthy_node().facts) {
    if (!is_made(name)) kinds[kind_of(name)].push_back(name);
  }
  EXPECT_GT(kinds.size(), 50u);
  for (const Row& row : rows()) {
    std::vector<Node> healthy{test::healthy_node()}, ill;
    row.prepare(healthy[0]);
    ill = healthy;
    row.bad(ill[0]);
    const Check& check = check_named(row.check);
    const Cluster of_healthy(healthy), of_ill(ill);
    for (const auto& [kind, names] : kinds) {
      for (std::vector<Node>* nodes : {&healthy, &ill}) {
        const Cluster& cluster = nodes == &healthy ? of_healthy : of_ill;
        Facts& facts = nodes->front().facts;
        for (const bool all : {false, true}) {
          const std::size_t count = all ? names.size() : 1;
          std::vector<machine::Reading> before;
          for (std::size_t i = 0; i < count; ++i) {
            before.push_back(facts[names[i]]);
            facts.set_unreadable(names[i], "permission denied");
          }
          const Finding finding = std::ranges::min(judge(check, nodes->front(), cluster), {}, &Finding::verdict);
          for (std::size_t i = 0; i < count; ++i) {
            facts.set(names[i], before[i]);
            if (before[i].access == machine::Access::absent) facts = without(facts, names[i]);
          }
          const std::string where = fmt::format("{} with {}{} hidden: {} {}", row.check, all ? "all " : "", kind,
                                                name_of(finding.verdict), finding.evidence);
          if (nodes == &ill) {
            EXPECT_NE(finding.verdict, Verdict::pass) << where;
          } else {
            EXPECT_GE(finding.verdict, Verdict::unknown) << where;
          }
        }
      }
    }
  }
}

// A GPU that fell off the bus answers NVML nothing, not even its name, or is no longer listed.
TEST(Checks, AGpuThatAnswersNothingIsUnknown) {
  Node node = test::healthy_node();
  set_in_ranks("gpu/" + test::gpu_address(0), "yes")(node);
  EXPECT_EQ(worst(found("gpu.nvml", node)), Verdict::pass);
  node.facts.set(first_nvml + "/name", "");
  EXPECT_EQ(worst(found("gpu.nvml", node)), Verdict::unknown);
  for (const auto& fact : test::healthy_node().facts) {
    if (fact.first.starts_with(first_nvml)) unset(fact.first)(node);
  }
  EXPECT_EQ(worst(found("gpu.nvml", node)), Verdict::unknown);
  set_in_ranks("gpu/" + test::gpu_address(0), "no")(node);  // the scheduler gave the job fewer
  EXPECT_EQ(worst(found("gpu.nvml", node)), Verdict::pass);
}

}  // namespace
}  // namespace harness::doctor
