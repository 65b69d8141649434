#pragma once

#include <hdf5.h>

#include <cstdint>
#include <string>

#include "store/hdf5_file.h"

// For the hdf5_*.cpp files alone: what Elements are to the library, and what may be read from a file that anybody could
// have made. A result is one file, so nothing in it may lead to another; and each dataset lies whole within it, so what
// is read never exceeds its size.
namespace harness::store::hdf5 {

enum class Place { memory, file };  // host byte order, or little-endian wherever it is read

Handle type_of(const Element& element, Place place);
/// The reverse, for any type a harness file can hold; throws Error on others.
Element element_of(hid_t type, const std::string& path);

/// Is there an object at `path`? Throws Error if a link on the way to it is soft or external.
bool reaches(std::int64_t file, const std::string& path);

/// Opens a dataset of `rank` dimensions (0: a scalar). Throws Error if it is missing or something else, not stored in
/// one piece (chunks, virtual), in another file, or if its extent or its type does not fit into this file.
Handle open_dataset(std::int64_t file, const std::string& path, int rank);

/// Opens an attribute of a single value that fits into the file; Error if it is missing or holds more.
Handle open_attribute(std::int64_t file, const std::string& object, const std::string& name);

}  // namespace harness::store::hdf5
