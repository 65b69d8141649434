#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/choice.h"

namespace harness::config {

/// The kind of value that a key of a configuration takes.
enum class Takes : std::uint8_t {
  value,
  list,
  map,          // of the keys that have this one before them
  map_or_maps,  // the same, or a list of such maps
  name_or_map,  // `model`
  values,       // a value per variable: `baseline`
  lists,        // a list of values per variable: `sweep`
  maps,         // a list of maps with a value per variable: `combine`
  named_maps,   // the same, each under a name: `ladder`
};

/// One key that a configuration may have, as its reader declares it.
struct Key {
  std::string name;           // dotted: "measure.rounds"
  std::string help = {};      // one line; "" for a key that is the name of a variable (`measure.weight`)
  std::string allowed = {};   // for people: "1 to 10000"
  std::string fallback = {};  // what holds without it, for people; "" where nothing does
  bool required = false;
  Takes takes = Takes::value;
  Choices choices = {};
};

/// All keys of a configuration, in the order in which they are read; a map stands before what is in it. Variables are
/// not among them: they are in the registry.
std::vector<Key> keys();

}  // namespace harness::config
