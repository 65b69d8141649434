#include "base/called.h"

#include <cerrno>
#include <cstdlib>

#include "base/text.h"

namespace harness {

std::string called() {
  const char* by_launcher = std::getenv("HARNESS_CALLED");
  return shell_word(by_launcher != nullptr && *by_launcher != '\0' ? by_launcher : program_invocation_name);
}

}  // namespace harness
