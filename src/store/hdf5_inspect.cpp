#include <hdf5.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "store/hdf5_file.h"

namespace harness::store::hdf5 {
namespace {

hid_t scalar_type(Kind kind, Place place) {
  struct Types {
    hid_t memory, file;
  };
  static const Types types[] = {{H5T_NATIVE_INT32, H5T_STD_I32LE},   {H5T_NATIVE_INT64, H5T_STD_I64LE},
                                {H5T_NATIVE_UINT64, H5T_STD_U64LE},  {H5T_NATIVE_FLOAT, H5T_IEEE_F32LE},
                                {H5T_NATIVE_DOUBLE, H5T_IEEE_F64LE}, {H5T_C_S1, H5T_C_S1}};  // in the order of Kind
  const Types& both = types[static_cast<std::size_t>(kind)];
  return place == Place::memory ? both.memory : both.file;
}

std::size_t bytes_of(Kind kind, std::size_t text_bytes) {
  if (kind == Kind::text) return std::max<std::size_t>(1, text_bytes);  // HDF5 knows no string of length 0
  return kind == Kind::int32 || kind == Kind::float32 ? 4 : 8;
}

Handle field_type(const Field& field, Place place) {
  Handle type(H5Tcopy(scalar_type(field.kind, place)), "making a type");
  if (field.kind == Kind::text) {
    check(H5Tset_size(type.id(), field.bytes), "making a text type");
    check(H5Tset_strpad(type.id(), H5T_STR_NULLPAD), "making a text type");
    check(H5Tset_cset(type.id(), H5T_CSET_UTF8), "making a text type");
  }
  return type;
}

Kind kind_of(hid_t type, const std::string& path) {
  if (H5Tget_class(type) == H5T_STRING && H5Tis_variable_str(type) == 0) return Kind::text;
  // Numbers of the very types that files are made with: the library converts others by descriptions that a damaged file
  // has of them.
  for (const Kind kind : {Kind::int32, Kind::int64, Kind::uint64, Kind::float32, Kind::float64}) {
    if (H5Tequal(type, scalar_type(kind, Place::file)) > 0) return kind;
  }
  fail("{} has a type that harness results do not use", path);
}

// The library moves members to and from the places that the file names, whether they lie in the row or not.
void require_within_row(const Element& members, std::size_t row_bytes, const std::string& path) {
  std::vector<const Field*> by_offset;
  for (const Field& field : members.fields) by_offset.push_back(&field);
  std::ranges::sort(by_offset, {}, &Field::offset);
  std::size_t end = 0;
  for (const Field* field : by_offset) {
    if (field->offset < end) fail("column '{}' of {} overlaps another column", field->name, path);
    if (field->offset > row_bytes || field->bytes > row_bytes - field->offset) {
      fail("column '{}' of {} lies outside its rows of {} bytes", field->name, path, row_bytes);
    }
    end = field->offset + field->bytes;
  }
}

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

Element Element::of(Kind kind, std::size_t text_bytes) {
  Element element;
  element.add("", kind, text_bytes);
  element.table = false;
  return element;
}

void Element::add(std::string name, Kind kind, std::size_t text_bytes) {
  const std::size_t size = bytes_of(kind, text_bytes);
  fields.push_back({std::move(name), kind, size, bytes});
  bytes += size;
  table = true;
}

const Field* Element::find(std::string_view name) const {
  for (const auto& field : fields) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

Handle type_of(const Element& element, Place place) {
  if (!element.table) return field_type(element.fields.at(0), place);
  Handle compound(H5Tcreate(H5T_COMPOUND, element.bytes), "making a row type");
  for (const auto& field : element.fields) {
    const Handle member = field_type(field, place);
    check(H5Tinsert(compound.id(), field.name.c_str(), field.offset, member.id()),
          "adding column " + field.name + " to a table");
  }
  return compound;
}

Element element_of(std::int64_t type, const std::string& path) {
  if (H5Tget_class(type) != H5T_COMPOUND) {
    return Element::of(kind_of(type, path), H5Tget_class(type) == H5T_STRING ? H5Tget_size(type) : 0);
  }
  Element element, in_file;
  const auto count = check(H5Tget_nmembers(type), "reading the columns of " + path);
  for (unsigned i = 0; i < static_cast<unsigned>(count); ++i) {
    const Handle member(H5Tget_member_type(type, i), "reading the columns of " + path);
    char* name = H5Tget_member_name(type, i);
    if (name == nullptr) fail("reading the columns of {} failed", path);
    const std::string column = name;
    H5free_memory(name);
    const Kind kind = kind_of(member.id(), fmt::format("{}, column {}", path, column));
    const std::size_t bytes = H5Tget_size(member.id());
    element.add(column, kind, bytes);
    in_file.fields.push_back({column, kind, bytes, H5Tget_member_offset(type, i)});
  }
  require_within_row(in_file, H5Tget_size(type), path);
  return element;
}

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
