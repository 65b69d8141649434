#include "cli/output_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "store/atomic_file.h"

namespace harness::cli {

void write_output(const std::string& path, const std::string& text, bool overwrite) {
  store::AtomicFile file(path, overwrite);
  {
    errno = 0;
    std::ofstream out(file.temporary_path(), std::ios::binary);
    file.protect();
    out << text << std::flush;
    const int error = errno;
    if (!out) fail("cannot write {}: {}", path, error != 0 ? std::strerror(error) : "the disk may be full");
  }
  file.put_in_place();
}

void check_output(const std::string& path, bool overwrite) {
  const store::AtomicFile unused(path, overwrite);
}

}  // namespace harness::cli
