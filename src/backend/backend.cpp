#include "backend/backend.h"

namespace harness::backend {

Tuning Backend::tune(const ExecutableRequest& /*request*/) const {
  return {};
}

}  // namespace harness::backend
