#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/units.h"
#include "store/atomic_file.h"
#include "store/columns.h"
#include "store/result_file.h"

namespace harness::store {
namespace {

using hdf5::Dataset;
using hdf5::Element;
using hdf5::Kind;

template <class Row>
std::uint64_t rows_of(const Table& table, const std::vector<Row>& rows, const Result& plan,
                      const ResultCapacity& capacity) {
  if (table.filled == Filled::by_block) return plan.blocks.size();
  if (table.filled == Filled::at_once) return rows.size();
  return static_cast<std::uint64_t>(std::is_same_v<Row, ResultInterval> ? capacity.intervals : capacity.totals);
}

template <class Row>
void create_table(hdf5::File& file, const Table& table, const std::vector<Row>& rows, const Columns<Row>& columns,
                  const Result& plan, const ResultCapacity& capacity) {
  const std::uint64_t count = rows_of(table, rows, plan, capacity);
  const bool at_once = table.filled == Filled::at_once;
  const RowFormat format = format_for(columns.list(), at_once ? span_of(rows) : RowSpan{});
  if constexpr (AboutACase<Row>) {
    if (table.filled == Filled::by_case) {
      Row empty;
      empty.case_index = -1;
      file.create_dataset(table.path, format.element, {count}, encode(format, span_of(empty), 0).data());
      return;
    }
  }
  Dataset dataset = file.create_dataset(table.path, format.element, {count}, nullptr);
  write_rows(dataset, format, span_of(at_once ? rows : std::vector<Row>(count)), 0);
}

void create_matrix(hdf5::File& file, const std::string& path, const std::vector<std::uint64_t>& sizes,
                   const std::string& units) {
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  file.create_dataset(path, Element::of(Kind::float32), sizes, &nothing);
  file.set_attribute(path, "units", units);
}

void write_attributes(hdf5::File& file, const Result& plan) {
  for (const Column& column : columns_of<Result>().list()) {
    if (column.kind() == Kind::text) {
      file.set_attribute("/run", column.name, text_in(column, &plan));
    } else {
      const RowFormat format{Element::of(column.kind()), {column}};
      file.write_attribute("/run", column.name, format.element, encode(format, span_of(plan), 0).data());
    }
  }
}

void create_objects(hdf5::File& file, const Result& plan, const ResultCapacity& capacity) {
  file.set_attribute("/", "schema", std::string(schema_name));
  file.set_attribute("/", "schema_version", std::int64_t{schema_version});
  file.set_attribute("/", "tool_version", plan.tool_version);
  file.set_attribute("/", "created", plan.created);
  file.set_attribute("/", "run_uuid", plan.run_uuid);

  // Objects that are rewritten later come first, where no object's length can shift them across a page.
  file.create_group("/run");
  hdf5::create_text(file, "/run/state", name_of(RunState::running), 16);
  Dataset sessions = file.create_dataset("/run/sessions", Element::of(Kind::int32), {}, nullptr);
  sessions.write(Element::of(Kind::int32), 0, 1, &plan.sessions);
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
  create_matrix(file, "/step_seconds", {blocks, steps}, "s");
  create_matrix(file, "/losses", {blocks, steps}, "1");
  create_matrix(file, "/rank_seconds", {blocks, steps, static_cast<std::uint64_t>(plan.ranks)}, "s");
}

void create_whole(const AtomicFile& place, const Result& plan, const ResultCapacity& capacity) {
  hdf5::File file = hdf5::File::create(place.temporary_path());
  place.protect();
  file.reserve(most_bytes(plan, capacity));
  create_objects(file, plan, capacity);
  file.flush(true);
  const std::int64_t bytes = file.bytes();
  file.close();
  if (::truncate(place.temporary_path().c_str(), bytes) != 0) fail("its size cannot be set: {}", std::strerror(errno));
}

void write_blocks(ResultFile& file, const Result& whole) {
  for (std::size_t i = 0; i < whole.blocks.size(); ++i) {
    if (whole.blocks[i].status == BlockStatus::pending || i >= whole.step_seconds.size()) continue;
    const int index = static_cast<int>(i);
    if (i < whole.gpu.size()) file.write_gpu(index, whole.gpu[i]);
    if (i < whole.conditions.size()) file.write_conditions(index, whole.conditions[i]);
    file.write_block(index, whole.blocks[i], whole.step_seconds[i], whole.losses[i], whole.rank_seconds[i]);
  }
}

}  // namespace

std::int64_t most_bytes(const Result& plan, const ResultCapacity& capacity) {
  // A row of texts whose lengths are not known yet, of what NCCL and cuBLASLt say, of objects and their attributes.
  constexpr std::int64_t texts = 512, sayings = 1 << 16, objects = 1 << 20;
  const auto blocks = static_cast<std::int64_t>(plan.blocks.size()),
             cases = static_cast<std::int64_t>(plan.cases.size());
  const std::int64_t steps = std::int64_t{plan.warmup_steps} + plan.steps, ranks = plan.ranks;
  std::int64_t bytes = objects + blocks * steps * (2 + ranks) * 4;
  each_table(plan, [&]<class Row>(const Table& table, const std::vector<Row>& rows, const Columns<Row>& columns) {
    auto count = static_cast<std::int64_t>(rows_of(table, rows, plan, capacity));
    // Known when the cases are: a row for each rank.
    if (std::is_same_v<Row, ResultRole> || std::is_same_v<Row, ResultSplit>) count = cases * ranks;
    bytes += count * static_cast<std::int64_t>(format_for(columns.list(), span_of(rows)).element.bytes);
  });
  bytes += cases * (sayings + texts * static_cast<std::int64_t>(plan.variables.size())) + ranks * texts;
  bytes += capacity.warnings * static_cast<std::int64_t>(warning_bytes);
  return bytes + static_cast<std::int64_t>(plan.doctor.facts.size() + plan.config_text.size());
}

void require_space(const std::string& path, std::int64_t bytes) {
  struct statvfs disk {};
  if (::statvfs(directory_of(path).c_str(), &disk) != 0) return;
  const double free = static_cast<double>(disk.f_bavail) * static_cast<double>(disk.f_frsize);
  if (static_cast<double>(bytes) > free) {
    fail("{} cannot be written: the result needs up to {} there, and the disk has {} left", path,
         show_bytes(static_cast<double>(bytes)), show_bytes(free));
  }
}

std::unique_ptr<ResultFile> ResultFile::create(const std::string& path, const Result& plan,
                                               const ResultCapacity& capacity, bool overwrite) {
  AtomicFile place(path, overwrite);
  try {
    create_whole(place, plan, capacity);
  } catch (const Error& error) {
    fail("cannot write {}: {}", path, error.what());
  }
  place.put_in_place();
  return reopen(path);
}

void rewrite_result(const std::string& path, const Result& whole) {
  AtomicFile place(path, true);
  try {
    create_whole(place, whole,
                 {.intervals = static_cast<std::int64_t>(whole.timeline.size()),
                  .totals = static_cast<std::int64_t>(whole.totals.size())});
    const auto result = ResultFile::reopen(place.temporary_path());
    result->add_timeline(whole.timeline);
    result->add_totals(whole.totals);
    write_blocks(*result, whole);
    result->finish(whole.state);
  } catch (const Error& error) {
    fail("cannot write {}: {}", path, error.what());
  }
  place.put_in_place();
}

}  // namespace harness::store
