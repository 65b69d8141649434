#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "traces/capture.h"

namespace harness::traces {

/// A class of kernels: an index into class_names(). Those of communication come first.
using Class = std::uint8_t;

/// "comm.allreduce", "attention", "matmul", "norm" …; the last is "unknown".
std::span<const std::string_view> class_names();
bool is_communication(Class kernel_class);
bool is_unknown(Class kernel_class);

/// The class of a kernel by its name, mangled or not, of CUDA and ROCm. The first rule that fits decides.
Class class_of(std::string_view kernel);

/// The classes of all names of a capture, by number.
std::vector<Class> classes_of(const Names& names);

/// The name of a class for people: "all-reduce", "matrix products".
std::string_view title_of(Class kernel_class);

}  // namespace harness::traces
