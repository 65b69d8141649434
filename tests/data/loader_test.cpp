#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "program/builder.h"
#include "support/errors.h"
#include "support/wait.h"

namespace harness::data {
namespace {

constexpr std::int64_t tokens = 6;

program::Program two_inputs() {
  program::ProgramBuilder b({"compute"});
  b.buffer("tokens", program::DType::i32, tokens, program::BufferKind::input);
  b.buffer("learning_rate", program::DType::f32, 1, program::BufferKind::input);
  b.buffer("weights", program::DType::i32, 1000, program::BufferKind::persistent);
  b.begin_step();
  return b.take();
}

// Token i of step s is 100 s + i. Counts the batches requested.
class Numbers final : public program::InputSource {
 public:
  explicit Numbers(std::atomic<int>& batches, std::int64_t bad_step = -1) : batches_(batches), bad_step_(bad_step) {}
  void fill(const std::string& buffer, std::int64_t step, std::span<std::byte> to) const override {
    if (step == bad_step_) fail("step {} has no data", step);
    if (buffer == "tokens") ++batches_;
    for (std::size_t i = 0; i < to.size() / sizeof(std::int32_t); ++i) {
      const auto value = static_cast<std::int32_t>(100 * step + static_cast<std::int64_t>(i));
      std::memcpy(to.data() + i * sizeof value, &value, sizeof value);
    }
  }

