#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "base/random.h"
#include "base/text.h"
#include "config_files.h"
#include "support/files.h"

namespace harness::config {
namespace {

using test::complaint;
using test::TemporaryFolder;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Replaces a text that the example must contain.
std::string with(const std::string& from, const std::string& to) {
  std::string text = test::issue_example();
  const auto at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("the example has no " + from);
  return text.replace(at, from.size(), to);
}

struct Broken {
  const char* name;
  std::string text;
  std::string place;  // "line:column: key", without a key for the file as a whole; "": anywhere
  std::string says;   // must contain these words; " … " stands for any text between them
};

void PrintTo(const Broken& broken, std::ostream* out) {
  *out << broken.name;
}

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') + std::string(static_cast<std::size_t>(depth), ']');
}

std::string dashes(int depth) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += "- ";
  return text;
}

std::vector<Broken> broken_configs() {
  return {
      {"UnknownTopKey", with("measure:", "mesure:"), "17:1: mesure", "unknown key … did you mean measure?"},
      {"UnknownWorkload", "workload: colective\nbackend: cpu\nbaseline: {}\n", "1:11: workload",
       "allowed: gpt, collective, gemm, attention; did you mean collective?"},
      {"TwoThatDecideTheSame",
       "backend: cpu\nmodel: gpt3-125m\nbaseline: {global_batch_size: 8, gradient_accumulation: 4}\n",
       "3:12: baseline.global_batch_size", "gradient_accumulation 4 decides it; leave one of the two out"},
      {"AVariableOfAnotherWorkload", "workload: collective\nbackend: cpu\nbaseline: {}\nsweep: {gemm: [{m: 8}]}\n",
       "4:9: sweep.gemm", "workload collective does not honour it; workloads that do: gemm"},
      {"AVariableOfTheModelWithoutOne", "workload: collective\nbackend: cpu\nbaseline: {bucket_size: 1 MiB}\n",
       "3:12: baseline.bucket_size", "workloads that do: gpt … with a `model`"},
      {"SizesOfNoModel", "workload: collective\nbackend: cpu\nbaseline: {}\nsweep: {message_size: from_model}\n",
       "4:23: sweep.message_size", "add a `model`"},
      {"TheWorkloadIsNotSwept", "workload: gemm\nbackend: cpu\nbaseline: {}\nsweep: {workload: [collective]}\n",
       "4:9: sweep.workload", "unknown key"},
      {"FabricWithoutUnit", "workload: collective\nbackend: cpu\nbaseline: {}\nfabric: {rank: 450}\n",
       "4:16: fabric.rank", "which has no unit; expected a bandwidth such as 50 GB/s"},
      {"GemmPart", "workload: gemm\nbackend: cpu\nbaseline: {gemm: {m: 8, transpos: a}}\n",
       "3:25: baseline.gemm.transpos", "did you mean transpose?"},
      {"APartOfAnotherDistribution", with("precision: fp32", "sequences: {distribution: uniform, median: 3}"),
       "5:46: baseline.sequences.median", "median belongs to distribution lognormal, and the distribution is uniform"},
      {"NoLengthsBetween", with("precision: fp32", "sequences: {distribution: uniform, min: 9, max: 3}"),
       "5:14: baseline.sequences", "min 9 is more than max 3"},
      {"NoFileOfLengths", with("precision: fp32", "sequences: {distribution: file, file: no/such.txt}"),
       "5:14: baseline.sequences", "no/such.txt"},
      {"ADistributionThatIsNone", with("precision: fp32", "sequences: {distribution: normal}"),
       "5:29: baseline.sequences.distribution", "allowed: full, lognormal, uniform, file"},
      {"UnknownVariable", with("  micro_batch_size: 1", "  micro_batch_sise: 1"), "7:3: baseline.micro_batch_sise",
       "unknown key; did you mean micro_batch_size?; `harness variables` lists all"},
      {"KeyAtTheWrongLevel", with("output:", "rounds: 4\noutput:"), "19:1: rounds", "did you mean measure.rounds?"},
      {"KeyInTheWrongMap", with("seed: 1", "hidden: 64"), "17:50: measure.hidden", "did you mean model.hidden?"},
      {"TopKeyInAMap", with("[false]", "[false]\n  combine: []"), "16:3: sweep.combine",
       "did you mean combine at the top level?"},
      {"UnknownDeadline", with("start: 60 s", "strat: 60 s"), "18:23: measure.deadlines.strat",
       "allowed: start, step … did you mean start?"},
      {"UnknownLayoutPart", with("{tensor_parallel: 2}", "{tensor_paralel: 2}"),
       "14:13: sweep.layout[0].tensor_paralel", "did you mean tensor_parallel?"},
      {"WordForANumber", with("rounds: 12", "rounds: twelve"), "17:19: measure.rounds",
       "found 'twelve'; expected a whole number"},
      {"ListForAScalar", with("precision: fp32", "precision: [fp32]"), "5:14: baseline.precision", "found a list"},
      {"ScalarForAMap",
       with("{rounds: 12, warmup_steps: 2, steps: 6, seed: 1, smallest_effect: 1 %,\n          deadlines: {start: "
            "60 s, step: 30 s}, time_budget: 10 min}",
            "12"),
       "17:10: measure", "found '12'; expected a map with the keys rounds,"},
      {"ScalarForAList", with("[2, 4]", "2"), "13:21: sweep.micro_batch_size",
       "expected a list of values to try, such as [2]"},
      {"ScalarForALayout", with("layout: {tensor_parallel: 1, pipeline_parallel: 1}", "layout: 2"),
       "8:11: baseline.layout", "expected a map such as {tensor_parallel: 2, pipeline_parallel: 1}"},
      {"MissingValue", with("bucket_size: 1 MiB", "bucket_size:"), "10:3: baseline.bucket_size", "found nothing"},
      {"MissingBackend", with("backend: cpu\n", ""), "1:1: backend", "missing"},
      {"MissingModelKey", with("heads: 4, ", ""), "3:8: model.heads", "missing"},
      {"WrongUnit", with("1 MiB", "1 mb"), "10:16: baseline.bucket_size",
       "found '1 mb' … units: B, … did you mean MB?"},
      {"NegativeTime", with("step: 30 s", "step: -30 s"), "18:42: measure.deadlines.step", "above 0"},
      {"WholeForAShare", with("smallest_effect: 1 %", "smallest_effect: 1"), "17:76: measure.smallest_effect",
       "which is 100 %"},
      {"ZeroRounds", with("rounds: 12", "rounds: 0"), "17:19: measure.rounds", "found 0; allowed: 1 to"},
      {"TooManySteps", with("steps: 6", "steps: 4095"), "17:47: measure.steps", "maximum of 4096 per block"},
      {"UnknownBackend", with("backend: cpu", "backend: cdua"), "2:10: backend", "did you mean cuda?"},
      {"UnknownPreset", with("{layers: 4, hidden: 128, heads: 4, vocab: 2048, sequence: 128}", "gpt3-1.3B"),
       "3:8: model", "did you mean gpt3-1.3b?"},
      {"UnknownValue", with("[halving_doubling]", "[halving]"), "16:25: sweep.allreduce_algorithm[0]",
       "allowed: ring, halving_doubling … did you mean halving_doubling?"},
      {"ModelBeyond64Bits", with("hidden: 128, heads: 4, vocab: 2048", "hidden: 100000000, heads: 4, vocab: 100000000"),
       "3:8: model", "found a model of about 4.9e+17 parameters … lower hidden"},
      {"SequenceBeyond64Bits", with("sequence: 128", "sequence: 100000000"), "3:8: model",
       "activations per sequence … lower hidden"},
      {"HeadsThatDoNotDivide", with("heads: 4", "heads: 5"), "3:40: model.heads", "hidden 128 … 4 or 8"},
      {"BackendDoesNotHonour", with("[halving_doubling]", "[halving_doubling]\n  nccl_algo: [Ring]"),
       "17:3: sweep.nccl_algo", "backend cpu does not honour it; backends that do: cuda"},
      {"DuplicateKey", with("  overlap_grad_reduce: true", "  micro_batch_size: 2\n  overlap_grad_reduce: true"),
       "9:3: baseline.micro_batch_size", "given twice, first on line 7"},
      {"DuplicateValue", with("[2, 4]", "[2, 4, 2]"), "13:28: sweep.micro_batch_size[2]", "twice"},
      {"DuplicateInAnotherSpelling", with("[false]", "[false]\n  bucket_size: [2 MiB, 2048 KiB]"),
       "16:24: sweep.bucket_size[1]", "2 MiB is in the list twice"},
      {"CombinationOfOne", with("measure:", "combine: [{micro_batch_size: 2}]\nmeasure:"), "17:11: combine[0]",
       "two variables or more"},
      {"CombinationTwice",
       with("measure:",
            "combine: [{micro_batch_size: 2, overlap_grad_reduce: false}, {overlap_grad_reduce: false, "
            "micro_batch_size: 2}]\nmeasure:"),
       "17:62: combine[1]", "micro_batch_size=2 + overlap_grad_reduce=false is in the list twice"},
      {"CombinationWithTheBaselinesValue",
       with("measure:", "combine: [{micro_batch_size: 1, overlap_grad_reduce: false}]\nmeasure:"),
       "17:30: combine[0].micro_batch_size", "the baseline's value; leave it out"},
      {"CombinationWithASize",
       "workload: collective\nbackend: cpu\nbaseline: {collective: all_reduce}\ncombine: [{in_place: false, "
       "message_size: 1 MiB}]\n",
       "4:43: combine[0].message_size", "move this size to sweep.message_size"},
      {"NoCombinations", with("measure:", "combine: []\nmeasure:"), "17:10: combine",
       "found an empty list; expected a list of maps"},
      {"CombinationThatIsNoList", with("measure:", "combine: {micro_batch_size: 2}\nmeasure:"), "17:10: combine",
       "expected a list of maps"},
      {"EmptyList", with("[2, 4]", "[]"), "13:21: sweep.micro_batch_size", "empty list"},
      {"EmptySweep", test::issue_example().substr(0, test::issue_example().find("sweep:")) + "sweep: {}\n",
       "12:8: sweep", "empty map"},
      {"OpenPlaceholder", with("{date}", "{date"), "19:9: output", "may stand in braces"},
      {"NestedPlaceholder", with("{date}", "{da{date}te}"), "19:9: output", "may stand in braces"},
      {"UnknownPlaceholder", with("{name}-{date}", "{name}-{dat}"), "19:9: output",
       "only {name} and {date} may stand in braces"},
      {"NameWithASlash", with("name: laptop", "name: a/b"), "1:7: name", "letters, digits"},
      {"UnknownHardware", with("baseline:", "hardware: h100\nbaseline:"), "4:11: hardware", "found 'h100'"},
      {"NegativePeak", with("baseline:", "peak_flops: -1\nbaseline:"), "4:13: peak_flops", "above 0"},
      {"Empty", "", "1:1", "nothing but blanks"},
      {"NotAMap", "- a\n- b\n", "1:1", "found a list; expected a map with the keys name, workload, backend,"},
      {"TwoDocuments", test::issue_example() + "---\nname: b\n", "20:1", "second document"},
      {"ASecondDocumentOfNothing", test::issue_example() + "---\n", "20:1", "second document"},
      {"ACommaBehindTheMap", "{name: a},\n", "1:10", "second document"},
      {"ADocumentAfterTheEnd", test::issue_example() + "...\nname: b\n", "21:1", "second document"},
      {"NotClosed", with("time_budget: 10 min}", "time_budget: 10 min"), "", "not YAML"},
      {"QuoteNotClosed", with("name: laptop", "name: 'laptop"), "1:7", "quote that is not closed"},
      {"AfterOtherLetters", "{output: \"µ.h5\", rounds: 4, backend: cpu, model: gpt3-125m, baseline: {}}",
       "1:18: rounds", "did you mean measure.rounds?"},
      {"TabIndentation", with("  global_batch_size", "\tglobal_batch_size"), "6:1", "tab in the indentation"},
      {"NulByte", with("laptop", std::string("lap\0top", 7)), "1:10", "control character 0x00"},
      {"NotUtf8", with("laptop", "l\xe4ptop"), "1:8", "byte 0xe4, which is not UTF-8"},
      {"Utf16", std::string("\xff\xfen\0a\0", 6), "1:1", "not UTF-8"},
      {"AResult", std::string("\x89HDF\r\n\x1a\n", 8), "1:1", "found an HDF5 file"},
      {"Anchor", with("{tensor_parallel: 1, p", "&a {tensor_parallel: 1, p"), "8:11", "anchors are not supported"},
      {"AliasBomb",
       "a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, "
       "*b]\n",
       "1:4", "anchors are not supported"},
      {"AnchorOfAScalar", "a: [x, &b y]\n", "1:8", "anchors are not supported"},
      {"AnchorOfNothing", "a: &b\nc: 1\n", "1:4", "anchors are not supported"},
      {"Alias", "a: *b\n", "", ""},
      {"KeyThatIsADirective", test::issue_example() + "%measure: {rounds: 7}", "20:1", "YAML directive … remove"},
      {"VersionOfYaml", "%YAML 1.2\n---\n" + test::issue_example(), "1:1", "YAML directive"},
      {"DirectiveAfterTheEnd", test::issue_example() + "...\n%rounds\n", "21:1", "YAML directive"},
      {"Tag", with("name: laptop", "name: !!binary bGFwdG9w"), "1:7", "found the tag"},
      {"MergeKey", with("  precision: fp32", "  <<: {precision: fp32}"), "5:3: baseline.<<",
       "merge keys are not supported"},
      {"MapAsKey", with("name: laptop", "{a: b}: laptop"), "1:1", "found a map where a key should be"},
      {"DeepNesting", "model: " + nested(40) + "\n", "1:23", "nesting deeper than 16"},
      {"VeryDeepNesting", "model: " + nested(400000) + "\n", "", "nesting deeper than 16"},
      {"VeryDeepDashes", "model:\n" + dashes(400000) + "a\n", "", "nesting deeper than 16"},
      {"TooManyValues",
       with(
           "[2, 4]", "[" +
                         [] {
                           std::string many;
                           for (int i = 0; i < 6000; ++i) many += "2, ";
                           return many;
                         }() +
                         "2]"),
       "", "more than 5000 values"},
      {"TooLarge", "# " + std::string(1 << 20, 'x') + "\n", "1:1", "longer than 1 MiB"},
      {"TerminalEscape", with("precision: fp32", "precision: \"\\e[31mred\""), "5:14: baseline.precision",
       "found '\\x1b[31mred'"},
  };
}

