#include "every_call.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <utility>

#include "base/text.h"

namespace harness::test {
namespace {

void expect(bool holds, const mpi::Ranks& ranks, std::string_view what) {
  if (!holds) fail("rank {} of {}: {}", ranks.rank(), ranks.size(), what);
}

std::string word_of(int rank) {  // of different lengths, that of rank 0 empty
  return std::string(static_cast<std::size_t>(1000 * rank), static_cast<char>('a' + rank % 26));
}

void try_collectives(mpi::Ranks& ranks) {
  const int rank = ranks.rank(), size = ranks.size();
  std::string large(3'000'000, rank == 0 ? 'x' : 'y');  // more than a socket takes at once
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

// Every rank has something for all others, and more for the next one. One exchange follows the other at once: what is
// sent in the next must not be taken for a message of this one.
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

// Those of one sender in order, and all of them once the barrier is through.
void try_notes(mpi::Ranks& ranks) {
  constexpr int each = 20;
  const int rank = ranks.rank(), size = ranks.size();
  std::map<std::int64_t, std::int64_t> from;  // how many have come
  const auto take = [&] {
    while (const auto note = ranks.receive())
      expect(note->block == from[note->severity]++, ranks, "a note came out of order");
  };
  for (int number = 0; number < each; ++number) {
    for (int to = 0; to < size; ++to) {
      if (to != rank) ranks.send(to, {.block = number, .severity = rank});
    }
  }
  ranks.flush_notes(take);
  ranks.barrier(take);
  take();
  expect(std::ssize(from) == size - 1, ranks, "notes: of how many");
  for (const auto& [sender, count] : from) expect(count == each, ranks, "a note is missing");
}

}  // namespace

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

}  // namespace harness::test
