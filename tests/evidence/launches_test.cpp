#include <gmock/gmock.h>

#include <algorithm>

#include "base/text.h"
#include "evidence/answer.h"
#include "support/temporary_folder.h"

namespace harness::test {
namespace {

using evidence::Answer;
using testing::Contains;

Answer answer_of(const std::vector<std::string>& paths) {
  return evidence::read_files(paths, {}).front();
}

// A script starts another on all ranks: the other says what runs, and this one on how many.
TEST(Launches, FollowsTheScriptThatItsLauncherStarts) {
  const TemporaryFolder scratch;
  const std::string train =
      "export NCCL_ALGO=Ring\npython pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 "
      "--seq-length 512 --micro-batch-size 1 --tensor-model-parallel-size $1\n";
  const std::string batch = "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\nexport NCCL_DEBUG=INFO\n";
  const std::string file = scratch.write("train.sh", "#!/bin/bash\n" + train);
  for (const std::string start : {"srun bash train.sh 2\n", "srun ./train.sh 2\n", "srun -l bash -x ./train.sh 2\n"}) {
    for (const Answer& answer :
         {answer_of({file, scratch.write("go.sbatch", batch + start)}),
          answer_of({scratch.write("whole.sbatch", batch + "cat > train.sh <<'END'\n" + train + "END\n" + start)})}) {
      EXPECT_THAT(
          answer.facts,
          testing::IsSupersetOf({testing::Pair("ranks", evidence::Value(32)), testing::Pair("tp", evidence::Value(2)),
                                 testing::Pair("env", evidence::Value("NCCL_DEBUG=INFO; NCCL_ALGO=Ring"))}))
          << start;
      EXPECT_THAT(answer.refused, testing::IsEmpty());
    }
  }
  EXPECT_THAT(answer_of({scratch.write("go.sbatch", batch + "srun bash train.sh 2\n")}).notes,
              Contains("train.sh is started by this script: give it as well"));
  EXPECT_THAT(
      answer_of({scratch.write("go.sbatch", batch + "srun ./bind.sh python pretrain_gpt.py --num-layers 4\n")}).facts,
      testing::IsSupersetOf(
          {testing::Pair("ranks", evidence::Value(32)), testing::Pair("layers", evidence::Value(4))}));
}

// Shards within nodes are what harness has, also beside tensor parallelism.
TEST(Launches, ShardsWithinNodesBesideTensorParallelism) {
  const TemporaryFolder scratch;
  for (const auto& [shard, within] : {std::pair(4, true), {8, false}}) {
    const std::string toml = fmt::format(
        "[model]\nflavor = \"8B\"\n[training]\nseq_len = 512\n[parallelism]\ntensor_parallel_degree = 2\n"
        "data_parallel_replicate_degree = 4\ndata_parallel_shard_degree = {}\n",
        shard);
    const std::vector<std::string> cannot = answer_of({scratch.write("titan.toml", toml)}).cannot;
    EXPECT_EQ(join(cannot, "").find("sharding among") == std::string::npos, within) << shard;
  }
}

TEST(Launches, TakesRanksFromTheHostfileOfItsLauncher) {
  const TemporaryFolder scratch;
  const std::string hosts = scratch.write("hosts", "node1 slots=8\nnode2 slots=8\nnode3 slots=8\n");
  const std::string program =
      " pretrain_gpt.py --num-layers 4 --hidden-size 512 --num-attention-heads 8 --micro-batch-size 1\n";
  for (const auto& [launch, ranks] : {std::pair<std::string, int>("mpirun --hostfile hosts python", 24),
                                      {"mpirun -N 4 --hostfile hosts python", 12},
                                      {"mpirun -np 2 --hostfile hosts python", 2},
                                      {"deepspeed --hostfile hosts", 24},
                                      {"deepspeed --hostfile hosts --num_gpus 2", 6},
                                      {"torchrun --nproc-per-node 4", 4}}) {
    const Answer answer = answer_of({hosts, scratch.write("go.sh", "#!/bin/bash\n" + launch + program)});
    EXPECT_THAT(answer.facts, Contains(testing::Pair("ranks", evidence::Value(ranks)))) << launch;
  }
}

}  // namespace
}  // namespace harness::test
