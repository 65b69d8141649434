#include "workloads/gpt/buckets.h"

#include <algorithm>
#include <cmath>

namespace harness::gpt {

LossScaler::LossScaler(ProgramBuilder& builder, const Settings& settings) : b_(builder) {
  if (settings.precision != config::Precision::fp16) return;
  const auto scalar = [&](const char* name, DType type, double value) {
    const View view = b_.buffer(name, type, 1, BufferKind::persistent);
    b_.emit(compute_stream, program::Fill{view, value}, {"loss scale", Phase::setup});
    return view;
  };
  scale_ = scalar("dynamic_loss_scale", DType::f32, initial_scale);
  good_steps_ = scalar("good_steps", DType::i32, 0);
  updates_ = scalar(updates_buffer, DType::i32, 0);
  found_inf_ = scalar("found_inf", DType::f32, 0);
}

void LossScaler::guard(std::vector<program::AdamW>& updates) {
  if (!active()) return;
  for (program::AdamW& update : updates) {
    b_.emit(compute_stream, program::CheckFinite{update.gradient, found_inf_}, {"loss scale", Phase::optimizer});
    update.counter = updates_;
    update.scale = scale_;
    update.skip = found_inf_;
  }
  b_.emit(world_stream, program::AllReduce{world_group, found_inf_, program::Reduction::max},
          {"overflow", Phase::optimizer});
}

void LossScaler::end_step() {
  if (!active()) return;
  b_.emit(
      compute_stream,
      program::UpdateScale{.found_inf = found_inf_, .scale = scale_, .good_steps = good_steps_, .updates = updates_},
      {"loss scale", Phase::optimizer});
}

Buckets::Buckets(ProgramBuilder& builder, const Parameters& parameters, LossScaler& scaler, const StepFrame& frame,
                 const Settings& settings, const Layout& layout)
    : b_(builder),
      parameters_(parameters),
      scaler_(scaler),
      frame_(frame),
      learning_rate_(b_.buffer(learning_rate_buffer, DType::f32, 1, BufferKind::input)),
      replicas_(layout[Axis::data]),
      across_nodes_(shards_are_of_node(settings, layout)),
      overlap_reduction_(settings.overlap_grad_reduce),
      overlap_optimizer_(settings.overlap_optimizer),
      wire_(settings.grad_reduce_type),
      sent_share_(settings.grad_compression_ratio) {
  const bool compresses = settings.grad_compression != config::GradCompression::none && replicated();
  const std::vector<Parameter>& list = parameters.list();
  const std::vector<View>& places = parameters.buckets();
  buckets_.resize(places.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Parameter& p = list[i];
    Bucket& bucket = buckets_[p.bucket];
    const std::int64_t first = p.view.offset - places[p.bucket].offset, end = first + p.view.count;
    const bool ends_bucket = i + 1 == list.size() || list[i + 1].bucket != p.bucket;
    const std::int64_t next = ends_bucket ? places[p.bucket].count : list[i + 1].view.offset - places[p.bucket].offset;
    if (next > end) bucket.gaps.push_back({-1, end, next - end});
    const auto add_to = [&](std::vector<View>& runs, bool (*belongs)(const Parameter&)) {
      if (!belongs(p)) return;
      const bool goes_on = i > 0 && list[i - 1].bucket == p.bucket && belongs(list[i - 1]);
      if (!goes_on) runs.push_back({-1, first, 0});
      runs.back().count = end - runs.back().offset;
    };
    add_to(bucket.partial, [](const Parameter& q) { return q.partial; });
    const bool alone = layout[Axis::tensor] == 1;  // no other rank has a copy that must stay equal
    if (!alone) add_to(bucket.whole, [](const Parameter& q) { return !q.sharded; });
    bucket.compressed = bucket.compressed || (compresses && (p.sharded || alone));
    bucket.number = p.bucket;
    bucket.writers += p.writers;
    bucket.missing = bucket.writers;
    bucket.tied = bucket.tied || p.tied;
  }
  if (!compresses) return;
  residual_ = b_.buffer("residual", DType::f32, places.front().offset + places.front().count, BufferKind::persistent);
  b_.emit(compute_stream, program::Fill{residual_, 0}, {"residual", Phase::setup});
}

void Buckets::copy_whole(const Bucket& bucket, const View& packed, StreamId stream, bool back) {
  const Label label{"gradient bucket", Phase::gradient_sync, -1, bucket.number};
  const View gradients = parameters_.gradients_of(bucket.number);
  std::int64_t at = 0;
  for (const View& run : bucket.whole) {
    const View place = gradients.part(run.offset, run.count), copy = packed.part(at, run.count);
    b_.emit(stream, back ? program::Convert{copy, place} : program::Convert{place, copy}, label);
    at += run.count;
  }
}

// All replicas send equally many elements, so that their parts of the gathered buffer are equally long.
void Buckets::gather_largest(Reduction& all, const std::vector<OperationId>& after) {
  const Bucket& bucket = *all.bucket;
  const Label label{"gradient bucket", Phase::gradient_sync, -1, bucket.number};
  const View gradients = parameters_.gradients_of(bucket.number);
  const auto floats = [&](const char* name, std::int64_t count) { return b_.buffer(name, DType::f32, count); };
  std::int64_t uncompressed = 0;
  for (const View& run : bucket.whole) uncompressed += run.count;
  if (uncompressed > 0) {
    all.whole = floats("whole_gradients", uncompressed);
    copy_whole(bucket, all.whole, compute_stream, false);
    for (const View& run : bucket.whole)
      b_.emit(compute_stream, program::Fill{gradients.part(run.offset, run.count), 0}, label);
    b_.emit(data_stream, program::AllReduce{data_group, all.whole}, label, after);
  }
  const std::int64_t sent =
      std::max<std::int64_t>(1, std::llround(std::ceil(sent_share_ * static_cast<double>(gradients.count))));
  const View values = floats("largest_gradients", sent), indices = b_.buffer("largest_indices", DType::i32, sent);
  b_.emit(compute_stream, program::TopK{gradients, residual_.part(gradients.offset, gradients.count), values, indices},
          label);
  all.values = floats("gathered_gradients", replicas_ * sent);
  all.indices = b_.buffer("gathered_indices", DType::i32, replicas_ * sent);
  b_.emit(data_stream, program::AllGather{data_group, values, all.values}, label, after);
  b_.emit(data_stream, program::AllGather{data_group, indices, all.indices}, label);
}

void Buckets::emit_reduction(Reduction& of, const std::vector<OperationId>& after) {
  const Bucket& bucket = *of.bucket;
  const Label label{"gradient bucket", Phase::gradient_sync, -1, bucket.number};
  const View gradients = parameters_.gradients_of(bucket.number);
  for (const View& gap : bucket.gaps) {
    // If gradients are kept, gaps keep their initial zeros.
    if (each_pass()) b_.emit(compute_stream, program::Fill{gradients.part(gap.offset, gap.count), 0}, label);
  }
  for (const View& run : bucket.partial) {
    b_.emit(tensor_stream, program::AllReduce{tensor_group, gradients.part(run.offset, run.count)},
            {"gradients of own rows", Phase::gradient_sync, -1, bucket.number}, after);
  }
  if (!replicated()) return;
  if (bucket.compressed) return gather_largest(of, after);
  View sent = gradients;
  if (wire_ != DType::f32) {
    sent = b_.buffer("gradients_on_wire", wire_, gradients.count);
    b_.emit(compute_stream, program::Convert{gradients, sent}, label);
  }
  const View used = parameters_.reduced(bucket.number);
  View arrives = used;
  if (wire_ != DType::f32) {
    arrives = sharded() ? sent.own_part(Axis::data, parameters_.shards()) : sent;
  } else if (each_pass()) {
    arrives = b_.buffer("reduced_gradients", DType::f32, used.count);
  }
  Action reduction = program::AllReduce{data_group, sent};
  if (sharded()) reduction = program::ReduceScatter{data_group, sent, arrives};
  b_.emit(data_stream, reduction, label, after);
  if (across_nodes_) b_.emit(across_stream, program::AllReduce{across_group, arrives}, label);
  if (arrives.buffer != used.buffer) of.values = arrives;
}

void Buckets::reduce(Bucket& bucket, const std::vector<OperationId>& after, bool for_good) {
  emit_reduction(under_way_.emplace_back(Reduction{&bucket, for_good}), after);
  if (each_pass()) {
    settle(1);
  } else if (overlap_optimizer_) {
    settle(0);
  }
}

void Buckets::settle(std::size_t left) {
  while (under_way_.size() > left) {
    const Reduction oldest = under_way_.front();
    under_way_.pop_front();
    take(oldest);
    if (oldest.for_good && !oldest.bucket->tied) update(*oldest.bucket);
  }
}

void Buckets::take(const Reduction& reduction) {
  if (!reduction.values.present()) return;
  Bucket& bucket = *reduction.bucket;
  const StreamId stream = overlap_optimizer_ && !each_pass() ? optimizer_stream : compute_stream;
  const Label label{"gradient bucket", Phase::gradient_sync, -1, bucket.number};
  const View to = parameters_.reduced(bucket.number);
  if (reduction.indices.present()) {
    b_.emit(stream, program::ScatterAdd{reduction.values, reduction.indices, to, replicas_}, label);
    copy_whole(bucket, reduction.whole, stream, true);
    return;
  }
  View values = reduction.values;
  if (!bucket.has_sum || wire_ != DType::f32) {
    values = bucket.has_sum ? b_.buffer("reduced_gradients", DType::f32, to.count) : to;
    b_.emit(stream, program::Convert{reduction.values, values}, label);
  }
  if (bucket.has_sum) {
    b_.emit(stream,
            program::ResidualAdd{.in = to, .bias = {}, .residual = values, .out = to, .rows = 1, .width = to.count},
            label);
  }
  bucket.has_sum = each_pass();
}

void Buckets::update(const Bucket& bucket) {
  if (!overlap_optimizer_) return;
  b_.emit(optimizer_stream, update_of(parameters_.buckets()[bucket.number]),
          {"gradient bucket", Phase::optimizer, -1, bucket.number});
}

void Buckets::complete(ParameterId parameter, bool for_good) {
  Bucket& bucket = buckets_[parameters_.at(parameter).bucket];
  --bucket.missing;
  if (bucket.missing > 0) return;
  bucket.missing = bucket.writers;
  if (!reduces_late()) reduce(bucket, {}, for_good);
}

void Buckets::end_backward(bool for_good) {
  if (!reduces_late() || !each_pass()) return;
  for (Bucket& bucket : buckets_) reduce(bucket, {b_.last(compute_stream)}, for_good);
  settle(0);
}

void Buckets::finish() {
  if (reduces_late() && !each_pass()) {
    for (Bucket& bucket : buckets_) reduce(bucket, {b_.last(compute_stream)}, true);
  }
  settle(0);
  for (const Parameter& p : parameters_.list()) {
    if (!p.tied) continue;
    // If sharded, the ranks of both stages have the same shard, because the table is a bucket of its own.
    const View gradient = sharded() ? parameters_.reduced(p.bucket) : parameters_.gradient(p.id);
    b_.emit(data_stream, program::AllReduce{embedding_group, gradient}, {"tied embedding", Phase::gradient_sync});
  }
  for (Bucket& bucket : buckets_) {
    if (bucket.tied) update(bucket);
  }
  if (overlap_optimizer_) return;
  std::vector<program::AdamW> updates;
  for (const View& place : parameters_.updates()) updates.push_back(update_of(place));
  scaler_.guard(updates);
  for (const program::AdamW& update : updates) {
    b_.emit(compute_stream, update, {"", Phase::optimizer});
  }
  scaler_.end_step();
}

}  // namespace harness::gpt
