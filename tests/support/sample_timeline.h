#pragma once

#include "support/sample_results.h"

namespace harness::test::samples {

/// A finished sweep with a timeline of its first three cases (the control has none): two roles, a computing and a
/// communicating stream that overlap.
inline store::Result with_timeline() {
  store::Result result = sweep({"micro_batch_size=2"}, {1, 1, 0.9});
  result.nodes = 2;
  for (int rank = 0; rank < 4; ++rank)
    result.rank_table.push_back({rank, rank % 2, rank / 2, "node1", "CPU", 2, 1, 1e9});
  for (const int c : {0, 2}) {
    for (const int role : {0, 1}) {
      for (int i = 0; i < 20; ++i) {
        store::ResultInterval row;
        row.case_index = c;
        row.role = role;
        row.rank = 2 * role;
        row.operation = 2 * i;
        row.kind = "matmul";
        row.stream = "compute";
        row.phase = i < 10 ? "forward" : "backward";
        row.what = "qkv";
        row.micro_batch = 0;
        row.layer = i % 10;
        row.start_s = 0.001 * i;
        row.end_s = row.start_s + 0.0009;
        result.timeline.push_back(row);
        if (i < 10) continue;
        row.operation = 2 * i + 1;
        row.kind = "all_reduce";
        row.stream = "dp";
        row.what = "";
        row.layer = row.micro_batch = -1;
        row.start_s += 0.0005;
        row.end_s = row.start_s + 0.0008;
        result.timeline.push_back(row);
      }
    }
    for (int rank = 0; rank < 4; ++rank) {
      result.splits.push_back({c, rank, 0.0205, 0.018, 0.008, 0.0015, 0.0065, 0.001});
    }
  }
  return result;
}

}  // namespace harness::test::samples
