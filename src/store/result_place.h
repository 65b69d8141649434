#pragma once

#include <memory>
#include <optional>
#include <string>

#include "store/claim.h"
#include "store/imprint.h"
#include "store/plain_file.h"
#include "store/result_file.h"
#include "store/space.h"

namespace harness::store {

/// A result file as the place of one sweep at a time, from before its preparation to its end: claimed, with space for
/// it, put under its name whole, and looked at again and again whether it is still this sweep's. Nobody writes into the
/// file of another or deletes it: whoever takes over goes on in a copy, a new inode under the old name.
class ResultPlace {
 public:
  enum class Purpose : std::uint8_t {
    create,   // where there is no file
    resume,   // goes on with an unfinished file, or adds to a complete one
    replace,  // puts a new file where there may be one
  };
  /// Claims it and allocates `bytes` beside it. Throws Error that names the owner if he lives, or that says how much
  /// space is missing. `say` hears of waiting, and where an old file has gone.
  static std::unique_ptr<ResultPlace> take(const std::string& path, Purpose purpose, std::int64_t bytes, Say say);

  /// Of the result; where it was a link, of what the link leads to.
  const std::string& path() const { return path_; }
  /// As ResultFile::create(). What was there is put beside it.
  std::unique_ptr<ResultFile> create(const Result& plan, const ResultCapacity& capacity);
  /// A copy of what is there, opened to go on with it, in its place. The old file stays beside it where its writer may
  /// still live.
  std::unique_ptr<ResultFile> resume();

  /// Whether create() or resume() has put this sweep's file in its place.
  bool has_result() const { return file_.has_value(); }
  /// Whether nobody has taken over. Opens the files afresh.
  bool is_mine() const;
  /// Once it is not: keeps what was measured under a name of its own, and throws Error that says who has the file, and
  /// where the data is. The result file has been closed.
  [[noreturn]] void give_up();
  /// At the end, whatever it is: gives the name free. To be called; the destructor leaves all as a kill would.
  void release();

 private:
  ResultPlace(std::string path, Purpose purpose, Space space, Say say);
  void settle_superseded();
  void judge_present();
  std::unique_ptr<ResultFile> put_in_place(class AtomicFile& place, const ImprintOffsets& offsets, bool keep_old);
  void put_old_beside();
  std::string second_name(const std::string& token) const;
  std::string replaced_name(const std::string& token) const;

  std::string path_;
  Purpose purpose_;
  Say say_;
  Space space_;
  std::unique_ptr<Claim> claim_;
  std::string gone_;            // the token of the present file's writer, if he is known to be gone
  std::optional<FileId> file_;  // of the own file, once it is in place
  std::uint64_t token_offset_ = 0;
  bool has_second_name_ = false;  // without, where the file system has no hard links
};

}  // namespace harness::store
