#include "job/mpi/fault.h"

#include <algorithm>
#include <csignal>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace harness::mpi {
namespace {

// "in step 3, matmul qkv, layer 2", "while it connected to its peers".
std::string where(const job::WorkerProgress& progress) {
  if (progress.phase != job::WorkerPhase::stepping) return describe(progress.phase);
  if (progress.step == job::WorkerProgress::unknown_step) return "while it ran steps";
  if (progress.step < 0) return "before its first step";
  std::string text = fmt::format("in step {}", progress.step);
  if (const auto operation = text_of(progress.operation); !operation.empty()) {
    text += fmt::format(", {}", operation);
  }
  return text;
}

// "signal 11 (segmentation fault)".
std::string describe_signal(int number) {
  static constexpr std::array<std::pair<int, const char*>, 7> names{
      {{SIGSEGV, "segmentation fault"},
       {SIGABRT, "abort"},
       {SIGBUS, "bus error"},
       {SIGFPE, "arithmetic exception"},
       {SIGILL, "illegal instruction: was it built for this CPU?"},
       {SIGKILL, "kill"},
       {SIGTERM, "terminate"}}};
  for (const auto& [signal, name] : names) {
    if (signal == number) return fmt::format("signal {} ({})", number, name);
  }
  return fmt::format("signal {}", number);
}

std::string what(const RankReport& r) {
  switch (r.kind) {
    case FaultKind::signal:
      return fmt::format("worker killed by {} {}{}", describe_signal(r.code), where(r.progress),
                         r.code == SIGKILL ? "; not by harness: the kernel may have run out of memory" : "");
    case FaultKind::out_of_memory:
      return fmt::format("{} {}", r.text, where(r.progress));
    case FaultKind::error:
      return r.text;
    case FaultKind::early_exit:
      return fmt::format("worker exited with code {} {}, before its samples were complete", r.code, where(r.progress));
    case FaultKind::silent:
      return fmt::format("{}; the worker does not answer: last seen {}", r.text, where(r.progress));
    case FaultKind::hung:
      return fmt::format("{}: stuck {}", r.text, where(r.progress));
    case FaultKind::waiting:
      return fmt::format("{}: every rank waits for another; this one {}", r.text, where(r.progress));
    case FaultKind::peer_lost:
      return fmt::format("{} ({})", r.text, where(r.progress));
    case FaultKind::none:
      break;
  }
  return "nothing went wrong";
}

}  // namespace

std::string_view cut_text(std::string_view text, std::size_t room, bool keep_end) {
  if (text.size() <= room) return text;
  if (keep_end) {
    std::size_t start = text.size() - room;
    while (start < text.size() && continues_character(text[start])) ++start;
    return text.substr(start);
  }
  return text.substr(0, whole_characters(text, room));
}

Blame find_culprit(const std::vector<RankReport>& reports) {
  // Among ranks with the same kind of fault, the one that got least far held up the others.
  const auto culprit = std::ranges::min_element(
      reports, {}, [](const RankReport& r) { return std::tuple(r.kind, r.progress.phase, r.progress.step, r.rank); });
  if (culprit == reports.end() || culprit->kind == FaultKind::none) return {-1, "the block was stopped", "stopped"};
  Blame blame;
  blame.culprit_rank = culprit->rank;
  blame.reason = fmt::format("rank {} on {}: {}", culprit->rank, culprit->host, what(*culprit));
  std::string words = culprit->last_words;
  std::replace_if(
      words.begin(), words.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  if (const std::string_view trimmed = trim(words); !trimmed.empty())
    blame.reason += fmt::format("; its last words: {}", trimmed);
  std::string kind = culprit->text;  // numbers (addresses, sizes, times) differ between faults of the same kind
  std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
  // Chance decides whether worker or supervisor notices first that memory has run out, and when.
  const bool memory = culprit->kind == FaultKind::out_of_memory;
  blame.signature =
      fmt::format("rank {} fault {} code {} phase {} {:016x}", culprit->rank, static_cast<int>(culprit->kind),
                  memory ? 0 : culprit->code, memory ? 0 : static_cast<int>(culprit->progress.phase),
                  culprit->kind == FaultKind::error ? fnv1a(kind) : 0);
  return blame;
}

}  // namespace harness::mpi
