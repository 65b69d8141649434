#include "program/saved.h"

#include <vector>

namespace harness::program {

namespace {

// What is gathered of weights is theirs, whichever pass reads it.
bool gathers_weights(const Program& program, const Operation& op) {
  const auto* gather = std::get_if<AllGather>(&op.action);
  return gather != nullptr && program.buffer_of(gather->in).kind == BufferKind::persistent;
}

}  // namespace

std::map<ForwardPass, std::int64_t> saved_bytes(const Program& program) {
  std::vector<const Label*> writer(program.buffers.size(), nullptr);  // the first
  std::vector<char> counted(program.buffers.size(), 0), of_weights(program.buffers.size(), 0);
  std::map<ForwardPass, std::int64_t> bytes;
  for (const Operation& op : program.step) {
    visit_accesses(op.action, [&](Access access, const View& view) {
      const std::size_t b = view.buffer;
      const Label* first = writer[b];
      if (access != Access::read && first == nullptr) {
        writer[b] = &op.label;
        of_weights[b] = gathers_weights(program, op) ? 1 : 0;
      }
      const bool kept = of_weights[b] == 0 && access != Access::write && op.label.phase == Phase::backward &&
                        first != nullptr && first->phase == Phase::forward && !first->recomputed;
      if (!kept || counted[b] != 0 || program.buffers[b].kind != BufferKind::transient) return;
      counted[b] = 1;
      bytes[{first->micro_batch, first->layer}] += program.buffers[b].bytes();
    });
  }
  return bytes;
}

}  // namespace harness::program
