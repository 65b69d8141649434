#include "store/imprint.h"

#include "base/error.h"
#include "store/claim.h"
#include "store/open_result.h"
#include "store/table.h"

namespace harness::store {
namespace {

constexpr const char* owner_object = "/run/owner";
constexpr const char* token_object = "/run/token";
constexpr const char* beat_object = "/run/sign_of_life";
constexpr std::size_t token_bytes = 16;

void create_empty(hdf5::File& file, const char* path, std::size_t bytes) {
  if (!file.contains(path)) hdf5::create_text(file, path, "", bytes);
}

std::string text_at(const hdf5::File& file, const char* path) {
  return file.contains(path) ? hdf5::read_text(file, path) : "";
}

}  // namespace

void create_imprint(hdf5::File& file) {
  create_empty(file, owner_object, owner_bytes);
  create_empty(file, token_object, token_bytes);
  create_empty(file, beat_object, beat_bytes);
}

ImprintOffsets stamp(hdf5::File& file, const Owner& owner) {
  create_imprint(file);
  hdf5::Dataset text = file.dataset(owner_object, 0), token = file.dataset(token_object, 0),
                beat = file.dataset(beat_object, 0), state = file.dataset("/run/state", 0);
  hdf5::write_text(text, 0, print_owner(owner));
  hdf5::write_text(token, 0, owner.token);
  hdf5::write_text(beat, 0, print_beat({0, own_time(), beat_period()}));
  hdf5::write_text(state, 0, name_of(RunState::running));
  file.flush(true);
  return {token.offset(), beat.offset()};
}

Imprint read_imprint(const hdf5::File& file) {
  Imprint found;
  const std::string state = text_at(file, "/run/state");
  for (const RunState possible : {RunState::complete, RunState::partial}) {
    if (state == name_of(possible)) found.state = possible;
  }
  found.owner = parse_owner(text_at(file, owner_object));
  if (found.owner && text_at(file, token_object) == found.owner->token) found.token = found.owner->token;
  found.beat_text = text_at(file, beat_object);
  found.beat = parse_beat(found.beat_text);
  return found;
}

std::optional<Imprint> imprint_of(const std::string& path) {
  try {
    return read_imprint(open_result(path, false));
  } catch (const Error&) {
    return std::nullopt;
  }
}

namespace {

std::string last_sign(const Owner& owner, const std::optional<Beat>& beat) {
  if (!beat) return "";
  return fmt::format("last sign of life {} by the owner's clock ({})", beat->time, owner.host);
}

}  // namespace

std::string standing_of(const Imprint& imprint) {
  if (!imprint.owner) return "unfinished";
  switch (process_of(*imprint.owner)) {
    case Process::runs:
      return "running: " + describe(*imprint.owner);
    case Process::gone:
      return "killed: " + describe(*imprint.owner);
    case Process::unknown:
      break;
  }
  const std::string last = last_sign(*imprint.owner, imprint.beat);
  return last.empty() ? "unfinished" : "unfinished, " + last;
}

std::string preparation_of(const std::string& path) {
  const auto claims = claims_on(path);
  if (claims.empty()) return "";
  const auto sign = look_at_claim(claims.back().second)();
  if (!sign || !sign->owner) return "; a sweep has just begun to prepare it";
  const std::string who = describe(*sign->owner);
  switch (process_of(*sign->owner)) {
    case Process::runs:
      return " yet; in preparation: " + who;
    case Process::gone:
      return "; killed in preparation: " + who;
    case Process::unknown:
      break;
  }
  return fmt::format("; in preparation: {}; {}", who,
                     last_sign(*sign->owner, parse_beat(std::string_view(sign->text).substr(0, beat_bytes))));
}

}  // namespace harness::store
