#pragma once

#include <string>
#include <string_view>

namespace harness::config {

/// What a key of Megatron-LM, DeepSpeed, PyTorch, Hugging Face, NCCL or a benchmark is called here, or why there is
/// nothing of the kind; "" for a key of none of them. Case, leading dashes and - for _ do not matter.
std::string known_elsewhere_as(std::string_view key);

}  // namespace harness::config
