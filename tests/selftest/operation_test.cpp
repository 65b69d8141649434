#include "selftest/checks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "backends/backends.h"
#include "program/program.h"
#include "selftest/operation_cases.h"
#include "support/soak.h"
#include "wrong_backend.h"

namespace harness::selftest {
namespace {

using test::FailingBackend;
using test::FinerBackend;
using test::Wrong;
using test::WrongBackend;
using ::testing::HasSubstr;

const backend::Backend& cpu() {
  return backends::get(config::BackendKind::cpu);
}

OperationCheckOptions small(const std::string& only = "") {
  OperationCheckOptions o;
  if (!only.empty()) o.only = {only};
  o.large = false;
  return o;
}

const std::vector<OperationCase>& cases() {
  static const std::vector<OperationCase> all = operation_cases(true, true, true);
  return all;
}

// Returns the name of every compute action of the variant.
template <std::size_t... I>
std::set<std::string> compute_actions(std::index_sequence<I...>) {
  std::set<std::string> names;
  const auto add = [&](const program::Action& a) {
    if (!program::is_communication(a)) names.insert(std::string(program::name_of(a)));
  };
  (add(std::variant_alternative_t<I, program::Action>{}), ...);
  return names;
}

TEST(OperationCases, CoverEveryComputeOperationInEveryPrecision) {
  std::set<std::string> covered;
  for (const OperationCase& subject : cases()) covered.insert(subject.operation + " " + subject.precision());
  for (const std::string& name : compute_actions(std::make_index_sequence<std::variant_size_v<program::Action>>())) {
    EXPECT_TRUE(covered.contains(name + " fp32")) << name;
    const std::set<std::string> of_f32_alone{"initialize",   "record", "check_finite",
                                             "update_scale", "top_k",  "scatter_add"};
    if (of_f32_alone.contains(name)) continue;
    EXPECT_TRUE(covered.contains(name + " bf16")) << name;
    EXPECT_TRUE(covered.contains(name + " fp16") || name == "quantise") << name;
  }
  EXPECT_TRUE(covered.contains("matmul tf32"));
}

TEST(OperationCases, HaveRightShapesAndNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const OperationCase& subject : cases()) {
    EXPECT_TRUE(names.insert(subject.operation + ": " + subject.name).second)
        << subject.operation << ": " << subject.name;
    const program::ProgramSet set{subject.layout, {}, program::AxisSet::all(), {}};
    for (const auto* list : {&subject.program.step, &subject.prepare}) {
      for (const program::Operation& op : *list) {
        EXPECT_EQ(program::check_shapes(set, subject.program, subject.rank, op.action), "")
            << subject.operation << ": " << subject.name;
      }
    }
    ASSERT_EQ(subject.buffers.size(), subject.program.buffers.size());
    ASSERT_EQ(subject.program.step.size(), 1u);
    EXPECT_TRUE(subject.program.init.empty());
  }
}

TEST(OperationCheck, TheCpuBackendPassesAgainstItself) {
  OperationCheckOptions options = small();
  // With sanitizers, tests/backend/cpu covers the whole table.
  if (test::sanitized) options.only = {"gelu: ", "layer_norm: ", "quantise: "};
  const auto lines = check_operations(cases(), cpu(), cpu(), options);
  EXPECT_GE(lines.size(), test::sanitized ? 5u : 40u);
  for (const CheckLine& l : lines) {
    EXPECT_EQ(l.outcome, Outcome::passed) << l.check << (l.failures.empty() ? "" : ": " + l.failures.front());
    EXPECT_GT(l.cases, 0);
  }
  EXPECT_EQ(exit_code(lines), 0);
}

TEST(OperationCheck, AnOperationThatThrowsFailsItsCaseAlone) {
  const auto lines = check_operations(cases(), FailingBackend(3), cpu(), small("gelu: "));
  int failed = 0;
  for (const CheckLine& l : lines) {
    failed += static_cast<int>(l.failures.size());
    for (const std::string& failure : l.failures) EXPECT_THAT(failure, HasSubstr("illegal memory access"));
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(exit_code(lines), 1);
}

// Rounding at other places is within the tolerances but measurable, which shows that results are compared.
TEST(OperationCheck, AnotherWayToTheSameResultPasses) {
  double worst = 0;
  for (const CheckLine& l : check_operations(cases(), FinerBackend(), cpu(), small("matmul"))) {
    EXPECT_EQ(l.outcome, Outcome::passed) << l.check << (l.failures.empty() ? "" : ": " + l.failures.front());
    worst = std::max(worst, l.error);
  }
  EXPECT_GT(worst, 1e-4);
}

struct Mistake {
  const char* operation;
  Wrong wrong;
  const char* words;  // expected in the message
  std::string only = std::string(operation) + ": ";
};

class WrongOperation : public ::testing::TestWithParam<Mistake> {};

TEST_P(WrongOperation, IsFoundAndNamed) {
  const Mistake& m = GetParam();
  const WrongBackend subject(m.operation, m.wrong);
  const auto lines = check_operations(cases(), subject, cpu(), small(m.only));
  ASSERT_FALSE(lines.empty());
  for (const CheckLine& l : lines) {
    EXPECT_EQ(l.outcome, Outcome::failed) << l.check;
    EXPECT_EQ(static_cast<int>(l.failures.size()), l.cases) << l.check;  // every case must show it
    for (const std::string& failure : l.failures) {
      EXPECT_EQ(failure.find(std::string(m.operation) + ": "), 0u) << failure;
      EXPECT_THAT(failure, HasSubstr(m.words));
    }
  }
  EXPECT_EQ(exit_code(lines), 1);
}

std::string name_of_mistake(const ::testing::TestParamInfo<Mistake>& mistake) {
  static constexpr std::array words{"scaled", "untouched", "beyond", "nan", "input"};
  return std::string(mistake.param.operation) + "_" + words.at(static_cast<std::size_t>(mistake.param.wrong));
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, WrongOperation,
    ::testing::Values(
        Mistake{"gelu", Wrong::scaled, "off by"}, Mistake{"layer_norm_backward", Wrong::scaled, "off by"},
        Mistake{"embedding", Wrong::untouched, "left element"}, Mistake{"layer_norm", Wrong::untouched, "left element"},
        Mistake{"bias_add", Wrong::untouched, "off by"}, Mistake{"cross_entropy_sums", Wrong::beyond, "wrote element"},
        Mistake{"residual_add", Wrong::beyond, "wrote element"}, Mistake{"column_sum", Wrong::nan, "is nan"},
        Mistake{"residual_add", Wrong::changes_input, "may only read"},
        Mistake{"adamw", Wrong::untouched, "off by", "adamw: 4099 parameters, step"}),
    name_of_mistake);

// Several chunks, the last one partly filled.
OperationCase wide_case() {
  CaseBuilder b(program::DType::bf16);
  const program::View in = b.normal("in", 3 * chunk_elements + 17), out = b.output("out", in.count);
  return b.take(program::Gelu{in, out}, "wide");
}

TEST(OperationCheck, ThreadsChangeNothing) {
  const OperationCase wide = wide_case();
  CaseBytes before;
  for (std::size_t b = 0; b < wide.buffers.size(); ++b) {
    before.push_back(initial_bytes(wide, b, 7, 1));
    EXPECT_EQ(before[b], initial_bytes(wide, b, 7, 3));
  }
  CaseBytes oracle = before;
  oracle[1] = before[0];  // arbitrary numbers
  CaseBytes subject = oracle;
  const std::int64_t size = program::size_of(program::DType::bf16);
  for (std::int64_t i = wide.buffers[1].view.offset; i < wide.buffers[1].view.count; i += 5) {
    subject[1][i * size] ^= std::byte{1};  // the last bit
  }
  const ResultError alone = compare(wide, before, subject, oracle, 1),
                    together = compare(wide, before, subject, oracle, 3);
  EXPECT_GT(alone.error, 0);
  EXPECT_EQ(alone.error, together.error);
  // The first of several failures is reported.
  for (const std::int64_t at : {3 * chunk_elements, 2 * chunk_elements, chunk_elements}) {
    std::fill_n(subject[1].begin() + (wide.buffers[1].view.offset + at) * size, size, std::byte{0xff});
  }
  EXPECT_THAT(compare(wide, before, subject, oracle, 3).failure,
              HasSubstr(fmt::format("element {} of out", chunk_elements)));
}

TEST(OperationCheck, ALineIsFinishedWithItsLastCase) {
  std::vector<std::string> events;
  OperationCheckOptions o = small("elu: ");
  o.progress = [&](const std::string& name) { events.push_back(name); };
  o.finished = [&](const CheckLine& line) { events.push_back(fmt::format("{}, {} cases", line.check, line.cases)); };
  const auto lines = check_operations(cases(), cpu(), cpu(), o);
  ASSERT_EQ(lines.size(), 3u);
  const auto fp32 = std::ranges::find(events, fmt::format("operations: gelu fp32, {} cases", lines[0].cases));
  ASSERT_NE(fp32, events.end());
  EXPECT_EQ(fp32 - events.begin(), lines[0].cases);  // before any case of bf16 begins
  EXPECT_EQ(events.back(), fmt::format("operations: gelu fp16, {} cases", lines[2].cases));
}

TEST(CheckLine, KeepsTheWorstError) {
  CheckLine line{.check = "losses", .tolerance = 1e-4};
  for (const double error : {1e-6, 1e-5, 1e-7}) judge(line, "a step", error);
  EXPECT_EQ(line.error, 1e-5);
  EXPECT_EQ(line.outcome, Outcome::passed);
  for (const double error : {std::numeric_limits<double>::quiet_NaN(), 1e-6}) judge(line, "a step", error);
  EXPECT_TRUE(std::isnan(line.error));
  EXPECT_EQ(line.outcome, Outcome::failed);
}

}  // namespace
}  // namespace harness::selftest