class BrokenConfig : public testing::TestWithParam<Broken> {};

TEST_P(BrokenConfig, GetsOneLineThatSaysWhere) {
  const Broken& b = GetParam();
  const TemporaryFolder folder;
  const std::string path = folder.write("broken.yaml", b.text);
  const std::string message = test::complaint(path);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
  ASSERT_TRUE(message.starts_with(path + ":")) << message;
  const std::string rest = message.substr(path.size() + 1);
  if (!b.place.empty()) {
    EXPECT_TRUE(rest.starts_with(b.place + ": ")) << message;
  }
  unsigned line = 0, column = 0;
  EXPECT_EQ(std::sscanf(rest.c_str(), "%u:%u: ", &line, &column), 2) << message;
  EXPECT_GE(line, 1u);
  EXPECT_GE(column, 1u);
  for (const std::string& words : split_text(b.says, " … ")) EXPECT_THAT(rest, HasSubstr(words)) << message;
  for (const char c : message) EXPECT_GE(static_cast<unsigned char>(c), 0x20u) << message;
  if (testing::Test::HasFailure()) return;
  RecordProperty("message", message);
}

INSTANTIATE_TEST_SUITE_P(Kinds, BrokenConfig, testing::ValuesIn(broken_configs()),
                         [](const auto& instance) { return std::string(instance.param.name); });

