#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/cuda/attention.h"
#include "backend/cuda/kernels/kernels.h"
#include "base/text.h"

#ifdef HARNESS_HAS_CUDNN_FRONTEND
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>
#endif

// The only source that uses cuDNN. The graphs are cudnn-frontend's scaled dot product attention; strides let it read
// packed QKV in place.
namespace harness::cuda {

std::string cudnn_version() {
  return print_version(cudnnGetVersion());
}

// Documents: Transformer Engine, fused_attn_f16_arbitrary_seqlen.cu, takes offsets of 64 bits from 9.5 on and stats by
// token from 9.6 on; cudnn-frontend refuses grouped heads before. Tiles: the release notes of cudnn-frontend 1.16 and
// its workaround up to 9.15.0, scaled_dot_product_flash_attention.h.
std::string cudnn_too_old(std::size_t version, const AttentionForm& form) {
  constexpr std::size_t oldest = 91501, oldest_with_documents = 90600;
  if (form.documents > 0 && version < oldest_with_documents) {
    return fmt::format(
        "this is cuDNN {}, whose fused attention does not train on packed documents; install {} or newer",
        print_version(version), print_version(oldest_with_documents));
  }
  constexpr std::int64_t tile = 128;
  const bool fills_tiles = form.shape.query_length % tile == 0 && form.shape.key_length % tile == 0;
  if (version >= oldest || fills_tiles) return "";
  return fmt::format(
      "this is cuDNN {}, and before {} the backward pass of fused attention may read outside its operands where a CUDA "
      "graph is replayed and the sequence is not a multiple of {}; install {} or newer",
      print_version(version), print_version(oldest), tile, print_version(oldest));
}

#ifdef HARNESS_HAS_CUDNN_FRONTEND

namespace {

namespace fe = cudnn_frontend;

enum : std::int64_t {
  q_id = 1,
  k_id,
  v_id,
  out_id,
  stats_id,
  dout_id,
  dq_id,
  dk_id,
  dv_id,
  q_offsets_id,
  k_offsets_id,
  out_offsets_id,
  stats_offsets_id,
  lengths_id
};

void check(fe::error_t status, const char* what) {
  if (status.is_bad()) fail("cuDNN's fused attention: {} failed: {}", what, status.get_message());
}

/// Builds a graph. Packed documents are the sequences of the batch: each has its own offset from a table (cuDNN's
/// ragged offset) and its own length.
class GraphBuilder {
 public:
  explicit GraphBuilder(const AttentionForm& form) : shape_(form.shape), documents_(form.documents) {
    graph_.set_io_data_type(form.type == program::DType::f16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (documents_ == 0) return;
    query_rows_.offsets = table("q_offsets", q_offsets_id, sequences() + 1, fe::DataType_t::INT64);
    key_rows_.offsets = table("k_offsets", k_offsets_id, sequences() + 1, fe::DataType_t::INT64);
    out_rows_.offsets = table("out_offsets", out_offsets_id, sequences() + 1, fe::DataType_t::INT64);
    stats_offsets_ = table("stats_offsets", stats_offsets_id, sequences() + 1, fe::DataType_t::INT64);
    lengths_ = table("lengths", lengths_id, sequences(), fe::DataType_t::INT32);
  }

  fe::graph::Graph forward() {
    const Tensor q = input("q", q_id, query_rows_), k = input("k", k_id, key_rows_), v = input("v", v_id, key_rows_);
    auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true);
    set_common(options);
    auto [out, stats] = graph_.sdpa(q, k, v, options);
    output(out, out_id, out_rows_);
    stats->set_output(true);
    describe_stats(*stats);
    return std::move(graph_);
  }

