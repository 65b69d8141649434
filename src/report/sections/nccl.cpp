#include <fmt/format.h>

#include <array>
#include <map>

#include "config/backend.h"
#include "report/scale.h"
#include "report/sections.h"

namespace harness::report {
namespace {

constexpr const char* not_honoured = "not honoured";
constexpr const char* not_confirmed = "not confirmed";

std::string bytes_of(std::int64_t bytes) {
  const Scale scale = scale_of_bytes(std::array{static_cast<double>(bytes)});
  return bytes < 1024 ? fmt::format("{} B", bytes) : scale.print(static_cast<double>(bytes)) + " " + scale.unit;
}

std::string channels_of(const store::ResultNcclCall& call) {
  if (call.first_channel < 0) return "";
  return call.first_channel == call.last_channel ? std::to_string(call.first_channel)
                                                 : fmt::format("{}–{}", call.first_channel, call.last_channel);
}

Table calls_table(const store::Result& result, bool of_baseline) {
  Table table;
  table.columns = {{"case", true},     {"collective", true}, {"size"},  {"algorithm", true},
                   {"protocol", true}, {"channels"},         {"logged"}};
  for (const store::ResultNcclCall& call : result.nccl_calls) {
    const std::string& name = result.at(call).name;
    if ((result.at(call).role() == store::CaseRole::baseline) != of_baseline) continue;
    table.rows.push_back({name, call.function.empty() ? "not logged" : call.function, bytes_of(call.bytes),
                          call.algorithm, call.protocol, channels_of(call), std::to_string(call.calls)});
  }
  if (of_baseline) table.remove_column(0);
  return table;
}

// All of the baseline's, and of the others those that differ from it.
Table facts_table(const store::Result& result, bool of_baseline) {
  std::map<std::string, std::string> baseline;
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    if (result.at(fact).role() == store::CaseRole::baseline) baseline[fact.name] = fact.value;
  }
  Table table;
  table.columns = {{"case", true}, {"what", true}, {"value", true}};
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    if (fact.name == not_honoured || fact.name == not_confirmed) continue;
    const std::string& name = result.at(fact).name;
    if ((result.at(fact).role() == store::CaseRole::baseline) != of_baseline) continue;
    if (!of_baseline) {
      const auto same = baseline.find(fact.name);
      if (same != baseline.end() && same->second == fact.value) continue;
    }
    table.rows.push_back({name, fact.name, fact.value});
  }
  if (of_baseline) table.remove_column(0);
  return table;
}

void requests(const store::Result& result, const char* outcome, const char* words, Section& section) {
  List list;
  for (const store::ResultNcclFact& fact : result.nccl_facts) {
    if (fact.name != outcome) continue;
    list.items.push_back(result.at(fact).name + ": " + fact.value);
  }
  if (list.items.empty()) return;
  section.add(Paragraph{words, true});
  section.add(std::move(list));
}

}  // namespace

Section nccl_section(const store::Result& result) {
  Section section{"nccl", "What NCCL did", {}};
  if (result.nccl_calls.empty() && result.nccl_facts.empty()) {
    if (config::traits_of(result.backend).uses_nccl) {
      section.add(Paragraph{"The file does not show it: on one rank, NCCL has nothing to do."});
    }
    return section;
  }
  requests(result, not_honoured, "Requested but not done, so these cases have no verdict:", section);
  requests(result, not_confirmed, "Requested, but NCCL's log does not show whether it was done:", section);
  const auto add = [&](Table table, const char* caption, bool folded) {
    if (!table.rows.empty()) section.add(Numbers{caption, std::move(table), folded});
  };
  add(calls_table(result, true),
      "Collectives of the baseline by NCCL's own log, which has each whenever it is enqueued: before the steps and in "
      "them",
      false);
  add(calls_table(result, false), "Collectives of the other cases", true);
  add(facts_table(result, true), "What NCCL reported in the baseline", true);
  add(facts_table(result, false), "What it reported differently in other cases", true);
  return section;
}

}  // namespace harness::report
