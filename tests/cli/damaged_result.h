#pragma once

#include <fcntl.h>
#include <hdf5.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "store/columns.h"
#include "support/files.h"

// Ways to damage a result file: other bytes where it holds numbers and texts, and where it says how its rows lie.
namespace harness::test {

struct Damage {
  std::string what;
  std::function<void(const std::string& path)> apply;  // to a copy of the file
};

/// A dataset's values, or one column of a table's, as they lie in the file.
struct StoredColumn {
  std::string name;  // "/cases.reference"
  H5T_class_t sort = H5T_NO_CLASS;
  std::uint64_t at = 0, stride = 0, bytes = 0, rows = 0;
  std::uint64_t offset = 0;  // in the row
};

inline void overwrite(const std::string& path, std::uint64_t at, const std::string& bytes) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (::pwrite(file, bytes.data(), bytes.size(), static_cast<off_t>(at)) < 0) std::abort();
  ::close(file);
}

template <class Number>
std::string bytes_of(Number value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::vector<StoredColumn> stored_columns(const std::string& path, const std::vector<std::string>& others) {
  std::vector<std::string> paths = others;
  store::Result any;
  store::each_table(any, [&](const store::Table& table, const auto&, const auto&) { paths.emplace_back(table.path); });
  std::vector<StoredColumn> found;
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT);
  for (const std::string& name : paths) {
    const hid_t dataset = H5Dopen2(file, name.c_str(), H5P_DEFAULT);
    const hid_t type = H5Dget_type(dataset), space = H5Dget_space(dataset);
    StoredColumn column{name,
                        H5Tget_class(type),
                        H5Dget_offset(dataset),
                        H5Tget_size(type),
                        H5Tget_size(type),
                        static_cast<std::uint64_t>(H5Sget_simple_extent_npoints(space)),
                        0};
    if (column.sort != H5T_COMPOUND) {
      found.push_back(column);
    } else if (column.rows > 0) {
      for (unsigned i = 0; i < static_cast<unsigned>(H5Tget_nmembers(type)); ++i) {
        StoredColumn member = column;
        const hid_t of_member = H5Tget_member_type(type, i);
        char* const member_name = H5Tget_member_name(type, i);
        member.name += std::string(".") + member_name;
        member.sort = H5Tget_class(of_member);
        member.offset = H5Tget_member_offset(type, i);
        member.at += member.offset;
        member.bytes = H5Tget_size(of_member);
        found.push_back(member);
        H5free_memory(member_name);
        H5Tclose(of_member);
      }
    }
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(dataset);
  }
  H5Fclose(file);
  return found;
}

/// Values that a column of its type can hold and hardly any result has.
inline std::vector<std::string> extremes(const StoredColumn& column) {
  std::vector<std::string> values;
  if (column.sort == H5T_STRING) {
    for (const char* text : {"", "-1", "99999999999999999999", "nan", "inf", "baseline", "\x1b[31m\xff", "{", "a=b"}) {
      std::string value = std::string(text).substr(0, column.bytes);
      value.resize(column.bytes, '\0');
      values.push_back(value);
    }
    values.emplace_back(column.bytes, 'A');
    values.emplace_back(column.bytes, '\xff');
  } else if (column.sort == H5T_FLOAT) {
    for (const double value : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(), -1.0, 0.0, 5e-324, 1e-300, 1e30, 1e308}) {
      values.push_back(column.bytes == 8 ? bytes_of(value) : bytes_of(static_cast<float>(value)));
    }
  } else {
    for (const std::int64_t value :
         {INT64_MIN, std::int64_t{INT32_MIN}, std::int64_t{-2}, std::int64_t{-1}, std::int64_t{0}, std::int64_t{1},
          std::int64_t{3}, std::int64_t{10000}, std::int64_t{50000000}, std::int64_t{INT32_MAX}, INT64_MAX}) {
      values.push_back(column.bytes == 8 ? bytes_of(value) : bytes_of(static_cast<std::int32_t>(value)));
    }
  }
  return values;
}

