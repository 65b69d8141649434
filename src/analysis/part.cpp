#include "analysis/part.h"

namespace harness {
namespace {

struct Words {
  const char* key;
  const char* name;
};
constexpr std::array<Words, part_count> words{{{"matrix_products", "matrix products"},
                                               {"attention", "attention"},
                                               {"other_compute", "other computation"},
                                               {"recomputation", "recomputation"},
                                               {"tensor", "tensor communication"},
                                               {"pipeline", "pipeline communication"},
                                               {"data", "data communication"},
                                               {"embedding", "embedding communication"},
                                               {"world", "closing all-reduce"},
                                               {"communication", "other communication"},
                                               {"waiting", "waiting for slower ranks"},
                                               {"bubble", "pipeline bubble"},
                                               {"loading", "data loading"},
                                               {"idle", "idle, host"}}};

}  // namespace

const char* name_of(Part part) {
  return words[static_cast<std::size_t>(part)].name;
}
const char* key_of(Part part) {
  return words[static_cast<std::size_t>(part)].key;
}
bool is_computation(Part part) {
  return part <= Part::recomputation;
}
bool is_exposed_communication(Part part) {
  return part >= Part::tensor && part <= Part::communication;
}

double Parts::sum() const {
  double total = 0;
  for (const auto& s : seconds) total += s.value_or(0);
  return total;
}
double Parts::computation() const {
  double total = 0;
  for (std::size_t i = 0; i < part_count; ++i) total += is_computation(part_at(i)) ? seconds[i].value_or(0) : 0;
  return total;
}
double Parts::exposed() const {
  double total = 0;
  for (std::size_t i = 0; i < part_count; ++i) {
    total += is_exposed_communication(part_at(i)) ? seconds[i].value_or(0) : 0;
  }
  return total;
}

}  // namespace harness
