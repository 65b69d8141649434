#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/sections.h"
#include "config/text_file.h"

namespace harness {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator it(directory, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->path().extension() == ".yaml" && names.size() < 1000) names.push_back(it->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The file meant by `text`; throws Error if there is none of that name.
fs::path locate(const std::string& text, const std::string& config_path) {
  const fs::path beside = fs::path(config_path).parent_path();
  std::error_code ignored;
  if (text.find('/') != std::string::npos || text.ends_with(".yaml")) {
    const fs::path relative = beside / text;
    return fs::exists(relative, ignored) || fs::path(text).is_absolute() ? relative : fs::path(text);
  }
  fs::path file = beside / "hardware" / (text + ".yaml");
  if (fs::exists(file, ignored)) return file;
  const auto names = names_in(beside / "hardware");
  if (names.empty()) fail("found {}, but {} does not exist; give a path to the file", quote(text), file.string());
  fail("found {}; allowed: {}, or a path{}", quote(text), join(names, ", "), did_you_mean(nearest(text, names)));
}

std::function<void(std::string_view)> rate(double& into) {
  return [&into](std::string_view text) {
    const double flops = parse_flops(text);
    if (!(flops > 0)) fail("found {}; allowed: a rate above 0, such as 989 TFLOP/s", quote(text));
    into = flops;
  };
}

}  // namespace

std::optional<Hardware> read_hardware(const std::string& text, const Place& place, const std::string& config_path,
                                      Problems& problems) {
  fs::path path;
  const auto find_it = [&](std::string_view) { path = locate(text, config_path); };
  if (!parse_or_report(problems, place, "hardware", text, find_it)) return std::nullopt;

  const int source = problems.add_file(path.string());
  const auto content = read_text_file(path.string(), source, problems);
  if (!content) return std::nullopt;
  const auto root = parse_yaml(*content, source, problems);
  if (!root) return std::nullopt;

  Hardware hardware;
  const auto line = [](std::string& into) {
    return [&into](std::string_view words) {
      if (words.empty()) fail("found nothing; expected a line of text");
      into = words;
    };
  };
  const auto memory = [&](std::string_view words) {
    hardware.memory_bytes = static_cast<double>(parse_bytes(words));
    if (hardware.memory_bytes == 0) fail("found {}; allowed: a size above 0, such as 80 GB", quote(words));
  };
  const auto peaks = [&](const YamlNode& value, const std::string& key) {
    const std::array<Field, 2> fields{{{.key = "fp32", .parse = rate(hardware.peak_fp32_flops)},
                                       {.key = "bf16", .parse = rate(hardware.peak_bf16_flops)}}};
    read_map(problems, value, key, fields);
  };
  const std::array<Field, 4> fields{{{.key = "name", .parse = line(hardware.name), .required = true},
                                     {.key = "source", .parse = line(hardware.source), .required = true},
                                     {.key = "peak_flops", .parse = {}, .read = peaks, .required = true},
                                     {.key = "memory", .parse = memory}}};
  read_map(problems, *root, "", fields);
  return hardware;
}

}  // namespace harness
