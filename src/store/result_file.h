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

/// A result file being written, by rank 0 alone. All HDF5 objects exist at full size, allocated, before this returns,
/// and nothing but raw data is written afterwards: killed at any moment, the file opens and holds every block whose
/// write_block() returned. Takes no file locks (NFS, Lustre), readers are welcome while it is written.
class ResultFile {
 public:
  /// Creates the file from everything `plan` already knows (cases, blocks as pending, ranks, environment …). Written
  /// beside and renamed into place. Throws Error if `path` exists, unless `overwrite`; makes missing directories.
  static std::unique_ptr<ResultFile> create(const std::string& path, const Result& plan, const ResultCapacity& capacity,
                                            bool overwrite);
  /// Opens a file that create() made to go on with it. `name`: what messages call it, where it is to be renamed.
  static std::unique_ptr<ResultFile> reopen(const std::string& path, const std::string& name = "");

  virtual ~ResultFile() = default;
  virtual void write_block(int block, const ResultBlock& row, const std::vector<float>& step_seconds,
                           const std::vector<float>& losses, const std::vector<float>& rank_seconds) = 0;
  /// What the devices did during a block; before its write_block().
  virtual void write_gpu(int block, const ResultGpu& row) = 0;
  /// What else the machine did during a block; before its write_block().
  virtual void write_conditions(int block, const machine::Conditions& row) = 0;
  virtual void write_case(int index, const ResultCase& row) = 0;
  virtual void add_timeline(const std::vector<ResultInterval>& rows) = 0;
  virtual void add_totals(const std::vector<ResultTotal>& rows) = 0;
  virtual void add_warning(const std::string& text) = 0;
  virtual void set_sessions(int sessions) = 0;
  /// Writes the state last, after everything is on disk.
  virtual void finish(RunState state) = 0;
};

struct ReadOptions {
  bool rank_seconds = true;
  bool timeline = true;
};
/// Throws Error: no such file, not HDF5, not a harness result, a newer schema.
Result read_result(const std::string& path, const ReadOptions& options = {});

}  // namespace harness::store
