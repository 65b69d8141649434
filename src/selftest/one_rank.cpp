#include "selftest/one_rank.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "workloads/gpt/gpt.h"
#include "workloads/workload.h"

namespace harness::selftest {

OneRank::OneRank(const backend::Backend& backend, const config::Model& model, const config::Settings& settings,
                 const Options& options)
    : set_(program::lower(workloads::build_programs(model, settings, {}), backend.declared())) {
  request_.program = &set_.roles.front();
  request_.groups = set_.groups;
  request_.settings = settings;
  request_.seed = options.seed;
  request_.threads = options.threads;
  request_.timeout_s = options.timeout_s;
  if (options.tuning_s > 0) tune(backend, options);
  inputs_ = workloads::make_inputs(model, settings, {}, {}, options.seed);
  if (options.repeat_batch) inputs_ = std::make_unique<program::RepeatedBatch>(std::move(inputs_));
  executable_ = backend.create(request_);
  std::vector<RendezvousMessage> to_itself;
  for (const RendezvousMessage& m : executable_->publish()) to_itself.push_back({0, m.key, m.bytes});
  executable_->connect(to_itself, options.timeout_s);
  executable_->initialize();
}

void OneRank::tune(const backend::Backend& backend, const Options& options) {
  const auto began = std::chrono::steady_clock::now();
  backend::Tuning all = options.known;
  request_.tuning_s = options.tuning_s;
  request_.tuning = std::make_shared<const backend::Tuning>(all);
  all.merge(backend.tune(request_));
  request_.tuning = std::make_shared<const backend::Tuning>(std::move(all));
  tuned_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

std::vector<double> OneRank::run(int steps) {
  const std::vector<double> ends = executable_->run(done_, steps, *inputs_);
  done_ += steps;
  std::vector<double> seconds;
  for (std::size_t i = 1; i < ends.size(); ++i) seconds.push_back(ends[i] - ends[i - 1]);
  return seconds;
}

std::vector<program::Interval> OneRank::run_profiled() {
  return executable_->run_profiled(done_++, *inputs_);
}

std::vector<float> OneRank::losses() {
  return read(workloads::losses_buffer, 0, done_);
}

program::BufferId OneRank::find(const std::string& buffer) const {
  const auto it = std::ranges::find(program().buffers, buffer, &program::Buffer::name);
  if (it == program().buffers.end()) fail("the step has no buffer '{}'", buffer);
  return static_cast<program::BufferId>(it - program().buffers.begin());
}

std::vector<float> OneRank::read(const std::string& buffer, std::int64_t offset, std::int64_t count) {
  std::vector<float> values(count);
  executable_->read({find(buffer), offset, count}, std::as_writable_bytes(std::span(values)));
  return values;
}

std::vector<float> OneRank::read(const std::string& buffer) {
  return read(buffer, 0, program().buffers[find(buffer)].count);
}

}  // namespace harness::selftest
