#include "config/hardware.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/files.h"

namespace harness::config {
namespace {

namespace fs = std::filesystem;

constexpr const char* hardware_folder = "hardware";

double parse_watt(std::string_view text) {
  return static_cast<double>(parse_within(text, 1, 100'000));
}

double parse_clock(std::string_view text) {
  constexpr std::string_view unit = " MHz";
  if (!text.ends_with(unit)) fail("found {}; expected a clock such as 1830 MHz", quote(text));
  return static_cast<double>(parse_within(text.substr(0, text.size() - unit.size()), 1, 100000)) * 1e6;
}

// "9.0" is 90, as nvcc's sm_90.
int parse_capability(std::string_view text) {
  int major = 0, minor = 0;
  Cursor cursor{text};
  const bool reads = cursor.integer(major) && cursor.literal(".") && cursor.rest.size() == 1 && cursor.integer(minor);
  if (!reads || major < 1 || major > 999) fail("found {}; expected a compute capability such as 9.0", quote(text));
  return 10 * major + minor;
}

// `of_machine`: a machine's file names this one as its GPU.
Hardware read_file(const fs::path& path, Problems& problems, bool of_machine = false);

// Takes a machine's GPU from another file; the machine's own file describes the rest.
void take_gpu(const std::string& name, const fs::path& machine, Hardware& hardware, Problems& problems) {
  const fs::path beside = machine.parent_path() / (name + ".yaml");
  const fs::path path = fs::exists(beside) ? beside : shipped_configs(hardware_folder) / (name + ".yaml");
  if (!fs::exists(path)) {
    fail("found {}; no file of this name is beside it or among those that come with the program: {}", quote(name),
         join(data_file_names_beside(machine.parent_path(), hardware_folder), ", "));
  }
  Hardware gpu = read_file(path, problems, true);
  gpu.name = std::move(hardware.name);
  gpu.source = std::move(hardware.source);
  gpu.gpu = name;
  gpu.file = std::move(hardware.file);
  gpu.gpus_of_node = gpu.nics_of_node = 0;
  gpu.node_bytes_per_s = gpu.network_share = 0;
  gpu.nvswitch = gpu.network_reduces = false;
  hardware = std::move(gpu);
}

Hardware read_file(const fs::path& path, Problems& problems, bool of_machine) {
  Hardware hardware;
  hardware.file = path.stem().string();
  const int source = problems.add_file(path.string());
  const auto content = read_text_file(path.string(), source, problems);
  const auto root = content ? parse_yaml(*content, source, problems) : std::nullopt;
  if (!root) return hardware;
  const auto device = [&](auto text) {
    if (!text.empty()) hardware.devices.emplace_back(text);
  };
  const auto gpu = [&](auto text) { take_gpu(std::string(text), path, hardware, problems); };
  const bool is_machine = root->find("gpu") != nullptr;
  if (is_machine && of_machine)
    fail("found {}, which is a machine itself; name the file of a GPU", quote(path.stem().string()));
  std::vector<Field> peaks;
  for (const PrecisionRow& row : precision_table)
    peaks.push_back(Field::scalar(row.name, [&](auto text) { flops_into(hardware.peaks_flops[row.precision])(text); }));
  std::vector<Field> shares{Field::scalar("watt", parsed_into(hardware.shares_watt, parse_watt))};
  for (const PrecisionRow& row : precision_table)
    shares.push_back(Field::scalar(row.name, [&](auto text) { share_into(hardware.shares[row.precision])(text); }));
  const std::vector<Field> fields{
      Field::scalar("name", line_into(hardware.name)).required(),
      Field::scalar("source", line_into(hardware.source)).required(),
      Field::scalar("gpu", gpu),
      Field::list("devices", device, "a list of names as nvidia-smi gives them, such as [NVIDIA H200]"),
      Field::section("peak_flops", peaks).required(!is_machine),
      Field::section("shares", shares),
      Field::scalar("watt", parsed_into(hardware.watt, parse_watt)),
      Field::scalar("memory", bytes_into(hardware.memory_bytes)),
      Field::scalar("memory_bandwidth", parsed_into(hardware.memory_bytes_per_s, parse_bandwidth)),
      Field::scalar("compute_capability", parsed_into(hardware.compute_capability, parse_capability)),
      Field::scalar("sms", whole_into(hardware.sms, 1, 10000)),
      Field::scalar("boost_clock", parsed_into(hardware.boost_clock_hz, parse_clock)),
      Field::scalar("nvlink", parsed_into(hardware.nvlink_bytes_per_s, parse_bandwidth)),
      Field::scalar("l2", bytes_into(hardware.l2_bytes)),
      Field::section("node", {Field::scalar("gpus", whole_into(hardware.gpus_of_node, 1, 1024)),
                              Field::scalar("network", parsed_into(hardware.node_bytes_per_s, parse_bandwidth)),
                              Field::scalar("share", share_into(hardware.network_share)),
                              Field::scalar("nics", whole_into(hardware.nics_of_node, 1, 1024)),
                              Field::scalar("nvswitch", parsed_into(hardware.nvswitch, parse_bool)),
                              Field::scalar("sharp", parsed_into(hardware.network_reduces, parse_bool))})};
  read_map(problems, *root, "", fields);
  return hardware;
}

fs::path hardware_beside(const std::string& config_path) {
  return fs::path(config_path).parent_path() / hardware_folder;
}

}  // namespace

double Hardware::peak_flops(Precision precision) const {
  const auto found = peaks_flops.find(precision);
  if (found != peaks_flops.end()) return found->second;
  if (precision == Precision::mxfp8) return peak_flops(Precision::fp8);
  return precision == Precision::fp16 ? peak_flops(Precision::bf16) : 0.0;
}

double Hardware::sustained_flops(Precision precision) const {
  constexpr double usual = 0.8, power = 1.5;
  Precision of = precision;
  if (precision == Precision::mxfp8) of = Precision::fp8;
  if (precision == Precision::fp16) of = Precision::bf16;
  const auto found = shares.find(of);
  const double share = found == shares.end() ? usual : found->second;
  const bool same_board = watt == 0 || shares_watt == 0;
  return peak_flops(precision) * share * (same_board ? 1 : std::pow(watt / shares_watt, power));
}

bool Hardware::is(std::string_view device) const {
  return std::find(devices.begin(), devices.end(), device) != devices.end();
}

std::optional<Hardware> read_hardware(const std::string& text, const Place& place, const std::string& config_path,
                                      Problems& problems) {
  try {
    return read_file(find_data_file(hardware_folder, text, config_path), problems);
  } catch (const Error& e) {
    constexpr const char* remedy =
        "For another GPU or machine copy one of these files and fill in what its data sheet says "
        "(docs/architecture.md)";
    problems.add(place, "hardware", fmt::format("{}. {}", e.what(), remedy));
    return std::nullopt;
  }
}

Hardware hardware_named(const std::string& name) {
  Problems problems;
  Hardware hardware = read_file(find_data_file(hardware_folder, name, ""), problems);
  problems.throw_if_any();
  return hardware;
}

std::optional<Hardware> find_hardware_for_device(std::string_view device, const std::string& config_path) {
  for (const fs::path& folder : {hardware_beside(config_path), shipped_configs(hardware_folder)}) {
    for (const std::string& name : data_file_names(folder)) {
      Problems problems;
      Hardware hardware = read_file(folder / (name + ".yaml"), problems);
      problems.throw_if_any();
      if (hardware.gpu.empty() && hardware.is(device)) return hardware;  // whatever machine it is in
    }
  }
  return std::nullopt;
}

std::string unknown_device_message(std::string_view device, const std::string& config_path) {
  const auto names = data_file_names(hardware_beside(config_path));
  const std::string directory = escaped(hardware_beside(config_path).string());
  const std::string files = names.empty() ? fmt::format("{} has no hardware file", directory)
                                          : fmt::format("no file in {} lists it under devices", directory);
  return fmt::format(
      "the GPU is a {} and {}, so its peak is unknown and MFU would be a guess. Any of these helps:\n"
      "  - copy a file such as configs/hardware/h100-sxm.yaml to {}/NAME.yaml and fill in, from the vendor's data "
      "sheet: name, source, devices: [{}], peak_flops (fp32, tf32, bf16; dense, not \"with sparsity\"), memory, "
      "memory_bandwidth\n"
      "  - set `hardware: FILE` if one of the files describes this GPU under another name{}\n"
      "  - set `peak_flops: 989 TFLOP/s` in the configuration, for the precision that is measured\n"
      "  - set `hardware: none` to measure without MFU",
      device, files, directory, device, names.empty() ? "" : fmt::format(" ({})", join(names, ", ")));
}

}  // namespace harness::config
