#include "job/messages.h"

#include <cstddef>
#include <cstring>

#include "base/text.h"
#include "config/registry.h"

namespace harness::job {
namespace {

constexpr std::size_t header_bytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);
constexpr std::uint64_t mib = std::uint64_t{1} << 20;

config::Settings settings_of(const NameValues& texts) {
  config::Settings settings;
  for (const auto& [name, text] : texts) {
    const config::Variable* variable = config::find_variable(name);
    if (variable == nullptr) {
      fail(
          "a block's settings name '{}', which is not a variable of this program: check that all nodes run the same "
          "build of harness",
          name);
    }
    variable->parse(settings, text);
  }
  return settings;
}

}  // namespace

std::uint64_t max_payload_bytes(FrameType type) {
  switch (type) {
    case FrameType::ready:
    case FrameType::go:
    case FrameType::ask:
    case FrameType::bye:
      return 0;
    case FrameType::progress:
    case FrameType::last_words:
      return 4096;  // a WorkerProgress
    case FrameType::failure:
      return mib;
    case FrameType::order:
    case FrameType::published:
    case FrameType::peers:
      return 64 * mib;  // some 4 KiB for each of 16,384 ranks
    case FrameType::samples:
      break;
  }
  return 512 * mib;  // the durations of communications alone may be 256 MiB
}

std::string frame_bytes(FrameType type, std::string_view payload) {
  std::string bytes(header_bytes, '\0');
  const auto code = static_cast<std::uint32_t>(type);
  const std::uint64_t length = payload.size();
  std::memcpy(bytes.data(), &code, sizeof code);
  std::memcpy(bytes.data() + sizeof code, &length, sizeof length);
  bytes.append(payload);
  return bytes;
}

std::optional<Frame> FrameReader::next() {
  if (damaged_ || buffer_.size() < header_bytes) return std::nullopt;
  std::uint32_t code = 0;
  std::uint64_t length = 0;
  std::memcpy(&code, buffer_.data(), sizeof code);
  std::memcpy(&length, buffer_.data() + sizeof code, sizeof length);
  if (code < static_cast<std::uint32_t>(FrameType::order) || code > static_cast<std::uint32_t>(FrameType::bye) ||
      length > max_payload_bytes(static_cast<FrameType>(code))) {
    damaged_ = true;
    std::string().swap(buffer_);
    return std::nullopt;
  }
  if (buffer_.size() < header_bytes + length) return std::nullopt;
  Frame frame{static_cast<FrameType>(code), buffer_.substr(header_bytes, length)};
  buffer_.erase(0, header_bytes + length);
  return frame;
}

void each_setting(const config::Settings& settings, WireWriter& out) {
  NameValues texts;
  for (const config::Variable& variable : config::registry())
    texts.emplace_back(variable.name, variable.print(settings));
  if (settings_of(texts) != settings) {
    fail(
        "a case's settings cannot be sent to the workers: a variable of the registry does not print what it parses, or "
        "a setting has no variable (a bug, please report it)");
  }
  out.put(texts);
}

void each_setting(config::Settings& settings, WireReader& in) {
  NameValues texts;
  in.get(texts);
  settings = settings_of(texts);
}

const char* describe(WorkerPhase phase) {
  static constexpr std::array words{"while it started",
                                    "while it built its Program",
                                    "while it waited for the addresses of its peers",
                                    "while it connected to its peers",
                                    "while it initialised weights",
                                    "while it waited for the other ranks to be ready",
                                    "in a step",
                                    "after its last step"};
  const auto place = static_cast<std::size_t>(phase);  // a broken worker may send any value
  return place < words.size() ? words[place] : "";
}

}  // namespace harness::job
