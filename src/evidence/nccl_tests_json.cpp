#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "evidence/bandwidths.h"
#include "evidence/json_input.h"

namespace harness::evidence {
namespace {

// Numbers, "nan", and null where nothing was checked.
std::optional<double> measured(const Json& direction, const char* key, double unit) {
  constexpr double none = -1;
  const double value = number_at(direction, key, none);
  return value < 0 ? std::nullopt : std::optional<double>(value * unit);
}

Direction direction_of(const Json& direction) {
  constexpr double micro = 1e-6;
  Direction out{measured(direction, "time", micro), measured(direction, "alg_bw", giga),
                measured(direction, "bus_bw", giga), measured(direction, "nwrong", 1)};
  if (!out.seconds) out.seconds = measured(direction, "cpu_time", micro);
  return out;
}

}  // namespace

Bandwidths nccl_tests_json(const std::string& text) {
  const Json json = parse_json(text);
  Bandwidths out;
  for (const Json& word : at(json, "args")) {
    if (word.is_string() && out.test.empty()) out.test = test_in(word.get_ref<const std::string&>());
  }
  for (const Json& entry : at(json, "env")) {
    if (entry.is_string() && is_of_interest(entry.get_ref<const std::string&>()))
      out.environment.push_back(entry.get<std::string>());
  }
  if (const auto code = static_cast<std::int64_t>(std::clamp(number_at(json, "nccl_version"), 0.0, 1e9)); code > 0)
    out.nccl = fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
  std::set<std::string> seen;
  for (const Json& device : at(json, "devices")) {
    const std::string host = text_at(device, "hostname");
    if (seen.insert(host).second) out.hosts.push_back(host);
    ++out.ranks;
    if (number_at(device, "rank") == 0) ++out.first_ranks;
    if (number_at(device, "group") > 0) out.split = true;
    std::string gpu = text_at(device, "device_info");
    if (gpu.starts_with("NVIDIA ")) gpu.erase(0, 7);
    if (out.gpu.empty()) out.gpu = gpu;
  }
  for (const Json& result : at(json, "results")) {
    SizeRow row;
    row.bytes = static_cast<std::int64_t>(std::clamp(number_at(result, "size"), 0.0, 1e18));
    row.out_of_place = direction_of(at(result, "out_of_place"));
    row.in_place = direction_of(at(result, "in_place"));
    if (out.rows.empty()) out.redop = text_at(result, "redop");
    if (row.seconds() > 0) out.rows.push_back(row);
  }
  const Json& average = at(json, "average_bus_bandwidth");
  if (at(average, "bandwidth").is_number()) out.average_busbw = number_at(average, "bandwidth");
  if (out.rows.empty()) fail("it holds no results");
  std::ranges::stable_sort(out.rows, {}, &SizeRow::bytes);
  return out;
}

}  // namespace harness::evidence
