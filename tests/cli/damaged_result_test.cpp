// Result files with arbitrary damage. A reader answers or reports what is wrong, in little memory, and never crashes;
// `sweep --resume` loses none of the file's data. The file's bytes seed the draw of a few damages and verbs, so that
// another file gets another draw. HARNESS_SOAK=1 runs 6,000 damages and all verbs.
#include <fcntl.h>
#include <hdf5.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iostream>
#include <limits>
#include <optional>
#include <random>
#include <span>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "analysis/cases.h"
#include "doctor/node_fixture.h"
#include "report/full_result.h"
#include "said.h"
#include "store/columns.h"
#include "support/soak.h"
#include "sweep/recorder.h"

namespace harness::cli {
namespace {

using ::testing::StartsWith;

struct Damage {
  std::string what;
  std::function<void(const std::string& path)> apply;  // to a copy of the file
};

void overwrite(const std::string& path, std::uint64_t at, const std::string& bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at)) < 0) std::abort();
  ::close(file);
}

template <class Number>
std::string bytes_of(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Byte strings that a column can hold but results rarely contain, and plausible lengths and addresses.
std::vector<std::string> extremes() {
  std::vector<std::string> words{"AAAAAAAA", "\xff\xff\xff\xff\xff\xff\xff\xff", "-1", "nan", "\x1b[31m", "{\""};
  const auto add = [&](auto... numbers) { (words.push_back(bytes_of(numbers)), ...); };
  using Double = std::numeric_limits<double>;
  using Float = std::numeric_limits<float>;
  add(Double::quiet_NaN(), Double::infinity(), -1.0, 5e-324, 1e30, 1e308);
  add(Float::quiet_NaN(), Float::infinity(), -1.0F);
  add(INT64_MIN, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1}, INT64_MAX);
  add(INT32_MIN, -2, 3, 10000, 50000000, INT32_MAX);
  return words;
}

// The location of a dataset's values in the file.
struct Region {
  std::string name;
  std::uint64_t at = 0, row = 0, rows = 0;  // bytes, bytes, number
};

std::vector<Region> regions_of(const std::string& path) {
  std::vector<std::string> names{"/step_seconds",    "/losses",       "/rank_seconds",  "/run/sessions",
                                 "/run/state",       "/run/argv",     "/run/overrides", "/run/variables",
                                 "/run/config_yaml", "/run/warnings", "/node_facts"};
  store::Result any;
  store::each_table(any, [&](const store::Table& table, const auto&, const auto&) { names.emplace_back(table.path); });
  std::vector<Region> found;
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  for (const std::string& name : names) {
    const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT), type = H5Dget_type(dataset),
                space = H5Dget_space(dataset);
    const auto rows = static_cast<std::uint64_t>(H5Sget_simple_extent_npoints(space));
    if (rows > 0) found.push_back({name, H5Dget_offset(dataset), H5Tget_size(type), rows});
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
  }
  H5Fclose(file);
  return found;
}

// Overwrites one row or all rows of a dataset with an extreme word, or, once in three times, the metadata of the file.
Damage drawn_damage(const std::vector<Region>& regions, std::uint64_t file_bytes, std::mt19937_64& random) {
  const std::vector<std::string> words = extremes();
  const std::string word = words[random() % words.size()];
  if (random() % 3 == 0) {
    std::uint64_t at = 0;
    do at = random() % (file_bytes - word.size());
    while (std::ranges::any_of(regions, [&](const Region& r) { return at >= r.at && at < r.at + r.row * r.rows; }));
    return {fmt::format("{} at {}", escaped(word), at), [=](const std::string& copy) { overwrite(copy, at, word); }};
  }
  const Region region = regions[random() % regions.size()];
  const std::uint64_t offset = random() % region.row / 4 * 4, one = random() % region.rows;
  const bool everywhere = random() % 2 == 0;
  return {fmt::format("{} in {} at {} of row {}", escaped(word), region.name, offset, everywhere ? "all" : "one"),
          [=](const std::string& copy) {
            const std::string fits = word.substr(0, region.row - offset);
            for (std::uint64_t row = everywhere ? 0 : one; row < (everywhere ? region.rows : one + 1); ++row)
              overwrite(copy, region.at + row * region.row + offset, fits);
          }};
}

