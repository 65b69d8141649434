#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "store/owner.h"
#include "store/sign_of_life.h"

namespace harness::store {

/// Something is said to the person who waits.
using Say = std::function<void(const std::string&)>;

enum class Life : std::uint8_t {
  alive,   // its process runs, or its count moved while it was watched
  dead,    // this kernel had its process and has it no more
  silent,  // its count did not move while it was watched
  ended,   // what it wrote into is gone, or says that it has ended
};

/// What a file shows of its owner at one moment.
struct Sign {
  std::optional<Owner> owner;
  std::string text;  // what changes as long as the owner lives
  std::chrono::milliseconds period{};
};

/// Reads a sign of life afresh, by opening the file: only then does NFS ask its server. Nothing: there is none left.
using Look = std::function<std::optional<Sign>()>;
/// Of a claim, whole or still being written; and of a result file, which shows none once it is complete or was stopped.
Look look_at_claim(const std::string& path);
Look look_at_result(const std::string& path);

enum class Trust : std::uint8_t {
  process,  // a running process is the writer
  count,    // only a count that moves: the file may be a copy of what the process writes
};
/// Whether the owner lives. On the boot that the owner names, his process decides at once. Elsewhere the file is
/// watched for three of its periods, 15 s at most, on the clock of this process, and no other clock counts. `say` hears
/// of it.
Life judge(const Look& look, Trust trust, const std::string& path, const Say& say);

/// How long judge() watches.
std::chrono::milliseconds watching_time(std::chrono::milliseconds period);

}  // namespace harness::store
