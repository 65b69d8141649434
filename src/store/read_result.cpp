#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"
#include "config/model.h"
#include "store/columns.h"
#include "store/imprint.h"
#include "store/open_result.h"
#include "store/plausible.h"
#include "store/result_file.h"
#include "store/table.h"

namespace harness::store {
namespace {

using hdf5::Element;
using hdf5::Kind;

struct ReadAttribute {
  const hdf5::File& file;
  template <class T>
  void operator()(const char* name, T& value, Since since = Since::first) const {
    if (since == Since::later && !file.has_attribute("/run", name)) return;
    read(name, value);
  }

 private:
  std::int64_t integer(const char* name) const { return file.number_attribute<std::int64_t>("/run", name); }
  void read(const char* name, std::string& value) const { value = file.text_attribute("/run", name); }
  template <class Number>
  void read(const char* name, Number& value) const {
    value = file.number_attribute<Number>("/run", name);
  }
  void read(const char* name, bool& value) const { value = integer(name) != 0; }
  void read(const char* name, std::int32_t& value) const {
    const std::int64_t found = integer(name);
    value = static_cast<std::int32_t>(found);
    if (value != found) fail("attribute {} of /run is {}, which is no such number", name, found);
  }
  template <class Word>
  requires std::is_enum_v<Word>
  void read(const char* name, Word& value) const {
    const std::string text = file.text_attribute("/run", name);
    for (const auto& [word, meaning] : config::words_for(value)) {
      if (text != word) continue;
      value = meaning;
      return;
    }
    fail("attribute {} of /run has the unknown word {}", name, quote(text));
  }
};

// One vector per block; all further dimensions as one.
std::vector<std::vector<float>> read_matrix(const hdf5::File& file, const std::string& path,
                                            const std::vector<std::uint64_t>& sizes) {
  const hdf5::Dataset dataset = file.dataset(path, static_cast<int>(sizes.size()));
  if (dataset.sizes() != sizes) fail("the dimensions of {} do not match the run's blocks, steps and ranks", path);
  std::size_t row = 1;
  for (std::size_t i = 1; i < sizes.size(); ++i) row *= sizes[i];
  std::vector<std::vector<float>> values(sizes[0], std::vector<float>(row));
  for (std::size_t block = 0; block < sizes[0]; ++block) {
    dataset.read(Element::of(Kind::float32), block, 1, values[block].data());
  }
  return values;
}

template <class Row, class Columns>
std::vector<Row> used_rows(const hdf5::File& file, const std::string& path, Columns columns) {
  auto rows = hdf5::read_rows<Row>(file.dataset(path, 1), columns);
  std::erase_if(rows, [](const Row& row) { return row.case_index < 0; });
  return rows;
}

ColumnsThere columns_in(const hdf5::File& file, const std::string& path) {
  return file.contains(path) ? ColumnsThere(file.dataset(path, 1).element()) : ColumnsThere();
}

// In version 1 of the schema, no two blocks shared workers.
void give_each_block_a_process(std::vector<ResultBlock>& blocks) {
  for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i].process = static_cast<std::int32_t>(i);
}

RunState read_state(const hdf5::File& file) {
  const std::string word = hdf5::read_text(file, "/run/state");
  for (const RunState state : {RunState::running, RunState::complete, RunState::partial}) {
    if (word == name_of(state)) return state;
  }
  fail("/run/state has the unknown word \"{}\"", word);
}

void read_tables(const hdf5::File& file, const ReadOptions& options, Result& result) {
  const auto pairs = [](auto& visit, auto& row) { pair_columns(visit, row); };
  using Pair = std::pair<std::string, std::string>;
  result.environment = hdf5::read_rows<Pair>(file.dataset("/run/environment", 1), pairs);
  result.identity = hdf5::read_rows<Pair>(file.dataset("/run/identity", 1), pairs);
  result.rank_table =
      hdf5::read_rows<ResultRank>(file.dataset("/ranks", 1), [](auto& visit, auto& row) { rank_columns(visit, row); });
  ResultCase example;
  example.settings.resize(result.variables.size());
  const ColumnsThere of_cases = columns_in(file, "/cases");
  result.cases = hdf5::read_rows<ResultCase>(
      file.dataset("/cases", 1), [&](auto& visit, auto& row) { case_columns(visit, row, result.variables, of_cases); },
      example);
  const ColumnsThere of_blocks = columns_in(file, "/blocks");
  result.blocks = hdf5::read_rows<ResultBlock>(file.dataset("/blocks", 1),
                                               [&](auto& visit, auto& row) { block_columns(visit, row, of_blocks); });
  if (!of_blocks.has("process")) give_each_block_a_process(result.blocks);
  // Tables that files of earlier versions do not have.
  const auto optional = [&]<class Row>(std::vector<Row>& rows, const std::string& path, auto columns) {
    if (file.contains(path)) rows = hdf5::read_rows<Row>(file.dataset(path, 1), columns);
  };
  const ColumnsThere role = columns_in(file, "/roles");
  optional(result.roles, "/roles", [&](auto& visit, auto& row) { role_columns(visit, row, role); });
  optional(result.tuning, "/tuning", pairs);
  const ColumnsThere split = columns_in(file, "/timeline_splits");
  optional(result.splits, "/timeline_splits", [&](auto& visit, auto& row) { split_columns(visit, row, split); });
  optional(result.operations, "/timeline_operations", [](auto& visit, auto& row) { operations_columns(visit, row); });
  optional(result.gradients, "/gradients", [](auto& visit, auto& row) { gradient_columns(visit, row); });
  optional(result.nccl_calls, "/nccl_calls", [](auto& visit, auto& row) { nccl_call_columns(visit, row); });
  optional(result.nccl_facts, "/nccl_facts", [](auto& visit, auto& row) { nccl_fact_columns(visit, row); });
  const ColumnsThere point = columns_in(file, "/points");
  optional(result.points, "/points", [&](auto& visit, auto& row) { point_columns(visit, row, point); });
  optional(result.gpu, "/gpu", [](auto& visit, auto& row) { gpu_columns(visit, row); });
  optional(result.conditions, "/conditions", [](auto& visit, auto& row) { conditions_columns(visit, row); });
  optional(result.doctor.findings, "/findings", [](auto& visit, auto& row) { finding_columns(visit, row); });
  if (file.contains("/node_facts")) result.doctor.facts = hdf5::read_text(file, "/node_facts");
  optional(result.ladder, "/ladder", [](auto& visit, auto& row) { rung_columns(visit, row); });
  optional(result.climb, "/climb", [](auto& visit, auto& row) { stage_columns(visit, row); });
  if (!options.timeline) return;
  const ColumnsThere there = columns_in(file, "/timeline");
  result.timeline = used_rows<ResultInterval>(file, "/timeline",
                                              [&](auto& visit, auto& row) { interval_columns(visit, row, there); });
  result.totals =
      used_rows<ResultTotal>(file, "/timeline_totals", [](auto& visit, auto& row) { total_columns(visit, row); });
}

Result read_open(const hdf5::File& file, const ReadOptions& options) {
  Result result;
  result.tool_version = file.text_attribute("/", "tool_version");
  result.created = file.text_attribute("/", "created");
  result.run_uuid = file.text_attribute("/", "run_uuid");
  run_attributes(ReadAttribute{file}, result);
  result.model = result.model.resolved();
  result.state = read_state(file);
  if (result.state == RunState::running) result.standing = standing_of(read_imprint(file));
  file.dataset("/run/sessions", 0).read(Element::of(Kind::int32), 0, 1, &result.sessions);
  result.config_text = hdf5::read_text(file, "/run/config_yaml");
  result.argv = hdf5::read_text(file, "/run/argv");
  result.overrides = hdf5::read_texts(file, "/run/overrides");
  result.variables = hdf5::read_texts(file, "/run/variables");
  result.warnings = hdf5::read_texts(file, "/run/warnings");
  std::erase(result.warnings, "");
  read_tables(file, options, result);
  require_plausible(result);
  const std::uint64_t blocks = result.blocks.size();
  const auto steps = static_cast<std::uint64_t>(result.warmup_steps) + static_cast<std::uint64_t>(result.steps);
  result.step_seconds = read_matrix(file, "/step_seconds", {blocks, steps});
  result.losses = read_matrix(file, "/losses", {blocks, steps});
  if (options.rank_seconds) {
    result.rank_seconds = read_matrix(file, "/rank_seconds", {blocks, steps, static_cast<std::uint64_t>(result.ranks)});
  }
  return result;
}

}  // namespace

Result read_result(const std::string& path, const ReadOptions& options) {
  const hdf5::File file = open_result(path, false);
  try {
    return read_open(file, options);
  } catch (const Error& error) {
    fail("{} is damaged or was not written by harness: {}", path, error.what());
  } catch (const std::bad_alloc&) {
    fail("{} does not fit into memory", path);
  } catch (const std::length_error&) {
    fail("{} does not fit into memory", path);
  }
}

}  // namespace harness::store
