#pragma once

#include <string>
#include <string_view>

namespace harness::cli {

/// For people who know nccl-tests and type as they do there.

/// A size as it takes one (8, 64K, 8m, 8G), as a configuration has it: "64 KiB". Anything else stays as it is.
std::string size_of_nccl_tests(const std::string& text);

/// "-n: here it is --set baseline.repetitions=50, …" for an option of nccl-tests ("-n", "-n50", "--iters=50") that is
/// another one or none here; "" for any other word. `next`: the word after it, which may be its value.
std::string meaning_of_nccl_tests(std::string_view word, std::string_view next);

}  // namespace harness::cli
