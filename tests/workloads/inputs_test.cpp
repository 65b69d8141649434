// The tokens of a training step: synthetic, from a file, and of documents shorter than a sequence.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "config/registry.h"
#include "data/loader.h"
#include "gpt_jobs.h"
#include "support/errors.h"
#include "support/files.h"
#include "workloads/gpt/documents.h"

namespace harness::workloads {
namespace {

using gpt::Document;
using gpt::Documents;
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
    return gpt_workload().inputs(j.model, j.settings, j.layout, j.layout.coordinates(rank), seed);
  }

 private:
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "tokens.bin";
};

// Hence losses do not depend on the source of the tokens.
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
      for (std::int64_t step = 0; step < 8; ++step) {  // the last four read the file a second time
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

// A file with the documents of four steps serves four steps.
TEST_F(DataFile, OfDocumentsIsReadFromEndToEnd) {
  Job made_up = small_job(1, 1);
  config::find_variable("sequences")->parse(made_up.settings, "{distribution: uniform, min: 4, max: 8}");
  Job from_file = made_up;
  const std::int64_t batch = made_up.settings.global_batch_size, count = batch * small_gpt.sequence;
  from_file.settings.data_file = file_of(4 * batch * (small_gpt.sequence + 1), small_gpt.vocab);
  const auto expected = inputs_of(made_up), read = inputs_of(from_file);
  for (std::int64_t step = 0; step < 4; ++step) {
    EXPECT_EQ(filled(*read, gpt::tokens_buffer, step, count), filled(*expected, gpt::tokens_buffer, step, count))
        << "step " << step;
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

// Only the ends of a pipeline have tokens or labels.
TEST_F(DataFile, IsNotOpenedInTheMiddleOfAPipeline) {
  Job j = small_job(1, 4);
  j.settings.data_file = "no-such-file.bin";
  for (int rank = 0; rank < 4; ++rank) {
    const std::string problem = test::error_of([&] { inputs_of(j, rank); });
    EXPECT_EQ(problem.empty(), rank == 1 || rank == 2) << problem;
  }
  config::find_variable("sequences")->parse(j.settings, "{distribution: uniform, min: 16, max: 16}");
  j.settings.batching = config::Batching::packed;
  const program::ProgramSet set = build(j);
  for (int stage = 0; stage < 4; ++stage)
    EXPECT_EQ(data::tokens_of(set.roles[stage]) == 0, stage == 1 || stage == 2) << stage;
}

// ---- documents ------------------------------------------------------------------------------------------------------

config::Settings settings_of(const std::string& sequences, config::Batching batching = config::Batching::packed) {
  config::Settings s;
  config::find_variable("sequences")->parse(s, sequences);
  s.batching = batching;
  return s;
}

const std::string usual = "{distribution: lognormal, median: 100, sigma: 1}";

TEST(Documents, PackedLieInTheirRowsAndPaddedAreTheFirstOfThem) {
  constexpr std::int64_t sequence = 512, rows = 40;
  const Documents packing(settings_of(usual), sequence, rows, 3);
  const Documents padding(settings_of(usual, config::Batching::padded), sequence, rows, 3);
  for (const std::int64_t step : {0, 7}) {
    const std::vector<Document> packed = packing.of_step(step), padded = padding.of_step(step);
    std::vector<std::vector<bool>> taken(rows, std::vector<bool>(sequence));
    for (const Document& d : packed) {
      ASSERT_LE(d.first + d.length, sequence);
      for (std::int64_t t = d.first; t < d.first + d.length; ++t) {
        ASSERT_FALSE(taken[d.row][t]) << "row " << d.row << ", position " << t;
        taken[d.row][t] = true;
      }
    }
    ASSERT_EQ(padded.size(), rows);
    ASSERT_GT(packed.size(), 2 * padded.size());
    for (std::int64_t i = 0; i < rows; ++i) {
      EXPECT_EQ(padded[i].length, packed[i].length);
      EXPECT_EQ(std::pair(padded[i].row, padded[i].first), std::pair(i, std::int64_t{0}));
    }
  }
  EXPECT_NE(packing.of_step(0)[0].length, packing.of_step(1)[0].length);
}

TEST(Documents, LengthsFollowTheDistribution) {
  const auto lengths = [](const std::string& sequences) {
    std::vector<std::int64_t> all;
    const Documents documents(settings_of(sequences, config::Batching::padded), 4096, 2000, 1);
    for (const Document& d : documents.of_step(0)) all.push_back(d.length);
    std::ranges::sort(all);
    return all;
  };
  const std::vector<std::int64_t> lognormal = lengths("{distribution: lognormal, median: 200, sigma: 0.5}");
  EXPECT_NEAR(static_cast<double>(lognormal[1000]), 200, 10);
  EXPECT_NEAR(static_cast<double>(lognormal[1683]), 200 * std::exp(0.5), 20);  // one sigma above
  const std::vector<std::int64_t> uniform = lengths("{distribution: uniform, min: 11, max: 20}");
  EXPECT_EQ(std::set(uniform.begin(), uniform.end()), (std::set<std::int64_t>{11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  const test::TemporaryFolder folder;
  const std::string path = folder.write("lengths.txt", "5, 9\n9999\n");
  const std::vector<std::int64_t> of_file = lengths("{distribution: file, file: \"" + path + "\"}");
  EXPECT_EQ(std::set(of_file.begin(), of_file.end()), (std::set<std::int64_t>{5, 9, 4096}));
}

TEST(Documents, FirstFitLeavesLittlePadding) {
  const Filling packed = gpt::filled_by(settings_of(usual), 1024, 64);
  const Filling padded = gpt::filled_by(settings_of(usual, config::Batching::padded), 1024, 64);
  EXPECT_GT(packed.tokens, 0.95);
  EXPECT_LT(packed.tokens, 1);
  EXPECT_NEAR(padded.tokens, 0.157, 0.01);  // exp(1/2) * 100 / 1024, minus the tokens cut off
  const Filling halves = gpt::filled_by(settings_of("{distribution: uniform, min: 512, max: 512}"), 1024, 8);
  EXPECT_EQ(std::pair(halves.tokens, halves.attention), std::pair(1.0, 0.5));
}

TEST(Documents, NoRowHoldsMoreThanTheTablesOfKernelsHaveRoomFor) {
  constexpr std::int64_t sequence = 1024, rows = 60;
  std::set<std::int64_t> limits;
  for (const std::string& sequences :
       {std::string("{distribution: lognormal, median: 4, sigma: 3}"),
        std::string("{distribution: uniform, min: 1, max: 3}"), std::string("full"), usual}) {
    const config::Settings settings = settings_of(sequences);
    const std::int64_t most = Documents(settings, sequence, 1, 0).most_of_a_row();
    limits.insert(most);
    std::int64_t largest = 0;
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
      const Documents documents(settings, sequence, rows, seed);
      EXPECT_EQ(documents.most_of_a_row(), most);
      std::vector<std::int64_t> held(rows);
      for (const Document& d : documents.of_step(3)) largest = std::max(largest, ++held[d.row]);
    }
    EXPECT_LE(largest, most) << sequences;
    if (sequences.find("sigma: 3") != std::string::npos) {
      EXPECT_EQ(largest, most);
    }
  }
  EXPECT_THAT(limits, ::testing::Contains(12));  // 8, and 4 times the one document as long as a row
}

TEST(Documents, ProgramsAreSoundAndHaveInputsForThem) {
  for (const config::Batching batching : {config::Batching::padded, config::Batching::packed}) {
    Job j = small_job(2, 2, 2);
    config::find_variable("sequences")->parse(j.settings, "{distribution: uniform, min: 16, max: 16}");
    j.settings.batching = batching;
    const program::ProgramSet set = build(j);
    EXPECT_EQ(texts(program::verify(set)), "");
    const auto names = [&](int stage) {
      std::set<std::string> inputs;
      for (const program::Buffer& b : set.roles[stage].buffers) {
        if (b.kind == program::BufferKind::input) inputs.insert(b.name);
      }
      return inputs;
    };
    std::set<std::string> first{"learning_rate", "tokens"}, last{"learning_rate", "labels", "loss_scale"};
    if (batching == config::Batching::packed) {
      first.insert("position_ids");
      last.insert("position_ids");
    }
    EXPECT_EQ(names(0), first);
    EXPECT_EQ(names(1), last);
    const auto attention = std::ranges::find_if(set.roles[0].step, [](const program::Operation& op) {
      return std::holds_alternative<program::Attention>(op.action);
    });
    // Attention in two documents of half a sequence has half the FLOP of one whole document.
    const program::AttentionShape& shape = std::get<program::Attention>(attention->action).shape;
    const double dense = 2.0 * static_cast<double>(shape.batch * shape.heads * shape.head_dim * 32 * 32);
    EXPECT_EQ(program::flop_of(attention->action).model, batching == config::Batching::packed ? dense / 2 : dense);
  }
}

}  // namespace
}  // namespace harness::workloads
