#include <gtest/gtest.h>

#include "base/text.h"
#include "evidence/answer.h"
#include "evidence/expectations.h"
#include "support/temporary_folder.h"

namespace harness::test {
namespace {

// Versions of frameworks and libraries differ in a line or a key, each of which is a row here.
struct Quirk {
  std::string file, text, expected;
};

void expect_answers(const std::vector<Quirk>& quirks) {
  const TemporaryFolder scratch;
  for (const Quirk& quirk : quirks) {
    const std::vector<evidence::Answer> answers = evidence::read_files({scratch.write(quirk.file, quirk.text)}, {});
    EXPECT_EQ(join(missing(quirk.expected, answers.front()), "\n"), "") << quirk.text;
  }
}

// Before the first colon of a problem, for what must not be said.
std::string headline_of(const std::string& file, const std::string& text) {
  const TemporaryFolder scratch;
  return evidence::read_files({scratch.write(file, text)}, {}).front().headline;
}

TEST(Quirks, OfTrainingLogs) {
  expect_answers({
      {"titan.log",
       "[rank0]: - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [8, 2]\n"
       "[rank0]: - root - INFO - GPU capacity: NVIDIA A100-SXM4-80GB (0) with 79.15GiB memory\n"
       "[rank0]: - root - INFO - Trainer is initialized with local batch size 4, global batch size 32, gradient "
       "accumulation steps 1, sequence length 2048, total steps 100 (warmup 2)\n"
       "[rank0]: - root - INFO - step: 10  loss: 8.1  memory: 60.1GiB(76%)  wps: 1,024  mfu: 4.10%\n"
       "[rank0]: - root - INFO - step: 20  loss: 8.0  memory: 60.1GiB(76%)  wps: 1,024  mfu: 4.10%\n",
       "gpu: A100-SXM4-80GB\nranks: 16\ntp: 2\ndp: 8\nmicro_batch: 4\nsequence: 2048\nstep_time_s: 4.00\n"},
      {"max.log",
       "completed step: 1, seconds: 9.0, TFLOP/s/device: 40.0, Tokens/s/device: 111.1, loss: 9.1\n"
       "completed step: 2, seconds: 2.0, TFLOP/s/device: 410.0, Tokens/s/device: 500.5, loss: 9.1\n",
       "step_time_s: 2.0\ntokens_per_s_per_gpu: 500.5\n"},
  });
  EXPECT_EQ(
      headline_of("end.log",
                  "iteration 1/ 9 | elapsed time per iteration (ms): 900.0 | global batch size: 8 |\n"
                  "torch.OutOfMemoryError: CUDA out of memory.\nslurmstepd: error: *** STEP 1.0 ON a CANCELLED AT "
                  "2026-01-01T00:00:00 ***\n"),
      "the job failed: CUDA out of memory");
}

}  // namespace
}  // namespace harness::test
