#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/wire_refusals.hpp"
#include "wire/cbor.hpp"
#include "wire/frame.hpp"
#include "wire/json.hpp"
#include "wire/request.hpp"

// Messages about jobs: they arrive as they were sent, and impossible values are rejected.

namespace remote::wire {
namespace {

using std::chrono::seconds;
using test::expect_all_names;
using test::expect_needs_all_fields;
using test::expect_refusals;
using test::refusal_of;

constexpr Moment moment{1'700'000'000'123};

std::string make_id(std::size_t number) {
  std::string id = std::to_string(number);
  return std::string(32 - id.size(), 'a') + id;
}

JobsPlace make_place() {
  return {"/home/ada/project", ".jobs"};
}

StoppedBy make_stopper(StopCause cause = StopCause::user) {
  return {cause, 3, "ada@laptop"};
}

JobEnd make_end() {
  return {ProcessEnd::signalled(9), moment, "supervisor", "node-1.cluster"};
}

AttemptRecord make_attempt() {
  return {.number = 2,
          .began_at = moment,
          .failed_at = moment + seconds(1),
          .next_at = moment + seconds(2),
          .cause = RestartCause::lifeline,
          .end = ProcessEnd::exited(3),
          .rank = 1,
          .left_out = true,
          .server = "gpu1",
          .without = {"gpu2", "gpu3"}};
}

JobReport make_report() {
  JobReport report{.id = make_id(1), .phase = JobPhase::rebooted, .backend = "slurm", .pid = 4121};
  report.reason = "it's waiting: Priorität";
  report.supervised = false;
  report.left = report.unseen = report.after_peer = report.oom = report.usage_asked = true;
  report.disk = FolderFlaw::quota;
  report.machine = "0123456789abcdef";
  report.leftovers = 2;
  report.end = make_end();
  report.started_at = report.wrote_at = report.raised_at = moment;
  report.stop = StopRecord{2, make_stopper(StopCause::rank), moment};
  report.lifeline = LifelineTrouble{LifelineState::dead, "no room"};
  report.usage = JobUsage{8, 97, 1024, 2048};
  report.waits = {{"1.4121", 0, "train.py", 17, "ValueError"}, {"2.4122", std::nullopt, "a b.py", 1, ""}};
  report.hung = HangRecord{moment, seconds(60), moment + seconds(90)};
  report.attempts = {make_attempt(), AttemptRecord{}};
  report.no_restart = NoRestart::too_few_servers;
  report.out_size = std::uint64_t{1} << 62U;
  report.err_size = 5;
  report.last_line = "loss 0.31";
  return report;
}

Survivor make_survivor() {
  return {4121, "python", "ada", "D", true};
}

ManagedPython make_managed_python() {
  return {PythonManager::uv,
          "~/p",
          "~/p/.remote-scripts",
          "0123abcd",
          "~/p/.venv",
          "~/x",
          "~/miniconda",
          true,
          true,
          "3.11",
          std::string(64, 'a'),
          std::string(64, 'b'),
          {"/opt/p"},
          {"libx=1"},
          {{"TOKEN", "secret"}},
          "__failed=1\n",
          true};
}

NotifySpec make_notify_spec() {
  return {"https://a/\xc3\xbc", NotifyShape::slack, "mail me", "~/p",        "5", "night run", "mnist",
          "train.py",           {"a", "b"},         16,        1'700'000'000};
}

ProjectSource make_project_source() {
  return {make_id(1), "ada@laptop", "/home/ada/my proj", 1'700'000'000};
}

std::vector<Request> all_requests() {
  const std::vector<std::string> ids{make_id(1), make_id(2)};
  return {FactsRequest{.project = "~/x"},
          StateRequest{make_place(), ids, {make_id(2)}, true, true},
          WorkersRequest{make_place(), make_id(1), 5},
          LinesRequest{make_place(), ids, {"job.err", "job.out"}, 20},
          StopRequest{make_place(), ids, {make_id(1)}, {make_id(2)}, 9, 30, make_stopper()},
          CleanRequest{make_place(), ids},
          FollowRequest{make_place(), make_id(1), 7, 8, 10, seconds(90), false, true, 3},
          KeepProgramRequest{make_place(), {"0123abcd", 7}},
          StartJobsRequest{},
          MakeTreeRequest{make_place(), std::string(64, 'a')},
          UninstallRequest{make_place(), "~/agents", true, {"/tmp", "/a b"}},
          LeasesRequest{},
          BeginSweepRequest{},
          SweepRequest{make_place(), make_id(3), SweepAsk::stop, ids, {make_id(1)}},
          StacksRequest{make_place(), ids, "true", std::string(64, 'a')},
          WhyRequest{make_place(), ids, "true", seconds(3), "pass"},
          KeptWhyRequest{make_place(), ids},
          ListenRequest{"token", "10.0.0.1", 20001, true},
          ReachRequest{},
          SendRequest{"token", "10.0.0.2", 20001, 5201, 2, true},
          ContainerRequest{std::nullopt, "image", "~/p", "a=1\n", true, true},
          SlurmProgramsRequest{},
          ListenersRequest{8888},
          WebPortRequest{make_place(), make_id(1)},
          ClearSickMarkRequest{make_place()},
          PathsRequest{{"~/a b", "/x"}},
          MatchesRequest{"~", "a*/*.pt"},
          WrittenRequest{make_place(), make_id(1), ids, {"logs", "*.csv"}, 1'700'000'000},
          InitFileRequest{InitFileStep::see, "/mnt/x", make_id(1), "gpu1"},
          PullProjectRequest{
              "~/p", "~/p/w", "10.0.0.1", 22, "ada", "ssh-ed25519 AAAA", "p/", {"-s"}, true, "/tmp/s"},
          CompareFilesRequest{"~/p"},
          PreparedRequest{make_managed_python(), "0123abcd", "gpu1", true},
          RecordSourceRequest{"~/p/.remote-scripts", make_project_source()},
          RemovePartialsRequest{"~/p"},
          ProvisionRequest{},
          AuthorizeRequest{"ssh-ed25519", "AAAA+/==", "ann at home"},
          TryNotifyRequest{},
          RunRequest{.project = "~/p",
                     .variables = {{"A", "b"}},
                     .activate = "true",
                     .has_input = true,
                     .command = "exit 3"}};
}

std::vector<Reply> all_replies() {
  const FailedWorker worker{3, moment, true, {"Traceback\x1b", "ValueError"}, make_end()};
  const StopResult result{make_id(1),        KillResult::Entry::Outcome::survivors, 4, "why",
                          {make_survivor()}, {{std::nullopt, "?", "?", "", false}}};
  return {Refusal{"no"},
          FactsReply{},
          StateReply{moment, {make_report(), JobReport{.id = make_id(2)}}},
          WorkersReply{moment, {worker, FailedWorker{}}},
          LinesReply{{"a", "", "b\x1b\xff"}},
          StopReply{moment, {result}, {make_report()}},
          CleanReply{{{make_id(1), CleanOutcome::running, "pid 7"}, {make_id(2), CleanOutcome::none, ""}}},
          FollowBegins{moment, 1, 2},
          FollowEnds{moment, make_report()},
          KeepProgramReply{true},
          StartJobsReply{true, {}},
          MakeTreeReply{TreeOutcome::differs, {"a b.py", "é"}, 7, "why"},
          UninstallReply{{{make_id(1), 7, "/p"}, {}}, {"/a"}, {{LeftReason::results, "/b c"}}},
          LeasesReply{},
          BeginSweepReply{},
          SweepReply{.runner = SweepRunner::dead, .note = "why", .begun = {make_id(1)}},
          StacksReply{{ProcessStack{.id = make_id(1)}}},
          WhyReply{.addresses = {"0100007F"}},
          KeptWhyReply{std::nullopt, "{}"},
          ListenReply{{.firewall = "none"}, 0},
          ReachReply{},
          SendReply{},
          ContainerReply{ContainerOutcome::missing, std::nullopt, true, "why"},
          SlurmProgramsReply{{"PATH=/opt/slurm/bin"}},
          ListenersReply{{"127.0.0.1", "::1"}},
          WebPortReply{8888, "0123abcd"},
          ClearSickMarkReply{},
          PathsReply{{PathKind::link, PathKind::folder_link}},
          MatchesReply{{"a b/1.pt", "\xff"}},
          WrittenReply{{{"logs/a\n", 1'700'000'000, 5}}},
          InitFileReply{"/mnt/x/.remote-init-1", "why"},
          PullProjectReply{"a\rb\xff", std::nullopt, "why\n"},
          CompareFilesReply{2},
          PreparedReply{"gpu1", true, true, std::nullopt, "why\n"},
          RecordSourceReply{make_project_source()},
          RemovePartialsReply{},
          ProvisionReply{"pipenv", "a note", "a\rb\xff", "why\n", std::nullopt},
          AuthorizeReply{KeyState::failed, "/home/a b", "why"},
          TryNotifyReply{true, "HTTP 200 thanks"},
          RunBegins{},
          RunEnds{ProcessEnd::signalled(9)}};
}

TEST(WireJobs, AProvisioningArrivesAsItWasSent) {
  const Provisioning sent{make_managed_python(),
                          wire::Setup{"3.12", true, true, "https://host/{arch}.sh", "0a", "0b"},
                          Packages{PackageSource::pyproject,
                                   true,
                                   {{"a b.txt", std::string(64, 'c'), 0}, {"x.whl", "", 7}},
                                   "https://user:pass@host",
                                   {"https://two"},
                                   true,
                                   {"my wheels"},
                                   {"limits.txt"}}};
  EXPECT_EQ(to_json(decode<Provisioning>(encode(sent))), to_json(sent));
  expect_needs_all_fields(Provisioning{make_managed_python()});
  expect_needs_all_fields(sent.python);
  expect_needs_all_fields(*sent.setup);
  expect_needs_all_fields(*sent.packages);
  const ProvisionReply end{.end = ProvisionEnd{ProvisionFailure{"why", "try"}}};
  EXPECT_EQ(to_json(std::get<ProvisionReply>(decode<Reply>(encode(Reply(end))))), to_json(end));
  expect_all_names<PythonManager>();
  expect_all_names<PackageSource>();
  expect_refusals(Reply(ProvisionReply{.note = "a"}),
                  {{"/note", "a\x1b[2J", "'note' has a character that is not allowed"}});
}

// These use all enums, all kinds of fields and all structs, so that none can get lost.
TEST(WireJobs, EveryMessageArrivesAsItWasSent) {
  EXPECT_EQ(all_requests().size(), std::variant_size_v<Request>);
  for (const Request& request : all_requests()) {
    const auto received = decode<Request>(encode(request));
    EXPECT_EQ(received.index(), request.index());
    EXPECT_EQ(to_json(received), to_json(request));
    EXPECT_EQ(to_json(from_json<Request>(to_json(request))), to_json(request));
  }
  EXPECT_EQ(all_replies().size(), std::variant_size_v<Reply>);
  for (const Reply& reply : all_replies()) {
    const auto received = decode<Reply>(encode(reply));
    EXPECT_EQ(received.index(), reply.index());
    EXPECT_EQ(encode(received), encode(reply));
    EXPECT_EQ(to_json(received), to_json(reply))
        << to_json(reply).dump(-1, ' ', true, Json::error_handler_t::replace);
  }
}

TEST(WireJobs, AReportArrivesWithAllItsFields) {
  const JobReport sent = make_report();
  const auto received = std::get<FollowEnds>(decode<Reply>(encode(Reply(FollowEnds{moment, sent})))).job;
  EXPECT_EQ(received.id, sent.id);
  EXPECT_EQ(received.phase, JobPhase::rebooted);
  EXPECT_EQ(received.backend, "slurm");
  EXPECT_EQ(received.pid, 4121);
  EXPECT_EQ(received.reason, sent.reason);
  EXPECT_TRUE(!received.supervised && received.left && received.unseen && received.after_peer &&
              received.oom && received.usage_asked);
  EXPECT_EQ(received.disk, FolderFlaw::quota);
  EXPECT_EQ(received.machine, sent.machine);
  EXPECT_EQ(received.leftovers, 2);
  EXPECT_EQ(received.end->how, ProcessEnd::signalled(9));
  EXPECT_EQ(received.end->at, moment);
  EXPECT_EQ(received.end->by + " " + received.end->node, "supervisor node-1.cluster");
  EXPECT_EQ(received.stop->signal, 2);
  EXPECT_EQ(received.stop->by, make_stopper(StopCause::rank));
  EXPECT_EQ(received.lifeline->state, LifelineState::dead);
  EXPECT_EQ(received.usage, sent.usage);
  EXPECT_EQ(received.waits, sent.waits);
  EXPECT_EQ(received.hung->stood, seconds(60));
  EXPECT_EQ(received.hung->moved_at, moment + seconds(90));
  EXPECT_EQ(received.attempts[0].cause, RestartCause::lifeline);
  EXPECT_EQ(received.attempts[0].end, ProcessEnd::exited(3));
  EXPECT_EQ(received.attempts[0].without, sent.attempts[0].without);
  EXPECT_EQ(received.attempts[1].rank, std::nullopt);
  EXPECT_EQ(received.no_restart, NoRestart::too_few_servers);
  EXPECT_EQ(received.out_size, sent.out_size);
  EXPECT_EQ(received.last_line, "loss 0.31");
}

TEST(WireJobs, EnumsAreNames) {
  expect_all_names<StopCause>();
  expect_all_names<LifelineState>();
  expect_all_names<RestartCause>();
  expect_all_names<JobPhase>();
  expect_all_names<KillResult::Entry::Outcome>();
  expect_all_names<CleanOutcome>();
  expect_all_names<PathKind>();
  expect_all_names<InitFileStep>();
}

const std::string not_allowed = "has a character that is not allowed";

TEST(WireJobs, RefusesOddReports) {
  const std::string out_of_range = "is out of range";
  const auto at = [](const std::string& place, const std::string& reason) {
    return "'" + place + "' " + reason;
  };
  expect_refusals(
      make_report(),
      {{"/id", "1", at("id", not_allowed)},
       {"/id", std::string(31, 'a'), at("id", not_allowed)},
       {"/id", std::string(33, 'a'), at("id", "is longer than 32 bytes")},
       {"/id", std::string(32, 'A'), at("id", not_allowed)},
       {"/id", "../../../../../../../etc/passwd0", at("id", not_allowed)},
       {"/phase", "finished", at("phase", "is an unknown name")},
       {"/backend", "lo cal", at("backend", not_allowed)},
       {"/pid", 0, at("pid", out_of_range)},
       {"/pid", -1, at("pid", out_of_range)},
       {"/pid", 1LL << 40, at("pid", out_of_range)},
       {"/pid", "7", at("pid", "is not an integer")},
       {"/reason", "\x1b[2J", at("reason", not_allowed)},
       {"/reason", "a\nb", at("reason", not_allowed)},
       {"/reason", "\xe2\x80\xae", at("reason", not_allowed)},
       {"/reason", "\xff", at("reason", not_allowed)},
       {"/reason", std::string(1001, 'x'), at("reason", "is longer than 1000 bytes")},
       {"/supervised", 1, at("supervised", "is not true or false")},
       {"/leftovers", 0, at("leftovers", out_of_range)},
       {"/end/how/code", 256, at("end.how.code", out_of_range)},
       {"/end/how/signal", 65, at("end.how.signal", out_of_range)},
       {"/end/at", -1, at("end.at", out_of_range)},
       {"/end/at", 253'402'300'800'001, at("end.at", out_of_range)},
       {"/end/by", "a b", at("end.by", not_allowed)},
       {"/end/node", "a;b", at("end.node", not_allowed)},
       {"/end/other", 1, at("end", "has an unknown field")},
       {"/stop/signal", 0, at("stop.signal", out_of_range)},
       {"/stop/by/cause", "root", at("stop.by.cause", "is an unknown name")},
       {"/stop/by/text", "a\tb", at("stop.by.text", not_allowed)},
       {"/lifeline/state", "alive", at("lifeline.state", "is an unknown name")},
       {"/lifeline/reason", "\x07", at("lifeline.reason", not_allowed)},
       {"/usage/cpus", -1, at("usage.cpus", out_of_range)},
       {"/usage/memory_mib", 1LL << 31, at("usage.memory_mib", out_of_range)},
       {"/waits", Json(65, to_json(make_report().waits[0])), at("waits", "has more than 64 entries")},
       {"/waits/0/id", "1/2", at("waits[0].id", not_allowed)},
       {"/waits/1/file", "a\x1b", at("waits[1].file", not_allowed)},
       {"/waits/0/error", "Value Error", at("waits[0].error", not_allowed)},
       {"/waits/0/line", -1, at("waits[0].line", out_of_range)},
       {"/hung/stood", -1, at("hung.stood", out_of_range)},
       {"/hung/at", 1.5, at("hung.at", "is not an integer")},
       {"/attempts", Json(1002, to_json(make_attempt())), at("attempts", "has more than 1001 entries")},
       {"/attempts/1/number", 0, at("attempts[1].number", out_of_range)},
       {"/attempts/0/cause", "stop", at("attempts[0].cause", "is an unknown name")},
       {"/attempts/0/server", "a\x1b", at("attempts[0].server", not_allowed)},
       {"/attempts/0/without/1", "a\r", at("attempts[0].without[1]", not_allowed)},
       {"/attempts/0/rank", -1, at("attempts[0].rank", out_of_range)},
       {"/out_size", -1, at("out_size", out_of_range)},
       {"/err_size", std::uint64_t{1} << 63U, at("err_size", "is not an integer")},
       {"/other", 1, "the message has an unknown field"}});
}

TEST(WireJobs, RefusesOddReplies) {
  const Json job = to_json(make_report());
  expect_refusals(Reply(StateReply{moment, {make_report()}}),
                  {{"/kind", "stat", "the message is of an unknown kind"},
                   {"/kind", 7, "the message has no kind"},
                   {"/kind", "lines", "'lines' is missing"},
                   {"/now", -1, "'now' is out of range"},
                   {"/jobs", job, "'jobs' is not a list"},
                   {"/jobs/0/id", "x", "'jobs[0].id' " + not_allowed},
                   {"/other", true, "the message has an unknown field"}});
  const StopResult result{.id = make_id(1), .survivors = {make_survivor()}};
  expect_refusals(
      Reply(StopReply{moment, {result}, {}}),
      {{"/results/0/outcome", "gone", "'results[0].outcome' is an unknown name"},
       {"/results/0/signalled", -1, "'results[0].signalled' is out of range"},
       {"/results/0/survivors/0/pid", 0, "'results[0].survivors[0].pid' is out of range"},
       {"/results/0/survivors/0/state", "DD", "'results[0].survivors[0].state' is longer than 1 bytes"},
       {"/results/0/survivors/0/name", "a\nb", "'results[0].survivors[0].name' " + not_allowed},
       {"/results/0/suspects", Json(1001, to_json(make_survivor())),
        "'results[0].suspects' has more than 1000 entries"}});
  expect_refusals(
      Reply(WorkersReply{moment, {FailedWorker{}}}),
      {{"/workers/0/rank", -1, "'workers[0].rank' is out of range"},
       {"/workers/0/last_lines", Json(2049, "x"), "'workers[0].last_lines' has more than 2048 entries"}});
  expect_refusals(Reply(LinesReply{{"x"}}),
                  {{"/lines", Json(65'537, "x"), "'lines' has more than 65536 entries"},
                   {"/lines/0", std::string(65'537, 'x'), "'lines[0]' is longer than 65536 bytes"}});
  expect_refusals(Reply(CleanReply{{{make_id(1), CleanOutcome::failed, "busy"}}}),
                  {{"/jobs/0/outcome", "", "'jobs[0].outcome' is an unknown name"},
                   {"/jobs/0/reason", "\x7f", "'jobs[0].reason' " + not_allowed}});
  expect_refusals(Reply(ListenersReply{{"::"}}),
                  {{"/addresses/0", "a b", "'addresses[0]' " + not_allowed},
                   {"/addresses", Json(65, "::"), "'addresses' has more than 64 entries"}});
  expect_refusals(Reply(WebPortReply{}), {{"/port", 65536, "'port' is out of range"},
                                          {"/token", "a b", "'token' " + not_allowed},
                                          {"/token", "a/b", "'token' " + not_allowed}});
  expect_refusals(Reply(PathsReply{{PathKind::link}}), {{"/kinds/0", "?", "'kinds[0]' is an unknown name"}});
  expect_refusals(Reply(MatchesReply{{"x"}}),
                  {{"/names/0", std::string(4097, 'x'), "'names[0]' is longer than 4096 bytes"}});
  expect_refusals(Reply(WrittenReply{{{"x", 1, 2}}}),
                  {{"/files/0/size", -1, "'files[0].size' is out of range"},
                   {"/files/0/mtime", -1, "'files[0].mtime' is out of range"},
                   {"/files/0/name", 1, "'files[0].name' is not a string"}});
  expect_refusals(Reply(InitFileReply{"/x", ""}), {{"/failure", "a\nb", "'failure' " + not_allowed}});
  expect_refusals(Reply(FollowBegins{}), {{"/out_offset", -1, "'out_offset' is out of range"}});
  expect_refusals(Reply(FollowEnds{moment, make_report()}), {{"/job/id", "", "'job.id' " + not_allowed}});
}

TEST(WireJobs, RefusesOddRequests) {
  expect_refusals(Request(StateRequest{make_place(), {make_id(1)}}),
                  {{"/kind", "hello", "the message is of an unknown kind"},
                   {"/place/project", std::string(4097, 'x'), "'place.project' is longer than 4096 bytes"},
                   {"/place/home", "x", "'place' has an unknown field"},
                   {"/ids/0", "..", "'ids[0]' " + not_allowed},
                   {"/claim", Json{"*"}, "'claim[0]' " + not_allowed}});
  expect_refusals(
      Request(LinesRequest{make_place(), {make_id(1)}, {"job.err"}}),
      {{"/files/0", "job err", "'files[0]' " + not_allowed}, {"/count", 10'001, "'count' is out of range"}});
  expect_refusals(Request(StopRequest{.place = make_place(), .ids = {make_id(1)}, .by = {}}),
                  {{"/signal", 0, "'signal' is out of range"},
                   {"/signal", 65, "'signal' is out of range"},
                   {"/grace_s", -1, "'grace_s' is out of range"},
                   {"/by/cause", "me", "'by.cause' is an unknown name"},
                   {"/dead", Json{1}, "'dead[0]' is not a string"}});
  expect_refusals(Request(FollowRequest{.place = make_place(), .id = make_id(1)}),
                  {{"/lines", -1, "'lines' is out of range"},
                   {"/since", -1, "'since' is out of range"},
                   {"/rank", -1, "'rank' is out of range"},
                   {"/out_offset", 1e3, "'out_offset' is not an integer"}});
  expect_refusals(Request(ListenersRequest{1}), {{"/port", 0, "'port' is out of range"}});
  expect_refusals(Request(WebPortRequest{make_place(), make_id(1)}), {{"/id", "..", "'id' " + not_allowed}});
  expect_refusals(NotificationToTry{make_notify_spec(), "", ""},
                  {{"/spec/shape", "xml", "'spec.shape' is an unknown name"},
                   {"/spec/ranks", -1, "'spec.ranks' is out of range"},
                   {"/spec/servers", "a", "'spec.servers' is not a list"}});
  expect_refusals(Request(AuthorizeRequest{"ssh-rsa", "AAAA", "ann"}),
                  {{"/type", "ssh rsa", "'type' " + not_allowed},
                   {"/key", "AAAA\nssh-rsa", "'key' " + not_allowed},
                   {"/comment", "a\nb", "'comment' " + not_allowed}});
  expect_refusals(Request(WorkersRequest{make_place(), make_id(1)}),
                  {{"/lines", 1001, "'lines' is out of range"}, {"/id", 1, "'id' is not a string"}});
}

// Only the fields that these messages lack are optional.
TEST(WireJobs, RefusesMissingFields) {
  expect_needs_all_fields(JobReport{.id = make_id(1)});
  expect_needs_all_fields(AttemptRecord{});
  expect_needs_all_fields(StopRecord{});
  expect_needs_all_fields(Survivor{});
  expect_needs_all_fields(StopResult{.id = make_id(1)});
  expect_needs_all_fields(FailedWorker{});
  for (Request request : all_requests()) {
    if (auto* follow = std::get_if<FollowRequest>(&request)) {
      *follow = {.place = make_place(), .id = make_id(1)};
    } else if (auto* record = std::get_if<RecordSourceRequest>(&request)) {
      record->source.reset();
    }
    expect_needs_all_fields(request);
  }
  for (Reply reply : all_replies()) {
    if (auto* record = std::get_if<RecordSourceReply>(&reply)) {
      record->former.reset();
    }
    expect_needs_all_fields(reply);
  }
}

TEST(WireJobs, NamesNeitherIdsNorTextsInRefusals) {
  Json odd = to_json(make_report());
  odd["reason"] = "secret\n";
  EXPECT_EQ(refusal_of<JobReport>(odd).find("secret"), std::string::npos);
}

bool fits_frame(const Reply& reply) {
  const Bytes bytes = encode(reply);
  return bytes.size() <= max_payload && to_json(decode<Reply>(bytes)) == to_json(reply);
}

// An answer about many jobs is sent in parts. A single job always fits into a frame.
TEST(WireJobs, OneReportAlwaysFitsAFrame) {
  JobReport report = make_report();
  report.reason = std::string(1000, 'r');
  report.last_line = std::string(1000, 'l');
  report.lifeline->reason = report.stop->by.text = std::string(1000, 'x');
  report.waits.assign(
      max_waits, {std::string(64, '1'), 1 << 30, std::string(4096, 'f'), 1 << 30, std::string(1000, 'E')});
  AttemptRecord attempt = make_attempt();
  attempt.server = std::string(256, 's');
  attempt.without = {std::string(64, 's'), std::string(64, 't')};
  report.attempts.assign(max_attempts, attempt);
  EXPECT_TRUE(fits_frame(StateReply{moment, {report}}));
  EXPECT_TRUE(fits_frame(FollowEnds{moment, report}));

  Survivor survivor{1 << 30, std::string(200, 'n'), std::string(64, 'u'), "D", true};
  const StopResult result{make_id(1),
                          KillResult::Entry::Outcome::survivors,
                          1 << 30,
                          std::string(1000, 'r'),
                          std::vector(1000, survivor),
                          std::vector(1000, survivor)};
  EXPECT_TRUE(fits_frame(StopReply{moment, {result}, {}}));
}

// The usual number of jobs in a folder fits into a few parts.
TEST(WireJobs, ManyUsualReportsFitAFrame) {
  JobReport ended{.id = make_id(1), .phase = JobPhase::ended};
  ended.end = make_end();
  ended.started_at = ended.wrote_at = moment;
  ended.last_line = std::string(80, 'x');
  EXPECT_TRUE(fits_frame(StateReply{moment, std::vector(1500, ended)}));
  EXPECT_TRUE(fits_frame(CleanReply{std::vector(10'000, CleanedJob{make_id(1), CleanOutcome::removed, ""})}));
  EXPECT_TRUE(fits_frame(LinesReply{std::vector(500, std::string(2000, 'x'))}));
}

TEST(WireJobs, ManyIdsFitAFrame) {
  StopRequest request{.place = make_place(), .by = {}};
  request.ids.assign(30'000, make_id(1));
  const Bytes bytes = encode(Request(request));
  EXPECT_LE(bytes.size(), max_payload);
  EXPECT_EQ(std::get<StopRequest>(decode<Request>(bytes)).ids, request.ids);
}

// A message that claims more entries than it has does not cost more memory.
TEST(WireJobs, RefusesMoreEntriesThanTheMessageHas) {
  Json odd = to_json(Reply(StateReply{moment, {}}));
  odd["jobs"] = Json(200'000, nullptr);
  EXPECT_THROW(from_json<Reply>(odd), Malformed);
  EXPECT_THROW(decode<Reply>(Json::to_cbor(odd)), Malformed);
}

// The output of nlohmann_json can also be read: four-byte floats, keys in any order.
TEST(WireJobs, ReadsWhatOthersEncode) {
  for (const Reply& reply : all_replies()) {
    EXPECT_EQ(encode(decode<Reply>(Json::to_cbor(to_json(reply)))), encode(reply));
    EXPECT_EQ(Json::from_cbor(encode(reply)), to_json(reply));
  }
}

}  // namespace
}  // namespace remote::wire
