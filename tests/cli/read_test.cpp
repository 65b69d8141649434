#include <algorithm>

#include "report/document.h"
#include "said.h"

namespace harness::cli {
namespace {

std::string sample(const std::string& name) {
  return test::source_dir() + "/tests/evidence/samples/" + name;
}

TEST_F(Readers, ReadPutsTheHeadlineFirstAndCommandsLast) {
  const Said said = say({"read", sample("nccl-timeouts.log")});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, AllOf(HasSubstr(": nccl log\n3 nodes timed out on one peer, 10.9.0.7."), HasSubstr("\n! "),
                              HasSubstr("\nNext:\n  ./harness doctor")));
}

// Except commands to paste, and the path of this checkout.
TEST_F(Readers, ReadFitsEightyColumns) {
  for (const char* name : {"megatron-arguments.log", "nccl-tests-hole.txt", "nccl-without-direct.log", "hostfile"}) {
    const std::string text = say({"read", sample(name)}).out;
    std::vector<std::string> lines = split_text(text.substr(0, text.find("\nNext:")), "\n");
    lines.erase(lines.begin());
    for (const std::string& line : lines) EXPECT_LE(report::columns_of(line), 80u) << line;
  }
}

TEST_F(Readers, ReadSetsATraceBesideWhatAConfigurationOrAScriptPredicts) {
  const std::string trace = test::source_dir() + "/tests/traces/data/h200_gpt350m.json.gz";
  const std::string model = "model: gpt3-350m\nhardware: h200-sxm\n";
  const std::string ours = folder_.write("own.txt", "name: x\nbackend: cuda\n" + model +
                                                        "baseline: {precision: bf16, global_batch_size: 8, "
                                                        "micro_batch_size: 8}\n");
  const std::string script = folder_.write(
      "one.sh",
      "torchrun --nproc_per_node 1 pretrain_gpt.py --num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
      "--seq-length 2048 --max-position-embeddings 2048 --padded-vocab-size 50304 --micro-batch-size 8 "
      "--global-batch-size 8 --bf16\n");
  const Said alone = say({"read", ours});
  EXPECT_EQ(alone.code, 1);
  EXPECT_THAT(alone.err + alone.out, HasSubstr("it is a configuration of harness"));
  for (const std::string& job : {ours, script}) {
    const Said said = say({"read", trace, job, "--set", "hardware=h200-sxm", "--format", "json"});
    ASSERT_EQ(said.code, 0) << said.err;
    const auto json = said.json();
    EXPECT_EQ(json["kind"], "profiler trace");
    EXPECT_TRUE(json["refused"].empty()) << json["refused"];
    ASSERT_FALSE(json["also"].empty());
    EXPECT_TRUE(json["also"][0].contains("prediction")) << job;
  }
}

TEST_F(Readers, ReadAnswersTheOtherFilesBesideOneThatItCannotRead) {
  const std::string trace = test::source_dir() + "/tests/traces/data/h200_gpt350m.json.gz";
  const std::string notes = folder_.write("notes.txt", "hello\n");
  const std::string without_gpu = folder_.write("own.yaml",
                                                "name: x\nbackend: cuda\nmodel: gpt3-350m\nbaseline: {precision: bf16, "
                                                "global_batch_size: 8, micro_batch_size: 8}\n");
  const Said said = say({"read", trace, notes, without_gpu, "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.err;
  ASSERT_EQ(said.json()["refused"].size(), 2u) << said.json()["refused"];
  EXPECT_THAT(said.json()["refused"].dump(), AllOf(HasSubstr("hardware"), HasSubstr("notes.txt")));
  const std::string foreign =
      folder_.write("foreign.json", R"({"traceEvents": [{"ph": "X", "ts": 1, "dur": 1, "cat": "gpu", "name": "x"}]})");
  const Said hosts = say({"read", foreign, sample("hostfile")});
  EXPECT_EQ(hosts.code, 0) << hosts.err;
  EXPECT_THAT(unwrapped(hosts.out), AllOf(HasSubstr("hostfile"), HasSubstr("not read: "), HasSubstr("Chrome trace")));
  EXPECT_EQ(say({"read", foreign, notes}).code, 1);
}

TEST_F(Readers, ReadWritesAPredictionThatPlansWhateverMemoryItNeeds) {
  const std::string titan = folder_.write("titan.toml",
                                          "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"
                                          "[training]\nlocal_batch_size = 8\nseq_len = 8192\n"
                                          "[parallelism]\ndata_parallel_shard_degree = 4\n"
                                          "context_parallel_degree = 2\n"
                                          "[activation_checkpoint]\nmode = \"none\"\n");
  const std::string job = folder_.path() + "/job.yaml";
  const Said read = say({"read", titan, "--set", "hardware=h100-sxm", "-o", job});
  ASSERT_EQ(read.code, 0) << read.err;
  EXPECT_THAT(unwrapped(read.out), HasSubstr("the job keeps less"));
  EXPECT_THAT(test::text_of(job), HasSubstr("  memory_cap: "));
  EXPECT_EQ(say({"plan", job, "--ranks", "8"}).code, 0);
  EXPECT_THAT(say({"read", titan, "-o", folder_.path() + "/other.yaml"}).err, HasSubstr("needs the GPU"));
}

TEST_F(Readers, ReadWritesJsonByTheKeysOfTheEvidence) {
  const auto json =
      say({"read", sample("nccl-tests-hole.txt"), sample("megatron-jump.log"), "--format", "json"}).json();
  EXPECT_EQ(json["schema"], "harness-read");
  EXPECT_EQ(json["kind"], "training log");
  EXPECT_EQ(json["log"]["jump"], "+12.5 %");
  EXPECT_EQ(json["log"]["by_iteration"].size(), 30u);
  EXPECT_EQ(json["also"][0]["bandwidths"]["ranks"], 8);
  EXPECT_EQ(json["also"][0]["bandwidths"]["by_size"][0]["bytes"], 1048576.0);
  for (const char* list : {"problems", "cannot", "refused", "notes", "next"})
    EXPECT_TRUE(json[list].is_array()) << list;
}

// A job on two nodes, its log with steps of `seconds`, and NCCL's log.
TEST_F(Readers, ReadSetsAMeasuredStepBesideThePredictedOne) {
  const std::string script = folder_.write(
      "train.sh",
      "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size "
      "14336 "
      "--num-attention-heads 32 --group-query-attention --num-query-groups 8 --seq-length 8192 --swiglu "
      "--max-position-embeddings 8192 --padded-vocab-size 128256 --micro-batch-size 1 --global-batch-size 128 --bf16 "
      "--untie-embeddings-and-output-weights --use-distributed-optimizer --overlap-grad-reduce\n");
  const auto log = [&](double seconds) {
    std::string text;
    for (int i = 1; i < 30; ++i)
      text += fmt::format(
          " iteration {:8}/ 60 | consumed samples: {} | elapsed time per iteration (ms): {:.1f} | "
          "learning rate: 3.0E-04 | global batch size:   128 | lm loss: 1.03E+01 |\n",
          i, 128 * i, 1e3 * seconds + i % 7);
    return folder_.write(fmt::format("{}.log", seconds), text);
  };
  const auto job = say({"read", script, "--set", "hardware=h100-sxm", "--format", "json"}).json()["job"];
  ASSERT_TRUE(job["predicted_step_s"].is_number());
  const double seconds = job["predicted_step_s"];
  EXPECT_THAT(say({"read", script, log(1.05 * seconds), "--set", "hardware=h100-sxm"}).out, HasSubstr("normal"));
  const Said slow = say({"read", script, log(7 * seconds), sample("nccl-sockets.log"), "--set", "hardware=h100-sxm"});
  EXPECT_THAT(report::one_line(slow.out), AllOf(HasSubstr("7.0 times the predicted"), HasSubstr("sockets")));
}

TEST_F(Readers, ReadWritesAJobAsAConfiguration) {
  const std::string job = folder_.path() + "/job.yaml";
  const Said said = say({"read", sample("slurm.sbatch"), "--set", "hardware=a100-sxm-80gb", "-o", job});
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(say({"plan", job, "--ranks", "32"}).code, 0);
  const std::string known =
      say({"read", sample("slurm.sbatch"), "--set", "ranks=16", "--set", "gpu=a100-sxm-80gb"}).out;
  const std::string of_nodes =
      say({"read", sample("slurm.sbatch"), "--set", "nodes=2", "--set", "gpu=a100-sxm-80gb"}).out;
  EXPECT_EQ(of_nodes.substr(0, of_nodes.find("Next:")), known.substr(0, known.find("Next:")));
  EXPECT_THAT(say({"read", sample("slurm.sbatch"), "--set", "nodes=2"}).err, HasSubstr("add --set ranks_per_node=8"));
  EXPECT_THAT(known, HasSubstr("slurm.sbatch --set ranks=16 --set gpu=a100-sxm-80gb -o job.yaml\n"));
  EXPECT_THAT(say({"read", sample("slurm.sbatch"), "--set", "gpu=H100"}).err, HasSubstr("did you mean h100-sxm?"));
  EXPECT_THAT(say({"read", sample("hostfile"), "-o", job}).err, HasSubstr("no file describes a job"));
}

TEST_F(Readers, ReadTakesGapsBySetAndNamesMistakes) {
  const std::string osu = sample("osu-allgather.txt");
  EXPECT_THAT(say({"read", osu, "--set", "ranks=4"}).out, HasSubstr("busbw"));
  EXPECT_THAT(say({"read", osu, "--set", "rank=4"}).err, HasSubstr("did you mean ranks?"));
  EXPECT_THAT(say({"read", osu, "--set", "ranks=0"}).err, HasSubstr("--set ranks: found 0; allowed: 1 to 1048576"));
  EXPECT_THAT(say({"read", osu, "--set", "hardware=nothing"}).err, HasSubstr("--set hardware: "));
  const Said none = say({"read", folder_.write("x", "hello\n")});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(unwrapped(none.err),
              AllOf(HasSubstr("not recognised: `read` takes logs of training, NCCL and bandwidth tests"),
                    HasSubstr("traces (docs/read.md)")));
  EXPECT_LT(none.err.size(), 400u);
  EXPECT_THAT(unwrapped(say({"read", folder_.write("hosts", "node1 slots=0\n")}).err),
              HasSubstr("it is no hostfile with a slot for a rank"));
  EXPECT_THAT(say({"read"}).err, HasSubstr("files"));
  EXPECT_THAT(unwrapped(say({"report", folder_.write("y", "hello\n")}).err),
              HasSubstr("is not an HDF5 file, so it is not a harness result; `report` also takes traces"));
}

}  // namespace
}  // namespace harness::cli
