#include "store/result_place.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "store/atomic_file.h"
#include "store/create.h"
#include "store/open_result.h"

namespace harness::store {
namespace {

std::string resolved(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const auto target = std::filesystem::weakly_canonical(path, error);
  return error ? path : target.string();
}

bool holds_text(const std::string& path, std::uint64_t offset, const std::string& text) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::array<char, 64> found{};
  return file &&
         pread(file.number(), found.data(), text.size(), static_cast<off_t>(offset)) ==
             static_cast<ssize_t>(text.size()) &&
         std::string_view(found.data(), text.size()) == text;
}

}  // namespace

ResultPlace::ResultPlace(std::string path, Purpose purpose, Space space, Say say)
    : path_(std::move(path)), purpose_(purpose), say_(std::move(say)), space_(std::move(space)) {}

std::string ResultPlace::second_name(const std::string& token) const {
  return beside(path_, ".", "." + token + ".own");
}
std::string ResultPlace::replaced_name(const std::string& token) const {
  return beside(path_, "", ".replaced-" + token + ".h5");
}

std::unique_ptr<ResultPlace> ResultPlace::take(const std::string& path, Purpose purpose, std::int64_t bytes, Say say) {
  const std::string target = resolved(path);
  if (purpose == Purpose::resume) {
    std::error_code error;
    const auto present = std::filesystem::file_size(target, error);
    if (!error) bytes = std::max(bytes, static_cast<std::int64_t>(present));
  }
  std::unique_ptr<ResultPlace> place(new ResultPlace(target, purpose, Space(target, bytes), std::move(say)));
  place->claim_ = Claim::take(target, place->say_);
  try {
    place->settle_superseded();
    place->judge_present();
    place->space_.allocate();
  } catch (...) {
    place->release();
    throw;
  }
  return place;
}

// The second names of those who left without removing them.
void ResultPlace::settle_superseded() {
  const auto present = id_of(path_);
  for (const Claim::Earlier& earlier : claim_->superseded()) {
    if (!earlier.owner) continue;
    const std::string name = second_name(earlier.owner->token);
    const auto file = id_of(name);
    if (!file) continue;
    const bool gone = earlier.life == Life::dead;
    if (gone && (!present || present == file)) {
      unlink(name.c_str());
    } else if (present != file) {
      const std::string kept = replaced_name(earlier.owner->token);
      if (std::rename(name.c_str(), kept.c_str()) == 0 && imprint_of(kept))
        say_(fmt::format("what {} had measured is in {}", describe(*earlier.owner), kept));
    }
  }
}

// The writer of the present file, who may have left no claim: it is a copy, or its claim was removed.
void ResultPlace::judge_present() {
  const auto imprint = imprint_of(path_);
  if (!imprint || imprint->state != RunState::running || !imprint->owner) return;
  const auto& known = claim_->superseded();
  const auto claimed = std::ranges::find_if(
      known, [&](const Claim::Earlier& earlier) { return earlier.owner && earlier.owner->token == imprint->token; });
  const Life life = claimed != known.end() ? claimed->life : judge(look_at_result(path_), Trust::count, path_, say_);
  if (life == Life::alive) {
    fail("{} is in use by {}: wait until that sweep has ended, or stop it; -o names another file", path_,
         describe(*imprint->owner));
  }
  if (life == Life::dead) gone_ = imprint->token;
}

std::unique_ptr<ResultFile> ResultPlace::create(const Result& plan, const ResultCapacity& capacity) {
  space_.give_back();
  AtomicFile place(path_, purpose_ == Purpose::replace);
  ImprintOffsets offsets;
  try {
    hdf5::File file = hdf5::File::create(place.temporary_path());
    place.protect();
    create_objects(file, plan, capacity);
    offsets = stamp(file, claim_->owner());
    file.close();
  } catch (const Error& error) {
    fail("cannot write {}: {}", path_, error.what());
  }
  return put_in_place(place, offsets, purpose_ == Purpose::replace);
}

