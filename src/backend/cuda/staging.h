#pragma once

#include <string>
#include <vector>

#include "backend/cuda/runtime.h"
#include "backend/tensor.h"
#include "program/memory.h"
#include "program/program.h"

namespace harness::cuda {

/// The inputs of some steps ahead, in pinned memory: the host writes a slot, the copy engine takes it, the slot is free
/// again when the copy is done.
class Staging {
 public:
  static constexpr int slots = 3;

  Staging(const program::Program& program, const std::function<backend::Tensor(const program::View&)>& tensor);

  /// True when the slot of this step may be written: the copy that last used it is done.
  bool free(std::int64_t step) const;
  /// Fills the slot of `step`, which must be free. The host's work alone.
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
  struct Slot {
    OwnedEvent copied{OwnedEvent::Timing::off};
    bool used = false;
  };
  std::size_t slot_of(std::int64_t step) const { return step % slots; }
  std::byte* host(std::int64_t step, const Input& input) const {
    return pinned_.data() + step % slots * slot_bytes_ + input.offset_bytes;
  }

  std::vector<Input> inputs_;
  std::int64_t slot_bytes_ = 0;
  Memory pinned_;
  std::vector<Slot> slots_;
};

}  // namespace harness::cuda
