#pragma once

#include <compare>

#include "program/operation.h"

namespace harness::program {

/// Who meets whom: the members of an instance of a group, or a sender and its receiver. The n-th communication of each
/// member is part of their n-th meeting. Members are numbered as the caller does: ranks, roles, classes of ranks.
struct Communicator {
  GroupId group = -1;          // -1: a message
  Axis axis = Axis::tensor;    // of a message
  int first = 0, second = -1;  // the group's first member; or the sender and its receiver
  /// How far along the axis the receiver stands from the sender, from 0 on. Over the ends of an axis it is one way
  /// only: of two ranks, each is the other's next and previous one.
  int offset = 0;
  auto operator<=>(const Communicator&) const = default;  // NOLINT(modernize-use-nullptr): clang-tidy 14 misreads it
};

/// The communicator of a communication of `self`. `partner`: the first member of its group, or the other end of the
/// message.
Communicator communicator_of(const Layout& layout, const Action& action, int self, int partner);

}  // namespace harness::program
