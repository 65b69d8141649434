#include <gmock/gmock.h>

#include <algorithm>
#include <array>

#include "analysis/published.h"
#include "base/text.h"
#include "config/experiment.h"
#include "config/frameworks/framework.h"
#include "config/registry.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"
#include "evidence/training_job.h"
#include "support/errors.h"
#include "support/files.h"

namespace harness::test {
namespace {

using evidence::Answer;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

Answer job_of(const std::vector<std::string>& paths, const evidence::Gaps& gaps = {}) {
  return evidence::read_files(paths, gaps).front();
}

// Reads a Megatron-LM script for 8 ranks with additional flags and preceding lines.
Answer megatron(const std::string& flags, const std::string& before = "", const std::string& gpu = "h100-sxm") {
  const std::string launch =
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32 "
      "--seq-length 4096 --padded-vocab-size 50304 --micro-batch-size 1 --global-batch-size 8 ";
  return answer_to(before + launch + flags + "\n", "go.sh", {.hardware = gpu});
}

// Reads a torchtitan configuration for Llama 3 8B.
Answer titan(const std::string& parallelism, const std::string& more = "") {
  return answer_to(
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\nlocal_batch_size = 1\n"
      "[parallelism]\n" +
      parallelism + more);
}

TEST(Job, BecomesAConfigurationThatIsAccepted) {
  for (const auto& [name, gaps] : std::vector<std::pair<std::string, evidence::Gaps>>{
           {"megatron-array.sh", {}},
           {"slurm.sbatch", {.hardware = "a100-sxm-80gb"}},
           {"mpirun.sh", {}},
           {"hybrid.toml", {}},
           {"composer.yaml", {.others = {{"micro_batch_size", "4"}}}},
           {"nemo-1.yaml", {.hardware = "h100-sxm"}},
           {"nanogpt.py", {.ranks = 8, .hardware = "h100-sxm"}},
           {"maxtext.yml", {.ranks = 16}},
           {"bloom-like.slurm", {.hardware = "a100-sxm-80gb"}},
           {"year-2022.slurm", {.hardware = "a100-sxm-80gb", .others = {{"sharding", "none"}}}},
           {"own-program.sbatch", {.others = {{"model.activation", "swiglu"}}}},
           {"submits.sh", {}},
           {"nemo-launcher.yaml", {}},
           {"foundry-opt.yaml", {.ranks = 8}},
           {"nanogpt-start.py", {.ranks = 8}},
           {"titan-pipeline.toml", {.ranks = 16, .hardware = "h100-sxm"}}}) {
    const Answer answer = job_of({sample_file(name)}, gaps);
    ASSERT_NE(answer.configuration, "") << name << ": " << join(answer.notes, "; ");
    const config::Experiment experiment = config::load_experiment("job.yaml", {}, answer.configuration);
    EXPECT_GT(experiment.model.layers, 0) << name;
  }
}

TEST(Job, SaysOfEachLineWhereItIsFrom) {
  const Answer answer = job_of({sample_file("megatron-array.sh")});
  EXPECT_THAT(answer.configuration,
              HasSubstr("layers: 24                             # --num-layers, megatron-array.sh:23"));
  EXPECT_THAT(answer.configuration, HasSubstr("# default of Megatron-LM"));
  EXPECT_THAT(answer.notes, Contains(HasSubstr("--some-flag-of-a-fork")));
}

// Reads a job whose framework gets `words`, with a model and a layout.
evidence::TrainingJob told(config::Framework framework, const NameValues& words) {
  const bool megatron = framework == config::Framework::megatron;
  std::string script = "torchrun --nnodes 8 --nproc-per-node 8 ",
              document = R"({"zero_optimization.contiguous_gradients": true)";
  script += megatron ? "pretrain_gpt.py --num-layers 32 --hidden-size 1024 --num-attention-heads 16"
                     : "torchtitan/train.py --model.flavor 8B";
  for (const auto& [key, value] : words) {
    script += fmt::format(" {}{} {}", megatron ? "" : "--", key, value);
    document += fmt::format(", \"{}\": {}", key, value.starts_with('"') ? value : fmt::format("\"{}\"", value));
  }
  evidence::JobReader reader;
  const bool zero = framework == config::Framework::deepspeed;
  reader.file(zero ? "ds.json" : "go.sh", zero ? document + "}" : script);
  return reader.finish({}, nullptr);
}

// `read` recovers the value of every variable that `export` writes.
TEST(Job, ReadsWhatIsExported) {
  using config::Framework;
  int compared = 0;
  for (const Framework framework : {Framework::megatron, Framework::deepspeed, Framework::torchtitan}) {
    for (const config::Variable& variable : config::registry()) {
      std::vector<std::string> values = variable.choices.words;
      values.insert(values.end(), variable.examples.begin(), variable.examples.end());
      for (const std::string& value : values) {
        config::Settings settings;
        settings.layout = {{program::Axis::tensor, 2}};  // torchtitan splits a replica's batch among pipeline stages
        if (framework != Framework::torchtitan || variable.name == "pipeline_schedule")
          settings.layout = {{program::Axis::tensor, 2}, {program::Axis::pipeline, 4}};
        if (variable.name == "virtual_pipeline") settings.pipeline_schedule = config::PipelineSchedule::interleaved;
        if (variable.name == "recompute_layers") settings.recompute = config::Recompute::full;
        variable.parse(settings, value);
        // DeepSpeed has bf16 of them; their 8-bit products are Transformer Engine's, in the training script.
        if (framework == Framework::deepspeed && config::has_fp8_products(settings.precision)) continue;
        NameValues words = config::words_in(framework, variable.name, settings).flags;
        if (words.empty()) continue;
        for (const char* along : {"layout", "recompute"}) {
          if (along == variable.name || framework == Framework::deepspeed) continue;
          for (auto& word : config::words_in(framework, along, settings).flags) words.push_back(std::move(word));
        }
        const evidence::TrainingJob job = told(framework, words);
        for (const config::FrameworkRow& row : config::rows_of(framework)) {
          const std::string here = row.here.substr(0, row.here.find(':'));
          const auto word = std::ranges::find(words, row.key, &std::pair<std::string, std::string>::first);
          const bool part = here.starts_with(variable.name + ".");
          if ((here != variable.name && !part) || word == words.end()) continue;
          const auto ours = config::parse_theirs(row, word->second);
          if (!ours) continue;
          EXPECT_EQ(job.text(here), part ? *ours : variable.print(settings)) << row.key << " " << word->second;
          ++compared;
        }
      }
    }
  }
  EXPECT_GT(compared, 40);
}

TEST(Job, WritesSettingsOfNcclAsTheyAre) {
  const Answer answer = megatron("--bf16", "export NCCL_ALGO=^NVLS NCCL_PROTO=LL,Simple\n");
  EXPECT_THAT(answer.configuration, AllOf(HasSubstr("nccl_algo: \"^NVLS\""), HasSubstr("nccl_proto: \"LL,Simple\"")));
}

TEST(Job, ExpressesSelectiveCheckpointsAsTheNearestThatThereIs) {
  const std::string shards = "data_parallel_shard_degree = 8\n",
                    selective = "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = ";
  const Answer by_operation = titan(shards, selective + "\"op\"\n");
  EXPECT_THAT(by_operation.configuration, HasSubstr("recompute: none "));
  EXPECT_THAT(by_operation.cannot, Contains(HasSubstr("checkpoints by operation")));
  EXPECT_THAT(titan(shards, selective + "\"2\"\n").configuration, HasSubstr("recompute_layers: 16 "));
  const std::string granularity = "--recompute-granularity selective ";
  EXPECT_THAT(megatron(granularity + "--recompute-modules mlp layernorm").cannot,
              Contains(HasSubstr("of mlp layernorm (nearest")));
  EXPECT_THAT(megatron(granularity).configuration, HasSubstr("recompute: selective "));
  EXPECT_THAT(megatron(granularity).notes, Contains(HasSubstr("changes nothing with fused attention")));
}

TEST(Job, SaysThatOneOfItsExpertsIsCounted) {
  const auto published = Contains(testing::Pair("published", testing::_));
  EXPECT_THAT(megatron("--bf16").headline, testing::StartsWith("6.6 B parameters on 8 ranks"));
  EXPECT_THAT(megatron("--bf16").evidence, published);
  const Answer mixture = megatron("--bf16 --num-experts 8");
  EXPECT_THAT(mixture.headline, testing::StartsWith("6.6 B parameters with 1 of 8 experts on 8"));
  EXPECT_THAT(mixture.evidence, Not(published));
  const std::string experts = "--num-experts 8 --expert-model-parallel-size 8 ";
  EXPECT_THAT(megatron(experts).headline, testing::StartsWith("6.6 B parameters with 1 of 8 experts on 8"));
  EXPECT_THAT(megatron(experts + "--pipeline-model-parallel-size 4").headline,
              HasSubstr("8 ranks are not a multiple of EP 8 x PP 4 = 32"));
  EXPECT_THAT(megatron(experts + "--tensor-model-parallel-size 2").headline, HasSubstr("EP 8 x expert TP 2 = 16"));
  EXPECT_THAT(megatron(experts + "--tensor-model-parallel-size 2 --expert-tensor-parallel-size 1").headline,
              testing::StartsWith("6.6 B parameters with 1 of 8 experts on 8"));
}

// harness refuses pipelines whose replicas shard more than the optimizer.
TEST(Job, SaysTheNearestToAShardedPipeline) {
  const Answer answer = job_of({sample_file("titan-pipeline.toml")}, {.ranks = 16, .hardware = "h100-sxm"});
  EXPECT_EQ(fact(answer, "sharding"), "parameters");
  EXPECT_THAT(answer.configuration, HasSubstr("  sharding: optimizer "));
  EXPECT_THAT(answer.cannot, Contains(HasSubstr("sharding of parameters in a pipeline (nearest: optimizer)")));
}

// Settings that `plan` would refuse because of another setting are listed in `cannot`, for any combination of flags.
TEST(Job, LeavesOutWhatContradictsAnotherSetting) {
  constexpr std::array<const char*, 6> flags{"--use-distributed-optimizer", "--overlap-grad-reduce",
                                             "--overlap-param-gather",      "--sequence-parallel",
                                             "--tp-comm-overlap",           "--fp16"};
  int contradictory = 0;
  for (unsigned chosen = 0; chosen < 1U << flags.size(); ++chosen) {
    std::string script = "--tensor-model-parallel-size 2";
    for (std::size_t i = 0; i < flags.size(); ++i) script += chosen >> i & 1 ? fmt::format(" {}", flags[i]) : "";
    const Answer answer = megatron(script);
    ASSERT_NE(answer.configuration, "") << script << join(answer.notes, "; ");
    const config::Settings baseline = config::load_experiment("job.yaml", {}, answer.configuration).baseline;
    for (const config::Variable& variable : config::registry())
      EXPECT_EQ(variable.conflict(baseline), "") << script << answer.configuration;
    const bool said = evidence::contains(join(answer.cannot, "\n"), "left out");
    const bool gathers = chosen & 4 && !(chosen & 1), overlaps = chosen & 16 && !(chosen & 8);
    EXPECT_EQ(said, gathers || overlaps) << script << join(answer.cannot, "; ");
    contradictory += said ? 1 : 0;
  }
  EXPECT_GT(contradictory, 20);
  const Answer whole = titan("tensor_parallel_degree = 8\ndata_parallel_shard_degree = 1\n");
  EXPECT_THAT(whole.configuration, AllOf(HasSubstr("sharding: none"), Not(HasSubstr("overlap_param_gather"))));
  EXPECT_THAT(whole.cannot, Not(Contains(HasSubstr("left out"))));
}

TEST(Job, PacksDocumentsWhereThePredictionTakesIt) {
  const auto with_documents = [](const std::string& more) {
    return megatron("--bf16 --reset-position-ids --reset-attention-mask " + more);
  };
  const auto packed = Contains(HasSubstr("packed documents, whose lengths are not said"));
  const Answer predicted = with_documents("--context-parallel-size 2");
  EXPECT_THAT(predicted.configuration,
              AllOf(HasSubstr("backend: sim"), HasSubstr("  batching: packed "), HasSubstr("# --reset-")));
  EXPECT_THAT(predicted.cannot, packed);
  const Answer mxfp8 = with_documents("--fp8-format hybrid --fp8-recipe mxfp8");
  EXPECT_THAT(mxfp8.configuration, AllOf(HasSubstr("backend: cuda"), HasSubstr("precision: mxfp8")));
  EXPECT_THAT(mxfp8.cannot, Contains(HasSubstr("no GPU has run the mxfp8 of backend cuda yet")));
  EXPECT_THAT(with_documents("").configuration, AllOf(HasSubstr("backend: cuda"), Not(HasSubstr("  batching: "))));
  EXPECT_THAT(with_documents("").cannot, packed);
}

TEST(Job, SaysWhatIsMissing) {
  const Answer answer = job_of({sample_file("composer.yaml")});
  EXPECT_EQ(answer.configuration, "");
  EXPECT_THAT(answer.notes, Contains(HasSubstr("not known: micro_batch_size (--set micro_batch_size=N)")));
}

TEST(Job, JoinsAScriptAndTheFilesThatItNames) {
  const TemporaryFolder scratch;
  const std::string script = scratch.write(
      "go.sh",
      "deepspeed --num_nodes 2 --num_gpus 8 --hostfile h train.py --deepspeed ds.json --block_size 2048 --bf16\n");
  EXPECT_THAT(job_of({script}).refused, Contains(HasSubstr("ds.json is named")));
  const std::string zero =
      scratch.write("ds.json", R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto",
      "zero_optimization": {"stage": 3}})");
  const Answer both = job_of({script, zero, sample_file("mixture.json")});
  EXPECT_THAT(both.refused, testing::IsEmpty());
  EXPECT_EQ(lacking("sharding: parameters\nlayers: 4\nranks: 16\nglobal_batch: 64\n", both), "");
}

TEST(Job, TakesAutoForWhatAnotherFileSays) {
  const auto answers = answers_to(
      {{"go.sh",
        "accelerate launch --config_file acc.yaml train.py --model_name_or_path gpt2 --per_device_train_batch_size 2 "
        "--block_size 512\n"},
       {"acc.yaml",
        "distributed_type: DEEPSPEED\nmixed_precision: bf16\nnum_processes: 8\n"
        "deepspeed_config:\n  deepspeed_config_file: ds.json\n"},
       {"ds.json",
        R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}, "train_micro_batch_size_per_gpu": "auto",)"
        R"( "zero_optimization": {"stage": 2}})"}});
  EXPECT_EQ(lacking("precision: bf16\nmicro_batch: 2\nranks: 8\nsharding: gradients\n", answers.front()), "");
}

