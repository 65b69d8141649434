#pragma once

#include <string>
#include <vector>

#include "program/order.h"
#include "program/program.h"

namespace harness::program {

/// Writes a Program operation by operation and derives the waits from the memory each operation touches: an operation
/// waits for every earlier conflicting one on another stream (read after write, write after read, write after write),
/// and for what `after` names besides. verify() checks the result anew and does not rely on this.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::vector<std::string> streams) : last_(streams.size(), -1) {
    program_.streams = std::move(streams);
  }

  View buffer(std::string name, DType type, std::int64_t count, BufferKind kind = BufferKind::transient);

  /// Appends to the list under construction (init until begin_step(), then step). Returns its index.
  OperationId emit(StreamId stream, const Action& action, const Label& label,
                   const std::vector<OperationId>& after = {}, std::int32_t fused_group = -1);
  void begin_step();

  StreamId streams() const { return static_cast<StreamId>(last_.size()); }
  /// The last operation emitted on a stream, -1 if none in this list.
  OperationId last(StreamId stream) const { return last_[stream]; }
  std::int32_t new_fused_group() { return fused_groups_++; }
  Program take() { return std::move(program_); }

 private:
  std::vector<Operation>& list() { return in_step_ ? program_.step : program_.init; }

  Program program_;
  bool in_step_ = false;
  std::int32_t fused_groups_ = 0;
  std::vector<OperationId> last_;
  std::vector<OperationId> known_;   // [operation][stream]: latest operation there known to be complete
  std::vector<OperationId> needed_;  // by the operation that is being emitted: kept for its memory alone
  AccessMap accesses_;
};

}  // namespace harness::program
