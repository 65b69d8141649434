#include "program/saved.h"

#include <vector>

namespace harness::program {

std::map<ForwardPass, std::int64_t> saved_bytes(const Program& program) {
  std::vector<const Label*> writer(program.buffers.size(), nullptr);  // the first
  std::vector<char> counted(program.buffers.size(), 0);
  std::map<ForwardPass, std::int64_t> bytes;
  for (const Operation& op : program.step) {
    visit_accesses(op.action, [&](Access access, const View& view) {
      const std::size_t b = view.buffer;
      const Label* first = writer[b];
      if (access != Access::read && first == nullptr) writer[b] = &op.label;
      const bool kept = access != Access::write && op.label.phase == Phase::backward && first != nullptr &&
                        first->phase == Phase::forward && !first->recomputed;
      if (!kept || counted[b] != 0 || program.buffers[b].kind != BufferKind::transient) return;
      counted[b] = 1;
      bytes[{first->micro_batch, first->layer}] += program.buffers[b].bytes();
    });
  }
  return bytes;
}

}  // namespace harness::program
