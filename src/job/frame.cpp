#include "job/frame.h"

#include <cstring>

namespace harness::job {
namespace {
constexpr std::size_t header_bytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);
constexpr std::uint64_t mib = std::uint64_t{1} << 20;
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

void FrameReader::append(std::string_view bytes) {
  if (!damaged_) buffer_.append(bytes);
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

}  // namespace harness::job
