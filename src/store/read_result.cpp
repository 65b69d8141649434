#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/text.h"
#include "config/model.h"
#include "store/columns.h"
#include "store/lock.h"
#include "store/result_file.h"

namespace harness::store {
namespace {

using hdf5::Element;
using hdf5::Kind;

void require_plain_file(const std::string& path, bool writable) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) fail("{}: no such file{}", path, preparation_of(path));
  if (error) fail("{} cannot be opened: {}", path, error.message());
  if (std::filesystem::is_directory(status)) fail("{} is a directory; give a result file in it", path);
  // Opening a FIFO would block forever.
  if (!std::filesystem::is_regular_file(status)) fail("{} is not a regular file, so it is not a harness result", path);
  if (faccessat(AT_FDCWD, path.c_str(), writable ? R_OK | W_OK : R_OK, AT_EACCESS) != 0) {
    fail("{} cannot be opened for {}: {}", path, writable ? "writing" : "reading", std::strerror(errno));
  }
  if (!hdf5::File::is_hdf5(path)) fail("{} is not an HDF5 file, so it is not a harness result", path);
}

// Returns the result of read(), and makes its errors those of an untrusted file at `path`.
template <class Read>
auto read_from(const std::string& path, Read&& read) {
  try {
    return read();
  } catch (const Error& failure) {
    if (std::string_view(failure.what()).find("truncated file") == std::string_view::npos)
      fail("{} is damaged or was not written by harness: {}", path, failure.what());
    std::error_code error;
    fail("{} is truncated to {} bytes: copy it again; a result file has its full size from the start", path,
         std::filesystem::file_size(path, error));
  } catch (const std::bad_alloc&) {
    fail("{} does not fit into memory", path);
  } catch (const std::length_error&) {
    fail("{} does not fit into memory", path);
  }
}

void read_attributes(const hdf5::File& file, Result& result) {
  for (const Column& column : columns_of<Result>()) {
    if (column.optional && !file.has_attribute("/run", column.name)) continue;
    const std::vector<char> value = file.read_attribute("/run", column.name, column.kind);
    decode({Element::of(column.kind, value.size()), {column}}, value.data(), &result);
  }
}

// Returns a row for each block that ran, with all further dimensions flattened.
std::vector<std::vector<float>> read_matrix(const hdf5::File& file, const std::string& path,
                                            const std::vector<std::uint64_t>& sizes, const Result& result) {
  const hdf5::Dataset dataset = file.dataset(path, static_cast<int>(sizes.size()));
  if (dataset.sizes() != sizes) fail("the dimensions of {} do not match the run's blocks, steps and ranks", path);
  dataset.require_kind(Kind::float32);
  std::vector<std::vector<float>> values(sizes[0]);
  for (std::size_t block = 0; block < sizes[0]; ++block) {
    if (!result.blocks[block].has_run()) continue;
    const std::vector<char> bytes = dataset.read(Element::of(Kind::float32), block, 1);
    values[block].resize(bytes.size() / sizeof(float));
    std::memcpy(values[block].data(), bytes.data(), bytes.size());
  }
  return values;
}

void read_tables(const hdf5::File& file, const ReadOptions& options, Result& result) {
  each_table(result, [&]<class Row>(const Table& table, std::vector<Row>& rows, const ColumnList& columns) {
    if (of_a_timeline<Row> && !options.timeline) return;
    if (table.optional && !file.contains(table.path)) return;
    const hdf5::Dataset dataset = file.dataset(table.path, 1);
    Row example;  // has the members that the file lacks
    if constexpr (std::is_same_v<Row, ResultCase>) example.settings.resize(result.variables.size());
    rows.assign(dataset.rows(), example);
    const RowFormat format = format_in(dataset, columns);
    const std::vector<char> bytes = dataset.read(format.element, 0, rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) decode(format, bytes.data() + i * format.element.bytes, &rows[i]);
    if constexpr (of_a_timeline<Row>)  // older files have reserved rows that were never used
      std::erase_if(rows, [](const Row& row) { return row.case_index < 0; });
  });
  if (file.contains("/node_facts")) result.doctor.facts = hdf5::read_text(file, "/node_facts");
}

void check_run(const Result& r) {
  // A table without rows says nothing.
  const auto rows = static_cast<std::int64_t>(r.rank_table.size());
  if (rows != 0 && (r.ranks > rows || r.nodes > rows)) {
    fail("attribute {} of /run is {}; /ranks has {} rows", r.ranks > rows ? "ranks" : "nodes",
         r.ranks > rows ? r.ranks : r.nodes, rows);
  }
  require_within("/run/sessions", r.sessions, between(0, 1'000'000), {});
  if (!(r.confidence > 0 && r.confidence < 1)) fail("attribute confidence of /run is {}, which is none", r.confidence);
  const config::Model& m = r.model;
  if (m.layers == 0 && m.hidden == 0 && m.heads == 0 && m.vocab == 0 && m.sequence == 0) return;  // no model
  if (const std::string why = config::why_impossible(m); !why.empty()) fail("/run: {}", why);
}

void check_cases(const Result& r) {
  for (const ResultCase& c : r.cases) {
    if (c.status == CaseStatus::impossible || c.ranks == 0) continue;
    for (const program::Axis axis : program::visible_axes) {
      require_within(fmt::format("column {} of /cases", program::row_of(axis).key), c.layout[axis], between(1, c.ranks),
                     {});
    }
  }
}

