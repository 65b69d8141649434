#include "store/table.h"

#include <algorithm>

#include "base/utf8.h"

namespace harness::store::hdf5 {
namespace {

std::vector<char> padded(const std::string& text, std::size_t bytes) {
  const std::string kept = shortened(text, bytes);
  std::vector<char> out(bytes, '\0');
  std::copy(kept.begin(), kept.end(), out.begin());
  return out;
}

}  // namespace

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  static constexpr std::string_view mark = "…";
  const std::size_t kept = whole_characters(text, bytes < mark.size() ? bytes : bytes - mark.size());
  return std::string(text.substr(0, kept)).append(bytes < mark.size() ? "" : mark);
}

Dataset create_texts(File& file, const std::string& path, const std::vector<std::string>& texts) {
  std::size_t longest = 0;
  for (const auto& text : texts) longest = std::max(longest, text.size());
  Dataset dataset = file.create_dataset(path, Element::of(Kind::text, longest), {texts.size()}, nullptr);
  for (std::size_t i = 0; i < texts.size(); ++i) write_text(dataset, i, texts[i]);
  return dataset;
}

Dataset create_text(File& file, const std::string& path, const std::string& text, std::size_t bytes) {
  Dataset dataset = file.create_dataset(path, Element::of(Kind::text, std::max(bytes, text.size())), {}, nullptr);
  write_text(dataset, 0, text);
  return dataset;
}

void write_text(Dataset& dataset, std::uint64_t row, const std::string& text) {
  const Element element = dataset.element();
  dataset.write(element, row, 1, padded(text, element.bytes).data());
}

namespace {

std::vector<std::string> read_texts(const Dataset& dataset) {
  const Element element = dataset.element();
  if (element.table || element.fields[0].kind != Kind::text) fail("{} does not hold text", dataset.path());
  std::vector<char> bytes(element.bytes * dataset.rows());
  dataset.read(element, 0, dataset.rows(), bytes.data());
  std::vector<std::string> texts;
  for (std::size_t at = 0; at < bytes.size(); at += element.bytes) {
    texts.emplace_back(bytes.data() + at, strnlen(bytes.data() + at, element.bytes));
  }
  return texts;
}

}  // namespace

std::vector<std::string> read_texts(const File& file, const std::string& path) {
  return read_texts(file.dataset(path, 1));
}

std::string read_text(const File& file, const std::string& path) {
  return read_texts(file.dataset(path, 0)).at(0);
}

}  // namespace harness::store::hdf5
