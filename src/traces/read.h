#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/capture.h"
#include "traces/timeline.h"

namespace harness::traces {

/// A communication kernel.
struct Collective {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t stream = 0;
  Class kernel_class = 0;
  std::uint32_t members = 0;               // the ranks of its group: equal numbers, equal ranks, on one rank only
  std::int64_t bytes = 0, group_size = 0;  // larger of input and output; number of ranks; 0: not recorded
  double seconds() const { return static_cast<double>(end_ns - start_ns) * 1e-9; }
};

/// Returns a device's communication kernels, sorted by start.
std::vector<Collective> collectives_of(const Capture& capture, const Device& device);

/// One collective seen on several ranks. It ends on all of them at once because no rank has the result before the last
/// has contributed. The shortest duration is therefore the transfer, and any excess on another rank is waiting.
struct Meeting {
  struct Member {
    std::size_t rank = 0, collective = 0;  // indices into the argument of find_meetings()
    double waiting_s = 0;
  };
  Class kernel_class = 0;
  std::vector<Member> members;  // sorted by rank
  double transfer_s = 0, longest_s = 0, end_spread_s = 0;
  std::size_t last = 0;  // rank that arrived last
  /// Whether this is a send or receive, usually between pipeline stages.
  bool is_pair() const { return members.size() == 2 && class_names()[kernel_class] == "comm.sendrecv"; }
};

struct Meetings {
  std::vector<Meeting> all;     // sorted by start on their first rank
  std::vector<double> clock_s;  // by rank: its clock minus the first rank's; 0 if not needed
};

/// Matches collectives across ranks: pairs streams, or the groups on them if recorded, whose communication kernels have
/// the same kinds in the same order and end together, up to a constant clock offset. Needs no group names. Kernels that
/// do not end together are not the same collective, and no waiting is derived from them.
Meetings find_meetings(const std::vector<std::vector<Collective>>& ranks);

/// Estimates from one rank alone how long it waited, in seconds, in the collectives that begin in a window. The
/// transfer time is the shortest of at least four similar collectives (by stream, kind and size, or by position in the
/// step if no size is recorded), provided that the second shortest is within 20 % of it. This is a lower bound, because
/// a rank that always waits never sees the bare transfer. Absent: no four are similar.
std::optional<double> least_waiting_s(const std::vector<Collective>& all, const std::vector<Window>& steps,
                                      const Window& window);

/// The summary of one GPU's trace, without its events.
struct TracedGpu : Source {
  std::string label, gpu;  // see Device
  std::vector<Figures> windows;
  Steps steps;
  Window whole;                              // the whole capture
  Window shown;                              // the step, or the whole capture if no steps were found
  StepWork work;                             // work in `shown`; empty if the timeline does not draw this GPU
  TimedStep step;                            // in `shown`
  std::vector<NamedKernel> kernels;          // in `shown`, longest first, at most 1000
  IdleTimes idle_s{};                        // in the whole capture
  std::vector<NamedKernel> unclassified;     // in the whole capture
  std::vector<Collective> collectives;       // in the whole capture
  std::optional<double> waiting_at_least_s;  // in `shown`, estimated from this rank alone

  /// Returns "rank 3", otherwise file and device.
  std::string name() const {
    return rank ? fmt::format("rank {}", *rank) : fmt::format("{} GPU {}", quote(file), label);
  }
  /// Returns the step shown, empty if there is none; its name is "" unless it identifies the step within the job.
  Window step_of_job() const {
    if (steps.windows.empty()) return {};
    return {steps.numbered ? shown.name : "", shown.start_ns, shown.end_ns};
  }
};

struct LateRank {
  std::size_t gpu = 0;           // index into Report::gpus
  std::size_t last = 0, of = 0;  // arrived last in `last` of its `of` collectives with notable waiting
  double own_share = 0;      // excess of its computation and idle time over the median of all, relative to the median
  double compute_share = 0;  // likewise for its computation alone
};

/// Bus bandwidth of identical collectives with all members traced, from the transfer alone without waiting.
struct Bandwidth {
  Class kernel_class = 0;
  std::int64_t bytes = 0, ranks = 0, count = 0;
  double bytes_per_s = 0;  // median
  double seconds = 0;      // total transfer time
};

/// One job.
struct Report {
  std::vector<std::string> files;
  std::vector<TracedGpu> gpus;  // by rank, otherwise in file order
  Meetings meetings;
  std::vector<LateRank> late;         // largest own_share first
  std::vector<Bandwidth> bandwidths;  // largest total transfer time first
  TimedStep mean;                     // mean over all GPUs
  std::vector<std::string> notes;
  std::vector<std::string> refused;  // files that could not be read, with the reason
};

/// Fills in the values that need all GPUs of a job, and their parts: waiting, late ranks, bandwidths and the mean step.
void compare_ranks(Report& report);

/// Returns whether a file begins like a trace that read_traces() accepts (JSON with trace events or an SQLite database)
/// or is named like an Nsight Systems report. Returns false if the file cannot be read.
bool is_trace_file(const std::string& path);

/// Reads the traces of a job: PyTorch profiler JSON, optionally gzipped, one file per rank, or Nsight Systems exports
/// (SQLite), one or more ranks per file. Returns two reports, before and after, if every rank occurs twice or if two
/// files were captured one after the other. Reads several files at once on several cores, up to 2 GB of them. If some
/// of several files cannot be read, the (last) report names them. Throws Error if none can be read or if the files do
/// not belong together.
std::vector<Report> read_traces(const std::vector<std::string>& paths);

}  // namespace harness::traces
