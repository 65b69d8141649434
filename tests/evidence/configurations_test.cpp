#include <gmock/gmock.h>

#include <algorithm>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"
#include "support/errors.h"

// Configurations in the forms that people write them for each framework.

namespace harness::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Their keys are partly those of torchtitan, llm-foundry and the Trainer, whose defaults do not hold for them.
TEST(Configurations, OfUnreadFrameworksAreNotTakenForThoseOfOthers) {
  const std::string script = "torchrun --nproc_per_node 8 sft.py --per_device_train_batch_size 1\n";
  for (const auto& [name, text] :
       {std::pair("configurations of Nanotron",
                  "model:\n  model_config: {num_hidden_layers: 4, hidden_size: 512}\n"
                  "parallelism: {dp: 2, tp: 4, pp: 1, pp_engine: 1f1b}\ntokens: {micro_batch_size: 3}\n"),
        {"configurations of OLMo",
         "model:\n  d_model: 512\n  n_layers: 4\n  n_heads: 8\n  mlp_hidden_size: 2752\n  activation_type: swiglu\n"
         "max_duration: 1ep\nglobal_train_batch_size: 64\nfsdp: {precision: mixed}\n"},
        {"configurations of torchtune",
         "model: {_component_: torchtune.models.llama3.llama3_70b}\nbatch_size: 2\ngradient_accumulation_steps: 1\n"},
        {"configurations of NeMo AutoModel",
         "step_scheduler:\n  global_batch_size: 32\n  local_batch_size: 1\nmodel: {pretrained_model_name_or_path: "
         "a/b}\n"},
        {"configurations of Primus", "modules:\n  pre_trainer:\n    overrides: {num_layers: 4, micro_batch_size: 1}\n"},
        {"manifests of Kubernetes", "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec: {nprocPerNode: 8}\n"}}) {
    const auto not_read = HasSubstr(fmt::format("{} are not read", name));
    EXPECT_THAT(error_of([&, its_text = std::string(text)] { answer_to(its_text, "job.yaml"); }), not_read);
    const evidence::Answer beside = answers_to({{"job.yaml", text}, {"go.sh", script}}).front();
    EXPECT_THAT(beside.refused, ElementsAre(not_read));
    EXPECT_EQ(lacking("framework: hugging face trainer\nmicro_batch: 1\nlayers: unknown\n", beside), "");
  }
}

// The Trainer's arguments, and those of Axolotl, LLaMA-Factory and ms-swift, which extend them.
TEST(Configurations, OfTheTrainerSayItsLayout) {
  expect_answers({
      {"model_name_or_path: gpt2\nper_device_train_batch_size: 1\ntensor_model_parallel_size: 2\n"
       "pipeline_model_parallel_size: 4\nexpert_model_parallel_size: 2\nrecompute_granularity: full\n"
       "use_distributed_optimizer: true\nsequence_parallel: true\n",
       "tp: 2\npp: 4\nep: 2\nrecompute: full\nsharding: optimizer\nsequence_parallel: true\n", "sft.yaml"},
      {"model_name_or_path: gpt2\nmicro_batch_size: 1\ncp_size: 2\nglobal_batch_size: 8\n", "cp: 2\nglobal_batch: 8\n",
       "sft.yaml"},
      {"torchrun --nproc_per_node 8 sft.py --per_device_train_batch_size 1 --model_name_or_path gpt2 "
       "--sequence_parallel_size 4\n",
       "cp: 4\ndp: 2\n"},
      {"deepspeed --num_gpus 8 --module openrlhf.cli.train_sft --pretrain gpt2 --max_len 512 --train_batch_size 256 "
       "--micro_train_batch_size 2 --zero_stage 2 --bf16\n",
       "layers: 12\nsequence: 512\nmicro_batch: 2\nglobal_batch: 256\ngradient_accumulation: 16\n"
       "sharding: gradients\n"},
  });
}

TEST(Configurations, OfTheTrainerSayWhatTheyShard) {
  const std::string axolotl =
      "base_model: gpt2\nmicro_batch_size: 1\nfsdp_version: 2\nfsdp_config:\n  offload_params: true\n";
  const std::string swift = "torchrun --nproc_per_node 8 swift/cli/sft.py --per_device_train_batch_size 1 ";
  expect_answers({
      {axolotl + "  reshard_after_forward: true\ndp_shard_size: 4\ndp_replicate_size: 2\ntensor_parallel_size: 2\n",
       "sharding: parameters\nsharding_group: 4 shard, 2 replicate\nranks: 16\ndp: 8\nglobal_batch: 8\n", "sft.yaml"},
      {axolotl + "  reshard_after_forward: false\n", "sharding: gradients\n", "sft.yaml"},
      {"model: gpt2\nmicro_batch_size: 1\ndist_config: {name: fsdp2}\n", "sharding: parameters\n", "sft.yaml"},
      {swift + "--deepspeed zero2\n", "sharding: gradients\n"},
      {swift + "--deepspeed $CONFIGURATION\n", "sharding: unknown\n"},
      {swift + "\n", "sharding: none\n"},
  });
  EXPECT_THAT(answer_to(axolotl, "sft.yaml").cannot, Contains(HasSubstr("parameters on the host")));
  EXPECT_THAT(answer_to(swift + "--deepspeed zero3_offload\n", "go.sh").cannot,
              Contains(HasSubstr("optimizer on the host")));
}

