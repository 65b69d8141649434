#pragma once

#include <hdf5.h>

#include "store/hdf5_file.h"

// For the hdf5_*.cpp files alone: what Elements are to the library.
namespace harness::store::hdf5 {

enum class Place { memory, file };  // host byte order, or little-endian wherever it is read

Handle type_of(const Element& element, Place place);
/// The reverse, for any type a harness file can hold; throws Error on others.
Element element_of(hid_t type, const std::string& path);

}  // namespace harness::store::hdf5
