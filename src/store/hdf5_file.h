#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace harness::store::hdf5 {

/// An HDF5 identifier of any kind, closed when it goes. hdf5.h itself stays in the hdf5_*.cpp files.
class Handle {
 public:
  Handle() = default;
  /// Takes over an identifier as the library returned it; throws Error, naming `doing`, if it is not valid.
  Handle(std::int64_t id, std::string_view doing);
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle();

  std::int64_t id() const { return id_; }
  /// Closes now and throws Error if that fails: the last chance for buffered writes to fail.
  void close(std::string_view doing);

 private:
  std::int64_t id_ = -1;
};

/// Throws Error if `result` is negative: "DOING failed: " and what the system said, or "truncated file".
std::int64_t check(std::int64_t result, std::string_view doing);

enum class Kind : std::uint8_t { int32, int64, uint64, float32, float64, text };

/// A field of a table's row, or a dataset's only field. Text is UTF-8 of fixed length, padded with zeros.
struct Field {
  std::string name;
  Kind kind = Kind::int32;
  std::size_t bytes = 4;
  std::size_t offset = 0;  // in the row
};

/// One element of a dataset. A table's row is its fields without gaps.
struct Element {
  std::vector<Field> fields;
  bool table = false;  // a compound, whose fields have names
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
  /// As the file has it; offsets as read() and write() lay out rows.
  const Element& element() const { return element_; }
  /// `count` whole rows (all of the further dimensions) from row `first` on, in host order.
  void write(const Element& element, std::uint64_t first, std::uint64_t count, const void* from);
  std::vector<char> read(const Element& element, std::uint64_t first, std::uint64_t count) const;
  /// Throws Error if it holds a table, or texts where numbers are wanted, or the reverse.
  void require_kind(Kind kind) const;

 private:
  void transfer(bool write, const Element& element, std::uint64_t first, std::uint64_t count, void* memory) const;
  Handle handle_;
  std::string path_;
  Element element_;
  std::vector<std::uint64_t> sizes_;
};

/// An HDF5 file in the earliest format, without locks, whose objects all have their full size from the start. Anybody
/// could have made one that is read: a result is one file, so nothing in it may lead to another; and each dataset lies
/// whole within it, so what is read never exceeds its size.
class File {
 public:
  static bool is_hdf5(const std::string& path);
  static File create(const std::string& path);  // must not exist
  static File open(const std::string& path, bool writable);

  void create_group(const std::string& path);
  /// Contiguous, allocated at once, every element `fill` (nullptr: zeros; a fill
  /// value has at most 64 KiB). Begins on a 4 KiB boundary if it has 1 KiB or more.
  Dataset create_dataset(const std::string& path, const Element& element, const std::vector<std::uint64_t>& sizes,
                         const void* fill);
  /// Both throw Error where a link on the way is soft or external. `rank`: how many dimensions it must have, 0 for a
  /// scalar; a dataset that is missing, stored otherwise than create_dataset() does (chunks, virtual, in another file),
  /// of a type that none has, or larger than the file is an Error.
  bool contains(const std::string& path) const;
  Dataset dataset(const std::string& path, int rank) const;

  /// A single value; whole numbers have 64 bits in the file.
  void write_attribute(const std::string& object, const std::string& name, const Element& element, const void* value);
  /// The value in host order; a text is as long as it is in the file. Throws Error if it is missing, none of this kind,
  /// no single value, or larger than the file.
  std::vector<char> read_attribute(const std::string& object, const std::string& name, Kind kind) const;
  bool has_attribute(const std::string& object, const std::string& name) const;
  void set_attribute(const std::string& object, const std::string& name, const std::string& value);
  std::string text_attribute(const std::string& object, const std::string& name) const;
  std::int64_t number_attribute(const std::string& object, const std::string& name) const;

  /// Allocates this much of the disk for a file that has just been created. Throws Error if the disk has less.
  void reserve(std::int64_t bytes);
  /// How much of what was reserved the objects take.
  std::int64_t bytes() const;
  /// Everything written so far is with the operating system; with `to_disk` on the disk.
  void flush(bool to_disk);
  void close();

 private:
  File(Handle handle, std::string path) : handle_(std::move(handle)), path_(std::move(path)) {}
  int descriptor() const;
  Handle handle_;
  std::string path_;
};

// For the hdf5_*.cpp files alone: what Elements are to the library.

enum class Place : std::uint8_t { memory, file };  // host byte order, or little-endian wherever it is read

Handle type_of(const Element& element, Place place);

}  // namespace harness::store::hdf5
