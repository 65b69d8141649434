#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace harness::nccl {

// What NCCL's environment variables do, when it reads them and how one sees that it did. From the sources of NCCL
// 2.28.9 and NVIDIA's list of environment variables
// (https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html).

/// When a change has an effect.
enum class ReadWhen {
  process,       // once in the life of a process
  communicator,  // whenever a communicator is made
};

/// Of a variable that NCCL reads, or of a name that people set and it does not read.
struct Entry {
  std::string name;
  bool is_read = true;
  std::string what;      // what it does; of a name that is not read: what does what people want of it
  std::string fallback;  // without it
  std::string verify;    // how one sees that it took effect
  ReadWhen when = ReadWhen::process;
  std::string caution;  // what goes wrong with it; "" nothing known
};

/// Nothing for a name that is not described.
const Entry* find_entry(std::string_view name);
const std::vector<Entry>& entries();

}  // namespace harness::nccl
