#include "workloads/workload.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "workloads/operations.h"

namespace harness::workloads {

std::span<const Workload* const> workloads() {
  static const std::array<const Workload*, 4> all{&gpt_workload(), &collective_workload(), &gemm_workload(),
                                                  &attention_workload()};
  return all;
}

const Workload& workload_of(const Settings& settings) {
  const auto found = std::ranges::find(workloads(), settings.workload, &Workload::name);
  if (found == workloads().end()) fail("there is no workload {}", settings.workload);
  return **found;
}

ProgramSet build_programs(const Model& model, const Settings& settings, const Layout& layout) {
  return workload_of(settings).programs(model, settings, layout);
}

std::string Workload::flop_formula(const Model& /*model*/) const {
  return "2 per multiply-add of the matrix products; causal attention at half";
}

void add_use(std::vector<std::string>& uses, const Label& label) {
  std::string use(label.what);
  if (label.phase == Phase::forward) use += ", forward";
  if (std::ranges::find(uses, use) == uses.end()) uses.push_back(std::move(use));
}

std::vector<std::string> Workload::values_from_model(const ProgramSet&, const Settings&) const {
  fail("workload {} takes no values from a model", name());
}

View find_buffer(const Program& program, std::string_view name) {
  for (std::size_t b = 0; b < program.buffers.size(); ++b) {
    if (program.buffers[b].name == name) return {static_cast<program::BufferId>(b), 0, program.buffers[b].count};
  }
  return {};
}

ProgramBuilder step_builder(bool gathers, bool across_nodes) {
  std::vector<std::string> streams{"compute", "tensor", "data", "pipeline", "optimizer", "world"};
  if (gathers) streams.emplace_back("gather");
  if (across_nodes) streams.emplace_back("nodes");
  return ProgramBuilder(std::move(streams));
}

StepFrame::StepFrame(ProgramBuilder& builder, GroupId world, const char* what)
    : b_(builder), world_(world), what_(what) {
  counter_ = b_.buffer("counter", DType::i32, 1, BufferKind::persistent);
  ring_ = b_.buffer(losses_buffer, DType::f32, loss_ring, BufferKind::output);
  b_.emit(compute_stream, program::Fill{counter_, 0}, {"step counter", Phase::setup});
}

void StepFrame::begin_step() {
  b_.begin_step();
  value_ = b_.buffer(what_, DType::f32, 1);
}

void StepFrame::set_share(double share, const std::vector<OperationId>& after) {
  b_.emit(compute_stream, program::Fill{value_, share}, {what_, Phase::forward}, after);
}

void StepFrame::end_step() {
  std::vector<OperationId> all;
  for (StreamId stream = 0; stream < b_.streams(); ++stream) all.push_back(b_.last(stream));
  b_.emit(world_stream, program::AllReduce{world_, value_}, {what_, Phase::finish}, all);
  b_.emit(world_stream, program::Record{value_, ring_, counter_}, {what_, Phase::finish});
}

}  // namespace harness::workloads
