#include "jobs/ask.hpp"

#include <functional>
#include <random>

#include <gtest/gtest.h>
#include <remote/error.hpp>

#include "jobs/from_wire.hpp"
#include "jobs/verdict.hpp"
#include "servers/agent.hpp"
#include "support/fake_agent.hpp"
#include "support/instants.hpp"
#include "support/noise.hpp"

// How the client handles an agent's answers about jobs, whether valid or not.

namespace remote::jobs {
namespace {

using Json = nlohmann::json;
using Outcome = KillResult::Entry::Outcome;
using std::chrono::milliseconds;

const RemoteFolder folder{"~/p", ".jobs"};
const std::string id_a = "0123456789abcdef0123456789abcdef";
const std::string id_b = "ffffffffffffffffffffffffffffffff";
const JobId job_a = *JobId::parse(id_a);
const JobId job_b = *JobId::parse(id_b);

wire::JobReport report_of(const std::string& id, wire::JobPhase phase) {
  wire::JobReport report{.id = id, .phase = phase};
  if (phase == wire::JobPhase::ended) {
    report.end = {.how = wire::ProcessEnd::exited(0), .at = milliseconds(12042), .by = "supervisor"};
  }
  return report;
}

class AskJobs : public ::testing::Test {
 protected:
  StateAnswer ask(bool keeps_partial = false) {
    StateQuestion question{.folder = folder, .ids = {job_a, job_b}};
    question.keeps_partial = keeps_partial;
    return ask_state({agent, cancel}, question);
  }
  StopAnswer stop() { return ask_stop({agent, cancel}, {.folder = folder, .ids = {job_a, job_b}}); }
  // Encodes a reply after changing its JSON.
  static Json changed(const wire::Reply& reply, const std::function<void(Json&)>& change) {
    Json message = Json::from_cbor(wire::encode(reply));
    change(message);
    return message;
  }

