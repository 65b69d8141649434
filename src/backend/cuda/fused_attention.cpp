#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/cuda/attention.h"
#include "base/error.h"

#ifdef HARNESS_HAS_CUDNN_FRONTEND
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>
#endif

// The only source that knows cuDNN. The graphs are cudnn-frontend's scaled dot product attention; packed QKV is read
// where it lies, by strides.
namespace harness::cuda {

namespace {

std::string print_version(std::size_t v) {
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

}  // namespace

std::string cudnn_version() {
  return print_version(cudnnGetVersion());
}

// Release notes of cudnn-frontend 1.16 and 1.16's own workaround up to 9.15.0 in scaled_dot_product_flash_attention.h.
std::string cudnn_too_old(std::size_t version, const program::AttentionShape& shape) {
  constexpr std::size_t oldest = 91501;
  constexpr std::int64_t tile = 128;
  const bool fills_tiles = shape.query_length % tile == 0 && shape.key_length % tile == 0;
  if (version >= oldest || fills_tiles) return "";
  return fmt::format(
      "this is cuDNN {}, and before {} the backward pass of fused attention may read outside its operands where a CUDA "
      "graph is replayed and the sequence is not a multiple of {}; install {} or newer",
      print_version(version), print_version(oldest), tile, print_version(oldest));
}

#ifdef HARNESS_HAS_CUDNN_FRONTEND

namespace {

namespace fe = cudnn_frontend;

enum : std::int64_t { q_id = 1, k_id, v_id, out_id, stats_id, dout_id, dq_id, dk_id, dv_id };

void check(fe::error_t status, const char* what) {
  if (status.is_bad()) fail("cuDNN's fused attention: {} failed: {}", what, status.get_message());
}

/// The two graphs of one shape.
class Graphs {
 public:
  Graphs(const program::AttentionShape& shape, program::DType type) : shape_(shape), type_(type) {}
  fe::graph::Graph forward() const;
  fe::graph::Graph backward() const;

 private:
  using Tensors = std::shared_ptr<fe::graph::Tensor_attributes>;