// Returns place and key of every line of a complaint: "1:7: name" …
std::vector<std::string> places_of(const std::string& message, const std::string& path) {
  std::vector<std::string> starts;
  for (const std::string_view line : split(message, '\n')) {
    const std::size_t from = line.starts_with(path) ? path.size() + 1 : 0;
    const std::size_t key = line.find(": ", from);
    starts.emplace_back(line.substr(from, line.find(": ", key + 1) - from));
  }
  return starts;
}

const std::string many_mistakes = R"(name: a b
backend: cpu
modle: gpt3-125m
baseline:
  micro_batch_size: x
  bucket_size: 1 mib
sweep:
  micro_batch_size: [1, 2, 2]
  layout: [{tensor_parallel: two, pipeline_parallel: three}]
measure: {rounds: -1, deadlines: {start: 0}}
)";

TEST(BrokenConfigs, AllProblemsAtOnceInTheOrderOfTheFile) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.yaml", many_mistakes);
  const std::string message = test::complaint(path, {"measure.steps=none"});
  std::vector<std::string> expected{"1:7: name",
                                    "3:1: modle",
                                    "5:21: baseline.micro_batch_size",
                                    "6:16: baseline.bucket_size",
                                    "8:28: sweep.micro_batch_size[2]",
                                    "9:30: sweep.layout[0].tensor_parallel",
                                    "9:54: sweep.layout[0].pipeline_parallel",
                                    "10:19: measure.rounds",
                                    "10:42: measure.deadlines.start",
                                    "--set measure.steps=none: measure.steps"};
  EXPECT_EQ(places_of(message, path), expected) << message;
  // An unknown backend hides no other mistake, and no variable is reported as unsupported by it.
  std::string text = many_mistakes;
  text.replace(text.find("cpu"), 3, "cpuu");
  const std::string other = folder.write("b.yaml", text + "combine: [{threads: 2, nccl_algo: Ring}]\n");
  expected.insert(expected.begin() + 1, "2:10: backend");
  const std::string with_backend = test::complaint(other, {"measure.steps=none"});
  EXPECT_EQ(places_of(with_backend, other), expected) << with_backend;
}

