#include "selftest/one_rank.h"

#include <algorithm>
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
  if (options.tuning_s > 0) {
    request_.tuning_s = options.tuning_s;
    request_.tuning = std::make_shared<const backend::Tuning>(backend.tune(request_));
  }
  inputs_ = workloads::make_inputs(model, settings, {}, {}, options.seed);
  if (options.repeat_batch) inputs_ = std::make_unique<program::RepeatedBatch>(std::move(inputs_));
  executable_ = backend.create(request_);
  std::vector<RendezvousMessage> to_itself;
  for (const RendezvousMessage& m : executable_->publish()) to_itself.push_back({0, m.key, m.bytes});
  executable_->connect(to_itself, options.timeout_s);
  executable_->initialize();
}

void OneRank::run(int steps) {
  executable_->run(done_, steps, *inputs_);
  done_ += steps;
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
