#include "launch/frame.h"

#include <cstring>

namespace harness::launch {
namespace {
constexpr std::size_t header_bytes = sizeof(std::uint32_t) + sizeof(std::uint64_t);
constexpr std::uint64_t max_payload_bytes = std::uint64_t{1} << 32;
}  // namespace

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
      length > max_payload_bytes) {
    damaged_ = true;
    return std::nullopt;
  }
  if (buffer_.size() < header_bytes + length) return std::nullopt;
  Frame frame{static_cast<FrameType>(code), buffer_.substr(header_bytes, length)};
  buffer_.erase(0, header_bytes + length);
  return frame;
}

}  // namespace harness::launch