TEST(Job, TakesWhatTheLogSays) {
  const auto answers =
      evidence::read_files({sample_file("megatron-arguments.log"), sample_file("megatron-array.sh")}, {});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].kind, "training log");
  EXPECT_THAT(answers[1].problems, Contains(HasSubstr("in the log: the log counts")));
}

// Megatron-LM prints its variables: also those that a flag switches off, and those derived from others.
TEST(Job, TakesWhatIsOffOrDerivedInTheArgumentsOfALog) {
  const auto answers = answers_to({{"x.log",
                                    "------------------------ arguments ------------------------\n"
                                    "  add_bias_linear ................................. False\n"
                                    "  bf16 ............................................ True\n"
                                    "  fp4 ............................................. e2m1\n"
                                    "  num_layers ...................................... 24\n"
                                    "  num_layers_per_virtual_pipeline_stage ........... 6\n"
                                    "  overlap_p2p_comm ................................ False\n"
                                    "  pipeline_model_parallel_size .................... 2\n"
                                    "  virtual_pipeline_model_parallel_size ............ 2\n"
                                    "-------------------- end of arguments ---------------------\n"},
                                   {"go.sh", "torchrun --nproc-per-node 8 pretrain_gpt.py $@\n"}});
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_THAT(answers[1].problems, Not(Contains(HasSubstr("exclude each other"))));
  EXPECT_EQ(lacking("biases: false\noverlap_p2p: false\nprecision: nvfp4\nsharding: none\nvpp: 2\n", answers[1]), "");
}

