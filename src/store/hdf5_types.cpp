#include "store/hdf5_types.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

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

Element element_of(hid_t type, const std::string& path) {
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

}  // namespace harness::store::hdf5