TEST(Configurations, OfTheTrainerSayItsPrecision) {
  const std::string axolotl = "base_model: gpt2\nmicro_batch_size: 1\n";
  const std::string program = "torchrun --nproc_per_node 8 sft.py --per_device_train_batch_size 1 ";
  expect_answers({
      {axolotl + "fp8: true\nbf16: true\n", "precision: fp8\n", "sft.yaml"},
      {axolotl + "fp8: false\nbf16: true\n", "precision: bf16\n", "sft.yaml"},
      {axolotl + "pure_bf16: true\n", "precision: bf16\n", "sft.yaml"},
      {program + "--torch_dtype bfloat16\n", "precision: bf16\n"},
      {program + "--fp16 --torch_dtype float32\n", "precision: fp16\n"},
      {program + "--torch_dtype auto\n", "precision: unknown\n"},
  });
}

TEST(Configurations, OfTheTrainerRecomputeAsTheirProgramDoes) {
  const std::string factory = "model_name_or_path: gpt2\nper_device_train_batch_size: 1\nfinetuning_type: full\n";
  const std::string program = " --per_device_train_batch_size 1\n";
  expect_answers({
      {factory, "recompute: full\n", "sft.yaml"},
      {factory + "disable_gradient_checkpointing: true\n", "recompute: none\n", "sft.yaml"},
      {"torchrun --nproc_per_node 8 swift/cli/sft.py" + program, "recompute: full\n"},
      {"torchrun --nproc_per_node 8 swift/cli/sft.py --gradient_checkpointing false" + program, "recompute: none\n"},
      {"torchrun --nproc_per_node 8 sft.py" + program, "recompute: none\n"},
  });
  for (const char* adapter : {"--lora_dim 128", "--tuner_type lora"})
    EXPECT_THAT(answer_to(fmt::format("torchrun sft.py {}{}", adapter, program), "go.sh").cannot,
                Contains(HasSubstr("all weights are counted as trained")))
        << adapter;
}

TEST(Configurations, OfNemoRecomputeAsManyLayersAsTheySay) {
  const std::string block =
      "trainer: {devices: 8}\nmodel:\n  encoder_seq_length: 512\n  num_layers: 4\n"
      "  activations_checkpoint_granularity: full\n  activations_checkpoint_method: block\n"
      "  activations_checkpoint_num_layers: ";
  expect_answers(
      {{block + "0\n", "recompute: none\n", "nemo.yaml"}, {block + "2\n", "recompute: full\n", "nemo.yaml"}});
}

TEST(Configurations, OfAccelerateAreAlsoItsOptions) {
  const auto launched = [](const std::string& options) {
    return "accelerate launch --num_processes 8 " + options + " train.py --model_name_or_path gpt2\n";
  };
  expect_answers({
      {launched("--use_fsdp --fsdp_version 2 --fsdp_reshard_after_forward false"), "sharding: gradients\n"},
      {launched("--use_fsdp --fsdp_activation_checkpointing true"), "sharding: parameters\nrecompute: full\n"},
      {launched("--use_deepspeed"), "sharding: gradients\n"},
      {launched("--use_deepspeed --zero_stage 3"), "sharding: parameters\n"},
      {launched("--use_deepspeed --deepspeed_config_file ds2.json"), "sharding: unknown\nrefuse: ds2.json\n"},
      {"distributed_type: DEEPSPEED\nnum_processes: 8\n", "sharding: gradients\n", "acc.yaml"},
  });
  EXPECT_THAT(answer_to(launched("--use_deepspeed --offload_optimizer_device cpu"), "go.sh").cannot,
              Contains(HasSubstr("the optimizer on cpu")));
}

