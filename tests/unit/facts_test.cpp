#include "servers/facts.hpp"

#include <functional>

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "support/instants.hpp"
#include "support/noise.hpp"
#include "wire/cbor.hpp"
#include "wire/json.hpp"

namespace remote::servers {
namespace {

using wire::FactsReply;
using wire::Json;

FactsReply full_reply() {
  FactsReply reply;
  ServerFacts& facts = reply.facts;
  facts.host = "gpu1";
  facts.user = "ada";
  facts.uid = 1000;
  facts.usable_threads = 8;
  facts.cpu_limit = 1.5;
  facts.memory_limit = 4096;
  facts.load = {0.1, 0.2, 0.3};
  DiskFacts& disk = facts.disks.emplace_back();
  disk.what = "project";
  disk.path = "/home/ada/my proj";
  disk.rotational = false;
  facts.limits = {{"memlock", std::nullopt}, {"nofile", 1024}};
  facts.packages = {{"numpy", {"1.26.4", false}}};
  facts.infiniband = {{"mlx5_0", 1, "InfiniBand", "ACTIVE", "200 Gb/sec (4X HDR)"}};
  facts.programs = {"rsync"};
  facts.gpus.gpus = {{.name = "A100", .clock_limits = {ClockLimit::power_cap}}};
  facts.gpus.gpus[0].processes = {{.pid = 7, .name = "python", .age = std::chrono::seconds(5)}};
  facts.gpus.tools = {{.program = "nvidia-smi", .state = GpuToolState::hangs}};
  facts.gpus.topology = GpuTopology{{"GPU0", "GPU1"}, {{"X", "NV4"}, {"NV4", "X"}}};
  facts.gpus.xids = std::vector<XidError>{{"0000:3b:00", 79, "fallen off the bus"}};
  facts.gpus.visible = {{"CUDA_VISIBLE_DEVICES", "0,1", true}};
  reply.clock = std::chrono::milliseconds(1'700'000'000'000);
  reply.ticks = {5, 10};
  reply.disks_hang = reply.has_leases = true;
  reply.others = {{"~/other", 2}};
  reply.route = wire::RouteFacts{"10.0.0.1", "eth0", "10.0.0.2"};
  reply.port = wire::PortFacts{false, wire::PortHolder{"ada", 4121, "my server"}, 20001, 20002};
  reply.mpi = wire::MpiFacts{.version = "4.1.4"};
  reply.code = wire::CodeFacts{{{"a file", wire::ChangedFile::Stamp{3, 4}}, {"gone", std::nullopt}}, 2};
  return reply;
}

TEST(FactsReply, ArrivesAsItWasSent) {
  const Json sent = wire::to_json(full_reply());
  const auto received = wire::decode<FactsReply>(wire::encode(full_reply()));
  EXPECT_EQ(wire::to_json(received), sent);
  EXPECT_EQ(received.facts.limits, full_reply().facts.limits);
  EXPECT_EQ(received.code->files[1].stamp, std::nullopt);
  EXPECT_TRUE(received.disks_hang && received.has_leases);
}

// A server may send anything: impossible values are rejected.
TEST(FactsReply, OddValuesAreRefused) {
  const Json good = wire::to_json(full_reply());
  const std::vector<std::pair<const char*, Json>> odd{
      {"/facts/host", "\x1b[2Jevil"},
      {"/facts/host", std::string(5000, 'x')},
      {"/facts/os", "a\nb"},
      {"/facts/uid", -1},
      {"/facts/gpus/visible/0/variable", "A B"},
      {"/facts/gpus/visible/0/value", "\x1b[2J"},
      {"/facts/cores", -3},
      {"/facts/memory", -1},
      {"/facts/load", Json{1, 2, 3, 4}},
      {"/facts/load", Json{1, 2, "nan"}},
      {"/facts/programs", Json{"../../x"}},
      {"/facts/limits", Json{{"x\x1b", 1}}},
      {"/facts/disks/0/total_bytes", -1},
      {"/facts/packages", Json{{"a\nb", {{"version", "1"}, {"distribution", false}}}}},
      {"/facts/gpus/gpus/0/vendor", "acme"},
      {"/facts/gpus/gpus/0/processes/0/pid", 0},
      {"/facts/gpus/tools/0/text", "\x9b"},
      {"/facts/infiniband/0/device", "../x"},
      {"/cpus_online", 0},
      {"/route/interface", "eth0;reboot"},
      {"/route/address", "10.0.0.1\n"},
      {"/port/suggested", 70000},
      {"/port/holder/user", "a b"},
      {"/port/holder/program", "my\x1b[2Jserver"},
      {"/clock", "soon"},
      {"/colour", "blue"},
      {"/facts/torch", "2.1.0; reboot"},
      {"/facts/python", "3.11 $(reboot)"},
      {"/facts/nccl", "2|sh"},
      {"/facts/packages", Json{{"numpy;reboot", {{"version", "1"}, {"distribution", false}}}}},
      {"/facts/packages", Json{{"numpy", {{"version", "1 && reboot"}, {"distribution", false}}}}},
      {"/facts/sick", "gpu x"},
      {"/facts/infiniband/0/layer", "a b"},
      {"/facts/gpus/gpus/0/processes/0/user", "a b"},
      {"/facts/gpus/gpus/0/processes/0/job", "../x"},
      {"/facts/gpus/gpus/0/utilisation", 101},
      {"/clock", -1},
  };
  for (const auto& [place, value] : odd) {
    Json changed = good;
    changed[Json::json_pointer(place)] = value;
    EXPECT_THROW(wire::from_json<FactsReply>(changed), wire::Malformed)
        << place << " " << value.dump(-1, ' ', true, Json::error_handler_t::replace);
  }
}

// Any bytes give a reply or Malformed, nothing else.
TEST(FactsReply, SurvivesAnyBytes) {
  const wire::Bytes good = wire::encode(full_reply());
  std::mt19937 random(1);
  for (int round = 0; round < 5000; ++round) {  // the fuzzers run more
    const std::string bytes = test::damaged(std::string(good.begin(), good.end()), random);
    try {
      wire::decode<FactsReply>(wire::Bytes(bytes.begin(), bytes.end()));
    } catch (const wire::Malformed&) {
    }
  }
}

FactsAnswer with_ticks(std::uint64_t busy, std::uint64_t all) {
  FactsAnswer answer;
  answer.ticks = {busy, all};
  return answer;
}

TEST(Load, IsOfTheMomentAndTheProjectsDisk) {
  FactsAnswer answer = with_ticks(1000, 4000);
  answer.cpus_online = 8;
  answer.facts.load = {1.25, 1, 1};
  answer.facts.memory = 2048;
  answer.facts.memory_available = 512;
  DiskFacts& disk = answer.facts.disks.emplace_back();
  disk.what = "project";
  disk.total_bytes = 1000;
  disk.free_bytes = 250;
  const ServerLoad load = answer.load(std::nullopt);
  EXPECT_EQ(load.cpus, 8);
  EXPECT_EQ(load.load, 1.25);
  EXPECT_FALSE(load.cpu) << "one look says nothing about a time";
  EXPECT_EQ(load.memory_total, 2048U);
  EXPECT_EQ(load.memory_available, 512U);
  EXPECT_EQ(load.disk_total, 1000U);
  EXPECT_EQ(load.disk_free, 250U);
}

TEST(Load, TellsWhatWasBusySinceTheLastLook) {
  const wire::Ticks earlier{1000, 4000};
  EXPECT_EQ(with_ticks(1100, 4400).load(earlier).cpu, 25);
  EXPECT_EQ(with_ticks(1400, 4400).load(earlier).cpu, 100);
  EXPECT_FALSE(with_ticks(10, 40).load(earlier).cpu) << "the server was restarted";
  EXPECT_FALSE(with_ticks(2000, 4400).load(earlier).cpu) << "more than there is";
  EXPECT_FALSE(with_ticks(1000, 4000).load(earlier).cpu) << "no time has passed";
}

TEST(Facts, ClocksThatMayAgreeAgree) {
  const auto difference = [](std::int64_t server, std::int64_t asked, std::int64_t answered) {
    return clock_difference(exact_instant(server), exact_instant(asked), exact_instant(answered)).count();
  };
  EXPECT_EQ(difference(100'005, 100'000, 100'010), 0);
  EXPECT_EQ(difference(100'000, 90'000, 120'000), 0) << "a slow answer proves nothing";
  EXPECT_EQ(difference(160'000, 100'000, 100'500), 59500);
  EXPECT_EQ(difference(40'000, 100'000, 100'500), -60000);
}

TEST(ChoosePort, TakesTheRequestedOrTheSuggestedOne) {
  FactsAnswer answer;
  static_cast<FactsReply&>(answer) = full_reply();
  EXPECT_EQ(choose_port(answer, std::nullopt), 20001);
  EXPECT_EQ(choose_port(answer, 0), 20001);
  try {
    choose_port(answer, 29500);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_EQ(error.reason(), "it is taken by my server (pid 4121, user ada)");
    EXPECT_EQ(error.remedy(), Remedy::choose_port);
    EXPECT_EQ(error.remedy_detail(), "20001");
  }
  answer.port->holder->pid.reset();
  try {
    choose_port(answer, 29500);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.reason(), "it is taken by a process of user ada");
  }
  answer.port->is_free = true;
  EXPECT_EQ(choose_port(answer, 29500), 29500);
  answer.port->suggested.reset();
  EXPECT_THROW(choose_port(answer, 0), Error);
}

TEST(Facts, KnowsWhoseProcessesLogindEnds) {
  ServerFacts facts;
  facts.in_session = facts.kill_user_processes = true;
  EXPECT_FALSE(logout_ends_jobs(facts, "root")) << "unless other users are excluded";
  facts.kill_excluded = {"root", "bob"};
  facts.kill_only = {"bob", "ada"};
  EXPECT_TRUE(logout_ends_jobs(facts, "ada"));
  EXPECT_FALSE(logout_ends_jobs(facts, "bob"));
  EXPECT_FALSE(logout_ends_jobs(facts, "eve"));
}

}  // namespace
}  // namespace remote::servers
