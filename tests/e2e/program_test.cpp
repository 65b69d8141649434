// The program as built: the libraries that it needs to start, whether the environment can plant faults in it, and a
// full disk.
#include <unistd.h>

#include <regex>

#include "user.h"

namespace harness {
namespace {

using ::testing::Each;
using ::testing::MatchesRegex;

// Returns the libraries that a file names as NEEDED: the loader must find them to load the file.
std::vector<std::string> needed_by(const std::string& file) {
  const auto o = test::run("readelf -d " + file);
  EXPECT_EQ(o.exit_code, 0) << o.err;
  std::vector<std::string> names;
  const std::regex needed("\\(NEEDED\\).*\\[(.*)\\]");
  for (std::sregex_iterator at(o.out.begin(), o.out.end(), needed), end; at != end; ++at) names.push_back((*at)[1]);
  return names;
}

// CUDA's libraries load slowly and are missing on some nodes that plan sweeps or read results.
TEST(Libraries, TheProgramStartsWithoutCuda) {
  EXPECT_THAT(needed_by(test::product_path()),
              AllOf(Contains(MatchesRegex("libhdf5.*")), Each(Not(MatchesRegex("lib(cu|nv|nccl).*")))));
}

TEST(Libraries, TheVersionSaysWhatItWasBuiltWith) {
  const auto o = test::run(test::product_path() + " --version");
  EXPECT_EQ(o.exit_code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("\nbackend cpu: "), HasSubstr("\nbackend cuda: ")));
#ifdef HARNESS_HAS_EMULATED_PROGRAM
  EXPECT_THAT(o.out, ContainsRegex("\nbackend cuda: built with CUDA [0-9]+[.][0-9.]+ for sm_[0-9]+"));
#endif
}

#ifdef HARNESS_HAS_EMULATED_PROGRAM
TEST(Libraries, TheCudaModuleNeedsNoLibraryOfAnotherRoom) {
  const std::string module = std::filesystem::path(test::product_path()).parent_path() / "libharness_cuda.so";
  const std::string runtime = "lib(stdc[+][+]|m|gcc_s|c|dl|rt|pthread|[a-z]+san)[.]so.*|ld-linux.*",
                    cuda = "lib(cudart|cublasLt|cudnn|nvrtc|nccl)[.]so.*";
  EXPECT_THAT(needed_by(module),
              AllOf(Contains(MatchesRegex("libcudart.*")), Each(MatchesRegex(cuda + "|libfmt[.]so.*|" + runtime))));
}
#endif

// Only the test program accepts planted faults from the environment.

std::string sweep_by(const std::string& program, const TemporaryFolder& folder) {
  const auto config = write_small_config(folder, 2, "  micro_batch_size: [2]\n");
  return planted("case=micro_batch_size=2,kind=pretend,step=every,seconds=100") +
         test::under_mpirun(2, program + " sweep " + config);
}

TEST(Hooks, APlantedFaultIsIgnoredByTheProduct) {
  const TemporaryFolder folder;
  const auto o = test::run(sweep_by(test::product_path(), folder));
  EXPECT_TRUE(is_measured(o)) << o.err;
  for (const auto& block : store::read_result(folder / "small.h5").step_seconds) {
    for (const float seconds : block) EXPECT_LT(seconds, 50);
  }
}

// A file size limit (ulimit -f) stands for a full disk: there is a message, and no file is left.
TEST(Report, BeyondTheLimitOfASizeSaysSoAndLeavesNothing) {
  const TemporaryFolder folder;
  const auto o = test::run("sh -c 'ulimit -f 8; exec " + test::program_path() + " report results/example.h5 -o " +
                           (folder / "x.html") + "'");
  EXPECT_EQ(o.exit_code, 1) << o.err;
  EXPECT_THAT(o.err, HasSubstr("File too large"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace harness