// Megatron-LM prints rotary_base of every job, and a configuration with learned positions takes none.
TEST(Job, LeavesOutTheBaseOfRotaryPositionsThatItDoesNotHave) {
  std::string log = text_of(sample_file("megatron-arguments.log"));
  log.insert(log.find("0:   seq_length"), "0:   rotary_base ..................................... 10000\n");
  const Answer answer = answer_to(log);
  EXPECT_THAT(answer.configuration, AllOf(HasSubstr("positions: learned"), Not(HasSubstr("rope_theta"))));
}

// Counted by hand from the published shapes (GFLOP per token, causal attention at half).
TEST(Job, CountsTheFlopOfKnownModels) {
  for (const auto& [name, sequence, gflop] : {std::tuple("llama3-8b", 8192, 51.47),
                                              {"llama3-70b", 8192, 449.22},
                                              {"llama3-405b", 8192, 2523.96},
                                              {"gpt2", 1024, 0.798}}) {
    evidence::TrainingJob job;
    ASSERT_TRUE(evidence::take_model(job, name, "test"));
    config::Model model = evidence::model_of(job);
    model.sequence = sequence;
    EXPECT_NEAR(analysis::flop_per_token(model)->causal / 1e9 / gflop, 1, 1e-3) << name;
  }
}

