#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "local_job.h"

namespace harness {
namespace {

using testing::LocalJob;

struct Reference {
  nlohmann::json index;
  std::vector<float> gradients;
  Model model;
  Settings settings;
  std::vector<double> losses;

  explicit Reference(const std::string& precision) {
    const std::string folder = HARNESS_SOURCE_DIR "/tests/reference/";
    std::ifstream(folder + "gpt_tiny.json") >> index;
    const auto& m = index["model"];
    model = {"tiny", m["layers"], m["hidden"], m["heads"], m["vocab"], m["sequence"]};
    settings.precision = precision == "bf16" ? Precision::bf16 : Precision::fp32;
    settings.global_batch_size = index["global_batch_size"];
    losses = index["cases"][precision]["losses"].get<std::vector<double>>();
    gradients.resize(index["parameters"].get<std::size_t>());
    std::ifstream file(folder + "gpt_tiny_" + precision + ".f32", std::ios::binary);
    file.read(reinterpret_cast<char*>(gradients.data()),
              static_cast<std::streamsize>(gradients.size() * sizeof(float)));
    if (!file) throw std::runtime_error("the reference in tests/reference is incomplete");
  }

  std::span<const float> tensor(const std::string& name) const {
    for (const auto& t : index["tensors"]) {
      if (t["name"] == name) {
        return std::span(gradients).subspan(t["offset"].get<std::size_t>(), t["count"].get<std::size_t>());
      }
    }
    throw std::runtime_error("the reference has no tensor " + name);
  }
};

double norm(std::span<const float> x) {
  double sum = 0;
  for (const float v : x) sum += double{v} * v;
  return std::sqrt(sum);
}

// |ours - theirs| / |theirs| for every gradient tensor of step 0, on one rank.
void compare(const Reference& reference, std::int64_t micro_batch_size, double loss_tolerance,
             double gradient_tolerance) {
  Settings settings = reference.settings;
  settings.micro_batch_size = micro_batch_size;
  LocalJob job(reference.model, settings, {}, reference.index["seed"].get<std::uint64_t>());
  job.run(1);
  EXPECT_NEAR(job.losses(0)[0] / reference.losses[0], 1, loss_tolerance);
  for (const auto& p : gpt::parameters(reference.model, {}, 0)) {
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
  const Reference reference("fp32");
  compare(reference, 1, 1e-5, 1e-4);
  compare(reference, 4, 1e-5, 1e-4);
}

TEST(Reference, LossAndGradientsInBf16) {
  const Reference reference("bf16");
  compare(reference, 2, 2e-2, 2e-2);
}

TEST(Reference, LossesOfThreeSteps) {
  const Reference reference("fp32");
  LocalJob job(reference.model, reference.settings, {}, reference.index["seed"].get<std::uint64_t>());
  job.run(3);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(job.losses(0)[i] / reference.losses[i], 1, 1e-5);
}

}  // namespace
}  // namespace harness
