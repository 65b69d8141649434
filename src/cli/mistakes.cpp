// Mistakes in a command line: said in the words of this program, with the option that was meant.
#include <fmt/format.h>

#include <array>
#include <regex>
#include <sstream>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/arguments.h"

namespace harness::cli {
namespace {

// Words of the library about an option, and ours instead.
constexpr std::array<std::pair<const char*, const char*>, 3> wordings{
    {{"(.*): [0-9]+ required .* missing", "$1 needs a value"},
     {"Could not convert: (.*) = (.*)", "$1: found '$2'; expected a number"},
     {"(.*): At Most 1 required but received ([0-9]+)", "$1 is given $2 times; give it once"}}};

std::string in_our_words(const std::string& text) {
  constexpr std::size_t most = 1000;  // std::regex takes stack by the length of a text
  if (text.size() > most) return text;
  for (const auto& [theirs, ours] : wordings) {
    if (std::smatch found; std::regex_match(text, found, std::regex(theirs))) return found.format(ours);
  }
  return text;
}

// Options of nccl-tests that are others here, or none.
struct Foreign {
  std::string_view brief, name, here;
};
constexpr std::array<Foreign, 9> of_nccl_tests{{
    {"-g", "--ngpus", "a rank has one GPU: mpirun -np N says how many"},
    {"-t", "--nthreads", "a rank is a process with one GPU: mpirun -np N says how many"},
    {"-n", "--iters", "here it is --set baseline.repetitions=20, operations of a step"},
    {"-w", "--warmup_iters", "here it is --set measure.warmup_steps=5"},
    {"-c", "--check", "every block checks its results; nothing turns that off"},
    {"-i", "--stepbytes", "sizes grow by a factor: -f 2"},
    {"-d", "--datatype", "here it is --set baseline.precision=bf16"},
    {"-m", "--agg_iters", "here it is --set baseline.repetitions=20, operations of a step"},
    {"-z", "--blocking", "operations of a step run one after the other"},
}};

// A hint for arguments that a verb does not know; "" if nothing is near.
std::string hint_for_unknown(CLI::App& app) {
  const std::vector<CLI::App*> verbs = app.get_subcommands();
  if (verbs.empty()) return "";
  std::vector<std::string> names;
  for (const CLI::Option* option : verbs.front()->get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  std::string known, near;
  for (const std::string& word : app.remaining(true)) {
    const std::string option = word.substr(0, word.find('='));
    const auto foreign = std::ranges::find_if(
        of_nccl_tests, [&](const Foreign& row) { return option == row.brief || option == row.name; });
    if (foreign != of_nccl_tests.end()) {
      known += fmt::format("; {}: {}", option, foreign->here);
    } else if (word.starts_with("--") && near.empty()) {
      near = did_you_mean(nearest(word, names));
    }
  }
  return known + near;
}

}  // namespace

std::string parse(Parser& parser, const std::vector<std::string>& arguments) {
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());  // CLI11 takes them last first
  try {
    parser.app.parse(reversed);
    return "";
  } catch (const CLI::Success& asked) {
    std::ostringstream help;
    parser.app.exit(asked, help, help);
    return help.str();
  } catch (const CLI::ParseError& wrong) {
    const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&wrong) != nullptr;
    const std::string hint = is_unknown ? hint_for_unknown(parser.app) : "";
    throw Error(escaped(in_our_words(wrong.what()) + hint) + "\nRun with --help for more information.");
  }
}

}  // namespace harness::cli
