#include "selftest/checks.h"

#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/file.h"
#include "base/text.h"
#include "config/model.h"

namespace harness::selftest {
namespace {

namespace fs = std::filesystem;
constexpr const char* index_name = "gpt_tiny.json";
constexpr std::size_t most_bytes = 256 << 20;  // of any file of a reference

// A value of the model, from its JSON.
template <class T>
void read_key(const nlohmann::json& from, T& value) {
  if constexpr (std::is_enum_v<T>) {
    value = config::parse_choice(from.get<std::string>(), config::words_for(value));
  } else {
    value = from.get<T>();
  }
}

void read_places(const nlohmann::json& tensors, Reference& r, const fs::path& where) {
  for (const auto& t : tensors) {
    const Reference::Place place{t.at("offset").get<std::size_t>(), t.at("count").get<std::size_t>()};
    if (place.offset > r.gradients.size() || place.count > r.gradients.size() - place.offset)
      fail("{}: a tensor reaches too far", where.string());
    r.places.emplace(t.at("name").get<std::string>(), place);
  }
}

std::vector<float> read_numbers(const fs::path& path, std::size_t count) {
  const std::string bytes = read_file(path.string(), most_bytes);
  if (bytes.size() / sizeof(float) < count) fail("{} is too short", path.string());
  std::vector<float> numbers(count);
  std::memcpy(numbers.data(), bytes.data(), count * sizeof(float));
  return numbers;
}

// use(index) with what the file holds.
void with_index(const fs::path& path, const std::function<void(const nlohmann::json&)>& use) {
  try {
    use(nlohmann::json::parse(read_file(path.string(), most_bytes)));
  } catch (const nlohmann::json::exception& e) {
    fail("{} is not a reference: {}", path.string(), e.what());
  }
}

}  // namespace

std::span<const float> Reference::tensor(const std::string& name) const {
  const auto it = places.find(name);
  if (it == places.end()) fail("the reference has no tensor {}", name);
  return std::span(gradients).subspan(it->second.offset, it->second.count);
}

Reference load_reference(const std::string& directory, config::Precision precision) {
  const std::string name = precision == config::Precision::bf16 ? "bf16" : "fp32";
  const fs::path index_path = fs::path(directory) / index_name;
  Reference r;
  with_index(index_path, [&](const nlohmann::json& index) {
    const auto& m = index.at("model");
    r.model = {"tiny", m.at("layers"), m.at("hidden"), m.at("heads"), m.at("vocab"), m.at("sequence")};
    r.settings.precision = precision;
    r.settings.global_batch_size = index.at("global_batch_size");
    r.seed = index.at("seed").get<std::uint64_t>();
    const auto& entry = index.at("cases").at(name);
    r.losses = entry.at("losses").get<std::vector<double>>();
    r.gradients = read_numbers(fs::path(directory) / entry.at("gradients").get<std::string>(),
                               index.at("parameters").get<std::size_t>());
    read_places(index.at("tensors"), r, index_path);
  });
  return r;
}

std::vector<Reference> load_model_references(const std::string& directory) {
  const fs::path index_path = fs::path(directory) / "models.json";
  std::vector<Reference> all;
  with_index(index_path, [&](const nlohmann::json& index) {
    const std::vector<float> numbers = read_numbers(fs::path(directory) / index.at("gradients").get<std::string>(),
                                                    index.at("numbers").get<std::size_t>());
    for (const auto& entry : index.at("models")) {
      Reference r;
      r.model.name = entry.at("name").get<std::string>();
      config::each_key(
          r.model, [&](const config::ModelKey& key, auto& value) { read_key(entry.at("model").at(key.name), value); });
      r.settings.global_batch_size = index.at("global_batch_size");
      r.seed = index.at("seed").get<std::uint64_t>();
      r.losses = entry.at("losses").get<std::vector<double>>();
      r.gradients = numbers;
      read_places(entry.at("tensors"), r, index_path);
      all.push_back(std::move(r));
    }
  });
  return all;
}

std::string find_reference(const std::string& program_path) {
  std::error_code ignored;
  for (fs::path folder = fs::path(program_path).parent_path(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* place : {"share/harness/reference", "tests/reference"}) {
      if (fs::exists(folder / place / index_name, ignored)) return (folder / place).string();
    }
    if (folder == folder.root_path()) break;
  }
  return "";
}

}  // namespace harness::selftest
