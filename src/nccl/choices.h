#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace harness::nccl {

// The values of NCCL_ALGO and NCCL_PROTO, in the grammar of NCCL 2.24 and later (parseList in its src/graph/tuning.cc):
//   value := entry (';' entry)*    entry := [function ':'] ['^'] element (',' element)*
// Only the first entry may lack a function and then means all five; '^' means all but these. What NCCL would silently
// read differently from what is written (a second entry for the same function wins over the first, an element
// named twice, an empty value) is refused here.

/// Canonical spelling: NCCL's capitals, elements in NCCL's order, no blanks. "default" (leave the choice to NCCL, the
/// environment variable stays unset) stays "default". Throws Error with what was found and what is allowed.
std::string canonical_algo(std::string_view text);
std::string canonical_proto(std::string_view text);

/// What a value leaves NCCL to choose from, for each of the five functions: {"AllReduce": {"Tree", "Ring"}, …}.
/// "default" leaves all. Takes and refuses the same texts as the functions above.
using Choices = std::map<std::string, std::vector<std::string>>;
Choices algo_choices(std::string_view text);
Choices proto_choices(std::string_view text);

}  // namespace harness::nccl
