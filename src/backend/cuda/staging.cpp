#include "backend/cuda/staging.h"

#include "program/arena.h"

namespace harness::cuda {

Staging::Staging(const program::Program& program, const std::function<backend::Tensor(const program::View&)>& tensor) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    const program::Buffer& buffer = program.buffers[b];
    if (buffer.kind != program::BufferKind::input) continue;
    inputs_.push_back({buffer.name, tensor({static_cast<program::BufferId>(b), 0, buffer.count}), slot_bytes_});
    slot_bytes_ += (buffer.bytes() + program::Arena::alignment_bytes - 1) / program::Arena::alignment_bytes *
                   program::Arena::alignment_bytes;
  }
  pinned_ = Memory(Memory::Kind::pinned, slots * slot_bytes_, "the inputs of the next steps");
}

void Staging::fill(std::int64_t step, const program::InputSource& inputs) {
  for (const Input& input : inputs_) {
    inputs.fill(input.name, step, {host(step, input), static_cast<std::size_t>(input.device.bytes())});
  }
}

void Staging::copy(std::int64_t step, Stream stream) {
  for (const Input& input : inputs_) copy_in(stream, input.device.data, host(step, input), input.device.bytes());
}

void Staging::stage(std::int64_t step, const program::InputSource& inputs, Stream stream) {
  fill(step, inputs);
  copy(step, stream);
}

}  // namespace harness::cuda
