#include <gtest/gtest.h>

#include "doctor/check.h"

namespace harness::doctor {
namespace {

TEST(Findings, ACheckThatFoundNothingPassesIfItLookedAtAnything) {
  Findings looked, did_not, found;
  looked.conclude(true, "all active", "no NVLink");
  did_not.conclude(false, "all active", "no NVLink");
  found.fail("17 of 18 are active", "reseat it");
  found.conclude(true, "all active", "no NVLink");
  ASSERT_EQ(looked.list().size(), 1u);
  EXPECT_EQ(looked.list()[0].verdict, Verdict::pass);
  EXPECT_EQ(looked.list()[0].evidence, "all active");
  ASSERT_EQ(did_not.list().size(), 1u);
  EXPECT_EQ(did_not.list()[0].verdict, Verdict::skip);
  EXPECT_EQ(did_not.list()[0].evidence, "no NVLink");
  ASSERT_EQ(found.list().size(), 1u);
  EXPECT_EQ(found.list()[0].verdict, Verdict::fail);
}

}  // namespace
}  // namespace harness::doctor
