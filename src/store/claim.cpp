#include "store/claim.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <random>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "store/plain_file.h"

namespace harness::store {
namespace {

namespace fs = std::filesystem;

// No sweep comes so far. A file whose name says more is somebody's mistake, and no claim.
constexpr std::int64_t highest_generation = 1'000'000'000;

// Room for the largest number that may follow.
std::string claim_stem(const std::string& path) {
  std::string whole = beside(path, "", ".owner.0000000000000000000");
  whole.resize(whole.size() - 19);
  return whole;
}
std::string claim_path(const std::string& path, std::int64_t generation) {
  return claim_stem(path) + std::to_string(generation);
}

[[noreturn]] void refuse(const std::string& path, const std::optional<Owner>& owner) {
  fail("{} is in use by {}: wait until that sweep has ended, or stop it; -o names another file", path,
       owner ? describe(*owner) : "a sweep that has just begun");
}

// Two that give way to each other should not meet again at once.
void wait_a_moment() {
  std::random_device device;
  std::this_thread::sleep_for(std::chrono::milliseconds(50 + device() % 400));
}

// What has been found out of the claims on one result. Judging may take long, so each is judged once.
class Judged {
 public:
  Judged(const std::string& path, const Say& say) : path_(path), say_(say) {}

  /// The owner if he is alive, as far as he has said who he is.
  std::optional<Claim::Earlier> living(std::int64_t generation, const std::string& claim) {
    const Look look = look_at_claim(claim);
    const auto sign = look();
    if (const auto known = known_.find(generation); known != known_.end()) {
      // The same number again may be another's: whoever holds a higher one removes those below.
      if (!sign || same(known->second.owner, sign->owner)) return std::nullopt;
    }
    Claim::Earlier found{claim, sign ? sign->owner : std::nullopt, judge(look, Trust::process, path_, say_)};
    if (const auto now = look(); now && now->owner) found.owner = now->owner;
    if (found.life == Life::alive) return found;
    known_[generation] = std::move(found);
    return std::nullopt;
  }
  /// Of those below `end`, from the highest down.
  std::optional<Claim::Earlier> anyone_living(std::int64_t end) {
    auto there = claims_on(path_);
    std::erase_if(there, [&](const auto& one) { return one.first >= end; });
    for (auto one = there.rbegin(); one != there.rend(); ++one) {
      if (auto found = living(one->first, one->second)) return found;
    }
    return std::nullopt;
  }
  /// Without those that ended by themselves.
  std::vector<Claim::Earlier> left_behind() const {
    std::vector<Claim::Earlier> left;
    for (const auto& [generation, earlier] : known_) {
      if (earlier.life != Life::ended) left.push_back(earlier);
    }
    return left;
  }

 private:
  static bool same(const std::optional<Owner>& a, const std::optional<Owner>& b) {
    return a.has_value() == b.has_value() && (!a || a->token == b->token);
  }
  const std::string& path_;
  const Say& say_;
  std::map<std::int64_t, Claim::Earlier> known_;
};

}  // namespace

std::vector<std::pair<std::int64_t, std::string>> claims_on(const std::string& path) {
  const std::string stem = fs::path(claim_stem(path)).filename().string();
  std::vector<std::pair<std::int64_t, std::string>> found;
  std::error_code error;
  for (fs::directory_iterator entry(directory_of(path), error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(stem)) continue;
    std::int64_t generation = 0;
    const char* last = name.data() + name.size();
    const auto [stopped, problem] = std::from_chars(name.data() + stem.size(), last, generation);
    if (problem == std::errc{} && stopped == last && generation > 0 && generation <= highest_generation)
      found.emplace_back(generation, claim_path(path, generation));
  }
  std::ranges::sort(found);
  return found;
}

Claim::Claim(std::string path, std::int64_t generation, Owner owner)
    : path_(std::move(path)), generation_(generation), owner_(std::move(owner)) {}

// Nothing if somebody else was faster.
std::unique_ptr<Claim> Claim::create(const std::string& path, std::int64_t generation) {
  const std::string claim = claim_path(path, generation);
  Descriptor file(open(claim.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file && errno == EEXIST) return nullptr;
  if (!file) fail("{} cannot be written there: creating {} failed: {}", path, claim, std::strerror(errno));
  const Owner owner = this_process();
  const std::string text = print_beat({0, own_time(), beat_period()}) + print_owner(owner);
  if (pwrite(file.number(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      fsync(file.number()) != 0) {
    const int error = errno;
    unlink(claim.c_str());
    fail("{} cannot be written there: writing {} failed: {}", path, claim, std::strerror(error));
  }
  std::unique_ptr<Claim> created(new Claim(path, generation, owner));
  created->sign_.add(file.release(), 0);
  return created;
}

std::unique_ptr<Claim> Claim::take(const std::string& path, const Say& say) {
  Judged judged(path, say);
  std::int64_t taken = 0;  // a number that somebody has, even where this node's list of the directory does not show it
  for (int attempt = 0; attempt < 20; ++attempt) {
    if (taken > 0) {
      if (const auto other = judged.living(taken, claim_path(path, taken))) refuse(path, other->owner);
    }
    if (const auto other = judged.anyone_living(std::numeric_limits<std::int64_t>::max())) refuse(path, other->owner);
    const auto there = claims_on(path);
    const std::int64_t highest = std::max(taken, there.empty() ? 0 : there.back().first);
    std::unique_ptr<Claim> mine = create(path, highest + 1);
    if (mine == nullptr) {
      taken = highest + 1;
      continue;
    }
    taken = 0;
    // Creating it has made this node read the directory anew: now everyone who came before is in it. Where another came
    // at the same time, both withdraw, and who is first to come back has it.
    if (judged.anyone_living(mine->generation_) || !mine->holds()) {
      mine->release();
      wait_a_moment();
      continue;
    }
    mine->superseded_ = judged.left_behind();
    for (const Earlier& earlier : mine->superseded_) unlink(earlier.path.c_str());
    return mine;
  }
  fail("{}: several sweeps want to begin here at once; start one of them again", path);
}

bool Claim::holds() const {
  const auto there = claims_on(path_);
  if (!there.empty() && there.back().first > generation_) return false;
  const auto sign = look_at_claim(claim_path(path_, generation_))();
  return sign && sign->owner && sign->owner->token == owner_.token;
}

std::optional<Owner> Claim::successor() const {
  const auto there = claims_on(path_);
  if (there.empty()) return std::nullopt;
  const auto sign = look_at_claim(there.back().second)();
  if (!sign || !sign->owner || sign->owner->token == owner_.token) return std::nullopt;
  return sign->owner;
}

void Claim::release() {
  sign_.stop();
  const std::string claim = claim_path(path_, generation_);
  const auto sign = look_at_claim(claim)();
  if (sign && sign->owner && sign->owner->token == owner_.token) unlink(claim.c_str());
}

}  // namespace harness::store
