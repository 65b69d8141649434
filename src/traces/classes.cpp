#include "traces/capture.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "base/text.h"

namespace harness::traces {
namespace {

// Each class is followed by its patterns: | separates alternatives, & joins parts that must all occur, ! marks a part
// that must not. Parts are searched in the lower-case name. Order matters: communication must come first, flash
// attention is written with CUTLASS, names of FBGEMM embeddings contain gemm, and rotary embeddings are not embeddings.
constexpr std::string_view rule_lines = R"(
comm.sendrecv nccl&sendrecv
comm.alltoall nccl&alltoall
comm.allreduce nccl&allreduce|nccl&all_reduce
comm.allgather nccl&allgather|nccl&all_gather
comm.reducescatter nccl&reducescatter|nccl&reduce_scatter
comm.broadcast nccl&broadcast|nccl&bcast
comm.reduce nccl&_reduce_|nccl&reducering|nccl&reduce_ring
comm.generic nccl&kernel|rccl&kernel|ncclsymk
comm.custom multimem_all_reduce|multimem_one_shot|one_shot_all_reduce|two_shot_all_reduce|cross_device_reduce
  allreduce_one_shot|trtllm_allreduce|allreduce_fusion|customallreduce|custom_all_reduce|quickreduce|twoshotallreduce
  oneshotallreduce|lamport|multimem_all_gather|multimem_reduce_scatter|symm_mem|symmetric_memory|barrier_kernel&symm
  userbuffers
comm.expert intranode&dispatch|internode&dispatch|low_latency&dispatch|intranode&combine|internode&combine
  low_latency&combine|deep_ep|hybrid_ep|hybridep|mori_ep|mori::
comm.custom nvshmem|rocshmem|mscclpp
attention fmha|sage_fwd|sage_attn|sage_bwd|reduce_segments|flash_fwd|flash_bwd|flash_fprop|flash_bprop|flashattn
  flash_attn|flash_attention|flashattention|flash::|enable_sm90&flash|collectivemainloopfwd|collectivemainloopbwd
  device_kernel<flash|cudnn_generated_fort_native_sdpa|_sdpa_|sdpa_sm|pytorch_flash|attention_kernel|fused_attention
  mem_eff|batchprefillwithpaged|batchdecodewithpaged|prefillwithkvcache|attn_fwd|attn_bwd|unified_attention
  paged_attention|attention_2d|attention_3d|triton&flex_attention|triton_tem_fused_flex|ring_attn|aiter&fwd_hd
  aiter&bwd_hd
optimizer adamfunctor|adammath|fusedadam|fused_adam|adamw|multi_tensor_apply_kernel&adam|lambfunctor|lambstage
  sgdfunctor|fusedsgd|distadam|distopt|adagradfunctor|muon|fusedoptimizer|adam_cuda|deepspeedadam|cuda_adam
  rowwise_adagrad_update
optimizer_(multi-tensor) multi_tensor_apply_kernel&!copy<|multi_tensor_l2norm|multitensor|foreach_
rotary_embedding rotary|_rope|rope_
embedding embedding|krn_partial|sum_and_scatter|compute_num_of_partial|indexselectlargeindex|indexselectsmallindex|tbe_
  bounds_check_indices|linearize_index|permute_pooled_embs|recat_copy|block_bucketize|offsets_range|fbgemm_gpu&permute
  fbgemm_gpu&segment_|fbgemm_gpu&jagged|indexing_backward|indexfunc|linearize_cache|lxu_cache
loss classnllcriterion|cross_entropy|crossentropy|nll_loss|nllloss|log_softmax|logsoftmax|liger_cross|mse_kernel
  binary_cross
convolution scudnn|cutlass&fprop|cask_cudnn|fft2d_|subtensorop|winograd|dgrad|wgrad|fprop&conv|convolve|conv2d|conv3d
  depthwise|igemm_fwd|igemm_bwd|igemm_wrw|grouped_conv|implicit_gemm&cudnn|im2col|im2d2col|col2im|vol2col|col2vol
  cudnn&conv|nchwtonhwc|nhwctonchw|batched_transpose_|xmma_fprop|conv1d|miopensp3asm|miopen&conv|gcnasmconv|naive_conv
softmax softmax
norm triton&mean&rsqrt|triton&var&rsqrt|computeinternalgradients|computebackwardfusedparams|computefusedparams
  layer_norm|layernorm|rms_norm|rmsnorm|batch_norm|batchnorm|bn_fw|bn_bw|group_norm|groupnorm|rowwisemoments|gammabeta
  l2norm|ln_fwd|ln_bwd|cudnn&norm|bnbwd|bnfwd|norm_kernel&at::native
quantisation sage_quant|fp8_quant|fp8&qparam|fp8rowwise|hfp8_to|float_to_hfp8|quantize|per_token_quant|fp8&cast
  cast_transpose|cast_kernel&transformer_engine|amax&!softmax&!argmax|mxfp&!matmul&!gemm&!bmm|nvfp4&!matmul&!gemm&!bmm
  block_scal|scaled_quant|dequant|delayed_scaling
expert_routing topkgating|moe::&!bmm|moe_align|moe_sum|moe_forward|moe_perm|bitmatrix|moesort|routing|permute_kernel
  unpermute|topk_softmax|expert&!gemm|radixtopk|histogram&moe
matrix_products nvjet|cijk_|gemm&!fbgemm_gpu|fbgemm_gpu&cutlass|gemv|cublas|cutlass&kernel|matmul|_mm_|bmm_
  splitkreduce|xmma|hmma|s16816|s1688|s884|h884|h16816|tensorop|wvsplitk|triton_tem_fused&mm|triton_mm|dot_kernel
  epilogue::impl::globalkernel|deep_gemm|grouped_mm|group_gemm|sm100_&tn|sm90_&tn|ck&xdl&cshuffle|linear_kernel
random_numbers distribution_elementwise|philox|dropout|curand|random_|bernoulli|randperm|normal_kernel
activation act_and_mul|swiglu|gelu|silu|bias_act|activation
Triton_reduction triton_red_|triton_per_
Triton_pointwise triton_poi_
Triton_template triton_tem_
Triton_other triton_|triton::
copies_on_SMs reshape_and_cache|store_kvcache|memcpy|memset|catarray|cat_array|copy_kernel|direct_copy|bfloat16_copy
  _copy_|_to_copy|index_elementwise|index_kernel|index_select|indexselect|index_put|gather|scatter|transpose|permute
  pack|roll_cuda|flip_kernel|tril|triu|copybuffer|fillbuffer|copy_page|nonzero|slice|op_tensor|optensor
  multi_tensor_apply_kernel
reduction reduce_kernel|reduce_1block|splitreduction|devicereduce|devicesegmentedreduce|reducekernel|dot_|argmax|argmin
  norm_reduce|l2norm
sort_and_scan unique|devicepartition|deviceselect|histogram|onesweep|sort|scan|runlengthencode|bucketize|topk
pooling max_pool|avg_pool|maxpool|avgpool|adaptive_average|adaptive_avg|pooling|upsample|interpolate|grid_sampler
elementwise elementwise|vectorized_|unrolled_|fillfunctor|binaryfunctor|unaryfunctor|threshold_kernel|clamp|addfunctor
  cudafunctor|pointwise|add_kernel|mul_kernel|where_kernel|arange|linspace|fused_|_fused|compare|logical|bitwise
  tensor_scalar|amp_&scale|nan_to_num|isfinite|unscale|check_finite
)";
constexpr std::string_view unknown_name = "without_a_class";

struct Rules {
  std::vector<std::string_view> names;
  std::vector<std::string> titles;
  std::vector<std::pair<Class, std::vector<std::string_view>>> list;  // a class and the parts of one alternative
  Class communication = 0;                                            // number of communication classes
};

// "comm.allreduce" as "all-reduce", "copies_on_SMs" as "copies on SMs".
std::string title_for(std::string_view name) {
  const auto title = evidence::mapped(
      "comm.sendrecv=send and receive|comm.alltoall=all-to-all|comm.allreduce=all-reduce|comm.allgather=all-gather|"
      "comm.reducescatter=reduce-scatter|comm.generic=collectives of unknown kind|comm.custom=custom collectives|"
      "comm.expert=expert communication",
      name);
  return title.value_or(replaced(name.starts_with("comm.") ? name.substr(5) : name, {{'_', " "}}));
}

Rules parse_rules() {
  Rules rules;
  const auto class_named = [&](std::string_view name) {
    const auto at = std::ranges::find(rules.names, name) - rules.names.begin();
    if (at == std::ssize(rules.names)) {
      rules.names.push_back(name);
      rules.titles.push_back(title_for(name));
    }
    return static_cast<Class>(at);
  };
  Class current = 0;
  for (const std::string_view line : split(trim(rule_lines), '\n')) {
    const std::size_t blank = line.find(' ');  // 0: the line continues the class above
    if (blank > 0) current = class_named(line.substr(0, blank));
    for (const std::string_view alternative : split(trim(line.substr(blank)), '|'))
      rules.list.emplace_back(current, split(alternative, '&'));
    if (line.starts_with("comm.")) rules.communication = static_cast<Class>(rules.names.size());
  }
  class_named(unknown_name);
  return rules;
}

const Rules& all_rules() {
  static const Rules rules = parse_rules();
  return rules;
}

// Classifies by a collective's name in its arguments: "_allgather_base", "reduce_scatter_tensor_coalesced", "recv".
Class class_of_collective(const std::string& kind) {
  if (kind == "send" || kind == "recv") return class_of("nccl sendrecv");
  for (const std::string& name :
       {"nccl" + replaced(kind, {{'_', ""}}), "nccl_" + kind + "_", std::string("ncclkernel")}) {
    if (const Class found = class_of(name); is_communication(found)) return found;
  }
  return class_of("");
}

}  // namespace

