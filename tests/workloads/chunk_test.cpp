#include "workloads/gpt/chunk.h"

#include <gtest/gtest.h>

#include <string>

namespace harness::gpt {
namespace {

// "0-1 4-5": the layers of each chunk; [ and ] for the ends of the model.
std::string text(int layers, int stages, int stage, int chunks) {
  config::Model model;
  model.layers = layers;
  std::string all;
  for (const Chunk& c : chunks_of(model, {{program::Axis::pipeline, stages}}, stage, chunks)) {
    if (!all.empty()) all += ' ';
    if (c.first) all += '[';
    all += std::to_string(c.first_layer) + '-' + std::to_string(c.end() - 1);
    if (c.last) all += ']';
  }
  return all;
}

TEST(Chunks, OfOneStageAreTheWholeModel) {
  EXPECT_EQ(text(4, 1, 0, 1), "[0-3]");
  EXPECT_EQ(text(4, 1, 0, 2), "[0-1 2-3]");
}

TEST(Chunks, GoToTheStagesInTurn) {
  EXPECT_EQ(text(8, 2, 0, 1), "[0-3");
  EXPECT_EQ(text(8, 2, 1, 1), "4-7]");
  EXPECT_EQ(text(8, 2, 0, 2), "[0-1 4-5");
  EXPECT_EQ(text(8, 2, 1, 2), "2-3 6-7]");
}

TEST(Chunks, AreALayerLongerAtTheBeginningWhereLayersDoNotDivide) {
  EXPECT_EQ(text(10, 4, 0, 1), "[0-2");
  EXPECT_EQ(text(10, 4, 1, 1), "3-5");
  EXPECT_EQ(text(10, 4, 2, 1), "6-7");
  EXPECT_EQ(text(10, 4, 3, 1), "8-9]");
  EXPECT_EQ(text(5, 2, 0, 2), "[0-1 3-3");
  EXPECT_EQ(text(5, 2, 1, 2), "2-2 4-4]");
}

}  // namespace
}  // namespace harness::gpt