  fe::graph::Graph backward() {
    const Tensor q = input("q", q_id, query_rows_), k = input("k", k_id, key_rows_), v = input("v", v_id, key_rows_),
                 out = input("out", out_id, out_rows_), dout = input("dout", dout_id, out_rows_);
    fe::graph::Tensor_attributes stats;
    describe_stats(stats.set_name("stats"));
    auto options = fe::graph::SDPA_backward_attributes().set_name("attention_backward");
    set_common(options);
    if (documents_ > 0) {
      options.set_max_total_seq_len_q(shape_.batch * shape_.query_length)
          .set_max_total_seq_len_kv(shape_.batch * shape_.key_length);
    }
    auto [dq, dk, dv] = graph_.sdpa_backward(q, k, v, out, dout, graph_.tensor(stats), options);
    output(dq, dq_id, query_rows_);
    output(dk, dk_id, key_rows_);
    output(dv, dv_id, key_rows_);
    return std::move(graph_);
  }

 private:
  using Tensor = std::shared_ptr<fe::graph::Tensor_attributes>;

  struct Rows {
    std::int64_t heads, length, stride;
    Tensor offsets;
  };

  std::int64_t sequences() const { return documents_ > 0 ? shape_.batch * documents_ : shape_.batch; }
  Tensor table(const char* name, std::int64_t id, std::int64_t entries, fe::DataType_t type) {
    return graph_.tensor(fe::graph::Tensor_attributes()
                             .set_name(name)
                             .set_uid(id)
                             .set_data_type(type)
                             .set_dim({entries, 1, 1, 1})
                             .set_stride({1, 1, 1, 1}));
  }
  // Dimensions in cuDNN's order: batch, head, position, element.
  void describe(fe::graph::Tensor_attributes& tensor, std::int64_t id, const Rows& rows) const {
    tensor.set_uid(id)
        .set_dim({sequences(), rows.heads, rows.length, shape_.head_dim})
        .set_stride({rows.length * rows.stride, shape_.head_dim, rows.stride, 1});
    if (documents_ > 0) tensor.set_ragged_offset(rows.offsets);
  }
  Tensor input(const char* name, std::int64_t id, const Rows& rows) {
    fe::graph::Tensor_attributes tensor;
    describe(tensor.set_name(name), id, rows);
    return graph_.tensor(tensor);
  }
  void output(const Tensor& tensor, std::int64_t id, const Rows& rows) const {
    tensor->set_output(true);
    describe(*tensor, id, rows);
  }
  void describe_stats(fe::graph::Tensor_attributes& stats) const {
    const std::int64_t heads = shape_.heads, length = shape_.query_length;
    stats.set_uid(stats_id).set_data_type(fe::DataType_t::FLOAT).set_dim({sequences(), heads, length, 1});
    if (documents_ > 0) {
      stats.set_stride({heads * length, 1, heads, 1}).set_ragged_offset(stats_offsets_);
    } else {
      stats.set_stride({heads * length, length, 1, 1});
    }
  }
  void set_common(auto& options) const {
    options.set_attn_scale(static_cast<float>(1 / std::sqrt(static_cast<double>(shape_.head_dim))));
    if (shape_.causal) {
      options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
    }
    if (documents_ > 0) options.set_padding_mask(true).set_seq_len_q(lengths_).set_seq_len_kv(lengths_);
  }

  const program::AttentionShape shape_;
  const std::int64_t documents_;
  fe::graph::Graph graph_;
  Rows query_rows_{shape_.heads, shape_.query_length, shape_.query_stride, nullptr},
      key_rows_{shape_.kv_heads(), shape_.key_length, shape_.key_stride, nullptr},
      out_rows_{shape_.heads, shape_.query_length, shape_.heads*shape_.head_dim, nullptr};
  Tensor stats_offsets_, lengths_;
};

/// Returns cudnn-frontend's reason for refusing a graph; "" if it takes it.
std::string refusal_of(fe::graph::Graph graph) {
  fe::error_t status = graph.validate();
  return status.is_bad() ? status.get_message() : "";
}

/// Returns how many kernels cuDNN proposes; without a handle, for the device properties set on the graph.
std::int64_t propose(fe::graph::Graph& graph, cudnnHandle_t handle) {
  check(graph.validate(), "the description");
  check(handle != nullptr ? graph.build_operation_graph(handle) : graph.build_operation_graph(), "the operation graph");
  check(graph.create_execution_plans({fe::HeurMode_t::A}), "asking for kernels");
  return graph.get_execution_plan_count();
}

/// A graph with its chosen execution plan.
class Plan {
 public:
  Plan(cudnnHandle_t handle, fe::graph::Graph graph, int engine, const char* direction)
      : handle_(handle), graph_(std::move(graph)) {
    const std::int64_t offered = propose(graph_, handle);
    if (offered < 1) fail("cuDNN has no fused attention ({}) for this shape; attention: unfused has", direction);
    if (engine >= offered) {
      fail("attention_engine: {}, but cuDNN offers {} kernels for the {} pass of this shape: 0 to {}, or auto", engine,
           offered, direction, offered - 1);
    }
    check(graph_.check_support(), "the support check");
    if (engine < 0) {
      check(graph_.build_plans(), "building a kernel");
    } else {
      check(graph_.build_plan_at_index(engine), "building the kernel asked for");
    }
    std::int64_t bytes = 0;
    check(graph_.get_workspace_size(bytes), "asking for the workspace");
    workspace_ = Memory(Memory::Kind::device, bytes, "cuDNN's workspace");
  }

