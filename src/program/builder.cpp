#include "program/builder.h"

#include <algorithm>
#include <functional>

namespace harness::program {
namespace {

// An operation takes half a kilobyte: a list that grows from nothing would copy each several times.
constexpr std::size_t usual_operations = 512;

}  // namespace

View ProgramBuilder::buffer(std::string name, DType type, std::int64_t count, BufferKind kind) {
  program_.buffers.push_back({std::move(name), type, count, kind});
  return {static_cast<BufferId>(program_.buffers.size() - 1), 0, count};
}

void ProgramBuilder::begin_step() {
  in_step_ = true;
  program_.step.reserve(usual_operations);
  fused_groups_ = 0;
  std::fill(last_.begin(), last_.end(), -1);
  known_.clear();
  accesses_ = {};
}

OperationId ProgramBuilder::emit(StreamId stream, const Action& action, const Label& label,
                                 const std::vector<OperationId>& after, std::int32_t fused_group) {
  const auto id = static_cast<OperationId>(list().size());
  needed_.assign(after.begin(), after.end());
  const auto must_follow = [&](OperationId other) { needed_.push_back(other); };
  visit_accesses(action, [&](Access access, const View& view) {
    if (access != Access::write) accesses_.read(id, view, must_follow, [] {});
    if (access != Access::read) accesses_.write(id, view, must_follow);
  });

  // Start with all that is complete once the previous operation of this stream is, then add waits, latest first, until
  // everything needed is covered.
  const std::size_t streams = program_.streams.size();
  known_.resize(known_.size() + streams, -1);
  OperationId* known = &known_[id * streams];
  if (const OperationId previous = last(stream); previous >= 0) {
    std::copy_n(&known_[previous * streams], streams, known);
  }
  std::sort(needed_.begin(), needed_.end(), std::greater<>());
  std::vector<OperationId> waits;
  for (const OperationId n : needed_) {
    if (n < 0 || n == id) continue;
    const StreamId on = list()[n].stream;
    if (on == stream || known[on] >= n) continue;
    waits.push_back(n);
    for (std::size_t s = 0; s < streams; ++s) known[s] = std::max(known[s], known_[n * streams + s]);
  }
  std::sort(waits.begin(), waits.end());
  known[stream] = id;
  last_[stream] = id;
  list().push_back({action, stream, std::move(waits), fused_group, label});
  return id;
}

std::vector<char> computes_beside_another(const std::vector<Operation>& list, std::size_t streams) {
  const HappensBefore before(list, streams);
  std::vector<std::vector<OperationId>> computations(streams);
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!is_communication(list[i].action)) computations[list[i].stream].push_back(static_cast<OperationId>(i));
  }
  std::vector<char> beside(list.size(), 0);
  for (const std::vector<OperationId>& own : computations) {
    for (const OperationId id : own) {
      const StreamId stream = list[id].stream;
      for (std::size_t other = 0; other < streams; ++other) {
        if (std::cmp_equal(other, stream)) continue;
        const auto other_id = static_cast<StreamId>(other);
        // The first of those not complete before this one begins first: if it waits for this one, so do the later ones.
        const auto next = std::ranges::partition_point(
            computations[other], [&](OperationId earlier) { return before.ordered(earlier, other_id, id); });
        if (next != computations[other].end() && !before.ordered(id, stream, *next)) beside[id] = 1;
      }
    }
  }
  return beside;
}

}  // namespace harness::program
