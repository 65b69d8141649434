// What is missing in a file shows as missing, in every format.
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <regex>

#include "analysis/findings.h"
#include "full_result.h"
#include "golden.h"
#include "report/page/page.h"
#include "report/show.h"
#include "support/sample_results.h"

namespace harness::page {
namespace {

// A number that is not known is left out or said to be unknown, whatever is missing.
TEST(NotANumber, IsNeverPrinted) {
  constexpr double nothing = std::numeric_limits<double>::quiet_NaN();
  using Change = std::function<void(store::Result&)>;
  const auto all_cases = [](double store::ResultCase::*member, double value) {
    return [=](store::Result& result) {
      for (store::ResultCase& row : result.cases) row.*member = value;
    };
  };
  const std::vector<Change> changes{
      [](store::Result&) {},
      [](store::Result& result) {
        for (store::ResultBlock& block : result.blocks) block.status = store::BlockStatus::pending;
      },
      [](store::Result& result) {
        for (store::ResultBlock& block : result.blocks) {
          if (block.case_index < 2) block.status = store::BlockStatus::failed;
        }
      },
      [](store::Result& result) {
        for (store::ResultCase& row : result.cases) row.status = store::CaseStatus::impossible;
      },
      [](store::Result& result) { result.rounds = 1; },
      [](store::Result& result) { result.splits.clear(); },
      [](store::Result& result) { result.operations.clear(); },
      [](store::Result& result) { result.losses.clear(); },
      [](store::Result& result) { result.looks = "5,8,12"; },
      all_cases(&store::ResultCase::peak_flops_per_rank, 0),
      all_cases(&store::ResultCase::tokens_per_step, 0),
      all_cases(&store::ResultCase::model_flop_per_step, 0),
      all_cases(&store::ResultCase::hardware_flop_per_step, nothing),
      all_cases(&store::ResultCase::planned_memory_bytes, 0),
  };
  const std::regex none("(^|[^A-Za-z])(nan|inf)([^A-Za-z]|$)");
  const auto found_in = [&](const std::string& text) {
    std::smatch match;
    if (!std::regex_search(text, match, none)) return std::string();
    const auto at = static_cast<std::size_t>(match.position());
    return text.substr(at < 200 ? 0 : at - 200, 400);
  };
  for (const store::Result& sample : {test::samples::full(), test::samples::everything(), test::samples::partial()}) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      store::Result result = sample;
      changes[i](result);
      SCOPED_TRACE(i);
      const analysis::Findings findings = analysis::find_all(result);
      EXPECT_EQ(found_in(page(make_report(result))), "");
      EXPECT_EQ(found_in(report::write(report::breakdown_document(result, findings), report::Format::text)), "");
      for (const report::Format format : {report::Format::text, report::Format::csv, report::Format::json})
        EXPECT_EQ(found_in(report::show(result, findings.summary, format)), "");
    }
  }
}

}  // namespace
}  // namespace harness::page
