#include "selftest/one_rank.h"

#include <algorithm>

#include "workloads/gpt/gpt.h"
#include "workloads/workload.h"

namespace harness {

OneRank::OneRank(const Backend& backend, const Model& model, const Settings& settings, const Options& options)
    : set_(lower(build_programs(model, settings, {}), backend.declared())) {
  request_.program = &set_.roles.front();
  request_.groups = set_.groups;
  request_.settings = settings;
  request_.seed = options.seed;
  request_.threads = options.threads;
  request_.timeout_s = options.timeout_s;
  if (options.tuned) request_.tuning = std::make_shared<const Tuning>(backend.tune(request_));
  inputs_ = make_inputs(model, settings, {}, {}, options.seed);
  executable_ = backend.create(request_);
  std::vector<RendezvousMessage> to_itself;
  for (const RendezvousMessage& m : executable_->publish()) to_itself.push_back({0, m.key, m.bytes});
  executable_->connect(to_itself, options.timeout_s);
  executable_->initialize();
}

std::vector<double> OneRank::run(int steps) {
  const std::vector<double> ends = executable_->run(done_, steps, *inputs_);
  done_ += steps;
  std::vector<double> seconds;
  for (std::size_t i = 1; i < ends.size(); ++i) seconds.push_back(ends[i] - ends[i - 1]);
  return seconds;
}

std::vector<Interval> OneRank::run_profiled() {
  return executable_->run_profiled(done_++, *inputs_);
}

std::vector<float> OneRank::losses() {
  return read(losses_buffer, 0, done_);
}

BufferId OneRank::find(const std::string& buffer) const {
  const auto it = std::ranges::find(program().buffers, buffer, &Buffer::name);
  if (it == program().buffers.end()) fail("the step has no buffer '{}'", buffer);
  return static_cast<BufferId>(it - program().buffers.begin());
}

std::vector<float> OneRank::read(const std::string& buffer, std::int64_t offset, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  executable_->read({find(buffer), offset, count}, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<float> OneRank::read(const std::string& buffer) {
  return read(buffer, 0, program().buffers[static_cast<std::size_t>(find(buffer))].count);
}

}  // namespace harness
