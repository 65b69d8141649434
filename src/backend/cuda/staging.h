#pragma once

#include <string>
#include <vector>

#include "backend/cuda/runtime.h"
#include "backend/tensor.h"
#include "program/memory.h"
#include "program/program.h"

namespace harness::cuda {

/// The inputs of the next steps, in pinned memory: the host fills a step's slot, the copy engine copies it. The slot of
/// step i is used again by step i + slots, so the caller fills it once step i is complete.
class Staging {
 public:
  static constexpr int slots = 3;

  Staging(const program::Program& program, const std::function<backend::Tensor(const program::View&)>& tensor);

  /// Fills the slot of `step`. The host's work alone.
  void fill(std::int64_t step, const program::InputSource& inputs);
  /// Puts the copies of the filled slot into the Program's input buffers on `stream`.
  void copy(std::int64_t step, Stream stream);
  /// Both.
  void stage(std::int64_t step, const program::InputSource& inputs, Stream stream);

 private:
  struct Input {
    std::string name;
    backend::Tensor device;
    std::int64_t offset_bytes = 0;
  };
  std::byte* host(std::int64_t step, const Input& input) const {
    return pinned_.data() + step % slots * slot_bytes_ + input.offset_bytes;
  }

  std::vector<Input> inputs_;
  std::int64_t slot_bytes_ = 0;
  Memory pinned_;
};

}  // namespace harness::cuda