// Without the key, the case is not what was meant: nothing more is said about it.
TEST(BrokenConfigs, AMisspeltKeyIsTheOneProblemOfItsCase) {
  const std::string rest = "backend: cpu\nmodel: gpt3-125m\nbaseline: {}\n";
  for (const char* section : {"combine: [{micro_batch_sise: 2, threads: 2}]\n",
                              "ladder: [{batches: {micro_batch_sise: 2}}, {threads: {threads: 2}}]\n"}) {
    const std::string message = test::complaint_about(rest + section);
    EXPECT_THAT(message, HasSubstr("micro_batch_sise: unknown key; did you mean micro_batch_size?"));
    EXPECT_EQ(std::ranges::count(message, '\n'), 0) << message;
  }
}

// What a key of another name was meant to say is not missing as well.
TEST(BrokenConfigs, AMisnamedKeyIsNotMissing) {
  const std::string message = test::complaint_about(
      "bakend: cpu\nbaseline: {}\nmodel: {num_layers: 2, hiden: 64, num_attention_heads: 2, vocab: 256}\n");
  EXPECT_EQ(std::ranges::count(message, '\n'), 4) << message;
  EXPECT_THAT(message, AllOf(HasSubstr("model.sequence: missing"), HasSubstr("model.num_layers: unknown key")));
}

