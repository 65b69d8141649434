// All checks on a healthy node, on an ill one, on several, and where a fact is absent or cannot be read.
#include "doctor/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "check_rows.h"
#include "doctor/consensus.h"
#include "support/files.h"
#include "support/paths.h"

namespace harness::doctor {
namespace {

using namespace check_rows;

// Checks of what is right to be absent, such as a file of settings, and of what is wrong to be, such as a daemon; and
// those that look at many devices, of which a hypervisor hides some.
const std::set<std::string>& absence_tells() {
  static const std::set<std::string> all{
      "gpu.count",        "gpu.driver",       "gpu.fabric_manager", "gdr.gdrcopy", "ib.errors",
      "ib.interrupts",    "pcie.width",       "pcie.speed",         "pcie.acs",    "pcie.iommu",
      "nccl.plugin_file", "nccl.sharp",       "mpi.devices",        "env.names",   "env.values",
      "env.debugging",    "env.combinations", "env.without_effect", "env.devices", "env.file"};
  return all;
}

std::vector<Finding> found_after(const Row& row, const NodeChange& change) {
  Node node = test::healthy_node();
  both(row.prepare, change)(node);
  return found(row.check, node);
}

TEST(Checks, EachHasARowHereAndAnIdOfItsOwn) {
  std::set<std::string> tested, known;
  for (const Row& row : rows()) tested.insert(row.check);
  for (const Check& check : checks()) {
    EXPECT_TRUE(known.insert(check.id).second) << check.id;
    EXPECT_TRUE(tested.contains(check.id)) << check.id;
    EXPECT_FALSE(check.what.empty() || check.reads.empty() || check.docs.empty()) << check.id;
  }
  EXPECT_EQ(tested, known);
}

TEST(Checks, EachPassesOnAHealthyNode) {
  for (const Row& row : rows()) {
    const auto findings = found_after(row, nothing);
    ASSERT_FALSE(findings.empty()) << row.check;
    EXPECT_EQ(worst(findings), Verdict::pass) << row.check << ": " << findings.front().evidence;
  }
}

TEST(Checks, EachNamesItsFault) {
  for (const Row& row : rows()) {
    const auto findings = found_after(row, row.bad);
    ASSERT_FALSE(findings.empty()) << row.check;
    EXPECT_EQ(worst(findings), row.verdict) << row.check << ": " << findings.front().evidence;
    for (const Finding& finding : findings) {
      EXPECT_FALSE(finding.verdict <= Verdict::warn && finding.remedy.empty()) << row.check;
    }
  }
}

TEST(Checks, WhatCannotBeReadIsNeitherPassNorFail) {
  for (const Row& row : rows()) {
    const auto findings = found_after(row, row.hidden);
    ASSERT_FALSE(findings.empty()) << row.check;
    EXPECT_EQ(worst(findings), row.when_hidden) << row.check << ": " << findings.front().evidence;
  }
}

// The same where the facts are not there at all: nothing to look at is no pass, and no fault, unless it is the fault.
TEST(Checks, WhatIsAbsentIsNeitherPassNorFail) {
  for (const Row& row : rows()) {
    Node node = test::healthy_node();
    both(row.prepare, row.hidden)(node);
    const auto take_away_unreadable = [](Facts& facts) {
      Facts rest;
      bool any = false;
      for (const auto& [name, reading] : facts) {
        any = any || !reading.ok();
        if (reading.ok()) rest.set(name, reading);
      }
      facts = rest;
      return any;
    };
    bool any = take_away_unreadable(node.facts);
    for (Rank& rank : node.ranks) any = take_away_unreadable(rank.facts) || any;
    if (!any) continue;
    const auto findings = found(row.check, node);
    ASSERT_FALSE(findings.empty()) << row.check;
    if (absence_tells().contains(row.check)) continue;
    const Verdict verdict = worst(findings);
    EXPECT_TRUE(verdict == Verdict::unknown || verdict == Verdict::skip)
        << row.check << ": " << name_of(verdict) << " " << findings.front().evidence;
  }
}

// Of three nodes one is ill: it is named, and the healthy ones are not.
TEST(Checks, EachNamesTheIllNodeOfSeveral) {
  for (const Row& row : rows()) {
    std::vector<Node> nodes(3, test::healthy_node());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      nodes[i].host = fmt::format("node{}", i);
      row.prepare(nodes[i]);
      for (Rank& rank : nodes[i].ranks) rank.rank += static_cast<int>(i * nodes[i].ranks.size());
    }
    row.bad(nodes[1]);
    std::vector<std::string> accused;
    for (const Line& line : diagnose(nodes).lines) {
      if (line.check == row.check && line.finding.verdict == row.verdict)
        accused.insert(accused.end(), line.nodes.begin(), line.nodes.end());
    }
    std::ranges::sort(accused);
    accused.erase(std::ranges::unique(accused).begin(), accused.end());
    EXPECT_EQ(accused, std::vector<std::string>{"node1"}) << row.check;
  }
}

// Facts of one kind on all devices: "port/*/1/rate".
std::string kind_of(const std::string& fact) {
  std::string kind;
  for (const std::string_view part : split(fact, '/')) {
    const bool is_device = part.starts_with("mlx5_") || part.starts_with("0000:");
    kind += (kind.empty() ? "" : "/") + (is_device ? std::string("*") : std::string(part));
  }
  return kind;
}

// Facts that are there or not, but are never unreadable by themselves.
bool is_made(const std::string& fact) {
  return fact.starts_with("nvml/") || fact.starts_with("log/") || fact.starts_with("daemon/") ||
         fact.ends_with("/above") || fact.starts_with("driver/gpu/");
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
    const auto check = std::ranges::find(checks(), row.check, &Check::id);
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
          const Finding finding = std::ranges::min(judge(*check, nodes->front(), cluster), {}, &Finding::verdict);
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

TEST(Checks, WithoutGpusAndAdaptersTheirChecksAreLeftOut) {
  test::NodeTree tree("plain");
  const Node node = tree.node(2);
  for (const Check& check : checks()) {
    const auto findings = found(check.id, node);
    ASSERT_FALSE(findings.empty()) << check.id;
    EXPECT_GE(worst(findings), Verdict::skip) << check.id << ": " << findings.front().evidence;
  }
}

// docs/doctor.md has a row for each check, as it describes itself.
TEST(Checks, ThePageListsThem) {
  const std::string page = test::text_of(test::source_dir() + "/docs/doctor.md");
  for (const Check& check : checks()) {
    const std::string row = fmt::format("| `{}` | {} | {} |\n", check.id, check.what, check.reads);
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
  for (const Comparison& one : comparisons()) {
    const std::string row = fmt::format("| `{}` | {} | {} |\n", one.check, one.what, name_of(one.verdict));
    EXPECT_NE(page.find(row), std::string::npos) << row;
  }
}

TEST(Checks, ANodeOfWhichNothingWasReadIsNotHealthy) {
  Node dark{"dark", {{0, {}}}, {}};
  dark.facts.set_unreadable("pci", "there is no such folder");
  const Diagnosis diagnosis = diagnose({test::healthy_node(), dark});
  EXPECT_EQ(diagnosis.dark, 1u);
  EXPECT_EQ(exit_code(diagnosis, false), 3);
  const auto line = std::ranges::find_if(diagnosis.lines, [](const Line& one) {
    return one.check == "node.answers" && one.finding.verdict == Verdict::unknown;
  });
  ASSERT_NE(line, diagnosis.lines.end());
  EXPECT_EQ(line->nodes, std::vector<std::string>{"dark"});
  EXPECT_EQ(line->finding.evidence, "the node cannot be read: there is no such folder");
}

// Nothing was read at all: no check may say that something is right or wrong.
TEST(Checks, ANodeWithoutFactsHasNoVerdict) {
  Node node{"dark", {{0, {}}}, {}};
  for (const char* name : {"pci", "hcas", "cpu/governor", "memory/total_kb", "log", "driver/gpus", "nccl_conf"})
    node.facts.set_unreadable(name, "permission denied");
  for (const Check& check : checks()) {
    const auto findings = found(check.id, node);
    ASSERT_FALSE(findings.empty()) << check.id;
    EXPECT_GE(worst(findings), Verdict::unknown) << check.id << ": " << findings.front().evidence;
  }
}

}  // namespace
}  // namespace harness::doctor
