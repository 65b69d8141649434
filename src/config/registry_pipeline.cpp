#include <array>

#include "base/error.h"
#include "config/choice.h"
#include "config/fields.h"
#include "config/registry_rows.h"

namespace harness::config {
namespace {

constexpr std::array<Choice<PipelineSchedule>, 3> schedule_choices{
    {{"1f1b", PipelineSchedule::one_forward_one_backward},
     {"gpipe", PipelineSchedule::gpipe},
     {"interleaved", PipelineSchedule::interleaved}}};
constexpr int max_chunks = 1024;

std::string without_pipeline(const Settings& s) {
  return s.layout[program::Axis::pipeline] > 1 ? ""
                                               : "pipeline_parallel is 1: there is no bubble, only memory can differ";
}

std::string schedule_conflict(const Settings& s) {
  if (s.pipeline_schedule != PipelineSchedule::interleaved || s.layout[program::Axis::pipeline] > 1) return "";
  return fmt::format("pipeline_schedule {} needs two stages or more; change pipeline_parallel (layout) with it",
                     print_choice(s.pipeline_schedule, schedule_choices));
}

std::string chunks_conflict(const Settings& s) {
  if (s.virtual_pipeline == 0 || s.pipeline_schedule == PipelineSchedule::interleaved) return "";
  return fmt::format("virtual_pipeline {} needs pipeline_schedule interleaved, not {}; change both together (combine)",
                     s.virtual_pipeline, print_choice(s.pipeline_schedule, schedule_choices));
}

std::string without_chunks(const Settings& s) {
  if (s.pipeline_schedule == PipelineSchedule::interleaved) return "";
  return "pipeline_schedule is not interleaved, so a stage is one chunk";
}

// Names of schedules as these frameworks have them: Megatron-LM's megatron/core/pipeline_parallel/schedules.py,
// DeepSpeed's deepspeed/runtime/pipe/schedule.py, PyTorch's torch/distributed/pipelining/schedules.py.
FrameworkWords schedule_for_megatron(const Settings& s) {
  switch (s.pipeline_schedule) {
    case PipelineSchedule::one_forward_one_backward:
      return no_word("the default with --pipeline-model-parallel-size, without virtual stages");
    case PipelineSchedule::interleaved:
      return {{{"--num-virtual-stages-per-pipeline-rank", std::to_string(s.chunks_of_stage())}}};
    case PipelineSchedule::gpipe:
      break;
  }
  return no_word("Megatron-LM has 1F1B and interleaved 1F1B alone");
}
FrameworkWords schedule_for_deepspeed(const Settings& s) {
  if (s.pipeline_schedule == PipelineSchedule::one_forward_one_backward)
    return no_word("PipelineModule runs 1F1B (TrainSchedule)");
  return no_word("PipelineModule has 1F1B alone (TrainSchedule)");
}
FrameworkWords schedule_for_pytorch(const Settings& s) {
  switch (s.pipeline_schedule) {
    case PipelineSchedule::one_forward_one_backward:
      return no_word("no argument: torch.distributed.pipelining.Schedule1F1B");
    case PipelineSchedule::gpipe:
      return no_word("no argument: torch.distributed.pipelining.ScheduleGPipe");
    case PipelineSchedule::interleaved:
      return no_word(
          fmt::format("no argument: torch.distributed.pipelining.ScheduleInterleaved1F1B with {} stages on "
                      "each rank",
                      s.chunks_of_stage()));
  }
  return {};
}

FrameworkWords chunks_for_megatron(const Settings& s) {
  if (s.virtual_pipeline == 0) return no_word("pipeline_schedule decides");
  return schedule_for_megatron(s);
}
FrameworkWords chunks_for_pytorch(const Settings& s) {
  if (s.virtual_pipeline == 0) return no_word("pipeline_schedule decides");
  return schedule_for_pytorch(s);
}

}  // namespace

std::vector<Variable> pipeline_variables() {
  std::vector<Variable> rows;
  rows.push_back(
      one_of(&Settings::pipeline_schedule, schedule_choices,
             {.name = "pipeline_schedule",
              .help = "the order of a pipeline stage's passes",
              .backends = everywhere,
              .acts_on = {Part::bubble, Part::pipeline},
              .without_effect = without_pipeline,
              .conflict = schedule_conflict,
              .workloads = only_gpt,
              .words = {.megatron = schedule_for_megatron,
                        .deepspeed = schedule_for_deepspeed,
                        .pytorch = schedule_for_pytorch},
              .synonyms = {{"pp_schedule"}, {"pipeline_parallel_schedule"}, {"schedule"}, {"pipe_schedule"}}}));
  rows.push_back(
      whole_or("auto", &Settings::virtual_pipeline, 2, max_chunks,
               {.name = "virtual_pipeline",
                .unit = "chunks",
                .help = "chunks of layers on each stage with pipeline_schedule interleaved, which divide the bubble "
                        "and multiply the messages between stages; auto is 2 there",
                .backends = everywhere,
                .acts_on = {Part::bubble, Part::pipeline},
                .without_effect = without_chunks,
                .conflict = chunks_conflict,
                .workloads = only_gpt,
                .words = {.megatron = chunks_for_megatron, .pytorch = chunks_for_pytorch},
                .synonyms = {{"virtual_pipeline_model_parallel_size"},
                             {"virtual_pipeline_parallel_size"},
                             {"num_virtual_stages_per_pipeline_rank"},
                             {"num_layers_per_virtual_pipeline_stage", "virtual_pipeline, in chunks of a stage"},
                             {"vpp"}}}));
  return rows;
}

}  // namespace harness::config
