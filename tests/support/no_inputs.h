#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "backend/backend.h"

namespace harness::test {

/// For programs that have no input buffers.
class NoInputs final : public program::InputSource {
 public:
  void fill(const std::string&, std::int64_t, std::span<std::byte>) const override {}
};

}  // namespace harness::test
