#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "program/operation.h"

namespace harness::program {

/// Remembers, for every element of every buffer, who wrote it last and who has read it since. Kept as intervals, so
/// the cost follows the number of distinct views and not the number of elements. Who touches its own part counts as
/// touching all parts: the order that follows from it is one for all ranks.
class AccessMap {
 public:
  struct Segment {
    std::int64_t end = 0;
    OperationId writer = -1;           // -1: not written yet
    std::vector<OperationId> readers;  // since the last write; at most the latest of each stream
  };

  /// Calls conflict(earlier operation) for each earlier access that `op` must come after, and notes the access.
  /// unwritten() is called when a read meets elements that nobody has written.
  template <class Conflict, class Unwritten>
  void read(OperationId op, StreamId stream, const View& view, Conflict&& conflict, Unwritten&& unwritten) {
    over(view, [&](Segment& s) {
      if (s.writer < 0) unwritten();
      if (s.writer >= 0 && s.writer != before_the_list) conflict(s.writer);
      note_reader(s, op, stream);
    });
  }
  template <class Conflict>
  void write(OperationId op, const View& view, Conflict&& conflict) {
    over(view, [&](Segment& s) {
      if (s.writer >= 0 && s.writer != before_the_list) conflict(s.writer);
      for (const OperationId r : s.readers) {
        if (r != op) conflict(r);
      }
      s.writer = op;
      s.readers.clear();
    });
  }
  /// Treats the elements as written before the list begins.
  void assume_written(const View& view) {
    over(view, [&](Segment& s) {
      if (s.writer < 0) s.writer = before_the_list;
    });
  }
  void clear() {
    buffers_.clear();
    stream_of_.clear();
  }

  static constexpr OperationId before_the_list = 1 << 30;

 private:
  template <class F>
  void over(const View& view, F&& f) {
    if (view.count <= 0) return;
    auto& map = buffers_[view.buffer];
    const std::int64_t end = view.offset + view.all_parts().count;
    split(map, view.offset);
    split(map, end);
    for (std::int64_t at = view.offset; at < end;) {
      auto it = map.lower_bound(at);
      if (it == map.end() || it->first > at) {  // a gap: never touched
        const std::int64_t gap_end = it == map.end() ? end : std::min(end, it->first);
        it = map.emplace(at, Segment{gap_end, -1, {}}).first;
      }
      f(it->second);
      at = it->second.end;
    }
  }
  static void split(std::map<std::int64_t, Segment>& map, std::int64_t at) {
    auto it = map.upper_bound(at);
    if (it == map.begin()) return;
    --it;
    if (it->first == at || it->second.end <= at) return;
    Segment right = it->second;
    it->second.end = at;
    map.emplace(at, std::move(right));
  }
  void note_reader(Segment& s, OperationId op, StreamId stream) {
    stream_of_.resize(std::max<std::size_t>(stream_of_.size(), op + 1), -1);
    stream_of_[op] = stream;
    for (OperationId& r : s.readers) {
      if (stream_of_[r] == stream) {
        r = op;
        return;
      }
    }
    s.readers.push_back(op);
  }

  std::map<BufferId, std::map<std::int64_t, Segment>> buffers_;
  std::vector<StreamId> stream_of_;
};

}  // namespace harness::program