// Counted by hand: 6 (layers (2 h^2 + 2 h kv d + n h ffn) + h vocab) + 6 layers h s, in GFLOP per token.
TEST(Job, CountsTheFlopOfModelFiles) {
  for (const auto& [text, gflop] :
       {std::pair(R"({"model_type": "bloom", "n_layer": 30, "hidden_size": 4096, "n_head": 32, "vocab_size": 250880})",
                  43.914),
        {R"({"model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71,
             "num_kv_heads": 71, "multi_query": true, "parallel_attn": true, "vocab_size": 65024})",
         43.314},
        {R"({"model_type": "gpt_neox", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 8,
             "intermediate_size": 8192, "hidden_act": "gelu", "vocab_size": 50304})",
         5.852}}) {
    const Answer answer = answer_to(text, "config.json", {.others = {{"model.sequence", "2048"}}});
    const auto counted = evidence::as_number(fact(answer, "gflop_per_token"));
    EXPECT_NEAR(counted.value_or(0) / gflop, 1, 1e-3) << text;
  }
}

TEST(Job, IsRecognisedByItsNamesElsewhere) {
  for (const char* name : {"meta-llama/Meta-Llama-3-8B", "llama3_8b", "llama31_8b", "Llama-3.1-8B-Instruct"}) {
    evidence::TrainingJob job;
    EXPECT_TRUE(evidence::take_model(job, name, "test")) << name;
    EXPECT_EQ(job.number("model.ffn"), 14336) << name;
  }
  evidence::TrainingJob job;
  EXPECT_FALSE(evidence::take_model(job, "someone/else-9b", "test"));
}

