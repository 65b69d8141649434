#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config_files.h"
#include "support/files.h"

namespace harness::config {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string body = "\nmodel: gpt3-125m\nbackend: cuda\nbaseline: {}\n";
const std::string whole =
    "name: Fast\nsource: its datasheet\ndevices: [NVIDIA FAST, FAST-SXM]\n"
    "peak_flops: {fp32: 60 TFLOP/s, tf32: 500 TFLOP/s, bf16: 1 PFLOP/s}\nmemory: 80 GB\nmemory_bandwidth: 3.35 TB/s\n"
    "compute_capability: 12.1\nsms: 132\nboost_clock: 1830 MHz\nnvlink: 450 GB/s\nl2: 50 MB\n";

// A configuration a.yaml with the file fast.yaml beside it.
class HardwareFile : public ::testing::Test {
 protected:
  HardwareFile() { write("fast", whole); }
  void write(const std::string& name, const std::string& text) const {
    folder_.write("hardware/" + name + ".yaml", text);
  }
  std::string config(const std::string& hardware) const {
    return folder_.write("a.yaml", "hardware: " + hardware + body);
  }
  Hardware read(const std::string& hardware) const { return load_experiment(config(hardware)).hardware.value(); }
  std::string complaint(const std::string& hardware) const { return test::complaint(config(hardware)); }

