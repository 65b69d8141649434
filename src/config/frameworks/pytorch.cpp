#include <fmt/format.h>

#include "base/units.h"
#include "config/frameworks/framework.h"

namespace harness::config::pytorch {
namespace {

bool autocasts(const Settings& s) {
  return s.precision == Precision::bf16 || s.precision == Precision::fp16;
}

}  // namespace

std::vector<FrameworkRow> rows() {
  return {
      {.key = "autocast.device_type",
       .here = "precision",
       .print = [](const Settings& s) { return written_if(autocasts(s), "\"cuda\""); },
       .note =
           [](const Settings& s) {
             return s.precision == Precision::bf16
                        ? "bf16 was measured with fp32 master weights, as torch.autocast keeps them"
                        : "with torch.amp.GradScaler";
           },
       .unwritten =
           [](const Settings& s) {
             return has_fp8_products(s.precision) ? "no argument: " + with_transformer_engine(s) : "";
           }},
      {.key = "autocast.dtype", .here = "precision", .values = {{"torch.bfloat16", "bf16"}, {"torch.float16", "fp16"}}},
      {.key = "matmul.precision",
       .here = "precision",
       .values = {{"\"high\"", "tf32"}, {"\"highest\"", "fp32"}},
       .note = "torch.set_float32_matmul_precision(**matmul_options), without autocast"},
      {.key = "loader.batch_size",
       .here = "micro_batch_size",
       .note = "accumulate gradients under no_sync() up to the global batch"},
      {.key = "loader.num_workers",
       .here = "loader_workers",
       .print = [](const Settings& s) { return written_if(!s.data_file.empty(), std::to_string(s.loader_workers)); },
       .parse = same_number},
      // It is multiplied by 1024 * 1024 and cut to whole bytes, so a fraction is fine.
      {.key = "ddp.bucket_cap_mb",
       .here = "bucket_size",
       .print =
           [](const Settings& s) {
             return std::optional(fmt::format("{:.9g}", static_cast<double>(s.bucket_size_bytes) / 1048576));
           },
       .parse =
           [](std::string_view theirs) {
             return print_bytes_exact(static_cast<std::int64_t>(parse_real(theirs) * 1048576));
           },
       .note =
           [](const Settings& s) {
             return fmt::format("in MiB: {} of gradients; bf16 parameters have gradients of half the size",
                                print_bytes_exact(s.bucket_size_bytes));
           }},
      {.key = "sdpa.backends",
       .here = "attention",
       .values = {{"[torch.nn.attention.SDPBackend.CUDNN_ATTENTION]", "fused"},
                  {"[torch.nn.attention.SDPBackend.MATH]", "unfused"}},
       .note = "with torch.nn.attention.sdpa_kernel(**sdpa_options):"},
  };
}

}  // namespace harness::config::pytorch
