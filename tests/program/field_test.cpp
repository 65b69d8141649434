// The field list of an operation names every member: an omitted member would be lost between a Program and a kernel.
#include <gtest/gtest.h>

#include "program/operation.h"

namespace harness::program {
namespace {

template <class Op>
void expect_all_members_listed() {
  Op op;
  EXPECT_EQ(std::tuple_size_v<decltype(Op::fields(op))>, member_count<Op>()) << Op::name;
}

template <std::size_t... i>
void expect_all_of_the_list(std::index_sequence<i...>) {
  (expect_all_members_listed<std::variant_alternative_t<i, Action>>(), ...);
}

TEST(Fields, NameEveryMemberOfEveryOperation) {
  expect_all_of_the_list(std::make_index_sequence<std::variant_size_v<Action>>{});
}

TEST(Fields, AccessFollowsTheParameters) {
  const auto accesses = [](const Action& action) {
    std::vector<std::pair<BufferId, Access>> all;
    visit_accesses(action, [&](Access access, const View& view) { all.emplace_back(view.buffer, access); });
    return all;
  };
  const View in{0, 0, 8}, out{1, 0, 8};
  using Accesses = std::vector<std::pair<BufferId, Access>>;
  EXPECT_EQ(accesses(ColumnSum{in, out, 1, 8, false}), (Accesses{{0, Access::read}, {1, Access::write}}));
  EXPECT_EQ(accesses(ColumnSum{in, out, 1, 8, true}), (Accesses{{0, Access::read}, {1, Access::update}}));
  EXPECT_EQ(accesses(AllReduce{.data = out}), (Accesses{{1, Access::update}}));
  EXPECT_EQ(accesses(AllReduce{.data = out, .in = in}), (Accesses{{0, Access::read}, {1, Access::write}}));
}

}  // namespace
}  // namespace harness::program