void check_roles(const Result& r) {
  std::int32_t case_index = -1, rank = 0;
  for (const ResultRole& row : r.roles) {
    const ResultCase& c = r.at(row);
    const bool next_case = row.case_index > case_index && (case_index < 0 || rank == r.case_at(case_index).ranks);
    if (next_case) rank = 0;
    if (!(next_case || row.case_index == case_index) || row.rank != rank)
      fail("/roles has no row, or not in its place, for rank {} of case {}", rank, row.case_index);
    case_index = row.case_index;
    ++rank;
    require_within("column role of /roles", row.role, between(0, c.ranks - 1), {});
    for (const program::Axis axis : program::visible_axes) {
      require_within(fmt::format("column {} of /roles", program::name_of(axis)), row.at[axis],
                     between(0, c.layout[axis] - 1), {});
    }
  }
  if (case_index >= 0 && rank != r.case_at(case_index).ranks)
    fail("/roles has {} rows for the {} ranks of case {}", rank, r.case_at(case_index).ranks, case_index);
}

void check_blocks(const Result& r) {
  for (const auto& [path, rows] : {std::pair("/gpu", r.gpu.size()), std::pair("/conditions", r.conditions.size())}) {
    if (rows != 0 && rows != r.blocks.size()) fail("{} has {} rows for {} blocks", path, rows, r.blocks.size());
  }
}

void check_times(std::string_view path, const std::vector<std::vector<float>>& blocks) {
  for (const auto& block : blocks) {
    for (const float seconds : block) {
      if (seconds < 0 || seconds > largest_amount)
        fail("{} has {}; possible here is 0 to {}, or nan", path, seconds, largest_amount);
    }
  }
}

// Throws Error for numbers that no run can have, alone or together: indices, counts and amounts.
void require_plausible(const Result& result) {
  const Counts counts{result.case_count(), static_cast<std::int64_t>(result.blocks.size()), result.ranks, result.nodes,
                      result.sessions};
  require_within_bounds(columns_of<Result>(), "attribute", "/run", span_of(result), counts);
  check_run(result);
  each_table(result, [&](const Table& table, const auto& rows, const auto& columns) {
    require_within_bounds(columns, "column", table.path, span_of(rows), counts);
  });
  check_cases(result);
  check_roles(result);
  check_blocks(result);
}

Result read_open(const hdf5::File& file, const std::string& path, const ReadOptions& options) {
  Result result;
  result.tool_version = file.text_attribute("/", "tool_version");
  result.created = file.text_attribute("/", "created");
  result.run_uuid = file.text_attribute("/", "run_uuid");
  read_attributes(file, result);
  const std::string state = hdf5::read_text(file, "/run/state");
  result.state = static_cast<RunState>(number_of_word("/run/state", state, words_to(RunState::partial)));
  if (result.state == RunState::running) result.standing = standing_of(path).text;
  const std::vector<char> sessions = file.dataset("/run/sessions", 0).read(Element::of(Kind::int32), 0, 1);
  std::memcpy(&result.sessions, sessions.data(), sizeof result.sessions);
  result.config_text = hdf5::read_text(file, "/run/config_yaml");
  result.argv = hdf5::read_text(file, "/run/argv");
  result.overrides = hdf5::read_texts(file, "/run/overrides");
  result.variables = hdf5::read_texts(file, "/run/variables");
  result.warnings = hdf5::read_texts(file, "/run/warnings");
  std::erase(result.warnings, "");
  read_tables(file, options, result);
  require_plausible(result);
  result.model = result.model.resolved();
  const std::uint64_t blocks = result.blocks.size();
  const auto steps = static_cast<std::uint64_t>(result.warmup_steps) + static_cast<std::uint64_t>(result.steps);
  result.step_seconds = read_matrix(file, "/step_seconds", {blocks, steps}, result);
  result.losses = read_matrix(file, "/losses", {blocks, steps}, result);
  if (options.rank_seconds) {
    result.rank_seconds =
        read_matrix(file, "/rank_seconds", {blocks, steps, static_cast<std::uint64_t>(result.ranks)}, result);
  }
  check_times("/step_seconds", result.step_seconds);
  check_times("/rank_seconds", result.rank_seconds);
  return result;
}

}  // namespace

hdf5::File open_result(const std::string& path, bool writable) {
  require_plain_file(path, writable);
  hdf5::File file = read_from(path, [&] { return hdf5::File::open(path, writable); });
  const auto text_of = [&](const char* name) {
    return read_from(path, [&] { return file.has_attribute("/", name) ? file.text_attribute("/", name) : ""; });
  };
  if (text_of("schema") != schema_name) {
    fail("{} is an HDF5 file but not a harness result: it has no root attribute schema = \"{}\"", path, schema_name);
  }
  const std::int64_t version = read_from(path, [&] { return file.number_attribute("/", "schema_version"); });
  if (version < 1 || version > schema_version) {
    const std::string writer = text_of("tool_version");
    fail("{} was written by {} with file schema {}; this program reads schemas up to {}: use a newer harness", path,
         writer.empty() ? "a newer harness" : writer, version, schema_version);
  }
  return file;
}

Result read_result(const std::string& path, const ReadOptions& options) {
  const hdf5::File file = open_result(path, false);
  return read_from(path, [&] { return read_open(file, path, options); });
}

}  // namespace harness::store
