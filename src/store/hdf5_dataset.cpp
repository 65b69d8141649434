#include <algorithm>

#include "base/error.h"
#include "store/hdf5_types.h"

namespace harness::store::hdf5 {

std::vector<std::uint64_t> Dataset::sizes() const {
  const Handle space(H5Dget_space(handle_.id()), "reading the size of " + path_);
  const auto dimensions = check(H5Sget_simple_extent_ndims(space.id()), "reading the size of " + path_);
  std::vector<hsize_t> sizes(dimensions);
  check(H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr), "reading the size of " + path_);
  return {sizes.begin(), sizes.end()};
}

std::uint64_t Dataset::rows() const {
  const auto all = sizes();
  return all.empty() ? 1 : all[0];
}

Element Dataset::element() const {
  const Handle type(H5Dget_type(handle_.id()), "reading the type of " + path_);
  return element_of(type.id(), path_);
}

std::uint64_t Dataset::offset() const {
  return H5Dget_offset(handle_.id());
}

void Dataset::require_kind(Kind kind) const {
  const Element found = element();
  if (found.table || (found.fields.at(0).kind == Kind::text) != (kind == Kind::text)) {
    fail("{} does not hold {}", path_, kind == Kind::text ? "text" : "numbers");
  }
}

void Dataset::transfer(bool write, const Element& element, std::uint64_t first, std::uint64_t count,
                       void* memory) const {
  if (count == 0) return;
  const std::string doing = (write ? "writing " : "reading ") + path_;
  const auto all = sizes();
  const std::uint64_t rows = all.empty() ? 1 : all[0];
  if (first > rows || count > rows - first) {
    fail("{} failed: rows {} to {} do not exist; it has {} rows", doing, first, first + count - 1, rows);
  }
  const Handle type = type_of(element, Place::memory);
  const Handle file_space(H5Dget_space(handle_.id()), doing);
  Handle memory_space(H5Scopy(file_space.id()), doing);
  if (!all.empty()) {
    std::vector<hsize_t> start(all.size(), 0), extent(all.begin(), all.end());
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

std::vector<char> Dataset::read(const Element& element, std::uint64_t first, std::uint64_t count,
                                std::size_t more) const {
  const auto all = sizes();
  std::uint64_t row_bytes = element.bytes;
  for (std::size_t i = 1; i < all.size(); ++i) row_bytes *= all[i];
  if (allowance_) allowance_->take(static_cast<double>(count) * static_cast<double>(row_bytes + more), path_);
  std::vector<char> bytes(count * row_bytes);
  transfer(false, element, first, count, bytes.data());
  return bytes;
}

// What H5DSset_label would write; the high-level library that has it is not everywhere.
void Dataset::set_labels(std::span<const std::string> names) {
  const std::string doing = "labelling " + path_;
  std::vector<const char*> texts;
  for (const auto& name : names) texts.push_back(name.c_str());
  const Handle type(H5Tcopy(H5T_C_S1), doing);
  check(H5Tset_size(type.id(), H5T_VARIABLE), doing);
  const hsize_t size = names.size();
  const Handle space(H5Screate_simple(1, &size, nullptr), doing);
  const Handle attribute(H5Acreate2(handle_.id(), "DIMENSION_LABELS", type.id(), space.id(), H5P_DEFAULT, H5P_DEFAULT),
                         doing);
  check(H5Awrite(attribute.id(), type.id(), texts.data()), doing);
}

}  // namespace harness::store::hdf5
