#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/floats.h"
#include "base/text.h"
#include "config/registry.h"
#include "workloads/operations.h"

namespace harness::workloads {
namespace {

constexpr std::int64_t chunk = std::int64_t{1} << 20;  // elements that move between device and host at a time

// Every rank sends different numbers, with a period that no message length shares, so that a missing or misplaced part
// shows.
class CollectiveCheck : public OutputCheck {
 public:
  CollectiveCheck(const Settings& s, const Layout& layout, const Coordinates& at, const Program& program) : s_(s) {
    const std::vector<int> members = collective_group(s).members(layout, at);
    members_ = static_cast<int>(members.size());
    me_ = static_cast<int>(std::ranges::find(members, layout.rank(at)) - members.begin());
    for (const Operation& op : program.step) {
      if (op.label.what != "message") continue;
      const auto [in, out] = program::transferred_by(op.action);
      if (!std::holds_alternative<program::Receive>(op.action)) in_ = in;
      if (!std::holds_alternative<program::Send>(op.action)) out_ = out;
    }
    type_ = program.buffer_of(out_).type;
    part_ = s.message_bytes / program::size_of(type_) / members_;
    if (!grows()) return;
    scale_ = std::exp2(-std::min(120.0, std::ceil(std::log2(members_) * s.repetitions)));
    growth_ = std::pow(members_, s.repetitions - 1);
  }

  void prepare(program::BufferAccess& memory) const override {
    std::vector<std::byte> bytes;
    const auto fill = [&](const View& view, auto&& value) {
      for (std::int64_t at = 0; at < view.count; at += chunk) {
        const std::int64_t n = std::min(chunk, view.count - at);
        bytes.resize(n * program::size_of(type_));
        for (std::int64_t i = 0; i < n; ++i) encode_element(type_, bytes.data(), i, value(at + i));
        memory.write(view.part(at, n), bytes);
      }
    };
    // Overwrites earlier results, so that a result that is not written is found.
    fill(out_, [](std::int64_t) { return -1.0F; });
    fill(in_, [&](std::int64_t e) { return sent(me_, e); });
  }

  void check(program::BufferAccess& memory) const override {
    std::vector<std::byte> bytes;
    for (std::int64_t at = 0; at < out_.count; at += chunk) {
      const std::int64_t n = std::min(chunk, out_.count - at);
      bytes.resize(n * program::size_of(type_));
      memory.read(out_.part(at, n), bytes);
      for (std::int64_t i = 0; i < n; ++i) {
        const double found = decode_element(type_, bytes.data(), i);
        const double due = expected(at + i);
        if (!is_right(found, due)) wrong(at + i, found, due);
      }
    }
  }

 private:
  static constexpr int period = 61;  // a prime

  bool sums() const {
    return s_.collective == config::CollectiveKind::all_reduce ||
           s_.collective == config::CollectiveKind::reduce_scatter;
  }
  // In place, each further all-reduce multiplies the result by the number of members.
  bool grows() const { return s_.collective == config::CollectiveKind::all_reduce && s_.in_place; }

  // The sum over all members. If it grows, it is 0 for a third of the elements, which stay 0 however numbers round.
  int sum(std::int64_t e) const { return static_cast<int>(e % period % 3) + (grows() ? -1 : 2); }

  // What a member adds to element e: small integers of both signs, so that bf16 holds every partial sum exactly,
  // whatever the order in which the library adds. One member (of a reduce-scatter: the owner of the element) gives the
  // sum less 1, the next one 1, and the others cancel in pairs; of an odd number, the next one is in a pair, too.
  int addend(int member, std::int64_t e) const {
    const std::int64_t first = s_.collective == config::CollectiveKind::reduce_scatter ? e / part_ : e;
    const auto role = static_cast<int>((member + members_ - first % members_) % members_);
    if (role == 0) return sum(e) - 1;
    const int of_pairs = role - (members_ % 2 == 0 ? 2 : 1), carried = role == 1 ? 1 : 0;
    if (of_pairs < 0) return carried;
    const auto x = static_cast<int>((e + 17 * std::int64_t{of_pairs / 2}) % period);
    const int size = x == period - 1 ? 1 : 1 + x / 2 % 4;  // the sum over a period is 1
    return carried + (x % 2 == of_pairs % 2 ? size : -size);
  }
  // Element e of what a member sends.
  float sent(int member, std::int64_t e) const {
    if (sums()) return static_cast<float>(scale_ * addend(member, e));
    return static_cast<float>(1 + (e + 17 * std::int64_t{member}) % 127);
  }

  double expected(std::int64_t e) const {
    switch (s_.collective) {
      case config::CollectiveKind::all_reduce:
        return sum(e) * scale_ * growth_;
      case config::CollectiveKind::reduce_scatter: {
        const std::int64_t global = me_ * part_ + e;
        // In place, each repetition adds the others' unchanged input to the last result here.
        return sum(global) + (s_.in_place ? s_.repetitions - 1 : 0);
      }
      case config::CollectiveKind::all_gather:
        return sent(static_cast<int>(e / part_), e % part_);
      case config::CollectiveKind::all_to_all:
        return sent(static_cast<int>(e / part_), me_ * part_ + e % part_);
      case config::CollectiveKind::send_recv:
        return sent((me_ + members_ - 1) % members_, e);
    }
    return 0;
  }

  // Moved numbers arrive unchanged, and sums of small integers are exact. Only what grows is rounded, at each of n - 1
  // additions in each repetition. bf16 may then lose the size of the result, but not its sign.
  bool is_right(double found, double due) const {
    if (!grows() || due == 0) return found == due;
    const double tolerance = (type_ == DType::bf16 ? 0x1p-8 : 0x1p-23) * members_ * s_.repetitions;
    return tolerance < 0.25 ? std::abs(found - due) <= tolerance * std::abs(due)
                            : std::isfinite(found) && found * due > 0;
  }

  [[noreturn]] void wrong(std::int64_t element, double found, double due) const {
    fail(
        "{} gives a wrong result: element {} of {} on member {} of {} is {:g} and should be {:g}. Do not trust its "
        "time. Look at what the case changed and report it to the library's authors",
        config::find_variable("collective")->print(s_), element, out_.count, me_, members_, found, due);
  }

  Settings s_;
  View in_, out_;
  DType type_ = DType::f32;
  int members_ = 1, me_ = 0;
  std::int64_t part_ = 0;
  double scale_ = 1, growth_ = 1;
};
}  // namespace

std::unique_ptr<OutputCheck> collective_check(const Settings& settings, const Layout& layout, const Coordinates& at,
                                              const Program& program) {
  return std::make_unique<CollectiveCheck>(settings, layout, at, program);
}

void encode_element(DType type, std::byte* bytes, std::size_t i, float value) {
  const auto put = [&](const auto& x) { std::memcpy(bytes + i * sizeof x, &x, sizeof x); };
  if (type == DType::bf16) return put(to_bf16(value));
  return type == DType::f16 ? put(to_f16(value)) : put(value);
}

float decode_element(DType type, const std::byte* bytes, std::size_t i) {
  const auto get = [&](auto x) {
    std::memcpy(&x, bytes + i * sizeof x, sizeof x);
    return x;
  };
  if (type == DType::bf16) return to_float(get(bf16{}));
  return type == DType::f16 ? to_float(get(f16{})) : get(0.0F);
}

}  // namespace harness::workloads
