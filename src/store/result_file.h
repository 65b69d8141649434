#pragma once

#include <memory>
#include <string>

#include "store/result.h"

namespace harness::store {

/// How many rows the timeline tables need; known from the Programs before anything runs.
struct ResultCapacity {
  std::int64_t intervals = 0;
  std::int64_t totals = 0;
  std::int64_t warnings = 64;
};

/// At least as many bytes as a file of this plan and capacity has, whatever its texts turn out to be.
std::int64_t most_bytes(const Result& plan, const ResultCapacity& capacity);
/// Throws Error if the disk that `path` lies on has less space left. Quotas show when the file is created.
void require_space(const std::string& path, std::int64_t bytes);

/// A result file being written, by rank 0 alone. All HDF5 objects exist at full size, allocated, before this returns,
/// and nothing but raw data is written afterwards: killed at any moment, the file opens and holds every block whose
/// write_block() returned. Takes no file locks (NFS, Lustre), readers are welcome while it is written.
class ResultFile {
 public:
  /// Creates the file from everything `plan` already knows (cases, blocks as pending, ranks, environment …), with all
  /// of its disk space. Written beside and renamed into place. Throws Error if `path` exists, unless `overwrite`, or if
  /// the disk is too full; makes missing directories.
  static std::unique_ptr<ResultFile> create(const std::string& path, const Result& plan, const ResultCapacity& capacity,
                                            bool overwrite);
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
  virtual void add_timeline(const std::vector<ResultInterval>& rows) = 0;
  virtual void add_totals(const std::vector<ResultTotal>& rows) = 0;
  virtual void add_warning(const std::string& text) = 0;
  /// A sweep goes on with the file, which so many have written: its state is running again.
  virtual void begin_session(int sessions) = 0;
  /// Writes the state last, after everything is on disk.
  virtual void finish(RunState state) = 0;
};

/// Replaces the file at `path` by one that holds exactly `whole`, with its matrices and timelines; blocks may have been
/// added. The old file stays until the new one is complete. Throws Error if it cannot be written.
void rewrite_result(const std::string& path, const Result& whole);

struct ReadOptions {
  bool rank_seconds = true;
  bool timeline = true;
};
/// Throws Error: no such file, not HDF5, not a harness result, a newer schema.
Result read_result(const std::string& path, const ReadOptions& options = {});

}  // namespace harness::store
