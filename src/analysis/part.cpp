#include "analysis/part.h"

#include <algorithm>

namespace harness::analysis {
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
  return words[index_of(part)].name;
}
const char* key_of(Part part) {
  return words[index_of(part)].key;
}
bool is_computation(Part part) {
  return part <= Part::recomputation;
}
bool is_exposed_communication(Part part) {
  return part >= Part::tensor && part <= Part::communication;
}

bool is_collective(std::string_view kind) {
  constexpr std::array<std::string_view, 5> kinds{"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                  "all_to_all"};
  return std::ranges::find(kinds, kind) != kinds.end();
}

bool is_communication(std::string_view kind) {
  return is_collective(kind) || kind == "send" || kind == "receive";
}

double Parts::sum() const {
  return sum([](Part) { return true; });
}
double Parts::computation() const {
  return sum(is_computation);
}
double Parts::exposed() const {
  return sum(is_exposed_communication);
}
double Parts::sum(bool (*wanted)(Part)) const {
  double total = 0;
  for (const Part part : all_parts) {
    if (wanted(part)) total += (*this)[part].value_or(0);
  }
  return total;
}

}  // namespace harness::analysis
