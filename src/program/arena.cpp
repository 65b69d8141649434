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

// A list of holes and used places by offset. Each hole keeps the operations that must be complete before its reuse.
// Neighbours stay apart: joined, they would be usable only when the later of them is. What does not fit into one takes
// a run of neighbours that are all usable.
class Places {
 public:
  Places(const std::vector<Operation>& list, std::size_t streams) : streams_(streams), before_(list, streams) {}

  std::int64_t take(std::int64_t bytes, const Lifetime& life) {
    Run best{.begin = end_, .bytes = std::numeric_limits<std::int64_t>::max()}, run;
    for (const auto& [at, hole] : holes_) {
      if (!usable(hole, life)) {
        run = {};
        continue;
      }
      if (run.bytes == 0 || run.end() != at) run = {.begin = at};
      run.bytes += hole.bytes;
      if (run.bytes >= bytes && run.bytes < best.bytes) best = run;
    }
    // Grow at the end, over the last holes where these are free in time.
    if (best.begin == end_ && run.bytes > 0 && run.end() == end_) best.begin = run.begin;
    end_ = std::max(end_, best.begin + bytes);
    use(best.begin, bytes);
    return best.begin;
  }

  void give(std::int64_t at, std::int64_t bytes, const Lifetime& life) { holes_.emplace(at, Hole{bytes, life.last}); }

  std::int64_t end() const { return end_; }

 private:
  // Neighbouring holes.
  struct Run {
    std::int64_t begin = 0, bytes = 0;
    std::int64_t end() const { return begin + bytes; }
  };

  // The holes in [at, at + bytes) are used; of the last one the rest stays.
  void use(std::int64_t at, std::int64_t bytes) {
    const std::int64_t end = at + bytes;
    auto it = holes_.lower_bound(at);
    while (it != holes_.end() && it->first < end) {
      Hole rest = std::move(it->second);
      const std::int64_t hole_end = it->first + rest.bytes;
      it = holes_.erase(it);
      if (hole_end <= end) continue;
      rest.bytes = hole_end - end;
      holes_.emplace(end, std::move(rest));
      break;
    }
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
