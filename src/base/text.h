#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace harness {

/// The candidate nearest to `word` by edit distance, or "" when none is near enough to be what was meant.
std::string nearest(std::string_view word, std::span<const std::string> candidates);

std::string join(std::span<const std::string> parts, std::string_view separator);

/// FNV-1a, 64 bit: names equal things equally on every machine. Not for secrets.
std::uint64_t fnv1a(std::string_view bytes, std::uint64_t seed = 0xcbf29ce484222325ull);

}  // namespace harness
