#include "backend/cuda/cuda_backend.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"

namespace harness::cuda {
namespace {

class Writer {
 public:
  Writer(const std::vector<program::Operation>& operations, std::size_t streams)
      : operations_(operations),
        event_of_(operations.size(), -1),
        launched_(operations.size(), 0),
        passed_(streams, std::vector<program::OperationId>(streams, -1)) {}

  CommandList write() {
    find_events();
    std::set<program::StreamId> others;
    for (const program::Operation& op : operations_) {
      if (op.stream != 0) others.insert(op.stream);
    }
    if (!others.empty()) {
      const std::int32_t begin = new_event();
      put({CommandKind::record, 0, -1, begin});
      for (const program::StreamId s : others) put({CommandKind::wait, s, -1, begin});
    }
    for (program::OperationId i = 0; i < count(); ++i) {
      const std::vector<program::OperationId> members = group_ending_at(i);
      if (members.size() > 1) {
        group(members);
      } else if (!members.empty()) {
        waits(i);
        launch(i);
        record(i);
      }
    }
    for (const program::StreamId s : others) {
      const std::int32_t end = new_event();
      put({CommandKind::record, s, -1, end});
      put({CommandKind::wait, 0, -1, end});
    }
    return std::move(list_);
  }

 private:
  program::OperationId count() const { return static_cast<program::OperationId>(operations_.size()); }
  const program::Operation& at(program::OperationId i) const { return operations_[i]; }
  std::int32_t new_event() { return list_.events++; }
  void put(const Command& c) { list_.commands.push_back(c); }

  // An operation that another stream waits for gets an event.
  void find_events() {
    for (const program::Operation& op : operations_) {
      for (const program::OperationId w : op.waits) {
        std::int32_t& event = event_of_[w];
        if (at(w).stream != op.stream && event < 0) event = new_event();
      }
    }
  }

  // The operations to launch where operation i stands: itself, or its whole fused group if i is its last member; none
  // if the group goes on.
  std::vector<program::OperationId> group_ending_at(program::OperationId i) {
    const program::Operation& op = at(i);
    if (op.fused_group < 0) return {i};
    for (program::OperationId next = i + 1; next < count(); ++next) {
      if (at(next).stream != op.stream) continue;
      if (at(next).fused_group == op.fused_group) {
        open_[op.stream].push_back(i);
        return {};
      }
      break;
    }
    std::vector<program::OperationId> members = std::exchange(open_[op.stream], {});
    members.push_back(i);
    return members;
  }

  void group(const std::vector<program::OperationId>& members) {
    for (const program::OperationId m : members) waits(m);
    put({CommandKind::group_start, at(members.front()).stream, -1, -1});
    for (const program::OperationId m : members) launch(m);
    put({CommandKind::group_end, at(members.front()).stream, -1, -1});
    for (const program::OperationId m : members) record(m);
  }

  // Waits only for the last operation of each other stream, and only if nothing waited for it before.
  void waits(program::OperationId i) {
    const program::Operation& op = at(i);
    auto& passed = passed_[op.stream];
    std::map<program::StreamId, program::OperationId> last;
    for (const program::OperationId w : op.waits) {
      if (at(w).stream == op.stream) continue;
      auto [it, fresh] = last.emplace(at(w).stream, w);
      if (!fresh) it->second = std::max(it->second, w);
    }
    for (const auto& [stream, w] : last) {
      if (passed[stream] >= w) continue;
      if (launched_[w] == 0) {
        fail("operation {} waits for operation {}, a part of a group that is not complete there", i, w);
      }
      passed[stream] = w;
      put({CommandKind::wait, op.stream, -1, event_of_[w]});
    }
  }

  void launch(program::OperationId i) {
    put({CommandKind::launch, at(i).stream, i, -1});
    launched_[i] = 1;
  }

  void record(program::OperationId i) {
    const std::int32_t event = event_of_[i];
    if (event >= 0) put({CommandKind::record, at(i).stream, -1, event});
  }

  const std::vector<program::Operation>& operations_;
  std::vector<std::int32_t> event_of_;  // per operation, -1: none
  std::vector<char> launched_;
  std::vector<std::vector<program::OperationId>> passed_;  // [stream][other]: what the stream has already waited for
  std::map<program::StreamId, std::vector<program::OperationId>> open_;  // the group that a stream is in, so far
  CommandList list_;
};

}  // namespace

CommandList make_commands(const std::vector<program::Operation>& operations, std::size_t streams) {
  return Writer(operations, streams).write();
}

}  // namespace harness::cuda
