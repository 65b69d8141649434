#include "program/memory.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "program/happens_before.h"

namespace harness::program {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + Arena::alignment_bytes - 1) / Arena::alignment_bytes * Arena::alignment_bytes;
}

// First and last use of the buffers on each stream, -1: not used there.
class Lifetimes {
 public:
  Lifetimes(const Program& program, const std::vector<Operation>& list)
      : streams_(program.streams.size()),
        first_(program.buffers.size() * streams_, -1),
        last_(program.buffers.size() * streams_, -1) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t stream = list[i].stream;
      visit_accesses(list[i].action, [&](Access, const View& view) {
        const std::size_t at = view.buffer * streams_ + stream;
        last_[at] = static_cast<OperationId>(i);
        if (first_[at] < 0) first_[at] = last_[at];
      });
    }
  }
  std::span<const OperationId> first(BufferId buffer) const { return {&first_[buffer * streams_], streams_}; }
  std::span<const OperationId> last(BufferId buffer) const { return {&last_[buffer * streams_], streams_}; }

 private:
  std::size_t streams_;
  std::vector<OperationId> first_, last_;  // [buffer][stream]
};

// Memory that a buffer has given back; usable once the last uses of that buffer are complete.
struct Hole {
  std::int64_t begin = 0, bytes = 0;
  BufferId of = -1;
  std::int64_t end() const { return begin + bytes; }
};

// A list of holes and used places by offset. Each hole keeps the operations that must be complete before its reuse.
// Neighbours stay apart: joined, they would be usable only when the later of them is. What does not fit into one takes
// a run of neighbours that are all usable.
class Places {
 public:
  Places(const std::vector<Operation>& list, std::size_t streams, const Lifetimes& lives)
      : before_(list, streams), lives_(lives), complete_(streams) {}

  std::int64_t take(std::int64_t bytes, BufferId buffer) {
    complete_before(buffer);
    Run best{.begin = end_, .bytes = std::numeric_limits<std::int64_t>::max()}, run;
    for (const Hole& hole : holes_) {
      if (!usable(hole)) {
        run = {};
        continue;
      }
      if (run.bytes == 0 || run.end() != hole.begin) run = {.begin = hole.begin};
      run.bytes += hole.bytes;
      if (run.bytes >= bytes && run.bytes < best.bytes) best = run;
    }
    // Grow at the end, over the last holes where these are free in time.
    if (best.begin == end_ && run.bytes > 0 && run.end() == end_) best.begin = run.begin;
    end_ = std::max(end_, best.begin + bytes);
    use(best.begin, bytes);
    return best.begin;
  }

  void give(std::int64_t at, std::int64_t bytes, BufferId buffer) { holes_.insert(from(at), Hole{at, bytes, buffer}); }

  std::int64_t end() const { return end_; }

 private:
  // Neighbouring holes.
  struct Run {
    std::int64_t begin = 0, bytes = 0;
    std::int64_t end() const { return begin + bytes; }
  };

  // The first hole at or behind an offset.
  std::vector<Hole>::iterator from(std::int64_t offset) {
    return std::ranges::lower_bound(holes_, offset, {}, &Hole::begin);
  }
  // The holes in [at, at + bytes) are used; of the last one the rest stays.
  void use(std::int64_t at, std::int64_t bytes) {
    const std::int64_t end = at + bytes;
    const auto first = from(at);
    auto last = from(end);
    if (last != first && (last - 1)->end() > end) {
      --last;
      last->bytes = last->end() - end;
      last->begin = end;
    }
    holes_.erase(first, last);
  }
  // Up to which operation of each stream everything is complete when the buffer's first user on any stream begins.
  void complete_before(BufferId buffer) {
    std::ranges::fill(complete_, std::numeric_limits<OperationId>::max());
    for (const OperationId begin : lives_.first(buffer)) {
      if (begin < 0) continue;
      const std::span<const OperationId> known = before_.complete_before(begin);
      for (std::size_t s = 0; s < complete_.size(); ++s) complete_[s] = std::min(complete_[s], known[s]);
    }
  }
  bool usable(const Hole& hole) const {
    const std::span<const OperationId> last = lives_.last(hole.of);
    for (std::size_t s = 0; s < complete_.size(); ++s) {
      if (last[s] > complete_[s]) return false;
    }
    return true;
  }