  test::TemporaryFolder folder_;
};

TEST_F(HardwareFile, EveryKeyIsRead) {
  const Hardware h = read("fast");
  EXPECT_EQ(h.name, "Fast");
  EXPECT_EQ(h.source, "its datasheet");
  EXPECT_EQ(h.devices, (std::vector<std::string>{"NVIDIA FAST", "FAST-SXM"}));
  EXPECT_EQ(h.peak_flops(Precision::fp32), 60e12);
  EXPECT_EQ(h.peak_flops(Precision::tf32), 500e12);
  EXPECT_EQ(h.peak_flops(Precision::bf16), 1e15);
  EXPECT_EQ(h.memory_bytes, 80e9);
  EXPECT_EQ(h.memory_bytes_per_s, 3.35e12);
  EXPECT_EQ(h.compute_capability, 121);
  EXPECT_EQ(h.sms, 132);
  EXPECT_EQ(h.boost_clock_hz, 1.83e9);
  EXPECT_EQ(h.nvlink_bytes_per_s, 450e9);
  EXPECT_EQ(h.l2_bytes, 50e6);
  EXPECT_TRUE(h.is("FAST-SXM"));
  EXPECT_FALSE(h.is("NVIDIA FAST NVL"));
}

TEST_F(HardwareFile, StandsBesideTheConfigurationOrComesWithTheProgram) {
  EXPECT_EQ(read("hardware/fast.yaml").name, "Fast");
  EXPECT_THAT(complaint("fats"), AllOf(HasSubstr("a.yaml:1:11: hardware: found 'fats'; allowed: fast, "),
                                       HasSubstr("did you mean fast?")));
  EXPECT_FALSE(read("v100-sxm2").name.empty());
}

TEST_F(HardwareFile, AMachineHasTheGpuOfAnotherFile) {
  write("fast", whole + "node: {gpus: 8, network: 400 GB/s, nics: 8, nvswitch: true, sharp: true}\n");
  write("rack", "name: Rack\nsource: its datasheet\ngpu: fast\nnode: {gpus: 72, network: 3600 GB/s}\n");
  const Hardware fast = read("fast"), rack = read("rack");
  EXPECT_EQ(fast.gpu_file(), "fast");
  EXPECT_TRUE(fast.nvswitch);
  EXPECT_TRUE(fast.network_reduces);
  EXPECT_EQ(fast.nics_of_node, 8);
  EXPECT_EQ(rack.name, "Rack");
  EXPECT_EQ(rack.file, "rack");
  EXPECT_EQ(rack.gpu_file(), "fast");
  EXPECT_TRUE(rack.is("FAST-SXM"));
  EXPECT_EQ(rack.peak_flops(Precision::bf16), 1e15);
  EXPECT_EQ(rack.gpus_of_node, 72);
  EXPECT_EQ(rack.node_bytes_per_s, 3600e9);
  EXPECT_EQ(rack.nics_of_node, 0);  // of its own node alone
  EXPECT_FALSE(rack.nvswitch);
  EXPECT_FALSE(rack.network_reduces);
  // A running device is matched to the GPU's file, whatever machine it is in.
  EXPECT_EQ(find_hardware_for_device("FAST-SXM", folder_ / "a.yaml")->file, "fast");
  for (const auto& [gpu, expected] : std::vector<std::pair<std::string, std::string>>{
           {"rack", "tower.yaml:3:6: gpu: found 'rack', which is a machine itself"},
           {"tower", "which is a machine itself"},
           {"fats", "found 'fats'; no file of this name"},
           {"fats", "come with the program: fast, rack, tower, a10"}}) {
    write("tower", "name: T\nsource: x\ngpu: " + gpu + "\n");
    EXPECT_THAT(complaint("tower"), HasSubstr(expected));
  }
}

TEST_F(HardwareFile, Fp16HasBf16sRateWhereItHasNoneOfItsOwn) {
  write("old", "name: Old\nsource: x\npeak_flops: {fp32: 10 TFLOP/s, fp16: 125 TFLOP/s}\n");
  EXPECT_EQ(read("fast").peak_flops(Precision::fp16), 1e15);
  EXPECT_EQ(read("old").peak_flops(Precision::fp16), 125e12);
}

TEST_F(HardwareFile, WrongValuesHaveTheirPlace) {
  for (const auto& [line, expected] : std::vector<std::pair<std::string, std::string>>{
           {"memory_bandwidth: 3.35 TB", "bad.yaml:4:19: memory_bandwidth: found '3.35 TB', unknown unit 'TB'"},
           {"memory_bandwidth: fast/s", "memory_bandwidth: found 'fast/s'"},
           {"compute_capability: 9", "expected a compute capability such as 9.0"},
           {"compute_capability: 9.x", "expected a compute capability such as 9.0"},
           {"boost_clock: 1.83 GHz", "expected a clock such as 1830 MHz"},
           {"sms: 0", "allowed: 1 to"},
           {"node: {nvswitch: maybe}", "node.nvswitch: found 'maybe'"},
           {"devices: NVIDIA H200", "devices: found 'NVIDIA H200'; expected a list of names"},
           {"devices: []", "expected a list of names"},
           {"devices: [[a]]", "devices[0]: found a list"},
           {"bandwith: 1", "bad.yaml:4:1: bandwith: unknown key"}}) {
    write("bad", "name: Bad\nsource: x\npeak_flops: {}\n" + line + "\n");
    EXPECT_THAT(complaint("bad"), HasSubstr(expected));
  }
  write("bad", "name: Bad\nsource: x\npeak_flops: {bf61: 1 PFLOP/s}\n");
  EXPECT_THAT(complaint("bad"), AllOf(HasSubstr("hardware/bad.yaml:3:14: peak_flops.bf61: unknown key"),
                                      HasSubstr("did you mean bf16?")));
}

// A tensor core's rate doubles with each halving of the format; datasheets round.
TEST(ShippedHardware, StatesThePeaksThatItsTensorCoresHave) {
  for (const std::string& file : data_file_names(shipped_configs("hardware"))) {
    const Hardware h = hardware_named(file);
    const double bf16 = h.peak_flops(Precision::bf16), fp8 = h.peak_flops(Precision::fp8);
    const double tf32 = h.peak_flops(Precision::tf32);
    EXPECT_NEAR(fp8, h.compute_capability >= 89 ? 2 * bf16 : 0, 0.02 * fp8) << file;
    if (tf32 > 0) {
      EXPECT_NEAR(tf32, bf16 / 2, 0.02 * tf32) << file;
    }
  }
}

TEST_F(HardwareFile, IsFoundByTheNameOfTheDevice) {
  const auto found = [&](const char* device) { return find_hardware_for_device(device, folder_ / "a.yaml"); };
  write("slow", "name: Slow\nsource: x\npeak_flops: {bf16: 1 TFLOP/s}\n");
  ASSERT_TRUE(found("NVIDIA FAST"));
  EXPECT_EQ(found("NVIDIA FAST")->name, "Fast");
  EXPECT_FALSE(found("NVIDIA FAS"));
  EXPECT_FALSE(find_hardware_for_device("NVIDIA FAST", "/nowhere/a.yaml"));
  write("broken", "name: Broken\n");
  EXPECT_THROW(found("NVIDIA FAST"), Error);
}

TEST_F(HardwareFile, AnUnknownGpuIsToldWhatToDo) {
  const std::string message = unknown_device_message("NVIDIA NEW", folder_ / "a.yaml");
  for (const std::string& part : {std::string("NVIDIA NEW"), folder_ / "hardware", std::string("devices: [NVIDIA NEW]"),
                                  std::string("peak_flops"), std::string("hardware: none"), std::string("(fast)")}) {
    EXPECT_THAT(message, HasSubstr(part)) << part;
  }
  EXPECT_THAT(unknown_device_message("NVIDIA NEW", "/nowhere/a.yaml"),
              HasSubstr("/nowhere/hardware has no hardware file"));
}

TEST_F(HardwareFile, NoneIsAChoice) {
  const Experiment none = test::loaded("hardware: none" + body);
  EXPECT_TRUE(none.without_hardware);
  EXPECT_FALSE(none.hardware);
  EXPECT_FALSE(test::loaded("name: b" + body).without_hardware);
}

TEST(ShareGpus, IsWarnedOf) {
  const Experiment shared = test::loaded("measure: {share_gpus: true}" + body);
  EXPECT_TRUE(shared.measure.share_gpus);
  EXPECT_THAT(shared.warnings, Contains(HasSubstr("share_gpus")));
  const Experiment plain = test::loaded("name: b" + body);
  EXPECT_FALSE(plain.measure.share_gpus);
  EXPECT_THAT(plain.warnings, Not(Contains(HasSubstr("share_gpus"))));
}

}  // namespace
}  // namespace harness::config
