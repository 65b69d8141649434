#include "store/hdf5_handle.h"

#include <hdf5.h>

#include "base/error.h"

namespace harness::store::hdf5 {
namespace {

herr_t collect(unsigned /*depth*/, const H5E_error2_t* error, void* collected) {
  if (error->desc != nullptr) *static_cast<std::string*>(collected) += std::string(error->desc) + "\n";
  return 0;
}

// The library's words are for its developers: descriptors, addresses, names of its parts. Of these, a person needs what
// the system said ("error message = 'No space left on device'"), and whether the file ends too early.
std::string reason() {
  std::string text;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, collect, &text);
  H5Eclear2(H5E_DEFAULT);
  static constexpr std::string_view before = "error message = '";
  if (const auto at = text.find(before); at != std::string::npos) {
    const auto begin = at + before.size();
    return text.substr(begin, text.find('\'', begin) - begin);
  }
  if (text.find("truncated file") != std::string::npos) return "truncated file";
  return "the HDF5 library refuses what is there";
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
  if (result < 0) fail("{} failed: {}", doing, reason());
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
