#pragma once

#include <string>
#include <string_view>

namespace harness::config {

/// What a key of Megatron-LM, DeepSpeed, PyTorch, Hugging Face, NCCL or a benchmark is called here, or why there is
/// nothing of the kind; "" for a key of none of them. Case, leading dashes and - for _ do not matter.
std::string known_elsewhere_as(std::string_view key);

/// Why there is nothing like this key or value here, such as experts or fp8; "" for what is not known to be missing.
std::string nothing_like(std::string_view word);

}  // namespace harness::config
