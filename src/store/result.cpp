#include "store/result.h"

#include "store/row_visitors.h"

namespace harness {

const char* name_of(RunState state) {
  switch (state) {
    case RunState::running:
      return "running";
    case RunState::complete:
      return "complete";
    case RunState::partial:
      break;
  }
  return "partial";
}

const char* name_of(CaseStatus status) {
  switch (status) {
    case CaseStatus::pending:
      return "pending";
    case CaseStatus::ok:
      return "ok";
    case CaseStatus::failed:
      return "failed";
    case CaseStatus::impossible:
      break;
  }
  return "impossible";
}

const char* name_of(BlockStatus status) {
  switch (status) {
    case BlockStatus::pending:
      return "pending";
    case BlockStatus::ok:
      return "ok";
    case BlockStatus::failed:
      break;
  }
  return "failed";
}

std::string hdf5::shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  static constexpr std::string_view mark = "…";
  std::size_t kept = bytes < mark.size() ? bytes : bytes - mark.size();
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0) == 0x80) --kept;  // not inside a character
  return std::string(text.substr(0, kept)).append(bytes < mark.size() ? "" : mark);
}

}  // namespace harness
