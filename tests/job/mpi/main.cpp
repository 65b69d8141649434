// The tests launch this program itself: `job …` is a supervisor that runs a few blocks and reports their outcome,
// `worker` a worker with fake work.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <thread>
#include <utility>

#include "base/identity.h"
#include "base/text.h"
#include "fake_work.h"
#include "job/mpi/mpi_job.h"
#include "job/mpi/ranks.h"
#include "worker/planted/test_fault.h"

namespace harness::test {
namespace {

// Prints the error as the program does. Returns the exit code.
int say(const Error& e) {
  if (*e.what() != '\0') std::cerr << "harness: " + std::string(e.what()) + "\n";
  return e.exit_code();
}

using Numbers = std::map<std::string, double>;

// The actions of rank 0.
void lead(job::Job& job, Numbers& number) {
  for (const job::RankPlace& p : job.places()) {
    std::cout << fmt::format("place {} local {}/{} node {}\n", p.rank, p.local_rank, p.local_ranks, p.node);
  }
  for (int i = 0; i < static_cast<int>(number["questions"]); ++i) {
    for (const std::string& answer : job.ask(fmt::format("answer {}", i))) std::cout << answer << "\n";
  }
  for (int i = 0; i < static_cast<int>(number["blocks"]) && job.stop_requests() == 0; ++i) {
    job::BlockRequest request;
    request.case_name = fmt::format("block{}", i);
    request.layout[program::Axis::data] = number["ranks"] > 0 ? static_cast<int>(number["ranks"]) : job.size();
    request.warmup_steps = 1;
    const std::array<job::Task, 3> tasks{job::TimeSteps{static_cast<int>(number["steps"])},
                                         job::RecordTimeline{.steps = 3}, job::Probe{}};
    request.task = tasks.at(static_cast<std::size_t>(number["task"]));
    request.deadlines = {number["start"], number["step"]};
    request.memory_limit_bytes = number["memory"];
    if (const char* wrap = std::getenv("LAUNCH_TEST_WRAP")) request.wrap = wrap;
    std::cout << fmt::format("begin {}", i) << std::endl;
    const bool shared = number["shared"] > 0;
    const int blocks = static_cast<int>(number["blocks"]);
    job::BlockOnSet on{{shared ? 7 : job::WorkerSet::alone, {}}, request, !shared || i + 1 == blocks};
    for (int rank = 0; rank < request.layout.ranks() && number["first"] > 0; ++rank)
      on.set.ranks.push_back(static_cast<int>(number["first"]) + rank);
    const job::BlockOutcome outcome = job.run(on);
    std::cout << fmt::format("block {} ok {} stopped {} culprit {} samples {} reason [{}]\n", i, outcome.ok,
                             outcome.stopped, outcome.culprit_rank, outcome.samples.size(), outcome.reason);
    const machine::Conditions& c = outcome.conditions;
    std::cout << fmt::format("conditions steal {} foreign {} on {}\n", c.steal_share >= 0, c.foreign_cores >= 0,
                             c.busiest_host);
    for (std::size_t rank = 0; rank < outcome.samples.size(); ++rank) {
      const job::TaskSamples& task = outcome.samples[rank].task;
      std::cout << fmt::format("sample {} setup {}", rank, outcome.setup_s > 0);
      if (const auto* timed = std::get_if<job::TimedSamples>(&task)) {
        std::cout << fmt::format(" steps {} losses {} last {}", timed->step_s.size(), timed->losses.size(),
                                 timed->losses.back());
      }
      if (const auto* timeline = std::get_if<job::TimelineSamples>(&task))
        std::cout << fmt::format(" timeline {} totals {} step {}", timeline->timeline.size(), timeline->totals.size(),
                                 timeline->step_s);
      std::cout << "\n";
      if (const auto* probe = std::get_if<job::ProbeSamples>(&task)) {
        for (const auto& [name, value] : probe->identity)
          std::cout << "identity " << rank << " " << name << "=" << value << "\n";
      }
    }
    std::cout << std::flush;
    if (number["pause"] > 0 && i == 0) {
      std::cout << "pause 0" << std::endl;
      std::this_thread::sleep_for(std::chrono::duration<double>(number["pause"]));
    }
  }
  std::cout << "end stop " << job.stop_requests() << std::endl;
}

int supervise(const std::vector<std::string>& arguments) {
  Numbers number = {{"blocks", 1}, {"ranks", 0},  {"steps", 5}, {"start", 10},    {"step", 5}, {"memory", 0},
                    {"first", 0},  {"shared", 0}, {"task", 0},  {"questions", 0}, {"pause", 0}};
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    number.at(argument.substr(0, equals)) = std::stod(argument.substr(equals + 1));
  }
  const auto job =
      mpi::join([](int rank, const std::string& question) { return fmt::format("{} to {}", question, 10 * rank); });
  int code = 0;
  try {
    if (job->rank() != 0) {
      code = job->follow();
    } else {
      try {
        lead(*job, number);
      } catch (const job::PeersLost&) {
        throw;
      } catch (const Error& e) {
        code = say(e);
      }
      job->finish(code);
    }
    job->leave();
  } catch (const job::PeersLost& e) {
    job->abandon(say(e));
  }
  return code;
}

void expect(bool holds, const mpi::Ranks& ranks, std::string_view what) {
  if (!holds) fail("rank {} of {}: {}", ranks.rank(), ranks.size(), what);
}

std::string word_of(int rank) {  // different lengths; rank 0 has an empty one
  return std::string(static_cast<std::size_t>(1000 * rank), static_cast<char>('a' + rank % 26));
}

void try_collectives(mpi::Ranks& ranks) {
  const int rank = ranks.rank(), size = ranks.size();
  std::string large(3'000'000, rank == 0 ? 'x' : 'y');  // more than a socket buffer holds
  ranks.broadcast(large, {});
  expect(large == std::string(3'000'000, 'x'), ranks, "broadcast");

  std::array<std::int64_t, 2> values{rank, -rank};
  ranks.maximum(values, {});
  expect(values == std::array<std::int64_t, 2>{size - 1, 0}, ranks, "maximum");

  std::array<std::uint64_t, 2> bits{std::uint64_t{1} << rank, 0};
  std::uint64_t of_node = 0;
  for (const int peer : ranks.node_ranks()) of_node |= std::uint64_t{1} << peer;
  ranks.node_union(bits, {});
  expect(bits == std::array<std::uint64_t, 2>{of_node, 0}, ranks, "node_union");

  const std::vector<std::string> words = ranks.gather(word_of(rank), {});
  expect(std::ssize(words) == (rank == 0 ? size : 0), ranks, "gather: how many");
  for (std::size_t i = 0; i < words.size(); ++i)
    expect(words[i] == word_of(static_cast<int>(i)), ranks, "gather: whose");
}

// Every rank sends to all others, and twice to its successor. Exchanges follow each other at once: a message of the
// next exchange must not be taken for one of this exchange.
void try_exchange(mpi::Ranks& ranks, int number) {
  const int rank = ranks.rank(), size = ranks.size();
  const auto content = [&](int from, int to) { return fmt::format("{}: {} to {}", number, from, to) + word_of(to); };
  std::vector<std::pair<int, std::string>> outgoing;
  for (int to = 0; to < size; ++to) {
    if (to != rank) outgoing.emplace_back(to, content(rank, to));
  }
  outgoing.emplace_back((rank + 1) % size, "once more");
  auto received = ranks.exchange(outgoing, {});
  std::vector<std::pair<int, std::string>> expected{{(rank + size - 1) % size, "once more"}};
  for (int from = 0; from < size; ++from) {
    if (from != rank) expected.emplace_back(from, content(from, rank));
  }
  std::ranges::sort(received);
  std::ranges::sort(expected);
  expect(received == expected, ranks, "exchange");
}

// Notes of one sender arrive in order, and all have arrived after the barrier.
void try_notes(mpi::Ranks& ranks) {
  constexpr int each = 20;
  const int rank = ranks.rank(), size = ranks.size();
  std::map<int, std::int64_t> from;  // number received, by sender
  const auto take = [&] {
    while (const auto note = ranks.receive())
      expect(note->block == from[note->stop_level]++, ranks, "a note came out of order");
  };
  for (int number = 0; number < each; ++number) {
    for (int to = 0; to < size; ++to) {
      if (to != rank) ranks.send(to, {.block = number, .stop_level = rank});
    }
  }
  ranks.flush_notes(take);
  ranks.barrier(take);
  take();
  expect(std::ssize(from) == size - 1, ranks, "notes: of how many");
  for (const auto& [sender, count] : from) expect(count == each, ranks, "a note is missing");
}

// Makes every call of mpi::Ranks, and throws Error if one violates ranks.h. At the end rank 0 prints which ranks share
// a node.
int make_every_call(mpi::Ranks& ranks) {
  for (int times = 0; times < 3; ++times) {
    try_collectives(ranks);
    for (int again = 0; again < 20; ++again) try_exchange(ranks, again);
    try_notes(ranks);
  }
  const bool is_first = ranks.rank() == ranks.node_ranks().front();
  expect(std::ranges::find(ranks.node_ranks(), ranks.rank()) != ranks.node_ranks().end(), ranks, "node_ranks");
  std::vector<std::string> nodes =
      ranks.gather(is_first ? fmt::format("{}", fmt::join(ranks.node_ranks(), "-")) : "", {});
  std::erase(nodes, "");
  if (ranks.rank() == 0) std::cout << "nodes " << join(nodes, " ") << std::endl;
  ranks.finish();
  return 0;
}

// One rank sends a note to all others, which have already begun to leave.
int leave_with_a_note_under_way(mpi::Ranks& ranks) {
  mpi::Alarms alarms(ranks, 0);
  alarms.begin_block(1);
  if (ranks.rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    alarms.raise(mpi::Alarm::stop);
  }
  alarms.close();
  ranks.finish();
  return 0;
}

// What the tests launch as `job …`.
int run_job(const std::vector<std::string>& arguments) {
  const std::string what = arguments.empty() ? "" : arguments[0];
  if (what != "late-note" && what != "every-call") return supervise(arguments);
  mpi::Ranks ranks;
  return what == "late-note" ? leave_with_a_note_under_way(ranks) : make_every_call(ranks);
}

}  // namespace
}  // namespace harness::test

int main(int argc, char** argv) {
  harness::allow_test_hooks();
  const std::string verb = argc > 1 ? argv[1] : "";
  if (verb == "worker") return harness::worker::run_worker(harness::test::with_faults(harness::test::fake_work));
  if (verb == "job") {
    try {
      return harness::test::run_job({argv + 2, argv + argc});
    } catch (const harness::Error& e) {
      return harness::test::say(e);
    }
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
