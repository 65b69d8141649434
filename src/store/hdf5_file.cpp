#include "store/hdf5_file.h"

#include <fcntl.h>
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

#include "base/text.h"
#include "base/units.h"

namespace harness::store::hdf5 {
namespace {

herr_t collect(unsigned /*depth*/, const H5E_error2_t* error, void* collected) {
  if (error->desc != nullptr) *static_cast<std::string*>(collected) += std::string(error->desc) + "\n";
  return 0;
}

// The library's messages are for its developers: descriptors, addresses, names of its modules. Users need only what the
// system said ("error message = 'No space left on device'"), and whether the file ends too early.
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

// Starts the library without its error output. Cheap; called before each first use.
void initialise() {
  static const bool once = [] {
    // After a full disk, an object may fail to close and outlive its file; the library's clean-up at exit would then
    // follow a null pointer. Every write is flushed and every file closed, so no clean-up is needed.
    H5dont_atexit();
    check(H5open(), "starting the HDF5 library");
    check(H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr), "starting the HDF5 library");
    return true;
  }();
  static_cast<void>(once);
}

Handle access_properties() {
  initialise();
  Handle properties(H5Pcreate(H5P_FILE_ACCESS), "preparing a file");
  // A leaked handle must not keep the file open.
  check(H5Pset_fclose_degree(properties.id(), H5F_CLOSE_STRONG), "preparing a file");
  // The format that every reader supports. `latest` marks a file as open for writing, and the mark survives a killed
  // writer.
  check(H5Pset_libver_bounds(properties.id(), H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST), "preparing a file");
  // Page-aligned data: a killed process writes a row within one page either completely or not at all.
  check(H5Pset_alignment(properties.id(), 1024, 4096), "preparing a file");
  // Locks fail on NFS and Lustre without flock and would shut out readers. If the user has set HDF5_USE_FILE_LOCKING,
  // it counts: it overrides the property, and setenv leaves it alone.
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 12, 0))
  check(H5Pset_file_locking(properties.id(), false, true), "preparing a file");
#else
  setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
#endif
  return properties;
}

// Each dataset lies within the file, but a sparse file of a few kilobytes can claim gigabytes of zeros, which would
// fill the memory. Compressing file systems store a few times more than a file occupies.
void require_stored(const std::string& path) {
  constexpr double least_bytes = 256 << 20, most_times = 16, bytes_of_block = 512;  // as stat() counts
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) fail("opening {} failed: {}", path, std::strerror(errno));
  const auto claimed = static_cast<double>(status.st_size);
  if (claimed > least_bytes + most_times * bytes_of_block * static_cast<double>(status.st_blocks))
    fail("it claims {}, far more than it stores: it is sparse", show_bytes(claimed));
}

}  // namespace

std::int64_t check(std::int64_t result, std::string_view doing) {
  if (result < 0) fail("{} failed: {}", doing, reason());
  return result;
}

Handle::Handle(std::int64_t id, std::string_view doing) : id_(check(id, doing)) {}

Handle::~Handle() {
  // H5Idec_ref closes an identifier of any kind. A destructor cannot report a failure.
  if (id_ >= 0 && H5Iis_valid(id_) > 0 && H5Idec_ref(id_) < 0) H5Eclear2(H5E_DEFAULT);
}

void Handle::close(std::string_view doing) {
  const std::int64_t id = std::exchange(id_, -1);
  if (id >= 0) check(H5Idec_ref(id), doing);
}

std::uint64_t Dataset::values_of_row() const {
  const auto further = sizes_.empty() ? sizes_.end() : sizes_.begin() + 1;
  return std::accumulate(further, sizes_.end(), std::uint64_t{1}, std::multiplies());
}

void Dataset::require_kind(Kind kind) const {
  if (element_.table || (element_.fields.at(0).kind == Kind::text) != (kind == Kind::text)) {
    fail("{} does not hold {}", path_, kind == Kind::text ? "text" : "numbers");
  }
}

void Dataset::transfer(bool write, const Element& element, std::uint64_t first, std::uint64_t count,
                       void* memory) const {
  if (count == 0) return;
  const std::string doing = (write ? "writing " : "reading ") + path_;
  if (first > rows() || count > rows() - first) {
    fail("{} failed: rows {} to {} do not exist; it has {} rows", doing, first, first + count - 1, rows());
  }
  const Handle type = type_of(element, Place::memory);
  const Handle file_space(H5Dget_space(handle_.id()), doing);
  Handle memory_space(H5Scopy(file_space.id()), doing);
  if (!sizes_.empty()) {
    std::vector<hsize_t> start(sizes_.size(), 0), extent(sizes_.begin(), sizes_.end());
    start[0] = first;
    extent[0] = count;
    if (std::find(extent.begin(), extent.end(), 0u) != extent.end()) return;
    check(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, start.data(), nullptr, extent.data(), nullptr), doing);
    memory_space = Handle(H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr), doing);
  }
  if (write) {
    check(H5Dwrite(handle_.id(), type.id(), memory_space.id(), file_space.id(), H5P_DEFAULT, memory), doing);
  } else {
    if (!element.table) require_kind(element.fields.at(0).kind);
    check(H5Dread(handle_.id(), type.id(), memory_space.id(), file_space.id(), H5P_DEFAULT, memory), doing);
  }
}