  void run(Stream stream, std::unordered_map<std::int64_t, void*>& at) {
    if (cudnnSetStream(handle_, stream) != CUDNN_STATUS_SUCCESS) fail("cudnnSetStream failed");
    check(graph_.execute(handle_, at, workspace_.data()), "a launch");
  }

 private:
  cudnnHandle_t handle_;
  fe::graph::Graph graph_;
  Memory workspace_;
};

struct DestroyHandle {
  void operator()(cudnnContext* handle) const { static_cast<void>(cudnnDestroy(handle)); }
};

std::unique_ptr<cudnnContext, DestroyHandle> make_handle() {
  cudnnHandle_t handle = nullptr;
  const cudnnStatus_t status = cudnnCreate(&handle);
  if (status != CUDNN_STATUS_SUCCESS) fail("cudnnCreate failed: {}", cudnnGetErrorString(status));
  return std::unique_ptr<cudnnContext, DestroyHandle>(handle);
}

/// The document table on the device, and the stats in token order.
class Documents {
 public:
  explicit Documents(const AttentionForm& form)
      : form_(form),
        entries_(document_entries(form.shape.batch * form.documents)),
        stats_count_(form.shape.batch * form.shape.query_length * form.shape.heads),
        table_memory_(Memory::Kind::device,
                      entries_ * static_cast<std::int64_t>(4 * sizeof(std::int64_t) + sizeof(std::int32_t)),
                      "the table of documents"),
        stats_memory_(Memory::Kind::device, stats_count_ * program::size_of(program::DType::f32),
                      "the stats of documents"),
        stats_{stats_memory_.data(), program::DType::f32, stats_count_} {
    auto* offsets = reinterpret_cast<std::int64_t*>(table_memory_.data());
    table_ = {offsets, offsets + entries_, offsets + 2 * entries_, offsets + 3 * entries_,
              reinterpret_cast<std::int32_t*>(offsets + 4 * entries_)};
  }

  void find(Stream stream, const backend::Tensor& position_ids) const {
    find_documents(stream, position_ids, form_.shape, form_.documents, table_);
  }
  const backend::Tensor& stats() const { return stats_; }
  void add_to(std::unordered_map<std::int64_t, void*>& at) const {
    at[q_offsets_id] = table_.query;
    at[k_offsets_id] = table_.key;
    at[out_offsets_id] = table_.out;
    at[stats_offsets_id] = table_.stats;
    at[lengths_id] = table_.lengths;
    at[stats_id] = stats_.data;
  }

 private:
  const AttentionForm form_;
  const std::int64_t entries_, stats_count_;
  const Memory table_memory_, stats_memory_;
  const backend::Tensor stats_;
  DocumentTable table_{};
};

class FusedAttention : public AttentionKernel {
 public:
  FusedAttention(const AttentionForm& form, int engine) : form_(form), engine_(engine) {
    if (form.documents > 0) documents_.emplace(form);
  }

