// An event: the state of a stream at its most recent record.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime.h"
#include "stream.h"

namespace harness::fake {

// One record, done when the stream came to it.
struct Record {
  void complete();
  void wait();
  bool is_done();

  std::mutex mutex;
  std::condition_variable changed;
  bool done = false;
  std::int64_t time_ns = 0;
};

struct Event {
  int device = 0;
  unsigned flags = 0;
  // Guarded by runtime_mutex(). Neither: never recorded. A capture: recorded in it, after these nodes.
  std::shared_ptr<Record> latest;
  std::shared_ptr<Capture> capture;
  std::vector<int> tips;
};

cudaError_t record(const std::shared_ptr<Event>& event, const std::shared_ptr<Stream>& stream, bool external);
cudaError_t wait(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Event>& event, bool external);

}  // namespace harness::fake
