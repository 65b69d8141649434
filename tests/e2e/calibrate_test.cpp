// `harness calibrate` under mpirun, and a prediction with what it wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "command.h"
#include "store/result_file.h"
#include "support/files.h"

namespace harness {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string small_config(const test::TemporaryFolder& folder) {
  return folder.write("small.yaml", R"(backend: cpu
model: {layers: 2, hidden: 32, heads: 2, vocab: 64, sequence: 16}
baseline: {precision: fp32, global_batch_size: 4, allreduce_algorithm: ring}
sweep: {layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}], micro_batch_size: [2]}
measure: {rounds: 2}
)");
}

// What was measured on two ranks predicts every case of the sweep that named the sizes.
TEST(CalibrateAsAUser, WritesWhatAPredictionReads) {
  const test::TemporaryFolder folder;
  const std::string config = small_config(folder), prefix = folder / "x";
  const std::string calibrate = fmt::format("calibrate {} -o {} --time-budget 1s", config, prefix);
  const auto made = test::run(test::harness_job(2, calibrate));
  ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("products, fp32"), HasSubstr("bus bandwidth"), HasSubstr("x-hardware.yaml")));
  EXPECT_THAT(test::text_of(prefix + "-calibration.yaml"), HasSubstr("no step was compared with it"));

  const auto predicted = test::run(test::harness_job(
      1,
      fmt::format("sweep {} --backend sim --ranks 2 --hardware {}-hardware.yaml --set calibration={}-calibration.yaml "
                  "-o {}",
                  config, prefix, prefix, folder / "p.h5")));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.out << predicted.err;
  const store::Result result = store::read_result(folder / "p.h5", {});
  ASSERT_EQ(result.cases.size(), 4U);
  for (const store::ResultCase& row : result.cases) EXPECT_EQ(row.reason, "") << row.name;
  EXPECT_THAT(predicted.out, HasSubstr("predicted"));

  // They stand there now.
  const auto again = test::run(test::harness_job(2, calibrate));
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, AllOf(HasSubstr("x-hardware.yaml"), HasSubstr("exists")));
}

TEST(CalibrateAsAUser, OneRankMeasuresNoCommunication) {
  const test::TemporaryFolder folder;
  const auto made = test::run(
      test::harness_job(1, fmt::format("calibrate {} -o {} --time-budget 1s", small_config(folder), folder / "x")));
  ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_THAT(made.err, HasSubstr("no communication is measured"));
  // Between two ranks nothing is known, and a prediction says so.
  const auto predicted = test::run(test::harness_job(
      1, fmt::format("sweep {0}/small.yaml --backend sim --ranks 2 --ranks-per-node 1 --hardware {0}/x-hardware.yaml "
                     "--set calibration={0}/x-calibration.yaml -o {0}/p.h5",
                     folder.path())));
  EXPECT_EQ(predicted.exit_code, 1) << predicted.out;
  EXPECT_THAT(predicted.err, HasSubstr("nothing says how fast"));
}

// Before anything is measured.
TEST(CalibrateAsAUser, RefusesWhatComputesNothing) {
  const test::TemporaryFolder folder;
  const std::string config = small_config(folder);
  const auto o = test::run(test::harness_job(2, fmt::format("calibrate {} --backend sim -o {}", config, folder / "x")));
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("computes nothing that could be measured"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x-hardware.yaml"));
}

}  // namespace
}  // namespace harness
