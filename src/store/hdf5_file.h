#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace harness::store::hdf5 {

/// An HDF5 identifier of any kind, closed on destruction. Only the hdf5_*.cpp files include hdf5.h.
class Handle {
 public:
  Handle() = default;
  /// Takes ownership of an identifier from the library; throws Error, naming `doing`, if it is invalid.
  Handle(std::int64_t id, std::string_view doing);
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle();

  std::int64_t id() const { return id_; }
  /// Closes now and throws Error on failure: buffered writes can still fail here.
  void close(std::string_view doing);

 private:
  std::int64_t id_ = -1;
};

/// Returns `result`; throws Error if it is negative: "DOING failed: " and the system's message, or "truncated file".
std::int64_t check(std::int64_t result, std::string_view doing);

enum class Kind : std::uint8_t { int32, int64, uint64, float32, float64, text };

/// A field of a table's row, or a dataset's only field. Text is UTF-8 of fixed length, padded with zeros.
struct Field {
  std::string name;
  Kind kind = Kind::int32;
  std::size_t bytes = 4;
  std::size_t offset = 0;  // in the row
};

/// One element of a dataset. A table's row consists of its fields without gaps.
struct Element {
  std::vector<Field> fields;
  bool table = false;  // a compound with named fields
  std::size_t bytes = 0;

  static Element of(Kind kind, std::size_t text_bytes = 0);
  void add(std::string name, Kind kind, std::size_t text_bytes = 0);
  const Field* find(std::string_view name) const;
};

class Dataset {
 public:
  Dataset(Handle handle, std::string path, Element element, std::vector<std::uint64_t> sizes)
      : handle_(std::move(handle)), path_(std::move(path)), element_(std::move(element)), sizes_(std::move(sizes)) {}
  const std::string& path() const { return path_; }
  const std::vector<std::uint64_t>& sizes() const { return sizes_; }  // empty: a scalar
  std::uint64_t rows() const { return sizes_.empty() ? 1 : sizes_[0]; }
  std::uint64_t values_of_row() const;
  /// The element in the file, with the offsets of rows in read() and write().
  const Element& element() const { return element_; }
  /// Transfers `count` whole rows (all further dimensions) from row `first` on, in host byte order.
  void write(const Element& element, std::uint64_t first, std::uint64_t count, const void* from);
  std::vector<char> read(const Element& element, std::uint64_t first, std::uint64_t count) const;
  /// Throws Error if it holds a table, or text instead of numbers, or the reverse.
  void require_kind(Kind kind) const;

 private:
  void transfer(bool write, const Element& element, std::uint64_t first, std::uint64_t count, void* memory) const;
  Handle handle_;
  std::string path_;
  Element element_;
  std::vector<std::uint64_t> sizes_;
};

/// An HDF5 file in the earliest format, without locks, whose objects have their full size from the start. Files to read
/// are untrusted. A result is a single file, so nothing in it may refer to another; and each dataset lies wholly within
/// it, so no read exceeds the size of the file.
class File {
 public:
  static bool is_hdf5(const std::string& path);
  static File create(const std::string& path);  // must not exist
  static File open(const std::string& path, bool writable);

  void create_group(const std::string& path);
  /// Creates a contiguous dataset, allocated at once, with every element `fill` (nullptr: zeros; at most 64 KiB). It
  /// begins on a 4 KiB boundary if it has 1 KiB or more.
  Dataset create_dataset(const std::string& path, const Element& element, const std::vector<std::uint64_t>& sizes,
                         const void* fill);
  /// Both throw Error if a link on the path is soft or external. `rank`: the required number of dimensions, 0 for a
  /// scalar. dataset() throws Error if the dataset is missing, stored otherwise than by create_dataset() (chunked,
  /// virtual, external), of a type that no result uses, or larger than the file.
  bool contains(const std::string& path) const;
  Dataset dataset(const std::string& path, int rank) const;

  /// Writes a single value; integers have 64 bits in the file.
  void write_attribute(const std::string& object, const std::string& name, const Element& element, const void* value);
  /// Returns the value in host byte order; text has its length in the file. Throws Error if the attribute is missing,
  /// of another kind, not a single value, or larger than the file.
  std::vector<char> read_attribute(const std::string& object, const std::string& name, Kind kind) const;
  bool has_attribute(const std::string& object, const std::string& name) const;
  void set_attribute(const std::string& object, const std::string& name, const std::string& value);
  std::string text_attribute(const std::string& object, const std::string& name) const;
  std::int64_t number_attribute(const std::string& object, const std::string& name) const;

  /// Allocates disk space for a newly created file, where the file system can. Throws Error if there is too little.
  void reserve(std::int64_t bytes);
  /// Returns how much of the reserved space the objects take.
  std::int64_t bytes() const;
  /// Passes everything written so far to the operating system, with `to_disk` to the disk.
  void flush(bool to_disk);
  void close();

 private:
  File(Handle handle, std::string path) : handle_(std::move(handle)), path_(std::move(path)) {}
  int descriptor() const;
  Handle handle_;
  std::string path_;
};

// For the hdf5_*.cpp files alone: the library's types of Elements.

enum class Place : std::uint8_t { memory, file };  // host byte order, or little-endian on any host

Handle type_of(const Element& element, Place place);

}  // namespace harness::store::hdf5
