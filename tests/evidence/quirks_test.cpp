#include <gmock/gmock.h>

#include <algorithm>

#include "base/text.h"
#include "evidence/expectations.h"

namespace harness::test {
namespace {

TEST(Quirks, OfConfigurations) {
  expect_answers({
      {R"({"train_batch_size": 96, "gradient_accumulation_steps": 8, "bfloat16": {"enabled": true}})",
       "precision: bf16\nmicro_batch: 12 / dp\n", "ds.json"},
      {"{\n  // of all ranks\n  \"train_batch_size\": 96, /* or */ \"train_micro_batch_size_per_gpu\": 4}",
       "global_batch: 96\nmicro_batch: 4\n", "ds.json"},
      {"distributed_type: DEEPSPEED\nnum_processes: 8\ndeepspeed_config:\n  zero_stage: 2\n",
       "sharding: gradients\noverlap_grad_reduce: false\n", "acc.yaml"},
      {"max_duration: 10ba\nglobal_train_batch_size: 32\ndevice_train_grad_accum: 4\n",
       "gradient_accumulation: 4\nmicro_batch: 8 / dp\nsharding: none\n", "foundry.yaml"},
      {"max_duration: 10ba\nprecision: amp_bf16\nfsdp_config: {limit_all_gathers: true}\n",
       "sharding: parameters\ngrad_reduce_precision: fp32\n", "foundry.yaml"},
      {"[model]\nname = \"qwen3\"\nflavor = \"4B\"\n[training]\nglobal_batch_size = -1\nseq_len = 512\n",
       "layers: 36\nglobal_batch: 8 x dp\ncannot: heads of width 128, 80 is counted\n", "titan.toml"},
      {"[model]\nname = \"llama\"\nflavor = \"13B\"\n[training]\nbatch_size = 2\nseq_len = 4096\n",
       "layers: 40\nffn: 13824\nmicro_batch: 2\n", "titan.toml"},
      {"[model]\nflavor = \"8B\"\n[activation_checkpoint]\nmode = \"memory_budget\"\n",
       "recompute: by a memory budget\n", "titan.toml"},
      {"n_layer = 6; n_head = 8\nn_embd = 512\nbatch_size = 4\n", "layers: 6\nheads: 8\n", "nano.py"},
      {"base_emb_dim: 512\nbase_num_query_heads: 8\nhead_dim: 128\nper_device_batch_size: 0.5\n"
       "ici_fsdp_parallelism: 2\nici_tensor_parallelism: 2\ndcn_data_parallelism: 3\n",
       "ranks: 12\ndp: 6\nmicro_batch: 1\nglobal_batch: 6\ncannot: heads of width 128, 64 is counted\n", "max.yml"},
      {"base_emb_dim: 512\nici_fsdp_parallelism: 2\nper_device_batch_size: 1\n", "ranks: unknown\n", "max.yml"},
      {"workload_info:\n  framework: megatron_bridge\nmodel_info:\n  model_name: llama3.1\n  model_size: 405b\n"
       "  scale: 512\n  gpu_type: gb200\ncluster_info:\n  gpus_per_node: 4\n"
       "job_config:\n  model_overrides: {TP: 8, PP: 8, VP: 8, CP: 1}\n",
       "dp: 8\nheadline: 405.8 B\n", "llmb.yaml"},
      {R"({"model_type": "gemma", "hidden_size": 512, "num_attention_heads": 8, "hidden_act": "gelu"})",
       "activation: swiglu\ntied_embeddings: true\n", "config.json"},
      {R"({"model_type": "mistral", "hidden_size": 512, "sliding_window": 1024})", "cannot: 1024\n", "config.json"},
      {R"({"model_type": "qwen2_5_vl", "architectures": ["A"], "text_config": {"model_type": "qwen2_5_vl_text",)"
       R"( "hidden_size": 3584, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4},)"
       R"( "vision_config": {"model_type": "vit32", "hidden_size": 1280, "num_hidden_layers": 32}})",
       "layers: 28\nhidden: 3584\nkv_heads: 4\nbiases: false\ncannot: vit32\n", "config.json"},
      {R"({"model_type": "mpt", "d_model": 512, "n_layers": 2, "attn_config": {"kv_n_heads": 2}})",
       "ffn: 2048\nkv_heads: 2\nnorm: layer_norm\nactivation: gelu\nbiases: false\n", "config.json"},
      {R"({"model_type": "phi", "hidden_size": 512, "hidden_act": "gelu_new"})",
       "positions: rotary\nnorm: layer_norm\nbiases: true\n", "config.json"},
      {R"({"model_type": "other", "hidden_size": 512, "layer_norm_eps": 1e-5, "hidden_act": "gelu"})",
       "positions: learned\nnorm: layer_norm\nbiases: true\n", "config.json"},
      {R"({"model_type": "other", "hidden_size": 512, "layer_norm_eps": 1e-5, "rope_theta": 10000})",
       "positions: rotary\nrope_theta: 10000\nbiases: unknown\n", "config.json"},
      {R"({"model_type": "cohere", "hidden_size": 512, "layer_norm_eps": 1e-5, "rope_theta": 10000})",
       "biases: false\nactivation: swiglu\ntied_embeddings: true\n", "config.json"},
      {R"({"model_type": "stablelm", "hidden_size": 512, "layer_norm_eps": 1e-5})",
       "biases: false\npositions: rotary\ntied_embeddings: false\n", "config.json"},
      {R"({"model_type": "nemotron", "hidden_size": 512, "hidden_act": "relu2"})", "activation: gelu\n", "config.json"},
      {"model_name_or_path: gpt2\nper_device_train_batch_size: 1\npacking: true\ndeepspeed: zero3.json\n",
       "sharding: unknown\nbatching: packed\nrefuse: zero3.json sft.yaml:4\n", "sft.yaml"},
      {"10.0.0.1\n10.0.0.2\n", "hosts: 2\nranks: 2\n"},
      {"a1:8\na2:8\n", "hosts: 2\nranks: 16\n"},
      {"me@node1 slots=4\nme@node2 slots=4\n", "hosts: 2\nranks: 8\n"},
      {R"({"model_type": "bloom", "n_embed": 1024, "num_attention_heads": 8})", "ffn: 4096\n", "config.json"},
      {R"({"train_batch_size": 96, "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 8})",
       "dp: 3\nranks: unknown\n", "ds.json"},
      {"language_model:\n  num_layers: 4\n  hidden_size: 512\n  num_attention_heads: 8\n  layernorm_epsilon: 1e-5\n"
       "model_parallel:\n  tensor_model_parallel_size: 2\nvocab_size: 1000\n",
       "vocab: 1024\n", "megatron.yaml"},
      {"mesh_axes: ['data', 'fsdp']\ndata_sharding: [\n  ['data', 'fsdp']\n  ]\nbase_emb_dim: "
       "2_048\nper_device_batch_size: 12.0\n",
       "framework: maxtext\nhidden: 2048\nglobal_batch: 12 x ranks\n", "base.yml"},
      {"base_config: base.yml\nmodel_name: llama2-7b\n", "framework: maxtext\nlayers: 32\n", "own.yml"},
      {"model_name: llama2-7b\nbase_emb_dim: 2048\nbase_num_decoder_layers: 16\nmax_target_length: 2048\n"
       "per_device_batch_size: 12.0\n",
       "layers: 32\nhidden: 4096\nsequence: 2048\n", "base.yml"},
      {R"({"train_batch_size": 64, "zero_optimization": {"stage": 1}})",
       "gradient_accumulation: 1\nmicro_batch: 64 / dp\n", "ds.json"},
      {R"({"train_batch_size": 64, "zero_optimization": {"stage": "<STAGE>"}})",  // a template
       "sharding: unknown\nrefuse: 0 to 3\n", "ds.json"},
      {"[training]\nseq_len = 2048\nlocal_batch_size = 1\n[ parallelism ]\ntensor_parallel_degree = 2\n",
       "layers: 6\nhidden: 256\nvocab: 2048\ntp: 2\n", "titan.toml"},
      {"trainer:\n  devices: 8\nmodel:\n  num_layers: 2\n  encoder_seq_length: 512\n  data:\n"
       "    seq_length: ${training.model.encoder_seq_length}\n",
       "sequence: 512\n", "nemo.yaml"},
      // switches that the environment decides
      {"trainer:\n  devices: 8\nmodel:\n  num_layers: 2\n  encoder_seq_length: 512\n  tensor_model_parallel_size: 2\n"
       "  sequence_parallel: ${oc.env:SP}\n  overlap_grad_reduce: ${oc.env:OVERLAP}\n"
       "  use_distributed_optimizer: ${oc.env:ZERO}\n",
       "sequence_parallel: unknown\noverlap_grad_reduce: unknown\nsharding: unknown\n", "nemo.yaml"},
      {"length: &length 4096  # tokens\ntrainer: {devices: &gpus 8, limit: *gpus}\nmodel: &model\n  num_layers: 2\n"
       "  encoder_seq_length: *length\n  global_batch_size: *gpus\n  micro_batch_size: 1\nagain: *model\n",
       "sequence: 4096\nranks: 8\nglobal_batch: 8\n", "nemo.yaml"},
      // what a map takes over is overridden by its own keys, wherever they stand
      {"base: &base\n  num_layers: 2\n  hidden_size: !!int 512\n  micro_batch_size: 1\nlist: &list [1, 2]\n"
       "trainer: {devices: 8, gpus: *list, all: [*list, 3]}\nmodel:\n  encoder_seq_length: 512\n  num_layers: 4\n"
       "  <<: *base\n  micro_batch_size: 2\n",
       "layers: 4\nhidden: 512\nmicro_batch: 2\n", "nemo.yaml"},
      {"trainer: {devices: 8}\nmodel:\n  encoder_seq_length: 2048\n  num_layers: 2\n"
       "  data: {train_ds: {packed_sequence: true, packed_sequence_size: 8192}}\n",
       "batching: packed\nsequence: 8192\n", "nemo.yaml"},
      {"trainer:\n  devices: 8\n  num_nodes: 2\n  plugins: {precision: bf16-mixed}\n  strategy:\n"
       "    tensor_model_parallel_size: 4\n    pipeline_model_parallel_size: 2\n    ddp: {overlap_grad_reduce: true}\n"
       "model: {config: {num_layers: 4}}\ndata: {global_batch_size: 64, micro_batch_size: 1, seq_length: 512}\n",
       "ranks: 16\ntp: 4\npp: 2\nprecision: bf16\noverlap_grad_reduce: true\nglobal_batch: 64\nsequence: 512\n",
       "nemo-2.yaml"},
      // a recipe for fp8 alone does not ask for it
      {"model:\n  num_layers: 2\n  fp8: null\n  fp8_recipe: tensorwise\nmixed_precision: {bf16: true, fp8_recipe: "
       "tensorwise}\n",
       "precision: bf16\n", "run_config.yaml"},
      {"model:\n  num_layers: 2\n  vocab_size: 128256\ntokenizer: {tokenizer_type: NullTokenizer, vocab_size: "
       "122880}\n",
       "vocab: 128256\n", "run_config.yaml"},
      {"model:\n  num_layers: 22\n  pipeline_model_parallel_size: 4\n  num_layers_in_first_pipeline_stage: 5\n"
       "  num_layers_in_last_pipeline_stage: 5\n",
       "headline: 5 layers, the others 6\n", "run_config.yaml"},
      {"model:\n  num_layers: 2\n  fp8: hybrid\nmixed_precision: {bf16: true, fp8_recipe: mxfp8}\n",
       "precision: mxfp8\n", "run_config.yaml"},
      {"trainer: {devices: 8}\nmodel:\n  encoder_seq_length: 2048\n  num_layers: 2\n  global_batch_size: 64\n"
       "  activation: swiglu\n"
       "  micro_batch_size: 1\n  vision: {num_layers: 40}\n"
       "  data: {validation_ds: {global_batch_size: 8, micro_batch_size: 4}}\n",
       "layers: 2\nactivation: swiglu\nglobal_batch: 64\nmicro_batch: 1\n", "nemo.yaml"},
  });
}

