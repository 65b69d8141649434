#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "store/hdf5_file.h"
#include "store/owner.h"
#include "store/result.h"
#include "store/sign_of_life.h"

namespace harness::store {

/// What a result file says of its writer: /run/owner, /run/token and /run/sign_of_life. Older files say nothing.
struct Imprint {
  RunState state = RunState::running;
  std::optional<Owner> owner;
  std::string token;         // "": none
  std::optional<Beat> beat;  // the last one
  std::string beat_text;     // as it stands there: what changes while the owner lives
};

/// Where the two lie in the file, for plain reads and writes.
struct ImprintOffsets {
  std::uint64_t token = 0, beat = 0;
};

/// Makes the three objects, empty, unless the file has them.
void create_imprint(hdf5::File& file);
/// Makes the file this owner's, and running.
ImprintOffsets stamp(hdf5::File& file, const Owner& owner);
Imprint read_imprint(const hdf5::File& file);
/// Of a result file that may be anything; nothing if it cannot be read as a result.
std::optional<Imprint> imprint_of(const std::string& path);

/// Of a file whose state is running, what can be said without waiting: "running: OWNER" or "killed: OWNER …" where this
/// kernel knows the process, else "unfinished" and when the owner last gave a sign of life, by his own clock.
std::string standing_of(const Imprint& imprint);

/// Of a path where there is no file: "; in preparation: OWNER" if a sweep has claimed it, else "".
std::string preparation_of(const std::string& path);

}  // namespace harness::store
