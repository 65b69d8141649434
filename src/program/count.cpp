#include "program/count.h"

#include <algorithm>

#include "base/text.h"
#include "program/links.h"

namespace harness::program {
namespace {

double bytes_of(const Program& program, const View& v) {
  return v.present() ? static_cast<double>(v.count * size_of(program.buffer_of(v).type)) : 0;
}

// The views of q, k and v span each other's elements if the three are interleaved, so the shape gives the number of
// elements. `queries` and `keys`: how many tensors of each kind move.
double attention_bytes(const Program& program, const auto& a, double queries, double keys) {
  const AttentionShape& s = a.shape;
  const auto head = static_cast<double>(s.batch * s.head_dim * size_of(program.buffer_of(a.q).type));
  return head * (queries * static_cast<double>(s.heads * s.query_length) +
                 keys * static_cast<double>(s.kv_heads() * s.key_length)) +
         bytes_of(program, a.stats) + bytes_of(program, a.probabilities);
}

}  // namespace

Flop flop_of(const Action& action) {
  if (const auto* m = std::get_if<Matmul>(&action)) {
    const double f = 2.0 * static_cast<double>(m->m) * static_cast<double>(m->n) * static_cast<double>(m->k);
    return {f, f};
  }
  const std::optional<AnyAttention> attention = attention_of(action);
  if (!attention) return {};
  // Forward: scores and their product with v. Backward: dv, dp, dq, dk. The recomputed scores are the kernel's choice
  // and by convention not counted.
  const double products = attention->backward ? 4 : 2;
  // `full` counts an attention product over the whole square; causal attention needs only the half below the diagonal.
  // The convention for a square of s x s is s * s / 2 (Megatron-LM), not s * (s + 1) / 2. If a sequence holds several
  // documents, each has a square of its own.
  const AttentionShape& s = attention->shape;
  const double full = products * 2.0 * static_cast<double>(s.batch * s.heads * s.head_dim) *
                      static_cast<double>(s.query_length) * static_cast<double>(s.key_length) * (1 - attention->unseen);
  return {s.causal ? full / 2 : full, full};
}

double bytes_touched(const Program& program, const Action& action) {
  if (const auto* a = std::get_if<Attention>(&action)) {  // q and out; k and v
    return attention_bytes(program, *a, 2, 2);
  }
  if (const auto* a = std::get_if<AttentionBackward>(&action)) {  // q, out, dout and dq; k, v, dk and dv
    const double again = a->accumulate ? 1 : 0;
    return attention_bytes(program, *a, 4 + again, 4 + 2 * again);
  }
  if (const auto* r = std::get_if<Rope>(&action)) {  // elements between the heads of two rows are not touched
    return 2 * static_cast<double>(r->rows * r->heads * r->head_dim * size_of(program.buffer_of(r->data).type));
  }
  double bytes = 0;
  visit_accesses(action, [&](Access access, const View& view) {
    const double once = static_cast<double>(view.count * size_of(program.buffer_of(view).type));
    bytes += access == Access::update ? 2 * once : once;
  });
  return bytes;
}

double needed_bytes(const Program& program, const Action& action) {
  const auto bytes = [&](const View& v) { return bytes_of(program, v); };
  if (const auto* e = std::get_if<Embedding>(&action)) {
    return bytes(e->tokens) + bytes(e->positions) + 2 * bytes(e->out);
  }
  if (const auto* e = std::get_if<EmbeddingBackward>(&action)) {
    const double looked_up = static_cast<double>(e->rows * e->width * size_of(DType::f32));  // read and written
    return bytes(e->tokens) + bytes(e->dout) + bytes(e->dpositions) + 2 * looked_up;
  }
  if (const auto* a = std::get_if<AdamW>(&action); a != nullptr && a->skip.present()) {
    return bytes_touched(program, action) - bytes(a->weights);  // an update that is not skipped does not read them
  }
  if (const auto* r = std::get_if<Record>(&action)) return 2 * bytes(r->value) + 2 * bytes(r->counter);
  return bytes_touched(program, action);
}

double work_of(const Program& program, const Action& action) {
  const double flop = flop_of(action).model;
  return flop > 0 ? flop : needed_bytes(program, action);
}

std::optional<AnyAttention> attention_of(const Action& action) {
  const auto common = [](const auto& a, bool backward) {
    return AnyAttention{a.shape, backward, a.probabilities.present(), a.unseen};
  };
  if (const auto* a = std::get_if<Attention>(&action)) return common(*a, false);
  if (const auto* a = std::get_if<AttentionBackward>(&action)) return common(*a, true);
  return std::nullopt;
}

bool is_weight_gradient(const Program& program, const Matmul& product) {
  if (!product.a_scale.present()) return product.transpose_a;
  return program.buffer_of(product.out).type == DType::f32;
}

std::string destination(const ProgramSet& set, const Action& action) {
  if (const Peer* peer = peer_of(action)) return fmt::format("{}{:+d}", name_of(peer->axis), peer->offset);
  const GroupId group = group_of(action);
  return group >= 0 ? set.groups.at(group).name : "";
}

double message_bytes(const Program& program, const Action& action) {
  const auto [in, out] = transferred_by(action);
  return std::max(bytes_of(program, in), bytes_of(program, out));
}

Count count(const ProgramSet& set, const Program& program, const Times& times) {
  Count total;
  for (const Operation& op : program.step) {
    const int number = times(op);
    total.operations += number;
    if (flop_of(op.action).noncausal > 0) total.flop_kinds.insert(name_of(op.action));
    if (!is_communication(op.action)) continue;
    Traffic& t = total.traffic[{destination(set, op.action), std::string(name_of(op.action))}];
    t.messages += number;
    t.bytes += number * message_bytes(program, op.action);
    t.sent_bytes += number * sent_bytes(set, program, op.action);
  }
  return total;
}

Flop total_flop(const ProgramSet& set, const Times& times, const Which& counts) {
  const double ranks_per_role = static_cast<double>(set.layout.ranks()) / static_cast<double>(set.roles.size());
  Flop total;
  for (const Program& role : set.roles) {
    for (const Operation& op : role.step) {
      if (!counts(op)) continue;
      const Flop flop = flop_of(op.action);
      const double number = ranks_per_role * times(op);
      total.model += flop.model * number;
      total.noncausal += flop.noncausal * number;
    }
  }
  return total;
}

const char* name_of(Bound bound) {
  return bound == Bound::flop ? "FLOP" : "memory";
}

LeastTime least_time(double flop, double bytes, const DeviceRates& rates) {
  const auto at = [](double amount, double rate) { return rate > 0 ? amount / rate : 0.0; };
  return {at(flop, rates.flops), at(bytes, rates.memory_bytes_per_s)};
}

}  // namespace harness::program
