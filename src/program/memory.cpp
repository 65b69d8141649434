#include "program/memory.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "program/builder.h"

namespace harness::program {
namespace {

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + Arena::alignment_bytes - 1) / Arena::alignment_bytes * Arena::alignment_bytes;
}

// Returns, by operation, the last of its fused group, or itself. Members of a group are neighbours on their stream.
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

// Returns, by buffer, whether it may share its place with other buffers. The two lists use the same memory, so a buffer
// that both touch has a place of its own.
std::vector<char> shares_its_place(const Program& program) {
  std::vector<char> in_init(program.buffers.size()), shares;
  for (const Buffer& buffer : program.buffers) shares.push_back(buffer.kind == BufferKind::transient ? 1 : 0);
  for (const Operation& op : program.init)
    visit_accesses(op.action, [&](Access, const View& view) { in_init[view.buffer] = 1; });
  for (const Operation& op : program.step) {
    visit_accesses(op.action, [&](Access, const View& view) {
      if (in_init[view.buffer] != 0) shares[view.buffer] = 0;
    });
  }
  return shares;
}

// Lifetimes of the buffers of one list that may share memory, by their beginning.
struct Lifetimes {
  struct Lifetime {
    BufferId buffer = -1;
    std::int64_t bytes = 0;
    OperationId begin = 0, end = 0;  // its first and its last use
  };
  std::size_t streams = 0;
  std::vector<Lifetime> list;
  // [place in the list][stream], -1: none. `last`: the last use on that stream; `complete`: the last operation there
  // that is complete when the first user on any stream begins.
  std::vector<OperationId> last, complete;

  std::span<const OperationId> last_of(std::size_t i) const { return {&last[i * streams], streams}; }
  std::span<const OperationId> complete_of(std::size_t i) const { return {&complete[i * streams], streams}; }
};

Lifetimes lifetimes_of(const Program& program, const std::vector<Operation>& list, const std::vector<char>& shares) {
  const std::size_t streams = program.streams.size();
  std::vector<OperationId> first(program.buffers.size() * streams, -1), last = first;  // [buffer][stream]
  for (std::size_t i = 0; i < list.size(); ++i) {
    visit_accesses(list[i].action, [&](Access, const View& view) {
      const std::size_t at = view.buffer * streams + list[i].stream;
      last[at] = static_cast<OperationId>(i);
      if (first[at] < 0) first[at] = last[at];
    });
  }
  // Members of a group run together, so what one of them uses is in use until all are done. If it were given back
  // earlier, it would be joined to memory that other members may use, and make that unusable for them.
  const std::vector<OperationId> group_end = group_ends(list, streams);
  Lifetimes lives{.streams = streams, .list = {}, .last = {}, .complete = {}};
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (shares[b] == 0) continue;
    Lifetimes::Lifetime life{static_cast<BufferId>(b), aligned(program.buffers[b].bytes()),
                             std::numeric_limits<OperationId>::max(), -1};
    for (std::size_t at = b * streams; at < (b + 1) * streams; ++at) {
      if (first[at] < 0) continue;
      life.begin = std::min(life.begin, first[at]);
      life.end = std::max(life.end, group_end[last[at]]);
    }
    if (life.end >= 0) lives.list.push_back(life);
  }
  std::ranges::stable_sort(lives.list, {}, &Lifetimes::Lifetime::begin);
  const HappensBefore before(list, streams);
  lives.complete.assign(lives.list.size() * streams, std::numeric_limits<OperationId>::max());
  for (std::size_t i = 0; i < lives.list.size(); ++i) {
    const std::size_t of_buffer = lives.list[i].buffer * streams;
    lives.last.insert(lives.last.end(), &last[of_buffer], &last[of_buffer] + streams);
    for (std::size_t user = 0; user < streams; ++user) {
      if (first[of_buffer + user] < 0) continue;
      const std::span<const OperationId> known = before.complete_before(first[of_buffer + user]);
      for (std::size_t s = 0; s < streams; ++s) {
        OperationId& complete = lives.complete[i * streams + s];
        complete = std::min(complete, known[s]);
      }
    }
  }
  return lives;
}

