// Facts that cannot be read, that are not there, or that say what none can be: no check accuses or acquits by them.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "check_rows.h"
#include "doctor/check.h"

namespace harness::doctor {
namespace {

using namespace check_rows;

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

// Facts whose text is free, or which this program writes: no value of theirs is rubbish.
bool is_free_text(const std::string& check, const std::string& kind) {
  static const std::set<std::string> all{
      "cpu/model",         "cpu/preference",         "driver/open", "driver/peermem", "driver/version",
      "gpu/*/device",      "gpu/*/driver",           "hca/*/board", "hca/*/vendor",   "log",
      "memory/numa_nodes", "memory/total_kb",        "nvml",        "os/container",   "os/processor",
      "os/virtual",        "port/*/1/roce_addresses"};
  const bool of_its_place = kind.ends_with("/path") && check != "topo.nearest";  // whose own end tells enough
  if (check == "cpu.load" && kind == "cpu/online") return true;  // a load of 1 is none on any number of CPUs
  return all.contains(kind) || of_its_place || kind.starts_with("library/") || kind.starts_with("nccl_conf/");
}

// Every kind of fact that a check rests on, on its first device and on all: where the value is none that there can be,
// or one device alone has none, no check passes.
TEST(Checks, AValueThatSaysNothingAcquitsNobody) {
  std::size_t rests = 0;
  for (const Row& row : rows()) {
    Node node = test::healthy_node();
    row.prepare(node);
    const Check& check = check_named(row.check);
    const Cluster cluster({node});
    std::map<std::string, std::vector<std::string>> kinds;
    for (const auto& [name, reading] : node.facts) {
      if (!is_made(name)) kinds[kind_of(name)].push_back(name);
    }
    const auto with = [&](const std::vector<std::string>& names, const machine::Reading& reading) {
      Node other = node;
      for (const std::string& name : names) {
        other.facts = without(other.facts, name);
        other.facts.set(name, reading);
      }
      return std::ranges::min(judge(check, other, cluster), {}, &Finding::verdict);
    };
    for (const auto& [kind, names] : kinds) {
      if (is_free_text(row.check, kind)) continue;
      const std::vector<std::string> first{names.front()};
      if (with(first, {machine::Access::unreadable, {}, "permission denied"}).verdict != Verdict::unknown) continue;
      ++rests;
      for (const auto& some : {first, names}) {
        for (const char* text : {"", "garbage", "?"}) {
          const Finding finding = with(some, {machine::Access::read, text, {}});
          EXPECT_NE(finding.verdict, Verdict::pass)
              << row.check << " with " << kind << " \"" << text << "\": " << finding.evidence;
        }
      }
      if (names.size() == 1 || kind.starts_with("bridge/")) continue;
      const Finding finding = with(first, {});
      EXPECT_NE(finding.verdict, Verdict::pass) << row.check << " without a " << kind << ": " << finding.evidence;
    }
  }
  EXPECT_GT(rests, 40u);
}

// A link of one device of each kind, and of all, that tells what no link can be: 63 lanes are those of a device that
// fell off the bus. A hypervisor hides those of a kind.
TEST(Checks, ALinkThatTellsNothingIsUnknown) {
  struct Link {
    const char *check, *kind, *fact;
  };
  for (const Link& link : {Link{"pcie.width", "gpu", "width"},
                           {"pcie.width", "hca", "width"},
                           {"pcie.width", "bridge", "width"},
                           {"pcie.speed", "hca", "speed"},
                           {"ib.pcie", "hca", "width"},
                           {"ib.pcie", "hca", "speed"}}) {
    for (const char* text : {"63", "0", "255", "-1", "1e9", "nan", "Unknown", "garbage", "", "absent", "hidden"}) {
      for (const bool all : {false, true}) {
        for (const bool is_guest : {false, true}) {
          Node node = test::healthy_node();
          for (const std::string& gpu : node.facts.under("nvml")) unset("nvml/" + gpu + "/pcie_width")(node);
          if (is_guest) node.facts.set("os/virtual", "yes");
          const std::vector<std::string> names = node.facts.under(link.kind);
          for (std::size_t i = 0; i < (all ? names.size() : 1); ++i) {
            const std::string fact = fmt::format("{}/{}/{}", link.kind, names[i], link.fact);
            node.facts = without(node.facts, fact);
            if (text == std::string("hidden")) hide(fact)(node);
            if (text != std::string("hidden") && text != std::string("absent")) node.facts.set(fact, text);
          }
          const Finding finding = found(link.check, node).front();
          const std::string where = fmt::format("{}: {} {} of {}{}: {}", link.check, link.fact, text, all ? "all " : "",
                                                link.kind, finding.evidence);
          if (!is_guest || (!all && link.kind != std::string("bridge"))) {
            EXPECT_EQ(finding.verdict, Verdict::unknown) << where;
          } else {
            EXPECT_GE(finding.verdict, Verdict::unknown) << where;
          }
        }
      }
    }
  }
}

TEST(Checks, WhereTheBusIsHiddenTheDriverTellsLanes) {
  Node node = test::healthy_node();
  for (const auto& fact : test::healthy_node().facts) {
    if (fact.first.starts_with("gpu/") || fact.first.starts_with("hca/") || fact.first.starts_with("bridge/"))
      unset(fact.first)(node);
  }
  EXPECT_EQ(worst(found("pcie.width", node)), Verdict::pass);
  node.facts.set(first_nvml + "/pcie_width", "8");
  EXPECT_EQ(found("pcie.width", node).front().evidence,
            fmt::format("GPU {} runs on 8 of 16 PCIe lanes", test::gpu_address(0)));
  unset(first_nvml + "/pcie_width")(node);
  EXPECT_EQ(worst(found("pcie.width", node)), Verdict::unknown);
}

// One rank of eight, and all, do not tell; one of the others may be ill besides.
TEST(Checks, ARankThatTellsNothingIsUnknown) {
  struct Limit {
    const char *check, *fact, *low;
  };
  for (const Limit& one : {Limit{"rank.memlock", "limit/memlock", "65536"},
                           {"rank.nofile", "limit/nofile", "1024"},
                           {"rank.shm", "shm/bytes", "65536"},
                           {"rank.near_gpu", "bound/cpus", "9"}}) {
    for (const char* text : {"", "garbage", "absent", "hidden"}) {
      for (const std::size_t silent : {1u, 8u}) {
        Node node = test::healthy_node();
        for (std::size_t i = 0; i < silent; ++i) {
          Facts& facts = node.ranks[i].facts;
          facts = without(facts, one.fact);
          if (text == std::string("hidden")) facts.set_unreadable(one.fact, "permission denied");
          if (text != std::string("hidden") && text != std::string("absent")) facts.set(one.fact, text);
        }
        const auto findings = found(one.check, node);
        EXPECT_EQ(worst(findings), Verdict::unknown) << one.check << " \"" << text << "\": " << findings[0].evidence;
        if (silent == 8 || one.fact == std::string("bound/cpus")) continue;
        node.ranks[5].facts.set(one.fact, one.low);
        EXPECT_LT(worst(found(one.check, node)), Verdict::unknown) << one.check << " \"" << text << "\"";
      }
    }
  }
}

// A GPU that fell off the bus answers NVML nothing, not even its name, or is no longer listed. GPUs of another model
// tell other things.
TEST(Checks, AGpuThatAnswersNothingIsUnknown) {
  const auto without_facts = [](const std::string& name) {
    Node node = test::healthy_node();
    for (const auto& fact : test::healthy_node().facts) {
      if (fact.first.starts_with(first_nvml)) unset(fact.first)(node);
    }
    node.facts.set(first_nvml + "/name", name);
    return node;
  };
  for (const char* check :
       {"gpu.persistence", "gpu.mode", "gpu.slowed", "gpu.power", "gpu.temperature", "gpu.memory_errors",
        "gpu.processes", "gpu.recovery", "gpu.nvlink", "gpu.nvlink_errors", "gpu.fabric"}) {
    EXPECT_EQ(worst(found(check, without_facts(""))), Verdict::unknown) << check;
    EXPECT_EQ(worst(found(check, without_facts("NVIDIA H100 80GB HBM3"))), Verdict::unknown) << check;
    EXPECT_EQ(worst(found(check, without_facts("NVIDIA T1000"))), Verdict::pass) << check;
  }
  Node node = test::healthy_node();
  set_in_ranks("gpu/" + test::gpu_address(0), "yes")(node);
  EXPECT_EQ(worst(found("gpu.nvml", node)), Verdict::pass);
  for (const auto& fact : test::healthy_node().facts) {
    if (fact.first.starts_with(first_nvml)) unset(fact.first)(node);
  }
  EXPECT_EQ(worst(found("gpu.nvml", node)), Verdict::unknown);
  set_in_ranks("gpu/" + test::gpu_address(0), "no")(node);  // the scheduler gave the job fewer
  EXPECT_EQ(worst(found("gpu.nvml", node)), Verdict::pass);
}

}  // namespace
}  // namespace harness::doctor
