#include "store/result_file.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "store/atomic_file.h"
#include "store/columns.h"
#include "store/create.h"
#include "store/open_result.h"
#include "store/table.h"

namespace harness::store {
namespace {

using hdf5::Dataset;
using hdf5::Element;
using hdf5::Kind;

constexpr auto interval_visitor = [](auto& visit, auto& row) { interval_columns(visit, row); };
constexpr auto total_visitor = [](auto& visit, auto& row) { total_columns(visit, row); };
constexpr auto gpu_visitor = [](auto& visit, auto& row) { gpu_columns(visit, row); };
constexpr auto conditions_visitor = [](auto& visit, auto& row) { conditions_columns(visit, row); };

// A table that rows are appended to, within the size it was made with. Unused rows have case -1.
template <class Row>
struct AppendTable {
  Dataset dataset;
  Element element;
  std::size_t used = 0;

  template <class Columns>
  AppendTable(const hdf5::File& file, const std::string& path, Columns columns)
      : dataset(file.dataset(path, 1)), element(hdf5::bind(hdf5::declare<Row>({}, columns), dataset)) {
    Element cases;  // this column alone
    cases.add("case", Kind::int32);
    std::vector<std::int32_t> of_case(dataset.rows());
    dataset.read(cases, 0, of_case.size(), of_case.data());
    used += std::ranges::count_if(of_case, [](std::int32_t case_index) { return case_index >= 0; });
  }
  template <class Columns>
  void append(const std::vector<Row>& rows, Columns columns) {
    if (used + rows.size() > dataset.rows()) {
      fail("{}: {} rows do not fit after the first {} of {}: the file was created for fewer", dataset.path(),
           rows.size(), used, dataset.rows());
    }
    hdf5::write_rows(dataset, element, rows.data(), rows.size(), used, columns);
    used += rows.size();
  }
};

class Hdf5ResultFile final : public ResultFile {
  // A file that an earlier version began keeps its columns.
  auto case_visitor() const {
    return [this, there = ColumnsThere(cases_.element())](auto& visit, auto& row) {
      case_columns(visit, row, variables_, there);
    };
  }
  auto block_visitor() const {
    return [there = ColumnsThere(blocks_.element())](auto& visit, auto& row) { block_columns(visit, row, there); };
  }

 public:
  Hdf5ResultFile(const std::string& path, const std::string& name)
      : file_(open_result(path, true)),
        variables_(hdf5::read_texts(file_, "/run/variables")),
        blocks_(file_.dataset("/blocks", 1)),
        block_element_(hdf5::bind(hdf5::declare<ResultBlock>({}, block_visitor()), blocks_)),
        cases_(file_.dataset("/cases", 1)),
        step_seconds_(file_.dataset("/step_seconds", 2)),
        losses_(file_.dataset("/losses", 2)),
        rank_seconds_(file_.dataset("/rank_seconds", 3)),
        warnings_(file_.dataset("/run/warnings", 1)),
        sessions_(file_.dataset("/run/sessions", 0)),
        state_(file_.dataset("/run/state", 0)),
        timeline_(file_, "/timeline", interval_visitor),
        totals_(file_, "/timeline_totals", total_visitor) {
    if (!name.empty()) file_.call(name);
    ResultCase example;
    example.settings.resize(variables_.size());
    case_element_ = hdf5::bind(hdf5::declare<ResultCase>({}, case_visitor(), example), cases_);
    for (const auto& text : hdf5::read_texts(file_, "/run/warnings")) warnings_used_ += !text.empty();
  }

  void write_block(int block, const ResultBlock& row, const std::vector<float>& step_seconds,
                   const std::vector<float>& losses, const std::vector<float>& rank_seconds) override {
    const std::uint64_t at = index(block, blocks_);
    write_matrix(step_seconds_, at, step_seconds);
    write_matrix(losses_, at, losses);
    write_matrix(rank_seconds_, at, rank_seconds);
    // The row says that the block is there, so it follows what it speaks of.
    file_.flush(false);
    hdf5::write_rows(blocks_, block_element_, &row, 1, at, block_visitor());
    file_.flush(true);
  }

  void write_gpu(int block, const ResultGpu& row) override {
    if (!file_.contains("/gpu")) return;  // begun by an earlier version
    Dataset table = file_.dataset("/gpu", 1);
    const Element element = hdf5::bind(hdf5::declare<ResultGpu>({}, gpu_visitor), table);
    hdf5::write_rows(table, element, &row, 1, index(block, table), gpu_visitor);
  }

  void write_conditions(int block, const machine::Conditions& row) override {
    if (!file_.contains("/conditions")) return;  // begun by an earlier version
    Dataset table = file_.dataset("/conditions", 1);
    const Element element = hdf5::bind(hdf5::declare<machine::Conditions>({}, conditions_visitor), table);
    hdf5::write_rows(table, element, &row, 1, index(block, table), conditions_visitor);
  }

  void write_case(int at, const ResultCase& row) override {
    if (row.settings.size() != variables_.size()) {
      fail("result file: case {} has {} settings for {} variables", row.name, row.settings.size(), variables_.size());
    }
    hdf5::write_rows(cases_, case_element_, &row, 1, index(at, cases_), case_visitor());
    file_.flush(true);
  }

  void add_timeline(const std::vector<ResultInterval>& rows) override {
    timeline_.append(rows, interval_visitor);
    file_.flush(true);
  }

  void add_totals(const std::vector<ResultTotal>& rows) override {
    totals_.append(rows, total_visitor);
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

  void set_sessions(int sessions) override {
    const std::int32_t value = sessions;
    sessions_.write(Element::of(Kind::int32), 0, 1, &value);
    file_.flush(true);
  }

  void finish(RunState state) override {
    file_.flush(true);
    hdf5::write_text(state_, 0, name_of(state));
    file_.flush(true);
  }

 private:
  static std::uint64_t index(int row, const Dataset& dataset) {
    if (row < 0 || static_cast<std::uint64_t>(row) >= dataset.rows()) {
      fail("result file: there is no row {} in {}, which has {} rows", row, dataset.path(), dataset.rows());
    }
    return static_cast<std::uint64_t>(row);
  }
  // No values at all: nothing was measured, and what an earlier session may have left there goes.
  static void write_matrix(Dataset& dataset, std::uint64_t row, const std::vector<float>& values) {
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
  Dataset blocks_;
  Element block_element_;
  Dataset cases_;
  Element case_element_;
  Dataset step_seconds_, losses_, rank_seconds_, warnings_, sessions_, state_;
  AppendTable<ResultInterval> timeline_;
  AppendTable<ResultTotal> totals_;
  std::uint64_t warnings_used_ = 0;
};

}  // namespace

std::unique_ptr<ResultFile> ResultFile::create(const std::string& path, const Result& plan,
                                               const ResultCapacity& capacity, bool overwrite) {
  AtomicFile place(path, overwrite);
  try {
    hdf5::File file = hdf5::File::create(place.temporary_path());
    create_objects(file, plan, capacity);
    file.flush(true);
    file.close();
  } catch (const Error& error) {
    fail("cannot write {}: {}", path, error.what());
  }
  place.put_in_place();
  return reopen(path);
}

std::unique_ptr<ResultFile> ResultFile::reopen(const std::string& path, const std::string& name) {
  return std::make_unique<Hdf5ResultFile>(path, name);
}

}  // namespace harness::store