// The HDF5 library itself leaks part of a type that it cannot read.
#ifdef __SANITIZE_ADDRESS__
using LeaksOfHdf5 = __lsan::ScopedDisabler;
#else
struct LeaksOfHdf5 {
  LeaksOfHdf5() {}
};
#endif

// A small sweep with rows in every table.
store::Result with_every_table() {
  store::Result result = test::samples::full("node7");
  std::erase_if(result.timeline, [](const store::ResultInterval& x) { return x.operation % 50 > 4; });
  result.nodes = 2;
  result.roles.clear();
  for (std::int32_t c = 0; c < result.case_count(); ++c) {
    if (result.case_at(c).status == store::CaseStatus::impossible) continue;
    for (std::int32_t rank = 0; rank < result.case_at(c).ranks; ++rank) {
      result.roles.push_back({c, rank, rank % 2 * (result.case_at(c).ranks > 1), {}, rank / 2});
      result.roles.back().at[program::Axis::data] = rank % result.case_at(c).layout[program::Axis::data];
    }
  }
  result.points = {{0, "gemm", 5, 4096, 0, 1e9, "given", "qkv, forward", 7}};
  result.gradients = {{0, 0.5, 0.25}, {2, 0.5, 0.25}};
  result.totals = {{0, 0, "matmul", "compute", 0.5, 7}, {2, 1, "all_reduce", "data", 0.1, 3}};
  result.doctor.facts = "{}";
  return result;
}

class DamagedResult : public Readers {
 protected:
  void SetUp() override {
    write_result(whole_, with_every_table());
    ASSERT_NO_THROW(store::read_result(whole_));
    draw_.seed(fnv1a(test::text_of(whole_)));
    if (!test::sanitized) {
      getrlimit(RLIMIT_AS, &before_);
      rlimit limit = before_;
      limit.rlim_cur = used_address_space() + (rlim_t{1} << 30);
      setrlimit(RLIMIT_AS, &limit);
    }
  }
  void TearDown() override {
    if (!test::sanitized) setrlimit(RLIMIT_AS, &before_);
  }
  static rlim_t used_address_space() {
    std::ifstream statm("/proc/self/statm");
    rlim_t pages = 0;
    statm >> pages;
    return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  }

  void expect_sane(const std::vector<std::string>& arguments, const std::string& what) {
    const std::string typed = join(arguments, " ");
    if (test::soaking()) std::cerr << what << "; harness " << typed << std::endl;  // the last command before a crash
    const LeaksOfHdf5 ignored;
    const Said said = say(arguments);
    EXPECT_GE(said.code, 0) << typed;
    EXPECT_LE(said.code, 5) << typed;
    if (said.code == 1) {
      EXPECT_THAT(said.err, StartsWith("harness: ")) << what << "; " << typed;
    }
    for (const char* word : {"std::", "basic_string", "vector", "_M_", "stoi", "stod", "H5", "out of memory",
                             "report it", "json.exception", "bad_"}) {
      EXPECT_THAT(said.err, Not(HasSubstr(word))) << what << "; " << typed;
    }
  }

  // Runs every verb that reads a result, or a random two unless `all`.
  void expect_answers(const std::string& path, const std::string& what, bool all = test::soaking()) {
    expect_sane({"show", path}, what);
    try {
      store::read_result(path);
    } catch (const Error&) {
      return;  // already reported by show; the other verbs read no more than show does
    }
    Commands verbs;
    for (const char* format : {"json", "csv", "md"}) verbs.push_back({"show", path, "--format", format});
    for (const char* format : {"text", "json"}) verbs.push_back({"show", path, "--breakdown", "--format", format});
    for (const char* format : {"html", "md"}) verbs.push_back({"report", path, "-o", "-", "--format", format});
    for (const char* format : {"harness", "env", "megatron", "deepspeed", "torchtitan"})
      verbs.push_back({"export", path, "--format", format});
    verbs.push_back({"trace", path, "-o", "-"});
    verbs.push_back({"compare", whole_, path});
    verbs.push_back({"compare", path, whole_, "--format", "json"});
    verbs.push_back({"compare", whole_, path, "--reproduce"});
    verbs.push_back({"compare", whole_, path, "--history"});
    if (!all) {
      std::ranges::shuffle(verbs, draw_);
      verbs.resize(2);
    }
    for (const auto& verb : verbs) expect_sane(verb, what);
  }