TEST(Quirks, OfTrainingLogs) {
  expect_answers({
      {"completed step: 1, seconds: 9.0, TFLOP/s/device: 40.0, Tokens/s/device: 111.1, loss: 9.1\n"
       "completed step: 2, seconds: 2.0, TFLOP/s/device: 410.0, Tokens/s/device: 500.5, loss: 9.1\n",
       "step_time_s: 2.0\ntokens_per_s_per_gpu: 500.5\n"},
      {"iteration 1/ 9 | elapsed time per iteration (ms): 900.0 | gloabl batch size:   256 |\n"
       "iteration 2/ 9 | elapsed time per iteration (ms): 900.0 | gloabl batch size:   256 |\n",
       "global_batch: 256\n"},
      // unbuffered Python writes the end of a line by itself, and NCCL comes before it
      {" iteration 1/ 9 | elapsed time per iteration (ms): 900.0 | lm loss: 9.1 |n1:1:2 [0] NCCL INFO Using network "
       "IB\n"
       "\n iteration 2/ 9 | elapsed time per iteration (ms): 900.0 | lm loss: 9.1 |n1:1:2 [0] a.cc:9 NCCL WARN Late\n",
       "framework: megatron-lm\nintervals: 2\nstep_time_s: 0.9\n"},
      {" 20%|##   | 100/500 [03:00<12:00,  1.80s/it]n1:1:2 [0] NCCL INFO Using network IB\n"
       " 40%|##   | 200/500 [06:00<09:00,  1.80s/it]n1:1:2 [0] NCCL INFO Connected all rings\n",
       "intervals: 1\nstep_time_s: 1.8\n"},
      {"using world size: 8, data-parallel-size: 4, tensor-model-parallel size: 2, pipeline-model-parallel size: 1\n"
       "[2026-04-21 02:45:08][INFO][training:1251] -  iteration=       2/  317892 | consumed_samples=         512 | "
       "elapsed_time_per_iteration_ms=16030.6 | global_batch_size=  256 | lm loss=11.2 | tokens_per_gpu_per_second_tgs="
       "8176.383 | [LM]TFLOPs=20.30 | [DS]TFLOPs=26.18 |\n",
       "framework: megatron-deepspeed\ndp: 4\nglobal_batch: 256\nstep_time_s: 16.03\ntokens_per_s_per_gpu: 8176.4\n"},
      {" iteration  4700/ 4768 | elapsed time per iteration (ms): 1460.8/1450.4 | compute per GPU (TFLOP/s/GPU): 633.7 "
       "(avg 640.1) | tokens/s/GPU inst/harmonic mean: 180743.2/180001.0 | lm loss: 3.3632\n",
       "framework: megatron-lm\nstep_time_s: 1.461\ntokens_per_s_per_gpu: 180743.2\n"},
      // until the end of 2025, of the axes with more than one rank
      {"[titan] - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [8, 2]\n"
       "[titan] - root - INFO - Trainer is initialized with local batch size 1, global batch size 8, gradient "
       "accumulation steps 1, sequence length 4096, total steps 9 (warmup 2)\n"
       "[titan] - root - INFO - step: 10  loss: 8.1  memory: 60.1GiB(76%)  tps: 1,024\n",
       "ranks: 16\ntp: 2\ndp: 8\nsharding: parameters\nstep_time_s: 2.0\n"},
      {"[titan] - root - INFO - Building 3-D device mesh with ['dp_replicate', 'dp_shard_mod_ep', 'dp_shard_in_ep'], "
       "[2, 2, 4]\n[titan] - root - INFO - step: 10  loss: 8.1  memory: 60.1GiB(76%)  tps: 1,024\n",
       "ranks: 16\ndp: 16\n"},
      // in early 2024
      {"Building 2-D device mesh with ['dp', 'sp'], [4, 2]\n"
       "step: 10  loss: 8.1  memory: 60.1GiB(76%)  wps: 1,024  mfu: 40.10%\n",
       "ranks: 8\ntp: 2\ndp: 4\n"},
      // the command above is no launch script
      {"torchrun --nproc_per_node=8 -m torchtitan.train --job.config_file llama3_8b.toml\n"
       "[rank0]:[titan] 2026-01-02 10:00:00,000 - root - INFO - step: 10  loss: 8.1  memory: 60.1GiB(76%)  tps: "
       "1,000\n",
       "kind: training log\nframework: torchtitan\ntokens_per_s_per_gpu: 1000\n"},
      // a validation is not a step
      {"step: 10  loss: 8.1  memory: 60.1GiB(76%)  tps: 1,000  tflops: 4.1  mfu: 4.10%\n"
       "validate step: 15  loss:  8.2  memory: 60.1GiB(76%)  tps: 9,000\n"
       "step: 20  loss: 8.1  memory: 60.1GiB(76%)  tps: 1,000  tflops: 4.1  mfu: N/A\n",
       "intervals: 2\ntokens_per_s_per_gpu: 1000\n"},
      {"Step Time : 2.00s GPU utilization: 58.2TFLOP/s/GPU\nStep Time : 2.02s GPU utilization: 58.1 "
       "TFLOP/s/GPU\n",
       "framework: megatron-bridge\nstep_time_s: 2.02\n"},
      // timestamps added by the shell
      {"2026-03-02 09:30:39 iter 10: loss 4.1, time 250.00ms, mfu 15.34%\n"
       "2026-03-02 09:30:50 iter 20: loss 4.1, time 250.00ms, mfu 15.34%\n",
       "step_time_s: 0.25\n"},
      // with Megatron-DeepSpeed's line of the same step
      {"epoch=0/micro_step=1/global_step=1, RunningAvgSamplesPerSec=9.0, CurrSamplesPerSec=9.0, MemAllocated=1GB\n"
       " iteration 1/ 9 | elapsed time per iteration (ms): 900.0 | global batch size: 8 | samples per second: 8.9 |\n",
       "framework: megatron-deepspeed\nglobal_batch: 8\nstep_time_s: 0.9\n"},
      {"steps: 10 loss: 2.1 iter time (s): 0.101 samples/sec: 5069.3\n", "step_time_s: 0.101\n"},
      // wall_clock_breakdown alone
      {"[Rank 0] time (ms) | fwd_microstep: 9.00 | bwd_microstep: 20.00 | step_microstep: 5.00\n"
       "[Rank 0] time (ms) | fwd: 40.00 | bwd: 80.00 | bwd_inner: 76.00 | bwd_allreduce: 4.00 | step: 5.00\n"
       "[Rank 0] time (ms) | fwd: 40.00 | bwd: 81.00 | bwd_inner: 76.00 | bwd_allreduce: 4.00 | step: 5.00\n"
       "[Rank 0] time (ms) | fwd: 41.00 | bwd: 80.00 | bwd_inner: 76.00 | step: 5.00\n",
       "framework: deepspeed\nintervals: 3\nstep_time_s: 0.126\n"},
      // wall_clock_breakdown of 2022
      {"rank=0 time (ms) | forward_microstep: 1330.05 | backward_microstep: 4766.88 | step_microstep: 0.05\n"
       "rank=0 time (ms) | forward: 5284.10 | backward: 18340.70 | backward_inner: 17000.10 | backward_allreduce: "
       "1340.60 "
       "| step: 1375.20\n",
       "framework: deepspeed\nintervals: 1\nstep_time_s: 25.0\n"},
      // its rate may be that of a step's last micro-batch: with wall_clock_breakdown it does not count
      {"epoch=0/micro_step=3/global_step=3, RunningAvgSamplesPerSec=74.6, CurrSamplesPerSec=74.6, MemAllocated=4.7GB\n"
       "[Rank 0] time (ms) | fwd: 3865.00 | bwd: 11249.00 | bwd_inner: 10520.00 | step: 886.00\n"
       "[config.py:1003:print]   train_batch_size ............. 256\n",
       "global_batch: 256\nintervals: 1\nstep_time_s: 16.0\n"},
      // nor between Megatron-DeepSpeed's lines
      {" iteration 10/ 90 | elapsed time per iteration (ms): 9000.0 | global batch size: 64 | samples per second: 7 |\n"
       "epoch=0/micro_step=14/global_step=14, RunningAvgSamplesPerSec=80.0, CurrSamplesPerSec=80.0, MemAllocated=1GB\n"
       "epoch=0/micro_step=18/global_step=18, RunningAvgSamplesPerSec=80.0, CurrSamplesPerSec=80.0, MemAllocated=1GB\n"
       " iteration 20/ 90 | elapsed time per iteration (ms): 9000.0 | global batch size: 64 | samples per second: 7 "
       "|\n",
       "intervals: 2\nstep_time_s: 9.0\n"},
      // before 0.8
      {"[timer.py:189:stop] 0/10, RunningAvgSamplesPerSec=23.5, CurrSamplesPerSec=24.0, MemAllocated=1.0GB\n"
       "[config.py:901:print]   train_batch_size ............. 48\n",
       "framework: deepspeed\nglobal_batch: 48\nstep_time_s: 2\n"},
      // before 0.7
      {"[timer.py:189:stop] 0/10, SamplesPerSec=23.5, MemAllocated=1.0GB\n"
       "[timer.py:189:stop] 0/20, SamplesPerSec=24.0, MemAllocated=1.0GB\n"
       "[config.py:901:print]   train_batch_size ............. 48\n",
       "framework: deepspeed\nglobal_batch: 48\nstep_time_s: 2\n"},
      // evaluations draw bars of their own
      {" 20%|##   | 100/500 [03:00<12:00,  1.80s/it]\n  1%|     | 1/157 [00:01<02:36,  1.00it/s]\n"
       "100%|#####| 157/157 [02:37<00:00,  1.00it/s]{'eval_loss': 2.1, 'epoch': 0.2}\n"
       " 40%|##   | 200/500 [06:00<09:00,  1.80s/it]\n 60%|###  | 300/500 [09:00<06:00,  1.80s/it]\n"
       "100%|#####| 500/500 [15:00<00:00,  1.80s/it]\n100%|#####| 157/157 [02:37<00:00,  1.00it/s]\n"
       "{'train_runtime': 900.0, 'train_samples_per_second': 35.6, 'train_steps_per_second': 0.556, 'epoch': 1.0}\n",
       "intervals: 3\nsteps: 500\nstep_time_s: 1.8\n"},
      // with a line of DeepSpeed behind each bar
      {" 20%|##   | 100/500 [03:00<12:00,  1.80s/it][2026-01-01 00:00:00,000] [INFO] [logging.py:96] [Rank 0] step=9\n"
       " 40%|##   | 200/500 [06:00<09:00,  1.80s/it][2026-01-01 00:00:00,000] [INFO] [logging.py:96] [Rank 0] step=9\n",
       "intervals: 1\nstep_time_s: 1.8\n"},
      // a single bar, or bars too near for their clock; not those of an evaluation or of loading
      {"  2%|#         | 24/1752 [01:08<1:22:56,  2.88s/it][rank5]: Watchdog caught collective operation timeout\n",
       "intervals: 1\nstep_time_s: 2.88\nproblem: 1: Watchdog\n"},
      {"Epoch 0:   6%|#  | 1/18 [00:08<02:29,  8.77s/it]\nEpoch 0:  11%|#  | 2/18 [00:11<01:33,  5,82s/it, loss=9.5]\n",
       "intervals: 1\nstep_time_s: 5.82\n"},
      {"100%|###| 157/157 [02:37<00:00,  1.00it/s]\n  1%|#| 1/90 [00:01<02:36,  1.00it/s]\nCUDA out of memory\n",
       "problem: 3: CUDA\n"},
      // the number of steps is more precise than their rate
      {"100%|#####| 380/380 [2:00:06<00:00, 18.96s/it]\n"
       "{'train_runtime': 7206.0, 'train_samples_per_second': 13.5, 'train_steps_per_second': 0.053, 'epoch': 1.0}\n",
       "steps: 380\nglobal_batch: 256\n"},
      // 49 steps of 8 and one of 1
      {"100%|#####| 50/50 [01:40<00:00,  2.00s/it]\n"
       "{'train_runtime': 100.0, 'train_samples_per_second': 3.93, 'train_steps_per_second': 0.5, 'epoch': 1.0}\n",
       "steps: 50\nglobal_batch: 8\n"},
      {"using world size: 8, data-parallel size: 8\n[rank3]: torch.OutOfMemoryError: CUDA out of memory.\n",
       "kind: training log\nranks: 8\n"},
  });
  const auto partial = answer_to(  // 15 steps of 63 to 66 and a smaller one in each epoch
      "100%|#####| 48/48 [01:40<00:00,  2.08s/it]\n"
      "{'train_runtime': 100.0, 'train_samples_per_second': 30.0, 'train_steps_per_second': 0.48, 'epoch': 3.0}\n",
      "hf.log");
  EXPECT_THAT(partial.facts, testing::Not(testing::Contains(testing::Pair("global_batch", testing::_))));
  EXPECT_EQ(headline_of("[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried\n"),
            "the job failed: CUDA out of memory");
  EXPECT_EQ(
      headline_of("[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation timeout: "
                  "WorkNCCL(SeqNum=216, OpType=ALLTOALL_BASE, NumelIn=13, Timeout(ms)=600000) ran for 600045 ms\n"),
      "the job failed: Watchdog caught collective operation timeout of ALLTOALL_BASE");
  EXPECT_EQ(headline_of("slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the\n"),
            "the job failed: oom_kill event");
  EXPECT_EQ(headline_of("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 9.00 GiB.\n"),
            "the job failed: HIP out of memory");
  for (const std::string lost :
       {"iteration 1/ 9 | elapsed time per iteration (ms): 900.0 | lm loss: NAN | loss scale: 1.0 |",
        "iteration 1/ 9 | elapsed time per iteration (ms): 900.0 | lm loss: 1.1E+00 | number of nan iterations:   1 |",
        "step: 10  loss:      nan  memory: 60.1GiB(76%)  tps: 1,000", "iter 10: loss nan, time 248.10ms, mfu 34.11%",
        "completed step: 1, seconds: 9.0, TFLOP/s/device: 40.0, loss: inf",
        "global_step: 1 | reduced_train_loss: nan | train_step_timing in s: 9.1"}) {
    const std::string found = lost.find("inf") == std::string::npos ? "nan" : "inf";
    const auto lines = [&](const std::string& line) { return answer_to(line + "\n", "x.log").problems; };
    EXPECT_THAT(lines(lost), testing::Contains(testing::HasSubstr("line 1: the loss is nan or inf"))) << lost;
    if (lost.find("iterations") != std::string::npos || lost.find("NAN") != std::string::npos) continue;
    std::string kept = lost;
    EXPECT_THAT(lines(kept.replace(kept.find(found), 3, "1.5")), testing::IsEmpty()) << kept;
  }
  EXPECT_THAT(answer_to("iter 10: loss 4.1, time 2.0ms\niter 20: loss 4.1, time 2.0ms\n", "x.log").notes,
              testing::Contains(testing::HasSubstr("one iteration of 10")));
  EXPECT_THAT(answer_to("step:  9  loss: 8.1  memory: 60.1GiB(76%)  tps: 1,000  tflops: 4.20  mfu: 4.20%\n").notes,
              testing::IsSupersetOf({testing::HasSubstr("itself says 4.2 TFLOP/s"), testing::HasSubstr("MFU, 4.2 %")}));
  EXPECT_EQ(
      headline_of("iteration 1/ 9 | elapsed time per iteration (ms): 900.0 | global batch size: 8 |\n"
                  "torch.OutOfMemoryError: CUDA out of memory.\nslurmstepd: error: *** STEP 1.0 ON a CANCELLED AT "
                  "2026-01-01T00:00:00 ***\n"),
      "the job failed: CUDA out of memory");
}

