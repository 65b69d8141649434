#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backends/backends.h"
#include "support/ranks.h"

namespace harness::test {

/// A job inside this process: each rank has its own Executable and thread, and rendezvous messages go through memory.
class Ranks {
 public:
  /// `program(rank)` must outlive this.
  Ranks(const program::Layout& layout, std::vector<program::Group> groups,
        const std::function<const program::Program*(int)>& program, const config::Settings& settings = {},
        double timeout_s = 10) {
    Rendezvous rendezvous(layout.ranks());
    for (int r = 0; r < layout.ranks(); ++r) {
      backend::ExecutableRequest request;
      request.program = program(r);
      request.groups = groups;
      request.layout = layout;
      request.rank = r;
      request.settings = settings;
      request.timeout_s = timeout_s;
      executables.push_back(backends::get(config::BackendKind::cpu).create(request));
      rendezvous.publish(r, *executables.back());
    }
    errors = each([&](int r) { executables[r]->connect(rendezvous.inbox(r), 10); });
    rethrow_first(errors);
  }

  /// Runs f(rank) on all ranks concurrently; returns the exception of each rank, or null.
  std::vector<std::exception_ptr> each(const std::function<void(int)>& f) {
    return on_ranks(static_cast<int>(executables.size()), f);
  }

  backend::Executable& operator[](int rank) { return *executables[rank]; }

  std::vector<std::unique_ptr<backend::Executable>> executables;
  std::vector<std::exception_ptr> errors;
};

}  // namespace harness::test
