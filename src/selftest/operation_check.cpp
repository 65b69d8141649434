#include "selftest/checks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "backend/bound.h"
#include "base/floats.h"
#include "base/text.h"
#include "selftest/operation_cases.h"

namespace harness::selftest {
namespace {

constexpr double connect_timeout_s = 60;

program::View whole(const program::Program& program, std::size_t buffer) {
  return {static_cast<program::BufferId>(buffer), 0, program.buffers[buffer].count};
}

// The elements of each buffer that the operation may write.
std::vector<std::vector<char>> writable(const OperationCase& test_case) {
  std::vector<std::vector<char>> marks;
  for (const program::Buffer& b : test_case.program.buffers) marks.emplace_back(b.count, char{0});
  for (const program::Operation& op : test_case.program.step) {
    program::visit_accesses(op.action, [&](program::Access access, const program::View& view) {
      if (access == program::Access::read) return;
      std::fill_n(marks[view.buffer].begin() + view.offset, view.count, char{1});
    });
  }
  return marks;
}

template <class T>
T load(const std::vector<std::byte>& bytes, std::size_t i) {
  T value;
  std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
  return value;
}

double number(program::DType type, const std::vector<std::byte>& bytes, std::size_t i) {
  if (type == program::DType::f32) return static_cast<double>(load<float>(bytes, i));
  if (type == program::DType::bf16) return static_cast<double>(to_float(load<bf16>(bytes, i)));
  if (program::is_fp8(type))
    return static_cast<double>(fp8_to_float(backend::fp8_format(type), load<std::uint8_t>(bytes, i)));
  if (type == program::DType::e8m0) return load<std::uint8_t>(bytes, i);
  if (type == program::DType::f16) return static_cast<double>(to_float(load<f16>(bytes, i)));
  return load<std::int32_t>(bytes, i);
}

bool is_poison(program::DType type, const std::vector<std::byte>& bytes, std::size_t i) {
  if (program::size_of(type) == 1) return load<std::uint8_t>(bytes, i) == poison_byte;
  return program::size_of(type) == 2 ? load<std::uint16_t>(bytes, i) == poison_half
                                     : load<std::uint32_t>(bytes, i) == poison_f32;
}

// Largest value and sum of squares.
struct Magnitude {
  double most = 0, squares = 0;
  void add(double x) {
    most = std::max(most, std::abs(x));
    squares += x * x;
  }
  void add(const Magnitude& other) {
    most = std::max(most, other.most);
    squares += other.squares;
  }
};

// Findings in a part of a buffer.
struct Findings {
  std::string failure;  // the first
  std::int64_t written = 0, untouched_by_oracle = 0;
  Magnitude value, difference, change;
  void add(const Findings& later) {
    if (failure.empty()) failure = later.failure;
    written += later.written;
    untouched_by_oracle += later.untouched_by_oracle;
    value.add(later.value);
    difference.add(later.difference);
    change.add(later.change);
  }
};

// Compares one buffer of a case.
struct BufferComparison {
  const program::Buffer& b;
  const program::View& view;
  const std::vector<char>& writable;
  const std::vector<std::byte>&before, &subject, &oracle;

  ResultError run(int threads) const {
    const auto count = static_cast<std::int64_t>(writable.size());
    std::vector<Findings> parts(chunks_of(count));
    for_each_chunk(count, threads, [&](std::int64_t chunk, std::int64_t first, std::int64_t last) {
      Findings& part = parts[chunk];
      for (std::int64_t i = first; i < last && part.failure.empty(); ++i) element(i, part);
    });
    Findings all;
    for (const Findings& part : parts) all.add(part);
    if (!all.failure.empty()) return {0, all.failure};
    if (all.written > 0 && all.untouched_by_oracle == all.written) {
      return {0, "the oracle wrote nothing to " + b.name};
    }
    if (all.difference.squares == 0) return {0, ""};
    // If a value is updated by adding to it, the change is what counts: half a learning rate is not "0.1 % off".
    const bool f32 = b.type == program::DType::f32;
    const double most = f32 ? std::min(all.value.most, all.change.most) : all.value.most;
    const double squares = f32 ? std::min(all.value.squares, all.change.squares) : all.value.squares;
    return {std::max(all.difference.most / std::max(most, 1e-30),
                     std::sqrt(all.difference.squares / std::max(squares, 1e-60))),
            ""};
  }

  bool same_bytes(std::size_t i) const {
    const std::size_t size = program::size_of(b.type);
    return std::memcmp(before.data() + i * size, subject.data() + i * size, size) == 0;
  }