  test::FakeAgent agent;
  const Cancel cancel;
};

TEST_F(AskJobs, ThePartsOfAnAnswerAreCollected) {
  agent.answer(wire::StateReply{milliseconds(1763712000042), {}});
  wire::JobReport first = report_of(id_a, wire::JobPhase::ended);
  first.stop = {.signal = 15, .by = {.text = "a b%"}, .at = milliseconds(11999)};
  agent.answer(wire::StateReply{milliseconds(1763712000042), {first}});
  agent.answer(wire::StateReply{milliseconds(1763712009000), {report_of(id_b, wire::JobPhase::running)}});
  const StateAnswer answer = ask();
  ASSERT_TRUE(answer.time);
  EXPECT_EQ(answer.time->now, exact_instant(1763712000042)) << "the first one was told at once";
  EXPECT_GT(answer.time->heard_at, ExactInstant());
  EXPECT_EQ(answer.jobs.size(), 2U);
  EXPECT_EQ(answer.jobs.at(job_a).stop->by.text, "a b%");
  EXPECT_EQ(answer.jobs.at(job_b).phase, wire::JobPhase::running);
  EXPECT_EQ(answer.find(JobId::random()), nullptr);
  ASSERT_EQ(agent.requests.size(), 1U);
  EXPECT_EQ(agent.requests[0]["kind"], "state");
  EXPECT_EQ(agent.requests[0]["ids"], (Json{id_a, id_b}));
  EXPECT_EQ(agent.requests[0]["place"], (Json{{"project", "~/p"}, {"jobs_folder", ".jobs"}}));
}

TEST_F(AskJobs, OneAgentAnswersSeveralQuestions) {
  agent.answer(wire::StateReply{milliseconds(1), {report_of(id_a, wire::JobPhase::running)}});
  servers::Agent running(agent, cancel);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(ask_state(running, {.folder = folder, .ids = {job_a}}).jobs.size(), 1U);
  }
  EXPECT_EQ(agent.requests.size(), 3U);
}

TEST_F(AskJobs, OtherJobsAreIgnoredAndTheFirstReportOfOneCounts) {
  agent.answer(
      wire::StateReply{milliseconds(1),
                       {report_of(std::string(32, 'c'), wire::JobPhase::running),
                        report_of(id_a, wire::JobPhase::ended), report_of(id_a, wire::JobPhase::running)}});
  agent.answer(wire::StateReply{milliseconds(1), {report_of(id_a, wire::JobPhase::gone)}});
  const StateAnswer answer = ask();
  ASSERT_EQ(answer.jobs.size(), 1U);
  EXPECT_EQ(answer.jobs.at(job_a).phase, wire::JobPhase::ended);
}

TEST_F(AskJobs, WhatCameBeforeAFailureCanBeUsed) {
  agent.answer(wire::StateReply{milliseconds(1000), {report_of(id_a, wire::JobPhase::running)}});
  agent.dies = true;
  const StateAnswer answer = ask(true);
  ASSERT_TRUE(answer.failure);
  ASSERT_TRUE(answer.time);
  EXPECT_EQ(answer.jobs.size(), 1U);
  EXPECT_THROW(ask(), Error);
  agent.messages.clear();
  EXPECT_FALSE(ask(true).time);
}

TEST_F(AskJobs, AnAnswerWithoutTheServersClockIsRefused) {
  EXPECT_THROW(ask(), Error);
  EXPECT_THROW(stop(), Error);
  EXPECT_THROW(ask_workers({agent, cancel}, folder, job_a, 3), Error);
}

TEST_F(AskJobs, ARefusalHasTheServersReason) {
  agent.answer(wire::Refusal{"no right to look"});
  try {
    ask();
    FAIL();
  } catch (const servers::Refused& error) {
    EXPECT_EQ(error.reason(), "no right to look");
  }
}

TEST_F(AskJobs, WhatDoesNotFitTogetherIsRefused) {
  using Change = std::function<void(wire::JobReport&)>;
  for (const Change& change : std::vector<Change>{
           [](wire::JobReport& job) { job.end.reset(); },
           [](wire::JobReport& job) {
             job.waits = {{"1.7", 3, "x", 88, ""}};
           },
           [](wire::JobReport& job) {
             job.phase = wire::JobPhase::running;
             job.usage = JobUsage{8, 12, 3174, 65536};
           },
           [](wire::JobReport& job) {
             job.phase = wire::JobPhase::starting;
             job.waits = {{"1.7", 3, "x", 88, ""}};
           },
       }) {
    wire::JobReport report = report_of(id_a, wire::JobPhase::ended);
    agent.messages.clear();
    agent.answer(wire::StateReply{milliseconds(1), {report}});
    EXPECT_NO_THROW(ask());
    change(report);
    agent.messages.clear();
    agent.answer(wire::StateReply{milliseconds(1), {report}});
    EXPECT_THROW(ask(), Error);
  }
  agent.messages.clear();
  agent.answer(wire::LinesReply{{"x"}});
  EXPECT_THROW(ask(), Error) << "the answer to another question";
}

// The limits in src/wire/jobs.hpp, as applied to an answer.
TEST_F(AskJobs, OddValuesAreRefused) {
  using Change = std::function<void(Json&)>;
  wire::JobReport report = report_of(id_a, wire::JobPhase::ended);
  report.started_at = milliseconds(11000);
  report.stop = {.signal = 15, .by = {.text = "ada"}, .at = milliseconds(11999)};
  report.hung = wire::HangRecord{milliseconds(1000), std::chrono::seconds(2), std::nullopt};
  report.attempts = {{.number = 1, .cause = RestartCause::lost, .server = "my gpu"}};
  report.usage = JobUsage{8, 12, 3174, 65536};
  const wire::Reply good = wire::StateReply{milliseconds(1), {report}};
  agent.answer(changed(good, [](Json&) {}));
  EXPECT_EQ(ask().jobs.size(), 1U);
  const auto job = [](const std::function<void(Json&)>& change) {
    return [change](Json& message) { change(message["jobs"][0]); };
  };
  for (const Change& change : std::vector<Change>{
           [](Json& message) { message["now"] = 253402300800001; },
           [](Json& message) { message["now"] = -1; },
           [](Json& message) { message["now"] = 1.5; },
           [](Json& message) { message.erase("now"); },
           job([](Json& one) { one["id"] = "x"; }),
           job([](Json& one) { one["id"] = "../" + id_a.substr(3); }),
           job([](Json& one) { one["phase"] = "walking"; }),
           job([](Json& one) { one["end"]["how"]["code"] = 256; }),
           job([](Json& one) { one["end"]["how"]["signal"] = 65; }),
           job([](Json& one) { one["end"]["at"] = -1; }),
           job([](Json& one) { one["end"]["by"] = "$(id)"; }),
           job([](Json& one) { one["end"]["node"] = "n 1"; }),
           job([](Json& one) { one["pid"] = 0; }),
           job([](Json& one) { one["pid"] = -5; }),
           job([](Json& one) { one["pid"] = 99999999999LL; }),
           job([](Json& one) { one["colour"] = "red"; }),
           job([](Json& one) { one["reason"] = "\x1b[2J"; }),
           job([](Json& one) { one["reason"] = "two\nlines"; }),
           job([](Json& one) { one["reason"] = std::string(1001, 'y'); }),
           job([](Json& one) { one["backend"] = "a b"; }),
           job([](Json& one) { one["started_at"] = 253402300800001; }),
           job([](Json& one) { one["out_size"] = -1; }),
           job([](Json& one) { one["leftovers"] = 0; }),
           job([](Json& one) { one["stop"]["signal"] = 0; }),
           job([](Json& one) { one["stop"]["by"]["cause"] = "boredom"; }),
           job([](Json& one) { one["stop"]["by"]["text"] = "\x9b"; }),
           job([](Json& one) { one["hung"]["stood"] = -2; }),
           job([](Json& one) { one["attempts"][0]["number"] = 0; }),
           job([](Json& one) { one["attempts"][0]["cause"] = "boredom"; }),
           job([](Json& one) { one["attempts"][0]["server"] = "a\tb"; }),
           job([](Json& one) { one["usage"]["cpu_percent"] = -1; }),
           job([](Json& one) { one["usage"]["memory_mib"] = 99999999999LL; }),
           job([](Json& one) { one["last_line"] = std::string(1001, 'y'); }),
           job([](Json& one) {
             one["waits"] = {{{"id", "../x"}, {"file", "x"}, {"line", 88}, {"error", ""}}};
           }),
       }) {
    const Json bad = changed(good, change);
    agent.messages.clear();
    agent.answer(bad);
    EXPECT_THROW(ask(), Error) << bad.dump(-1, ' ', true, Json::error_handler_t::replace);
  }
}

TEST_F(AskJobs, StoppedJobsAndWhatSurvivesAreRead) {
  wire::StopResult killed{.id = id_a, .outcome = Outcome::killed, .signalled = 3};
  killed.suspects = {{.pid = 4121, .name = "ssh-agent", .user = "ada", .state = "S"}};
  wire::StopResult alive{.id = id_b, .outcome = Outcome::survivors, .signalled = 2};
  alive.survivors = {{.pid = 4121, .name = "(python3 (x) y)", .user = "ada", .state = "D"},
                     {.pid = 4122, .holds_gpu_memory = true},
                     {.name = "Slurm job 12"}};
  agent.answer(wire::StopReply{milliseconds(5000), {}, {}});
  agent.answer(
      wire::StopReply{milliseconds(5000), {killed, alive}, {report_of(id_a, wire::JobPhase::ended)}});
  const StopAnswer answer = stop();
  EXPECT_EQ(answer.state.time->now, exact_instant(5000));
  EXPECT_EQ(answer.state.jobs.at(job_a).phase, wire::JobPhase::ended);
  ASSERT_EQ(answer.results.size(), 2U);
  EXPECT_EQ(answer.results.at(job_a).outcome, Outcome::killed);
  EXPECT_EQ(answer.results.at(job_a).signalled, 3);
  EXPECT_EQ(describe_suspect(answer.results.at(job_a).suspects.at(0)),
            "pid 4121 (ssh-agent, user ada, state S): its files may not be read, but it began while the job "
            "ran, and has no parent");
  const auto& survivors = answer.results.at(job_b).survivors;
  ASSERT_EQ(survivors.size(), 3U);
  EXPECT_EQ(describe(survivors[0]), "pid 4121 ((python3 (x) y), user ada, state D)");
  EXPECT_EQ(describe(survivors[1]), "pid 4122 (gone, but its GPU memory is still held)");
  EXPECT_EQ(describe(survivors[2]), "Slurm job 12");
  EXPECT_EQ(describe({.pid = 7, .name = "x"}), "pid 7 (x, user ?, state ?)");

  alive.outcome = Outcome::killed;
  agent.messages.clear();
  agent.answer(wire::StopReply{milliseconds(5000), {alive}, {}});
  EXPECT_THROW(stop(), Error) << "nothing survives a job that was killed";
  for (const auto& change : std::vector<std::function<void(Json&)>>{
           [](Json& one) { one["signalled"] = -1; }, [](Json& one) { one["outcome"] = "walked"; },
           [](Json& one) { one["suspects"][0]["pid"] = 0; },
           [](Json& one) { one["suspects"][0]["name"] = "a\nb"; },
           [](Json& one) { one["suspects"][0]["user"] = "\x1b[2J"; },
           [](Json& one) { one["suspects"][0]["state"] = "DD"; }}) {
    agent.messages.clear();
    agent.answer(changed(wire::StopReply{milliseconds(5000), {killed}, {}},
                         [&](Json& message) { change(message["results"][0]); }));
    EXPECT_THROW(stop(), Error);
  }
}

TEST_F(AskJobs, AStopIsAskedForWithAllThatItNeeds) {
  agent.answer(wire::StopReply{milliseconds(5000), {}, {}});
  StopQuestion question{.folder = folder, .ids = {job_a, job_b}, .signal = 2, .grace_s = 7};
  question.by = {.kind = JobReason::Kind::after_rank, .number = 3};
  question.claim = {job_a};
  question.dead = {job_b};
  ask_stop({agent, cancel}, question);
  const Json& request = agent.requests.at(0);
  EXPECT_EQ(request["kind"], "stop");
  EXPECT_EQ(request["signal"], 2);
  EXPECT_EQ(request["grace_s"], 7);
  EXPECT_EQ(request["by"], (Json{{"cause", "rank"}, {"number", 3}, {"text", ""}}));
  EXPECT_EQ(request["claim"], Json{id_a});
  EXPECT_EQ(request["dead"], Json{id_b});
  question.grace_s = -1;
  ask_stop({agent, cancel}, question);
  EXPECT_EQ(agent.requests.at(1)["grace_s"], 0);
  for (const int signal : {0, 65, -1}) {
    question.signal = signal;
    EXPECT_THROW(ask_stop({agent, cancel}, question), Error);
  }
  EXPECT_EQ(agent.requests.size(), 2U) << "a wrong signal never reaches a server";
}

TEST_F(AskJobs, RemovedFoldersAreRead) {
  using enum wire::CleanOutcome;
  const auto clean = [this](std::vector<wire::CleanedJob> jobs) {
    agent.messages.clear();
    agent.answer(wire::CleanReply{std::move(jobs)});
    return ask_clean({agent, cancel}, folder, {job_a, job_b});
  };
  const CleanAnswer answer =
      clean({{id_a, removed, ""}, {id_b, running, "pid 7 lives"}, {std::string(32, 'c'), removed, ""}});
  ASSERT_EQ(answer.size(), 2U);
  EXPECT_TRUE(is_removed(answer.at(job_a).outcome));
  EXPECT_FALSE(is_removed(answer.at(job_b).outcome));
  for (const wire::CleanedJob& wrong : std::vector<wire::CleanedJob>{
           {id_a, failed, ""}, {id_a, running, ""}, {id_a, removed, "because"}, {id_a, none, "because"}}) {
    EXPECT_THROW(clean({wrong}), Error) << wrong.reason;
  }
}

TEST_F(AskJobs, FailedWorkersAreReadByRank) {
  wire::FailedWorker worker{.rank = 3, .raised_at = milliseconds(1700000000123)};
  worker.last_lines = {"ValueError: a bad batch", "\x1b[2J is foreign text"};
  worker.end = {.how = wire::ProcessEnd::signalled(9), .by = "slurm", .node = "n-4.x"};
  agent.answer(wire::WorkersReply{milliseconds(9000), {worker, {.rank = 0}, {.rank = 3}}});
  const WorkersAnswer answer = ask_workers({agent, cancel}, folder, job_a, 3);
  EXPECT_EQ(answer.time.now, exact_instant(9000));
  ASSERT_EQ(answer.workers.size(), 2U);
  EXPECT_EQ(answer.workers.at(3).last_lines, worker.last_lines);
  EXPECT_EQ(answer.workers.at(3).end->node, "n-4.x");
  EXPECT_FALSE(answer.workers.at(0).raised_at);
  agent.messages.clear();
  agent.answer(changed(wire::WorkersReply{milliseconds(9000), {worker}},
                       [](Json& message) { message["workers"][0]["rank"] = -1; }));
  EXPECT_THROW(ask_workers({agent, cancel}, folder, job_a, 3), Error);
}

// mpirun hung after rank 3 had failed.
TEST_F(AskJobs, AJobThatWasEndedBecauseOfItsOwnRankHasFailed) {
  Job job;
  job.id = job_a;
  job.remote_folder = folder;
  job.state = JobState::killed;
  job.result = ExitStatus::signalled(15);
  job.reason = {.kind = JobReason::Kind::after_rank, .number = 3};
  job.rank = 2;
  job.ranks = 2;
  wire::FailedWorker worker{.rank = 3};
  worker.end = {.how = wire::ProcessEnd::exited(7), .at = milliseconds(8000), .by = "mpirun"};
  agent.answer(wire::WorkersReply{milliseconds(9000), {worker}});
  const Job failed = with_failed_rank({agent, cancel}, job);
  EXPECT_EQ(failed.state, JobState::failed);
  EXPECT_EQ(failed.result, ExitStatus::exited(7));
  EXPECT_EQ(failed.reason.number, 3);
  job.reason.number = 4;
  EXPECT_EQ(with_failed_rank({agent, cancel}, job), job) << "the rank of another job";
}

TEST_F(AskJobs, LastLinesComeAsTheyAre) {
  agent.answer(wire::LinesReply{{"@remote1 end", "\xff"}});
  agent.answer(wire::LinesReply{{""}});
  EXPECT_EQ(ask_lines({agent, cancel}, {.folder = folder, .ids = {job_a}, .files = {"job.err"}}),
            (std::vector<std::string>{"@remote1 end", "\xff", ""}));
}

TEST_F(AskJobs, AnErrorHasNoControlCharacters) {
  Json message = Json::from_cbor(wire::encode(wire::Reply(wire::StateReply{milliseconds(1), {}})));
  message["\x1b[2Jstart"] = 1;
  agent.answer(message);
  try {
    ask();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message().find('\x1b'), std::string::npos);
  }
}