  // Draws as many damages as the time allows.
  std::vector<Damage> drawn(const std::string& path, int usual, int with_sanitizers) {
    const std::vector<Region> regions = regions_of(path);
    std::vector<Damage> damages;
    for (int i = 0; i < test::times(usual, with_sanitizers, 6000); ++i)
      damages.push_back(drawn_damage(regions, std::filesystem::file_size(path), draw_));
    return damages;
  }

  const std::string whole_ = folder_ / "whole.h5";
  const std::string configuration_ =
      folder_.write("c.yaml",
                    "name: x\nbackend: cpu\nmodel: {layers: 2, hidden: 64, heads: 4, vocab: 256, sequence: 32}\n"
                    "baseline: {global_batch_size: 16, micro_batch_size: 1}\nsweep: {micro_batch_size: [2]}\n");
  std::mt19937_64 draw_;
  rlimit before_{};
};

TEST_F(DamagedResult, WholeItAnswersEverything) {
  for (const char* format : {"text", "json"}) {
    EXPECT_EQ(say({"show", whole_, "--breakdown", "--format", format}).err, "");
  }
  expect_answers(whole_, "nothing", true);
}

TEST_F(DamagedResult, IsAnsweredOrRefused) {
  const std::string copy = folder_ / "damaged.h5";
  for (const Damage& damage : drawn(whole_, 120, 15)) {
    std::filesystem::copy_file(whole_, copy, std::filesystem::copy_options::overwrite_existing);
    damage.apply(copy);
    expect_answers(copy, damage.what);
    if (HasFailure()) return;
  }
}

// A table of zeros without storage on disk.
TEST_F(DamagedResult, AFileThatIsMostlyHoles) {
  for (const char* path : {"/timeline", "/run/warnings"}) {
    const std::string sparse = folder_ / "sparse.h5";
    std::filesystem::copy_file(whole_, sparse, std::filesystem::copy_options::overwrite_existing);
    const hid_t file = H5Fopen(sparse.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    const hid_t old = H5Dopen2(file, path, H5P_DEFAULT), type = H5Dget_type(old);
    H5Dclose(old);
    H5Ldelete(file, path, H5P_DEFAULT);
    const hsize_t rows = (hsize_t{4} << 30) / H5Tget_size(type);
    const hid_t space = H5Screate_simple(1, &rows, nullptr), properties = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER);
    H5Dclose(H5Dcreate2(file, path, type, space, H5P_DEFAULT, properties, H5P_DEFAULT));
    H5Pclose(properties);
    H5Sclose(space);
    H5Tclose(type);
    H5Fclose(file);
    const Said said = say({"show", "--breakdown", sparse});
    EXPECT_EQ(said.code, 1);
    EXPECT_THAT(said.err, AllOf(HasSubstr("claims 4"), HasSubstr("far more than it stores")));
  }
}

// Two ranks that answer probes but fail every other block. A stop is requested after `blocks` failures.
class FailingJob : public test::AnsweringJob {
 public:
  explicit FailingJob(int blocks) : AnsweringJob(1, 2), left_(blocks) {
    for (job::RankPlace& place : seats()) {
      place.cores = 2;
      place.memory_bytes = 8e9;
    }
  }
  job::BlockOutcome run(const job::BlockOnSet& block) override {
    job::BlockOutcome outcome;
    outcome.ok = std::holds_alternative<job::Probe>(block.request.task);
    if (outcome.ok) {
      const job::Samples probed{job::ProbeSamples{{}, "", 1e9}, {}, 0, {}};
      outcome.samples.assign(static_cast<std::size_t>(block.request.layout.ranks()), probed);
    } else {
      --left_;
      outcome.reason = "rank 0 on host0: no worker";
      outcome.signature = "none";
    }
    return outcome;
  }
  std::vector<std::string> ask(const std::string& /*question*/) override { return {"", ""}; }
  int stop_requests() const override { return left_ <= 0 ? 1 : 0; }

