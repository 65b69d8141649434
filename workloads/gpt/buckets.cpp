#include "workloads/gpt/buckets.h"

#include "workloads/gpt/gpt.h"

namespace harness::gpt {

Buckets::Buckets(program::ProgramBuilder& builder, const Parameters& parameters, const workloads::StepFrame& frame,
                 const config::Settings& settings, const program::Layout& layout)
    : b_(builder),
      parameters_(parameters),
      frame_(frame),
      learning_rate_(b_.buffer(learning_rate_buffer, program::DType::f32, 1, program::BufferKind::input)),
      replicated_(layout[program::Axis::data] > 1),
      overlap_reduction_(settings.overlap_grad_reduce),
      overlap_optimizer_(settings.overlap_optimizer) {
  const auto& list = parameters.list();
  std::int64_t end = parameters.whole_gradient().count;
  Bucket bucket;
  for (std::size_t i = list.size(); i-- > 0;) {
    const Parameter& p = list[i];
    bucket.missing += p.writers;
    bucket.tied = bucket.tied || p.tied;
    bucket_of_[p.id] = buckets_.size();
    const std::int64_t elements = end - p.view.offset;
    if (elements * program::size_of(program::DType::f32) < settings.bucket_size_bytes && i > 0) continue;
    bucket.gradients = parameters.whole_gradient().part(p.view.offset, elements);
    bucket.number = static_cast<int>(buckets_.size());
    buckets_.push_back(bucket);
    bucket = {};
    end = p.view.offset;
  }
}

void Buckets::reduce(const Bucket& bucket, const std::vector<program::OperationId>& after) {
  if (!replicated_) return;
  b_.emit(workloads::data_stream, program::AllReduce{data_group, bucket.gradients},
          {"gradient bucket", program::Phase::gradient_sync, -1, bucket.number}, after);
}

void Buckets::update(const Bucket& bucket) {
  if (!overlap_optimizer_) return;
  b_.emit(workloads::optimizer_stream, update_of(bucket.gradients),
          {"gradient bucket", program::Phase::optimizer, -1, bucket.number});
}

void Buckets::complete(ParameterId parameter) {
  Bucket& bucket = buckets_[bucket_of_.at(parameter)];
  --bucket.missing;
  if (bucket.missing > 0 || reduces_late()) return;
  reduce(bucket, {});
  if (!bucket.tied) update(bucket);
}

void Buckets::finish() {
  if (reduces_late()) {
    for (const Bucket& bucket : buckets_) {
      reduce(bucket, {b_.last(workloads::compute_stream)});
      if (!bucket.tied) update(bucket);
    }
  }
  for (const Parameter& p : parameters_.list()) {
    if (!p.tied) continue;
    b_.emit(workloads::data_stream, program::AllReduce{embedding_group, parameters_.gradient(p.id)},
            {"tied embedding", program::Phase::gradient_sync});
  }
  for (const Bucket& bucket : buckets_) {
    if (bucket.tied) update(bucket);
  }
  if (!overlap_optimizer_) {
    b_.emit(workloads::compute_stream, update_of(parameters_.whole_gradient()), {"", program::Phase::optimizer});
  }
}

}  // namespace harness::gpt
