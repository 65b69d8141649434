#include "workloads/gpt/buckets.h"

namespace harness::gpt {

Buckets::Buckets(program::ProgramBuilder& builder, Stage& stage, const config::Settings& settings)
    : b_(builder), stage_(stage), overlap_(settings.overlap_grad_reduce) {
  const auto& parameters = stage.parameters();
  std::int64_t end = stage.whole_gradient().count;
  Bucket bucket;
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Parameter& p = parameters[i];
    ++bucket.missing;
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

void Buckets::complete(const std::string& parameter) {
  Bucket& bucket = buckets_[bucket_of_.at(parameter)];
  --bucket.missing;
  if (overlap_ && bucket.missing == 0) reduce(bucket, {});
}

void Buckets::finish() {
  if (!overlap_) {
    for (const Bucket& bucket : buckets_) reduce(bucket, {b_.last(workloads::compute_stream)});
  }
  const Dimensions& d = stage_.dims();
  // First and last stage each hold the tied table and a part of its gradient.
  if (d.stages > 1 && (d.first() || d.last())) {
    b_.emit(workloads::data_stream, program::AllReduce{embedding_group, stage_.gradient_of("word_embeddings")},
            {"tied embedding", program::Phase::gradient_sync});
  }
}

}  // namespace harness::gpt
