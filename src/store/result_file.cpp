#include "store/result_file.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "store/columns.h"

namespace harness::store {
namespace {

using hdf5::Dataset;
using hdf5::Element;
using hdf5::Kind;

// A table of which rows are rewritten.
template <class Row>
struct RowTable {
  Dataset dataset;
  RowFormat format;

  RowTable(const hdf5::File& file, const std::string& path, const Columns<Row>& columns)
      : dataset(file.dataset(path, 1)), format(format_in(dataset, columns.list())) {}
  void write(int row, const Row& value) {
    if (row < 0 || static_cast<std::uint64_t>(row) >= dataset.rows()) {
      fail("result file: there is no row {} in {}, which has {} rows", row, dataset.path(), dataset.rows());
    }
    write_rows(dataset, format, span_of(value), static_cast<std::size_t>(row));
  }
};

// A table that rows are appended to, within the size it was made with. Unused rows have case -1.
template <class Row>
struct AppendTable : RowTable<Row> {
  std::size_t used = 0;

  AppendTable(const hdf5::File& file, const std::string& path, const Columns<Row>& columns)
      : RowTable<Row>(file, path, columns) {
    Element case_alone;
    case_alone.add("case", Kind::int32);
    const std::vector<char> bytes = this->dataset.read(case_alone, 0, this->dataset.rows());
    std::vector<std::int32_t> of_rows(bytes.size() / sizeof(std::int32_t));
    if (!bytes.empty()) std::memcpy(of_rows.data(), bytes.data(), bytes.size());
    used += static_cast<std::size_t>(std::ranges::count_if(of_rows, [](std::int32_t c) { return c >= 0; }));
  }
  void append(const std::vector<Row>& rows) {
    const std::uint64_t room = this->dataset.rows();
    if (used + rows.size() > room) {
      fail("{}: {} rows do not fit after the first {} of {}: the file was created for fewer", this->dataset.path(),
           rows.size(), used, room);
    }
    write_rows(this->dataset, this->format, span_of(rows), used);
    used += rows.size();
  }
};

class Hdf5ResultFile final : public ResultFile {
 public:
  explicit Hdf5ResultFile(const std::string& path)
      : file_(open_result(path, true)),
        variables_(hdf5::read_texts(file_, "/run/variables")),
        blocks_(file_, "/blocks", columns_of<ResultBlock>()),
        cases_(file_, "/cases", columns_of<ResultCase>(variables_)),
        step_seconds_(file_.dataset("/step_seconds", 2)),
        losses_(file_.dataset("/losses", 2)),
        rank_seconds_(file_.dataset("/rank_seconds", 3)),
        warnings_(file_.dataset("/run/warnings", 1)),
        sessions_(file_.dataset("/run/sessions", 0)),
        state_(file_.dataset("/run/state", 0)),
        timeline_(file_, "/timeline", columns_of<ResultInterval>()),
        totals_(file_, "/timeline_totals", columns_of<ResultTotal>()) {
    for (const auto& text : hdf5::read_texts(file_, "/run/warnings")) warnings_used_ += !text.empty();
  }

  void write_block(int block, const ResultBlock& row, const std::vector<float>& step_seconds,
                   const std::vector<float>& losses, const std::vector<float>& rank_seconds) override {
    write_matrix(step_seconds_, block, step_seconds);
    write_matrix(losses_, block, losses);
    write_matrix(rank_seconds_, block, rank_seconds);
    // The row says that the block is there, so it follows what it speaks of.
    file_.flush(false);
    blocks_.write(block, row);
    file_.flush(true);
  }

  void write_gpu(int block, const ResultGpu& row) override {
    if (file_.contains("/gpu")) RowTable(file_, "/gpu", columns_of<ResultGpu>()).write(block, row);
  }

  void write_conditions(int block, const machine::Conditions& row) override {
    if (file_.contains("/conditions"))
      RowTable(file_, "/conditions", columns_of<machine::Conditions>()).write(block, row);
  }

  void write_case(int at, const ResultCase& row) override {
    if (row.settings.size() != variables_.size()) {
      fail("result file: case {} has {} settings for {} variables", row.name, row.settings.size(), variables_.size());
    }
    cases_.write(at, row);
    file_.flush(true);
  }

  void add_timeline(const std::vector<ResultInterval>& rows) override {
    timeline_.append(rows);
    file_.flush(true);
  }

  void add_totals(const std::vector<ResultTotal>& rows) override {
    totals_.append(rows);
    file_.flush(true);
  }

  void add_warning(const std::string& text) override {
    const std::uint64_t capacity = warnings_.rows();
    if (text.empty() || warnings_used_ >= capacity) return;  // the last one says that more came
    const bool last = warnings_used_ + 1 == capacity;
    hdf5::write_text(
        warnings_, warnings_used_++,
        last ? "There were more warnings than this file has room for; standard error showed all of them." : text);
    file_.flush(true);
  }

  void begin_session(int sessions) override {
    const std::int32_t value = sessions;
    sessions_.write(Element::of(Kind::int32), 0, 1, &value);
    hdf5::write_text(state_, 0, name_of(RunState::running));
    file_.flush(true);
  }

  void finish(RunState state) override {
    file_.flush(true);
    hdf5::write_text(state_, 0, name_of(state));
    file_.flush(true);
  }

 private:
  // No values at all: nothing was measured, and what an earlier session may have left there goes.
  static void write_matrix(Dataset& dataset, int block, const std::vector<float>& values) {
    const auto row = static_cast<std::uint64_t>(block);
    const auto sizes = dataset.sizes();
    std::size_t wanted = 1;
    for (std::size_t i = 1; i < sizes.size(); ++i) wanted *= sizes[i];
    if (!values.empty() && values.size() != wanted) {
      fail("result file: {} expects {} values per block, but got {}", dataset.path(), wanted, values.size());
    }
    if (!values.empty()) {
      dataset.write(Element::of(Kind::float32), row, 1, values.data());
      return;
    }
    const std::vector<float> nothing(wanted, std::numeric_limits<float>::quiet_NaN());
    dataset.write(Element::of(Kind::float32), row, 1, nothing.data());
  }

  hdf5::File file_;  // first: everything below lies in it
  std::vector<std::string> variables_;
  RowTable<ResultBlock> blocks_;
  RowTable<ResultCase> cases_;
  Dataset step_seconds_, losses_, rank_seconds_, warnings_, sessions_, state_;
  AppendTable<ResultInterval> timeline_;
  AppendTable<ResultTotal> totals_;
  std::uint64_t warnings_used_ = 0;
};

}  // namespace

std::unique_ptr<ResultFile> ResultFile::reopen(const std::string& path) {
  return std::make_unique<Hdf5ResultFile>(path);
}

}  // namespace harness::store
