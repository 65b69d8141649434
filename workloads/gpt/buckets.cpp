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
      overlap_optimizer_(settings.overlap_optimizer),
      overlap_gather_(settings.overlap_param_gather),
      wire_(settings.grad_reduce_type) {
  const std::vector<Parameter>& list = parameters.list();
  buckets_.resize(parameters.buckets().size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Parameter& p = list[i];
    Bucket& bucket = buckets_[p.bucket];
    bucket.gradients = parameters.gradients_of(p.bucket);
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

void Buckets::reduce(Bucket& bucket, const std::vector<program::OperationId>& after) {
  for (const program::View& gradients : bucket.partial) {
    b_.emit(workloads::tensor_stream, program::AllReduce{tensor_group, gradients},
            {"gradients of own rows", program::Phase::gradient_sync, -1, bucket.number}, after);
  }
  if (!replicated_) return;
  const program::Label label{"gradient bucket", program::Phase::gradient_sync, -1, bucket.number};
  program::View all = bucket.gradients;
  if (wire_ != program::DType::f32) {
    all = b_.buffer("gradients_on_wire", wire_, bucket.gradients.count);
    b_.emit(workloads::compute_stream, program::Convert{bucket.gradients, all}, label);
    bucket.on_wire = reduced(all);
  }
  program::Action reduction = program::AllReduce{data_group, all};
  if (sharded()) reduction = program::ReduceScatter{data_group, all, reduced(all)};
  b_.emit(workloads::data_stream, reduction, label, after);
}

void Buckets::take_from_wire(Bucket& bucket) {
  if (!bucket.on_wire.present()) return;
  b_.emit(update_stream(), program::Convert{bucket.on_wire, reduced(bucket.gradients)},
          {"gradient bucket", program::Phase::optimizer, -1, bucket.number});
  bucket.on_wire = {};
}

// Buckets are numbered from the end. The step before has ended on all ranks, so nothing else is waited for.
std::vector<program::OperationId> Buckets::gather_weights() {
  if (!sharded()) return {};
  for (std::size_t i = buckets_.size(); i-- > 0;) {
    const program::View all = parameters_.weights_of(buckets_[i].number);
    b_.emit(workloads::gather_stream, program::AllGather{gather_group, parameters_.own(all), all},
            {"weight bucket", program::Phase::forward, -1, buckets_[i].number});
  }
  if (overlap_gather_) return {};
  return {b_.last(workloads::gather_stream)};
}

void Buckets::update(Bucket& bucket) {
  if (!overlap_optimizer_) return;
  take_from_wire(bucket);
  b_.emit(update_stream(), update_of(bucket.gradients),
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
    for (Bucket& bucket : buckets_) {
      reduce(bucket, {b_.last(workloads::compute_stream)});
      if (!bucket.tied) update(bucket);
    }
  }
  for (Bucket& bucket : buckets_) {
    if (bucket.tied || !overlap_optimizer_) take_from_wire(bucket);
  }
  for (const Parameter& p : parameters_.list()) {
    if (!p.tied) continue;
    // Of shards, the ranks of both stages have the same one: there the table is a bucket.
    const program::View gradient = sharded() ? reduced(buckets_[p.bucket].gradients) : parameters_.gradient(p.id);
    b_.emit(workloads::data_stream, program::AllReduce{embedding_group, gradient},
            {"tied embedding", program::Phase::gradient_sync});
  }
  for (Bucket& bucket : buckets_) {
    if (bucket.tied) update(bucket);
  }
  if (overlap_optimizer_) return;
  // Of shards, a rank's part of one bucket does not lie beside that of the next.
  std::vector<program::View> updates{parameters_.whole_gradient()};
  if (sharded()) {
    updates.clear();
    for (const Bucket& bucket : buckets_) updates.push_back(bucket.gradients);
  }
  for (const program::View& gradients : updates) {
    b_.emit(workloads::compute_stream, update_of(gradients), {"", program::Phase::optimizer});
  }
}

}  // namespace harness::gpt
