#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <tuple>

#include "backend/backend.h"
#include "program/count.h"

namespace harness::test {

/// Slows part of a step down on the cpu backend.
struct Delay {
  /// On a communication stream, each communication takes longer; on the computing stream, each pass of a layer:
  /// forward, input gradients, and weight gradients, which take as long wherever they are computed. "": no delay.
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
