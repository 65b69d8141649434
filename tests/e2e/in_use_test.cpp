// A second sweep on a result in use is refused, with advice.
#include <signal.h>

#include "user.h"

namespace harness {
namespace {

namespace fs = std::filesystem;

std::string slowly() {
  return planted("kind=delay,step=every,seconds=0.3");
}
void expect_refused(const Outcome& o) {
  EXPECT_EQ(o.exit_code, 1) << o.err;
  EXPECT_THAT(o.err, AllOf(HasSubstr("is in use by "), HasSubstr("(process "), HasSubstr(".lock` frees the file"),
                           Not(HasSubstr("checking that all ranks"))));  // nothing ran
  EXPECT_TRUE(o.out.empty()) << o.out;
}
TEST(InUse, ASecondWriterIsRefusedFromThePreparationOn) {
  const TemporaryFolder folder;
  const std::string config = write_small_config(folder, 40), file = folder / "small.h5";
  Command first(slowly() + harness_job(2, "sweep -v " + config));
  ASSERT_TRUE(first.wait_for("timeline of baseline")) << first.err_so_far();
  if (!fs::exists(file)) {  // otherwise preparation is over already
    const auto shown = run_alone("show " + file);
    EXPECT_EQ(shown.exit_code, 1);
    EXPECT_THAT(shown.err, HasSubstr("in preparation: "));
  }
  expect_refused(run_job(2, "sweep " + config + " --force"));
  ASSERT_TRUE(first.wait_for("[2/160]")) << first.err_so_far();
  EXPECT_THAT(run_alone("show " + file).out, HasSubstr("running: "));
  expect_refused(run_job(2, "sweep " + config));
  expect_refused(run_job(2, "sweep --resume " + file));
  Command follow(test::program_path() + " show " + file + " --follow");
  ASSERT_TRUE(follow.wait_for("running: ")) << follow.err_so_far();

  first.kill_all(SIGKILL);
  first.wait();
  EXPECT_TRUE(follow.wait_for("killed: ")) << follow.err_so_far();
  EXPECT_THAT(run_alone("show " + file).out, HasSubstr("killed: "));
  const auto before = store::read_result(file);
  const auto exists = run_job(2, "sweep " + config);
  EXPECT_EQ(exists.exit_code, 1);
  EXPECT_THAT(exists.err, HasSubstr("small.h5 exists: --resume continues it"));
  run_job(2, "sweep --resume " + file + " --wrap nothing-like-this");
  const auto after = store::read_result(file);
  EXPECT_EQ(after.run_uuid, before.run_uuid);
  EXPECT_THAT(after.warnings, ::testing::Contains(HasSubstr("times cannot be compared")));
  // Only the configuration and the result are left.
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2);
}

// Kills a sweep of three rounds after its first round.
void kill_early(const std::string& config) {
  Command sweep(slowly() + harness_job(2, "sweep -v " + config));
  ASSERT_TRUE(sweep.wait_for("round 1/3")) << sweep.err_so_far();
  sweep.kill_all(SIGKILL);
  sweep.wait();
}

TEST(InUse, WhatCannotBeResumedIsSaidFirstWithTheCommandThatWorks) {
  const TemporaryFolder folder;
  const std::string config = write_small_config(folder, 3), file = folder / "small.h5";
  kill_early(config);
  const auto ranks = run_job(1, "sweep --resume " + file);
  EXPECT_EQ(ranks.exit_code, 1);
  EXPECT_THAT(ranks.err, HasSubstr("`mpirun -np 2 " + test::program_path() + " sweep --resume " + file + "`"));
  // In a checkout, the command names the launcher as typed; for an installed program, its name.
  const std::string launcher = test::source_dir() + "/harness";
  const auto from_checkout =
      test::run("HARNESS_BINARY='" + test::program_path() + "' " + launcher + " sweep --resume " + file);
  EXPECT_THAT(from_checkout.err, HasSubstr("`mpirun -np 2 " + launcher + " sweep --resume " + file + "`"));
  fs::create_symlink(test::program_path(), folder / "harness");
  const auto installed = test::run("PATH='" + (folder / ".") + "':$PATH harness sweep --resume " + file);
  EXPECT_THAT(installed.err, HasSubstr("`mpirun -np 2 harness sweep --resume " + file + "`"));
  ASSERT_THAT(run_job(2, "sweep --force " + config).exit_code, Not(1));
  const auto complete = run_job(2, "sweep --resume " + file);
  EXPECT_EQ(complete.exit_code, 1);
  EXPECT_LT(complete.err.find("--rounds N"), complete.err.find("--force"));
  for (const auto& o : {complete, ranks}) EXPECT_THAT(o.err, Not(HasSubstr("→")));
}

}  // namespace
}  // namespace harness
