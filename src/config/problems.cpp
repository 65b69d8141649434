#include "config/problems.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "base/text.h"

namespace harness::config {

namespace {
// A file of nothing but mistakes is told so without flooding the terminal.
constexpr std::size_t max_lines = 50;
}  // namespace

int Problems::add_file(const std::string& path) {
  sources_.push_back({path, true});
  return static_cast<int>(sources_.size()) - 1;
}

int Problems::add_override(const std::string& text) {
  const std::string shown = quote(text);  // without its quotes, but safe to print
  sources_.push_back({"--set " + shown.substr(1, shown.size() - 2), false});
  return static_cast<int>(sources_.size()) - 1;
}

bool Problems::is_override_key(const Place& place) const {
  return !sources_.at(place.source).has_lines && place.line == 1 && place.column == 1;
}

std::string Problems::where(const Place& place) const {
  const Source& source = sources_.at(place.source);
  return source.has_lines ? fmt::format("{}:{}:{}", source.label, place.line, place.column) : source.label;
}

void Problems::add(const Place& place, std::string_view key, std::string_view message) {
  std::string text = where(place);
  if (!key.empty()) text += fmt::format(": {}", key);
  text += fmt::format(": {}", message);
  lines_.push_back({place, std::string(key), std::move(text)});
}

bool Problems::concern(std::string_view key) const {
  return std::ranges::find(lines_, key, &Line::key) != lines_.end();
}

void Problems::throw_if_any() const {
  if (lines_.empty()) return;
  auto sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(), [](const Line& a, const Line& b) {
    return std::tie(a.place.source, a.place.line, a.place.column) <
           std::tie(b.place.source, b.place.line, b.place.column);
  });
  std::vector<std::string> texts;
  for (const Line& line : sorted) {
    if (texts.size() == max_lines) {
      texts.push_back(fmt::format("… and {} more", sorted.size() - max_lines));
      break;
    }
    texts.push_back(line.text);
  }
  throw Error(join(texts, "\n"));
}

}  // namespace harness::config
