#include <gtest/gtest.h>

#include <set>

#include "base/text.h"
#include "nccl/values.h"

namespace harness::nccl {
namespace {

std::string owner(std::string_view name) {
  const ForeignName* row = find_foreign_name(name);
  return row == nullptr ? "nobody" : std::string(row->owner);
}

TEST(ForeignNames, HaveOneOwnerEachAndANote) {
  std::set<std::string_view> seen;
  for (const ForeignName& row : foreign_names()) {
    EXPECT_FALSE(row.note.empty() || row.note.ends_with('.')) << row.names;
    EXPECT_EQ(row.owner.empty(), row.names == "NCCL_SHARP_ENABLE") << row.names;
    for (const std::string_view name : split(row.names, ' ')) {
      EXPECT_TRUE(seen.insert(name).second) << name << " stands in the table twice";
      EXPECT_FALSE(knows(name)) << name << " is NCCL's own";
      EXPECT_EQ(find_foreign_name(name), &row) << name;
      EXPECT_EQ(find_foreign_name(std::string(name) + "XYZZY") == &row, row.is_prefix()) << name;
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
