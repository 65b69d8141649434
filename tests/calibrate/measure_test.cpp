// What calibrate asks before it measures.
#include "calibrate/measure.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "calibrate/files.h"
#include "config/hardware.h"
#include "support/played_job.h"
#include "support/temporary_folder.h"

namespace harness::calibrate {
namespace {

/// A job of one GPU, whose worker says of itself what `identity` has and does nothing else.
class ProbedJob : public test::PlayedJob {
 public:
  explicit ProbedJob(NameValues identity) : identity_(std::move(identity)) {
    job::RankPlace& place = seats().front();
    place.local_ranks = 4;
    place.device = "Xeon";
    place.memory_bytes = 64e9;
  }
  std::vector<job::BlockOutcome> run(const std::vector<job::BlockOnSet>& blocks) override {
    ++blocks_run;
    job::BlockOutcome outcome;
    outcome.ok = std::holds_alternative<job::Probe>(blocks.front().request.task) && blocks.front().last;
    outcome.reason = "only asked";
    outcome.samples.emplace_back().task = job::ProbeSamples{identity_, "", 0, ""};
    return {outcome};
  }

  int blocks_run = 0;

 private:
  NameValues identity_;
};

TEST(CalibratedDevice, IsWhatAGpuSaysOfItself) {
  ProbedJob job({{"device", "NVIDIA X1"}, {"compute_capability", "10.3"}, {"multiprocessors", "148"}});
  const Device device = device_of(job, usual(config::BackendKind::cuda));
  EXPECT_EQ(device.name, "NVIDIA X1");
  EXPECT_EQ(device.compute_capability, 103);
  EXPECT_EQ(device.sms, 148);
  EXPECT_EQ(device.memory_bytes, 0);  // which it does not tell
  EXPECT_EQ(job.blocks_run, 1);
}

TEST(CalibratedDevice, IsItsShareOfTheNodeWhereRanksAreCores) {
  ProbedJob job({});
  const Device device = device_of(job, usual(config::BackendKind::cpu));
  EXPECT_EQ(device.name, "Xeon");
  EXPECT_EQ(device.memory_bytes, 16e9);
  EXPECT_EQ(device.sms, 0);
  EXPECT_EQ(job.blocks_run, 0);
}

// A hardware file without what nobody told is one that a prediction reads.
TEST(CalibratedDevice, WithoutMemoryItsFileHasNone) {
  Measured m;
  m.device = {.name = "NVIDIA X1", .sms = 148, .compute_capability = 103};
  Calibrated found;
  found.peak_flops[config::Precision::bf16] = 1e15;
  found.memory_bytes_per_s = 8e12;
  const test::TemporaryFolder folder;
  folder.write("x.yaml", hardware_text(m, found));
  const config::Hardware read = config::hardware_named(folder / "x.yaml");
  EXPECT_EQ(read.memory_bytes, 0);
  EXPECT_EQ(read.sms, 148);
  EXPECT_EQ(read.compute_capability, 103);
  EXPECT_FALSE(read.nvswitch);
}

}  // namespace
}  // namespace harness::calibrate