  Run forward(const backend::Bound<program::Attention>& t) override {
    if (!forward_) forward_ = std::make_unique<Plan>(handle_.get(), GraphBuilder(form_).forward(), engine_, "forward");
    std::unordered_map<std::int64_t, void*> at{
        {q_id, t.q.data}, {k_id, t.k.data}, {v_id, t.v.data}, {out_id, t.out.data}, {stats_id, t.stats.data}};
    if (!documents_) return [this, at](Stream s) mutable { forward_->run(s, at); };
    documents_->add_to(at);
    return [this, at, t](Stream s) mutable {
      documents_->find(s, t.position_ids);
      forward_->run(s, at);
      stats_by_head(s, documents_->stats(), t.stats, form_.shape);
    };
  }

  Run backward(const backend::Bound<program::AttentionBackward>& t) override {
    if (t.accumulate) fail("cuDNN's fused attention cannot add to gradients; attention: unfused can");
    if (!backward_)
      backward_ = std::make_unique<Plan>(handle_.get(), GraphBuilder(form_).backward(), engine_, "backward");
    std::unordered_map<std::int64_t, void*> at{{q_id, t.q.data},     {k_id, t.k.data},         {v_id, t.v.data},
                                               {out_id, t.out.data}, {stats_id, t.stats.data}, {dout_id, t.dout.data},
                                               {dq_id, t.dq.data},   {dk_id, t.dk.data},       {dv_id, t.dv.data}};
    if (!documents_) return [this, at](Stream s) mutable { backward_->run(s, at); };
    documents_->add_to(at);
    return [this, at, t](Stream s) mutable {
      documents_->find(s, t.position_ids);
      stats_by_token(s, t.stats, documents_->stats(), form_.shape);
      backward_->run(s, at);
    };
  }

 private:
  const AttentionForm form_;
  const int engine_;
  const std::unique_ptr<cudnnContext, DestroyHandle> handle_ = make_handle();  // outlives the plans
  std::optional<Documents> documents_;
  std::unique_ptr<Plan> forward_, backward_;
};

}  // namespace

std::string fused_attention_unavailable(const AttentionForm& form, bool backward) {
  if (form.type == program::DType::f32) {
    return "cuDNN's fused attention computes in bf16 and fp16, not in fp32 or tf32";
  }
  const int major = compute_capability() / 10;
  if (major < 8) return fmt::format("cuDNN's fused attention needs compute capability 8 or later, not {}", major);
  // cudnn-frontend 1.32, scaled_dot_product_flash_attention.h: backward refuses ragged stats on other GPUs.
  if (form.documents > 0 && major != 9 && major != 10) {
    return fmt::format("cuDNN's fused attention trains on packed documents on compute capability 9 and 10, not {}",
                       major);
  }
  std::string why = cudnn_too_old(cudnnGetVersion(), form);
  if (!why.empty()) return why;
  // What else it takes depends on the GPU and on the versions: sizes of heads, releases of cuDNN with known faults.
  why = refusal_of(GraphBuilder(form).forward());
  if (why.empty() && backward) why = refusal_of(GraphBuilder(form).backward());
  return why.empty() ? "" : "cuDNN's fused attention does not take this shape here: " + why;
}

std::unique_ptr<AttentionKernel> make_fused_attention(const AttentionForm& form, int engine) {
  return std::make_unique<FusedAttention>(form, engine);
}

std::int64_t count_fused_kernels(const AttentionForm& form, bool backward, std::string_view device) {
  auto properties = std::make_shared<fe::DeviceProperties>();
  check(properties->deserialize({device.begin(), device.end()}), "the description of the device");
  fe::graph::Graph graph = backward ? GraphBuilder(form).backward() : GraphBuilder(form).forward();
  graph.set_device_properties(properties);
  return propose(graph, nullptr);
}

#else

std::string fused_attention_unavailable(const AttentionForm& /*form*/, bool /*backward*/) {
  return "this build has no cudnn-frontend headers (`make setup` fetches them), so no fused attention";
}

std::unique_ptr<AttentionKernel> make_fused_attention(const AttentionForm& form, int /*engine*/) {
  fail("attention: fused: {}", fused_attention_unavailable(form, true));
}

std::int64_t count_fused_kernels(const AttentionForm& form, bool /*backward*/, std::string_view /*device*/) {
  fail("{}", fused_attention_unavailable(form, true));
}

#endif

}  // namespace harness::cuda