TEST(BrokenConfigs, AnUnknownWorkloadHidesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.write("a.yaml",
                                        "workload: colective\nbackend: cpu\nbaseline: {message_size: 4 Mb}\n"
                                        "sweep: {threads: [two]}\n");
  const std::string message = test::complaint(path);
  EXPECT_EQ(places_of(message, path),
            (std::vector<std::string>{"1:11: workload", "3:26: baseline.message_size", "4:19: sweep.threads[0]"}))
      << message;
}

// ---- Files that cannot be read at all, or hardly.

TEST(BrokenFile, NotThere) {
  const TemporaryFolder folder;
  folder.write("laptop.yaml", test::issue_example());
  const std::string message = test::complaint(folder / "latpop.yaml");
  EXPECT_EQ(message, folder / "latpop.yaml" + ":1:1: cannot be read: No such file or directory; did you mean " +
                         folder / "laptop.yaml" + "?");
}

// Random mutations of the example: a few pieces cut, doubled or replaced. The text is accepted, or refused with an
// Error whose every line has a place. Nothing else is thrown and nothing crashes.
TEST(Mutations, OfTheExampleAreReadOrRefusedWithAPlace) {
  const std::array<std::string, 28> pieces{"{",        "}",    "[",    "]",       ":", ": ",    "\n",
                                           "\n  ",     "- ",   "'",    "\"",      "#", "&a ",   "*a",
                                           "|",        ">\n",  "!!x ", "? key\n", "%", "---\n", "\t",
                                           "\xc3\xa4", "\xff", ",",    "\r",      "~", "<<: ",  "99999999999999999999"};
  const test::TemporaryFolder folder;
  const std::string path = folder / "m.yaml";
  int refused = 0, read = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    std::string text = test::issue_example();
    const int edits = 1 + static_cast<int>(seed % 3);
    for (int i = 0; i < edits; ++i) {
      const auto draw = philox(seed, static_cast<std::uint64_t>(i));
      const std::size_t at = draw[0] % text.size(), length = draw[1] % 8;
      switch (draw[2] % 4) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, pieces[draw[3] % pieces.size()]);
          break;
        case 2:
          text.replace(at, length, pieces[draw[3] % pieces.size()]);
          break;
        default:
          text.insert(at, text.substr(draw[3] % text.size(), length * 8));
      }
    }
    folder.write("m.yaml", text);
    const std::string message = test::complaint(path);
    (message.empty() ? read : refused)++;
    for (const std::string& line : split_text(message, "\n"))
      EXPECT_TRUE(line.starts_with(path + ":") || line.starts_with("…")) << line << "\nof\n" << text;
  }
  EXPECT_GT(refused, 300);
  EXPECT_GT(read, 5);
}

}  // namespace
}  // namespace harness::config
