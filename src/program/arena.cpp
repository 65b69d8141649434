#include "program/arena.h"

#include <algorithm>
#include <limits>
#include <map>

#include "program/happens_before.h"

namespace harness::program {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + Arena::alignment_bytes - 1) / Arena::alignment_bytes * Arena::alignment_bytes;
}

// First and last use of a buffer on each stream.
struct Lifetime {
  std::vector<OperationId> first, last;  // per stream, -1: not used there
};

// Memory given back by buffers whose users are `last` (one per stream); usable once all of these are complete.
struct Hole {
  std::int64_t bytes = 0;
  std::vector<OperationId> last;
};

// A list of holes and used places by offset. Holes keep the operations that must be complete before reuse, so that
// neighbours are joined without losing them.
class Places {
 public:
  Places(const std::vector<Operation>& list, std::size_t streams) : streams_(streams), before_(list, streams) {}

  std::int64_t take(std::int64_t bytes, const Lifetime& life) {
    auto best = holes_.end();
    for (auto it = holes_.begin(); it != holes_.end(); ++it) {
      if (it->second.bytes < bytes || !usable(it->second, life)) continue;
      if (best == holes_.end() || it->second.bytes < best->second.bytes) best = it;
    }
    if (best == holes_.end()) {
      // Grow at the end, over the last hole when that one is free in time.
      std::int64_t at = end_;
      if (!holes_.empty()) {
        auto last = std::prev(holes_.end());
        if (last->first + last->second.bytes == end_ && usable(last->second, life)) {
          at = last->first;
          holes_.erase(last);
        }
      }
      end_ = std::max(end_, at + bytes);
      return at;
    }
    const std::int64_t at = best->first;
    Hole rest = best->second;
    holes_.erase(best);
    rest.bytes -= bytes;
    if (rest.bytes > 0) holes_.emplace(at + bytes, std::move(rest));
    return at;
  }

  void give(std::int64_t at, std::int64_t bytes, const Lifetime& life) {
    Hole hole{bytes, life.last};
    auto next = holes_.lower_bound(at);
    if (next != holes_.end() && at + hole.bytes == next->first) {
      join(hole, next->second);
      next = holes_.erase(next);
    }
    if (next != holes_.begin()) {
      auto previous = std::prev(next);
      if (previous->first + previous->second.bytes == at) {
        join(previous->second, hole);
        return;
      }
    }
    holes_.emplace(at, std::move(hole));
  }

  std::int64_t end() const { return end_; }

 private:
  static void join(Hole& into, const Hole& other) {
    into.bytes += other.bytes;
    for (std::size_t s = 0; s < into.last.size(); ++s) into.last[s] = std::max(into.last[s], other.last[s]);
  }
  bool usable(const Hole& hole, const Lifetime& life) const {
    for (const OperationId begin : life.first) {
      if (begin < 0) continue;
      for (std::size_t s = 0; s < streams_; ++s) {
        if (hole.last[s] < 0) continue;
        if (hole.last[s] >= begin || !before_.ordered(hole.last[s], static_cast<StreamId>(s), begin)) return false;
      }
    }
    return true;
  }

  std::size_t streams_;
  HappensBefore before_;
  std::map<std::int64_t, Hole> holes_;
  std::int64_t end_ = 0;
};

struct Toucher {
  OperationId op;
  StreamId stream;
  std::vector<Lifetime>& lives;
  std::size_t streams;
  void touch(const View& v) {
    Lifetime& life = lives[v.buffer];
    if (life.first.empty()) {
      life.first.assign(streams, -1);
      life.last.assign(streams, -1);
    }
    const std::size_t s = stream;
    if (life.first[s] < 0) life.first[s] = op;
    life.last[s] = op;
  }
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

// Places the transient buffers of one list. Returns the bytes it needs beyond `base`.
std::int64_t place_transient(const Program& program, const std::vector<Operation>& list, std::int64_t base,
                             Arena& arena) {
  const std::size_t streams = program.streams.size();
  std::vector<Lifetime> lives(program.buffers.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    Toucher toucher{static_cast<OperationId>(i), list[i].stream, lives, streams};
    visit_accesses(list[i].action, [&](Access, const View& view) { toucher.touch(view); });
  }
  // Members of a group are under way together: what one of them uses is in use until all are done. Given back earlier,
  // it would be joined to memory that the group's other members may use, and spoil it for them.
  const std::vector<OperationId> group_end = group_ends(list, streams);
  std::vector<std::vector<BufferId>> begins(list.size()), ends(list.size());
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].kind != BufferKind::transient || lives[b].first.empty()) continue;
    OperationId first = std::numeric_limits<OperationId>::max(), last = -1;
    for (std::size_t s = 0; s < streams; ++s) {
      if (lives[b].first[s] >= 0) first = std::min(first, lives[b].first[s]);
      if (lives[b].last[s] >= 0) last = std::max(last, group_end[lives[b].last[s]]);
    }
    begins[first].push_back(static_cast<BufferId>(b));
    ends[last].push_back(static_cast<BufferId>(b));
  }
  Places places(list, streams);
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const BufferId b : begins[i]) {
      const std::size_t id = b;
      arena.offset_bytes[id] = base + places.take(aligned(program.buffers[id].bytes()), lives[id]);
    }
    for (const BufferId b : ends[i]) {
      const std::size_t id = b;
      places.give(arena.offset_bytes[id] - base, aligned(program.buffers[id].bytes()), lives[id]);
    }
  }
  return places.end();
}

}  // namespace

Arena plan_arena(const Program& program) {
  Arena arena;
  arena.offset_bytes.assign(program.buffers.size(), 0);
  std::int64_t at = 0;
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].kind == BufferKind::transient) continue;
    arena.offset_bytes[b] = at;
    at += aligned(program.buffers[b].bytes());
  }
  arena.persistent_bytes = at;
  // init and step are never under way together and transient contents do not survive a list: they share the memory.
  // A buffer used in both lists is placed for the step; init then uses the same place, so it must be used in one only.
  arena.transient_bytes =
      std::max(place_transient(program, program.init, at, arena), place_transient(program, program.step, at, arena));
  arena.bytes = arena.persistent_bytes + arena.transient_bytes;
  return arena;
}

}  // namespace harness::program
