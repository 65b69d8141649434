#include <gtest/gtest.h>

#include <set>

#include "nccl/names.h"

namespace harness::nccl {
namespace {

std::string owner(std::string_view name) {
  const ForeignName* row = find_foreign_name(name);
  return row == nullptr ? "nobody" : std::string(row->owner);
}

TEST(ForeignNames, HaveOneOwnerEachAndANote) {
  std::set<std::string_view> seen;
  for (const ForeignName& row : foreign_names()) {
    EXPECT_TRUE(seen.insert(row.name).second) << row.name << " stands in the table twice";
    EXPECT_FALSE(row.note.empty() || row.note.ends_with('.')) << row.name;
    EXPECT_EQ(row.owner.empty(), row.name == "NCCL_SHARP_ENABLE") << row.name;
    EXPECT_FALSE(knows(row.name)) << row.name << " is NCCL's own";
    EXPECT_EQ(find_foreign_name(row.name), &row) << row.name;
    if (row.is_prefix()) {
      EXPECT_EQ(find_foreign_name(std::string(row.name) + "XYZZY"), &row) << row.name;
    } else {
      EXPECT_NE(find_foreign_name(std::string(row.name) + "X"), &row) << row.name;
    }
  }
}

TEST(ForeignNames, AreNeverThoseThatNcclReads) {
  for (const char* own : {"NCCL_TUNER_PLUGIN", "NCCL_PROFILER_PLUGIN", "NCCL_IB_HCA", "NCCL_ALGO", "NCCL_DEBUG"}) {
    EXPECT_EQ(owner(own), "nobody") << own;
  }
  EXPECT_EQ(owner("NCCL_TUNER_CONFIG_PATH"), "tuner plug-ins");
}

TEST(ForeignNames, AreFoundByTheLongestBeginning) {
  EXPECT_EQ(owner("NCCL_OFI_WHATEVER"), owner("OFI_NCCL_PROTOCOL"));
  EXPECT_EQ(owner("TORCH_NCCL_TRACE_BUFFER_SIZE"), "PyTorch");
  EXPECT_EQ(owner("NCCL_ASYNC_ERROR_HANDLING"), "PyTorch");
  EXPECT_EQ(owner("NCCL_VERSION"), "container images");
  EXPECT_EQ(owner("NCCL_VERSIONS"), "nobody");
  EXPECT_EQ(owner("NCCL_"), "nobody");
  EXPECT_EQ(owner(""), "nobody");
}

}  // namespace
}  // namespace harness::nccl
