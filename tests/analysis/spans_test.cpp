// Over how many nodes the groups of a measured case spread.
#include <gtest/gtest.h>

#include "analysis/cases.h"

namespace harness::analysis {
namespace {

TEST(SpansOfACase, NameTheEndsOfAPipelineWhereTheyExchangedAGradient) {
  store::Result r;
  r.ranks = 6;
  store::ResultCase& row = r.cases.emplace_back();
  row.ranks = 6;
  row.layout = {{program::Axis::data, 2}, {program::Axis::pipeline, 3}};
  const std::vector<std::int32_t> node_of{0, 0, 1, 1, 0, 2};
  for (std::int32_t rank = 0; rank < 6; ++rank) {
    store::ResultRank& place = r.rank_table.emplace_back();
    place.rank = rank;
    place.node = node_of[static_cast<std::size_t>(rank)];
    r.roles.push_back({0, rank, rank / 2, row.layout.coordinates(rank)});
  }
  EXPECT_EQ(spans_of_case(r, 0).text(), "pipeline 3, data 2");
  store::ResultOperations& exchange = r.operations.emplace_back();
  exchange.case_index = 1;
  exchange.group = "embedding";
  EXPECT_EQ(spans_of_case(r, 0).text(), "pipeline 3, data 2") << "it is another case's";
  exchange.case_index = 0;
  EXPECT_EQ(spans_of_case(r, 0).text(), "pipeline 3, data 2, embedding 2");
}

TEST(SpansOfACase, AreByTheNodesThatTheCaseSays) {
  store::Result r;
  r.ranks = 4;
  const program::Layout layout{{program::Axis::tensor, 2}, {program::Axis::data, 2}};
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    store::ResultRank& place = r.rank_table.emplace_back();
    place.rank = rank;
    place.node = rank / 2;
  }
  for (std::int32_t case_index = 0; case_index < 3; ++case_index) {
    store::ResultCase& row = r.cases.emplace_back();
    row.ranks = 4;
    row.layout = layout;
  }
  for (std::int32_t rank = 0; rank < 4; ++rank) r.roles.push_back({0, rank, 0, layout.coordinates(rank), rank / 2});
  for (std::int32_t rank = 0; rank < 4; ++rank) r.roles.push_back({1, rank, 0, layout.coordinates(rank), rank % 2});
  for (std::int32_t rank = 0; rank < 4; ++rank) r.roles.push_back({2, rank, 0, layout.coordinates(rank), -1});
  EXPECT_EQ(spans_of_case(r, 0).text(), "tensor 1, data 2");
  EXPECT_EQ(spans_of_case(r, 1).text(), "tensor 2, data 1");
  EXPECT_EQ(spans_of_case(r, 2).text(), "tensor 1, data 2") << "an older file's are those of the job";
}

}  // namespace
}  // namespace harness::analysis
