#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/owner.h"
#include "store/sign_of_life.h"
#include "store/watch.h"

namespace harness::store {

/// The right to write the result FILE: a file FILE.owner.N beside it, which only one process can create, with its owner
/// and his sign of life. The highest N counts. File locks are not needed, and no clocks are compared.
class Claim {
 public:
  /// One that somebody left behind, and what became of him.
  struct Earlier {
    std::string path;
    std::optional<Owner> owner;  // nothing: he died before he wrote it
    Life life = Life::silent;
  };

  /// Throws Error that names the owner if one is alive, or if the place cannot be written. Watches a silent owner for
  /// 15 s at most, and says so.
  static std::unique_ptr<Claim> take(const std::string& path, const Say& say);

  const Owner& owner() const { return owner_; }
  /// Those that this claim has superseded; their files are gone.
  const std::vector<Earlier>& superseded() const { return superseded_; }
  /// Whether it is still there, and the highest.
  bool holds() const;
  /// Who has a higher one; nothing if nobody has.
  std::optional<Owner> successor() const;
  SignOfLife& sign_of_life() { return sign_; }
  /// Removes it: the file is free. Without this, as after a kill, the next one finds out that its owner is gone.
  void release();

 private:
  Claim(std::string path, std::int64_t generation, Owner owner);
  static std::unique_ptr<Claim> create(const std::string& path, std::int64_t generation);

  std::string path_;  // of the result
  std::int64_t generation_;
  Owner owner_;
  std::vector<Earlier> superseded_;
  SignOfLife sign_;
};

/// The claims on a result that are there, as paths by generation, highest last.
std::vector<std::pair<std::int64_t, std::string>> claims_on(const std::string& path);

}  // namespace harness::store
