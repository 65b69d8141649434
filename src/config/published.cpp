#include "config/published.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace harness::config {
namespace {

// The fields of a line of CSV; quotes hide commas.
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

std::vector<PublishedRow> read_published(const std::filesystem::path& table) {
  constexpr std::size_t most = 4u << 20;
  const FileText file = try_read_file(table.string(), most);
  if (!file) fail("{} cannot be read", table.string());
  std::vector<PublishedRow> rows;
  std::vector<std::string> heading;
  for (const std::string_view line : split(file.text, '\n')) {
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
