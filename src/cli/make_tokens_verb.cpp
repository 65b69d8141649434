#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/verbs.h"
#include "data/token_file.h"
#include "store/atomic_file.h"

namespace harness::cli {

int make_tokens(const MakeTokensOptions& options, std::ostream& out) {
  std::error_code ignored;
  if (!options.force && std::filesystem::exists(options.file, ignored))
    fail("{} exists; choose another name, or give --force to replace it", options.file);
  store::AtomicFile file(options.file, options.force);
  std::int64_t bytes = 0;
  {
    std::ofstream to(file.temporary_path(), std::ios::binary);
    file.protect();
    const auto check = [&] {
      const int error = errno;
      if (!to) fail("cannot write {}: {}", options.file, error != 0 ? std::strerror(error) : "the disk may be full");
    };
    data::make_token_file(options.tokens, options.vocabulary, options.seed, [&](std::span<const char> piece) {
      errno = 0;
      to.write(piece.data(), static_cast<std::streamsize>(piece.size()));
      check();
      bytes += static_cast<std::int64_t>(piece.size());
    });
    errno = 0;
    to.flush();
    check();
  }
  file.put_in_place();
  out << fmt::format("wrote {}: {} tokens of a vocabulary of {}, {}\n", escaped(options.file), options.tokens,
                     options.vocabulary, show_bytes(static_cast<double>(bytes)));
  return 0;
}

}  // namespace harness::cli
