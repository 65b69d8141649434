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

template <class Row>
void create_table(hdf5::File& file, const Table& table, const std::vector<Row>& rows, const Columns<Row>& columns,
                  const Result& plan, const ResultCapacity& capacity) {
  if (table.filled == Filled::at_once) {
    const RowFormat format = format_for(columns.list(), span_of(rows));
    Dataset dataset = file.create_dataset(table.path, format.element, {rows.size()}, nullptr);
    write_rows(dataset, format, span_of(rows), 0);
    return;
  }
  const RowFormat format = format_for(columns.list(), {});
  if (table.filled == Filled::by_block) {
    const std::vector<Row> empty(plan.blocks.size());
    Dataset dataset = file.create_dataset(table.path, format.element, {empty.size()}, nullptr);
    write_rows(dataset, format, span_of(empty), 0);
    return;
  }
  if constexpr (AboutACase<Row>) {
    Row empty;
    empty.case_index = -1;
    const bool intervals = std::is_same_v<Row, ResultInterval>;
    const auto count = static_cast<std::uint64_t>(intervals ? capacity.intervals : capacity.totals);
    file.create_dataset(table.path, format.element, {count}, encode(format, span_of(empty), 0).data());
  }
}

void create_matrix(hdf5::File& file, const std::string& path, const std::vector<std::uint64_t>& sizes,
                   const std::vector<std::string>& labels, const std::string& units) {
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  Dataset dataset = file.create_dataset(path, Element::of(Kind::float32), sizes, &nothing);
  dataset.set_labels(labels);
  file.set_attribute(path, "units", units);
}

void write_attributes(hdf5::File& file, const Result& plan) {
  for (const Column& column : run_attributes().list()) {
    const void* const member = column.in(const_cast<Result*>(&plan));
    const auto write = [&](const auto& value) { file.set_attribute("/run", column.name, value); };
    switch (column.member) {
      case Member::key:
        break;
      case Member::int32:
        write(std::int64_t{*static_cast<const std::int32_t*>(member)});
        break;
      case Member::flag:
        write(std::int64_t{*static_cast<const bool*>(member)});
        break;
      case Member::int64:
        write(*static_cast<const std::int64_t*>(member));
        break;
      case Member::uint64:
        write(*static_cast<const std::uint64_t*>(member));
        break;
      case Member::real:
        write(*static_cast<const double*>(member));
        break;
      case Member::text:
      case Member::word:
        write(text_in(column, &plan));
        break;
    }
  }
}

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
  write_attributes(file, plan);
  hdf5::create_text(file, "/run/config_yaml", plan.config_text);
  hdf5::create_text(file, "/run/argv", plan.argv);
  hdf5::create_texts(file, "/run/overrides", plan.overrides);
  hdf5::create_texts(file, "/run/variables", plan.variables);
  Dataset warnings =
      file.create_dataset("/run/warnings", Element::of(Kind::text, warning_bytes),
                          {static_cast<std::uint64_t>(std::max<std::int64_t>(capacity.warnings, 1))}, nullptr);
  const std::size_t kept = std::min<std::size_t>(plan.warnings.size(), warnings.rows());
  for (std::size_t i = 0; i < kept; ++i) hdf5::write_text(warnings, i, plan.warnings[i]);

  each_table(plan, [&](const Table& table, const auto& rows, const auto& columns) {
    create_table(file, table, rows, columns, plan, capacity);
  });
  hdf5::create_text(file, "/node_facts", plan.doctor.facts);

  const std::uint64_t blocks = plan.blocks.size();
  const auto steps = static_cast<std::uint64_t>(plan.warmup_steps) + static_cast<std::uint64_t>(plan.steps);
  create_matrix(file, "/step_seconds", {blocks, steps}, {"block", "step"}, "s");
  create_matrix(file, "/losses", {blocks, steps}, {"block", "step"}, "1");
  create_matrix(file, "/rank_seconds", {blocks, steps, static_cast<std::uint64_t>(plan.ranks)},
                {"block", "step", "rank"}, "s");
}

}  // namespace harness::store
