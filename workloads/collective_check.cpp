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
    const std::vector<int> members = Group{"", axes_of(s.collective_over), {}}.members(layout, at);
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
    if (s.collective == config::CollectiveKind::all_reduce && s.in_place)
      scale_ = std::exp2(-std::min(120.0, std::ceil(std::log2(members_) * s.repetitions)));
    for (int e = 0; e < period; ++e) {
      for (int m = 0; m < members_; ++m) sums_[e] += addend(m, e);
    }
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
        if (!(std::abs(found - due) <= tolerance() * std::abs(due))) wrong(at + i, found, due);
      }
    }
  }

 private:
  static constexpr int period = 61;  // a prime

  bool sums() const {
    return s_.collective == config::CollectiveKind::all_reduce ||
           s_.collective == config::CollectiveKind::reduce_scatter;
  }
  static int addend(int member, std::int64_t element) {
    return 1 + static_cast<int>((element + 17 * std::int64_t{member}) % period) % 4;
  }
  // Element e of what a member sends: small integers that bf16 represents exactly.
  float sent(int member, std::int64_t e) const {
    if (sums()) return static_cast<float>(scale_ * addend(member, e));
    return static_cast<float>(1 + (e + 17 * std::int64_t{member}) % 127);
  }
  double sum(std::int64_t e) const { return sums_[e % period]; }

  double expected(std::int64_t e) const {
    switch (s_.collective) {
      case config::CollectiveKind::all_reduce:
        return sum(e) * scale_ * (s_.in_place ? std::pow(members_, s_.repetitions - 1) : 1);
      case config::CollectiveKind::reduce_scatter: {
        const std::int64_t global = me_ * part_ + e;
        if (!s_.in_place) return sum(global);
        // Each repetition adds the others' unchanged input to the last result here.
        const double others = sum(global) - addend(me_, global);
        return addend(me_, global) + s_.repetitions * others;
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

  // Moved numbers arrive unchanged. A sum of n numbers rounds n - 1 times, in an order that the library chooses.
  double tolerance() const {
    if (!sums()) return 0;
    const double rounding = type_ == DType::bf16 ? 0x1p-8 : 0x1p-23;
    return std::min(0.25, rounding * members_ * (s_.in_place ? s_.repetitions : 1));
  }

  [[noreturn]] void wrong(std::int64_t element, double found, double due) const {
    fail(
        "{} gives a wrong result: element {} of {} on member {} of {} is {:g} and should be {:g}. Do not trust its "
        "time. "
        "Look at what the case changed and report it to the library's authors",
        config::find_variable("collective")->print(s_), element, out_.count, me_, members_, found, due);
  }

  Settings s_;
  View in_, out_;
  DType type_ = DType::f32;
  int members_ = 1, me_ = 0;
  std::int64_t part_ = 0;
  double scale_ = 1;
  double sums_[period] = {};
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
