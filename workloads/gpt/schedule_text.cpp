#include "workloads/gpt/schedule_text.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace harness::gpt {
namespace {

constexpr int most_blocks = 4;

std::string padded(std::string text, std::size_t width, char with = ' ') {
  if (text.size() < width) text.append(width - text.size(), with);
  return text;
}

// One string of cells, `width` characters for each tick.
std::string line_of(const std::vector<TimedPass>& passes, const Pipeline& pipeline, std::size_t width, int ticks) {
  std::string line;
  for (const TimedPass& timed : passes) {
    while (line.size() < timed.begin * width) line += padded(".", width);
    // What goes on for several ticks is drawn through.
    const std::size_t length = (timed.end - timed.begin) * width;
    std::string name = name_of(timed.pass, pipeline);
    if (timed.end - timed.begin > 1) name = padded(name, length - 1, '-');
    line += padded(name, length);
  }
  while (line.size() < ticks * width) line += padded(".", width);
  return line;
}

// Which blocks of ticks are drawn: all, or the first ones and the last.
std::vector<int> shown_blocks(int blocks) {
  std::vector<int> shown;
  for (int block = 0; block < blocks; ++block) {
    if (blocks <= most_blocks || block < most_blocks - 1 || block == blocks - 1) shown.push_back(block);
  }
  return shown;
}

}  // namespace

std::string name_of(const Pass& pass, const Pipeline& pipeline) {
  std::string name = fmt::format("{}{}", "FBIW"[static_cast<int>(pass.kind)], pass.micro_batch);
  if (pipeline.chunks == 1) return name;
  constexpr int letters = 26;
  if (pipeline.chunks <= letters) return name + static_cast<char>('a' + pass.chunk);
  return name + fmt::format("/{}", pass.chunk);
}

std::string bubble_text(config::PipelineSchedule schedule, const Pipeline& pipeline,
                        const std::vector<std::vector<TimedPass>>& timed) {
  const int ticks = length_of(timed), idle = ticks - busy_ticks(timed.front());
  const Schedule& known = schedule_of(schedule);
  std::string text = fmt::format("each stage has nothing to do for {} of {} ticks, {:.1f} % of the step", idle, ticks,
                                 100.0 * idle / ticks);
  if (pipeline.stages == 1) return text + " (one stage)";
  text += fmt::format("; {}, p = {}", known.bubble_formula, pipeline.stages);
  if (pipeline.chunks > 1) text += fmt::format(", v = {}", pipeline.chunks);
  text += pipeline.chunks > 1 ? fmt::format(", with passes of a stage F = B = W = {} ticks", pipeline.chunks)
                              : ", with F = B = W = 1 tick";
  if (idle != known.bubble(pipeline)) text += fmt::format(", is {}: it takes p micro-batches", known.bubble(pipeline));
  return text;
}

std::string draw(config::PipelineSchedule schedule, const Pipeline& pipeline, int columns) {
  const auto timed = timetable(schedule, pipeline);
  const int ticks = length_of(timed);
  std::size_t width = 0;
  for (const TimedPass& pass : timed.front()) width = std::max(width, name_of(pass.pass, pipeline).size() + 1);
  const std::size_t label = fmt::format("stage {}  ", pipeline.stages - 1).size();
  const int fitting = std::max(1, (columns - static_cast<int>(label)) / static_cast<int>(width));
  std::vector<std::string> lines;
  for (const auto& passes : timed) lines.push_back(line_of(passes, pipeline, width, ticks));

  std::string text;
  int before = -1;
  for (const int block : shown_blocks((ticks + fitting - 1) / fitting)) {
    if (before >= 0) text += block == before + 1 ? "\n" : "\n(and so on)\n\n";
    before = block;
    for (int stage = 0; stage < pipeline.stages; ++stage) {
      std::string line = padded(fmt::format("stage {}", stage), label);
      line += lines[stage].substr(block * fitting * width, fitting * width);
      text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
  }
  return text + "bubble: " + bubble_text(schedule, pipeline, timed) + "\n";
}

}  // namespace harness::gpt
