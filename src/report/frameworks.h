#pragma once

#include <string>
#include <utility>
#include <vector>

#include "report/proven.h"

namespace harness::report {

/// A setting as a framework spells it. Names and values are made here from typed settings: nothing of a file's text is
/// in them.
struct FrameworkWords {
  std::vector<std::pair<std::string, std::string>> flags;  // name and value; a value may be empty (a switch)
  std::string note;                                        // what else to know or do; "": nothing
  bool known = true;                                       // false: there is no equivalent; the note names what is near
};

/// Megatron-LM's command line (its main branch of August 2026): "--micro-batch-size", "4".
FrameworkWords megatron_words(const ProvenSetting& setting);
/// DeepSpeed's configuration: a dotted path into the JSON and a JSON value: "bf16.enabled", "true".
FrameworkWords deepspeed_words(const ProvenSetting& setting);
/// PyTorch: an argument of "ddp", "loader" or "torchrun" and a Python value: "ddp.bucket_cap_mb", "25".
FrameworkWords pytorch_words(const ProvenSetting& setting);

}  // namespace harness::report
