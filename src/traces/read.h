#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/capture.h"
#include "traces/timeline.h"

namespace harness::traces {

/// A kernel of communication.
struct Collective {
  std::int64_t start_ns = 0, end_ns = 0;
  std::uint32_t stream = 0;
  Class kernel_class = 0;
  std::int64_t bytes = 0, group_size = 0;  // of its result, of its ranks; 0: not recorded
  double seconds() const { return static_cast<double>(end_ns - start_ns) * 1e-9; }
};

/// By start.
std::vector<Collective> collectives_of(const Capture& capture, const Device& device);

/// A collective that several ranks have in common. It ends on all of them at once, because none has the result before
/// the last has contributed: so the shortest duration is the transfer, and what another rank's exceeds it is waiting.
struct Meeting {
  struct Member {
    std::size_t rank = 0, collective = 0;  // indices of find_meetings()'s argument
    double waiting_s = 0;
  };
  Class kernel_class = 0;
  std::vector<Member> members;  // by rank
  double transfer_s = 0, longest_s = 0, end_spread_s = 0;
  std::size_t last = 0;  // the rank that came last
  bool is_pair() const;  // a send or receive: the other is most often another pipeline stage
};

struct Meetings {
  std::vector<Meeting> all;     // by start on their first rank
  std::vector<double> clock_s;  // by rank: its clock minus the first rank's; 0 where it was not needed
};

/// Finds the collectives that ranks share: the streams whose kernels of communication have the same kinds in the same
/// order and end together, up to a difference of clocks that is constant. Names of groups are not needed. What does not
/// end together is not the same collective: no waiting is told of it.
Meetings find_meetings(const std::vector<std::vector<Collective>>& ranks);

/// Whether a collective of this class ends on all of its ranks at once.
bool ends_at_once(Class kernel_class);

/// How long one rank waited in the collectives that begin in a window, in seconds, told from this rank alone. The
/// transfer is the shortest of at least four that are alike (by stream, kind and size, or by their place in a step
/// where no size is recorded), if the second shortest is within 20 % of it. A lower bound: a rank that always waits
/// never sees the bare transfer. Absent: no four are alike.
std::optional<double> least_waiting_s(const std::vector<Collective>& all, const std::vector<Window>& steps,
                                      const Window& window);

/// The summary of one GPU's trace. Its events are gone.
struct TracedGpu : Source {
  std::string label, gpu;                 // as of Device
  std::int64_t start_ns = 0, end_ns = 0;  // of the capture
  std::vector<Figures> windows;
  Steps steps;
  Window shown;                              // the step, or the whole capture where no steps were found
  StepWork work;                             // in it; without its events where a timeline does not draw this GPU
  TimedStep step;                            // in it
  std::vector<NamedKernel> kernels;          // in it, the longest first, at most a thousand
  IdleTimes idle_s{};                        // of the whole capture
  std::vector<NamedKernel> unclassified;     // of the whole capture
  std::vector<Collective> collectives;       // of the whole capture
  std::optional<double> waiting_at_least_s;  // in the step shown, told from this rank alone

  std::string name() const;  // "rank 3", else the file and the device
  /// The name of the step shown, if it tells which of the job it is; else "".
  std::string numbered_step() const { return steps.numbered && !steps.windows.empty() ? shown.name : ""; }
};

/// A rank that the others wait for.
struct LateRank {
  std::size_t gpu = 0;           // of Report::gpus
  std::size_t last = 0, of = 0;  // it came last in so many of its collectives with notable waiting
  double own_share = 0;          // its computation and idle time beyond the median of all, as a share of that
  double compute_share = 0;      // the same of its computation alone
};

/// The bus bandwidth of equal collectives whose members were all traced: from the transfer alone, without waiting.
struct Bandwidth {
  Class kernel_class = 0;
  std::int64_t bytes = 0, ranks = 0, count = 0;
  double bytes_per_s = 0;  // median
  double seconds = 0;      // of transfer, all together
};

/// One job.
struct Report {
  std::vector<std::string> files;
  std::vector<TracedGpu> gpus;  // by rank, else in the order of the files
  Meetings meetings;
  std::vector<LateRank> late;         // most waited for first
  std::vector<Bandwidth> bandwidths;  // the longest sum of transfers first
  TimedStep mean;                     // of all gpus
  std::vector<std::string> notes;
  std::vector<std::string> refused;  // files that could not be read, and why
};

/// Fills in what GPUs of one job tell together, and their parts: waiting, late ranks, bandwidths and the mean step.
void compare_ranks(Report& report);

/// Whether a file begins like a trace that read_traces() takes, JSON with trace events or a database of SQLite, or is
/// named like a report of Nsight Systems. False where it cannot be read.
bool is_trace_file(const std::string& path);

/// Reads the traces of a job: of the PyTorch profiler (JSON, also gzip), one file a rank, or exports of Nsight Systems
/// (SQLite), one or more ranks a file. Two reports, before and after, where every rank is there twice, or where two
/// files were captured one after the other. On several cores, several files are read at once, 2 GB of them at most. A
/// file of several that cannot be read is named in the (last) report. Throws Error if none can be read, and for files
/// that do not belong together.
std::vector<Report> read_traces(const std::vector<std::string>& paths);

}  // namespace harness::traces
