#include "data/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "base/text.h"
#include "support/errors.h"
#include "support/files.h"

namespace harness::data {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TokenFiles : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string made(std::int64_t tokens, std::int64_t vocabulary, std::uint64_t seed = 1) const {
    std::ofstream out(path("tokens.bin"), std::ios::binary);
    make_token_file(tokens, vocabulary, seed, [&](std::span<const char> piece) {
      out.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    });
    return path("tokens.bin");
  }
  template <class Token>
  std::string raw(const std::vector<Token>& tokens) const {
    std::ofstream(path("raw.bin"), std::ios::binary)
        .write(reinterpret_cast<const char*>(tokens.data()),
               static_cast<std::streamsize>(tokens.size() * sizeof(Token)));
    return path("raw.bin");
  }
  static std::string problem(const std::string& path, std::int64_t vocabulary) {
    return test::error_of([&] { TokenFile(path, vocabulary); });
  }

 private:
  test::TemporaryFolder folder_;
};

std::vector<std::int32_t> tokens_of(const TokenFile& file, std::int64_t first, std::int64_t count) {
  std::vector<std::int32_t> tokens(count);
  file.read(first, tokens);
  return tokens;
}

TEST_F(TokenFiles, HoldTheSyntheticTokensOfTheirSeed) {
  for (const std::int64_t vocabulary : {1000, 65536, 65537, 128256}) {
    const std::int64_t count = 70000;  // more than one write holds
    const TokenFile file(made(count, vocabulary, 7), vocabulary);
    EXPECT_EQ(usual_token_bytes(vocabulary), vocabulary <= 65536 ? 2 : 4);
    ASSERT_EQ(file.tokens(), count);
    const std::vector<std::int32_t> tokens = tokens_of(file, 1, count - 1);
    for (std::int64_t i = 1; i < count; ++i) ASSERT_EQ(tokens[i - 1], synthetic_token(7, i, vocabulary)) << i;
  }
}

TEST_F(TokenFiles, WithoutAHeaderAreTakenAsTheyAre) {
  EXPECT_EQ(tokens_of(TokenFile(raw<std::uint16_t>({5, 6, 50256}), 50304), 1, 2),
            (std::vector<std::int32_t>{6, 50256}));
  EXPECT_EQ(tokens_of(TokenFile(raw<std::uint32_t>({5, 128000}), 128256), 0, 2),
            (std::vector<std::int32_t>{5, 128000}));
}

TEST_F(TokenFiles, NameWhatIsWrongWithThem) {
  EXPECT_THAT(problem(path("absent"), 100), AllOf(HasSubstr("absent does not exist"), HasSubstr("make-tokens")));
  EXPECT_THAT(problem(path(""), 100), HasSubstr("is not a regular file"));
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT(problem(path("pipe"), 100), HasSubstr("is not a regular file"));
  EXPECT_THAT(problem(made(10, 1000), 100), AllOf(HasSubstr("vocabulary of 1000"), HasSubstr("vocab is 100")));
  std::filesystem::resize_file(made(10, 100), 32 + 2 * 9);
  EXPECT_THAT(problem(path("tokens.bin"), 100), HasSubstr("has 9 tokens, but its header says 10"));
  if (::geteuid() == 0) return;  // root may read everything
  ::chmod(path("tokens.bin").c_str(), 0);
  EXPECT_THAT(problem(path("tokens.bin"), 100), HasSubstr("Permission denied"));
}

TEST_F(TokenFiles, NameATokenBeyondTheVocabulary) {
  const TokenFile narrow(raw<std::uint16_t>({1, 2, 100, 3}), 100);
  EXPECT_EQ(tokens_of(narrow, 0, 2).back(), 2);
  EXPECT_THAT(test::error_of([&] { tokens_of(narrow, 1, 3); }),
              AllOf(HasSubstr("token 2 is 100"), HasSubstr("vocab is 100"), HasSubstr("tokens of 2 bytes")));
  const TokenFile wide(raw<std::uint32_t>({1, 0xFFFFFFFF}), 100000);
  EXPECT_THAT(test::error_of([&] { tokens_of(wide, 0, 2); }), HasSubstr("token 1 is 4294967295"));
}

// A mapped file would end the process with SIGBUS here.
TEST_F(TokenFiles, ThatAreCutShortWhileTheyAreReadAreAnError) {
  const TokenFile file(made(100000, 100), 100);
  EXPECT_EQ(tokens_of(file, 99990, 10).size(), 10u);
  std::filesystem::resize_file(file.path(), 4096);
  EXPECT_THAT(test::error_of([&] { tokens_of(file, 99990, 10); }),
              AllOf(HasSubstr("cut short"), HasSubstr("token 99990"), HasSubstr("had 100000 tokens")));
  EXPECT_THAT(test::error_of([&] { tokens_of(file, 0, 4000); }), HasSubstr("token 2032 cannot"));
}

}  // namespace
}  // namespace harness::data
