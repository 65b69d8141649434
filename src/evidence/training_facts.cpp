#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "evidence/training_log.h"

// Reads the job from a training log, as described before the first step, and how it ended.

namespace harness::evidence {
namespace {

// Messages of PyTorch, NCCL, Slurm and the NVIDIA driver that end a job.
const std::vector<Text> failures = split(
    "CUDA out of memory|HIP out of memory|oom_kill event|oom-kill event|Watchdog caught collective operation timeout|"
    "NCCL error|ChildFailedError|DUE TO TIME LIMIT|CANCELLED AT|NVRM: Xid|Segmentation fault",
    '|');

// "lm loss: NAN", "'loss': 'nan'", "iter 9: loss inf,", "reduced_train_loss=nan.0", "Train loss/train/total: nan".
// Megatron-LM excludes them from its loss and prints "number of nan iterations:   1".
bool loss_is_lost(Text text) {
  const std::size_t at = text.find("loss");
  if (at == Text::npos) return false;
  Text rest = text.substr(at + 4);
  rest.remove_prefix(std::min(rest.find_first_not_of("':= \t\""), rest.size()));
  const std::string word = lower(rest.substr(0, rest.find_first_of("'\"., |)}")));
  return word == "nan" || word == "inf" || text.ends_with(": nan") ||
         integer_after(text, "number of nan iterations:").value_or(0) > 0;
}

// Names the degrees of torchtitan's mesh as it has done since the end of 2025: " dp_shard=8 tp=2" of "['dp_shard',
// 'tp'], [8, 2]", which lacks axes of one rank.
std::string named_degrees(Text text) {
  const std::size_t end = text.find("], [");
  if (end == Text::npos) return std::string(text);
  const std::vector<Text> names = split(text.substr(0, end), ','), degrees = split(text.substr(end + 4), ',');
  std::string named;
  for (std::size_t i = 0; i < std::min(names.size(), degrees.size()); ++i)
    named += fmt::format(" {}={}", replaced(names[i], {{'[', ""}, {'\'', ""}, {' ', ""}}), trim(degrees[i]));
  return named;
}

}  // namespace

// "  hidden_size ..................................... 4096"
bool TrainingLogReader::argument(Text text) {
  if (contains(text, "end of arguments")) {
    in_arguments_ = false;
    return true;
  }
  const std::size_t dots = text.find(" ...");
  if (dots == Text::npos) return false;
  const Text name = trim(text.substr(0, dots));
  const std::size_t value = text.find_first_not_of('.', dots + 1);
  constexpr std::size_t most = 4096;
  if (value == Text::npos || name.empty() || name.size() > 64 || log_.arguments.size() >= most) return true;
  const Text said = text.substr(value, 256);  // GPT-NeoX: "1......................default"
  log_.arguments[std::string(name)] = trim(said.substr(0, said.find("....")));
  return true;
}

bool TrainingLogReader::description(Text text) {
  if (contains(text, "- arguments -")) {
    in_arguments_ = true;
    return true;
  }
  struct Row {
    Text marks, label;  // marks: required parts separated by '&'
    const char* ours;
  };
  // Megatron-LM: "using world size: 8, data-parallel size: 8, …", "> padded vocab (size: 50257) with 47 dummy tokens
  // (new size: 50304)"; the Hugging Face Trainer: "  Total train batch size (w. parallel, …) = 1,024"; torchtitan:
  // "Training starts at step 1. with local batch size 1, global batch size 64, gradient accumulation steps 1, sequence
  // length 8192, …", since 2025 "Trainer is initialized with local batch …"
  static constexpr std::array<Row, 12> rows{{{"using world size:", "world size:", "ranks"},
                                             {"using world size:", "data-parallel size:", "dp"},
                                             {"using world size:", "data-parallel-size:", "dp"},  // until 2023
                                             {"using world size:", "context-parallel size:", "cp"},
                                             {"using world size:", "tensor-model-parallel size:", "tp"},
                                             {"using world size:", "pipeline-model-parallel size:", "pp"},
                                             {"padded vocab (size:", "new size:", "vocab"},
                                             {"Total train batch size (", "= ", "global_batch"},
                                             {"Instantaneous batch size per device =", "= ", "micro_batch"},
                                             {"local batch size&sequence length", "local batch size", "micro_batch"},
                                             {"local batch size&sequence length", "global batch size", "global_batch"},
                                             {"local batch size&sequence length", "sequence length", "sequence"}}};
  bool any = false;
  for (const Row& row : rows) {
    if (!has_all(text, row.marks)) continue;
    size(row.ours, integer_after(text, row.label));
    any = true;
  }
  if (any) return true;
  if (Cursor c{text}; c.after("Building ") && c.after("device mesh with ")) {
    mesh(c.rest);
    return true;
  }
  // torchtitan: "CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory", in 2024 "GPU capacity: NVIDIA H100 80GB
  // HBM3 (0) with …"
  if (Cursor c{text}; log_.gpu.empty() && c.after(" capacity: ") && contains(c.rest, "GiB memory")) {
    c.literal("NVIDIA ");
    log_.gpu = std::string(c.rest.substr(0, std::min<std::size_t>({c.rest.find(" with "), c.rest.find(" ("), 64})));
    return true;
  }
  return false;
}

// torchtitan: "parallelism: pp=1, dp_replicate=1, dp_shard=64, cp=1, tp=1, ep=1, etp=1".
void TrainingLogReader::mesh(Text text) {
  constexpr std::int64_t most = 1 << 20;
  const std::string named = named_degrees(text);
  const auto degree = [&](const char* name) {
    return std::clamp<std::int64_t>(integer_after(named, fmt::format(" {}=", name)).value_or(1), 1, most);
  };
  std::int64_t shard = degree("dp_shard"), replicas = degree("dp_replicate");
  for (const char* part : {"dp_shard_mod_ep", "dp_shard_in_ep"}) shard = std::min(shard * degree(part), most);
  const std::int64_t either = degree("dp");  // in 2024, of FSDP or of DDP
  replicas = std::min(std::min(replicas * either, most) * shard, most);
  const std::int64_t tensor = std::min(degree("tp") * degree("sp"), most);  // "sp" in early 2024
  for (const char* axis : {"pp", "cp"}) size(axis, degree(axis));
  size("tp", tensor);
  size("dp", replicas);
  size("ranks", replicas * degree("cp") * std::min(tensor * degree("pp"), most));
  if (either == 1) log_.words["sharding"] = shard > 1 ? "parameters" : "none";
}

// Reads the batch and its division, as frameworks announce them before the first step.
bool TrainingLogReader::batch(Text text) {
  // Megatron-LM's progress line, broken by the terminal or an editor.
  if (const std::int64_t said = global_batch_in(text); said > 0) {
    if (log_.size("global_batch") == 0) size("global_batch", said);
    return true;
  }
  if (contains(text, "Total optimization steps =")) {
    announced_steps_ = integer_after(text, "steps =").value_or(0);
    return true;
  }
  // DeepSpeed's dump of its configuration: "[config.py:1003:print]   train_batch_size ............. 32"
  Cursor c{text};
  if (!c.after("[config.py:") || !c.after("print] ")) return false;
  c.skip_blanks();
  const Text name = c.word();
  const std::size_t value = c.rest.find_first_not_of(". ");
  const auto ours = mapped("train_batch_size=global_batch|train_micro_batch_size_per_gpu=micro_batch", name);
  if (ours && value != Text::npos) size(ours->c_str(), integer_after(c.rest.substr(value), ""));
  return true;
}

void TrainingLogReader::failure(const Line& line, bool is_known) {
  const auto found = std::ranges::find_if(failures, [&](Text what) { return contains(line.text, what); });
  std::string what = loss_is_lost(line.text) ? "the loss is nan or inf" : "";
  if (!is_known && found != failures.end()) what = *found;
  if (what.empty()) return;
  // PyTorch's watchdog names the collective: "… timeout: WorkNCCL(SeqNum=216, OpType=ALLREDUCE, NumelIn=…"
  if (Cursor c{line.text}; c.after("WorkNCCL(") && c.after("OpType="))
    what += fmt::format(" of {}", c.until(",)").substr(0, 40));
  constexpr std::size_t most = 64;
  if (log_.failures.size() >= most && !log_.failures.contains(what)) return;
  TrainingLog::Failure& row = log_.failures[what];
  if (row.count++ == 0) row.line = line.number;
}

}  // namespace harness::evidence
