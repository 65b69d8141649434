#include "calibrate/calibrate.h"

#include <algorithm>
#include <cstddef>

#include "base/text.h"
#include "program/count.h"
#include "workloads/workload.h"

namespace harness::calibrate {
namespace {

constexpr std::int64_t message_factor = 4;

// Returns message sizes from one element up to the largest, in steps of a factor.
std::vector<std::int64_t> messages_up_to(double largest) {
  constexpr std::int64_t whole = 256;  // bytes: whole elements of any type, for many ranks
  const std::int64_t last = (static_cast<std::int64_t>(largest) + whole - 1) / whole * whole;
  std::vector<std::int64_t> sizes{4};
  while (static_cast<double>(sizes.back()) < largest) {
    sizes.push_back(std::min(sizes.back() * message_factor, last));
  }
  return sizes;
}

// Keeps at most `most` shapes, evenly spaced from small to large.
void thin_out(std::vector<config::GemmShape>& shapes, std::size_t most) {
  std::ranges::sort(shapes, {}, [](const config::GemmShape& g) { return g.m * g.n * g.k; });
  if (shapes.size() <= most) return;
  std::vector<config::GemmShape> kept;
  for (std::size_t i = 0; i < most; ++i) kept.push_back(shapes[i * (shapes.size() - 1) / (most - 1)]);
  shapes = std::move(kept);
}

}  // namespace

Wanted wanted_by(const plan::Plan& plan) {
  constexpr std::size_t most_products = 32;
  const config::Experiment& e = plan.experiment;
  Wanted wanted;
  wanted.backend = e.backend;
  wanted.settings = e.baseline;
  wanted.layer = e.model;
  wanted.layer.layers = 1;
  double largest = 4;
  for (const plan::PlannedCase& planned : plan.cases) {
    if (!planned.is_possible() || config::is_low(planned.settings.precision)) continue;  // workload gemm has no fp8
    add_once(wanted.precisions, planned.settings.precision);
    add_once(wanted.micro_batches, planned.settings.micro_batch_size);
    const program::ProgramSet set = workloads::build_programs(e.model, planned.settings, planned.layout);
    for (const program::Program& program : set.roles) {
      for (const program::Operation& op : program.step) {
        if (const auto* m = std::get_if<program::Matmul>(&op.action)) {
          add_once(wanted.products, {m->m, m->n, m->k, m->transpose_a, m->transpose_b});
        } else if (program::is_communication(op.action)) {
          largest = std::max(largest, program::message_bytes(program, op.action));
        }
      }
    }
  }
  if (wanted.precisions.empty()) {
    fail("{}: calibrate measures no products of its precision; give a configuration with precision: bf16", e.path);
  }
  thin_out(wanted.products, most_products);
  wanted.message_bytes = messages_up_to(largest);
  return wanted;
}

Wanted usual(config::BackendKind backend) {
  const bool gpu = config::traits_of(backend).ranks_are_gpus;
  Wanted wanted;
  wanted.backend = backend;
  wanted.precisions = {gpu ? config::Precision::bf16 : config::Precision::fp32};
  const std::int64_t wide = gpu ? 4096 : 256, longest = gpu ? 8192 : 1024, shortest = gpu ? 256 : 32;
  for (std::int64_t k = shortest; k <= longest; k *= 2) wanted.products.push_back({wide, wide, k});
  for (std::int64_t size = shortest; size <= longest / 2; size *= 2) add_once(wanted.products, {size, size, size});
  wanted.message_bytes = messages_up_to(gpu ? 256 << 20 : 4 << 20);
  config::Model& m = wanted.layer;
  m.name = "custom";
  m.layers = 1;
  m.hidden = gpu ? 2048 : 256;
  m.heads = gpu ? 16 : 4;
  m.vocab = gpu ? 32768 : 2048;
  m.sequence = gpu ? 2048 : 128;
  wanted.micro_batches = {1, 2, 4};
  return wanted;
}

}  // namespace harness::calibrate
