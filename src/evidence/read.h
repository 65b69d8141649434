#pragma once

#include <string>
#include <vector>

#include "evidence/answer.h"

namespace harness::evidence {

/// Reads files of any kind that is known, recognised by their content: "-" is the standard input. Files that belong
/// together (NCCL logs, dumps of several ranks) become one answer; two tests of bandwidth are compared. Nothing is
/// executed, and no other file is opened. Answers come in the order of what they say about: the step, collectives,
/// NCCL, devices. Throws Error for a file that cannot be read, that is
/// damaged or that is not recognised; of several files, only if none could be read: else `refused` of the first answer
/// names it.
std::vector<Answer> read_files(const std::vector<std::string>& paths, const Gaps& gaps);

}  // namespace harness::evidence