std::span<const std::string_view> class_names() {
  return all_rules().names;
}

bool is_communication(Class kernel_class) {
  return kernel_class < all_rules().communication;
}
bool is_unknown(Class kernel_class) {
  return kernel_class + 1U == all_rules().names.size();
}
std::string_view title_of(Class kernel_class) {
  return all_rules().titles[kernel_class];
}

Class class_of(std::string_view kernel) {
  const std::string name = lower(kernel);
  const auto holds = [&](std::string_view part) {
    const bool absent = part.starts_with('!');
    return (name.find(part.substr(absent ? 1 : 0)) == std::string::npos) == absent;
  };
  for (const auto& [kernel_class, parts] : all_rules().list) {
    if (std::ranges::all_of(parts, holds)) return kernel_class;
  }
  return static_cast<Class>(all_rules().names.size() - 1);
}

void classify(Capture& capture) {
  std::vector<Class> by_name(capture.names.size());
  for (std::size_t i = 0; i < by_name.size(); ++i) by_name[i] = class_of(capture.names[static_cast<std::uint32_t>(i)]);
  const Class generic = class_of("ncclkernel"), sends = class_of("nccl sendrecv"),
              elementwise = class_of("elementwise"), none = class_of("");
  std::unordered_map<std::uint32_t, Class> by_kind;
  for (Device& device : capture.devices) {
    for (GpuEvent& event : device.events) {
      event.kernel_class = event.work == Work::kernel ? by_name[event.name] : none;
      if (event.operation < 0 || event.work != Work::kernel) continue;
      const Operation& arguments = capture.operations[static_cast<std::size_t>(event.operation)];
      if (arguments.part) {  // in a trace that harness wrote
        if (is_unknown(event.kernel_class)) event.kernel_class = elementwise;
      } else if (is_unknown(event.kernel_class) || event.kernel_class == generic || event.kernel_class == sends) {
        const auto [entry, added] = by_kind.try_emplace(arguments.kind);
        if (added) entry->second = class_of_collective(capture.names[arguments.kind]);
        if (event.kernel_class != sends || entry->second != generic) event.kernel_class = entry->second;
      }
    }
  }
}

}  // namespace harness::traces