TEST(Job, TakesNumbersOfAnySize) {
  for (const char* n : {"0", "1", "-1", "2147483648", "4294967296", "999999999999999999", "1e300", "x"}) {
    const std::string titan = fmt::format(
        "[model]\nflavor = \"8B\"\n[training]\nseq_len = {0}\nlocal_batch_size = {0}\nglobal_batch_size = {0}\n"
        "num_tokens_per_microbatch_per_dp_rank = {0}\n[parallelism]\npipeline_parallel_degree = {0}\n"
        "tensor_parallel_degree = {0}\ndata_parallel_shard_degree = {0}\npipeline_parallel_layers_per_stage = {0}\n",
        n);
    const std::string megatron = fmt::format(
        "torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers {0} --hidden-size {0} --num-attention-heads {0} "
        "--vocab-size {0} --kv-channels {0} --micro-batch-size {0} --global-batch-size {0} --seq-length {0} --swiglu "
        "--pipeline-model-parallel-size {0} --num-layers-per-virtual-pipeline-stage {0} "
        "--make-vocab-size-divisible-by {0} --recompute-num-layers {0}\n",
        n);
    const std::string zero = fmt::format(
        R"({{"train_batch_size": "{0}", "gradient_accumulation_steps": "{0}", "zero_optimization": {{"stage": "{0}",
            "reduce_bucket_size": "{0}"}}, "num_hidden_layers": "{0}", "num_attention_heads": "{0}"}})",
        n);
    for (const std::string& text : {titan, megatron, zero}) {
      error_of([&] { answer_to(text, "x", {.ranks = 1 << 20, .hardware = "h100-sxm"}); });
    }
  }
}

TEST(Job, NamesWhatIsNoWholeNumber) {
  for (const char* value : {"abc", "-4", "1.5", "99999999999999999999"}) {
    for (const char* flag : {"--num-layers", "--hidden-size", "--micro-batch-size", "--pipeline-model-parallel-size"}) {
      const Answer answer = answer_to(fmt::format("torchrun --nproc_per_node 8 pretrain_gpt.py {} {}\n", flag, value));
      EXPECT_THAT(answer.problems, Contains(testing::AllOf(HasSubstr(value), HasSubstr(flag)))) << flag;
    }
  }
}

TEST(Job, IsNoLogThatHoldsAConfiguration) {
  EXPECT_EQ(answer_to("max_duration: 10ba\n" + text_of(sample_file("composer.log"))).kind, "training log");
}

}  // namespace
}  // namespace harness::test