/// Each column with each extreme value, in all rows, in the first one and in the last.
inline std::vector<Damage> damaged_values(const std::string& path, const std::vector<std::string>& others) {
  std::vector<Damage> all;
  for (const StoredColumn& column : stored_columns(path, others)) {
    if (column.rows == 0) continue;
    int number = 0;
    for (const std::string& value : extremes(column)) {
      const auto add = [&](const char* which, std::uint64_t first, std::uint64_t end) {
        all.push_back(
            {column.name + ", extreme value " + std::to_string(number) + " in " + which, [=](const std::string& copy) {
               for (std::uint64_t row = first; row < end; ++row) {
                 overwrite(copy, column.at + row * column.stride, value);
               }
             }});
      };
      add("all rows", 0, column.rows);
      if (column.rows > 1) add("the first row", 0, 1);
      if (column.rows > 1) add("the last row", column.rows - 1, column.rows);
      ++number;
    }
  }
  return all;
}

/// Each member of each table's type at another place, of another size, class, order of bytes, precision.
/// A member is its name with zeros up to a multiple of eight bytes, its offset in 4 bytes, 24 bytes for arrays, then
/// its type: class and version, 3 bytes of flags, the size in 4 bytes, and what the class needs.
inline std::vector<Damage> damaged_types(const std::string& path) {
  const std::string bytes = text_of(path);
  std::vector<Damage> all;
  for (const StoredColumn& column : stored_columns(path, {})) {
    const std::string name = column.name.substr(column.name.find('.') + 1);
    const std::string stored =
        name + std::string(8 - name.size() % 8, '\0') + bytes_of(static_cast<std::uint32_t>(column.offset));
    std::size_t at = bytes.find(stored);
    for (; at != std::string::npos; at = bytes.find(stored, at + 1)) {
      const std::size_t offset = at + stored.size() - 4, type = offset + 4 + 24;
      const auto add = [&](const char* what, std::size_t where, const std::string& value) {
        all.push_back(
            {column.name + ": " + what + " at " + std::to_string(where) + ", variant " + std::to_string(all.size()),
             [=](const std::string& copy) { overwrite(copy, where, value); }});
      };
      const auto row = static_cast<std::uint32_t>(column.stride), size = static_cast<std::uint32_t>(column.bytes);
      for (const std::uint32_t value :
           {0u, 1u, static_cast<std::uint32_t>(column.offset) + 1, row - size, row - size + 1, row - 1, row, row + 8,
            3000000u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
        add("offset", offset, bytes_of(value));
      }
      for (const std::uint32_t value :
           {0u, 1u, size - 1, size + 1, 2 * size, row, 0x10000u, 0x7fffffffu, 0xffffffffu}) {
        add("size", type + 4, bytes_of(value));
      }
      for (unsigned value = 0; value < 16; ++value) add("class", type, std::string(1, static_cast<char>(0x10 | value)));
      for (const std::size_t byte : {1, 2, 3, 8, 9, 10, 11, 12, 13, 14, 15, 16}) {
        for (const char value : {'\0', '\1', '\x40', '\x7f', '\xff'}) add("a byte", type + byte, std::string(1, value));
      }
    }
  }
  return all;
}

/// Each attribute of /run with extreme numbers, or another text.
inline std::vector<Damage> damaged_attributes() {
  std::vector<Damage> all;
  const auto add = [&](const std::string& name, hid_t type, const std::string& value, int number) {
    all.push_back({"attribute " + name + ", value " + std::to_string(number), [=](const std::string& copy) {
                     const hid_t file = H5Fopen(copy.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
                     const hid_t attribute = H5Aopen_by_name(file, "/run", name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
                     const hid_t there = H5Aget_type(attribute);
                     std::string bytes = value;
                     if (H5Tget_class(there) == H5T_STRING) bytes.resize(H5Tget_size(there), '\0');
                     H5Awrite(attribute, H5Tget_class(there) == H5T_STRING ? there : type, bytes.data());
                     H5Tclose(there);
                     H5Aclose(attribute);
                     H5Fclose(file);
                   }});
  };
  for (const store::Column& column : store::columns_of<store::Result>().list()) {
    StoredColumn as;
    as.bytes = 8;
    as.sort = H5T_INTEGER;
    if (column.kind() == store::hdf5::Kind::text) as.sort = H5T_STRING;
    if (column.kind() == store::hdf5::Kind::float64) as.sort = H5T_FLOAT;
    int number = 0;
    for (const std::string& value : extremes(as)) {
      add(column.name, as.sort == H5T_FLOAT ? H5T_NATIVE_DOUBLE : H5T_NATIVE_INT64, value, number++);
    }
  }
  return all;
}

}  // namespace harness::test
