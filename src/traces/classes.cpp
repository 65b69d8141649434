#include "traces/capture.h"

#include <algorithm>
#include <array>
#include <string>
#include <unordered_map>

#include "base/text.h"

namespace harness::traces {
namespace {

struct Titled {
  std::string_view name, title;
};
constexpr std::array<Titled, 40> titled{{
    {"comm.sendrecv", "send and receive"},
    {"comm.alltoall", "all-to-all"},
    {"comm.allreduce", "all-reduce"},
    {"comm.allgather", "all-gather"},
    {"comm.reducescatter", "reduce-scatter"},
    {"comm.broadcast", "broadcast"},
    {"comm.reduce", "reduce"},
    {"comm.generic", "collectives of unknown kind"},
    {"comm.custom_allreduce", "all-reduce (custom)"},
    {"comm.symm", "symmetric memory"},
    {"comm.userbuffers", "userbuffers"},
    {"comm.ep_dispatch", "expert dispatch"},
    {"comm.ep_combine", "expert combine"},
    {"comm.ep_other", "expert communication"},
    {"comm.nvshmem", "NVSHMEM"},
    {"comm.mscclpp", "MSCCL++"},
    {"attention", "attention"},
    {"optimizer", "optimizer"},
    {"optimizer.multi_tensor", "optimizer (multi-tensor)"},
    {"rope", "rotary embedding"},
    {"embedding", "embedding"},
    {"loss", "loss"},
    {"conv", "convolution"},
    {"softmax", "softmax"},
    {"norm", "norm"},
    {"quant", "quantisation"},
    {"moe", "expert routing"},
    {"matmul", "matrix products"},
    {"random", "random numbers"},
    {"activation", "activation"},
    {"triton.reduce", "Triton reduction"},
    {"triton.pointwise", "Triton pointwise"},
    {"triton.template", "Triton template"},
    {"triton.other", "Triton, other"},
    {"copy", "copies on SMs"},
    {"reduce", "reduction"},
    {"sort_scan", "sort and scan"},
    {"pool", "pooling"},
    {"elementwise", "elementwise"},
    {"unknown", "without a class"},
}};
constexpr Class communication_classes = 16, unknown = titled.size() - 1;

// A class and its patterns: | separates alternatives, & joins parts that must all be there, ! marks one that must not.
// Parts are searched for in the name in lower case. Order matters: flash attention is written with CUTLASS, the names
// of FBGEMM's embeddings contain gemm, and rotary embeddings are no embeddings.
constexpr std::string_view rule_lines = R"(
comm.sendrecv nccl&sendrecv
comm.alltoall nccl&alltoall
comm.allreduce nccl&allreduce|nccl&all_reduce
comm.allgather nccl&allgather|nccl&all_gather
comm.reducescatter nccl&reducescatter|nccl&reduce_scatter
comm.broadcast nccl&broadcast|nccl&bcast
comm.reduce nccl&_reduce_|nccl&reducering|nccl&reduce_ring
comm.generic nccl&kernel|rccl&kernel|nccldevkernel|ncclkernel|ncclgenerickernel|nccl_kernel|rcclgenerickernel
comm.generic ncclsymk|ncclsymdevkernel
comm.custom_allreduce multimem_all_reduce|multimem_one_shot|one_shot_all_reduce|two_shot_all_reduce
comm.custom_allreduce cross_device_reduce|allreduce_one_shot|trtllm_allreduce|allreduce_fusion|customallreduce
comm.custom_allreduce custom_all_reduce|quickreduce|twoshotallreduce|oneshotallreduce|lamport
comm.symm multimem_all_gather|multimem_reduce_scatter|symm_mem|symmetric_memory|barrier_kernel&symm
comm.userbuffers userbuffers
comm.ep_dispatch deep_ep::&dispatch|deep_ep&dispatch|hybrid_ep&dispatch|intranode&dispatch|internode&dispatch
comm.ep_dispatch low_latency&dispatch
comm.ep_combine deep_ep::&combine|deep_ep&combine|hybrid_ep&combine|intranode&combine|internode&combine
comm.ep_combine low_latency&combine
comm.ep_other deep_ep|hybrid_ep|hybridep|mori_ep|mori::
comm.nvshmem nvshmem|rocshmem
comm.mscclpp mscclpp
attention fmha|sage_fwd|sage_attn|sage_bwd|reduce_segments|flash_fwd|flash_bwd|flash_fprop|flash_bprop|flashattn
attention flash_attn|flash_attention|flashattention|flash::|enable_sm90&flash|collectivemainloopfwd
attention collectivemainloopbwd|device_kernel<flash|cudnn_generated_fort_native_sdpa|_sdpa_|sdpa_sm|pytorch_flash
attention attention_kernel|fused_attention|mem_eff|batchprefillwithpaged|batchdecodewithpaged|prefillwithkvcache
attention attn_fwd|attn_bwd|unified_attention|paged_attention|attention_2d|attention_3d|triton&flex_attention
attention triton_tem_fused_flex|ring_attn|aiter&fwd_hd|aiter&bwd_hd
optimizer adamfunctor|adammath|fusedadam|fused_adam|adamw|multi_tensor_apply_kernel&adam|lambfunctor|lambstage
optimizer sgdfunctor|fusedsgd|distadam|distopt|adagradfunctor|muon|fusedoptimizer|adam_cuda|deepspeedadam|cuda_adam
optimizer rowwise_adagrad_update
optimizer.multi_tensor multi_tensor_apply_kernel|multi_tensor_l2norm|multitensor|foreach_
rope rotary|_rope|rope_
embedding embedding|krn_partial|sum_and_scatter|compute_num_of_partial|indexselectlargeindex|indexselectsmallindex
embedding tbe_|bounds_check_indices|linearize_index|permute_pooled_embs|recat_copy|block_bucketize|offsets_range
embedding fbgemm_gpu&permute|fbgemm_gpu&segment_|fbgemm_gpu&jagged|indexing_backward|indexfunc|linearize_cache
embedding lxu_cache
loss classnllcriterion|cross_entropy|crossentropy|nll_loss|nllloss|log_softmax|logsoftmax|liger_cross|mse_kernel
loss binary_cross
conv scudnn|cutlass&fprop|cask_cudnn|fft2d_|subtensorop|winograd|dgrad|wgrad|fprop&conv|convolve|conv2d|conv3d
conv depthwise|igemm_fwd|igemm_bwd|igemm_wrw|grouped_conv|implicit_gemm&cudnn|im2col|im2d2col|col2im|vol2col|col2vol
conv cudnn&conv|nchwtonhwc|nhwctonchw|batched_transpose_|xmma_fprop|conv1d|miopensp3asm|miopen&conv|gcnasmconv
conv naive_conv
softmax softmax
norm triton&mean&rsqrt|triton&var&rsqrt|computeinternalgradients|computebackwardfusedparams|computefusedparams
norm layer_norm|layernorm|rms_norm|rmsnorm|batch_norm|batchnorm|bn_fw|bn_bw|group_norm|groupnorm|rowwisemoments
norm gammabeta|l2norm|ln_fwd|ln_bwd|cudnn&norm|bnbwd|bnfwd|norm_kernel&at::native
quant sage_quant|fp8_quant|fp8&qparam|fp8rowwise|hfp8_to|float_to_hfp8|quantize|per_token_quant|fp8&cast
quant cast_transpose|cast_kernel&transformer_engine|amax&!softmax&!argmax|mxfp&!matmul&!gemm&!bmm
quant nvfp4&!matmul&!gemm&!bmm|block_scal|scaled_quant|dequant|delayed_scaling
moe topkgating|moe::&!bmm|moe_align|moe_sum|moe_forward|moe_perm|bitmatrix|moesort|routing|permute_kernel|unpermute
moe topk_softmax|expert&!gemm|radixtopk|histogram&moe
matmul nvjet|cijk_|gemm&!fbgemm_gpu|fbgemm_gpu&cutlass|gemv|cublas|cutlass&kernel|matmul|_mm_|bmm_|splitkreduce|xmma
matmul hmma|s16816|s1688|s884|h884|h16816|tensorop|wvsplitk|triton_tem_fused&mm|triton_mm|dot_kernel
matmul epilogue::impl::globalkernel|kernel2<cutlass|device_kernel<cutlass|deep_gemm|grouped_mm|group_gemm|sm100_&tn
matmul sm90_&tn|ck&xdl&cshuffle|linear_kernel
random distribution_elementwise|philox|dropout|curand|random_|bernoulli|randperm|normal_kernel
activation act_and_mul|swiglu|gelu|silu|bias_act|activation
triton.reduce triton_red_|triton_per_
triton.pointwise triton_poi_
triton.template triton_tem_
triton.other triton_|triton::
copy reshape_and_cache|store_kvcache|memcpy|memset|catarray|cat_array|copy_kernel|direct_copy|bfloat16_copy|_copy_
copy _to_copy|index_elementwise|index_kernel|index_select|indexselect|index_put|gather|scatter|transpose|permute
copy pack|roll_cuda|flip_kernel|tril|triu|copybuffer|fillbuffer|copy_page|nonzero|slice|op_tensor|optensor
reduce reduce_kernel|reduce_1block|splitreduction|devicereduce|devicesegmentedreduce|reducekernel|dot_|argmax|argmin
reduce norm_reduce|l2norm
sort_scan unique|devicepartition|deviceselect|histogram|onesweep|sort|scan|runlengthencode|bucketize|topk
pool max_pool|avg_pool|maxpool|avgpool|adaptive_average|adaptive_avg|pooling|upsample|interpolate|grid_sampler
elementwise elementwise|vectorized_|unrolled_|fillfunctor|binaryfunctor|unaryfunctor|threshold_kernel|clamp
elementwise addfunctor|cudafunctor|pointwise|add_kernel|mul_kernel|where_kernel|arange|linspace|fused_|_fused
elementwise compare|logical|bitwise|tensor_scalar|amp_&scale|nan_to_num|isfinite|unscale|check_finite
)";

struct Rule {
  Class kernel_class;
  std::vector<std::vector<std::string_view>> alternatives;
};

std::vector<Rule> parse_rules() {
  std::vector<Rule> rules;
  for (const std::string_view line : split(trim(rule_lines), '\n')) {
    const std::size_t blank = line.find(' ');
    const auto at = std::ranges::find(titled, line.substr(0, blank), &Titled::name);
    Rule rule{static_cast<Class>(at - titled.begin()), {}};
    for (const std::string_view alternative : split(line.substr(blank + 1), '|'))
      rule.alternatives.push_back(split(alternative, '&'));
    rules.push_back(std::move(rule));
  }
  return rules;
}

}  // namespace

