#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "backend/backend.h"
#include "program/count.h"

namespace harness::test {

/// A delay of operations on the cpu backend.
struct Delay {
  /// Delays each communication on this stream of the step. On a computing stream, delays each pass of a layer: forward,
  /// the gradients of its inputs, and those of its weights, by the same amount wherever they are computed. "": none.
  std::string stream;
  double seconds = 0;
};

/// For ExecutableRequest::around.
inline backend::Around around(const Delay& delay, const backend::ExecutableRequest& r) {
  using LayerPass = std::tuple<program::Phase, int, int, bool, bool>;
  return [=, &program = *r.program, begun = std::make_shared<std::set<LayerPass>>()](
             const program::Operation& op, std::function<void()> work) -> std::function<void()> {
    const auto sleep = [seconds = delay.seconds] {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    };
    if (program.streams[op.stream] != delay.stream) return work;
    if (program::is_communication(op.action)) {
      return [=] {
        work();
        sleep();
      };
    }
    const auto* product = std::get_if<program::Matmul>(&op.action);
    const bool of_weights = product != nullptr && program::is_weight_gradient(program, *product);
    const LayerPass pass{op.label.phase, op.label.micro_batch, op.label.layer, of_weights, op.label.recomputed};
    if (op.label.layer < 0 || !begun->insert(pass).second) return work;
    return [=] {
      sleep();
      work();
    };
  };
}

}  // namespace harness::test
