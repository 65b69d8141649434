#include "store/create.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "store/columns.h"
#include "store/imprint.h"
#include "store/schema.h"
#include "store/table.h"

namespace harness::store {
namespace {

using hdf5::Dataset;
using hdf5::Element;
using hdf5::Kind;

template <class Row, class Columns>
void create_table(hdf5::File& file, const std::string& path, const std::vector<Row>& rows, Columns columns,
                  const Row& example = {}) {
  const Element element = hdf5::declare(rows, columns, example);
  Dataset dataset = file.create_dataset(path, element, {rows.size()}, nullptr);
  hdf5::write_rows(dataset, element, rows.data(), rows.size(), 0, columns);
}

// A table of rows that come later; until then each is `empty`.
template <class Row, class Columns>
void reserve_table(hdf5::File& file, const std::string& path, std::int64_t rows, const Row& empty, Columns columns) {
  const Element element = hdf5::declare<Row>({}, columns);
  const auto fill = hdf5::encode(element, &empty, 1, 0, columns);
  file.create_dataset(path, element, {static_cast<std::uint64_t>(rows)}, fill.data());
}

void create_matrix(hdf5::File& file, const std::string& path, const std::vector<std::uint64_t>& sizes,
                   const std::vector<std::string>& labels, const std::string& units) {
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  Dataset dataset = file.create_dataset(path, Element::of(Kind::float32), sizes, &nothing);
  dataset.set_labels(labels);
  file.set_attribute(path, "units", units);
}

struct WriteAttribute {
  hdf5::File& file;
  template <class T>
  void operator()(const char* name, const T& value, Since /*since*/ = {}) const {
    if constexpr (std::is_enum_v<T>) {
      file.set_attribute("/run", name, std::string(config::word_of(value, config::words_for(value))));
    } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, std::int32_t>) {
      file.set_attribute("/run", name, std::int64_t{value});
    } else {
      file.set_attribute("/run", name, value);
    }
  }
};

void check_plan(const Result& plan) {
  for (const ResultCase& planned : plan.cases) {
    if (planned.settings.size() != plan.variables.size()) {
      fail("result file: case {} has {} settings for {} variables", planned.name, planned.settings.size(),
           plan.variables.size());
    }
  }
  for (const auto& block : plan.blocks) {
    if (block.case_index < 0 || block.case_index >= static_cast<int>(plan.cases.size())) {
      fail("result file: a block refers to case {}, but there are {} cases", block.case_index, plan.cases.size());
    }
  }
}

}  // namespace

void create_objects(hdf5::File& file, const Result& plan, const ResultCapacity& capacity) {
  check_plan(plan);
  file.set_attribute("/", "schema", std::string(schema_name));
  file.set_attribute("/", "schema_version", std::int64_t{schema_version});
  file.set_attribute("/", "tool_version", plan.tool_version);
  file.set_attribute("/", "created", plan.created);
  file.set_attribute("/", "run_uuid", plan.run_uuid);

  // What is rewritten later comes first, where no object's length can shift it across a page.
  file.create_group("/run");
  hdf5::create_text(file, "/run/state", name_of(RunState::running), 16);
  Dataset sessions = file.create_dataset("/run/sessions", Element::of(Kind::int32), {}, nullptr);
  sessions.write(Element::of(Kind::int32), 0, 1, &plan.sessions);
  create_imprint(file);
  run_attributes(WriteAttribute{file}, plan);
  hdf5::create_text(file, "/run/config_yaml", plan.config_text);
  hdf5::create_text(file, "/run/argv", plan.argv);
  hdf5::create_texts(file, "/run/overrides", plan.overrides);
  hdf5::create_texts(file, "/run/variables", plan.variables);
  const auto pairs = [](auto& visit, auto& row) { pair_columns(visit, row); };
  create_table(file, "/run/environment", plan.environment, pairs);
  create_table(file, "/run/identity", plan.identity, pairs);
  Dataset warnings =
      file.create_dataset("/run/warnings", Element::of(Kind::text, warning_bytes),
                          {static_cast<std::uint64_t>(std::max<std::int64_t>(capacity.warnings, 1))}, nullptr);
  const std::size_t kept = std::min<std::size_t>(plan.warnings.size(), warnings.rows());
  for (std::size_t i = 0; i < kept; ++i) hdf5::write_text(warnings, i, plan.warnings[i]);

  create_table(file, "/ranks", plan.rank_table, [](auto& visit, auto& row) { rank_columns(visit, row); });
  ResultCase example;
  example.settings.resize(plan.variables.size());
  create_table(
      file, "/cases", plan.cases, [&](auto& visit, auto& row) { case_columns(visit, row, plan.variables); }, example);
  create_table(file, "/roles", plan.roles, [](auto& visit, auto& row) { role_columns(visit, row); });
  create_table(file, "/blocks", plan.blocks, [](auto& visit, auto& row) { block_columns(visit, row); });

  create_table(file, "/tuning", plan.tuning, pairs);
  create_table(file, "/timeline_splits", plan.splits, [](auto& visit, auto& row) { split_columns(visit, row); });
  create_table(file, "/timeline_operations", plan.operations,
               [](auto& visit, auto& row) { operations_columns(visit, row); });
  create_table(file, "/gradients", plan.gradients, [](auto& visit, auto& row) { gradient_columns(visit, row); });
  create_table(file, "/nccl_calls", plan.nccl_calls, [](auto& visit, auto& row) { nccl_call_columns(visit, row); });
  create_table(file, "/nccl_facts", plan.nccl_facts, [](auto& visit, auto& row) { nccl_fact_columns(visit, row); });
  create_table(file, "/points", plan.points, [](auto& visit, auto& row) { point_columns(visit, row); });
  const std::vector<ResultGpu> no_gpu(plan.blocks.size());
  create_table(file, "/gpu", no_gpu, [](auto& visit, auto& row) { gpu_columns(visit, row); });
  const std::vector<machine::Conditions> no_conditions(plan.blocks.size());
  create_table(file, "/conditions", no_conditions, [](auto& visit, auto& row) { conditions_columns(visit, row); });
  create_table(file, "/findings", plan.doctor.findings, [](auto& visit, auto& row) { finding_columns(visit, row); });
  hdf5::create_text(file, "/node_facts", plan.doctor.facts);
  create_table(file, "/ladder", plan.ladder, [](auto& visit, auto& row) { rung_columns(visit, row); });
  create_table(file, "/climb", plan.climb, [](auto& visit, auto& row) { stage_columns(visit, row); });

  const std::uint64_t blocks = plan.blocks.size();
  const auto steps = static_cast<std::uint64_t>(plan.warmup_steps) + static_cast<std::uint64_t>(plan.steps);
  create_matrix(file, "/step_seconds", {blocks, steps}, {"block", "step"}, "s");
  create_matrix(file, "/losses", {blocks, steps}, {"block", "step"}, "1");
  create_matrix(file, "/rank_seconds", {blocks, steps, static_cast<std::uint64_t>(plan.ranks)},
                {"block", "step", "rank"}, "s");

  ResultInterval no_interval;
  no_interval.case_index = -1;
  reserve_table(file, "/timeline", capacity.intervals, no_interval,
                [](auto& visit, auto& row) { interval_columns(visit, row); });
  ResultTotal no_total;
  no_total.case_index = -1;
  reserve_table(file, "/timeline_totals", capacity.totals, no_total,
                [](auto& visit, auto& row) { total_columns(visit, row); });
}

}  // namespace harness::store
