#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/numbers.h"
#include "backends/backends.h"

namespace harness::test {

/// The cpu backend without fused forms: the same results, rounded at other places.
class FinerBackend : public backend::Backend {
 public:
  config::BackendKind kind() const override { return config::BackendKind::cpu; }
  program::FusedSet declared() const override { return 0; }
  std::vector<std::pair<std::string, std::string>> identity(const backend::ExecutableRequest&) const override {
    return {{"device", "finer"}};
  }
  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& r) const override {
    return backends::get(config::BackendKind::cpu).create(r);
  }
};

/// The effect of a wrong operation on the first view that it writes.
enum class Wrong { scaled, untouched, beyond, nan, changes_input };

/// The cpu backend with one wrong operation, to show that checks find it.
class WrongBackend : public FinerBackend {
 public:
  WrongBackend(std::string operation, Wrong wrong) : operation_(std::move(operation)), wrong_(wrong) {}
  program::FusedSet declared() const override { return backend::Backend::declared(); }
  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& request) const override {
    return std::make_unique<WrongExecutable>(FinerBackend::create(request), *request.program, operation_, wrong_);
  }

 private:
  class WrongExecutable : public backend::Executable {
   public:
    WrongExecutable(std::unique_ptr<backend::Executable> inner, const program::Program& program,
                    const std::string& operation, Wrong w)
        : inner_(std::move(inner)), program_(program), wrong_(w) {
      for (const program::Operation& op : program.step) {
        if (program::name_of(op.action) != operation) continue;
        program::visit_accesses(op.action, [this](program::Access access, const program::View& view) {
          std::optional<program::View>& first = access == program::Access::read ? read_ : written_;
          if (!first) first = view;
        });
        break;
      }
    }

    std::vector<RendezvousMessage> publish() override { return inner_->publish(); }
    void connect(const std::vector<RendezvousMessage>& r, double t) override { inner_->connect(r, t); }
    void initialize() override { inner_->initialize(); }
    std::vector<double> run(std::int64_t first, int steps, const program::InputSource& inputs) override {
      const auto before = written_ ? bytes(*written_) : std::vector<std::byte>();
      auto times = inner_->run(first, steps, inputs);
      if (written_) spoil(before);
      return times;
    }
    std::vector<program::Interval> run_profiled(std::int64_t s, const program::InputSource& i) override {
      return inner_->run_profiled(s, i);
    }
    void read(const program::View& view, std::span<std::byte> to) override { inner_->read(view, to); }
    void write(const program::View& view, std::span<const std::byte> from) override { inner_->write(view, from); }
    backend::Progress progress() const override { return inner_->progress(); }

   private:
    program::DType type(const program::View& v) const { return program_.buffers[v.buffer].type; }
    std::vector<std::byte> bytes(const program::View& v) {
      std::vector<std::byte> out(v.count * program::size_of(type(v)));
      inner_->read(v, out);
      return out;
    }
    // Replaces the element of a view of one by f(element).
    void change(const program::View& v, const std::function<double(double)>& f) {
      std::vector<std::byte> element = bytes(v);
      const auto x = Numbers({element.data(), type(v), 1})[0];
      x = f(x);
      inner_->write(v, element);
    }
    void put(const program::View& v, double x) {
      change(v, [x](double) { return x; });
    }
    void spoil(const std::vector<std::byte>& before) {
      const program::View& v = *written_;
      switch (wrong_) {
        case Wrong::scaled:
          for (std::int64_t i = 0; i < v.count; ++i) change(v.part(i, 1), [](double x) { return 1.05 * x; });
          return;
        case Wrong::untouched:
          return inner_->write(v, before);
        case Wrong::beyond:
          return put(v.part(v.count, 1), 0);
        case Wrong::nan:
          return put(v.part(v.count / 2, 1), std::numeric_limits<double>::quiet_NaN());
        case Wrong::changes_input:
          if (read_) put(read_->part(0, 1), 0.25);
          return;
      }
    }

    std::unique_ptr<backend::Executable> inner_;
    const program::Program& program_;
    Wrong wrong_;
    std::optional<program::View> read_, written_;
  };

  std::string operation_;
  Wrong wrong_;
};

/// The cpu backend on a device that fails when it creates Executable `number`, counted from 0.
class FailingBackend : public FinerBackend {
 public:
  explicit FailingBackend(int number) : number_(number) {}
  std::unique_ptr<backend::Executable> create(const backend::ExecutableRequest& r) const override {
    if (made_++ == number_) fail("an illegal memory access was encountered");
    return FinerBackend::create(r);
  }

 private:
  int number_;
  mutable int made_ = 0;
};

/// A GPU backend on a machine without a GPU.
class AbsentBackend : public FinerBackend {
 public:
  std::vector<std::pair<std::string, std::string>> identity(const backend::ExecutableRequest&) const override {
    fail("no device is here:\nnone at all");
  }
};

}  // namespace harness::test
