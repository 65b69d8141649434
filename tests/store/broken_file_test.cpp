// Files of unknown origin: each broken one gives one clear Error, and no other file is read.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hdf5.h>

#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>

#include "sample.h"
#include "store/columns.h"
#include "support/errors.h"
#include "support/files.h"

namespace harness::store {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using hdf5::Handle;
using Sizes = std::vector<hsize_t>;

class BrokenFile : public ::testing::Test {
 protected:
  void SetUp() override { begin(); }
  /// Restores a valid file.
  void begin() {
    Result plan = sample_plan();
    plan.tuning = {{"a", "b"}};
    for (std::int32_t rank = 0; rank < plan.ranks; ++rank) plan.roles.push_back({0, rank, 0, {}, rank / 2});
    for (ResultRole& row : plan.roles) row.at[program::Axis::data] = row.rank;
    plan.doctor.findings = {{0, "warn", "env.devices", "node0", 1, "", "", ""}};
    plan.splits = {{.step_s = 1, .compute_s = 0.5, .idle_s = 0.5}};
    plan.timeline = {ResultInterval()};
    plan.state = RunState::complete;
    write_result(path_, plan);
    file_ = H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    ASSERT_GE(file_, 0);
  }
  /// Returns the error of reading the changed file.
  std::string read() {
    EXPECT_GE(H5Fclose(file_), 0);
    return test::error_of([&] { read_result(path_); });
  }
  Handle type_of(const char* path) {
    const Handle dataset(H5Dopen2(file_, path, H5P_DEFAULT), path);
    return {H5Dget_type(dataset.id()), path};
  }
  /// Recreates the dataset, with its own type by default.
  void replace(const char* path, const Sizes& sizes, hid_t properties = H5P_DEFAULT, hid_t type = -1) {
    const Handle own = type_of(path);
    ASSERT_GE(H5Ldelete(file_, path, H5P_DEFAULT), 0);
    const Handle space(
        sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
        path);
    const Handle made(
        H5Dcreate2(file_, path, type < 0 ? own.id() : type, space.id(), H5P_DEFAULT, properties, H5P_DEFAULT), path);
    if (properties != H5P_DEFAULT) H5Pclose(properties);
  }
  static hid_t allocated() {
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    return properties;
  }
  static hid_t chunked(const Sizes& chunk) {
    const hid_t properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(properties, static_cast<int>(chunk.size()), chunk.data());
    return properties;
  }
  /// Sets a column to one value in every row of a table; `type` is that of `value`.
  template <class T>
  void fill_column(const char* path, const char* column, hid_t type, T value) {
    const Handle row(H5Tcreate(H5T_COMPOUND, sizeof value), column), dataset(H5Dopen2(file_, path, H5P_DEFAULT), path);
    const Handle space(H5Dget_space(dataset.id()), path);
    H5Tinsert(row.id(), column, 0, type);
    const std::vector<T> values(H5Sget_simple_extent_npoints(space.id()), value);
    EXPECT_GE(H5Dwrite(dataset.id(), row.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0) << path << column;
  }
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "r.h5";
  hid_t file_ = -1;
};

TEST_F(BrokenFile, WithoutAChangeItIsRead) {
  EXPECT_EQ(read(), "");
}

// Shapes that readers once took for granted: one element for a text, one dimension for a table.
TEST_F(BrokenFile, ShapesThatNoResultHas) {
  for (const char* path : {"/run/config_yaml", "/run/state", "/run/sessions", "/run/warnings", "/run/variables",
                           "/tuning", "/cases", "/timeline", "/step_seconds"}) {
    begin();
    replace(path, {7, 2, 1, 2}, allocated());
    EXPECT_THAT(read(), AllOf(HasSubstr(path), HasSubstr("has 4 dimensions"))) << path;
  }
}

TEST_F(BrokenFile, AnObjectOfAnotherSort) {
  const Handle text = type_of("/run/config_yaml");
  H5Ldelete(file_, "/tuning", H5P_DEFAULT);
  H5Gclose(H5Gcreate2(file_, "/tuning", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  EXPECT_THAT(read(), HasSubstr("/tuning is not a dataset"));
  begin();
  replace("/step_seconds", {12, 3}, allocated(), text.id());
  EXPECT_THAT(read(), HasSubstr("/step_seconds does not hold numbers"));
  begin();
  H5Ldelete(file_, "/cases", H5P_DEFAULT);
  EXPECT_THAT(read(), HasSubstr("/cases is missing"));
}

// The error message once showed the content of the other file.
TEST_F(BrokenFile, AnotherFileIsNotRead) {
  std::ofstream(folder_ / "other.txt") << std::string(4096, 'S');
  const hid_t external = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(external, (folder_ / "other.txt").c_str(), 0, 4096);
  replace("/run/state", {}, external);
  EXPECT_THAT(read(), AllOf(HasSubstr("/run/state lie in another file"), Not(HasSubstr("SSS"))));

  begin();
  H5Lmove(file_, "/cases", file_, "/moved", H5P_DEFAULT, H5P_DEFAULT);
  H5Lcreate_soft("/moved", file_, "/cases", H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_THAT(read(), HasSubstr("/cases is a link to something elsewhere"));

  begin();
  const std::string whole = folder_ / "whole.h5";
  write_result(whole, sample_plan());
  H5Ldelete(file_, "/run", H5P_DEFAULT);
  H5Lcreate_external(whole.c_str(), "/run", file_, "/run", H5P_DEFAULT, H5P_DEFAULT);
  EXPECT_THAT(read(), HasSubstr("/run is a link to something elsewhere"));

  begin();
  const Sizes sizes{12, 3};
  const Handle space(H5Screate_simple(2, sizes.data(), nullptr), "a virtual dataset");
  const hid_t mapped = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_virtual(mapped, space.id(), whole.c_str(), "/step_seconds", space.id());
  replace("/step_seconds", sizes, mapped);
  EXPECT_THAT(read(), HasSubstr("/step_seconds is not stored in one piece"));
}

TEST_F(BrokenFile, MoreThanTheFileHolds) {
  constexpr hsize_t huge = hsize_t{1} << 61, large = hsize_t{1} << 27;
  replace("/run/variables", {huge}, chunked({1}));
  EXPECT_THAT(read(), HasSubstr("/run/variables is not stored in one piece"));
  begin();
  replace("/cases", {large});  // contiguous, and never written
  EXPECT_THAT(read(), HasSubstr("/cases claims values that are not in the file"));
  begin();
  replace("/timeline", {huge >> 10});
  EXPECT_THAT(read(), HasSubstr("/timeline claims values that are not in the file"));
}

// Every number of every table, just outside its bounds, and infinite or NaN where it must be finite.
TEST_F(BrokenFile, NumbersOutsideTheirBounds) {
  ASSERT_EQ(read(), "");
  const Result plan = read_result(path_);
  const Counts counts{plan.case_count(), std::ssize(plan.blocks), plan.ranks, plan.nodes, plan.sessions};
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  int tried = 0;
  each_table(plan, [&]<class Row>(const Table& table, const std::vector<Row>& rows, const ColumnList& columns) {
    for (const Column& column : columns) {
      const Bounds& b = column.bounds;
      const double low = b.low - 1, high = b.high + 1 + static_cast<double>(b.count == nullptr ? 0 : counts.*b.count);
      const auto expect_refused = [&](hid_t type, auto value) {
        begin();
        fill_column(table.path, column.name.c_str(), type, value);
        EXPECT_THAT(read(), HasSubstr(fmt::format("column {} of {} is {}", column.name, table.path,
                                                  static_cast<double>(value))));
        ++tried;
      };
      if (rows.empty()) continue;
      const bool may_be_unused = of_a_timeline<Row> && column.name == "case";  // may be negative
      for (const double value : {low, high}) {
        if (std::abs(value) > INT32_MAX || (may_be_unused && value < 0)) continue;
        if (column.get && column.kind == hdf5::Kind::int32)
          expect_refused(H5T_NATIVE_INT32, static_cast<std::int32_t>(value));
        if (column.kind == hdf5::Kind::int64) expect_refused(H5T_NATIVE_INT64, static_cast<std::int64_t>(value));
      }
      if (column.kind == hdf5::Kind::float64) {
        expect_refused(H5T_NATIVE_DOUBLE, b.low < 0 ? 2 * b.low : -0.5);
        expect_refused(H5T_NATIVE_DOUBLE, b.high == infinity ? -infinity : infinity);
        if (!b.unknown) expect_refused(H5T_NATIVE_DOUBLE, nan);
      }
    }
  });
  EXPECT_GT(tried, 100);
}

TEST_F(BrokenFile, UnusualNumbersThatARunMayHave) {
  fill_column("/timeline", "start_s", H5T_NATIVE_DOUBLE, -1e-6);  // clocks of a device can differ
  EXPECT_EQ(read(), "");
  begin();
  fill_column("/roles", "node", H5T_NATIVE_INT32, std::int32_t{-1});
  EXPECT_EQ(read(), "");
}

// Opening a FIFO would block without a writer.
TEST_F(BrokenFile, AFifoIsNotWaitedFor) {
  H5Fclose(file_);
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(test::error_of([&] { read_result(fifo); }), HasSubstr("is not a regular file"));
  EXPECT_THAT(test::error_of([&] { ResultFile{fifo}; }), HasSubstr("is not a regular file"));
}

}  // namespace
}  // namespace harness::store