TEST(Configurations, OfForksOfMegatronSayTheWidthOfTheirMlp) {
  const std::string flagscale =
      "system: {tensor_model_parallel_size: 2}\nmodel:\n  num_layers: 4\n  hidden_size: 6144\n"
      "  num_attention_heads: 48\n  swiglu: true\n";
  expect_answers({
      {flagscale + "  hidden_dim_multiplier: 1.3\n  multiple_of: 4096\n", "ffn: 24576\n", "train.yaml"},
      {flagscale + "  multiple_of: 256\n", "ffn: 16384\n", "train.yaml"},
      {flagscale + "  multiple_of: 256\n  ffn_hidden_size: 512\n", "ffn: 512\n", "train.yaml"},
      {flagscale + "  num_query_groups: 8\n", "kv_heads: 8\n", "train.yaml"},
      {flagscale + "  group_query_attention: false\n  num_query_groups: 8\n", "kv_heads: 48\n", "train.yaml"},
  });
  const std::string nemo = "trainer: {devices: 8}\nmodel:\n  encoder_seq_length: 64\n  num_layers: 2\n";
  EXPECT_THAT(answer_to(nemo + "  activation: squared-relu\n", "nemo.yaml").cannot,
              Contains(HasSubstr("squared ReLU")));
}

TEST(Configurations, OfMegatronMayWriteTheirFlagsWithUnderscores) {
  expect_answers(
      {{"torchrun --nproc_per_node 8 finetune.py --tensor_model_parallel_size 2 --num_layers 4 --hidden_size 512 "
        "--num_attention_heads 8 --seq_length 256 --micro_batch_size 1 --global_batch_size 16 --bf16\n",
        "framework: megatron-lm\nlayers: 4\ntp: 2\ndp: 4\nglobal_batch: 16\nsequence: 256\nprecision: bf16\n"}});
}

// One stack of layers with causal attention is counted.
TEST(Configurations, OfOtherModelsThanDecodersSaySo) {
  const auto cannot = [](const std::string& file, const std::string& text) {
    return join(answer_to(text, file).cannot, "\n");
  };
  const std::string flags =
      " --hidden-size 512 --num-attention-heads 8 --micro-batch-size 1 --encoder-seq-length 512 --num-layers 4 ";
  EXPECT_THAT(cannot("go.sh", "torchrun pretrain_bert.py" + flags), HasSubstr("BERT, whose attention"));
  EXPECT_THAT(cannot("go.sh", "torchrun pretrain_t5.py" + flags), HasSubstr("an encoder beside"));
  EXPECT_THAT(cannot("go.sh", "torchrun train.py --freeze-LM" + flags), HasSubstr("a frozen language model"));
  EXPECT_EQ(cannot("go.sh", "torchrun pretrain_gpt.py" + flags), "");
  EXPECT_THAT(cannot("config.json", R"({"model_type": "roberta", "num_hidden_layers": 4})"), HasSubstr("BERT, whose"));
  EXPECT_THAT(cannot("config.json", R"({"model_type": "t5", "num_layers": 4, "is_encoder_decoder": true})"),
              HasSubstr("an encoder beside"));
  const std::string nemo =
      "trainer: {devices: 8}\nmodel:\n  seq_length: 512\n  micro_batch_size: 1\n"
      "  decoder: {num_layers: 4}\n";
  EXPECT_THAT(cannot("t5.yaml", nemo + "  encoder: {num_layers: 6}\n"), HasSubstr("an encoder beside"));
  expect_answers({
      {nemo + "  encoder: {num_layers: 6}\n", "layers: 4\n", "t5.yaml"},
      {"model:\n  num_layers: 4\n  tensor_model_parallel_size: 2\n"
       "  teacher: {num_layers: 8, tensor_model_parallel_size: 4}\n",
       "layers: 4\ntp: 2\n", "distil.yaml"},
  });
}

TEST(Configurations, OfNemoOffloadNothingThatIsOff) {
  const std::string nemo =
      "trainer: {devices: 8}\nmodel:\n  encoder_seq_length: 64\n  num_layers: 4\n"
      "  cpu_offloading_num_layers: ${sum:${.num_layers},-1}\n  cpu_offloading: ";
  EXPECT_THAT(answer_to(nemo + "False\n", "nemo.yaml").cannot, testing::IsEmpty());
  EXPECT_THAT(answer_to(nemo + "True\n", "nemo.yaml").cannot, ElementsAre(HasSubstr("offloading to the host")));
}

// The Trainer's configuration decides beside those that serve it, in any order.
TEST(Configurations, OfTheTrainerDecide) {
  NameValues files{{"ds.json", R"({"zero_optimization": {"stage": 3}, "train_batch_size": "auto"})"},
                   {"sft.yaml", "model_name_or_path: gpt2\nper_device_train_batch_size: 2\ndeepspeed: ds.json\n"}};
  for (int order = 0; order < 2; ++order, std::ranges::reverse(files)) {
    const evidence::Answer answer = answers_to(files).front();
    EXPECT_EQ(lacking("framework: hugging face trainer\nlayers: 12\nsharding: parameters\n", answer), "") << order;
  }
}

}  // namespace
}  // namespace harness::test
