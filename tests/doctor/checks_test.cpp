// All checks: on a healthy node, a faulty one and several nodes, and with facts absent or unreadable.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "check_rows.h"
#include "doctor/check.h"
#include "support/soak.h"

namespace harness::doctor {
namespace {

using namespace check_rows;

// Checks of facts that may be absent, such as a settings file, and checks whose other facts or devices suffice.
const std::set<std::string>& absence_tells() {
  static const std::set<std::string> all{
      "gpu.xid",   "ib.pcie",    "pcie.width",    "pcie.acs",           "gpu.count",   "ib.errors", "nccl.plugin_file",
      "env.names", "env.values", "env.debugging", "env.without_effect", "env.devices", "env.file"};
  return all;
}

TEST(Checks, EachHasARowHereAndAnIdOfItsOwn) {
  std::set<std::string> tested, known;
  for (const Row& row : rows()) tested.insert(row.check);
  for (const Check& check : checks()) {
    const About& about = check.about;
    EXPECT_TRUE(known.insert(about.id).second) << about.id;
    EXPECT_FALSE(about.question.empty() || about.reads.empty() || about.docs.empty()) << about.id;
    EXPECT_NE(check.look == nullptr, check.rules.empty()) << about.id;
  }
  EXPECT_EQ(tested, known);
}

// Applies a change of one device to all devices of its kind.
NodeChange on_all(const NodeChange& change, const NodeChange& prepare) {
  return [=](Node& node) {
    Node one = test::healthy_node();
    prepare(one);
    const Node before = one;
    change(one);
    change(node);
    for (const auto& [name, reading] : one.facts) {
      if (before.facts.peek(name) == reading) continue;
      for (const auto& fact : before.facts) {
        if (kind_of(fact.first) == kind_of(name)) node.facts.set(fact.first, reading);
      }
    }
  };
}

// Removes the facts that could not be read. Returns false if there are none.
bool take_away_unreadable(Node& node) {
  std::vector<Facts*> all{&node.facts};
  for (Rank& rank : node.ranks) all.push_back(&rank.facts);
  bool any = false;
  for (Facts* facts : all) {
    Facts rest;
    for (const auto& [name, reading] : *facts) {
      any = any || !reading.ok();
      if (reading.ok()) rest.set(name, reading);
    }
    *facts = rest;
  }
  return any;
}

enum class State { healthy, partly_ill, ill, hidden, absent };

// Returns false if the row has no such state.
bool put_into(Node& node, const Row& row, State state) {
  row.prepare(node);
  if (state == State::partly_ill) row.bad(node);
  if (state == State::ill) on_all(row.bad, row.prepare)(node);
  if (state == State::hidden || state == State::absent) row.hidden(node);
  return state != State::absent || take_away_unreadable(node);
}

// Compares the findings of a check with the state of its node.
void expect(const Row& row, State state, const std::vector<Finding>& findings, const std::string& where) {
  ASSERT_FALSE(findings.empty()) << where;
  const Verdict verdict = worst(findings);
  const std::string said = fmt::format("{}: {} {}", where, name_of(verdict), findings.front().evidence);
  const std::map<State, Verdict> expected{{State::healthy, Verdict::pass},
                                          {State::partly_ill, row.verdict},
                                          {State::ill, row.when_all_are.value_or(row.verdict)},
                                          {State::hidden, row.when_hidden}};
  // An absent fact is neither a pass nor a fault, unless absence is the fault.
  const bool is_open = verdict == Verdict::unknown || verdict == Verdict::skip;
  EXPECT_TRUE(state == State::absent ? is_open || absence_tells().contains(row.check) : verdict == expected.at(state))
      << said;
  EXPECT_TRUE(verdict == Verdict::unknown || verdict >= check_named(row.check).about.at_worst) << said;
  for (const Finding& finding : findings)
    EXPECT_FALSE(finding.verdict <= Verdict::warn && finding.remedy.empty()) << said;
}

// Runs every check on a healthy node, on one with a fault on one device or on all, and on one whose fact is unreadable
// or absent: alone, as one of three nodes, and as all three. Healthy nodes beside it get no fault.
TEST(Checks, SayOfEachNodeWhatIsTrueOfIt) {
  for (const Row& row : rows()) {
    for (const State state : {State::healthy, State::partly_ill, State::ill, State::hidden, State::absent}) {
      for (const auto& [count, in_state] : {std::pair{1u, 1u}, {3u, 1u}, {3u, 3u}}) {
        std::vector<Node> nodes(count, test::healthy_node());
        bool known = true;
        for (std::size_t i = 0; i < count; ++i) {
          known = put_into(nodes[i], row, i < in_state ? state : State::healthy) && known;
          for (Rank& rank : nodes[i].ranks) rank.rank += static_cast<int>(i * nodes[i].ranks.size());
        }
        if (!known) continue;
        const Cluster cluster(nodes);
        for (std::size_t i = 0; i < count; ++i) {
          expect(row, i < in_state ? state : State::healthy, judge(check_named(row.check), nodes[i], cluster),
                 fmt::format("{}, state {}, node {} of {}", row.check, static_cast<int>(state), i, count));
        }
      }
    }
  }
}

TEST(Checks, WithoutGpusAndAdaptersTheirChecksAreLeftOut) {
  test::NodeTree tree("plain");
  const Node node = tree.node(2);
  for (const Check& check : checks()) {
    const auto findings = found(check.about.id, node);
    ASSERT_FALSE(findings.empty()) << check.about.id;
    EXPECT_GE(worst(findings), Verdict::skip) << check.about.id << ": " << findings.front().evidence;
  }
}

// Eight CPUs, some of which the job may use, limited by a control group or by the bindings of its ranks.
TEST(Checks, AQuotaOfAllCpusThatAJobMayUseIsNone) {
  const auto said = [](const std::string& quota, const NodeChange& change) {
    Node node = test::healthy_node();
    node.facts.set("cpu/quota", quota);
    change(node);
    return worst(found("cpu.quota", node));
  };
  const NodeChange four = set_in_ranks("bound/cpus", "0-3"), silent = hide_in_ranks("bound/cpus");
  EXPECT_EQ(said("8.00", nothing), Verdict::pass);
  EXPECT_EQ(said("128.00", nothing), Verdict::pass);
  EXPECT_EQ(said("7.99", nothing), Verdict::warn);
  EXPECT_EQ(said("4.00", four), Verdict::pass);
  EXPECT_EQ(said("4.00", both(four, set_in_ranks("bound/allowed", "0-7"))), Verdict::warn);
  EXPECT_EQ(said("8.00", unset("cpu/online")), Verdict::pass);
  EXPECT_EQ(said("4.00", silent), Verdict::warn);
  EXPECT_EQ(said("8.00", both(silent, unset("cpu/online"))), Verdict::unknown);
  for (const char* odd : {"", "garbage", "nan"}) EXPECT_EQ(said(odd, nothing), Verdict::unknown) << odd;
}

// Slurm with ConstrainDevices: the job has half of the node's GPUs.
TEST(Checks, ARankIsHeldAgainstTheGpusThatItMayUse) {
  Node node = test::healthy_node();
  node.ranks.resize(4);
  for (int i = 0; i < 8; ++i) {
    const std::string address = test::gpu_address(i);
    node.facts.set("gpu/" + address + "/cpus", i < 4 ? "0-3" : "4-7");
    for (Rank& rank : node.ranks) rank.facts.set("gpu/" + address, rank.rank == i ? "yes" : "no");
  }
  for (Rank& rank : node.ranks) rank.facts.set("bound/cpus", "0-3");
  EXPECT_EQ(worst(found("rank.near_gpu", node)), Verdict::pass) << found("rank.near_gpu", node).front().evidence;
  const std::string far = test::gpu_address(3);
  node.facts.set("gpu/" + far + "/cpus", "4-7");
  EXPECT_EQ(found("rank.near_gpu", node).front().evidence, "the job may use none of the CPUs near 1 GPU: " + far);
  EXPECT_EQ(found("rank.gpus", node).front().evidence, "4 ranks and 4 GPUs that the job may use");
  for (Rank& rank : node.ranks) rank.facts.set("gpu/" + far, "no");
  EXPECT_EQ(worst(found("rank.gpus", node)), Verdict::fail);
}

TEST(Checks, FewRanksOfManyGpusAreToldHowToStartMore) {
  Node node = test::healthy_node();
  node.ranks.resize(2);
  const Finding only = found("rank.gpus", node).front();
  EXPECT_EQ(only.verdict, Verdict::info);
  EXPECT_EQ(only.evidence, "2 ranks and 8 GPUs: a rank puts one GPU under load");
  EXPECT_NE(only.remedy.find("--map-by ppr:8:node"), std::string::npos);
}

// Tries every number of down ports out of eight equal ones. Half of them may be spare.
TEST(Checks, APortThatIsDownBesideItsEqualsIsMissed) {
  for (std::size_t down = 0; down <= 8; ++down) {
    Node node = test::healthy_node();
    for (std::size_t i = 0; i < down; ++i) {
      node.facts.set(fmt::format("port/mlx5_{}/1/state", i), "DOWN");
      node.facts.set(fmt::format("port/mlx5_{}/1/phys_state", i), "Polling");
    }
    const auto findings = found("ib.state", node);
    const bool may_be_spare = down >= 4 && down < 8;
    EXPECT_EQ(worst(findings), down == 0 || may_be_spare ? Verdict::pass : Verdict::warn) << down;
    if (down == 0 || down >= 4) continue;
    EXPECT_EQ(findings.size(), down);
    EXPECT_EQ(findings.front().evidence,
              fmt::format("port mlx5_0:1 is DOWN (Polling); {} of 8 ports of equal adapters are active", 8 - down));
  }
}

// No port of a node is active, in each possible state of a port and in impossible ones.
TEST(Checks, ANodeWithAdaptersNeedsAnActivePort) {
  for (const char* state : {"DOWN", "INIT", "ARMED", "NOP", "", "garbage", "7"}) {
    const bool is_known = std::string(state).size() > 2 && std::string(state) != "garbage";
    Node node = test::healthy_node();
    for (int i = 0; i < 8; ++i) node.facts.set(fmt::format("port/mlx5_{}/1/state", i), state);
    EXPECT_EQ(worst(found("ib.state", node)), is_known ? Verdict::warn : Verdict::unknown) << state;
  }
}

// A port that no job is meant to use may be down.
TEST(Checks, APortThatIsSpareIsNotMissed) {
  const NodeChange down = both(set("port/mlx5_3/1/state", "DOWN"), set("port/mlx5_3/1/phys_state", "Polling"));
  const auto said = [](const Node& node, const std::vector<Node>& all) {
    const Finding finding = judge(check_named("ib.state"), node, Cluster(all)).front();
    return fmt::format("{}: {}", name_of(finding.verdict), finding.evidence);
  };
  Node node = test::healthy_node();
  down(node);
  EXPECT_EQ(said(node, {node}).substr(0, 4), "warn");
  EXPECT_EQ(said(node, {node, node}), "pass: 7 active ports; not active: mlx5_3:1");  // no node uses it
  Node healthy = test::healthy_node();
  EXPECT_EQ(said(node, {node, healthy}).substr(0, 4), "warn");
  EXPECT_EQ(said(node, {node, healthy, healthy}).substr(0, 4), "fail");  // most nodes use it
  Node chosen = node;
  set_in_ranks("env/NCCL_IB_HCA", "^mlx5_3")(chosen);
  EXPECT_EQ(said(chosen, {chosen}).substr(0, 4), "pass");
  set_in_ranks("env/NCCL_IB_HCA", "mlx5_3")(chosen);
  EXPECT_EQ(said(chosen, {chosen}).substr(0, 4), "fail");
  Node fewer_gpus = node;
  for (const auto& fact : test::healthy_node().facts) {
    if (fact.first.starts_with("gpu/" + test::gpu_address(7))) unset(fact.first)(fewer_gpus);
  }
  EXPECT_EQ(said(fewer_gpus, {fewer_gpus}).substr(0, 4), "pass");  // as many ports as GPUs are up
  Node other_kind = node;
  set("hca/mlx5_3/board", "MT_0000000359")(other_kind);
  EXPECT_EQ(said(other_kind, {other_kind}).substr(0, 4), "pass");
}

// Facts that are present or absent but never unreadable by themselves.
bool is_made(const std::string& fact) {
  return fact.starts_with("nvml/") || fact.starts_with("driver/gpu/");
}

// Hides every kind of fact of a healthy node, on its first device and on all. Without the fact, no check may report a
// fault on a healthy node, and a check that finds a fault must not pass.
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
      if (test::sanitized && !test::drawn(std::string(row.check) + kind, 1)) continue;
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

TEST(Checks, AdaptersThatCannotBeListedDoNotConcernGpus) {
  Node node = test::healthy_node();
  hide("hcas")(node);
  EXPECT_EQ(worst(found("gpu.driver", node)), Verdict::pass);
  EXPECT_EQ(worst(found("pcie.width", node)), Verdict::unknown);
}

// A GPU that fell off the bus answers no NVML query, not even for its name, or is no longer listed.
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
  set_in_ranks("gpu/" + test::gpu_address(0), "no")(node);  // the scheduler gave the job fewer GPUs
  EXPECT_EQ(worst(found("gpu.nvml", node)), Verdict::pass);
}

}  // namespace
}  // namespace harness::doctor
