#include "cli/nccl_tests.h"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <utility>

namespace harness::cli {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 9> options{{
    {"-g", "a rank has one GPU: mpirun -np N says how many"},
    {"-t", "a rank is a process with one GPU: mpirun -np N says how many"},
    {"-n", "here it is --set baseline.repetitions=20, operations of a step"},
    {"-w", "here it is --set measure.warmup_steps=5"},
    {"-c", "every block checks its results; nothing turns that off"},
    {"-i", "sizes grow by a factor: -f 2"},
    {"-d", "here it is --set baseline.precision=bf16"},
    {"-m", "here it is --set baseline.repetitions=20, operations of a step"},
    {"-z", "operations of a step run one after the other"},
}};

}  // namespace

std::string size_of_nccl_tests(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string::npos) return text + " B";
  const auto unit = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
  if (digits > 0 && digits + 1 == text.size() && std::string_view("KMGT").find(unit) != std::string_view::npos)
    return fmt::format("{} {}iB", text.substr(0, digits), unit);
  return text;
}

std::string meaning_of_nccl_tests(std::string_view word) {
  for (const auto& [option, here] : options) {
    const bool is_it =
        word.starts_with(option) && word.find_first_not_of("0123456789", option.size()) == std::string_view::npos;
    if (is_it) return fmt::format("{}: {}", option, here);
  }
  return "";
}

}  // namespace harness::cli
