#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "program/program.h"

namespace harness::program {

/// Tracks the last writer of every element of every buffer and the readers since then. Stored as intervals, so the cost
/// depends on the number of distinct views, not of elements. An access to a rank's own part counts as an access to all
/// parts, so that the derived order is the same on all ranks.
class AccessMap {
 public:
  /// Records the access and calls conflict(earlier operation) for each earlier access that `op` must follow; for a
  /// read, these are the writes of the elements that it reads. Calls unwritten() when a read meets elements that no
  /// operation has written.
  template <class Conflict, class Unwritten>
  void read(OperationId op, const View& view, Conflict&& conflict, Unwritten&& unwritten) {
    over(view, [&](Segment& s) {
      if (s.writer < 0) unwritten();
      if (s.writer >= 0 && s.writer != before_the_list) conflict(s.writer);
      reads_.push_back({op, s.last_read});
      s.last_read = static_cast<std::int32_t>(reads_.size()) - 1;
    });
  }
  template <class Conflict>
  void write(OperationId op, const View& view, Conflict&& conflict) {
    over(view, [&](Segment& s) {
      if (s.writer >= 0 && s.writer != before_the_list) conflict(s.writer);
      for (std::int32_t r = s.last_read; r >= 0; r = reads_[r].earlier) {
        if (reads_[r].op != op) conflict(reads_[r].op);
      }
      s.writer = op;
      s.last_read = -1;
    });
  }
  /// Treats the elements as written before the list begins.
  void assume_written(const View& view) {
    over(view, [&](Segment& s) {
      if (s.writer < 0) s.writer = before_the_list;
    });
  }
  /// Calls visit(buffer, operation) for each operation of the list that was the last to write some element of a buffer.
  template <class Visit>
  void each_last_writer(Visit&& visit) const {
    for (std::size_t b = 0; b < buffers_.size(); ++b) {
      for (const Segment& s : buffers_[b]) {
        if (s.writer >= 0 && s.writer != before_the_list) visit(static_cast<BufferId>(b), s.writer);
      }
    }
  }

 private:
  static constexpr OperationId before_the_list = 1 << 30;

  struct Read {
    OperationId op = -1;
    std::int32_t earlier = -1;  // the read before this one, since the last write; -1: none
  };
  struct Segment {
    std::int64_t begin = 0, end = 0;
    OperationId writer = -1;      // -1: not written yet
    std::int32_t last_read = -1;  // since the last write; -1: none
  };

  // Most buffers have one segment. A few have hundreds, which soon stop changing: a sorted vector is faster than a
  // tree.
  template <class F>
  void over(const View& view, F&& f) {
    if (view.count <= 0) return;
    const std::size_t buffer = view.buffer;
    if (buffer >= buffers_.size()) buffers_.resize(buffer + 1);
    std::vector<Segment>& segments = buffers_[buffer];
    const std::int64_t end = view.offset + view.all_parts().count;
    auto it =
        std::partition_point(segments.begin(), segments.end(), [&](const Segment& s) { return s.end <= view.offset; });
    if (it != segments.end() && it->begin < view.offset) it = split(segments, it, view.offset) + 1;
    for (std::int64_t at = view.offset; at < end; ++it) {
      if (it == segments.end() || it->begin > at) {  // a gap: never touched
        it = segments.insert(it, Segment{at, it == segments.end() ? end : std::min(end, it->begin)});
      } else if (it->end > end) {
        it = split(segments, it, end);
      }
      f(*it);
      at = it->end;
    }
  }
  using Iterator = std::vector<Segment>::iterator;
  // Splits a segment in two; returns the first.
  static Iterator split(std::vector<Segment>& segments, Iterator it, std::int64_t at) {
    Segment right = *it;
    it->end = right.begin = at;
    return segments.insert(it + 1, right) - 1;
  }

  std::vector<std::vector<Segment>> buffers_;
  std::vector<Read> reads_;  // of all segments; the two halves of a split segment share its reads
};

/// Determines which operations of a list are complete when another begins, from stream order and waits alone. Members
/// of a fused group begin together: none is complete when another begins.
class HappensBefore {
 public:
  /// Ignores waits that do not name an earlier operation; verify() reports them.
  HappensBefore(const std::vector<Operation>& list, std::size_t streams) : streams_(streams) {
    known_.assign(list.size() * streams, -1);
    std::vector<OperationId> last(streams, -1);
    for (std::size_t i = 0; i < list.size(); ++i) {
      OperationId* mine = &known_[i * streams];
      const auto share = [&](OperationId earlier) {
        const OperationId* theirs = &known_[earlier * streams];
        for (std::size_t s = 0; s < streams; ++s) mine[s] = std::max(mine[s], theirs[s]);
      };
      const auto take = [&](OperationId earlier) {
        share(earlier);
        const std::size_t on = list[earlier].stream;
        mine[on] = std::max(mine[on], earlier);
      };
      const std::size_t stream = list[i].stream;
      const OperationId previous = last[stream];
      const std::int32_t group = list[i].fused_group;
      if (previous >= 0 && group >= 0 && list[previous].fused_group == group) {
        share(previous);
      } else if (previous >= 0) {
        take(previous);
      }
      for (const OperationId w : list[i].waits) {
        if (w >= 0 && std::cmp_less(w, i)) take(w);
      }
      last[stream] = static_cast<OperationId>(i);
    }
  }

  /// Returns, by stream, the latest operation that is complete (with all before it) before `later` begins; -1: none.
  std::span<const OperationId> complete_before(OperationId later) const {
    return {&known_[later * streams_], streams_};
  }
  /// True if `earlier`, which runs on `earlier_stream`, is complete before `later` begins.
  bool ordered(OperationId earlier, StreamId earlier_stream, OperationId later) const {
    return known_[later * streams_ + earlier_stream] >= earlier;
  }

 private:
  std::size_t streams_;
  std::vector<OperationId> known_;  // [operation][stream]: the latest operation there that is complete before it
};

/// Returns, by operation of a list, nonzero for a computation that may overlap one on another stream because neither is
/// complete when the other begins: the two may have to share the device. Follows stream order and waits alone.
std::vector<char> computes_beside_another(const std::vector<Operation>& list, std::size_t streams);

/// Builds a Program operation by operation and derives the waits from the memory that each operation touches: an
/// operation waits for every earlier conflicting one on another stream (read after write, write after read, write after
/// write), and for the operations in `after`. verify() checks the result independently.
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
  std::vector<OperationId> needed_;  // by the operation being emitted; a member only to reuse its memory
  AccessMap accesses_;
};

}  // namespace harness::program
