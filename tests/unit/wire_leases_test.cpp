#include <gtest/gtest.h>

#include "support/wire_refusals.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/json.hpp"
#include "wire/request.hpp"

// The messages about leases.

namespace remote::wire {
namespace {

const std::string wrong_character = "has a character that is not allowed";

LeasesReply leases_reply() {
  LeasesReply reply;
  reply.leases = {
      {.user = "ada", .own = true, .waits = false, .gpus = {"GPU-1", "amd:77"}, .cpus = 4, .memory = 1024},
      {.user = "bob", .waits = true}};
  reply.free = FreeResources{.gpus = 3,
                             .all_gpus = 8,
                             .server_gpus = 9,
                             .hiding_variable = "CUDA_VISIBLE_DEVICES",
                             .cpus = 2,
                             .all_cpus = 4,
                             .server_cpus = 5,
                             .memory = 10,
                             .all_memory = 20,
                             .server_memory = 30};
  reply.no_leases = "no folder";
  return reply;
}

TEST(WireLeases, ArriveWithAllTheirFields) {
  const auto received = std::get<LeasesReply>(decode<Reply>(encode(Reply(leases_reply()))));
  EXPECT_EQ(to_json(received), to_json(leases_reply()));
  EXPECT_EQ(received.leases.at(0).gpus.at(1), "amd:77");
  const LeasesRequest request{LeaseTerms{2, 1, 5, {0, 3}}};
  EXPECT_EQ(std::get<LeasesRequest>(decode<Request>(encode(Request(request)))).terms, request.terms);
  EXPECT_FALSE(std::get<LeasesRequest>(decode<Request>(encode(Request(LeasesRequest{})))).terms);
}

TEST(WireLeases, RefuseOddValues) {
  test::expect_refusals(leases_reply(),
                        {{"/leases/0/user", "a/b", "'leases[0].user' " + wrong_character},
                         {"/leases/0/own", 2, "'leases[0].own' is not true or false"},
                         {"/leases/0/cpus", -1, "'leases[0].cpus' is out of range"},
                         {"/leases/0/gpus/0", "../x", "'leases[0].gpus[0]' " + wrong_character},
                         {"/leases/0/gpus", Json(129, "x"), "'leases[0].gpus' has more than 128 entries"},
                         {"/leases/1", "waiting", "'leases[1]' is not an object"},
                         {"/free/gpus", -1, "'free.gpus' is out of range"},
                         {"/free/hiding_variable", "A B", "'free.hiding_variable' " + wrong_character},
                         {"/free/all_memory", max_leased_memory + 1, "'free.all_memory' is out of range"},
                         {"/no_leases", "\x1b[2J", "'no_leases' " + wrong_character},
                         {"/lent", 1, "the message has an unknown field"}});
}

TEST(WireLeases, RefuseMissingFields) {
  test::expect_needs_all_fields(LeaseToTake{});
  test::expect_needs_all_fields(LeaseTerms{});
  test::expect_needs_all_fields(FreeResources{});
  test::expect_needs_all_fields(leases_reply().leases.at(0));
}

}  // namespace
}  // namespace remote::wire
