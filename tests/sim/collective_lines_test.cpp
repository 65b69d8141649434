#include "sim/collective_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "support/paths.h"

namespace harness::sim {
namespace {

using program::Collective;

double us(const std::string& hardware, Collective kind, double bytes, int ranks, int per_node, double share = 0) {
  static const config::Calibration calibration = config::calibration_named("harness");
  static std::map<std::string, config::Hardware> known;
  if (!known.contains(hardware)) known[hardware] = config::hardware_named(hardware);
  std::vector<int> node_of;
  for (int rank = 0; rank < ranks; ++rank) node_of.push_back(rank / per_node);
  Network network = network_of(known.at(hardware), {}, node_of);
  if (share > 0) network.network_share = share;
  const Spread spread{ranks, (ranks + per_node - 1) / per_node, std::min(ranks, per_node), 1};
  return 1e6 * lines_seconds(kind, bytes, spread, network, calibration);
}

// Measured, in microseconds: 8 H100 (NVIDIA, dgxc-benchmarking), 72 GPUs of a rack (NVIDIA/nccl-tests#43), 8 bytes on
// 2, 4 and 8 A100.
TEST(Lines, AreNearWhatWasMeasured) {
  const auto near = [](double law, double measured, double share) { EXPECT_NEAR(law, measured, share * measured); };
  const double kib = 1024, mib = 1024 * kib, gib = 1024 * mib;
  near(us("dgx-h100", Collective::all_reduce, 32 * kib, 8, 8), 18.7, 0.3);
  near(us("dgx-h100", Collective::all_reduce, 512 * kib, 8, 8), 20.4, 0.3);
  near(us("dgx-h100", Collective::all_reduce, mib, 8, 8), 27.8, 0.1);
  near(us("dgx-h100", Collective::all_reduce, 16 * mib, 8, 8), 121, 0.1);
  near(us("dgx-h100", Collective::all_reduce, gib, 8, 8), 4060, 0.05);
  near(us("gb200-nvl72", Collective::all_reduce, gib, 72, 72), 3110, 0.1);
  near(us("dgx-a100", Collective::all_reduce, 8, 2, 8), 9, 0.1);
  near(us("dgx-a100", Collective::all_reduce, 8, 4, 8), 14, 0.1);
  near(us("dgx-a100", Collective::all_reduce, 8, 8, 8), 24, 0.1);
}

// On every machine and for every number of ranks: no size is quicker than a smaller one, and no group that leaves its
// node is quicker than its part within it.
TEST(Lines, NeverFall) {
  for (const char* hardware :
       {"dgx-a100", "dgx-h100", "hgx-b200", "gb200-nvl72", "gb300-nvl72", "p5", "h20", "v100-sxm2"}) {
    for (const int per_node : {1, 4, 8}) {
      for (int ranks = 2; ranks <= 1024; ranks *= 2) {
        for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
          if (ranks > per_node && !(config::hardware_named(hardware).node_bytes_per_s > 0)) continue;
          double before = 0;
          for (double bytes = 8; bytes <= 0x1p33; bytes *= 2) {
            const double now = us(hardware, kind, bytes, ranks, per_node);
            ASSERT_GE(now, before) << hardware << " " << ranks << "/" << per_node << " " << bytes;
            ASSERT_GT(now, 0);
            if (ranks > per_node && per_node > 1) {
              ASSERT_GE(now, us(hardware, kind, bytes, per_node, per_node));
            }
            before = now;
          }
        }
      }
    }
  }
}

// "a,\"b, c\",d" in three.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

// Published bus bandwidths of NCCL's own choice, and of NVLS, on networks whose cards are known.
TEST(Lines, AreWithinFifteenPercentOfMostPublishedBandwidths) {
  const std::map<std::string, std::string> machine{{"b200", "hgx-b200"},     {"gb200", "gb200-nvl72"},
                                                   {"gb300", "gb300-nvl72"}, {"h100-sxm", "dgx-h100"},
                                                   {"h200-sxm", "h200-sxm"}, {"a100-sxm-80gb", "dgx-a100"}};
  std::ifstream file(test::source_dir() + "/configs/published/busbw.csv");
  std::string line;
  std::getline(file, line);
  const std::vector<std::string> names = fields_of(line);
  int rows = 0, near = 0;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = fields_of(line);
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < fields.size(); ++i) row[names.at(i)] = fields[i];
    const std::string &algorithm = row["algorithm"], &network = row["network"];
    const auto has = [&](const char* word) { return network.find(word) != std::string::npos; };
    if (row["collective"] != "all_reduce" || (algorithm != "auto" && algorithm != "NVLS")) continue;
    if (has("TCPXO") || row["size_gib"].empty() || row["note"].find("HCA down") != std::string::npos) continue;
    const int ranks = std::stoi(row["gpus"]), rack = ranks <= 72 ? 72 : 64;
    const bool racks = row["gpu"].starts_with("gb") && !has("off");
    const int per_node = std::min(ranks, racks ? rack : std::stoi(row["per_node"]));
    const double bytes = std::stod(row["size_gib"]) * 0x1p30, share = has("EFA") || has("RoCE") ? 0.9 : 0;
    const double seconds = 1e-6 * us(machine.at(row["gpu"]), Collective::all_reduce, bytes, ranks, per_node, share);
    const double bus = 2.0 * (ranks - 1) / ranks * bytes / seconds / 1e9;
    ++rows;
    near += std::abs(bus / std::stod(row["busbw_gb_s"]) - 1) < 0.15 ? 1 : 0;
  }
  EXPECT_GE(rows, 35);
  EXPECT_GE(near, 0.85 * rows) << near << " of " << rows;
}

}  // namespace
}  // namespace harness::sim
