#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace harness {

// Converts written quantities to SI base units and back. Parsers throw Error with what they found and an example; the
// caller adds where.

/// "1 MiB", "25MB", "4096", "1.5 GiB" -> bytes. KiB, MiB, GiB, TiB are powers of 1024, kB, MB, GB, TB of 1000.
std::int64_t parse_bytes(std::string_view text);
/// "3.35 TB/s", "400 Gbit/s", "400 Gb/s" -> bytes per second; B is a byte and b a bit.
double parse_bandwidth(std::string_view text);
/// "30 s", "500 ms", "10 min", "2 h"; a bare number is seconds. Refuses more than 1e6 h.
double parse_seconds(std::string_view text);
/// "1 %" -> 0.01; "0.01" -> 0.01.
double parse_share(std::string_view text);
/// "989 TFLOP/s", "1e12" -> FLOP/s.
double parse_flops(std::string_view text);
std::int64_t parse_integer(std::string_view text);
double parse_real(std::string_view text);
bool parse_bool(std::string_view text);

/// Exact: "1 MiB", "1536 B", "25 MiB": parses back to the same number.
std::string print_bytes_exact(std::int64_t bytes);
/// Exact, with as many digits as needed: "90 %", "33.333333 %".
std::string print_share_exact(double share);
std::string print_bandwidth_exact(double bytes_per_s);  // "100 MB/s"
std::string print_seconds_exact(double seconds);        // "50 us"
/// Rounded to three digits for reading: "1.25 GiB", "34.1 ms", "364 MFLOP", "1.23 TFLOP/s".
std::string show_bytes(double bytes);
std::string show_seconds(double seconds);
std::string show_flop(double flop);
std::string show_flops(double flops_per_second);
/// To four digits, always in GB/s, so that links can be compared: "46.5 GB/s".
std::string show_bandwidth(double bytes_per_s);

/// The time of day, UTC: "14:32:10"; "?" outside the years 1970 to 9999.
std::string clock_text(double unix_s);

std::string signed_number(double value, int decimals);       // "+12.3"; a rounded zero has no sign
std::string percent(double share, int decimals = 1);         // "12.3 %"
std::string signed_percent(double share, int decimals = 1);  // "+12.3 %"; a rounded zero has no sign

std::string show_money(double amount, const std::string& currency);  // "12,345,678 USD"; with cents below 100
std::string show_tokens(double tokens);                              // "300 billion tokens"
std::string show_duration(double seconds);                           // "51.3 days"

}  // namespace harness
