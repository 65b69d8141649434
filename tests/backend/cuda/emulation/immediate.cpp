#include "backend/cuda/emulation/emulation.h"

namespace harness::emulation {

void submit(CUstream_st*, std::function<void()> work) {
  work();
}

}  // namespace harness::emulation
