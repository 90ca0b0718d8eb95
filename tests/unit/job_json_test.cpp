#include "jobs/job_json.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <remote/error.hpp>

#include "jobs/index.hpp"
#include "jobs/job_fields.hpp"
#include "support/instants.hpp"

namespace remote::jobs {
namespace {

using Kind = JobReason::Kind;
using Json = nlohmann::ordered_json;

Job full_job() {
  Job job;
  job.key = 3;
  job.id = JobId::random();
  job.server = "node-1";
  job.state = JobState::killed;
  job.pid = 4121;
  job.result = ExitStatus::signalled(15);
  job.reason = {.kind = Kind::by_user, .number = 15, .text = "a\tb", .result = ExitStatus::exited(1)};
  job.tags = {"mnist.py", "", "a\nb\\"};
  job.command = "python mnist.py";
  job.launch = JobId::random();
  job.rank = 0;
  job.world_size = 4;
  job.created_at = instant(1700000000);
  job.started_at = instant(1700000001);
  job.ended_at = instant(1700000002);
  job.checked_at = instant(1700000003);
  job.hidden = true;
  job.remote_folder = {"/data/a b", ".jobs"};
  job.failed_at = exact_instant(1700000001042);
  job.after_peer = true;
  job.ranks = 2;
  job.needed = 1;
  job.usage = {8, 12, 3174, 65536};
  job.hung = {.at = instant(1700000002), .stood = std::chrono::seconds(90), .moved_at = instant(1700000003)};
  job.backend = "slurm";
  job.no_restart = NoRestart::repeated;
  job.made_in = JobId::random();
  job.machine = "0123456789abcdef";
  return job;
}

Job through_json(const Job& job) {
  return from_json_text(to_json_text(job));
}

std::optional<Job> through_index(const Job& job) {
  const Index index(std::string(index_header) + index_line({1, 2, 3}, job));
  const Index::Row* row = index.find(job.id);
  return row == nullptr ? std::nullopt : Index::job(*row);
}

struct Said {
  JobReason reason;
  std::string text;
};

const std::vector<Said> reasons{
    {{}, ""},
    {{.kind = Kind::after_rank, .number = 2}, "ended after rank 2"},
    {{.kind = Kind::after_rank, .number = -1}, "ended after rank -1"},
    {{.kind = Kind::by_user, .number = 15, .text = "a, exit -5"}, "SIGTERM by a, exit -5"},
    {{.kind = Kind::after_loss, .text = "node-2"}, "ended after the loss of node-2"},
    {{.kind = Kind::after_hang, .number = 1800}, "hung: ended after 30m 00s without progress"},
    {{.kind = Kind::by_user, .number = 15, .text = "ada@laptop"}, "SIGTERM by ada@laptop"},
    {{.kind = Kind::by_user, .number = 40}, "SIG40"},
    {{.kind = Kind::by_user, .number = 15, .result = ExitStatus::exited(1)}, "SIGTERM, exit 1"},
    {{.kind = Kind::by_user, .number = 2, .text = "a, b", .result = ExitStatus::signalled(9)},
     "SIGINT by a, b, then SIGKILL"},
    {{.kind = Kind::by_launch, .number = 15, .result = ExitStatus::exited(0)}, "SIGTERM by launch, exit 0"},
    {{.kind = Kind::out_of_memory}, "out of memory"},
    {{.kind = Kind::server_out_of_memory}, "the server ran out of memory meanwhile"},
    {{.kind = Kind::disk_full}, "the disk there was full"},
    {{.kind = Kind::never_started}, "never started"},
    {{.kind = Kind::not_started, .text = "mkdir: no space left"}, "not started: mkdir: no space left"},
    {{.kind = Kind::no_result}, "ended without a result"},
    {{.kind = Kind::folder_gone}, "its folder is gone from the server"},
    {{.kind = Kind::other_machine},
     "another machine answers at the server's address than the one that ran it"},
    {{.kind = Kind::processes_gone}, "supervisor and processes are gone"},
    {{.kind = Kind::server_restarted}, "server restarted"},
    {{.kind = Kind::told_to_end, .number = 4121}, "asked to end, but its process 4121 still runs"},
    {{.kind = Kind::unsupervised}, "its supervisor is gone"},
    {{.kind = Kind::no_lifeline, .text = "cannot reach #1 at *"}, "no lifeline: cannot reach #1 at *"},
    {{.kind = Kind::no_answer}, "no answer, and no report yet"},
    {{.kind = Kind::other, .text = "SIGNED by ada"}, "SIGNED by ada"},
};

TEST(JobJson, EveryFieldSurvivesRecordAndIndex) {
  Job bare;
  bare.id = JobId::random();
  bare.remote_folder = {"p", "j"};
  bare.key = 1;
  for (const Job& job : {full_job(), bare}) {
    EXPECT_EQ(through_json(job), job);
    EXPECT_EQ(through_index(job), job);
  }
  bare.hung = {.at = instant(1700000002), .stood = std::chrono::seconds(90)};
  EXPECT_EQ(through_json(bare), bare);
  EXPECT_EQ(through_index(bare), bare);
}

TEST(JobJson, EveryReasonHasItsTextAndSurvives) {
  Job job = full_job();
  for (const auto& [reason, text] : reasons) {
    EXPECT_EQ(reason_text(reason), text);
    job.reason = reason;
    EXPECT_EQ(through_json(job), job) << text;
    EXPECT_EQ(through_index(job), job) << text;
    EXPECT_EQ(to_json(job)["reason"], text);
  }
}

TEST(JobJson, AReasonOfANewerProgramIsItsText) {
  Json record = Json::parse(to_json_text(full_job()));
  record["why"] = {{"kind", "struck_by_lightning"}, {"volts", 1000000}};
  record["reason"] = "struck by lightning";
  EXPECT_EQ(from_json_text(record.dump()).reason,
            (JobReason{.kind = Kind::other, .text = "struck by lightning"}));
}

TEST(JobJson, EverySignalIsRead) {
  Job job = full_job();
  for (int signal = 1; signal <= 64; ++signal) {
    job.result = ExitStatus::signalled(signal);
    EXPECT_EQ(through_json(job).result, job.result);
  }
}

TEST(JobJson, AWrongFieldIsNamed) {
  const Json good = Json::parse(to_json_text(full_job()));
  const std::string id = full_job().id.text();
  for (const auto& [field, value] :
       std::vector<std::pair<std::string, Json>>{{"version", nullptr},
                                                 {"key", 0},
                                                 {"key", "3"},
                                                 {"id", "3"},
                                                 {"server", nullptr},
                                                 {"state", "odd"},
                                                 {"pid", -1},
                                                 {"exit_code", 3},
                                                 {"signal", "SIGODD"},
                                                 {"why", {{"kind", "other"}}},
                                                 {"tags", "a"},
                                                 {"tags", {1}},
                                                 {"launch", "x"},
                                                 {"rank", -1},
                                                 {"created_at", "today"},
                                                 {"created_at", nullptr},
                                                 {"hidden", 1},
                                                 {"remote_folder", "~/p/.jobs"},
                                                 {"remote_folder", "~/p/.jobs/" + id},
                                                 {"remote_folder", "/" + good["id"].get<std::string>()},
                                                 {"failed_at_ms", 1.5}}) {
    Json record = good;
    record[field] = value;
    EXPECT_THROW(from_json_text(record.dump()), Error) << field << ": " << value;
  }
}

}  // namespace
}  // namespace remote::jobs
