#include "config/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/text.h"

namespace harness::config {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_bytes = 1 << 20;

// Returns the file in the same directory whose name is nearest to the missing one.
std::string nearest_file(const std::string& path) {
  const fs::path wanted(path);
  std::error_code ignored;
  std::vector<std::string> names;
  const fs::path directory = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  for (fs::directory_iterator it(directory, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->is_regular_file(ignored) && names.size() < 1000) names.push_back(it->path().filename().string());
  }
  const std::string near = nearest(wanted.filename().string(), names);
  return near.empty() ? near : (wanted.parent_path() / near).string();
}

// Splits a line of CSV into fields; commas within quotes do not split.
std::vector<std::string> fields_of(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

bool check_text(const std::string& text, int source, Problems& problems) {
  Place place{source, 0, 1};
  const auto refuse = [&](int column, const std::string& why) {
    place.column = column;
    problems.add(place, "", why);
    return false;
  };
  for (std::string_view line : split(text, '\n')) {
    const bool ends = line.data() + line.size() != text.data() + text.size();
    if (++place.line == 1 && line.starts_with("\x89HDF"))
      return refuse(1, "found an HDF5 file; a configuration is YAML, and a result is for `show` or `sweep --resume`");
    if (ends && line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t begin = line.find_first_not_of(" \t"), tab = line.find('\t');
    if (tab < begin && begin != std::string_view::npos && line[begin] != '#')
      return refuse(static_cast<int>(tab) + 1, "found a tab in the indentation; YAML requires spaces");
    for (int column = 1; !line.empty(); ++column) {
      const auto byte = static_cast<unsigned char>(line[0]);
      const std::size_t length = character_at(line, 0).bytes;
      if (length == 0)
        return refuse(column, fmt::format("found byte 0x{:02x}, which is not UTF-8; save the file as UTF-8", byte));
      if ((byte < 0x20 && byte != '\t') || byte == 0x7f)
        return refuse(column, fmt::format("found control character 0x{:02x}; a configuration is plain text", byte));
      line.remove_prefix(length);
    }
  }
  return true;
}

std::optional<std::string> read_text_file(const std::string& path, int source, Problems& problems) {
  FileText file = try_read_file(path, max_bytes);
  if (!file) {
    problems.add({source, 1, 1}, "", file.problem + (file.missing ? did_you_mean(nearest_file(path)) : ""));
    return std::nullopt;
  }
  if (!check_text(file.text, source, problems)) return std::nullopt;
  return std::move(file.text);
}

std::vector<std::string> data_file_names(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (fs::directory_iterator it(directory, ignored), end; !ignored && it != end; it.increment(ignored)) {
    if (it->path().extension() == ".yaml" && names.size() < 1000) names.push_back(it->path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> data_file_names_beside(const fs::path& directory, const std::string& folder) {
  std::vector<std::string> names = data_file_names(directory);
  for (std::string& name : data_file_names(shipped_configs(folder))) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  return names;
}

fs::path find_data_file(const std::string& folder, const std::string& text, const std::string& config_path) {
  const fs::path beside = fs::path(config_path).parent_path();
  std::error_code ignored;
  if (text.find('/') != std::string::npos || text.ends_with(".yaml")) {
    const fs::path relative = beside / text;
    return fs::exists(relative, ignored) || fs::path(text).is_absolute() ? relative : fs::path(text);
  }
  fs::path file = beside / folder / (text + ".yaml");
  if (fs::exists(file, ignored)) return file;
  // A configuration in any other folder still finds the shipped files.
  const fs::path shipped = shipped_configs(folder);
  if (fs::exists(shipped / (text + ".yaml"), ignored)) return shipped / (text + ".yaml");
  const std::vector<std::string> names = data_file_names_beside(beside / folder, folder);
  if (names.empty()) fail("found {}, but {} does not exist; give a path to the file", quote(text), file.string());
  fail("found {}; allowed: {}, or a path{}", quote(text), join(names, ", "), did_you_mean(nearest(text, names)));
}

fs::path shipped_configs(const std::string& folder) {
  std::error_code ignored;
  fs::path from = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (int level = 0; level < 4 && from.has_relative_path(); ++level, from = from.parent_path()) {
    for (const char* place : {"share/harness/configs", "configs"}) {
      const fs::path configs = from / place;
      if (fs::is_directory(configs / "hardware", ignored)) return configs / folder;
    }
  }
  return {};
}

std::vector<PublishedRow> read_published(const std::filesystem::path& table) {
  constexpr std::size_t most = 4u << 20;
  const FileText file = try_read_file(table.string(), most);
  if (!file) fail("{} cannot be read", table.string());
  std::vector<PublishedRow> rows;
  std::vector<std::string> heading;
  for (const std::string_view whole : split(file.text, '\n')) {
    const std::string_view line = trim(whole);  // a spreadsheet ends lines with \r\n
    const std::vector<std::string> fields = fields_of(line);
    if (heading.empty()) {
      heading = fields;
      continue;
    }
    if (line.empty()) continue;
    if (fields.size() != heading.size())
      fail("{}: {} fields instead of {}: {}", table.string(), fields.size(), heading.size(), line);
    PublishedRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < fields.size(); ++i) row[heading[i]] = fields[i];
  }
  return rows;
}

}  // namespace harness::config
