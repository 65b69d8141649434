#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "store/hdf5_file.h"
#include "store/result.h"

namespace harness::store {

/// Expected rows of the timeline tables that a result does not have yet.
struct TimelineRows {
  std::int64_t intervals = 0, totals = 0;
};
/// Returns an upper bound on the size of a file with this plan, whatever its texts turn out to be.
std::int64_t most_bytes(const Result& plan, const TimelineRows& expected = {});
/// Throws Error if the disk of `path` has less space left. Quotas only show when the file is created.
void require_space(const std::string& path, std::int64_t bytes);

/// A result file being written, by rank 0 alone. create() makes all HDF5 objects at full size, allocated, and only raw
/// data is written afterwards: if the process is killed at any moment, the file opens and holds every block whose
/// write_block() returned. Takes no file locks (NFS, Lustre); the file can be read while it is written.
class ResultFile {
 public:
  /// Creates the file from everything that `plan` already knows (cases, blocks as pending, ranks, timelines …), with
  /// all of its disk space: writes it beside `path` and renames it. Creates missing directories. Throws Error if `path`
  /// exists, unless `overwrite`, or if the disk is too full.
  static std::unique_ptr<ResultFile> create(const std::string& path, const Result& plan, bool overwrite);
  /// Opens a file that create() made, to continue it in place.
  explicit ResultFile(const std::string& path);

  /// Makes a block count as not measured until write_block(). Call it before the data of a block are replaced: a row of
  /// an earlier session would present the new data as its own if the process is killed in between.
  void reopen_block(int block, const ResultBlock& planned);
  void write_block(int block, const ResultBlock& row, const std::vector<float>& step_seconds,
                   const std::vector<float>& losses, const std::vector<float>& rank_seconds);
  /// Writes the devices' data of a block. Call it before write_block().
  void write_gpu(int block, const ResultGpu& row);
  /// Writes all other machine conditions of a block. Call it before write_block().
  void write_conditions(int block, const machine::Conditions& row);
  void write_case(int index, const ResultCase& row);
  /// Adds a warning. The file holds `most_warnings`; when it is full, the last one says that there were more.
  void add_warning(const std::string& text);
  static constexpr std::size_t most_warnings = 64;
  /// Continues a file in another session: sets the number of sessions so far and the state to running.
  void begin_session(int sessions);
  /// Writes the state last, after everything is on disk.
  void finish(RunState state);

 private:
  template <class Row, class... Variables>
  void write_row(const char* path, int at, const Row& row, const Variables&... variables);
  void write_state(RunState state);

  hdf5::File file_;  // first: everything below lies in it
  std::vector<std::string> variables_;
  hdf5::Dataset step_seconds_, losses_, rank_seconds_, warnings_, sessions_, state_;
  std::uint64_t warnings_used_ = 0;
};

/// Writes a file with exactly `whole`, measurements included; an existing file stays until the new one is complete.
/// Throws Error if it cannot be written.
void write_result(const std::string& path, const Result& whole);

struct ReadOptions {
  bool rank_seconds = true;
  bool timeline = true;
};
/// Reads a result. Throws Error: no such file, not HDF5, not a harness result, damaged, a newer schema.
Result read_result(const std::string& path, const ReadOptions& options = {});

}  // namespace harness::store