// Memory that a buffer gave back; usable once the last uses of that buffer are complete.
struct Hole {
  std::int64_t begin = 0, bytes = 0;
  std::size_t of = 0;  // place in the list
  std::int64_t end() const { return begin + bytes; }
};

// Places the buffers of a list. Each hole keeps the operations that must be complete before its reuse, so neighbours
// are not joined: the result would be usable only when the later of them is. A buffer takes a hole of its own size,
// else the smallest run of adjacent usable holes.
class Places {
 public:
  explicit Places(const Lifetimes& lives) : lives_(lives) {
    std::vector<std::pair<OperationId, std::size_t>> ends;
    for (std::size_t i = 0; i < lives.list.size(); ++i) ends.emplace_back(lives.list[i].end, i);
    std::ranges::sort(ends);
    auto over = ends.begin();
    for (std::size_t i = 0; i < lives.list.size(); ++i) {
      for (; over->first < lives.list[i].begin; ++over) give(over->second);
      offset_bytes_.push_back(take(i));
    }
  }

  std::int64_t offset_bytes(std::size_t buffer) const { return offset_bytes_[buffer]; }
  std::int64_t bytes() const { return end_; }  // of all of them

 private:
  std::int64_t take(std::size_t buffer) {
    const std::int64_t bytes = lives_.list[buffer].bytes;
    const std::span<const OperationId> complete = lives_.complete_of(buffer);
    const auto fits = [&](const Hole& hole) { return hole.bytes == bytes && is_usable(hole, complete); };
    if (const auto hole = std::ranges::find_if(holes_, fits); hole != holes_.end()) {
      const std::int64_t begin = hole->begin;
      holes_.erase(hole);
      return begin;
    }
    const std::int64_t begin = smallest_run(bytes, complete);
    end_ = std::max(end_, begin + bytes);
    use(begin, bytes);
    return begin;
  }

  void give(std::size_t buffer) {
    const std::int64_t at = offset_bytes_[buffer];
    holes_.insert(from(at), Hole{at, lives_.list[buffer].bytes, buffer});
  }

  std::int64_t smallest_run(std::int64_t bytes, std::span<const OperationId> complete) const {
    Hole best{.begin = end_, .bytes = std::numeric_limits<std::int64_t>::max()}, run;
    for (const Hole& hole : holes_) {
      if (!is_usable(hole, complete)) {
        run = {};
        continue;
      }
      if (run.bytes == 0 || run.end() != hole.begin) run = {.begin = hole.begin};
      run.bytes += hole.bytes;
      if (run.bytes >= bytes && run.bytes < best.bytes) best = run;
    }
    // Grow the end, starting in the last holes if they are usable in time.
    return best.begin == end_ && run.bytes > 0 && run.end() == end_ ? run.begin : best.begin;
  }
  // Returns the first hole at or after an offset.
  std::vector<Hole>::iterator from(std::int64_t offset) {
    return std::ranges::lower_bound(holes_, offset, {}, &Hole::begin);
  }
  // Uses the holes in [at, at + bytes); the rest of the last one remains.
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
  bool is_usable(const Hole& hole, std::span<const OperationId> complete) const {
    const std::span<const OperationId> last = lives_.last_of(hole.of);
    for (std::size_t s = 0; s < complete.size(); ++s) {
      if (last[s] > complete[s]) return false;
    }
    return true;
  }

  const Lifetimes& lives_;
  std::vector<std::int64_t> offset_bytes_;  // by place in the list
  std::vector<Hole> holes_;                 // by offset; a vector, because every buffer scans all of them
  std::int64_t end_ = 0;
};

// Writes the lifetimes of a list with a part of it repeated `times` more times.
class Repeating {
 public:
  Repeating(const Lifetimes& once, const RepeatedPart& part, int times)
      : once_(once), part_(part), length_(part.end - part.begin), times_(times) {
    out_.streams = once.streams;
    moving_from_.assign(once.streams, part.begin);
  }

