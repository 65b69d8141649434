#include "base/units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/text.h"
#include "support/errors.h"

namespace harness {
namespace {

using ::testing::HasSubstr;

template <class Parse>
std::string message_of(Parse parse, std::string_view text) {
  return test::error_of([&] { (void)parse(text); });
}

TEST(Units, BytesAsPeopleWriteThem) {
  EXPECT_EQ(parse_bytes("1 MiB"), 1 << 20);
  EXPECT_EQ(parse_bytes("25MB"), 25'000'000);
  EXPECT_EQ(parse_bytes("4096"), 4096);
  EXPECT_EQ(parse_bytes("1.5 GiB"), 1610612736);
  EXPECT_EQ(parse_bytes("0.1 GB"), 100'000'000);
  EXPECT_EQ(parse_bytes("  7 kB "), 7000);
  EXPECT_EQ(parse_bytes("9007199254740993"), 9007199254740993);  // not a double
  EXPECT_EQ(parse_bytes("1e3 B"), 1000);
}

TEST(Units, WrongBytesSayWhy) {
  EXPECT_THAT(message_of(parse_bytes, "25 Mb"), HasSubstr("unknown unit 'Mb'; units: B, MB, GB, "));
  EXPECT_THAT(message_of(parse_bytes, "25 mb"), HasSubstr("did you mean MB?"));
  EXPECT_THAT(message_of(parse_bytes, "4 g"), HasSubstr("did you mean GiB?"));
  EXPECT_THAT(message_of(parse_bytes, "4 x"), ::testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(message_of(parse_bytes, "4M"), HasSubstr("did you mean MiB?"));
  EXPECT_THAT(message_of(parse_bytes, "25 mib"), HasSubstr("did you mean MiB?"));
  EXPECT_THAT(message_of(parse_bytes, "0.3 B"), HasSubstr("whole number of bytes"));
  EXPECT_THAT(message_of(parse_bytes, "9000000 TiB"), HasSubstr("too large"));
  EXPECT_THAT(message_of(parse_bytes, "1e30 B"), HasSubstr("too large"));
  EXPECT_THAT(message_of(parse_bytes, "-1 MiB"), HasSubstr("not negative"));
  EXPECT_THAT(message_of(parse_bytes, "-1.5 MiB"), HasSubstr("not negative"));
  for (const char* bad : {"", "MiB", "nan", "inf MiB", "0x10", "1 MiB 2", "1,5 MiB"}) {
    EXPECT_THAT(message_of(parse_bytes, bad), HasSubstr("found '")) << bad;
  }
}

TEST(Units, BytesRoundTripExactly) {
  for (const std::int64_t bytes :
       {std::int64_t{0}, std::int64_t{1}, std::int64_t{1536}, std::int64_t{1} << 20, std::int64_t{25} << 20,
        std::int64_t{25'000'000}, (std::int64_t{3} << 40) + 1, std::numeric_limits<std::int64_t>::max()}) {
    EXPECT_EQ(parse_bytes(print_bytes_exact(bytes)), bytes) << print_bytes_exact(bytes);
  }
  EXPECT_EQ(print_bytes_exact(1 << 20), "1 MiB");
  EXPECT_EQ(print_bytes_exact(1536), "1536 B");
}

// Networks are sold in bits, memories in bytes. A wrong unit is off by a factor of eight, so a hint names both.
TEST(Units, BandwidthsOfBitsAndOfBytes) {
  for (const char* same : {"400 Gb/s", "400 Gbit/s", "400Gbps", "0.4 Tb/s", "50 GB/s", "400000 Mb/s", "50e9 B/s"})
    EXPECT_DOUBLE_EQ(parse_bandwidth(same), 50e9) << same;
  EXPECT_DOUBLE_EQ(parse_bandwidth("1 GiB/s"), 1073741824.0);
  const std::vector<std::pair<std::string, double>> prefixes{{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
  for (const auto& [prefix, factor] : prefixes) {
    for (const char* bits : {"b/s", "bit/s", "bps"})
      EXPECT_DOUBLE_EQ(8 * parse_bandwidth("3 " + prefix + bits), parse_bandwidth("3 " + prefix + "B/s")) << prefix;
    EXPECT_DOUBLE_EQ(parse_bandwidth("1 " + prefix + "B/s"), factor);
  }
  EXPECT_THAT(message_of(parse_bandwidth, "400 gb/s"), HasSubstr("did you mean GB/s or Gb/s?"));
  EXPECT_THAT(message_of(parse_bandwidth, "50 GBytes/s"), ::testing::Not(HasSubstr("did you mean")));
  EXPECT_THAT(message_of(parse_bandwidth, "400"), HasSubstr("no unit"));
  EXPECT_THAT(message_of(parse_bandwidth, "400 GB"), HasSubstr("unknown unit 'GB'"));
  EXPECT_THAT(message_of(parse_bandwidth, "0 GB/s"), HasSubstr("above 0"));
  EXPECT_THAT(message_of(parse_bytes, "400 Gbit"), ::testing::Not(HasSubstr("did you mean")));
}

TEST(Units, Seconds) {
  EXPECT_DOUBLE_EQ(parse_seconds("30 s"), 30);
  EXPECT_DOUBLE_EQ(parse_seconds("500ms"), 0.5);
  EXPECT_DOUBLE_EQ(parse_seconds("10 min"), 600);
  EXPECT_DOUBLE_EQ(parse_seconds("2 h"), 7200);
  EXPECT_DOUBLE_EQ(parse_seconds("12"), 12);
  EXPECT_THAT(message_of(parse_seconds, "10 mins"), HasSubstr("did you mean min?"));
  EXPECT_THAT(message_of(parse_seconds, "10 MiB"), HasSubstr("unknown unit 'MiB'"));
  // The limit keeps sums of times from overflowing.
  EXPECT_DOUBLE_EQ(parse_seconds("1e6 h"), 3.6e9);
  for (const char* text : {"1e308 h", "1e308 s", "-1e300 s", "4e9 s"})
    EXPECT_THAT(message_of(parse_seconds, text), HasSubstr("a time is at most 1e+06 h")) << text;
}

TEST(Units, SharesAndRates) {
  EXPECT_EQ(parse_share("1 %"), 0.01);
  EXPECT_EQ(parse_share("0.01"), 0.01);
  EXPECT_EQ(parse_share("2.5%"), 0.025);
  EXPECT_DOUBLE_EQ(parse_flops("989.4 TFLOP/s"), 989.4e12);
  EXPECT_DOUBLE_EQ(parse_flops("1e12"), 1e12);
  EXPECT_DOUBLE_EQ(parse_flops("1EFLOP/s"), 1e18);
  EXPECT_THAT(message_of(parse_flops, "989 Tflops/s"), HasSubstr("did you mean TFLOP/s?"));
}

TEST(Units, WholeNumbersAndWords) {
  EXPECT_EQ(parse_integer(" -12 "), -12);
  EXPECT_EQ(parse_integer("9223372036854775807"), std::numeric_limits<std::int64_t>::max());
  for (const char* bad : {"", "4.0", "4x", "0x4", "1e3", "99999999999999999999", "four"}) {
    EXPECT_NE(message_of(parse_integer, bad), "") << bad;
  }
  EXPECT_TRUE(parse_bool("true"));
  EXPECT_FALSE(parse_bool("False"));
  EXPECT_THAT(message_of(parse_bool, "ture"), HasSubstr("did you mean true?"));
  EXPECT_NE(message_of(parse_bool, "1"), "");
  EXPECT_DOUBLE_EQ(parse_real("1e-3"), 1e-3);
  EXPECT_NE(message_of(parse_real, "nan"), "");
}

TEST(Units, PrintedExactlyReadBackAsTheSameValue) {
  EXPECT_EQ(print_bandwidth_exact(100e6), "100 MB/s");
  EXPECT_EQ(print_bandwidth_exact(1500), "1.5 kB/s");
  EXPECT_EQ(print_bandwidth_exact(12), "12 B/s");
  EXPECT_EQ(print_seconds_exact(parse_seconds("50 us")), "50 us");
  EXPECT_EQ(print_seconds_exact(1), "1 s");
  EXPECT_EQ(print_seconds_exact(0), "0 s");
  EXPECT_EQ(print_seconds_exact(parse_seconds("-0 s")), "0 s");
  EXPECT_FALSE(std::signbit(parse_share("-0 %")) || std::signbit(parse_real("-0.0")));
  for (const double value : {1.0 / 3, 1e-30, 3.141592653589793e9, 7e22, 0.1, 2e-7}) {
    EXPECT_EQ(parse_bandwidth(print_bandwidth_exact(value)), value);
    if (value > 3.6e9) continue;  // beyond the largest time
    EXPECT_EQ(parse_seconds(print_seconds_exact(value)), value);
  }
}

TEST(Units, ShownToThreeDigits) {
  EXPECT_EQ(show_bytes(512), "512 B");
  EXPECT_EQ(show_bytes(1.25 * 1073741824), "1.25 GiB");
  EXPECT_EQ(show_bytes(1048575), "1.00 MiB");  // not "1024 KiB"
  EXPECT_EQ(show_seconds(0.0341), "34.1 ms");
  EXPECT_EQ(show_seconds(0.99999), "1.00 s");
  EXPECT_EQ(show_seconds(12e-6), "12 us");
  EXPECT_EQ(show_seconds(600), "10 min");
  EXPECT_EQ(show_seconds(0), "0 s");
  EXPECT_EQ(show_flops(1.234e12), "1.23 TFLOP/s");
  EXPECT_EQ(show_flop(3.639e8), "364 MFLOP");
  EXPECT_EQ(show_bytes(std::numeric_limits<double>::quiet_NaN()), "-");
}

}  // namespace
}  // namespace harness
