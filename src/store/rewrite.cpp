#include "store/rewrite.h"

#include "base/error.h"
#include "store/atomic_file.h"
#include "store/create.h"
#include "store/result_file.h"

namespace harness::store {
namespace {

void write_blocks(ResultFile& file, const Result& whole) {
  for (std::size_t i = 0; i < whole.blocks.size(); ++i) {
    if (whole.blocks[i].status == BlockStatus::pending || i >= whole.step_seconds.size()) continue;
    const int index = static_cast<int>(i);
    if (i < whole.gpu.size()) file.write_gpu(index, whole.gpu[i]);
    if (i < whole.conditions.size()) file.write_conditions(index, whole.conditions[i]);
    file.write_block(index, whole.blocks[i], whole.step_seconds[i], whole.losses[i], whole.rank_seconds[i]);
  }
}

}  // namespace

void rewrite_result(const std::string& path, const Result& whole) {
  AtomicFile place(path, true);
  try {
    ResultCapacity capacity;
    capacity.intervals = static_cast<std::int64_t>(whole.timeline.size());
    capacity.totals = static_cast<std::int64_t>(whole.totals.size());
    hdf5::File file = hdf5::File::create(place.temporary_path());
    place.protect();
    create_objects(file, whole, capacity);
    file.flush(true);
    file.close();
    const auto result = ResultFile::reopen(place.temporary_path());
    result->add_timeline(whole.timeline);
    result->add_totals(whole.totals);
    write_blocks(*result, whole);
    result->finish(whole.state);
  } catch (const Error& error) {
    fail("cannot write {}: {}", path, error.what());
  }
  place.put_in_place();
}

}  // namespace harness::store
