#include "selftest/reference.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace harness::selftest {
namespace {

namespace fs = std::filesystem;
constexpr const char* index_name = "gpt_tiny.json";

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
  try {
    std::ifstream file(index_path);
    if (!file) fail("{} cannot be read", index_path.string());
    const auto index = nlohmann::json::parse(file);
    const auto& m = index.at("model");
    r.model = {"tiny", m.at("layers"), m.at("hidden"), m.at("heads"), m.at("vocab"), m.at("sequence")};
    r.settings.precision = precision;
    r.settings.global_batch_size = index.at("global_batch_size");
    r.seed = index.at("seed").get<std::uint64_t>();
    const auto& entry = index.at("cases").at(name);
    r.losses = entry.at("losses").get<std::vector<double>>();
    r.gradients.resize(index.at("parameters").get<std::size_t>());
    for (const auto& t : index.at("tensors")) {
      const Reference::Place place{t.at("offset").get<std::size_t>(), t.at("count").get<std::size_t>()};
      if (place.offset + place.count > r.gradients.size()) fail("{}: a tensor reaches too far", index_path.string());
      r.places.emplace(t.at("name").get<std::string>(), place);
    }
    const fs::path data = fs::path(directory) / entry.at("gradients").get<std::string>();
    std::ifstream values(data, std::ios::binary);
    values.read(reinterpret_cast<char*>(r.gradients.data()),
                static_cast<std::streamsize>(r.gradients.size() * sizeof(float)));
    if (!values) fail("{} is missing or too short", data.string());
  } catch (const nlohmann::json::exception& e) {
    fail("{} is not a reference: {}", index_path.string(), e.what());
  }
  return r;
}

std::string find_beside(const std::string& program_path, std::initializer_list<const char*> places) {
  std::error_code ignored;
  for (fs::path folder = fs::path(program_path).parent_path(); !folder.empty(); folder = folder.parent_path()) {
    for (const char* place : places) {
      if (fs::exists(folder / place, ignored)) return (folder / place).string();
    }
    if (folder == folder.root_path()) break;
  }
  return "";
}

std::string find_reference(const std::string& program_path) {
  const std::string index =
      find_beside(program_path, {"share/harness/reference/gpt_tiny.json", "tests/reference/gpt_tiny.json"});
  return index.empty() ? "" : fs::path(index).parent_path().string();
}

}  // namespace harness::selftest
