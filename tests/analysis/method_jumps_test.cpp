// The jumps of docs/method.md, "The machine over the sweep", found again by the page's conditions.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "analysis/level_course.h"
#include "base/random.h"
#include "method_sweep.h"
#include "noisy_sweep.h"

namespace harness::method {
namespace {

struct PageJump {
  int first = 0;  // block after it
  double size = 0, error = 0;
};

double deviations_median(const std::vector<double>& from_medians) {
  return 1.4826 * median(from_medians);
}

// A session's x, and what the page says of a place, the number of blocks before it.
class PageSession {
 public:
  explicit PageSession(std::vector<double> x) : x_(std::move(x)) {
    if (size() < 16) return;
    std::vector<double> off;
    for (int i = 0; i < size(); ++i) {
      off.push_back(std::abs(x_[i] - median(some(std::max(i - 8, 0), std::min(i + 9, size())))));
    }
    around_ = deviations_median(off);
  }

  std::vector<PageJump> jumps() const {
    std::vector<PageJump> found;
    for (int place = 8; place <= size() - 8; ++place) {
      if (!is_largest(place) || !stands_out(place)) continue;
      const int moved = sharpest(place);
      if (!stands_out(moved) || d(moved, 3) / d(moved) <= 2.0 / 3) continue;
      if (!found.empty() && moved - found.back().first < 8) continue;
      found.push_back({moved, d(moved), error(moved)});
    }
    return found;
  }

 private:
  int size() const { return static_cast<int>(x_.size()); }
  std::vector<double> some(int from, int to) const { return {x_.begin() + from, x_.begin() + to}; }
  double d(int place, int blocks = 8) const {
    return median(some(place, place + blocks)) - median(some(place - blocks, place));
  }
  // Of the 16 blocks around a place from the medians of their sides.
  std::vector<double> distances_from_sides(int place) const {
    const double before = median(some(place - 8, place)), after = median(some(place, place + 8));
    std::vector<double> off;
    for (int i = place - 8; i < place + 8; ++i) off.push_back(std::abs(x_[i] - (i < place ? before : after)));
    return off;
  }
  double error(int place) const {
    const double s = std::max(deviations_median(distances_from_sides(place)), around_);
    return 1.2533 * s * std::sqrt(2.0 / 8);
  }
  bool is_largest(int place) const {
    for (int other = std::max(8, place - 7); other <= std::min(size() - 8, place + 7); ++other) {
      const double there = std::abs(d(other)), here = std::abs(d(place));
      if (there > here || (there == here && other < place)) return false;
    }
    return true;
  }
  bool stands_out(int place) const {
    std::vector<double> elsewhere;
    for (int other = 8; other <= size() - 8; ++other) {
      if (std::abs(other - place) >= 8) elsewhere.push_back(std::abs(d(other)));
    }
    const double here = std::abs(d(place));
    const bool unusual = elsewhere.size() < 8 || here > 4 * deviations_median(elsewhere);
    return here > std::log(1.03) && here > 5 * error(place) && unusual;
  }
  int sharpest(int place) const {
    int best = 0;
    double least = INFINITY;
    for (int other = std::max(8, place - 4); other <= std::min(size() - 8, place + 4); ++other) {
      double sum = 0;
      for (const double distance : distances_from_sides(other)) sum += distance;
      if (sum < least) best = other;
      least = std::min(sum, least);
    }
    return best;
  }

