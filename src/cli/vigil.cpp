#include "cli/vigil.h"

#include "base/error.h"
#include "store/watch.h"

namespace harness::cli {

Vigil::Word Vigil::judge(const store::Imprint& imprint, Clock::time_point now) {
  const bool first = shown_.empty(), moved = imprint.token + imprint.beat_text != shown_;
  if (moved) {
    shown_ = imprint.token + imprint.beat_text;
    since_ = now;
  }
  if (!imprint.owner) return Word::unfinished;
  const store::Process process = store::process_of(*imprint.owner);
  if (process != store::Process::unknown) return process == store::Process::runs ? Word::running : Word::killed;
  if (moved) return first ? Word::unfinished : Word::running;
  const auto period = imprint.beat ? imprint.beat->period : store::beat_period();
  return now - since_ >= store::watching_time(period) ? Word::killed : word_;
}

std::string Vigil::look(const store::Imprint& imprint, Clock::time_point now) {
  const Word before = word_;
  word_ = imprint.state == store::RunState::running ? judge(imprint, now) : Word::unfinished;
  if (word_ == before || !imprint.owner) return "";
  if (word_ == Word::running) return "running: " + store::describe(*imprint.owner);
  if (word_ == Word::unfinished) return "";
  return fmt::format("killed: no sign of life from {}; `harness sweep --resume` continues the file. Ctrl-C ends this.",
                     store::describe(*imprint.owner));
}

}  // namespace harness::cli
