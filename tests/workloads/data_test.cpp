// The tokens of a training step that come from a file.
#include <filesystem>
#include <fstream>

#include "data/loader.h"
#include "gpt_jobs.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace harness::workloads {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class DataFile : public ::testing::Test {
 protected:
  std::string file_of(std::int64_t tokens, std::int64_t vocabulary, std::uint64_t seed = 1) const {
    std::ofstream out(path_, std::ios::binary);
    data::make_token_file(tokens, vocabulary, seed, [&](std::span<const char> piece) {
      out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    });
    return path_;
  }
  static std::vector<std::int32_t> filled(const program::InputSource& inputs, const std::string& buffer,
                                          std::int64_t step, std::int64_t count) {
    std::vector<std::int32_t> values(count);
    inputs.fill(buffer, step, std::as_writable_bytes(std::span(values)));
    return values;
  }
  static std::unique_ptr<program::InputSource> inputs_of(const Job& j, int rank = 0, std::uint64_t seed = 1) {
    return make_inputs(j.model, j.settings, j.layout, j.layout.coordinates(rank), seed);
  }

 private:
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "tokens.bin";
};

// So losses are the same, whatever loads them.
TEST_F(DataFile, WithTheSyntheticTokensGivesTheSameInputs) {
  for (const auto& [tp, pp, dp] : {std::tuple(1, 1, 1), std::tuple(2, 1, 2), std::tuple(1, 2, 2)}) {
    Job made_up = small_job(tp, pp, dp), from_file = made_up;
    const std::int64_t sample = small_gpt.sequence + 1, batch = made_up.settings.global_batch_size;
    from_file.settings.data_file = file_of(4 * batch * sample, small_gpt.vocab, 3);
    EXPECT_EQ(program::hash(build(made_up)), program::hash(build(from_file)));
    const program::ProgramSet set = build(from_file);
    for (int rank = 0; rank < made_up.layout.ranks(); ++rank) {
      const program::Program& program = set.roles[set.role_of(made_up.layout.coordinates(rank))];
      const auto expected = inputs_of(made_up, rank, 3);
      const auto read = data::with_loader(inputs_of(from_file, rank, 9), program, from_file.settings, small_gpt.vocab);
      for (std::int64_t step = 0; step < 8; ++step) {  // four of which come from the file a second time
        for (const program::Buffer& buffer : program.buffers) {
          if (buffer.kind != program::BufferKind::input) continue;
          EXPECT_EQ(filled(*read, buffer.name, step, buffer.count),
                    filled(*expected, buffer.name, step % 4, buffer.count))
              << buffer.name << " " << step;
        }
      }
    }
  }
}

TEST_F(DataFile, ThatIsTooShortOrOfAnotherVocabularyIsRefused) {
  Job j = small_job(1, 1);
  const std::int64_t needed = j.settings.global_batch_size * (small_gpt.sequence + 1);
  j.settings.data_file = file_of(needed - 1, small_gpt.vocab);
  EXPECT_THAT(test::error_of([&] { inputs_of(j); }),
              AllOf(HasSubstr(fmt::format("has {} tokens", needed - 1)), HasSubstr(fmt::format("needs {}", needed))));
  file_of(needed, small_gpt.vocab + 1);
  EXPECT_THAT(test::error_of([&] { inputs_of(j); }), HasSubstr("the model's vocab is 256"));
  std::filesystem::remove(j.settings.data_file);
  EXPECT_THAT(test::error_of([&] { inputs_of(j); }), HasSubstr("does not exist"));
}

TEST_F(DataFile, ThatIsCutShortEndsTheStepThatNeedsIt) {
  Job j = small_job(1, 1);
  const std::int64_t batch_tokens = j.settings.global_batch_size * (small_gpt.sequence + 1);
  j.settings.data_file = file_of(1000 * batch_tokens, small_gpt.vocab);
  for (const int workers : {0, 3}) {
    file_of(1000 * batch_tokens, small_gpt.vocab);
    j.settings.loader_workers = workers;
    const program::Program program = build(j).roles[0];
    const auto inputs = data::with_loader(inputs_of(j), program, j.settings, small_gpt.vocab);
    const std::int64_t count = static_cast<std::int64_t>(data::tokens_of(program));
    filled(*inputs, gpt::tokens_buffer, 0, count);
    std::filesystem::resize_file(j.settings.data_file, 32 + 2 * 100 * batch_tokens);
    EXPECT_THAT(test::error_of([&] {
                  for (std::int64_t step = 1; step < 200; ++step) filled(*inputs, gpt::tokens_buffer, step, count);
                }),
                HasSubstr("cut short"));
  }
}

// Only the ends of a pipeline have tokens or labels.
TEST_F(DataFile, IsNotOpenedInTheMiddleOfAPipeline) {
  Job j = small_job(1, 4);
  j.settings.data_file = "no-such-file.bin";
  for (int rank = 0; rank < 4; ++rank) {
    const std::string problem = test::error_of([&] { inputs_of(j, rank); });
    EXPECT_EQ(problem.empty(), rank == 1 || rank == 2) << problem;
  }
}

}  // namespace
}  // namespace harness::workloads
