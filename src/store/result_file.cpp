#include "store/result_file.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/text.h"
#include "base/units.h"
#include "store/atomic_file.h"
#include "store/columns.h"

namespace harness::store {
namespace {

using hdf5::Dataset;
using hdf5::Element;
using hdf5::Kind;

template <class Row>
void create_table(hdf5::File& file, const Table& table, const std::vector<Row>& rows, const ColumnList& columns) {
  const RowFormat format = format_for(columns, span_of(rows));
  Dataset dataset = file.create_dataset(table.path, format.element, {rows.size()}, nullptr);
  write_rows(dataset, format, span_of(rows), 0);
}

// Without values, nothing was measured: NaN replaces what an earlier session may have left.
void write_matrix(Dataset& dataset, std::uint64_t block, const std::vector<float>& values) {
  const std::uint64_t wanted = dataset.values_of_row();
  if (!values.empty() && values.size() != wanted) {
    fail("result file: {} expects {} values per block, but got {}", dataset.path(), wanted, values.size());
  }
  const std::vector<float> nothing(values.empty() ? wanted : 0, std::numeric_limits<float>::quiet_NaN());
  dataset.write(Element::of(Kind::float32), block, 1, values.empty() ? nothing.data() : values.data());
}

void create_matrix(hdf5::File& file, const std::string& path, const std::vector<std::uint64_t>& sizes,
                   const std::string& units, const std::vector<std::vector<float>>& measured) {
  const float nothing = std::numeric_limits<float>::quiet_NaN();
  Dataset dataset = file.create_dataset(path, Element::of(Kind::float32), sizes, &nothing);
  file.set_attribute(path, "units", units);
  for (std::size_t block = 0; block < measured.size(); ++block) {
    if (!measured[block].empty()) write_matrix(dataset, block, measured[block]);
  }
}

void write_attributes(hdf5::File& file, const Result& result) {
  for (const Column& column : columns_of<Result>()) {
    if (column.kind == Kind::text) {
      file.set_attribute("/run", column.name, std::get<std::string>(column.get(&result)));
    } else {
      const RowFormat format{Element::of(column.kind), {column}};
      file.write_attribute("/run", column.name, format.element, encode(format, span_of(result), 0).data());
    }
  }
}

void write_warning(Dataset& warnings, std::uint64_t row, const std::string& text) {
  const bool last = row + 1 == warnings.rows();
  hdf5::write_text(warnings, row, last ? "There were more warnings than this file has room for." : text);
}

void create_objects(hdf5::File& file, const Result& result, RunState state) {
  file.set_attribute("/", "schema", std::string(schema_name));
  constexpr std::int64_t version = schema_version;
  file.write_attribute("/", "schema_version", Element::of(Kind::int64), &version);
  file.set_attribute("/", "tool_version", result.tool_version);
  file.set_attribute("/", "created", result.created);
  file.set_attribute("/", "run_uuid", result.run_uuid);

  // Objects that are rewritten later come first, where no object's length can shift them across a page.
  file.create_group("/run");
  hdf5::create_text(file, "/run/state", name_of(state), 16);
  Dataset sessions = file.create_dataset("/run/sessions", Element::of(Kind::int32), {}, nullptr);
  sessions.write(Element::of(Kind::int32), 0, 1, &result.sessions);
  write_attributes(file, result);
  hdf5::create_text(file, "/run/config_yaml", result.config_text);
  hdf5::create_text(file, "/run/argv", result.argv);
  hdf5::create_texts(file, "/run/overrides", result.overrides);
  hdf5::create_texts(file, "/run/variables", result.variables);
  Dataset warnings = file.create_dataset("/run/warnings", Element::of(Kind::text, warning_bytes),
                                         {ResultFile::most_warnings}, nullptr);
  const std::size_t kept = std::min(result.warnings.size(), ResultFile::most_warnings);
  for (std::size_t i = 0; i < kept; ++i) write_warning(warnings, i, result.warnings[i]);

  const std::uint64_t blocks = result.blocks.size();
  each_table(result, [&](const Table& table, const auto& rows, const auto& columns) {
    if (!table.by_block) return create_table(file, table, rows, columns);  // no copy: a timeline takes gigabytes
    auto of_blocks = rows;
    of_blocks.resize(blocks);
    create_table(file, table, of_blocks, columns);
  });
  hdf5::create_text(file, "/node_facts", result.doctor.facts);

  const auto steps = static_cast<std::uint64_t>(result.warmup_steps) + static_cast<std::uint64_t>(result.steps);
  create_matrix(file, "/step_seconds", {blocks, steps}, "s", result.step_seconds);
  create_matrix(file, "/losses", {blocks, steps}, "1", result.losses);
  create_matrix(file, "/rank_seconds", {blocks, steps, static_cast<std::uint64_t>(result.ranks)}, "s",
                result.rank_seconds);
}

void put_in_place(const std::string& path, const Result& result, RunState state, bool overwrite) {
  AtomicFile place(path, overwrite);
  try {
    hdf5::File file = hdf5::File::create(place.temporary_path());
    place.protect();
    file.reserve(most_bytes(result));
    create_objects(file, result, state);
    file.flush(true);
    const std::int64_t bytes = file.bytes();
    file.close();
    if (::truncate(place.temporary_path().c_str(), bytes) != 0)
      fail("its size cannot be set: {}", std::strerror(errno));
  } catch (const Error& error) {
    fail("cannot write {}: {}", path, error.what());
  }
  place.put_in_place();
}

}  // namespace

ResultFile::ResultFile(const std::string& path)
    : file_(open_result(path, true)),
      variables_(hdf5::read_texts(file_, "/run/variables")),
      step_seconds_(file_.dataset("/step_seconds", 2)),
      losses_(file_.dataset("/losses", 2)),
      rank_seconds_(file_.dataset("/rank_seconds", 3)),
      warnings_(file_.dataset("/run/warnings", 1)),
      sessions_(file_.dataset("/run/sessions", 0)),
      state_(file_.dataset("/run/state", 0)) {
  for (const auto& text : hdf5::read_texts(file_, "/run/warnings")) warnings_used_ += !text.empty();
}

template <class Row, class... Variables>
void ResultFile::write_row(const char* path, int at, const Row& row, const Variables&... variables) {
  Dataset table = file_.dataset(path, 1);
  const RowFormat format = format_in(table, columns_of<Row>(variables...));
  write_rows(table, format, span_of(row), static_cast<std::size_t>(at));
}

void ResultFile::write_state(RunState state) {
  hdf5::write_text(state_, 0, name_of(state));
  file_.flush(true);
}

void ResultFile::reopen_block(int block, const ResultBlock& planned) {
  write_row("/blocks", block, planned);
  file_.flush(false);
}

void ResultFile::write_block(int block, const ResultBlock& row, const std::vector<float>& step_seconds,
                             const std::vector<float>& losses, const std::vector<float>& rank_seconds) {
  const auto index = static_cast<std::uint64_t>(block);
  write_matrix(step_seconds_, index, step_seconds);
  write_matrix(losses_, index, losses);
  write_matrix(rank_seconds_, index, rank_seconds);
  // The row marks the block as present, so it is written after the data.
  file_.flush(false);
  write_row("/blocks", block, row);
  file_.flush(true);
}

void ResultFile::write_gpu(int block, const ResultGpu& row) {
  if (file_.contains("/gpu")) write_row("/gpu", block, row);
}

void ResultFile::write_conditions(int block, const machine::Conditions& row) {
  if (file_.contains("/conditions")) write_row("/conditions", block, row);
}

void ResultFile::write_case(int at, const ResultCase& row) {
  if (row.settings.size() != variables_.size())
    fail("result file: case {} has {} settings for {} variables", row.name, row.settings.size(), variables_.size());
  write_row("/cases", at, row, variables_);
  file_.flush(true);
}

void ResultFile::add_warning(const std::string& text) {
  if (text.empty() || warnings_used_ >= warnings_.rows()) return;  // the last entry says that more came
  write_warning(warnings_, warnings_used_++, text);
  file_.flush(true);
}

void ResultFile::begin_session(int sessions) {
  const std::int32_t value = sessions;
  sessions_.write(Element::of(Kind::int32), 0, 1, &value);
  write_state(RunState::running);
}

void ResultFile::finish(RunState state) {
  file_.flush(true);
  write_state(state);
}

std::int64_t most_bytes(const Result& plan, const TimelineRows& expected) {
  // Bytes for a row of texts of unknown lengths, for the output of NCCL and cuBLASLt, for objects and their attributes.
  constexpr std::int64_t texts = 512, sayings = 1 << 16, objects = 1 << 20;
  const std::int64_t blocks = std::ssize(plan.blocks), cases = std::ssize(plan.cases);
  const std::int64_t steps = std::int64_t{plan.warmup_steps} + plan.steps, ranks = plan.ranks;
  std::int64_t bytes = objects + blocks * steps * (2 + ranks) * 4;
  each_table(plan, [&]<class Row>(const Table& table, const std::vector<Row>& rows, const ColumnList& columns) {
    std::int64_t count = table.by_block ? blocks : std::ssize(rows);
    // These are known once the cases are: a row for each rank.
    if (std::is_same_v<Row, ResultRole> || std::is_same_v<Row, ResultSplit>) count = cases * ranks;
    if (std::is_same_v<Row, ResultInterval>) count += expected.intervals;
    if (std::is_same_v<Row, ResultTotal>) count += expected.totals;
    bytes += count * static_cast<std::int64_t>(format_for(columns, span_of(rows)).element.bytes);
  });
  bytes += cases * (sayings + texts * std::ssize(plan.variables)) + ranks * texts;
  bytes += static_cast<std::int64_t>(ResultFile::most_warnings * warning_bytes);
  return bytes + std::ssize(plan.doctor.facts) + std::ssize(plan.config_text);
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

std::unique_ptr<ResultFile> ResultFile::create(const std::string& path, const Result& plan, bool overwrite) {
  put_in_place(path, plan, RunState::running, overwrite);
  return std::make_unique<ResultFile>(path);
}

void write_result(const std::string& path, const Result& whole) {
  put_in_place(path, whole, whole.state, true);
}

}  // namespace harness::store
