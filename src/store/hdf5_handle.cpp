#include "store/hdf5_handle.h"

#include <hdf5.h>

#include "base/error.h"

namespace harness::store::hdf5 {
namespace {

herr_t collect(unsigned depth, const H5E_error2_t* error, void* collected) {
  auto& text = *static_cast<std::string*>(collected);
  // The stack runs from the call that failed first outwards; the innermost entries name the cause.
  if (depth < 4 && error->desc != nullptr && *error->desc != '\0') {
    if (!text.empty()) text += "; ";
    text += error->desc;
  }
  return 0;
}

std::string error_text() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &text);
  H5Eclear2(H5E_DEFAULT);
  return text.empty() ? "no reason given" : text;
}

}  // namespace

void initialise() {
  static const bool once = [] {
    // Once a disk was full, an object may fail to close and stay behind without its file; the library's clean-up at
    // exit would follow it to a null pointer. Every write is flushed and every file closed, so nothing is left to it.
    H5dont_atexit();
    check(H5open(), "starting the HDF5 library");
    check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), "starting the HDF5 library");
    return true;
  }();
  static_cast<void>(once);
}

std::int64_t check(std::int64_t result, std::string_view doing) {
  if (result < 0) fail("{} failed: HDF5 says: {}", doing, error_text());
  return result;
}

Handle::Handle(std::int64_t id, std::string_view doing) : id_(check(id, doing)) {}

Handle::~Handle() {
  // H5Idec_ref closes an identifier whatever its kind is. Nobody is left to tell of a failure here.
  if (id_ >= 0 && H5Iis_valid(id_) > 0 && H5Idec_ref(id_) < 0) H5Eclear2(H5E_DEFAULT);
}

void Handle::close(std::string_view doing) {
  const std::int64_t id = std::exchange(id_, -1);
  if (id >= 0) check(H5Idec_ref(id), doing);
}

}  // namespace harness::store::hdf5