// With 4 x 8 GPUs, 24 of 31 peers are behind the adapter of 50 GB/s. An all-gather's ring uses all adapters.
TEST(Quirks, OfLimits) {
  std::string text = "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20\n";
  for (int rank = 0; rank < 32; ++rank)
    text += fmt::format("#  Rank {} Group  0 Pid 1 on n{} device {} [0x15] NVIDIA H100 80GB HBM3\n", rank, rank / 8,
                        rank % 8);
  text +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
      "#wrong\n  4294967296       1048576     float    none      -1    97669   43.97   42.60      0    97669   43.97   "
      "42.60    N/A\n";
  expect_answers({{text, "test: alltoall\nlimit: 64.6 GB/s\n", "alltoall_perf.txt"}});
  expect_answers({{text, "test: all_gather\nlimit: 400.0 GB/s\n", "all_gather_perf.txt"}});
  EXPECT_EQ(fact(answer_to(text, "sendrecv_perf.txt"), "limit"), "");
}

TEST(Quirks, OfNccl) {
  const std::string ranks_4 =
      "#   Rank  0 Pid 1 on a device  0 [0x15] Tesla V100\n#   Rank  1 Pid 2 on a device  1 [0x16] Tesla V100\n";
  expect_answers({
      {("# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5 iters: 20 validation: 1\n" +
        ranks_4 +
        "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
        "   268435456      16777216     float            52093    5.15    2.58  0e+00    51956    5.17    2.59    "
        "N/A\n"),
       "ranks: 2\npeak_busbw: 2.6 GB/s at 268435456 B\nwrong: 0\n", "alltoall.txt"},
      // up to 2.17 the communicator is named after its connections
      {"a:1:2 [0] NCCL INFO Channel 00 : 0[7000] -> 1[7000] [send] via NET/IB/0/GDRDMA\n"
       "b:3:4 [0] NCCL INFO Channel 00 : 1[7000] -> 0[7000] [send] via NET/IB/1/GDRDMA\n"
       "a:1:2 [0] NCCL INFO comm 0x7f1c rank 0 nranks 2 cudaDev 0 busId 7000 - Init COMPLETE\n"
       "b:3:4 [0] NCCL INFO comm 0x7f1c rank 1 nranks 2 cudaDev 0 busId 7000 - Init COMPLETE\n",
       "ranks: 2\nring_crosses: 0 -> 1 and 1 -> 0, 2 adapters\n"},
      // up to 2.6
      {"a:1:2 [7] NCCL INFO Ring 00 : 15 -> 0 [send] via NET/Socket/0\n"
       "a:1:2 [7] NCCL INFO Ring 00 : 14[6] -> 15[7] via P2P/IPC\n"
       "a:1:2 [7] NCCL INFO comm 0x7f1c rank 15 nranks 16 cudaDev 7 nvmlDev 7 - Init COMPLETE\n",
       "transports: NET/Socket 1\n"},
      // trees cross as well, but are not rings
      {"a:1:2 [0] NCCL INFO ncclCommInitRank comm 0x7f1c rank 0 nranks 4 cudaDev 0 busId 7000 commId 0x1 - Init START\n"
       "a:1:2 [0] NCCL INFO Channel 00/01 :    0   1   2   3\n"
       "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 2[0] [send] via NET/IB/0\n"
       "a:1:3 [1] NCCL INFO ncclCommInitRank comm 0x7f1d rank 1 nranks 4 cudaDev 1 busId 8000 commId 0x1 - Init START\n"
       "a:1:3 [1] NCCL INFO Channel 00/0 : 1[1] -> 2[0] [send] via NET/IB/0\n",
       "ring_crosses: 1 -> 2, adapter 0 each time\n"},
      // a group whose number is the rank itself
      {R"({"version": "2.4", "rank": 3, "pg_config": {"5": {"name": "5", "desc": "fsdp", "ranks": "[0, 3]"}},)"
       R"( "pg_status": {"1": {"last_enqueued_collective": 9, "last_started_collective": 8,)"
       R"( "last_completed_collective": 8}}, "entries": [{"pg_id": 1, "process_group": ["5", "fsdp"],)"
       R"( "collective_seq_id": 9, "profiling_name": "nccl:all_reduce", "state": "scheduled"}]})",
       "group: fsdp, 2 ranks\nlast_started: 8\nlast_completed: 8\n", "recorder.json"},
      {"a:1:2 [0] NCCL INFO Using network AWS Libfabric\n"
       "a:1:2 [0] NCCL INFO ncclCommInitRank comm 0x7f1c rank 0 nranks 2 cudaDev 0 busId 7000 commId 0x1 - Init START\n"
       "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/AWS Libfabric/0\n",
       "problem: p4d libfabric before 1.18\n"},
      {"a:1:2 [0] p2p.cc:9 NCCL WARN NET/IB: Got completion from peer 10.0.0.7<4> with status=12 opcode=0 len=0\n",
       "suspect: 10.0.0.7 (peer of the time-out)\n"},
      {"<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\"><pci busid=\"1\"><gpu dev=\"0\" sm=\"80\" gdr=\"1\">"
       "<nvlink target=\"c\" count=\"12\"/></gpu></pci><pci busid=\"2\"><gpu dev=\"1\" sm=\"80\" gdr=\"1\">"
       "<nvlink target=\"c\" count=\"11\"/></gpu></pci></cpu></system>\n",
       "problem: 11 on GPU 1, 12\n", "topology.xml"},
  });
  for (const char* network : {"GPUDirectTCPX_v7", "FasTrak"})
    EXPECT_THAT(answer_to(fmt::format("a:1:2 [0] NCCL INFO Using network {0}\n"
                                      "a:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/{0}/0\n",
                                      network))
                    .problems,
                testing::ElementsAre(testing::HasSubstr("RxDM")));
}

}  // namespace
}  // namespace harness::test
