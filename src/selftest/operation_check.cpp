#include "selftest/operation_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/bf16.h"

namespace harness::selftest {
namespace {

constexpr double connect_timeout_s = 60;

class NoInputs : public program::InputSource {
 public:
  void fill(const std::string&, std::int64_t, std::span<std::byte>) const override {}
};

program::View whole(const program::Program& program, std::size_t buffer) {
  return {static_cast<program::BufferId>(buffer), 0, program.buffers[buffer].count};
}

// Buffers are written after initialize(), which a backend may use to rehearse the step on cleared memory.
void run(const backend::Backend& on, const OperationCase& test_case, const std::vector<program::Operation>& list,
         int threads, CaseBytes& bytes, std::set<std::string>* warnings) {
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
  static_cast<void>(executable->run(0, 1, NoInputs{}));
  for (std::size_t b = 0; b < bytes.size(); ++b) executable->read(whole(program, b), bytes[b]);
  if (warnings != nullptr) {
    for (const std::string& w : executable->warnings()) warnings->insert(w);
  }
}

// Which elements of each buffer the operation may write.
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
  return load<std::int32_t>(bytes, i);
}

bool is_poison(program::DType type, const std::vector<std::byte>& bytes, std::size_t i) {
  return type == program::DType::bf16 ? load<std::uint16_t>(bytes, i) == poison_bf16
                                      : load<std::uint32_t>(bytes, i) == poison_f32;
}

// Largest value and sum of squares.
struct Size {
  double most = 0, squares = 0;
  void add(double x) {
    most = std::max(most, std::abs(x));
    squares += x * x;
  }
};

// One buffer of a case.
class BufferComparison {
 public:
  BufferComparison(const program::Buffer& buffer, const program::View& view, const std::vector<char>& writable,
                   const std::vector<std::byte>& before, const std::vector<std::byte>& subject,
                   const std::vector<std::byte>& oracle)
      : b_(buffer), view_(view), writable_(writable), before_(before), subject_(subject), oracle_(oracle) {}

  ResultError run() {
    for (std::size_t i = 0; i < writable_.size() && failure_.empty(); ++i) element(i);
    if (!failure_.empty()) return {0, failure_};
    if (written_ > 0 && untouched_by_oracle_ == written_) return {0, "the oracle wrote nothing to " + b_.name};
    if (difference_.squares == 0) return {0, ""};
    // Where a value is replaced by a sum with it, what was added counts: half a learning rate is not "0.1 % off".
    const double most = b_.type == program::DType::f32 ? std::min(value_.most, change_.most) : value_.most;
    const double squares = b_.type == program::DType::f32 ? std::min(value_.squares, change_.squares) : value_.squares;
    return {
        std::max(difference_.most / std::max(most, 1e-30), std::sqrt(difference_.squares / std::max(squares, 1e-60))),
        ""};
  }

 private:
  bool same_bytes(std::size_t i) const {
    const std::size_t size = program::size_of(b_.type);
    return std::memcmp(before_.data() + i * size, subject_.data() + i * size, size) == 0;
  }

  void element(std::size_t i) {
    const std::int64_t at = static_cast<std::int64_t>(i) - view_.offset;  // within what the operation may use
    if (writable_[i] == 0) {
      if (!same_bytes(i)) {
        const bool inside = at >= 0 && at < view_.count;
        failure_ = inside ? fmt::format("it changed element {} of {}, which it may only read", at, b_.name)
                          : fmt::format("it wrote element {} of {}, which has {}", at, b_.name, view_.count);
      }
      return;
    }
    ++written_;
    if (is_poison(b_.type, before_, i) && is_poison(b_.type, oracle_, i)) {
      ++untouched_by_oracle_;  // a gap between the rows of a strided view
      if (!same_bytes(i))
        failure_ = fmt::format("it wrote element {} of {}, between the rows of its view", at, b_.name);
      return;
    }
    const double theirs = number(b_.type, oracle_, i), ours = number(b_.type, subject_, i);
    if (is_poison(b_.type, subject_, i)) {
      failure_ = fmt::format("it left element {} of {} as it was: poison", at, b_.name);
    } else if (!std::isfinite(theirs)) {
      failure_ = fmt::format("the oracle's element {} of {} is {}", at, b_.name, theirs);
    } else if (!std::isfinite(ours)) {
      failure_ = fmt::format("element {} of {} is {} and should be {:.6g}", at, b_.name, ours, theirs);
    } else if (b_.type == program::DType::i32 && ours != theirs) {
      failure_ = fmt::format("element {} of {} is {} and should be {}", at, b_.name, ours, theirs);
    } else {
      value_.add(theirs);
      difference_.add(ours - theirs);
      const double old = number(b_.type, before_, i);
      change_.add(std::isfinite(old) ? theirs - old : theirs);
    }
  }

  const program::Buffer& b_;
  const program::View& view_;
  const std::vector<char>& writable_;
  const std::vector<std::byte>&before_, &subject_, &oracle_;
  std::string failure_;
  std::size_t written_ = 0, untouched_by_oracle_ = 0;
  Size value_, difference_, change_;
};

bool selected(const std::string& name, const std::vector<std::string>& only) {
  return only.empty() ||
         std::ranges::any_of(only, [&](const std::string& part) { return name.find(part) != std::string::npos; });
}

ResultError check_case(const OperationCase& test_case, const backend::Backend& subject, const backend::Backend& oracle,
                       const OperationCheckOptions& options, std::set<std::string>& warnings) {
  CaseBytes before;
  for (std::size_t b = 0; b < test_case.program.buffers.size(); ++b)
    before.push_back(initial_bytes(test_case, b, options.seed));
  if (!test_case.prepare.empty()) run(oracle, test_case, test_case.prepare, options.threads, before, nullptr);
  CaseBytes theirs = before, ours = before;
  run(oracle, test_case, test_case.program.step, options.threads, theirs, nullptr);
  run(subject, test_case, test_case.program.step, options.threads, ours, &warnings);
  return compare(test_case, before, ours, theirs);
}

}  // namespace

ResultError compare(const OperationCase& test_case, const CaseBytes& before, const CaseBytes& subject,
                    const CaseBytes& oracle) {
  const auto marks = writable(test_case);
  ResultError worst;
  for (std::size_t b = 0; b < marks.size(); ++b) {
    ResultError c = BufferComparison(test_case.program.buffers[b], test_case.buffers[b].view, marks[b], before[b],
                                     subject[b], oracle[b])
                        .run();
    if (!c.failure.empty()) return c;
    worst.error = std::max(worst.error, c.error);
  }
  return worst;
}

std::vector<CheckLine> check_operations(const std::vector<OperationCase>& cases, const backend::Backend& subject,
                                        const backend::Backend& oracle, const OperationCheckOptions& options) {
  std::vector<CheckLine> lines;
  std::map<std::string, std::size_t> place;
  for (const OperationCase& test_case : cases) {
    const std::string name = test_case.operation + ": " + test_case.name;
    if (!selected(name, options.only) || (test_case.large && !options.large)) continue;
    const std::string check = fmt::format("operations: {} {}", test_case.operation, test_case.precision());
    const auto [it, fresh] = place.emplace(check, lines.size());
    if (fresh) lines.push_back({.check = check, .tolerance = test_case.tolerance, .failures = {}, .notes = {}});
    CheckLine& line = lines[it->second];
    ++line.cases;
    options.progress(name);
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
    for (const std::string& w : warnings) {
      if (std::ranges::find(line.notes, w) == line.notes.end()) line.notes.push_back(w);
    }
  }
  return lines;
}

}  // namespace harness::selftest