  fe::graph::Graph new_graph() const {
    fe::graph::Graph graph;
    graph.set_io_data_type(type_ == program::DType::f16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    return graph;
  }

  // Dimensions in cuDNN's order: batch, head, position, element.
  std::vector<std::int64_t> size(std::int64_t heads, std::int64_t length) const {
    return {shape_.batch, heads, length, shape_.head_dim};
  }
  std::vector<std::int64_t> strides(std::int64_t length, std::int64_t row) const {
    return {length * row, shape_.head_dim, row, 1};
  }
  std::int64_t width() const { return shape_.heads * shape_.head_dim; }
  float scale() const { return static_cast<float>(1 / std::sqrt(static_cast<double>(shape_.head_dim))); }

  Tensors input(fe::graph::Graph& graph, const char* name, std::int64_t id, std::int64_t heads, std::int64_t length,
                std::int64_t row) const {
    return graph.tensor(fe::graph::Tensor_attributes()
                            .set_name(name)
                            .set_uid(id)
                            .set_dim(size(heads, length))
                            .set_stride(strides(length, row)));
  }
  void output(const Tensors& tensor, std::int64_t id, std::int64_t heads, std::int64_t length, std::int64_t row) const {
    tensor->set_output(true).set_uid(id).set_dim(size(heads, length)).set_stride(strides(length, row));
  }
  std::vector<std::int64_t> stats_size() const { return {shape_.batch, shape_.heads, shape_.query_length, 1}; }
  std::vector<std::int64_t> stats_strides() const {
    return {shape_.heads * shape_.query_length, shape_.query_length, 1, 1};
  }

  const program::AttentionShape shape_;
  const program::DType type_;
};

fe::graph::Graph Graphs::forward() const {
  fe::graph::Graph graph = new_graph();
  const Tensors q = input(graph, "q", q_id, shape_.heads, shape_.query_length, shape_.query_stride);
  const Tensors k = input(graph, "k", k_id, shape_.kv_heads(), shape_.key_length, shape_.key_stride);
  const Tensors v = input(graph, "v", v_id, shape_.kv_heads(), shape_.key_length, shape_.key_stride);
  auto options = fe::graph::SDPA_attributes().set_name("attention").set_generate_stats(true).set_attn_scale(scale());
  if (shape_.causal) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  }
  auto [out, stats] = graph.sdpa(q, k, v, options);
  output(out, out_id, shape_.heads, shape_.query_length, width());
  stats->set_output(true)
      .set_uid(stats_id)
      .set_data_type(fe::DataType_t::FLOAT)
      .set_dim(stats_size())
      .set_stride(stats_strides());
  return graph;
}

fe::graph::Graph Graphs::backward() const {
  fe::graph::Graph graph = new_graph();
  const Tensors q = input(graph, "q", q_id, shape_.heads, shape_.query_length, shape_.query_stride);
  const Tensors k = input(graph, "k", k_id, shape_.kv_heads(), shape_.key_length, shape_.key_stride);
  const Tensors v = input(graph, "v", v_id, shape_.kv_heads(), shape_.key_length, shape_.key_stride);
  const Tensors out = input(graph, "out", out_id, shape_.heads, shape_.query_length, width());
  const Tensors dout = input(graph, "dout", dout_id, shape_.heads, shape_.query_length, width());
  const Tensors stats = graph.tensor(fe::graph::Tensor_attributes()
                                         .set_name("stats")
                                         .set_uid(stats_id)
                                         .set_data_type(fe::DataType_t::FLOAT)
                                         .set_dim(stats_size())
                                         .set_stride(stats_strides()));
  auto options = fe::graph::SDPA_backward_attributes().set_name("attention_backward").set_attn_scale(scale());
  if (shape_.causal) {
    options.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT).set_diagonal_band_right_bound(0);
  }
  auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, out, dout, stats, options);
  output(dq, dq_id, shape_.heads, shape_.query_length, shape_.query_stride);
  output(dk, dk_id, shape_.kv_heads(), shape_.key_length, shape_.key_stride);
  output(dv, dv_id, shape_.kv_heads(), shape_.key_length, shape_.key_stride);
  return graph;
}

/// One graph with the plan that was chosen for it.
class Plan {
 public:
  Plan(cudnnHandle_t handle, fe::graph::Graph graph, int engine, const char* direction)
      : handle_(handle), graph_(std::move(graph)) {
    check(graph_.validate(), "the description");
    check(graph_.build_operation_graph(handle), "the operation graph");
    check(graph_.create_execution_plans({fe::HeurMode_t::A}), "asking for kernels");
    const std::int64_t offered = graph_.get_execution_plan_count();
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

class CudnnHandle {
 public:
  CudnnHandle() {
    if (const cudnnStatus_t status = cudnnCreate(&handle_); status != CUDNN_STATUS_SUCCESS) {
      fail("cudnnCreate failed: {}", cudnnGetErrorString(status));
    }
  }
  ~CudnnHandle() { static_cast<void>(cudnnDestroy(handle_)); }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  cudnnHandle_t get() const { return handle_; }

 private:
  cudnnHandle_t handle_ = nullptr;
};

class FusedAttention : public AttentionKernel {
 public:
  FusedAttention(const program::AttentionShape& shape, program::DType type, int engine)
      : shape_(shape), type_(type), engine_(engine) {}

  Run forward(const backend::Bound<program::Attention>& t) override {
    if (!forward_)
      forward_ = std::make_unique<Plan>(handle_.get(), Graphs(shape_, type_).forward(), engine_, "forward");
    std::unordered_map<std::int64_t, void*> at{
        {q_id, t.q.data}, {k_id, t.k.data}, {v_id, t.v.data}, {out_id, t.out.data}, {stats_id, t.stats.data}};
    return [this, at](Stream s) mutable { forward_->run(s, at); };
  }

  Run backward(const backend::Bound<program::AttentionBackward>& t) override {
    if (t.accumulate) fail("cuDNN's fused attention cannot add to gradients; attention: unfused can");
    if (!backward_)
      backward_ = std::make_unique<Plan>(handle_.get(), Graphs(shape_, type_).backward(), engine_, "backward");
    std::unordered_map<std::int64_t, void*> at{{q_id, t.q.data},     {k_id, t.k.data},         {v_id, t.v.data},
                                               {out_id, t.out.data}, {stats_id, t.stats.data}, {dout_id, t.dout.data},
                                               {dq_id, t.dq.data},   {dk_id, t.dk.data},       {dv_id, t.dv.data}};
    return [this, at](Stream s) mutable { backward_->run(s, at); };
  }

 private:
  const program::AttentionShape shape_;
  const program::DType type_;
  const int engine_;
  const CudnnHandle handle_;  // outlives the plans
  std::unique_ptr<Plan> forward_, backward_;
};

}  // namespace

std::string fused_attention_unavailable(const program::AttentionShape& shape, program::DType type) {
  if (type == program::DType::f32) return "cuDNN's fused attention computes in bf16 and fp16, not in fp32 or tf32";
  return cudnn_too_old(cudnnGetVersion(), shape);
}

std::unique_ptr<AttentionKernel> make_fused_attention(const program::AttentionShape& shape, program::DType type,
                                                      int engine) {
  if (const std::string why = fused_attention_unavailable(shape, type); !why.empty()) fail("attention: fused: {}", why);
  return std::make_unique<FusedAttention>(shape, type, engine);
}

#else

std::string fused_attention_unavailable(const program::AttentionShape& /*shape*/, program::DType /*type*/) {
  return "this build has no cudnn-frontend headers (`make setup` fetches them), so no fused attention";
}

std::unique_ptr<AttentionKernel> make_fused_attention(const program::AttentionShape& shape, program::DType type,
                                                      int /*engine*/) {
  fail("attention: fused: {}", fused_attention_unavailable(shape, type));
}

#endif

}  // namespace harness::cuda
