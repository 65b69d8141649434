// `harness doctor` under mpirun, as a user runs it.
#include "user.h"

namespace harness {
namespace {

// Without a GPU, the load stage loads the CPUs.
TEST(DoctorAsAUser, LoadsWhatIsThere) {
  const auto o = run_job(2, "doctor --stages nccl,load --all");
  EXPECT_EQ(o.exit_code, 0) << o.out << o.err;
  EXPECT_THAT(
      o.out, AllOf(HasSubstr("products of 2 ranks: "), HasSubstr("all-reduce of 2 ranks within a node: "),
                   HasSubstr("skip     stage.nccl"), HasSubstr("pass     stage.load"), Not(HasSubstr("cpu.governor"))));
}

// The planted delay is many times the duration of a product on any machine.
TEST(DoctorAsAUser, NamesTheRankThatIsSlowUnderLoad) {
  const auto o = run_job(2, "doctor --stages load --strict",
                         planted("rank=1,case=products,kind=delay,stream=compute,seconds=0.3"));
  EXPECT_EQ(o.exit_code, 1) << o.out << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("warn     load.products"), HasSubstr("rank 1 reaches ")));
}

// Writes a sysfs tree of a node whose adapter runs on half of its lanes.
void write_slow_adapter(const TemporaryFolder& folder, const std::string& root) {
  const std::string device = root + "sys/devices/pci0000:10/0000:10:00.0/";
  folder.write(root + "proc/sys/kernel/hostname", "node7\n");
  for (const auto& [name, text] : {std::pair{"current_link_width", "8\n"},
                                   {"max_link_width", "16\n"},
                                   {"class", "0x020700\n"},
                                   {"infiniband/mlx5_0/node_type", "1: CA\n"}}) {
    folder.write(device + name, text);
  }
  const auto link = [&](const std::string& place, const std::string& target) {
    const std::filesystem::path path = folder / (root + place);
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::create_symlink(target, path);
  };
  link("sys/bus/pci/devices/0000:10:00.0", "../../../devices/pci0000:10/0000:10:00.0");
  link("sys/class/infiniband/mlx5_0", "../../devices/pci0000:10/0000:10:00.0/infiniband/mlx5_0");
  link("sys/devices/pci0000:10/0000:10:00.0/infiniband/mlx5_0/device", "../..");
}

TEST(DoctorAsAUser, ItsRecordIsInTheResultOfASweep) {
  const TemporaryFolder folder;
  write_slow_adapter(folder, "root/");
  const std::string config = write_small_config(folder);
  const std::string sweep = "sweep " + config + " --sysroot " + (folder / "root");
  const auto refused = run_job(2, sweep + " --require healthy");
  EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
  EXPECT_THAT(refused.err, AllOf(HasSubstr("nothing was measured"), HasSubstr("fail pcie.width on node7: adapter")));
  EXPECT_FALSE(std::filesystem::exists(folder / "small.h5"));
  const auto measured = run_job(2, sweep);
  EXPECT_TRUE(is_measured(measured)) << measured.out << measured.err;
  EXPECT_THAT(measured.out, HasSubstr("! doctor, fail pcie.width on node7: adapter mlx5_0 runs on 8 of 16"));
  const store::Result result = store::read_result(folder / "small.h5");
  EXPECT_EQ(result.doctor.findings.at(0).check, "pcie.width");
  const std::string file = folder / "small.h5";
  const auto judged = run_alone(fmt::format("doctor --against {} {}", file, file));
  EXPECT_EQ(judged.exit_code, 2) << judged.err;
  EXPECT_THAT(judged.out, AllOf(StartsWith("1 failure (1 node, 2 ranks"), HasSubstr("runs on 8 of 16 PCIe lanes"),
                                HasSubstr("nothing, of what does not change at every look")));
}

// `harness calibrate` under mpirun, and a prediction from its files.

std::string small_config(const TemporaryFolder& folder) {
  return folder.write("small.yaml", R"(backend: cpu
model: {layers: 2, hidden: 32, heads: 2, vocab: 64, sequence: 16}
baseline: {precision: fp32, global_batch_size: 4, allreduce_algorithm: ring}
sweep: {layout: [{tensor_parallel: 2}, {pipeline_parallel: 2}], micro_batch_size: [2]}
measure: {rounds: 2}
)");
}

// A calibration on two ranks predicts every case of the sweep whose sizes it measured.
TEST(CalibrateAsAUser, WritesWhatAPredictionReads) {
  const TemporaryFolder folder;
  const std::string config = small_config(folder), prefix = folder / "x";
  const std::string calibrate = fmt::format("calibrate {} -o {} --time-budget 1s", config, prefix);
  const auto made = run_job(2, calibrate);
  ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("products, fp32"), HasSubstr("bus bandwidth"), HasSubstr("x-hardware.yaml")));
  EXPECT_THAT(test::text_of(prefix + "-calibration.yaml"), HasSubstr("no step was compared with it"));

  const auto predicted = run_job(
      1,
      fmt::format("sweep {} --backend sim --ranks 2 --hardware {}-hardware.yaml --set calibration={}-calibration.yaml "
                  "-o {}",
                  config, prefix, prefix, folder / "p.h5"));
  ASSERT_EQ(predicted.exit_code, 0) << predicted.out << predicted.err;
  const store::Result result = store::read_result(folder / "p.h5", {});
  ASSERT_EQ(result.cases.size(), 4U);
  for (const store::ResultCase& row : result.cases) EXPECT_EQ(row.reason, "") << row.name;
  EXPECT_THAT(predicted.out, HasSubstr("predicted"));

  // The files exist now.
  const auto again = run_job(2, calibrate);
  EXPECT_EQ(again.exit_code, 1);
  EXPECT_THAT(again.err, AllOf(HasSubstr("x-hardware.yaml"), HasSubstr("exists")));
}

// Refused before anything is measured.
TEST(CalibrateAsAUser, RefusesWhatComputesNothing) {
  const TemporaryFolder folder;
  const std::string config = small_config(folder);
  const auto o = run_job(2, fmt::format("calibrate {} --backend sim -o {}", config, folder / "x"));
  EXPECT_EQ(o.exit_code, 1);
  EXPECT_THAT(o.err, HasSubstr("computes nothing that could be measured"));
  EXPECT_FALSE(std::filesystem::exists(folder / "x-hardware.yaml"));
}

}  // namespace
}  // namespace harness
