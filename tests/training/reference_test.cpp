#include <gtest/gtest.h>

#include <cmath>

#include "local_job.h"
#include "selftest/reference.h"
#include "support/paths.h"
#include "workloads/gpt/parameters.h"

namespace harness {
namespace {

using test::LocalJob;

selftest::Reference reference_of(config::Precision precision) {
  return selftest::load_reference(test::source_dir() + "/tests/reference", precision);
}

double norm(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

// |ours - theirs| / |theirs| for every gradient tensor of step 0, on one rank.
void compare(const selftest::Reference& reference, std::int64_t micro_batch_size, double loss_tolerance,
             double gradient_tolerance) {
  config::Settings settings = reference.settings;
  settings.micro_batch_size = micro_batch_size;
  LocalJob job(reference.model, settings, {}, reference.seed);
  job.run(1);
  EXPECT_NEAR(job.losses(0)[0] / reference.losses[0], 1, loss_tolerance);
  for (const auto& p : gpt::parameters(reference.model, reference.settings, {}, 0)) {
    const auto theirs = reference.tensor(p.name);
    const auto ours = job.read(0, "gradient", p.view.offset, p.view.count);
    ASSERT_EQ(ours.size(), theirs.size()) << p.name;
    std::vector<float> difference(ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i) difference[i] = ours[i] - theirs[i];
    // The key bias shifts all scores of a row alike and has no gradient: in qkv.bias only the rest counts.
    EXPECT_LE(norm(difference) / norm(theirs), gradient_tolerance) << p.name;
    EXPECT_GT(norm(theirs), 0) << p.name;
  }
}

TEST(Reference, LossAndGradientsInFp32) {
  const selftest::Reference reference = reference_of(config::Precision::fp32);
  compare(reference, 1, 1e-5, 1e-4);
  compare(reference, 4, 1e-5, 1e-4);
}

TEST(Reference, LossAndGradientsInBf16) {
  const selftest::Reference reference = reference_of(config::Precision::bf16);
  compare(reference, 2, 2e-2, 2e-2);
}

TEST(Reference, IsFoundBesideTheProgram) {
  EXPECT_EQ(selftest::find_reference(test::source_dir() + "/build/release/bin/harness"),
            test::source_dir() + "/tests/reference");
  EXPECT_EQ(selftest::find_reference("/nowhere/bin/harness"), "");
  EXPECT_THROW(selftest::load_reference("/nowhere", config::Precision::fp32), Error);
}

TEST(Reference, LossesOfThreeSteps) {
  const selftest::Reference reference = reference_of(config::Precision::fp32);
  LocalJob job(reference.model, reference.settings, {}, reference.seed);
  job.run(3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(job.losses(0)[i] / reference.losses[i], 1, 1e-5);
}

}  // namespace
}  // namespace harness
