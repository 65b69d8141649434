#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/text.h"
#include "traces/answer.h"

namespace harness::traces {

/// Returns the report of files of one job.
inline Report read_job(const std::vector<std::string>& paths) {
  std::vector<Report> reports = read_traces(paths);
  EXPECT_EQ(reports.size(), 1u);
  return std::move(reports.back());
}

// ---- files of the PyTorch profiler

inline std::string event(const std::string& category, const std::string& name, const std::string& start,
                         const std::string& duration, const std::string& args = "") {
  return fmt::format(R"(  {{
    "ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": 7, "ts": {}, "dur": {}, "args": {{ {} }}
  }})",
                     category, name, start, duration, args);
}

/// Returns a kernel of the first GPU, or of these arguments: its device, stream and call.
inline std::string kernel(const std::string& start, const std::string& duration, const std::string& name = "nvjet_a",
                          const std::string& args = R"("device": 0, "stream": 7, "correlation": 5)") {
  return event("kernel", name, start, duration, args);
}

/// Returns a call and the kernel of 10 us that it launches.
inline std::string launched(const std::string& category, const std::string& call, double at_us, double start_us,
                            const std::string& correlation, const std::string& stream = "7") {
  const std::string args = fmt::format("\"device\": 0, \"stream\": {}, \"correlation\": {}", stream, correlation);
  return event(category, call, std::to_string(at_us), "2", "\"correlation\": " + correlation) + ",\n" +
         kernel(std::to_string(start_us), "10", "nvjet_a", args) + ",\n";
}

/// Returns what precedes the events of a rank; `world`: the ranks of its job, 0 if the file does not state them.
inline std::string of_rank(int rank, int world = 0) {
  const std::string size = world > 0 ? fmt::format(", \"world_size\": {}", world) : "";
  return fmt::format("\"distributedInfo\": {{\"rank\": {}{}}},\n", rank, size);
}

inline std::string trace(const std::string& events, const std::string& before = "") {
  return "{\n" + before + "\"traceEvents\": [\n" + events + "\n]\n}\n";
}

}  // namespace harness::traces
