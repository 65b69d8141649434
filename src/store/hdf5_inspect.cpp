#include <hdf5.h>

#include <algorithm>
#include <utility>
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
  // Only the types that harness files are made with: the library converts other types by their descriptions in the
  // file, which may be damaged.
  for (const Kind kind : {Kind::int32, Kind::int64, Kind::uint64, Kind::float32, Kind::float64}) {
    if (H5Tequal(type, scalar_type(kind, Place::file)) > 0) return kind;
  }
  fail("{} has a type that harness results do not use", path);
}

// The library copies members to and from the offsets in the file, even if they lie outside the row.
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

std::vector<std::uint64_t> sizes_of(const Handle& dataset, const std::string& path, int rank) {
  const std::string doing = "reading the size of " + path;
  const Handle space(H5Dget_space(dataset.id()), doing);
  const int found = static_cast<int>(check(H5Sget_simple_extent_ndims(space.id()), doing));
  if (found != rank || H5Sget_simple_extent_type(space.id()) == H5S_NULL) {
    fail("{} has {} dimensions, and not {}", path, found, rank);
  }
  std::vector<hsize_t> sizes(rank);
  if (rank != 0) check(H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr), doing);
  return {sizes.begin(), sizes.end()};
}

void require_within_file(const Handle& dataset, const std::string& path, const std::vector<std::uint64_t>& sizes,
                         std::int64_t file_bytes) {
  const Handle type(H5Dget_type(dataset.id()), "reading the type of " + path);
  // In floating point, because a damaged file may claim sizes beyond 64 bits.
  auto bytes = static_cast<double>(H5Tget_size(type.id()));
  for (const std::uint64_t size : sizes) bytes *= static_cast<double>(size);
  if (bytes == 0) return;
  const haddr_t begin = H5Dget_offset(dataset.id());
  if (begin == HADDR_UNDEF) {
    H5Eclear2(H5E_DEFAULT);
    fail("{} claims values that are not in the file", path);
  }
  if (static_cast<double>(begin) + bytes > static_cast<double>(file_bytes))
    fail("{} claims more values than the file of {} bytes holds", path, file_bytes);
}

// Returns the element as laid out in memory; throws Error for a type that no harness file holds.
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

}  // namespace

Element Element::of(Kind kind, std::size_t text_bytes) {
  Element element;
  element.add("", kind, text_bytes);
  element.table = false;
  return element;
}

void Element::add(std::string name, Kind kind, std::size_t text_bytes) {
  std::size_t size = kind == Kind::int32 || kind == Kind::float32 ? 4 : 8;
  if (kind == Kind::text) size = std::max<std::size_t>(1, text_bytes);  // HDF5 has no strings of length 0
  fields.push_back({std::move(name), kind, size, bytes});
  bytes += size;
  table = true;
}

const Field* Element::find(std::string_view name) const {
  const auto found = std::ranges::find(fields, name, &Field::name);
  return found == fields.end() ? nullptr : &*found;
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

bool File::contains(const std::string& path) const {
  for (std::size_t end = 0; end != std::string::npos;) {
    end = path.find('/', end + 1);
    const std::string step = path.substr(0, end);
    if (step == "/") return true;
    if (H5Lexists(handle_.id(), step.c_str(), H5P_DEFAULT) <= 0) {
      H5Eclear2(H5E_DEFAULT);
      return false;
    }
    H5L_info_t link;
    check(H5Lget_info(handle_.id(), step.c_str(), &link, H5P_DEFAULT), "reading the link " + step);
    if (link.type != H5L_TYPE_HARD) {
      fail("{} is a link to something elsewhere; a result is one file without such links", step);
    }
  }
  return true;
}

Dataset File::dataset(const std::string& path, int rank) const {
  if (!contains(path)) fail("{} is missing", path);
  Handle dataset(H5Oopen(handle_.id(), path.c_str(), H5P_DEFAULT), "opening " + path);
  if (H5Iget_type(dataset.id()) != H5I_DATASET) fail("{} is not a dataset", path);
  require_one_piece(dataset, path);
  std::vector<std::uint64_t> sizes = sizes_of(dataset, path, rank);
  require_within_file(dataset, path, sizes, bytes());
  const Handle type(H5Dget_type(dataset.id()), "reading the type of " + path);
  Element element = element_of(type.id(), path);  // throws for a type that no result uses
  return {std::move(dataset), path, std::move(element), std::move(sizes)};
}

std::vector<char> File::read_attribute(const std::string& object, const std::string& name, Kind kind) const {
  const std::string doing = "reading attribute " + name + " of " + object;
  if (!contains(object)) fail("{} is missing", object);
  if (check(H5Aexists_by_name(handle_.id(), object.c_str(), name.c_str(), H5P_DEFAULT), doing) == 0) {
    fail("attribute {} of {} is missing", name, object);
  }
  const Handle attribute(H5Aopen_by_name(handle_.id(), object.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT), doing);
  const Handle space(H5Aget_space(attribute.id()), doing);
  if (check(H5Sget_simple_extent_npoints(space.id()), doing) != 1) {
    fail("{} failed: it does not hold a single value", doing);
  }
  const Handle type(H5Aget_type(attribute.id()), doing);
  if (std::cmp_greater(H5Tget_size(type.id()), bytes()))
    fail("{} failed: it claims more bytes than the file of {} bytes", doing, bytes());
  const Element found = element_of(type.id(), "attribute " + name);
  const bool text = kind == Kind::text;
  if (found.table || (found.fields[0].kind == Kind::text) != text) {
    fail("{} failed: it does not hold {}", doing, text ? "text" : "a number");
  }
  const Element element = text ? found : Element::of(kind);
  const Handle memory_type = type_of(element, Place::memory);
  std::vector<char> value(element.bytes);
  check(H5Aread(attribute.id(), memory_type.id(), value.data()), doing);
  return value;
}

}  // namespace harness::store::hdf5
