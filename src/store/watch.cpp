#include "store/watch.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "base/error.h"
#include "store/imprint.h"
#include "store/plain_file.h"

namespace harness::store {

std::chrono::milliseconds watching_time(std::chrono::milliseconds period) {
  using std::chrono::milliseconds;
  return std::clamp<milliseconds>(3 * period, milliseconds(100), milliseconds(15000));
}

// The beat is the first line, the owner the rest.
Look look_at_claim(const std::string& path) {
  return [path]() -> std::optional<Sign> {
    const auto text = read_plain(path);
    if (!text) return std::nullopt;
    Sign sign{std::nullopt, *text, beat_period()};
    if (text->size() <= beat_bytes) return sign;
    sign.owner = parse_owner(std::string_view(*text).substr(beat_bytes));
    if (const auto beat = parse_beat(std::string_view(*text).substr(0, beat_bytes))) sign.period = beat->period;
    return sign;
  };
}

Look look_at_result(const std::string& path) {
  return [path]() -> std::optional<Sign> {
    const auto imprint = imprint_of(path);
    if (!imprint || imprint->state != RunState::running) return std::nullopt;
    return Sign{imprint->owner, imprint->token + imprint->beat_text,
                imprint->beat ? imprint->beat->period : beat_period()};
  };
}

Life judge(const Look& look, Trust trust, const std::string& path, const Say& say) {
  using Clock = std::chrono::steady_clock;
  const auto first = look();
  if (!first) return Life::ended;
  if (first->owner) {
    const Process process = process_of(*first->owner);
    if (process == Process::gone) return Life::dead;
    if (process == Process::runs && trust == Trust::process) return Life::alive;
  }
  const auto time = watching_time(first->period);
  const std::string who = first->owner ? describe(*first->owner) : "a process that has not said who it is";
  say(fmt::format("{} is claimed by {}; watching for {:.0f} s at most for a sign of life", path, who,
                  std::ceil(std::chrono::duration<double>(time).count())));
  const auto nap = std::clamp(time / 30, std::chrono::milliseconds(10), std::chrono::milliseconds(500));
  for (const auto end = Clock::now() + time; Clock::now() < end;) {
    std::this_thread::sleep_for(nap);
    const auto now = look();
    if (!now) return Life::ended;
    if (now->text != first->text) return Life::alive;
  }
  return Life::silent;
}

}  // namespace harness::store
