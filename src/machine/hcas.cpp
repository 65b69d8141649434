#include "machine/hcas.h"

#include "base/text.h"
#include "machine/proc.h"

namespace harness::machine {

std::string state_in(std::string_view text) {
  const std::size_t colon = text.find(':');
  return std::string(trim(colon == std::string_view::npos ? text : text.substr(colon + 1)));
}

double rate_in(std::string_view text) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN(), giga = 1e9;
  const std::optional<double> rate = number(take_word(text));
  return rate && take_word(text) == "Gb/sec" ? *rate * giga : unknown;
}

std::vector<HcaPort> find_hcas(const std::filesystem::path& root) {
  std::vector<HcaPort> all;
  const std::filesystem::path devices = root / "sys/class/infiniband";
  for (const std::string& device : names_in(devices)) {
    for (const std::string& port : names_in(devices / device / "ports")) {
      const std::optional<double> port_number = number(port);
      if (!port_number) continue;
      const auto text = [&](const char* file) { return first_line(devices / device / "ports" / port / file); };
      const std::string rate = text("rate");
      all.push_back({.device = device,
                     .port = static_cast<int>(*port_number),
                     .state = state_in(text("state")),
                     .phys_state = state_in(text("phys_state")),
                     .rate = rate,
                     .link_layer = text("link_layer"),
                     .bits_per_s = rate_in(rate)});
    }
  }
  return all;
}

}  // namespace harness::machine