std::unique_ptr<ResultFile> ResultPlace::resume() {
  space_.give_back();
  const auto old = imprint_of(path_);
  const bool ended = old && (old->state != RunState::running || (!gone_.empty() && old->token == gone_));
  AtomicFile place(path_, true);
  ImprintOffsets offsets;
  try {
    copy_file(path_, place.temporary_path());
    place.protect();
    hdf5::File file = open_result(place.temporary_path(), true);
    offsets = stamp(file, claim_->owner());
    file.close();
  } catch (const Error& error) {
    fail("{} cannot be continued: {}", path_, error.what());
  }
  auto file = put_in_place(place, offsets, !ended);
  if (ended && !old->token.empty()) unlink(second_name(old->token).c_str());
  return file;
}

std::unique_ptr<ResultFile> ResultPlace::put_in_place(AtomicFile& place, const ImprintOffsets& offsets, bool keep_old) {
  const std::string& temporary = place.temporary_path();
  const std::string second = second_name(claim_->owner().token);
  has_second_name_ = link(temporary.c_str(), second.c_str()) == 0;  // not every file system has hard links
  const auto id = id_of(temporary);
  Descriptor beats(open(temporary.c_str(), O_RDWR | O_CLOEXEC));
  if (!beats || !id) fail("cannot write {}: {}", path_, std::strerror(errno));
  auto file = ResultFile::reopen(temporary, path_);
  if (!is_mine()) give_up();
  if (keep_old) put_old_beside();
  place.put_in_place();
  file_ = id;
  token_offset_ = offsets.token;
  claim_->sign_of_life().add(beats.release(), static_cast<off_t>(offsets.beat));
  return file;
}

void ResultPlace::put_old_beside() {
  const auto old = id_of(path_);
  if (!old) return;
  const auto imprint = imprint_of(path_);
  const bool named = imprint && !imprint->token.empty();
  const std::string token = named ? imprint->token : new_token(), kept = replaced_name(token);
  const bool there = link(path_.c_str(), kept.c_str()) == 0 || id_of(kept) == old;
  if (!there && std::rename(path_.c_str(), kept.c_str()) != 0)
    fail("{} cannot be put aside as {}: {}", path_, kept, std::strerror(errno));
  const std::string second = second_name(token);
  if (named && id_of(second) == id_of(kept)) unlink(second.c_str());
  say_(fmt::format("the old {} is now {}", path_, kept));
}

bool ResultPlace::is_mine() const {
  if (!claim_->holds()) return false;
  if (!file_) return true;
  return id_of(path_) == file_ && holds_text(path_, token_offset_, claim_->owner().token);
}

void ResultPlace::give_up() {
  const std::string kept = replaced_name(claim_->owner().token);
  if (has_second_name_) {
    const std::string second = second_name(claim_->owner().token);
    if (file_) std::rename(second.c_str(), kept.c_str());
    unlink(second.c_str());  // where the two were one file, rename leaves both names; before that, it holds nothing
    has_second_name_ = false;
  }
  auto who = claim_->successor();
  if (const auto imprint = imprint_of(path_); !who && imprint && imprint->token != claim_->owner().token)
    who = imprint->owner;
  const std::string taken =
      who ? fmt::format("{} was taken over by {}, because this sweep gave no sign of life", path_, describe(*who))
          : fmt::format("{} is no longer this sweep's: it or its claim was removed or renamed", path_);
  std::string data = "; nothing was measured yet";
  if (file_)
    data = id_of(kept) == file_ && imprint_of(kept) ? "; what it measured is in " + kept : "; what it measured is lost";
  fail("{}. This sweep stops{}", taken, data);
}

void ResultPlace::release() {
  space_.give_back();
  if (has_second_name_) unlink(second_name(claim_->owner().token).c_str());
  has_second_name_ = false;
  if (claim_) claim_->release();
}

}  // namespace harness::store