 private:
  std::atomic<int>& batches_;
  std::int64_t bad_step_;
};

std::vector<std::int32_t> filled(const program::InputSource& source, std::int64_t step) {
  std::vector<std::int32_t> batch(tokens);
  source.fill("tokens", step, std::as_writable_bytes(std::span(batch)));
  return batch;
}

std::vector<std::int32_t> expected(std::int64_t step) {
  std::vector<std::int32_t> batch(tokens);
  for (std::int64_t i = 0; i < tokens; ++i) batch[i] = static_cast<std::int32_t>(100 * step + i);
  return batch;
}

struct Case {
  int workers, prefetch;
};

class Loaders : public ::testing::TestWithParam<Case> {
 protected:
  Loading loading() const { return {.workers = GetParam().workers, .prefetch = GetParam().prefetch, .tokens = tokens}; }
  std::unique_ptr<Loader> made(const Loading& how, std::int64_t bad_step = -1) {
    return std::make_unique<Loader>(std::make_unique<Numbers>(batches_, bad_step), two_inputs(), how);
  }
  std::atomic<int> batches_ = 0;
};
INSTANTIATE_TEST_SUITE_P(All, Loaders,
                         ::testing::Values(Case{0, 1}, Case{1, 1}, Case{1, 4}, Case{3, 1}, Case{3, 2}, Case{4, 9}));

TEST_P(Loaders, GiveTheNumbersOfTheSourceInOrder) {
  const auto loader = made(loading());
  for (std::int64_t step = 0; step < 200; ++step) {
    ASSERT_EQ(filled(*loader, step), expected(step));
    ASSERT_EQ(filled(*loader, step), expected(step)) << "once more";
    float rate = 0;
    loader->fill("learning_rate", step, std::as_writable_bytes(std::span(&rate, 1)));
  }
  for (const std::int64_t step : {500, 501, 3, 4, 5, 5, 900}) EXPECT_EQ(filled(*loader, step), expected(step));
}

TEST_P(Loaders, LoadAsFarAheadAsTheyAreToldAndNoFurther) {
  const auto loader = made(loading());
  const int ahead = GetParam().workers == 0 ? 0 : GetParam().prefetch;
  EXPECT_EQ(loader->is_loaded_by_step(), ahead == 0);
  for (std::int64_t step = 0; step < 5; ++step) {
    filled(*loader, step);
    const auto all = step + 1 + ahead;
    EXPECT_TRUE(test::wait_until([&] { return batches_ >= all; }));
    std::this_thread::yield();
    EXPECT_EQ(batches_, all);
  }
}

TEST_P(Loaders, ThrowAFailureAtItsStep) {
  const auto loader = made(loading(), 2);
  EXPECT_EQ(filled(*loader, 0), expected(0));
  EXPECT_EQ(filled(*loader, 1), expected(1));
  EXPECT_EQ(test::error_of([&] { filled(*loader, 2); }), "step 2 has no data");
}

TEST_P(Loaders, EndWhateverTheirThreadsDo) {
  const auto unused = made(loading());
  if (GetParam().workers == 0) return;
  Loading slow = loading(), dear = loading();
  slow.bytes = 1;
  slow.bytes_per_s = 1e-300;  // never finishes
  dear.cost_s = 1e300;
  const auto waiting = made(slow, 0), busy = made(dear, 0);
  for (const auto* loader : {&waiting, &busy}) EXPECT_NE(test::error_of([&] { filled(**loader, 0); }), "");
  EXPECT_TRUE(test::wait_until([&] { return batches_ >= 2 * std::min(GetParam().workers, GetParam().prefetch); }));
}

// No batch arrives before the storage can have delivered it.
TEST_P(Loaders, AreNoFasterThanTheirStorage) {
  Loading slow = loading();
  slow.bytes = 1000;
  slow.bytes_per_s = 500e3;  // 2 ms a batch
  const auto began = std::chrono::steady_clock::now();
  const auto loader = made(slow);
  for (std::int64_t step = 0; step < 10; ++step) {
    filled(*loader, step);
    EXPECT_GE(seconds_since(began), 2e-3 * static_cast<double>(step + 1));
  }
}

TEST(Loader, RefusesABufferThatIsNoInput) {
  std::atomic<int> batches = 0;
  const Loader loader(std::make_unique<Numbers>(batches), two_inputs(), {.tokens = tokens});
  std::int32_t one = 0;
  const auto to = std::as_writable_bytes(std::span(&one, 1));
  EXPECT_NE(test::error_of([&] { loader.fill("weights", 0, to); }), "");
  EXPECT_NE(test::error_of([&] { loader.fill("tokens", 0, to); }), "");
}

TEST(Throttle, DeliversOneRequestAfterTheOther) {
  Throttle throttle(100);
  EXPECT_DOUBLE_EQ(throttle.serve(10, 200), 12);
  EXPECT_DOUBLE_EQ(throttle.serve(11, 100), 13);
  EXPECT_DOUBLE_EQ(throttle.serve(20, 50), 20.5);  // unused capacity is lost
  EXPECT_DOUBLE_EQ(Throttle(0).serve(3, 1e9), 3);
}

// Simulates steps in virtual time: a batch is requested as soon as the ring has a free slot.
double mean_step_s(const Loading& loading, double step_s) {
  constexpr int steps = 2000;
  Throttle throttle(loading.bytes_per_s);
  std::vector<double> free_at(std::max(1, loading.workers)), taken, there;
  double now = 0;
  for (int step = 0; step < steps; ++step) {
    if (loading.workers == 0) {
      now = throttle.serve(now, loading.bytes) + loading.cost_s * loading.tokens;
    } else {
      const auto worker = std::ranges::min_element(free_at);
      const int frees = step - loading.prefetch;  // the step whose batch freed the slot
      const double asked = std::max(*worker, frees >= 0 ? taken[static_cast<std::size_t>(frees)] : 0);
      *worker = throttle.serve(asked, loading.bytes) + loading.cost_s * loading.tokens;
      now = std::max(now, *worker);
    }
    taken.push_back(now);
    now += step_s;
  }
  return now / steps;
}

TEST(Loading, IsExposedAsFarAsTheStepDoesNotHideIt) {
  for (const int workers : {0, 1, 2, 8}) {
    for (const int prefetch : {1, 2, 8}) {
      for (const double storage_s : {0.0, 0.3, 2.0}) {
        for (const double cost_s : {0.0, 0.4, 4.0}) {
          Loading loading{.workers = workers, .prefetch = prefetch, .tokens = 100, .bytes = 200};
          if (storage_s > 0) loading.bytes_per_s = loading.bytes / storage_s;
          loading.cost_s = cost_s / loading.tokens;
          const double step_s = 1;
          EXPECT_NEAR(step_s + loading.exposed_s(step_s), mean_step_s(loading, step_s), 0.03)
              << workers << " " << prefetch << " " << storage_s << " " << cost_s;
        }
      }
    }
  }
}

TEST(Loading, ComesFromTheSettings) {
  config::Settings s;
  s.loader_cost_s = 1e-6;
  EXPECT_EQ(loading_of(s, 100, 1000).tokens, 0);  // synthetic data
  s.data_file = "tokens.bin";
  EXPECT_EQ(loading_of(s, 100, 1000).bytes, 200);
  EXPECT_EQ(loading_of(s, 100, 100000).bytes, 400);
  EXPECT_EQ(loading_of(s, 0, 1000).tokens, 0);  // the middle of a pipeline
  EXPECT_EQ(tokens_of(two_inputs()), tokens);
  EXPECT_EQ(s.compute_threads(8), 6);
  EXPECT_EQ(s.compute_threads(1), 1);
  s.threads = 8;
  EXPECT_EQ(s.compute_threads(2), 8);
  s.workload = "gemm";
  EXPECT_EQ(s.loader_threads(), 0);
}

TEST(Loading, OfMadeUpTokensIsNoLoader) {
  std::atomic<int> batches = 0;
  auto source = std::make_unique<Numbers>(batches);
  const program::InputSource* const before = source.get();
  config::Settings s;
  const auto same = with_loader(std::move(source), two_inputs(), s, 1000);
  EXPECT_EQ(same.get(), before);
  s.data_file = "tokens.bin";
  const auto loader = with_loader(std::make_unique<Numbers>(batches), two_inputs(), s, 1000);
  EXPECT_NE(dynamic_cast<const Loader*>(loader.get()), nullptr);
}

}  // namespace
}  // namespace harness::data
