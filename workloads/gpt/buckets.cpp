#include "workloads/gpt/buckets.h"

namespace harness::gpt {
namespace {

constexpr const char* tied_parameter = "word_embeddings";

// First and last stage each hold the tied table and a part of its gradient.
bool exchanges_embedding(const Dimensions& d) {
  return d.stages > 1 && (d.first() || d.last());
}

}  // namespace

Buckets::Buckets(program::ProgramBuilder& builder, Stage& stage, const config::Settings& settings)
    : b_(builder),
      stage_(stage),
      overlap_reduction_(settings.overlap_grad_reduce),
      overlap_optimizer_(settings.overlap_optimizer) {
  const auto& parameters = stage.parameters();
  std::int64_t end = stage.whole_gradient().count;
  Bucket bucket;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Parameter& p = parameters[i];
    ++bucket.missing;
    bucket.tied = bucket.tied || (p.name == tied_parameter && exchanges_embedding(stage.dims()));
    bucket_of_[p.name] = buckets_.size();
    const std::int64_t elements = end - p.view.offset;
    if (elements * program::size_of(program::DType::f32) < settings.bucket_size_bytes && i > 0) continue;
    bucket.gradients = stage.whole_gradient().part(p.view.offset, elements);
    bucket.number = static_cast<int>(buckets_.size());
    buckets_.push_back(bucket);
    bucket = {};
    end = p.view.offset;
  }
}

void Buckets::reduce(const Bucket& bucket, const std::vector<program::OperationId>& after) {
  if (stage_.dims().data == 1) return;
  b_.emit(workloads::data_stream, program::AllReduce{data_group, bucket.gradients},
          {"gradient bucket", program::Phase::gradient_sync, -1, bucket.number}, after);
}

void Buckets::update(const Bucket& bucket) {
  if (!overlap_optimizer_) return;
  b_.emit(workloads::optimizer_stream, stage_.update_of(bucket.gradients),
          {"gradient bucket", program::Phase::optimizer, -1, bucket.number});
}

void Buckets::complete(const std::string& parameter) {
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
  if (exchanges_embedding(stage_.dims())) {
    b_.emit(workloads::data_stream, program::AllReduce{embedding_group, stage_.gradient_of(tied_parameter)},
            {"tied embedding", program::Phase::gradient_sync});
  }
  for (const Bucket& bucket : buckets_) {
    if (bucket.tied) update(bucket);
  }
  if (!overlap_optimizer_) {
    b_.emit(workloads::compute_stream, stage_.update_of(stage_.whole_gradient()), {"", program::Phase::optimizer});
  }
}

}  // namespace harness::gpt
