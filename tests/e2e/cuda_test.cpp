// `backend: cuda` end to end, on one rank over an emulated device (tests/CMakeLists.txt). Its times mean nothing, but
// the code from configuration to file is the same as with a real GPU.

#ifdef HARNESS_HAS_EMULATED_PROGRAM

#include <algorithm>
#include <fstream>

#include "user.h"

namespace harness {
namespace {

// Returns a command on a node with one GPU, as the fake /proc shows it.
std::string job(const TemporaryFolder& folder, const std::string& arguments) {
  std::filesystem::create_directories(folder / "root/proc/driver/nvidia/gpus/0000:1b:00.0");
  std::ofstream(folder / "root/proc/driver/nvidia/gpus/0000:1b:00.0/information") << "Model: NVIDIA Fake\n";
  return "HARNESS_TEST_GPU_ROOT=" + (folder / "root") +
         " HARNESS_TEST_TUNING_S=4 " +  // on the emulated GPU, every choice is equally good
         test::under_mpirun(1, test::emulated_program_path() + " " + arguments);
}

std::string config(const TemporaryFolder& folder, const std::string& precision) {
  return folder.write("cuda.yaml",
                      "name: cuda\nbackend: cuda\nhardware: none\n"
                      "model: {layers: 2, hidden: 32, heads: 2, vocab: 64, sequence: 16}\n"
                      "baseline: {precision: " +
                          precision +
                          ", global_batch_size: 4, micro_batch_size: 2, attention: unfused}\n"
                          "sweep: {micro_batch_size: [4], cuda_graph: [false]}\n"
                          "measure: {rounds: 2, warmup_steps: 1, steps: 3, seed: 1}\noutput: " +
                          (folder / "cuda.h5") + "\n");
}

class CudaSweep : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaSweep, RunsFromConfigurationToFile) {
  const std::string& precision = GetParam();
  const TemporaryFolder folder;
  const auto o = test::run(job(folder, "sweep " + config(folder, precision)), 240);
  ASSERT_TRUE(is_measured(o)) << o.exit_code << o.out << o.err;
  const store::Result r = store::read_result(folder / "cuda.h5");
  EXPECT_EQ(r.state, store::RunState::complete);
  ASSERT_EQ(r.cases.size(), 4u);
  for (const store::ResultBlock& b : r.blocks) EXPECT_EQ(b.status, store::BlockStatus::ok) << b.reason;
  for (std::size_t i = 0; i < r.blocks.size(); ++i) {
    for (std::size_t k = 0; k < 4; ++k)
      EXPECT_NEAR(r.losses[i][k] / r.losses[0][k], 1, precision == "bf16" ? 2e-2 : 1e-5);
  }
  EXPECT_FALSE(r.tuning.empty());
  // Tuning worker and timed workers use the same keys for products.
  for (const std::string& w : r.warnings) EXPECT_THAT(w, Not(HasSubstr("were not tuned")));
  EXPECT_FALSE(r.timeline.empty());
  ASSERT_EQ(r.splits.size(), 3u);  // none for baseline_again
  for (const store::ResultSplit& s : r.splits) {
    EXPECT_NEAR(s.compute_s + s.exposed_s + s.idle_s, s.step_s, 1e-9);
    EXPECT_GT(s.compute_s, 0);
  }
  const auto device = std::ranges::find(r.identity, "device", &std::pair<std::string, std::string>::first);
  ASSERT_NE(device, r.identity.end());
  EXPECT_EQ(device->second, "NVIDIA Fake");
  EXPECT_EQ(r.gpu.size(), r.blocks.size());
}

INSTANTIATE_TEST_SUITE_P(Precision, CudaSweep,
                         ::testing::ValuesIn(test::sanitized ? std::vector<std::string>{"bf16"}
                                                             : std::vector<std::string>{"fp32", "bf16"}),
                         [](const auto& instance) { return instance.param; });

TEST(Cuda, AnUnknownGpuIsAnErrorThatSaysHowToAddIt) {
  const TemporaryFolder folder;
  const auto o = test::run(job(folder, "sweep " + config(folder, "fp32") + " --set hardware=h200-sxm"), 60);
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("hardware"));
}

}  // namespace
}  // namespace harness

#endif