// Any bytes give a value or an Error, nothing else.
TEST_F(AskJobs, SurviveNoise) {
  std::mt19937 random(7);  // NOLINT: the same noise every time
  wire::JobReport report = report_of(id_a, wire::JobPhase::ended);
  report.attempts = {{.number = 1, .cause = RestartCause::lost, .server = "my gpu"}};
  wire::StopResult result{.id = id_b, .outcome = Outcome::survivors, .signalled = 2};
  result.survivors = {{.pid = 4, .name = "x", .user = "ada", .state = "D"}};
  const wire::Bytes state = wire::encode(wire::Reply(wire::StateReply{milliseconds(1), {report}}));
  const wire::Bytes stopped = wire::encode(wire::Reply(wire::StopReply{milliseconds(1), {result}, {report}}));
  int refused = 0;
  for (int i = 0; i < 300; ++i) {  // the fuzzers run more
    for (const wire::Bytes& good : {state, stopped}) {
      const std::string text = test::damaged(std::string(good.begin(), good.end()), random);
      agent.messages = {wire::Bytes(text.begin(), text.end())};
      try {
        ask();
      } catch (const Error&) {
        ++refused;
      }
      try {
        stop();
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 300);
}

TEST(FromWire, WhoStoppedAJobIsTheSameOnBothSides) {
  using Kind = JobReason::Kind;
  for (const JobReason& by :
       {JobReason{.kind = Kind::after_rank, .number = 12},
        JobReason{.kind = Kind::after_loss, .text = "b é: %41"},
        JobReason{.kind = Kind::after_hang, .number = 90}, JobReason{.kind = Kind::by_launch},
        JobReason{.kind = Kind::by_user, .text = "rank 2"}, JobReason{.kind = Kind::by_user}}) {
    EXPECT_EQ(to_reason(to_stopped_by(by)), by);
  }
  EXPECT_EQ(to_stopped_by({}), wire::StoppedBy()) << "a user who is not known";
  EXPECT_EQ(to_stopped_by({.kind = Kind::by_user, .text = "a\x1b"}).text, "a\\x1b");
}

TEST(FromWire, AttemptsAndHangsAreByTheSecond) {
  Attempt attempt{.number = 1,
                  .began_at = instant(1),
                  .failed_at = instant(2),
                  .next_at = instant(3),
                  .cause = RestartCause::oom};
  attempt.rank = 3;
  attempt.server = "my gpu";
  attempt.result = ExitStatus::signalled(9);
  attempt.left_out = true;
  attempt.without = {"b", "my gpu"};
  wire::AttemptRecord record{.number = 1,
                             .began_at = milliseconds(1000),
                             .failed_at = milliseconds(2500),
                             .next_at = milliseconds(3999),
                             .cause = RestartCause::oom};
  record.end = wire::ProcessEnd::signalled(9);
  record.rank = 3;
  record.left_out = true;
  record.server = "my gpu";
  record.without = {"b", "my gpu"};
  EXPECT_EQ(to_attempt(record), attempt);
  record.end.reset();
  record.rank.reset();
  EXPECT_FALSE(to_attempt(record).result);
  EXPECT_FALSE(to_attempt(record).rank);
  EXPECT_EQ(
      to_hung({milliseconds(1763711000999), std::chrono::minutes(30), milliseconds(1763711500001)}),
      (Hung{.at = instant(1763711000), .stood = std::chrono::minutes(30), .moved_at = instant(1763711500)}));
  EXPECT_FALSE(to_hung({milliseconds(1000), std::chrono::seconds(2), std::nullopt}).moved_at);
}

TEST(FromWire, WhatIsWrongWithALifelineIsAReason) {
  using Kind = JobReason::Kind;
  EXPECT_EQ(to_reason(wire::LifelineTrouble{wire::LifelineState::missing, "why"}),
            (JobReason{.kind = Kind::no_lifeline, .text = "why"}));
  EXPECT_EQ(to_reason(wire::LifelineTrouble{wire::LifelineState::dead, "why"}),
            (JobReason{.kind = Kind::lifeline_dead, .text = "why"}));
  EXPECT_EQ(to_reason(wire::LifelineTrouble{wire::LifelineState::restarted, ""}).kind,
            Kind::lifeline_restarted);
}

TEST(FromWire, AProcessEndIsAnExitStatus) {
  for (const ExitStatus& status :
       {ExitStatus::exited(0), ExitStatus::exited(255), ExitStatus::signalled(9)}) {
    EXPECT_EQ(to_process_end(status).status(), status);
  }
}

}  // namespace
}  // namespace remote::jobs
