#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "backend/backend.h"

namespace harness::test {

/// A job inside this process: every rank has its own Executable and thread; rendezvous messages go through memory.
class Ranks {
 public:
  /// `program(rank)` must outlive this.
  Ranks(const Layout& layout, std::vector<Group> groups, const std::function<const Program*(int)>& program,
        const Settings& settings = {}, double timeout_s = 10) {
    std::vector<std::vector<RendezvousMessage>> inbox(static_cast<std::size_t>(layout.ranks()));
    for (int r = 0; r < layout.ranks(); ++r) {
      ExecutableRequest request;
      request.program = program(r);
      request.groups = groups;
      request.layout = layout;
      request.rank = r;
      request.settings = settings;
      request.timeout_s = timeout_s;
      executables.push_back(backend(BackendKind::cpu).create(request));
      for (auto& m : executables.back()->publish()) {
        inbox[static_cast<std::size_t>(m.peer)].push_back({r, m.key, m.bytes});
      }
    }
    errors =
        each([&](int r) { executables[static_cast<std::size_t>(r)]->connect(inbox[static_cast<std::size_t>(r)], 10); });
    rethrow();
  }

  /// Runs f(rank) for all ranks at once; returns what each threw.
  std::vector<std::exception_ptr> each(const std::function<void(int)>& f) {
    std::vector<std::exception_ptr> out(executables.size());
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < executables.size(); ++r) {
      threads.emplace_back([&, r] {
        try {
          f(static_cast<int>(r));
        } catch (...) {
          out[r] = std::current_exception();
        }
      });
    }
    for (auto& t : threads) t.join();
    return out;
  }

  void rethrow() {
    for (const auto& e : errors) {
      if (e) std::rethrow_exception(e);
    }
  }

  Executable& operator[](int rank) { return *executables[static_cast<std::size_t>(rank)]; }

  std::vector<std::unique_ptr<Executable>> executables;
  std::vector<std::exception_ptr> errors;
};

inline std::string message(const std::exception_ptr& e) {
  try {
    if (e) std::rethrow_exception(e);
  } catch (const std::exception& x) {
    return x.what();
  }
  return "";
}

template <class E>
bool is(const std::exception_ptr& e) {
  try {
    if (e) std::rethrow_exception(e);
  } catch (const E&) {
    return true;
  } catch (...) {
  }
  return false;
}

}  // namespace harness::test
