#include "cli/arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

namespace harness::cli {
namespace {

struct NcclTestsOption {
  std::string_view brief, name;
  std::string_view here;     // {}: the value
  std::string_view example;  // of a value; "": it takes none
};
constexpr std::array<NcclTestsOption, 9> options{{
    {"-g", "--ngpus", "a rank has one GPU: mpirun -np N says how many", ""},
    {"-t", "--nthreads", "a rank is a process with one GPU: mpirun -np N says how many", ""},
    {"-n", "--iters", "here it is --set baseline.repetitions={}, operations of a step", "20"},
    {"-w", "--warmup_iters", "here it is --set measure.warmup_steps={}", "5"},
    {"-c", "--check", "every block checks its results; nothing turns that off", ""},
    {"-i", "--stepbytes", "sizes grow by a factor: -f 2", ""},
    {"-d", "--datatype", "here it is --set baseline.precision={}", "bfloat16"},
    {"-m", "--agg_iters", "here it is --set baseline.repetitions={}, operations of a step", "20"},
    {"-z", "--blocking", "operations of a step run one after the other", ""},
}};

// A type of nccl-tests as a precision is called here.
std::string_view precision_of(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> types{
      {{"float", "fp32"}, {"half", "fp16"}, {"bfloat16", "bf16"}}};
  const auto row = std::ranges::find(types, type, &std::pair<std::string_view, std::string_view>::first);
  return row == types.end() ? type : row->second;
}

}  // namespace

std::string size_of_nccl_tests(const std::string& text) {
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == std::string::npos) return text + " B";
  const auto unit = static_cast<char>(std::toupper(static_cast<unsigned char>(text.back())));
  if (digits > 0 && digits + 1 == text.size() && std::string_view("KMGT").find(unit) != std::string_view::npos)
    return fmt::format("{} {}iB", text.substr(0, digits), unit);
  return text;
}

std::string meaning_of_nccl_tests(std::string_view word, std::string_view next) {
  const std::size_t equals = word.find('=');
  const std::string_view option = word.substr(0, equals);
  for (const auto& [brief, name, here, example] : options) {
    const bool attached =
        option.starts_with(brief) && option.find_first_not_of("0123456789", brief.size()) == std::string_view::npos;
    if (!attached && option != name) continue;
    std::string_view value = equals == std::string_view::npos ? next : word.substr(equals + 1);
    if (attached && option.size() > brief.size()) value = option.substr(brief.size());
    if (value.empty() || value.starts_with('-')) value = example;
    if (name == "--datatype") value = precision_of(value);
    return fmt::format("{}: {}", attached ? brief : name, fmt::format(fmt::runtime(here), value));
  }
  return "";
}

}  // namespace harness::cli
