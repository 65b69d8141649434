#pragma once

#include "job/mpi/ranks.h"

namespace harness::test {

/// Makes every call that ranks have, and throws Error where one does not do what ranks.h says. At the end, rank 0 says
/// which ranks share a node.
int make_every_call(mpi::Ranks& ranks);

}  // namespace harness::test
