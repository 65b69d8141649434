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

}  // namespace

std::vector<Variable> pipeline_variables() {
  std::vector<Variable> rows;
  rows.push_back(one_of(&Settings::pipeline_schedule, schedule_choices,
                        {.name = "pipeline_schedule",
                         .help = "the order of a pipeline stage's passes",
                         .backends = everywhere,
                         .acts_on = {Part::bubble, Part::pipeline},
                         .without_effect = without_pipeline,
                         .conflict = schedule_conflict,
                         .workloads = only_gpt}));
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
                .workloads = only_gpt}));
  return rows;
}

}  // namespace harness::config
