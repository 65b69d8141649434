#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "config/settings.h"

namespace harness::config {

/// What `export` writes for. The words are those of
///   megatron   Megatron-LM's command line (its main branch of August 2026): megatron/training/arguments.py, and flags
///              made from the fields of TransformerConfig and ModelParallelConfig: "--micro-batch-size", "4"
///   deepspeed  DeepSpeed's configuration (docs/_pages/config-json.md): a dotted path into the JSON and a JSON value:
///              "bf16.enabled", "true"
///   pytorch    an argument of torch.nn.parallel.DistributedDataParallel ("ddp"), torch.utils.data.DataLoader
///              ("loader") and the like, and a Python value: "ddp.bucket_cap_mb", "25"
enum class Framework : std::uint8_t { megatron, deepspeed, pytorch };

/// A setting as a framework spells it. Names and values are made from typed settings: nothing of a file's text is in
/// them.
struct FrameworkWords {
  std::vector<std::pair<std::string, std::string>> flags = {};  // name and value; a value may be empty (a switch)
  std::string note = {};                                        // what else to know or do; "": nothing
  bool known = true;  // false: there is no equivalent; the note names what is near
};

inline FrameworkWords no_word(std::string note) {
  return {{}, std::move(note), false};
}

/// A variable's words in each framework. Absent: it has none there, and nothing is near.
struct Wordings {
  using Wording = std::function<FrameworkWords(const Settings&)>;
  Wording megatron = {}, deepspeed = {}, pytorch = {};

  FrameworkWords in(Framework framework, const Settings& settings) const {
    const Wording& wording = of(framework);
    return wording ? wording(settings) : no_word("");
  }

 private:
  const Wording& of(Framework framework) const {
    if (framework == Framework::megatron) return megatron;
    return framework == Framework::deepspeed ? deepspeed : pytorch;
  }
};

/// What a variable, or one value of it, is called elsewhere, in the words of known_elsewhere_as() (synonyms.h).
struct Synonym {
  std::string word;       // in lower case, with _ between words
  std::string here = {};  // where it is not the variable's name: "layout.tensor_parallel", "precision: bf16"
};

}  // namespace harness::config
