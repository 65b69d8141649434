#include <gmock/gmock.h>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"

// Launch scripts: the launchers, and the scripts that they start.

namespace harness::test {
namespace {

TEST(Quirks, OfLaunches) {
  const std::string launch =
      "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 22 --hidden-size 512 --num-attention-heads 8 "
      "--micro-batch-size 1 --seq-length 512 ";
  EXPECT_EQ(headline_of(launch + "--pipeline-model-parallel-size 4\n"), "22 layers do not divide into 4 stages");
  const std::string pipeline = launch + "--pipeline-model-parallel-size 4 ";
  for (const char* uneven :
       {"--pp-partition-method 'type:transformer|embedding'", "--pp-partition-method type:transformer",
        "--decoder-first-pipeline-num-layers 4", "--pipeline-model-parallel-layout Et*5|t*17L",
        "--decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 5"})
    EXPECT_EQ(headline_of(pipeline + uneven + "\n").find("divide"), std::string::npos) << uneven;
  expect_answers({
      {pipeline + "--decoder-first-pipeline-num-layers 5 --decoder-last-pipeline-num-layers 5\n",
       "headline: 5 layers, the others 6\n"},
      {pipeline + "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split\n", "layers: 22\n"},
      {pipeline + "--decoder-first-pipeline-num-layers 4\n", "cannot: --decoder-first-pipeline-num-layers 4\n"},
  });
  const std::string adam = launch + "--optimizer adam\n", environment = "export NCCL_DEBUG=INFO NCCL_IB_SL=1\nsrun ";
  expect_answers({
      {"python scripts/performance/run_script.py -mr llama3_8b -ng 16 -tp 2 -mb 1 -gb 128\n",
       "layers: 32\ntp: 2\ndp: unknown\n"},                     // the release determines a recipe's layout
      {launch + "--num-key-value-heads 2\n", "kv_heads: 2\n"},  // of Megatron-DeepSpeed
      {launch + "--kv-channels 128\n", "cannot: heads of width 128, 64 is counted\n"},
      {environment + "--export=NCCL_DEBUG -n 16 " + launch + "\n", "headline: 1 of 2\n"},
      {environment + "--export=ALL,NCCL_DEBUG=WARN -n 16 " + launch + "\n", "env: NCCL_IB_SL=1 NCCL_DEBUG=WARN\n"},
      {"export NCCL_DEBUG=INFO NCCL_ALGO=Ring\nmpiexec.hydra -n 16 -ppn 8 -genvlist NCCL_ALGO python train.py\n",
       "ranks: 16\nlauncher: mpich\nheadline: 1 of 2\n"},
      {"#!/bin/bash\n#SBATCH -N 2 --ntasks-per-node=4\n#SBATCH --gpus-per-task=2\nsrun torchrun --nnodes 2 "
       "--nproc-per-node $SLURM_GPUS_PER_TASK pretrain_gpt.py --num-layers 4\n",
       "ranks: 4\n"},
      {"#!/bin/bash\n#SBATCH -N 2 --gres=gpu:p100:4(S:0-1),lscratch:100\ntorchrun --nnodes 2 --nproc-per-node "
       "$SLURM_GPUS_ON_NODE pretrain_gpt.py --num-layers 4\n",
       "ranks: 8\n"},
      // tyro takes either spelling
      {"torchrun --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_8b "
       "--parallelism.tensor-parallel-degree 2 --parallelism.enable-async-tensor-parallel\n",
       "tp: 2\ntp_overlap: true\n"},
      {"accelerate launch --num_processes 8 --use_fsdp --fsdp-sharding-strategy SHARD_GRAD_OP --mixed_precision bf16 "
       "train.py --model_name_or_path gpt2 --block_size 512\n",
       "layers: 12\nranks: 8\nsharding: gradients\nprecision: bf16\n"},
      {"accelerate launch --config_file acc.yaml --num_processes 4 train.py --model_name_or_path gpt2\n",
       "ranks: 4\nsharding: unknown\n"},
      {"python scripts/performance/run_script.py -mr llama3_8b -ng 16 -g h100 model.tensor_model_parallel_size=2 "
       "train.global_batch_size=64\n",
       "gpu: h100-sxm\ntp: 2\nglobal_batch: 64\n"},
      {launch + "--num-layer 24 --step-batch-size-schedule '0:64 900:128' --ds-sequence-parallel-size 2\n",
       "layers: 24\nglobal_batch: 128\ncp: 2\n"},
      {launch + "--num-experts 8 64 --num-distributed-optimizer-instances 2\n",
       "cannot: 64 experts\ncannot: among 4 of 8 replicas\n"},
      {"#!/bin/bash\ncat > ds.json <<END\n{\"train_batch_size\": \"auto\", \"gradient_accumulation_steps\": "
       "\"auto\"}\nEND\n"
       "deepspeed --num_gpus 8 run.py --deepspeed ds.json --per_device_train_batch_size 2 --bf16\n",
       "global_batch: 16\ngradient_accumulation: 1\n"},
      {"#!/bin/bash\ncat > ds.json <<END\n{\"train_batch_size\": 96, \"train_micro_batch_size_per_gpu\": 2, "
       "\"gradient_accumulation_steps\": 2}\nEND\ndeepspeed --num_gpus 8 run.py --deepspeed ds.json --bf16\n",
       "problem: 96 sequences are not 8 replicas x 2 x 2 accumulated\n"},
  });
  EXPECT_EQ(headline_of(pipeline + "--num-virtual-stages-per-pipeline-rank 2 "
                                   "--num-layers-per-virtual-pipeline-stage 2\n"),
            "--num-virtual-stages-per-pipeline-rank and --num-layers-per-virtual-pipeline-stage exclude each other");
  EXPECT_EQ(join(answer_to(adam, "go.sh").cannot, "\n"), "");
  const std::string zero = "deepspeed --num_gpus 8 main.py --model_name_or_path gpt2 --zero_stage 3 --offload\n";
  EXPECT_THAT(answer_to(zero, "go.sh").cannot, testing::Contains(testing::HasSubstr("on the host")));
  // A file from a Windows editor. Undefined variables count only where they are needed.
  const evidence::Answer windows = answer_to("export NCCL_DEBUG=INFO NCCL_IB_SL=1\r\nexport -n NCCL_IB_SL\r\n" +
                                                 launch + "\\\r\n --data-path $DATA --global-batch-size $N\r\n",
                                             "go.sh");
  EXPECT_EQ(join(windows.refused, "\n"), "line 3: N is not set in this script");
  EXPECT_EQ(fact(windows, "env"), "NCCL_DEBUG=INFO");
}

// A script starts another one on all ranks: the inner script defines the program, the outer one the number of ranks.
TEST(Launches, FollowsTheScriptThatItsLauncherStarts) {
  const std::string train =
      "export NCCL_ALGO=Ring\npython pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
      "--seq-length 512 --micro-batch-size 1 --tensor-model-parallel-size $1\n";
  const std::string batch = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\nexport NCCL_DEBUG=INFO\n";
  for (const std::string start : {"srun bash train.sh 2\n", "srun ./train.sh 2\n", "srun -l bash -x ./train.sh 2\n"}) {
    for (const evidence::Answer& answer :
         {answers_to({{"train.sh", "#!/bin/bash\n" + train}, {"go.sbatch", batch + start}}).front(),
          answer_to(batch + "cat > train.sh <<'END'\n" + train + "END\n" + start)}) {
      EXPECT_EQ(lacking("ranks: 32\ntp: 2\n", answer), "") << start;
      EXPECT_EQ(fact(answer, "env"), "NCCL_DEBUG=INFO; NCCL_ALGO=Ring") << start;
      EXPECT_THAT(answer.refused, testing::IsEmpty());
    }
  }
  EXPECT_THAT(answer_to(batch + "srun bash train.sh 2\n").notes,
              testing::Contains("train.sh is started by this script: give it as well"));
  expect_answers({{batch + "srun ./bind.sh python pretrain_gpt.py --num-layers 4\n", "ranks: 32\nlayers: 4\n"}});
}

TEST(Launches, GivesAnotherScriptWhatIsExportedWhereItStarts) {
  const std::string train =
      "#!/bin/bash\npython pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 512 "
      "--micro-batch-size ${M:-1} --tensor-model-parallel-size $T\n";
  for (const std::string go : {"export T=2\nM=4\nsrun -n 16 bash train.sh\nT=8\n",
                               "T=8\nf() { local T=2; export T; srun -n 16 bash train.sh; }\nf\n"}) {
    const auto answers = answers_to({{"train.sh", train}, {"go.sh", "#!/bin/bash\n" + go}});
    EXPECT_EQ(lacking("tp: 2\nmicro_batch: 1\n", answers.front()), "") << go;
  }
}

// harness supports sharding within nodes, also with tensor parallelism.
TEST(Launches, ShardsWithinNodesBesideTensorParallelism) {
  for (const auto& [shard, within] : {std::pair(4, true), {8, false}}) {
    const std::string toml = fmt::format(
        "[model]\nflavor = \"8B\"\n[training]\nseq_len = 512\n[parallelism]\ntensor_parallel_degree = 2\n"
        "data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = {}\n",
        shard);
    const std::vector<std::string> cannot = answer_to(toml).cannot;
    EXPECT_EQ(join(cannot, "").find("sharding among") == std::string::npos, within) << shard;
  }
}

TEST(Launches, TakesRanksFromTheHostfileOfItsLauncher) {
  const std::string hosts = "node1 slots=8\nnode2 slots=8\nnode3 slots=8\n";
  const std::string program =
      " pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --micro-batch-size 1\n";
  for (const auto& [launch, ranks] : {std::pair<std::string, int>("mpirun --hostfile hosts python", 24),
                                      {"mpirun -N 4 --hostfile hosts python", 12},
                                      {"mpirun -np 2 --hostfile hosts python", 2},
                                      {"deepspeed --hostfile hosts", 24},
                                      {"deepspeed --hostfile hosts --num_gpus 2", 6},
                                      {"deepspeed --hostfile hosts --num_nodes 2", 16},
                                      {"deepspeed --include node1:0,1@node3:4,5,6", 5},
                                      {"colossalai run --nproc_per_node 4 --hostfile hosts", 12},
                                      {"torchrun --nproc-per-node 4", 4}}) {
    const auto answers = answers_to({{"hosts", hosts}, {"go.sh", "#!/bin/bash\n" + launch + program}});
    EXPECT_EQ(fact(answers.front(), "ranks"), std::to_string(ranks)) << launch;
  }
}

TEST(Launches, CountsTheRanksOfItsOptions) {
  const std::string program = " python pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8\n";
  expect_answers({
      // Numbers that follow an option without a space.
      {"#!/bin/bash\nsrun -N2 -n16" + program, "ranks: 16\n"},
      {"#!/bin/bash\n#SBATCH -N4 -n32\nsrun -N1 -n8" + program, "ranks: 8\n"},
      // A job may have the name of a launcher.
      {"#!/bin/bash\nsrun -J deepspeed -N 2 --ntasks-per-node 8" + program, "launcher: srun\nranks: 16\n"},
      // The slots of each host, and no sockets.
      {"mpirun -H n1:8,n2:4" + program, "ranks: 12\n"},
      {"mpirun -H n1:8,n2:8" + program, "ranks: 16\nranks_per_node: 8\n"},
      {"mpirun -H n1,n2 --map-by ppr:4:node:PE=8" + program, "ranks: 8\n"},
      {"mpirun -H n1,n2 --map-by ppr:4:socket" + program, "ranks: unknown\n"},
      // NVIDIA's launcher that restarts, with the options of torchrun.
      {"#!/bin/bash\nft_launcher --nnodes 2 --nproc_per_node 8 --ft-param-log_level DEBUG" + program.substr(7),
       "ranks: 16\n"},
      // The world of composer rather than its processes on a node.
      {"composer --world_size 16 --node_rank 0 -n 8 train.py train.yaml\n", "ranks: 16\n"},
      {"composer -n 8 train.py train.yaml\n", "ranks: 8\n"},
  });
}

// Commands that start torchrun or accelerate by themselves.
TEST(Launches, FollowsTheCommandsOfFrontEnds) {
  expect_answers({
      {"NNODES=2 NPROC_PER_NODE=8 swift sft --model_name_or_path gpt2 --per_device_train_batch_size 2 "
       "--deepspeed zero2\n",
       "framework: hugging face trainer\nlauncher: torchrun\nranks: 16\nsharding: gradients\nrecompute: full\n"},
      {"NPROC_PER_NODE=4 swift sft --model gpt2\n",
       "micro_batch: 1\ngradient_accumulation: 4\nglobal_batch: 16\nprecision: unknown\n"},
      {"NPROC_PER_NODE=4 swift sft --model gpt2 --per_device_train_batch_size 8 --torch_dtype bfloat16\n",
       "gradient_accumulation: 1\nglobal_batch: 32\nprecision: bf16\n"},
      {"swift sft --model gpt2 --deepspeed zero2\n", "gradient_accumulation: unknown\n"},
      {"NPROC_PER_NODE=8 megatron sft --model gpt2 --tensor_model_parallel_size 2 --max_length 512 "
       "--overlap_grad_reduce true\n",
       "framework: megatron-lm\nranks: 8\ntp: 2\nlayers: 12\nkv_heads: 12\nsequence: 512\nglobal_batch: 16\n"
       "recompute: selective\nsharding: optimizer\nprecision: unknown\noverlap_grad_reduce: true\n"},
      {"NNODES=2 NPROC_PER_NODE=8 megatron pt --model mistralai/Mistral-7B-v0.3 --torch_dtype bfloat16 --packing "
       "true\n",
       "ranks: 16\nlayers: 32\nkv_heads: 8\nmicro_batch: 1\nprecision: bf16\nbatching: packed\n"},
      {"FORCE_TORCHRUN=1 NPROC_PER_NODE=4 llamafactory-cli train llama3.yaml\n",
       "launcher: torchrun\nranks: 4\nrefuse: llama3.yaml\n"},
      {"FORCE_TORCHRUN=1 llamafactory-cli train llama3.yaml\n", "launcher: torchrun\nranks: unknown\n"},
      {"axolotl train fft-8b.yml --num-processes 8\n", "launcher: accelerate\nranks: 8\nrefuse: fft-8b.yml\n"},
      {"axolotl train fft-8b.yml --launcher torchrun -- --nproc_per_node=4\n", "launcher: torchrun\nranks: 4\n"},
      {"colossalai run --nproc_per_node 8 --host n1,n2 sft.py --per_device_train_batch_size 1\n", "ranks: 16\n"},
      {"colossalai run --nproc_per_node 8 sft.py --per_device_train_batch_size 1\n", "ranks: 8\n"},
      {"colossalai run --nproc_per_node 8 --hostfile h sft.py --per_device_train_batch_size 1\n", "ranks: unknown\n"},
      {"accelerate-launch --num_processes=8 train.py --model_name_or_path gpt2\n", "ranks: 8\nlayers: 12\n"},
  });
}

// Many programs are called train.py and take a batch size.
TEST(Launches, TakeTheDefaultsOfNanoGptForItsOwnArgumentsAlone) {
  const std::string launch = "torchrun --nproc_per_node 8 train.py ";
  expect_answers({
      {launch + "--batch_size 256 --arch resnet50\n", "framework: unknown\nlayers: unknown\n"},
      {launch + "--block_size 256\n", "framework: unknown\nlayers: unknown\n"},
      {launch + "--batch_size=256 --lr=0.1\n", "framework: unknown\nlayers: unknown\n"},
      {"torchrun --nproc_per_node 8 main.py --bf16 --batch-size 4\n", "framework: unknown\nmicro_batch: unknown\n"},
      {launch + "config/llama.yaml\n", "framework: unknown\nlayers: unknown\nrefuse: llama.yaml\n"},
      {launch + "config/train_gpt2.py\n", "framework: nanogpt\nlayers: unknown\nrefuse: train_gpt2.py\n"},
      {launch + "--batch_size=4 --max_iters=9\n", "framework: nanogpt\nlayers: 12\nmicro_batch: 4\n"},
  });
}

TEST(Launches, SayWhatIsMissingOfAProgram) {
  const auto notes = [](const std::string& text) { return join(answer_to(text, "go.sh").notes, "\n"); };
  EXPECT_THAT(notes("torchrun --nproc_per_node 8 -m verl.trainer.sft model.path=a trainer.n_gpus_per_node=8\n"),
              testing::HasSubstr("verl.trainer.sft is not known here: flags"));
  EXPECT_THAT(notes("#!/bin/bash\ntorchrun pretrain_gpt.py --num-layers $2 --hidden-size 512\n"),
              testing::HasSubstr("give a script that starts it with them"));
  const std::string accelerate = "accelerate launch --num_machines 2 train.py --per_device_train_batch_size 1\n";
  EXPECT_THAT(notes(accelerate), testing::HasSubstr("on all 2 machines together"));
}

// A value that the script gives but does not determine is not the default.
TEST(Launches, TakesNoDefaultForAValueThatIsNotKnown) {
  expect_answers({
      {"#!/bin/bash\ntorchrun --nproc_per_node 8 sft.py --per_device_train_batch_size 2 "
       "--gradient_accumulation_steps $(cat steps)\n",
       "micro_batch: 2\nglobal_batch: unknown\ngradient_accumulation: unknown\n"},
      {"#!/bin/bash\ntorchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
       "--group-query-attention --num-query-groups $KV\n",
       "heads: 8\nkv_heads: unknown\n"},
      {"#!/bin/bash\ntorchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 ${OPTIONS}\n",
       "precision: unknown\nsharding: unknown\nrecompute: unknown\ntied_embeddings: unknown\n"},
  });
  EXPECT_THAT(answer_to("torchrun pretrain_gpt.py --num-layers 4 --expert-model-parallel-size $EP\n", "go.sh").cannot,
              testing::Contains("expert parallelism is left out (EP unknown): its all-to-all is not predicted"));
  const evidence::Answer undecided = answer_to(
      "#!/bin/bash\ntorchrun pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --seq-length 256 "
      "--micro-batch-size 1 --global-batch-size 8 --vocab-size 1000 --tensor-model-parallel-size $T\n",
      "go.sh");
  EXPECT_EQ(lacking("tp: unknown\nvocab: unknown\n", undecided), "");
  EXPECT_EQ(undecided.configuration, "");
  EXPECT_THAT(undecided.notes, testing::Contains(testing::HasSubstr("--set tensor_parallel=N")));
}

TEST(Launches, NamesAFileWhoseNameIsPartlyUnknown) {
  const evidence::Answer answer = answer_to(
      "#!/bin/bash\nZERO=ds.$JOB.json\ncat > $ZERO <<END\n{\"zero_optimization\": {\"stage\": 2}}\nEND\n"
      "deepspeed --num_gpus 8 run.py --deepspeed $ZERO --model_name_or_path gpt2 --per_device_train_batch_size 1\n",
      "go.sh");
  EXPECT_THAT(answer.configuration, testing::HasSubstr("# zero_optimization.stage, ds.*.json\n"));
  EXPECT_THAT(answer_to("deepspeed run.py --deepspeed z.$JOB.json --bf16\n", "go.sh").refused,
              testing::Contains("z.*.json is named at go.sh:1: give it as well"));
  EXPECT_THAT(answer_to("N=${1:-}\ndeepspeed run.py --deepspeed zero_$N.json --config $N.yaml\n", "go.sh").refused,
              testing::ElementsAre("zero_.json is named at go.sh:2: a variable in this name seems to be empty: set it, "
                                   "and give the file as well",
                                   testing::StartsWith(".yaml is named at go.sh:2: a variable")));
}

TEST(Launches, MayBeginWithAFunction) {
  const std::string worker = "python pretrain_gpt.py --num-layers 4 --micro-batch-size 1";
  expect_answers({{"usage()\n{\n  echo a\n}\nW=$(cat <<- END\n  sleep 1 ;\n  " + worker +
                       "\nEND\n)\necho \"$W\" > w.sh\ntorchrun --nproc-per-node=4 --nnodes=2 --no-python bash w.sh\n",
                   "ranks: 8\nlayers: 4\n"}});
}

TEST(Launches, TakeTheDefaultsOfAProgramAroundMegatron) {
  const std::string slime = "python train.py --actor-num-nodes 2 --num-layers 4 --hidden-size 512 ";
  expect_answers({{slime + "\n", "ranks: 16\nprecision: bf16\nsharding: optimizer\n"},
                  {slime + "--fp16 --actor-num-gpus-per-node 4\n", "ranks: 8\nprecision: fp16\n"},
                  {"N=$(wc -l < hosts)\n" + slime + "--actor-num-nodes $N\n", "ranks: unknown\n"},
                  {"megatron sft --model gpt2\n", "precision: unknown\nmicro_batch: 1\n"},
                  {"megatron sft --model gpt2 --bf16 true\n", "precision: bf16\n"}});
}

// Programs of a user's own, beside a configuration that decides the framework.
TEST(Launches, TakesTheCommonNamesOfAnOwnProgramsFlags) {
  const std::string model = " --num_layers 4 --hidden_width=512 --num_heads=8 --vocab_size=1000 --max_length 256 ";
  expect_answers({
      {"torchrun --nproc_per_node 2 own.py --bf16=1 --activation_checkpointing=1" + model + "\n",
       "layers: 4\nheads: 8\nvocab: 1000\nsequence: 256\nprecision: bf16\nrecompute: full\n"},
      {"#!/bin/bash\ncat > ds.json <<END\n{\"train_micro_batch_size_per_gpu\": 2, \"zero_optimization\": {\"stage\": "
       "1}}\nEND\ndeepspeed --num_gpus 2 own.py --deepspeed_config ds.json --activation_checkpointing" +
           model + "\n",
       "framework: deepspeed\nlayers: 4\nsequence: 256\nrecompute: full\nsharding: optimizer\n"},
      {"#!/bin/bash\ncat > ds.json <<END\n{\"train_batch_size\": 64, \"train_micro_batch_size_per_gpu\": 4, "
       "\"zero_optimization\": {\"stage\": 3}}\nEND\ndeepspeed --num_gpus 8 own.py --deepspeed_config ds.json "
       "--train_batch_size 64 --micro_batch_size 64 --zero_stage 0" +
           model + "\n",
       "micro_batch: 4\nglobal_batch: 64\nsequence: 256\nsharding: parameters\n"},
      {"#!/bin/bash\ncat > ds.json <<END\n{\"train_batch_size\": \"auto\", \"zero_optimization\": {\"stage\": 1}}\n"
       "END\ndeepspeed --num_gpus 8 own.py --deepspeed_config ds.json --train_batch_size 32 --train_batch_size 64 "
       "--micro_batch_size 2" +
           model + "\n",
       "micro_batch: 2\nglobal_batch: 64\n"},
  });
  EXPECT_THAT(answer_to("torchrun own.py --bf16 --offload_activations=1\n", "go.sh").cannot,
              testing::Contains(testing::HasSubstr("activations on the host")));
}

// `-q` names a partition's queue for srun alone, and a script may write files of other kinds.
TEST(Launches, AreStartedByWhatStandsBesideThem) {
  const std::string arguments = "train.py --per_device_train_batch_size 1 --model_name_or_path gpt2\n";
  const std::string pod = "#!/bin/bash\ncat > pod.yaml <<EOF\napiVersion: v1\nkind: Pod\nEOF\n";
  const std::string topology = "#!/bin/bash\ncat > topo.xml <<EOF\n<system version=\"1\">\n</system>\nEOF\n";
  const std::string launch = "torchrun --nproc_per_node 8 ";
  expect_answers({
      {"accelerate launch --num_processes 8 -q " + arguments, "ranks: 8\nmicro_batch: 1\n"},
      {pod + launch + arguments, "ranks: 8\nrefuse: pod.yaml\n"},
      {topology + launch + arguments, "ranks: 8\nmicro_batch: 1\n"},
      {"echo " + launch + "old.py > w.sh\necho '" + launch + "train.py --model_name_or_path gpt2' > w.sh\nbash w.sh\n",
       "ranks: 8\nlayers: 12\n"},
  });
}

TEST(Launches, LeavesUnknownWhatAFileDecidesThatIsNotGiven) {
  const std::string maxtext = "python3 -m MaxText.train MaxText/configs/base.yml model_name=llama2-7b";
  expect_answers({
      {"composer --world_size 16 train.py mpt2.yaml max_duration=3ba\n",
       "ranks: 16\nsharding: unknown\nrecompute: unknown\nrefuse: mpt2.yaml\n"},
      {"composer --world_size 16 train.py mpt2.yaml fsdp_config.sharding_strategy=FULL_SHARD\n",
       "sharding: parameters\nrecompute: unknown\n"},
      {maxtext + "\n", "recompute: full\nprecision: bf16\n"},
      {maxtext + " base_config=own2.yml dtype=float32\n", "recompute: unknown\nprecision: fp32\nrefuse: own2.yml\n"},
  });
}

// torchtitan's configurations in Python: their names tell the model alone, but for the smallest.
TEST(Launches, LeavesUnknownWhatANamedConfigurationDecides) {
  const std::string launch = "torchrun --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_70b ";
  expect_answers({
      {"torchrun --nproc-per-node 8 -m torchtitan.train --module llama3 --config llama3_8b\n",
       "sequence: 8192\nmicro_batch: 1\nglobal_batch: 8\nprecision: bf16\ndp: 8\n"},
      {launch + "\n",
       "layers: 80\nsequence: unknown\nmicro_batch: unknown\nglobal_batch: unknown\nprecision: unknown\n"
       "recompute: unknown\ndp: unknown\n"},
      {launch + "--training.max_context_length 4096 --training.num_tokens_per_microbatch_per_dp_rank 8192 "
                "--activation_checkpoint.mode full\n",
       "sequence: 4096\nmicro_batch: 2\nrecompute: full\nprecision: unknown\n"},
  });
}

TEST(Launches, HaveNoUnknownFlagAmongThoseThatCount) {
  const evidence::Answer answer = answer_to(
      "torchrun pretrain_t5.py --num-layers 4 --encoder-num-layers 4 --bert-binary-head --hidden-size 512 --swiglu "
      "--multiple-of 256\n",
      "go.sh");
  EXPECT_THAT(answer.notes, testing::Not(testing::Contains(testing::HasSubstr("not known here"))));
}

TEST(Launches, MayQuoteTheirOutputInAComment) {
  expect_answers({
      {"#!/bin/bash\n# prints {'loss': 2.31}, and on 2 nodes: tps: 4,500\n"
       "torchrun --nproc_per_node 8 sft.py --per_device_train_batch_size 2 --model_name_or_path gpt2\n",
       "ranks: 8\nmicro_batch: 2\n"},
  });
}

}  // namespace
}  // namespace harness::test