std::span<const std::string_view> class_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Titled& entry : titled) all.push_back(entry.name);
    return all;
  }();
  return names;
}

bool is_communication(Class kernel_class) {
  return kernel_class < communication_classes;
}
bool is_unknown(Class kernel_class) {
  return kernel_class == unknown;
}
std::string_view title_of(Class kernel_class) {
  return titled[kernel_class].title;
}

Class class_of(std::string_view kernel) {
  static const std::vector<Rule> rules = parse_rules();
  const std::string name = lower(kernel);
  const auto holds = [&](std::string_view part) {
    const bool absent = part.starts_with('!');
    return (name.find(part.substr(absent ? 1 : 0)) == std::string::npos) == absent;
  };
  for (const Rule& rule : rules) {
    for (const auto& parts : rule.alternatives) {
      if (std::ranges::all_of(parts, holds)) return rule.kernel_class;
    }
  }
  return unknown;
}

namespace {

// By the arguments of a collective: "_allgather_base", "reduce_scatter_tensor_coalesced", "recv".
Class class_of_collective(const std::string& kind) {
  if (kind == "send" || kind == "recv") return class_of("nccl sendrecv");
  for (const std::string& name :
       {"nccl" + replaced(kind, {{'_', ""}}), "nccl_" + kind + "_", std::string("ncclkernel")}) {
    if (const Class found = class_of(name); is_communication(found)) return found;
  }
  return unknown;
}

}  // namespace

void classify(Capture& capture) {
  std::vector<Class> by_name(capture.names.size());
  for (std::size_t i = 0; i < by_name.size(); ++i) by_name[i] = class_of(capture.names[static_cast<std::uint32_t>(i)]);
  const Class generic = class_of("ncclkernel"), elementwise = class_of("elementwise");
  std::unordered_map<std::uint32_t, Class> by_kind;
  for (Device& device : capture.devices) {
    for (GpuEvent& event : device.events) {
      event.kernel_class = event.work == Work::kernel ? by_name[event.name] : unknown;
      if (event.operation < 0 || event.work != Work::kernel) continue;
      const Operation& arguments = capture.operations[static_cast<std::size_t>(event.operation)];
      if (arguments.part) {  // an operation of harness's own
        if (is_unknown(event.kernel_class)) event.kernel_class = elementwise;
      } else if (is_unknown(event.kernel_class) || event.kernel_class == generic) {
        const auto [entry, added] = by_kind.try_emplace(arguments.kind);
        if (added) entry->second = class_of_collective(capture.names[arguments.kind]);
        event.kernel_class = entry->second;
      }
    }
  }
}

}  // namespace harness::traces
