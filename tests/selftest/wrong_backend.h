#pragma once

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "base/bf16.h"

namespace harness::testing {

/// What a wrong operation does to the first view it writes.
enum class Wrong { nothing, scaled, untouched, beyond, nan, changes_input };

/// The cpu backend with one operation gone wrong, to see that checks find it.
class WrongBackend : public Backend {
 public:
  WrongBackend(std::string operation, Wrong wrong) : operation_(std::move(operation)), wrong_(wrong) {}
  BackendKind kind() const override { return BackendKind::cpu; }
  FusedSet declared() const override { return inner().declared(); }
  std::vector<std::pair<std::string, std::string>> identity(const ExecutableRequest& where) const override {
    return inner().identity(where);
  }
  double measure_matmul_flops(Precision p, const ExecutableRequest& where, double seconds) const override {
    return inner().measure_matmul_flops(p, where, seconds);
  }
  std::unique_ptr<Executable> create(const ExecutableRequest& request) const override {
    return std::make_unique<WrongExecutable>(inner().create(request), *request.program, operation_, wrong_);
  }

 private:
  static const Backend& inner() { return backend(BackendKind::cpu); }

  class WrongExecutable : public Executable {
   public:
    WrongExecutable(std::unique_ptr<Executable> inner, const Program& program, const std::string& operation, Wrong w)
        : inner_(std::move(inner)), program_(program), wrong_(w) {
      for (const Operation& op : program.step) {
        if (name_of(op.action) != operation) continue;
        visit_accesses(op.action, [this](Access access, const View& view) {
          std::optional<View>& first = access == Access::read ? read_ : written_;
          if (!first) first = view;
        });
        break;
      }
    }

    std::vector<RendezvousMessage> publish() override { return inner_->publish(); }
    void connect(const std::vector<RendezvousMessage>& r, double t) override { inner_->connect(r, t); }
    void initialize() override { inner_->initialize(); }
    std::vector<double> run(std::int64_t first, int steps, const InputSource& inputs) override {
      const auto before = written_ ? bytes(*written_) : std::vector<std::byte>();
      auto times = inner_->run(first, steps, inputs);
      if (written_) spoil(before);
      return times;
    }
    std::vector<Interval> run_profiled(std::int64_t s, const InputSource& i) override {
      return inner_->run_profiled(s, i);
    }
    void read(const View& view, std::span<std::byte> to) override { inner_->read(view, to); }
    void write(const View& view, std::span<const std::byte> from) override { inner_->write(view, from); }
    Progress progress() const override { return inner_->progress(); }

   private:
    DType type(const View& v) const { return program_.buffers[static_cast<std::size_t>(v.buffer)].type; }
    std::vector<std::byte> bytes(const View& v) {
      std::vector<std::byte> out(static_cast<std::size_t>(v.count * size_of(type(v))));
      inner_->read(v, out);
      return out;
    }
    void put(const View& v, float x) {
      const bf16 half = to_bf16(x);
      const auto whole = static_cast<std::int32_t>(x);
      const void* from = type(v) == DType::f32    ? static_cast<const void*>(&x)
                         : type(v) == DType::bf16 ? static_cast<const void*>(&half)
                                                  : static_cast<const void*>(&whole);
      inner_->write(v, {static_cast<const std::byte*>(from), static_cast<std::size_t>(size_of(type(v)))});
    }
    float get(const View& v) {
      const auto b = bytes(v);
      float x = 0;
      if (type(v) == DType::f32) std::memcpy(&x, b.data(), sizeof x);
      if (type(v) == DType::bf16) {
        bf16 half;
        std::memcpy(&half, b.data(), sizeof half);
        x = to_float(half);
      }
      return x;
    }
    void spoil(const std::vector<std::byte>& before) {
      const View& v = *written_;
      switch (wrong_) {
        case Wrong::nothing:
          return;
        case Wrong::scaled:
          for (std::int64_t i = 0; i < v.count; ++i) put(v.part(i, 1), 1.05F * get(v.part(i, 1)));
          return;
        case Wrong::untouched:
          return inner_->write(v, before);
        case Wrong::beyond:
          return put(v.part(v.count, 1), 0);
        case Wrong::nan:
          return put(v.part(v.count / 2, 1), std::numeric_limits<float>::quiet_NaN());
        case Wrong::changes_input:
          if (read_) put(read_->part(0, 1), 0.25F);
          return;
      }
    }

    std::unique_ptr<Executable> inner_;
    const Program& program_;
    Wrong wrong_;
    std::optional<View> read_, written_;
  };

  std::string operation_;
  Wrong wrong_;
};

/// The cpu backend that runs every operation in its finest parts: the same results, rounded at other places.
class FinerBackend : public Backend {
 public:
  BackendKind kind() const override { return BackendKind::cpu; }
  FusedSet declared() const override { return 0; }
  std::vector<std::pair<std::string, std::string>> identity(const ExecutableRequest&) const override {
    return {{"device", "finer"}};
  }
  double measure_matmul_flops(Precision, const ExecutableRequest&, double) const override { return 1; }
  std::unique_ptr<Executable> create(const ExecutableRequest& r) const override {
    return backend(BackendKind::cpu).create(r);
  }
};

/// Like a GPU's backend on a machine without one.
class AbsentBackend : public FinerBackend {
 public:
  std::vector<std::pair<std::string, std::string>> identity(const ExecutableRequest&) const override {
    fail("no device is here:\nnone at all");
  }
};

}  // namespace harness::testing