 private:
  int left_;
};

// Writes a sweep that was stopped in its second round.
void write_part(const std::string& path, const std::string& configuration) {
  const FailingJob job(1);
  const plan::Plan plan = plan_sweep(job, config::load_experiment(configuration), {}, plan::Processes::as_needed);
  const store::Result planned = sweep::planned_result(plan);
  const auto file = store::ResultFile::create(path, planned, true);
  const auto steps = static_cast<std::size_t>(planned.warmup_steps + planned.steps);
  for (std::size_t i = 0; i < planned.blocks.size() && planned.blocks[i].round < 2; ++i) {
    store::ResultBlock block = planned.blocks[i];
    if (block.round == 1 && block.position > 0) break;
    block.status = store::BlockStatus::ok;
    block.session = 0;
    const std::vector<float> seconds(steps, 0.5F + static_cast<float>(i)), of_ranks(steps * 2, 0.5F);
    file->write_block(static_cast<int>(i), block, seconds, seconds, of_ranks);
  }
  file->finish(store::RunState::partial);
}

std::optional<store::Result> read(const std::string& path) {
  try {
    return store::read_result(path);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// A file that was readable stays readable, with all blocks of its complete rounds. Any other file is unchanged.
void expect_nothing_lost(const std::optional<store::Result>& before, const std::string& bytes_before,
                         const std::string& path) {
  if (!before) {
    EXPECT_TRUE(test::text_of(path) == bytes_before) << "a file that cannot be read was written to";
    return;
  }
  const auto after = read(path);
  ASSERT_TRUE(after) << "the file cannot be read any more";
  const std::int32_t open_round = analysis::first_open_round(*before);
  ASSERT_GE(after->blocks.size(), before->blocks.size());
  for (std::size_t i = 0; i < before->blocks.size(); ++i) {
    if (before->blocks[i].status != store::BlockStatus::ok || before->blocks[i].round >= open_round) continue;
    EXPECT_EQ(after->blocks[i].status, store::BlockStatus::ok) << "block " << i;
    const auto bytes_of = [&](const auto& matrix) { return std::as_bytes(std::span(matrix[i])); };
    EXPECT_TRUE(std::ranges::equal(bytes_of(before->step_seconds), bytes_of(after->step_seconds))) << "block " << i;
  }
}

// --resume writes to the file. If types or numbers of the file are wrong, it writes nothing, or exactly what it should.
TEST_F(DamagedResult, IsResumedOrRefusedAndLosesNothing) {
  const std::string part = folder_ / "part.h5";
  write_part(part, configuration_);
  SweepOptions options;
  options.resume = folder_ / "resumed.h5";
  std::vector<Damage> damages = drawn(part, 50, 10);
  damages.push_back({"nothing", [](const std::string&) {}});
  int refused = 0;
  for (const Damage& damage : damages) {
    SCOPED_TRACE(damage.what);
    std::filesystem::copy_file(part, options.resume, std::filesystem::copy_options::overwrite_existing);
    damage.apply(options.resume);
    const auto before = read(options.resume);
    const std::string bytes = test::text_of(options.resume);
    FailingJob job(3);
    std::ostringstream out, err;
    try {
      sweep(job, options, out, err);
    } catch (const Error&) {
      ++refused;
      EXPECT_NE(damage.what, "nothing");
    }
    expect_nothing_lost(before, bytes, options.resume);
    EXPECT_FALSE(std::filesystem::exists(options.resume + ".lock"));
    expect_answers(options.resume, damage.what + ", resumed");
    if (HasFailure()) return;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace harness::cli