  HappensBefore before_;
  const Lifetimes& lives_;
  std::vector<OperationId> complete_;  // by stream, for the buffer that is being placed
  std::vector<Hole> holes_;            // by offset; a vector, for every buffer looks at all of them
  std::int64_t end_ = 0;
};

// By operation: the last of its fused group, or itself. The members of a group are neighbours on their stream.
std::vector<OperationId> group_ends(const std::vector<Operation>& list, std::size_t streams) {
  std::vector<OperationId> ends(list.size()), next(streams, -1);  // next: the operation after this one, by stream
  for (std::size_t i = list.size(); i-- > 0;) {
    OperationId& later = next[list[i].stream];
    const bool together = list[i].fused_group >= 0 && later >= 0 && list[later].fused_group == list[i].fused_group;
    ends[i] = together ? ends[later] : static_cast<OperationId>(i);
    later = static_cast<OperationId>(i);
  }
  return ends;
}

// By buffer: whether an operation of the list touches it.
std::vector<char> touched_by(const Program& program, const std::vector<Operation>& list) {
  std::vector<char> touched(program.buffers.size());
  for (const Operation& op : list) {
    visit_accesses(op.action, [&](Access, const View& view) { touched[view.buffer] = 1; });
  }
  return touched;
}

// By buffer: whether its place may be another buffer's before and after. Lists share their memory, so what both of them
// touch has a place of its own.
std::vector<char> shares_its_place(const Program& program) {
  const std::vector<char> in_init = touched_by(program, program.init), in_step = touched_by(program, program.step);
  std::vector<char> shares(program.buffers.size());
  for (std::size_t b = 0; b < shares.size(); ++b) {
    const bool in_both = in_init[b] != 0 && in_step[b] != 0;
    shares[b] = program.buffers[b].kind == BufferKind::transient && !in_both ? 1 : 0;
  }
  return shares;
}

// Places those buffers of one list. Returns the bytes it needs beyond `base`.
std::int64_t place_transient(const Program& program, const std::vector<Operation>& list,
                             const std::vector<char>& shares, std::int64_t base, Arena& arena) {
  const std::size_t streams = program.streams.size();
  const Lifetimes lives(program, list);
  // Members of a group are under way together: what one of them uses is in use until all are done. Given back earlier,
  // it would be joined to memory that the group's other members may use, and spoil it for them.
  const std::vector<OperationId> group_end = group_ends(list, streams);
  using Event = std::pair<OperationId, BufferId>;
  std::vector<Event> begins, ends;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const auto b = static_cast<BufferId>(i);
    if (shares[i] == 0) continue;
    OperationId first = std::numeric_limits<OperationId>::max(), last = -1;
    for (std::size_t s = 0; s < streams; ++s) {
      if (lives.first(b)[s] < 0) continue;
      first = std::min(first, lives.first(b)[s]);
      last = std::max(last, group_end[lives.last(b)[s]]);
    }
    if (last < 0) continue;  // not used in this list
    begins.emplace_back(first, b);
    ends.emplace_back(last, b);
  }
  std::ranges::sort(begins);
  std::ranges::sort(ends);
  Places places(list, streams, lives);
  auto over = ends.begin();
  for (const auto& [begin, buffer] : begins) {
    for (; over->first < begin; ++over) {
      const std::size_t id = over->second;
      places.give(arena.offset_bytes[id] - base, aligned(program.buffers[id].bytes()), over->second);
    }
    const std::size_t id = buffer;
    arena.offset_bytes[id] = base + places.take(aligned(program.buffers[id].bytes()), buffer);
  }
  return places.end();
}

}  // namespace

Arena plan_arena(const Program& program) {
  Arena arena;
  arena.offset_bytes.assign(program.buffers.size(), 0);
  const std::vector<char> shares = shares_its_place(program);
  std::int64_t at = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (shares[b] != 0) continue;
    arena.offset_bytes[b] = at;
    at += aligned(program.buffers[b].bytes());
  }
  arena.persistent_bytes = at;
  // init and step are never under way together and transient contents do not survive a list: they share the memory.
  const std::int64_t init_bytes = place_transient(program, program.init, shares, at, arena);
  const std::int64_t step_bytes = place_transient(program, program.step, shares, at, arena);
  arena.transient_bytes = std::max(init_bytes, step_bytes);
  arena.bytes = arena.persistent_bytes + arena.transient_bytes;
  return arena;
}

}  // namespace harness::program