  void element(std::size_t i, Findings& f) const {
    const std::int64_t at = static_cast<std::int64_t>(i) - view.offset;  // relative to the view
    if (writable[i] == 0) {
      if (!same_bytes(i)) {
        const bool inside = at >= 0 && at < view.count;
        f.failure = inside ? fmt::format("it changed element {} of {}, which it may only read", at, b.name)
                           : fmt::format("it wrote element {} of {}, which has {}", at, b.name, view.count);
      }
      return;
    }
    ++f.written;
    if (is_poison(b.type, before, i) && is_poison(b.type, oracle, i)) {
      ++f.untouched_by_oracle;  // a gap between the rows of a strided view
      if (!same_bytes(i))
        f.failure = fmt::format("it wrote element {} of {}, between the rows of its view", at, b.name);
      return;
    }
    const double theirs = number(b.type, oracle, i), ours = number(b.type, subject, i);
    if (is_poison(b.type, subject, i)) {
      f.failure = fmt::format("it left element {} of {} as it was: poison", at, b.name);
    } else if (!std::isfinite(theirs)) {
      f.failure = fmt::format("the oracle's element {} of {} is {}", at, b.name, theirs);
    } else if (!std::isfinite(ours)) {
      f.failure = fmt::format("element {} of {} is {} and should be {:.6g}", at, b.name, ours, theirs);
    } else if (program::row_of(b.type).mantissa_bits == 0 && ours != theirs) {
      f.failure = fmt::format("element {} of {} is {} and should be {}", at, b.name, ours, theirs);
    } else {
      f.value.add(theirs);
      f.difference.add(ours - theirs);
      const double old = number(b.type, before, i);
      f.change.add(std::isfinite(old) ? theirs - old : theirs);
    }
  }
};

ResultError check_case(const OperationCase& test_case, const backend::Backend& subject, const backend::Backend& oracle,
                       const OperationCheckOptions& options, std::set<std::string>& warnings) {
  CaseBytes before;
  for (std::size_t b = 0; b < test_case.program.buffers.size(); ++b)
    before.push_back(initial_bytes(test_case, b, options.seed, options.threads));
  if (!test_case.prepare.empty())
    before = results_of(oracle, test_case, test_case.prepare, std::move(before), options.threads);
  const std::vector<program::Operation>& step = test_case.program.step;
  const CaseBytes theirs = results_of(oracle, test_case, step, before, options.threads);
  const CaseBytes ours = results_of(subject, test_case, step, before, options.threads, &warnings);
  return compare(test_case, before, ours, theirs, options.threads);
}

std::string case_name(const OperationCase& c) {
  return c.operation + ": " + c.name;
}
std::string line_name(const OperationCase& c) {
  return fmt::format("operations: {} {}", c.operation, c.precision());
}

// Runs a case and adds its outcome to its line.
void check_into(CheckLine& line, const OperationCase& test_case, const backend::Backend& subject,
                const backend::Backend& oracle, const OperationCheckOptions& options) {
  const std::string name = case_name(test_case);
  ++line.cases;
  std::set<std::string> warnings;
  std::string failure;
  try {
    const ResultError c = check_case(test_case, subject, oracle, options, warnings);
    failure = c.failure;
    if (failure.empty()) judge(line, name, c.error);
  } catch (const std::exception& e) {
    failure = e.what();
  }
  if (!failure.empty()) {
    line.outcome = Outcome::failed;
    line.failures.push_back(fmt::format("{}: {}", name, failure));
  }
  for (const std::string& w : warnings) add_once(line.notes, w);
}

}  // namespace

// Writes the buffers after initialize(), because a backend may rehearse the step on cleared memory there.
CaseBytes results_of(const backend::Backend& on, const OperationCase& test_case,
                     const std::vector<program::Operation>& list, CaseBytes bytes, int threads,
                     std::set<std::string>* warnings) {
  program::Program program = test_case.program;
  program.step = list;
  program = program::lower(program, on.declared());
  backend::ExecutableRequest request;
  request.program = &program;
  request.layout = test_case.layout;
  request.rank = test_case.rank;
  request.settings = test_case.settings;
  request.threads = threads;
  const auto executable = on.create(request);
  static_cast<void>(executable->publish());
  executable->connect({}, connect_timeout_s);
  executable->initialize();
  for (std::size_t b = 0; b < bytes.size(); ++b) executable->write(whole(program, b), bytes[b]);
  static_cast<void>(executable->run(0, 1, program::NoInputs{}));
  for (std::size_t b = 0; b < bytes.size(); ++b) executable->read(whole(program, b), bytes[b]);
  if (warnings != nullptr) {
    for (const std::string& w : executable->warnings()) warnings->insert(w);
  }
  return bytes;
}

ResultError compare(const OperationCase& test_case, const CaseBytes& before, const CaseBytes& subject,
                    const CaseBytes& oracle, int threads) {
  const auto marks = writable(test_case);
  ResultError worst;
  for (std::size_t b = 0; b < marks.size(); ++b) {
    const BufferComparison comparison{
        test_case.program.buffers[b], test_case.buffers[b].view, marks[b], before[b], subject[b], oracle[b]};
    ResultError c = comparison.run(threads);
    if (!c.failure.empty()) return c;
    worst.error = std::max(worst.error, c.error);
  }
  return worst;
}

std::vector<CheckLine> check_operations(const std::vector<OperationCase>& cases, const backend::Backend& subject,
                                        const backend::Backend& oracle, const OperationCheckOptions& options) {
  std::vector<const OperationCase*> chosen;
  std::vector<CheckLine> lines;
  std::map<std::string, int> left;  // remaining cases of each line
  for (const OperationCase& c : cases) {
    const auto is_in_name = [&](const std::string& part) { return case_name(c).find(part) != std::string::npos; };
    const bool selected = options.only.empty() || std::ranges::any_of(options.only, is_in_name);
    if (!selected || (c.large && !options.large)) continue;
    chosen.push_back(&c);
    if (++left[line_name(c)] == 1) lines.push_back({.check = line_name(c), .tolerance = c.tolerance});
  }
  for (const OperationCase* c : chosen) {
    CheckLine& line = *std::ranges::find(lines, line_name(*c), &CheckLine::check);
    options.progress(case_name(*c));
    check_into(line, *c, subject, oracle, options);
    if (--left[line.check] == 0) options.finished(line);
  }
  return lines;
}

}  // namespace harness::selftest
