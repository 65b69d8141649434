// Doctor's record becomes a part of a result.
#include <gtest/gtest.h>

#include "sweep/planned_result.h"

namespace harness::sweep {
namespace {

TEST(AddRecord, WhatConcernsACaseIsANoteOnIt) {
  store::Result result;
  result.cases.resize(3);
  result.cases[2].reason = "4 ranks are idle";
  const store::DoctorRecord doctor{{{-1, "fail", "pcie.width", "node1", 1, "8 of 16 lanes", "", ""},
                                    {1, "fail", "env.devices", "node1", 1, "mlx4 fits nothing here", "", ""},
                                    {2, "info", "env.without_effect", "node1", 1, "it has no effect", "", ""}},
                                   "{}"};
  add_record(result, doctor);
  EXPECT_EQ(result.cases[0].reason, "");
  EXPECT_EQ(result.cases[1].reason, "doctor, env.devices: mlx4 fits nothing here");
  EXPECT_EQ(result.cases[2].reason, "4 ranks are idle; doctor, env.without_effect: it has no effect");
  EXPECT_EQ(result.doctor.findings.size(), 3u);
  EXPECT_EQ(result.doctor.facts, "{}");
}

}  // namespace
}  // namespace harness::sweep
