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
  const std::vector<Parameter>& list = parameters.list();
  const program::View whole = parameters.whole_gradient();
  buckets_.resize(list.front().bucket + 1);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Parameter& p = list[i];
    Bucket& bucket = buckets_[p.bucket];
    if (!bucket.gradients.present()) bucket.gradients = whole.part(p.view.offset, 0);
    const std::int64_t end = i + 1 < list.size() ? list[i + 1].view.offset : whole.count;
    bucket.gradients.count = end - bucket.gradients.offset;
    if (p.partial && i > 0 && list[i - 1].partial && list[i - 1].bucket == p.bucket) {
      bucket.partial.back().count = p.view.offset + p.view.count - bucket.partial.back().offset;
    } else if (p.partial) {
      bucket.partial.push_back(parameters.gradient(p.id));
    }
    bucket.number = p.bucket;
    bucket.missing += p.writers;
    bucket.tied = bucket.tied || p.tied;
  }
}

void Buckets::reduce(const Bucket& bucket, const std::vector<program::OperationId>& after) {
  for (const program::View& gradients : bucket.partial) {
    b_.emit(workloads::tensor_stream, program::AllReduce{tensor_group, gradients},
            {"gradients of own rows", program::Phase::gradient_sync, -1, bucket.number}, after);
  }
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
  Bucket& bucket = buckets_[parameters_.at(parameter).bucket];
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
