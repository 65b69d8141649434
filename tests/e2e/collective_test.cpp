#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "command.h"
#include "store/result_file.h"

namespace harness {
namespace {

using test::TemporaryFolder;
using ::testing::HasSubstr;
using ::testing::Not;

std::string write_point(const TemporaryFolder& folder, const std::string& text) {
  const std::string path = folder / "point.yaml";
  std::ofstream(path) << text << "measure: {rounds: 1, warmup_steps: 1, steps: 2}\noutput: " << (folder / "point.h5")
                      << "\n";
  return path;
}

std::string column(const std::string& csv, const std::string& row, const std::string& name) {
  std::istringstream lines(csv);
  std::string head, line;
  std::getline(lines, head);
  const auto cells = [](const std::string& text) {
    std::vector<std::string> out(1);
    bool quoted = false;
    for (const char c : text) {
      if (c == '"') quoted = !quoted;
      if (c == ',' && !quoted) {
        out.emplace_back();
      } else {
        out.back() += c;
      }
    }
    return out;
  };
  const auto names = cells(head);
  while (std::getline(lines, line)) {
    const auto values = cells(line);
    if (values[0] != row) continue;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) return values[i];
    }
  }
  return "no " + name + " of " + row;
}

// Every collective on three ranks, in place and not: the workers check every element of the results.
TEST(Collective, EveryOperationIsMeasuredAndChecked) {
  const TemporaryFolder folder;
  const auto config = write_point(folder, R"(
workload: collective
backend: cpu
fabric: {rank: 1 B/s}
baseline: {collective: all_reduce, message_size: 12 KiB, repetitions: 4}
sweep:
  collective: [reduce_scatter, all_gather, all_to_all, send_recv]
  in_place: [false]
  precision: [bf16]
  allreduce_algorithm: [halving_doubling]
  message_size: [10 KiB]
  ranks: [2, 1]
)");
  const auto o = test::run(test::harness_job(3, "sweep " + config));
  ASSERT_TRUE(o.exit_code == 0 || o.exit_code == 4) << o.err;
  EXPECT_THAT(o.out, HasSubstr("baseline GB/s"));
  EXPECT_THAT(o.out, Not(HasSubstr("MFU")));
  EXPECT_THAT(o.out, Not(HasSubstr("  tokens/s")));
  // 1 B/s is less than any machine has: the answer is the limit.
  EXPECT_THAT(o.out, HasSubstr("beyond the limit"));
  EXPECT_THAT(o.out, HasSubstr("! impossible: "));

  const store::Result r = store::read_result(folder / "point.h5");
  for (const store::ResultBlock& b : r.blocks) EXPECT_EQ(b.status, store::BlockStatus::ok) << b.reason;
  for (const auto& losses : r.losses) {
    for (const float loss : losses) EXPECT_NEAR(loss, 1, 1e-6);
  }
  const std::string csv = test::run(test::program_path() + " show " + (folder / "point.h5") + " --format csv").out;
  const auto number = [&](const std::string& row, const std::string& name) {
    return std::stod(column(csv, row, name));
  };
  const std::vector<std::pair<std::string, double>> factors{{"baseline", 4.0 / 3},
                                                            {"collective=reduce_scatter", 2.0 / 3},
                                                            {"collective=all_gather", 2.0 / 3},
                                                            {"collective=all_to_all", 2.0 / 3},
                                                            {"collective=send_recv", 1},
                                                            {"ranks=2", 1}};
  for (const auto& [row, factor] : factors) {
    const double seconds = number(row, "step_seconds") / 4;
    EXPECT_NEAR(number(row, "rates_seconds") / seconds, 1, 1e-9) << row;
    EXPECT_NEAR(number(row, "rates_algorithm_bytes_per_s") * seconds, 12288, 1e-3) << row;
    EXPECT_NEAR(number(row, "rates_bus_bytes_per_s") * seconds, 12288 * factor, 1e-3) << row;
    EXPECT_DOUBLE_EQ(number(row, "rates_limit_bytes_per_s"), 1) << row;
    EXPECT_GT(number(row, "rates_share_of_limit"), 1.05) << row;
  }
  EXPECT_EQ(column(csv, "ranks=1", "status"), "impossible");
  const auto json = test::run(test::program_path() + " show " + (folder / "point.h5") + " --format json").out;
  EXPECT_THAT(json, HasSubstr("\"bus_bytes_per_s\""));
}

TEST(Collective, ProductsAndAttentionOfAModel) {
  const TemporaryFolder folder;
  const std::string model = "backend: cpu\nmodel: {layers: 1, hidden: 32, heads: 2, vocab: 64, sequence: 16}\n";
  for (const std::string& text :
       {"workload: gemm\n" + model +
            "baseline: {gemm: {m: 48, n: 32, k: 16}, repetitions: 3}\nsweep: {gemm: from_model, precision: [bf16]}\n",
        "workload: attention\n" + model +
            "baseline: {attention_shape: {batch: 2, heads: 2, head_dim: 8, sequence: 24}, repetitions: 3}\n"
            "sweep: {attention_shape: from_model, attention_pass: [backward], precision: [bf16]}\n"}) {
    const auto o = test::run(test::harness_job(2, "sweep --force " + write_point(folder, text)));
    ASSERT_TRUE(o.exit_code == 0 || o.exit_code == 4) << o.err;
    EXPECT_THAT(o.out, HasSubstr("of peak"));
    EXPECT_EQ(o.out.find("qkv, forward") != std::string::npos, text.starts_with("workload: gemm"));
    const store::Result r = store::read_result(folder / "point.h5");
    EXPECT_GE(r.cases.size(), 5u);
    for (const store::ResultBlock& b : r.blocks) EXPECT_EQ(b.status, store::BlockStatus::ok) << b.reason;
  }
}

}  // namespace
}  // namespace harness
