#include "user.h"

namespace harness {
namespace {

std::string write_point(const TemporaryFolder& folder, const std::string& text) {
  return folder.write(
      "point.yaml", text + "measure: {rounds: 1, warmup_steps: 1, steps: 2}\noutput: " + (folder / "point.h5") + "\n");
}

// Every collective on three ranks, in place and out of place; the workers check every element of the results.
TEST(Collective, EveryOperationIsMeasuredAndChecked) {
  const TemporaryFolder folder;
  const auto config = write_point(folder, R"(
workload: collective
backend: cpu
fabric: {rank: 1 B/s}
baseline: {collective: all_reduce, message_size: 12 KiB, repetitions: 4}
sweep:
  collective: [reduce_scatter, all_gather, all_to_all, send_recv]
  in_place: [false]
  precision: [bf16]
  allreduce_algorithm: [halving_doubling]
  message_size: [10 KiB]
  ranks: [2, 1]
)");
  const auto o = run_job(3, "sweep " + config);
  ASSERT_TRUE(is_measured(o)) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("baseline GB/s"), Not(HasSubstr("MFU")), Not(HasSubstr("  tokens/s"))));
  // Every machine exceeds a limit of 1 B/s, and the result says so.
  EXPECT_THAT(o.out, AllOf(HasSubstr("beyond the limit"), HasSubstr("! impossible: ")));

  const store::Result r = store::read_result(folder / "point.h5");
  for (const store::ResultBlock& b : r.blocks) EXPECT_EQ(b.status, store::BlockStatus::ok) << b.reason;
  for (const auto& losses : r.losses) {
    for (const float loss : losses) EXPECT_NEAR(loss, 1, 1e-6);
  }
  EXPECT_EQ(r.find_case("ranks=1")->status, store::CaseStatus::impossible);
}

TEST(Collective, ProductsAndAttentionOfAModel) {
  const TemporaryFolder folder;
  const std::string model = "backend: cpu\nmodel: {layers: 1, hidden: 32, heads: 2, vocab: 64, sequence: 16}\n";
  for (const std::string& text :
       {"workload: gemm\n" + model +
            "baseline: {gemm: {m: 48, n: 32, k: 16}, repetitions: 3}\nsweep: {gemm: from_model, precision: [bf16]}\n",
        "workload: attention\n" + model +
            "baseline: {attention_shape: {batch: 2, heads: 2, head_dim: 8, sequence: 24}, repetitions: 3}\n"
            "sweep: {attention_shape: from_model, attention_pass: [backward], precision: [bf16]}\n"}) {
    const auto o = run_job(2, "sweep --force " + write_point(folder, text));
    ASSERT_TRUE(is_measured(o)) << o.err;
    EXPECT_THAT(o.out, HasSubstr("of peak"));
    EXPECT_EQ(o.out.find("qkv, forward") != std::string::npos, text.starts_with("workload: gemm"));
    const store::Result r = store::read_result(folder / "point.h5");
    EXPECT_GE(r.cases.size(), 5u);
    for (const store::ResultBlock& b : r.blocks) EXPECT_EQ(b.status, store::BlockStatus::ok) << b.reason;
  }
}

}  // namespace
}  // namespace harness