  // Returns nothing if what follows the part does not repeat it.
  std::optional<Lifetimes> all() {
    const auto from = [&](OperationId id) {
      return static_cast<std::size_t>(std::ranges::lower_bound(once_.list, id, {}, &Lifetimes::Lifetime::begin) -
                                      once_.list.begin());
    };
    const std::size_t first = from(part_.begin), behind = from(part_.end), number = behind - first;
    if (from(part_.end + length_) - behind != number) return std::nullopt;
    for (std::size_t i = first; i < behind; ++i) {
      if (!repeats(i, i + number)) return std::nullopt;
      for (std::size_t s = 0; s < once_.streams; ++s) {
        const OperationId id = once_.complete_of(i)[s];
        if (once_.complete_of(i + number)[s] != id) moving_from_[s] = std::min(moving_from_[s], id);
      }
    }
    for (std::size_t i = 0; i < behind; ++i) add(i, 0, 0);
    for (int k = 1; k <= times_; ++k) {
      for (std::size_t i = first; i < behind; ++i) add(i, k * length_, i + number);
    }
    for (std::size_t i = behind; i < once_.list.size(); ++i) add(i, times_ * length_, 0);
    return std::move(out_);
  }

 private:
  bool repeats(std::size_t a, std::size_t b) const {
    const Lifetimes::Lifetime &of = once_.list[a], &next = once_.list[b];
    if (next.begin - of.begin != length_ || next.bytes != of.bytes || of.end >= part_.tail) return false;
    for (std::size_t s = 0; s < once_.streams; ++s) {
      const OperationId later = once_.complete_of(b)[s] - once_.complete_of(a)[s];
      if (later != 0 && later != length_) return false;
    }
    return true;
  }
  // `next`: this buffer's counterpart in the following part; 0: there is none.
  void add(std::size_t i, OperationId later, std::size_t next) {
    const bool stands_before = later == 0;
    const auto use = [&](OperationId id) {
      if (id < 0) return id;
      return id + (stands_before && id >= part_.tail ? times_ * length_ : later);
    };
    Lifetimes::Lifetime life = once_.list[i];
    life.begin += later;
    life.end = use(life.end);
    out_.list.push_back(life);
    for (const OperationId id : once_.last_of(i)) out_.last.push_back(use(id));
    for (std::size_t s = 0; s < once_.streams; ++s) {
      const OperationId id = once_.complete_of(i)[s];
      const bool moves = next > 0 ? once_.complete_of(next)[s] != id : id >= moving_from_[s];
      out_.complete.push_back(moves ? id + later : id);
    }
  }

  const Lifetimes& once_;
  const RepeatedPart part_;
  const OperationId length_;
  const int times_;
  std::vector<OperationId> moving_from_;  // by stream
  Lifetimes out_;
};

// Places the buffers that share their memory with no other.
Arena persistent_arena(const Program& program, const std::vector<char>& shares) {
  Arena arena;
  arena.offset_bytes.assign(program.buffers.size(), 0);
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (shares[b] != 0) continue;
    arena.offset_bytes[b] = arena.bytes;
    arena.bytes += aligned(program.buffers[b].bytes());
  }
  arena.persistent_bytes = arena.bytes;
  return arena;
}

}  // namespace

Arena plan_arena(const Program& program) {
  const std::vector<char> shares = shares_its_place(program);
  Arena arena = persistent_arena(program, shares);
  const std::int64_t at = arena.persistent_bytes;
  // init and step never run at the same time and transient contents do not survive a list: they share the memory.
  for (const std::vector<Operation>* list : {&program.init, &program.step}) {
    const Lifetimes lives = lifetimes_of(program, *list, shares);
    const Places places(lives);
    for (std::size_t i = 0; i < lives.list.size(); ++i)
      arena.offset_bytes[lives.list[i].buffer] = at + places.offset_bytes(i);
    arena.transient_bytes = std::max(arena.transient_bytes, places.bytes());
  }
  arena.bytes = arena.persistent_bytes + arena.transient_bytes;
  return arena;
}

std::optional<std::int64_t> arena_bytes(const Program& program, const RepeatedPart& part, int times) {
  const std::vector<char> shares = shares_its_place(program);
  const Lifetimes once = lifetimes_of(program, program.step, shares);
  const std::optional<Lifetimes> all = Repeating(once, part, times).all();
  if (!all) return std::nullopt;
  const Lifetimes of_init = lifetimes_of(program, program.init, shares);
  return persistent_arena(program, shares).bytes + std::max(Places(of_init).bytes(), Places(*all).bytes());
}

}  // namespace harness::program
