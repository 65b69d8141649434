#pragma once

#include <memory>
#include <string>

#include "store/result.h"

namespace harness::store {

/// Rows of the timeline tables that a result does not have yet.
struct TimelineRows {
  std::int64_t intervals = 0, totals = 0;
};
/// At least as many bytes as a file of this plan has, whatever its texts turn out to be.
std::int64_t most_bytes(const Result& plan, const TimelineRows& expected = {});
/// Throws Error if the disk that `path` lies on has less space left. Quotas show when the file is created.
void require_space(const std::string& path, std::int64_t bytes);

/// A result file being written, by rank 0 alone. All HDF5 objects exist at full size, allocated, before this returns,
/// and nothing but raw data is written afterwards: killed at any moment, the file opens and holds every block whose
/// write_block() returned. Takes no file locks (NFS, Lustre), readers are welcome while it is written.
class ResultFile {
 public:
  /// Creates the file from everything `plan` already knows (cases, blocks as pending, ranks, timelines …), with all of
  /// its disk space. Written beside and renamed into place. Throws Error if `path` exists, unless `overwrite`, or if
  /// the disk is too full; makes missing directories.
  static std::unique_ptr<ResultFile> create(const std::string& path, const Result& plan, bool overwrite);
  /// Opens a file that create() made to go on with it, in place.
  static std::unique_ptr<ResultFile> reopen(const std::string& path);

  virtual ~ResultFile() = default;
  virtual void write_block(int block, const ResultBlock& row, const std::vector<float>& step_seconds,
                           const std::vector<float>& losses, const std::vector<float>& rank_seconds) = 0;
  /// The devices during a block; before its write_block().
  virtual void write_gpu(int block, const ResultGpu& row) = 0;
  /// Everything else that the machine did during a block; before its write_block().
  virtual void write_conditions(int block, const machine::Conditions& row) = 0;
  virtual void write_case(int index, const ResultCase& row) = 0;
  /// Kept up to `most_warnings`, of which the last then says that there were more.
  virtual void add_warning(const std::string& text) = 0;
  static constexpr std::size_t most_warnings = 64;
  /// A sweep goes on with the file, which so many have written: its state is running again.
  virtual void begin_session(int sessions) = 0;
  /// Writes the state last, after everything is on disk.
  virtual void finish(RunState state) = 0;
};

/// Puts a file in place that holds exactly `whole`, with what was measured; an old file there stays until it is
/// complete. Throws Error if it cannot be written.
void write_result(const std::string& path, const Result& whole);

struct ReadOptions {
  bool rank_seconds = true;
  bool timeline = true;
};
/// Throws Error: no such file, not HDF5, not a harness result, a newer schema.
Result read_result(const std::string& path, const ReadOptions& options = {});

}  // namespace harness::store
