#pragma once

#include <string>
#include <string_view>

#include "report/proven.h"

namespace harness::report {

enum class ExportFormat { env, megatron, deepspeed, pytorch };

/// The proven settings as a file for a shell (env, megatron), as DeepSpeed's JSON or as Python for PyTorch, each with
/// its evidence; what is not in it is listed with the reason. `file`: what the evidence calls the result file.
std::string export_text(const store::Result& result, const Proven& proven, const std::string& file,
                        ExportFormat format);

/// A word of a POSIX shell that stands for exactly this text. Throws Error for control characters, line breaks
/// included.
std::string shell_word(std::string_view text);

}  // namespace harness::report