  std::vector<double> x_;
  double around_ = 0;
};

void expect_jumps(const std::vector<analysis::LevelJump>& program, const std::vector<PageJump>& page) {
  ASSERT_EQ(program.size(), page.size());
  for (std::size_t i = 0; i < page.size(); ++i) {
    EXPECT_EQ(program[i].first, static_cast<std::size_t>(page[i].first));
    EXPECT_NEAR(program[i].log_change, page[i].size, 1e-7);
    EXPECT_NEAR(program[i].standard_error, page[i].error, 1e-7);
  }
}

// The x of the page: the level before any guard, the copy of the baseline a case of its own.
std::vector<double> x_of(const store::Result& file) {
  std::vector<PageBlock> blocks = grouped(blocks_before(file, file.rounds), true);
  const PageModel model(blocks, false);
  std::ranges::sort(blocks, {}, &PageBlock::t);
  std::vector<double> x;
  for (const PageBlock& b : blocks) x.push_back(b.y - (model.groups[b.group].m - model.groups[0].m));
  return x;
}

TEST(MethodJumps, OfTheExampleWithAndWithoutAPlantedStep) {
  const store::Result& file = example();
  const double moment = file.blocks[27].start_unix_s;
  for (const double factor : {1.0, 1.05, 1.3}) {
    SCOPED_TRACE(factor);
    const store::Result stepped = changed(file, "stepped", [&](const store::ResultBlock& block) {
      return block.start_unix_s >= moment ? std::log(factor) : 0;
    });
    const std::vector<PageJump> page = PageSession(x_of(stepped)).jumps();
    expect_jumps(analysis::level_course(stepped).jumps, page);
    // Blocks scatter by 3 %: five errors are more than 5 %.
    ASSERT_EQ(page.size(), factor > 1.1 ? 1u : 0u);
    if (page.empty()) continue;
    EXPECT_NEAR(page[0].first, 27, 1);
    EXPECT_NEAR(page[0].size, std::log(factor), 0.05);
  }
}

// Sweeps in two sessions of any length, with four steps. The level itself is that of the program here; the test
// above and those of the level recompute it.
TEST(MethodJumps, OfSimulatedSweepsWithSteps) {
  using test::simulated::Disturbance;
  const std::vector<Disturbance> noises{{.name = "white", .drift = 0, .set_up = 0.005},
                                        {.name = "drift", .drift = 0.01},
                                        {.name = "quick drift", .drift = 0.02, .drift_time_s = 120},
                                        {.name = "hits", .drift = 0.003, .hit = 0.1}};
  int found = 0, sweeps = 0;
  for (const Disturbance& noise : noises) {
    test::simulated::NoisySweeps noisy(noise, {}, 77);
    for (std::uint64_t k = 0; k < 60; ++k, ++sweeps) {
      SCOPED_TRACE(sweeps);
      const auto any_below = [&](int end, std::uint64_t which) {
        return static_cast<std::size_t>(end * uniform_open(philox(k, which)[0]));
      };
      analysis::SweepBlocks sweep = noisy.draw();
      const std::size_t blocks = sweep.blocks.size(), second_session = any_below(static_cast<int>(blocks), 0);
      std::size_t first = 0;
      for (std::uint64_t step = 1; step <= 4; ++step) {
        // The second takes the first back, after a few blocks.
        first = step == 2 ? first + 5 + any_below(6, step) : any_below(static_cast<int>(blocks), step);
        const double size = 0.02 + 0.1 * uniform_open(philox(k, 10 + (step + 1) / 2)[0]);
        for (std::size_t i = first; i < blocks; ++i) sweep.blocks[i].seconds *= std::exp(step % 2 == 0 ? size : -size);
      }
      for (std::size_t i = second_session; i < blocks; ++i) sweep.blocks[i].session = 1;
      const analysis::LevelCourse course = analysis::level_course(sweep);
      std::array<std::vector<double>, 2> x;
      for (const analysis::CourseBlock& block : course.blocks) {
        x.at(static_cast<std::size_t>(block.session)).push_back(block.machine);
      }
      std::vector<PageJump> page = PageSession(x[0]).jumps();
      for (PageJump jump : PageSession(x[1]).jumps()) {
        jump.first += static_cast<int>(x[0].size());
        page.push_back(jump);
      }
      expect_jumps(course.jumps, page);
      found += static_cast<int>(page.size());
    }
  }
  EXPECT_GT(found, sweeps / 2);
  EXPECT_LT(found, 3 * sweeps);
}

}  // namespace
}  // namespace harness::method
