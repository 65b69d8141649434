// Wherever buckets are cut, and however often they are reduced in a step, replicas train as one rank does.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "support/drawn.h"
#include "trained.h"

namespace harness::bucket_grid {
namespace {

using config::Sharding;
using test::layout_of;

struct Cell {
  Sharding sharding = Sharding::none;
  int buckets = 1;  // 1, 2, or 3: many
  int micro_batches = 1;
  bool tied = true, overlap = true, overlap_optimizer = false;
  program::DType wire = program::DType::f32;
  program::Layout layout;

  std::string text() const {
    return fmt::format("sharding {}, {} buckets, {} micro-batches, {}, overlap {} and {}, {} on the wire, {}",
                       static_cast<int>(sharding), buckets == 3 ? "many" : std::to_string(buckets), micro_batches,
                       tied ? "tied" : "untied", overlap, overlap_optimizer, program::name_of(wire),
                       program::text_of(layout));
  }
};

config::Model model_of(const Cell& cell) {
  config::Model model{"tiny", 2, 64, 4, 128, 32};
  model.tied_embeddings = cell.tied;
  return model;
}

std::int64_t buckets_of(const Cell& cell, const config::Settings& s) {
  return gpt::parameters(model_of(cell), s, cell.layout, 0).front().bucket + 1;
}

config::Settings settings_of(const Cell& cell) {
  config::Settings s;
  s.layout = cell.layout;
  s.layout[program::Axis::data] = 1;
  s.global_batch_size = std::int64_t{cell.layout[program::Axis::data]} * cell.micro_batches;
  s.sharding = cell.sharding;
  s.overlap_grad_reduce = cell.overlap;
  s.overlap_optimizer = cell.overlap_optimizer;
  s.grad_reduce_type = cell.wire;
  s.bucket_size_bytes = cell.buckets == 1 ? 1 << 30 : 16 << 10;
  // The first cut that leaves two buckets. With sharding: parameters a bucket is a layer, whatever its size.
  if (cell.buckets == 2) s.bucket_size_bytes = 64 << 10;
  while (cell.buckets == 2 && s.bucket_size_bytes < 1 << 20 && buckets_of(cell, s) > 2) s.bucket_size_bytes += 16 << 10;
  return s;
}

void expect_trains_as_one_rank(const Cell& cell) {
  const bool exact = cell.wire == program::DType::f32;
  test::expect_trains_as_one_rank(model_of(cell), settings_of(cell), cell.layout, cell.text(),
                                  exact ? test::Nearness() : test::Nearness{1e-5, 1e-3, 1e-2});
}

std::vector<program::Layout> replicated() {
  return {layout_of(1, 1, 2), layout_of(1, 1, 4), layout_of(2, 1, 2), layout_of(1, 1, 8), layout_of(2, 1, 4)};
}

TEST(BucketsOfASharding, OfFiveMicroBatchesTrainAsOneRank) {
  for (const Sharding sharding : {Sharding::optimizer, Sharding::gradients, Sharding::parameters}) {
    for (const int buckets : {1, 3}) {
      for (const program::Layout& layout : replicated()) {
        if (test::sanitized && layout.ranks() > 2) continue;
        Cell cell;
        cell.sharding = sharding;
        cell.buckets = buckets;
        cell.micro_batches = 5;
        cell.layout = layout;
        expect_trains_as_one_rank(cell);
      }
    }
  }
}

std::vector<Cell> all_cells() {
  std::vector<Cell> cells{Cell()};
  const auto by = [&](const auto& values, auto member) {
    std::vector<Cell> more;
    for (const Cell& cell : cells) {
      for (const auto& value : values) {
        more.push_back(cell);
        more.back().*member = value;
      }
    }
    cells = std::move(more);
  };
  std::vector<program::Layout> layouts = replicated();
  layouts.push_back(layout_of(1, 2, 2));
  layouts.push_back(layout_of(2, 2, 2));
  by(std::vector{Sharding::none, Sharding::optimizer, Sharding::gradients, Sharding::parameters}, &Cell::sharding);
  by(std::vector{1, 2, 3}, &Cell::buckets);
  by(std::vector{1, 2, 5}, &Cell::micro_batches);
  by(std::vector{true, false}, &Cell::tied);
  by(std::vector{true, false}, &Cell::overlap);
  by(std::vector{true, false}, &Cell::overlap_optimizer);
  by(std::vector{program::DType::f32, program::DType::bf16}, &Cell::wire);
  by(layouts, &Cell::layout);
  std::erase_if(cells, [](const Cell& cell) {  // gradients of stages are kept whole
    return cell.layout[program::Axis::pipeline] > 1 && cell.sharding > Sharding::optimizer;
  });
  return cells;
}

TEST(BucketsOfASharding, TrainAsOneRank) {
  std::set<std::int64_t> buckets;
  int trained = 0;
  for (const Cell& cell : all_cells()) {
    if (!test::drawn(cell.text(), 100)) continue;
    expect_trains_as_one_rank(cell);
    if (cell.sharding < Sharding::parameters) buckets.insert(buckets_of(cell, settings_of(cell)));
    ++trained;
  }
  EXPECT_GT(trained, 0);
  if (test::sanitized) return;  // hardly any cells
  EXPECT_GT(trained, 10);
  EXPECT_TRUE(buckets.contains(1) && *buckets.rbegin() > 4) << "the sizes of the buckets no longer fit the model";
}

}  // namespace
}  // namespace harness::bucket_grid
