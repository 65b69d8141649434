#include "store/hdf5_inspect.h"

#include <hdf5.h>

#include <vector>

#include "base/error.h"
#include "store/hdf5_types.h"

namespace harness::store::hdf5 {
namespace {

std::uint64_t bytes_of_file(std::int64_t file) {
  hsize_t bytes = 0;
  check(H5Fget_filesize(file, &bytes), "reading the size of the file");
  return bytes;
}

// `overflows` becomes true where 64 bits do not hold it: nothing in a file is as large.
std::uint64_t product(const std::vector<hsize_t>& sizes, std::uint64_t bytes_of_element, bool& overflows) {
  std::uint64_t bytes = bytes_of_element;
  for (const hsize_t size : sizes) {
    if (size == 0) return 0;
  }
  for (const hsize_t size : sizes) overflows |= __builtin_mul_overflow(bytes, size, &bytes);
  return bytes;
}

void require_one_piece(const Handle& dataset, const std::string& path) {
  const std::string doing = "reading the layout of " + path;
  const Handle properties(H5Dget_create_plist(dataset.id()), doing);
  if (check(H5Pget_layout(properties.id()), doing) != H5D_CONTIGUOUS) {
    fail("{} is not stored in one piece (h5repack -l CONTI writes such a copy)", path);
  }
  if (check(H5Pget_external_count(properties.id()), doing) != 0) {
    fail("the values of {} lie in another file; a result is one file", path);
  }
}

void require_shape(const Handle& dataset, const std::string& path, int rank, std::uint64_t file_bytes) {
  const std::string doing = "reading the size of " + path;
  const Handle space(H5Dget_space(dataset.id()), doing);
  const int found = static_cast<int>(check(H5Sget_simple_extent_ndims(space.id()), doing));
  if (found != rank || H5Sget_simple_extent_type(space.id()) == H5S_NULL) {
    fail("{} has {} dimensions, and not {}", path, found, rank);
  }
  std::vector<hsize_t> sizes(rank);
  if (rank != 0) check(H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr), doing);
  const Handle type(H5Dget_type(dataset.id()), "reading the type of " + path);
  bool overflows = false;
  const std::uint64_t bytes = product(sizes, H5Tget_size(type.id()), overflows);
  if (bytes == 0 && !overflows) return;
  const haddr_t begin = H5Dget_offset(dataset.id());
  if (begin == HADDR_UNDEF) {
    H5Eclear2(H5E_DEFAULT);
    fail("{} claims values that are not in the file", path);
  }
  if (overflows || begin > file_bytes || bytes > file_bytes - begin) {
    fail("{} claims more values than the file of {} bytes holds", path, file_bytes);
  }
}

}  // namespace

bool reaches(std::int64_t file, const std::string& path) {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string step = path.substr(0, end);
    if (step == "/") return true;
    if (H5Lexists(file, step.c_str(), H5P_DEFAULT) <= 0) {
      H5Eclear2(H5E_DEFAULT);
      return false;
    }
    H5L_info_t link;
    check(H5Lget_info(file, step.c_str(), &link, H5P_DEFAULT), "reading the link " + step);
    if (link.type != H5L_TYPE_HARD) {
      fail("{} is a link to something elsewhere; a result is one file without such links", step);
    }
  }
  return true;
}

Handle open_dataset(std::int64_t file, const std::string& path, int rank) {
  if (!reaches(file, path)) fail("{} is missing", path);
  const Handle object(H5Oopen(file, path.c_str(), H5P_DEFAULT), "opening " + path);
  if (H5Iget_type(object.id()) != H5I_DATASET) fail("{} is not a dataset", path);
  Handle dataset(H5Dopen2(file, path.c_str(), H5P_DEFAULT), "opening " + path);
  require_one_piece(dataset, path);
  require_shape(dataset, path, rank, bytes_of_file(file));
  const Handle type(H5Dget_type(dataset.id()), "reading the type of " + path);
  element_of(type.id(), path);  // throws for one that no result has
  return dataset;
}

Handle open_attribute(std::int64_t file, const std::string& object, const std::string& name) {
  const std::string doing = "reading attribute " + name + " of " + object;
  if (!reaches(file, object)) fail("{} is missing", object);
  if (check(H5Aexists_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT), doing) == 0) {
    fail("attribute {} of {} is missing", name, object);
  }
  Handle attribute(H5Aopen_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), doing);
  const Handle space(H5Aget_space(attribute.id()), doing);
  if (check(H5Sget_simple_extent_npoints(space.id()), doing) != 1) {
    fail("{} failed: it does not hold a single value", doing);
  }
  const Handle type(H5Aget_type(attribute.id()), doing);
  const std::uint64_t most = bytes_of_file(file);
  if (H5Tget_size(type.id()) > most) fail("{} failed: it claims more bytes than the file of {} bytes", doing, most);
  return attribute;
}

}  // namespace harness::store::hdf5