void Dataset::write(const Element& element, std::uint64_t first, std::uint64_t count, const void* from) {
  transfer(true, element, first, count, const_cast<void*>(from));  // H5Dwrite only reads it
}

std::vector<char> Dataset::read(const Element& element, std::uint64_t first, std::uint64_t count) const {
  std::vector<char> bytes(count * element.bytes * values_of_row());
  transfer(false, element, first, count, bytes.data());
  return bytes;
}

bool File::is_hdf5(const std::string& path) {
  initialise();
  return H5Fis_hdf5(path.c_str()) > 0;
}

File File::create(const std::string& path) {
  const Handle access = access_properties();
  return {Handle(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, access.id()), "creating " + path), path};
}

File File::open(const std::string& path, bool writable) {
  require_stored(path);
  const Handle access = access_properties();
  return {Handle(H5Fopen(path.c_str(), writable ? H5F_ACC_RDWR : H5F_ACC_RDONLY, access.id()), "opening " + path),
          path};
}

void File::create_group(const std::string& path) {
  const Handle group(H5Gcreate2(handle_.id(), path.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT), "creating " + path);
}

Dataset File::create_dataset(const std::string& path, const Element& element, const std::vector<std::uint64_t>& sizes,
                             const void* fill) {
  const std::string doing = "creating " + path;
  const Handle properties(H5Pcreate(H5P_DATASET_CREATE), doing);
  const Handle memory_type = type_of(element, Place::memory);
  check(H5Pset_layout(properties.id(), H5D_CONTIGUOUS), doing);
  check(H5Pset_alloc_time(properties.id(), H5D_ALLOC_TIME_EARLY), doing);
  check(H5Pset_fill_time(properties.id(), H5D_FILL_TIME_ALLOC), doing);
  if (fill != nullptr) check(H5Pset_fill_value(properties.id(), memory_type.id(), fill), doing);
  // A modification time in the header would be metadata that changes with every write.
  check(H5Pset_obj_track_times(properties.id(), false), doing);
  const std::vector<hsize_t> extent(sizes.begin(), sizes.end());
  const Handle space(
      sizes.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(extent.size()), extent.data(), nullptr),
      doing);
  const Handle file_type = type_of(element, Place::file);
  return {Handle(H5Dcreate2(handle_.id(), path.c_str(), file_type.id(), space.id(), H5P_DEFAULT, properties.id(),
                            H5P_DEFAULT),
                 doing),
          path, element, sizes};
}

void File::write_attribute(const std::string& object, const std::string& name, const Element& element,
                           const void* value) {
  const std::string doing = "writing attribute " + name + " of " + object;
  const Handle space(H5Screate(H5S_SCALAR), doing);
  const bool whole = element.fields[0].kind == Kind::int32;
  const Handle file_type = type_of(whole ? Element::of(Kind::int64) : element, Place::file);
  const Handle memory_type = type_of(element, Place::memory);
  const Handle attribute(H5Acreate_by_name(handle_.id(), object.c_str(), name.c_str(), file_type.id(), space.id(),
                                           H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                         doing);
  check(H5Awrite(attribute.id(), memory_type.id(), value), doing);
}

void File::set_attribute(const std::string& object, const std::string& name, const std::string& value) {
  // HDF5 keeps attributes in a header of at most 64 KiB.
  const std::string kept = value.substr(0, 60000);
  write_attribute(object, name, Element::of(Kind::text, kept.size()), kept.c_str());
}

bool File::has_attribute(const std::string& object, const std::string& name) const {
  return contains(object) && H5Aexists_by_name(handle_.id(), object.c_str(), name.c_str(), H5P_DEFAULT) > 0;
}

std::string File::text_attribute(const std::string& object, const std::string& name) const {
  const std::vector<char> text = read_attribute(object, name, Kind::text);
  return {text.data(), strnlen(text.data(), text.size())};
}

std::int64_t File::number_attribute(const std::string& object, const std::string& name) const {
  std::int64_t value = 0;
  std::memcpy(&value, read_attribute(object, name, Kind::int64).data(), sizeof value);
  return value;
}

int File::descriptor() const {
  void* descriptor = nullptr;
  check(H5Fget_vfd_handle(handle_.id(), H5P_DEFAULT, &descriptor), "writing " + path_);
  return *static_cast<int*>(descriptor);
}

void File::reserve(std::int64_t bytes) {
  const int error = posix_fallocate(descriptor(), 0, bytes);
  const bool cannot = error == EOPNOTSUPP || error == ENOSYS || error == ENODEV || error == EINVAL;
  if (error != 0 && !cannot)
    fail("{}; the result needs up to {} MiB there", std::strerror(error), (bytes + (1 << 20) - 1) >> 20);
}

std::int64_t File::bytes() const {
  hsize_t bytes = 0;
  check(H5Fget_filesize(handle_.id(), &bytes), "reading the size of " + path_);
  return static_cast<std::int64_t>(bytes);
}

void File::flush(bool to_disk) {
  check(H5Fflush(handle_.id(), H5F_SCOPE_GLOBAL), "writing " + path_);
  if (!to_disk) return;
  if (fdatasync(descriptor()) != 0 && errno != EINVAL) {  // EINVAL: it has no disk
    fail("writing {} to disk failed: {}", path_, std::strerror(errno));
  }
}

void File::close() {
  handle_.close("closing " + path_);
}

}  // namespace harness::store::hdf5
