#include "base/part.h"

#include <algorithm>

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

// Replicas that gather weights have a group of their own for it, which may be at work while gradients are reduced, and
// one for what those of a node have of them in common with other nodes.
constexpr std::array<std::string_view, 2> other_data_groups{"gather", "nodes"};

}  // namespace

const char* name_of(Part part) {
  return words[index_of(part)].name;
}
const char* key_of(Part part) {
  return words[index_of(part)].key;
}
Part computation_part(std::string_view kind, bool recomputed) {
  if (recomputed) return Part::recomputation;
  if (kind == "matmul") return Part::matrix_products;
  return kind.starts_with("attention") ? Part::attention : Part::other_compute;
}
Part communication_part(std::string_view group, bool closing) {
  if (std::ranges::find(other_data_groups, group) != other_data_groups.end()) return Part::data;
  for (const Part part : {Part::tensor, Part::pipeline, Part::data, Part::embedding}) {
    if (group == key_of(part)) return part;
  }
  // All ranks meet at the end of every step, and in what a step of one collective repeats.
  return closing && group == key_of(Part::world) ? Part::world : Part::communication;
}
bool is_computation(Part part) {
  return part <= Part::recomputation;
}
bool is_exposed_communication(Part part) {
  return part >= Part::tensor && part <= Part::communication;
}

Stretches united(std::vector<Stretch> stretches) {
  std::erase_if(stretches, [](const Stretch& s) { return !(s.start_s < s.end_s); });
  std::ranges::sort(stretches, {}, &Stretch::start_s);
  Stretches whole;
  for (const Stretch& next : stretches) {
    if (whole.empty() || next.start_s > whole.back().end_s) {
      whole.push_back(next);
    } else {
      whole.back().end_s = std::max(whole.back().end_s, next.end_s);
    }
  }
  return whole;
}

Stretches without(const Stretches& a, const Stretches& b) {
  Stretches left;
  auto hole = b.begin();
  for (const Stretch& stretch : a) {
    double at = stretch.start_s;
    while (hole != b.end() && hole->end_s <= at) ++hole;
    for (auto h = hole; h != b.end() && h->start_s < stretch.end_s; ++h) {
      if (at < h->start_s) left.push_back({at, h->start_s});
      at = h->end_s;
    }
    if (at < stretch.end_s) left.push_back({at, stretch.end_s});
  }
  return left;
}

double length(const Stretches& stretches) {
  double sum = 0;
  for (const Stretch& s : stretches) sum += s.end_s - s.start_s;
  return sum;
}

}  // namespace harness
