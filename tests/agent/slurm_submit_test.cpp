#include <sys/stat.h>

#include "agent/slurm/submit.hpp"
#include "agent/slurm_host.hpp"
#include "base/format.hpp"
#include "wire/text.hpp"

namespace remote::agent {
namespace {

// sbatch prints the file `answer` in the home folder, and exits with the code in `sbatch-code`.
class SlurmSubmitTest : public test::SlurmHost {
 protected:
  SlurmSubmitTest() {
    add_program("sbatch", "cat ~/answer; exit $(cat ~/sbatch-code)");
    set_answer("12\n");
  }
  void set_answer(const std::string& text, int code = 0) {
    put(fake.home() / "answer", text);
    put(fake.home() / "sbatch-code", std::to_string(code));
  }
  // A new job with its own batch script.
  std::string add_new(const std::string& batch = "#!/bin/sh\nexec remote-agent slurm-job one\n") {
    const std::string id = add_job("");
    if (!batch.empty()) {
      put_job(id, "batch.sh", batch);
    }
    return id;
  }
  // The jobs of an array; the first one has the batch script.
  std::vector<std::string> add_array(const std::vector<int>& numbers) {
    std::vector<std::string> ids;
    std::string cases;
    for (const int number : numbers) {
      ids.push_back(add_new(""));
      cases += text::format("  {}) cd {} ;;\n", number, ids.back());
    }
    put_job(ids.front(), "batch.sh", "#!/bin/sh\ncase $SLURM_ARRAY_TASK_ID in\n" + cases + "esac\n");
    return ids;
  }
  // A new job that runs after these.
  std::string add_after(const std::vector<std::string>& ids) {
    const std::string id = add_new();
    put_job(id, "after", join(ids, "\n") + "\n");
    return id;
  }
  // "ID OUTCOME REASON" for each.
  std::vector<std::string> submit(const std::vector<std::string>& ids) {
    std::vector<std::string> lines;
    for (const wire::StartedJob& job : submit_to_slurm(fake.host, folder, ids)) {
      EXPECT_FALSE(job.pid);
      EXPECT_TRUE(wire::is_line(job.reason)) << job.reason;
      lines.push_back(text::format("{} {} {}", job.id,
                                   job.outcome == wire::StartOutcome::queued   ? "queued"
                                   : job.outcome == wire::StartOutcome::failed ? "failed"
                                                                               : "?",
                                   job.reason));
    }
    return lines;
  }
  // The line of a single job, without its id.
  std::string submit_one(const std::string& id) {
    const std::vector<std::string> lines = submit({id});
    EXPECT_EQ(lines.size(), 1U);
    return lines.empty() ? "" : lines.front().substr(id.size() + 1);
  }
  std::string submit_new() { return submit_one(add_new()); }
  // Makes sbatch write the output of a command to the file `seen` in the home folder; "$@" are its arguments.
  void let_sbatch(const std::string& command) {
    add_program("sbatch", "{ " + command + "; } >~/seen\necho 12");
  }
  std::string seen() const { return read_file(fake.home() / "seen").value_or("(none)"); }

  using Lines = std::vector<std::string>;
};

TEST_F(SlurmSubmitTest, SubmitsAJobInItsFolder) {
  let_sbatch("env | grep ^PWD=; pwd -P; cat batch.sh");
  const std::string id = add_new();
  EXPECT_EQ(submit_one(id), "queued Slurm job 12");
  EXPECT_EQ(calls(), (Lines{"sbatch --parsable --job-name=remote-" + id + " batch.sh"}));
  EXPECT_EQ(seen(), "PWD=" + folder.jobs.string() + "/" + id + "\n" +
                        fs::canonical(job_file(id, "backend")).parent_path().string() +
                        "\n#!/bin/sh\nexec remote-agent slurm-job one\n");
  EXPECT_EQ(read_job(id, "slurm"), "12\n");
  EXPECT_EQ(fs::status(job_file(id, "slurm")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_FALSE(record(id).is_claimed);
}

TEST_F(SlurmSubmitTest, SubmitsAnArrayInTheFolderOfAllJobs) {
  let_sbatch("pwd -P");
  const std::vector<std::string> ids = add_array({0, 7});
  EXPECT_EQ(submit(ids), (Lines{ids[0] + " queued Slurm job 12_0", ids[1] + " queued Slurm job 12_7"}));
  EXPECT_EQ(calls(), (Lines{"sbatch --parsable --job-name=remote-" + ids[0] + " " + ids[0] + "/batch.sh"}));
  EXPECT_EQ(seen(), fs::canonical(folder.jobs.string()).string() + "\n");
  EXPECT_EQ(read_job(ids[0], "slurm"), "12_0\n");
  EXPECT_EQ(read_job(ids[1], "slurm"), "12_7\n");
}

TEST_F(SlurmSubmitTest, SubmitsSeveralJobs) {
  add_program("sbatch", "case $* in *1' 'batch.sh) echo 'sbatch: no' >&2; exit 1 ;; esac; echo 13");
  const std::string one = add_new();
  const std::string two = add_new();
  EXPECT_EQ(submit({one, two}), (Lines{one + " failed sbatch: no", two + " queued Slurm job 13"}));
}

TEST_F(SlurmSubmitTest, AnswersOnlyForItsOwnJobs) {
  const std::vector<std::string> ids = add_array({0, 1});
  const std::string other = add_new("");
  // Its folder could not be completed, so it has its answer already.
  EXPECT_EQ(submit({ids[0], other}),
            (Lines{ids[0] + " queued Slurm job 12_0", other + " failed there is no batch script for it"}));
  EXPECT_EQ(read_job(ids[1], "slurm"), "(none)");
  EXPECT_TRUE(record(other).is_claimed);
}

TEST_F(SlurmSubmitTest, TakesOnlyLinesOfTasksForTasks) {
  const std::string other = add_new("");
  std::string batch = "#SBATCH --comment=x\n  1) cd .. ;;\n";
  for (const char* line : {"x) cd ID ;;", "-1) cd ID ;;", "1 cd ID ;;", "1) rm ID ;;", "1) cd ID",
                           "1) cd ID ;", "1) cd ID ; id ;;"}) {
    batch += replace_all(line, "ID", other) + "\n";
  }
  EXPECT_EQ(submit_one(add_new(batch)), "queued Slurm job 12");
  EXPECT_EQ(read_job(other, "slurm"), "(none)");
}

TEST_F(SlurmSubmitTest, SlurmGetsTheUsersEnvironment) {
  let_sbatch("printf '%s\\n' \"$PATH\" \"$REMOTE_HID_TMOUT\" \"$SQUEUE_FORMAT\" \"$SLURM_TIME_FORMAT\"");
  fake.host.set_aside["PATH"] = "/usr/bin:/bin:" + fake.programs().string();
  fake.host.set_aside["TMOUT"] = "9";
  fake.host.environment["SQUEUE_FORMAT"] = "%i";
  fake.host.environment["SLURM_TIME_FORMAT"] = "relative";
  EXPECT_EQ(submit_new(), "queued Slurm job 12");
  EXPECT_EQ(seen(), "/usr/bin:/bin:" + fake.programs().string() + "\n9\n%i\nrelative\n");
  EXPECT_EQ(fake.host.environment.at("SQUEUE_FORMAT"), "%i");
}

// The batch script calls srun.
TEST_F(SlurmSubmitTest, SlurmGetsThePathWithItsOwnPrograms) {
  let_sbatch("command -v squeue");
  fake.host.set_aside["PATH"] = "/nowhere";
  EXPECT_EQ(submit_new(), "queued Slurm job 12");
  EXPECT_EQ(seen(), fake.programs().string() + "/squeue\n");
}

TEST_F(SlurmSubmitTest, SlurmGetsTheUmask) {
  let_sbatch("umask");
  const mode_t before = ::umask(027);
  submit_new();
  ::umask(before);
  EXPECT_EQ(seen(), "0027\n");
}

TEST_F(SlurmSubmitTest, IsNotStoppedHalfway) {
  *fake.host.cancelled = true;
  EXPECT_EQ(submit_new(), "queued Slurm job 12");
}

TEST_F(SlurmSubmitTest, TakesTheNumberFromTheLastLine) {
  set_answer("sbatch: welcome\n13;cluster\n\n");
  EXPECT_EQ(submit_new(), "queued Slurm job 13");
}

TEST_F(SlurmSubmitTest, SaysWhatSbatchSays) {
  set_answer("sbatch: error: one\nsbatch: error: the queue is full\n", 1);
  std::string id = add_new();
  EXPECT_EQ(submit_one(id), "failed sbatch: error: the queue is full");
  EXPECT_TRUE(record(id).is_claimed);
  EXPECT_TRUE(record(id).never_started());
  EXPECT_EQ(read_job(id, "slurm"), "(none)");
  EXPECT_EQ(calls(), (Lines{"sbatch --parsable --job-name=remote-" + id + " batch.sh", "squeue"}));

  add_program("sbatch",
              "echo \"sbatch: unrecognized option '--bogus'\" >&2\n"
              "echo 'Try \"sbatch --help\" for more information' >&2\nexit 1");
  EXPECT_EQ(submit_new(), "failed sbatch: unrecognized option '--bogus'");
}

TEST_F(SlurmSubmitTest, ChecksTheAnswer) {
  set_answer("");
  EXPECT_EQ(submit_new(), "failed sbatch: it gave no number");
  set_answer("", 1);
  EXPECT_EQ(submit_new(), "failed sbatch: it gave no number");
  set_answer("12\n", 1);
  EXPECT_EQ(submit_new(), "failed sbatch: 12");
  for (const char* wrong : {"Submitted batch job 12", "12_3", "-12", "12 13", "123456789012345678901"}) {
    set_answer(std::string(wrong) + "\n");
    EXPECT_EQ(submit_new(), std::string("failed sbatch: ") + wrong);
  }
  set_answer("12\x1b[31m\n");
  EXPECT_EQ(submit_new(), "failed sbatch: 12\\x1b[31m");
}

TEST_F(SlurmSubmitTest, SlurmMayHaveAcceptedItAllTheSame) {
  const std::string id = add_new();
  set_answer("sbatch: error: Batch job submission failed: Socket timed out\n", 1);
  set_rows(row("11", "PENDING", "None", "remote-x") + row("14", "PENDING", "None", "remote-" + id));
  EXPECT_EQ(submit_one(id), "queued Slurm job 14");
  EXPECT_EQ(read_job(id, "slurm"), "14\n");

  const std::vector<std::string> ids = add_array({3, 4});
  set_rows("15|3|PENDING||N/A|N/A|None|remote-" + ids[0] + "\n15|4|PENDING||N/A|N/A|None|remote-" + ids[0] +
           "\n");
  EXPECT_EQ(submit(ids), (Lines{ids[0] + " queued Slurm job 15_3", ids[1] + " queued Slurm job 15_4"}));
}

TEST_F(SlurmSubmitTest, AsksAgainForEachFailure) {
  set_answer("sbatch: no\n", 1);
  EXPECT_EQ(submit({add_new(), add_new()}).size(), 2U);
  EXPECT_EQ(count_calls("squeue"), 2U);
}

TEST_F(SlurmSubmitTest, FailsIfSlurmDoesNotAnswer) {
  set_answer("sbatch: error: Unable to contact slurm controller\n", 1);
  set_rows("slurm_load_jobs error: Unable to contact slurm controller\n", 1);
  EXPECT_EQ(submit_new(), "failed sbatch: error: Unable to contact slurm controller");
}

TEST_F(SlurmSubmitTest, FailsAllJobsOfAnArray) {
  set_answer("sbatch: no\n", 1);
  const std::vector<std::string> ids = add_array({0, 1});
  EXPECT_EQ(submit(ids), (Lines{ids[0] + " failed sbatch: no", ids[1] + " failed sbatch: no"}));
  EXPECT_TRUE(record(ids[1]).is_claimed);
}

TEST_F(SlurmSubmitTest, NeedsSlurm) {
  const std::string wanted =
      "failed there is no sbatch on this server: is it the login node of a Slurm cluster?";
  fake.host.environment["PATH"] = fake.programs().string();
  fs::remove(fake.programs() / "sbatch");
  EXPECT_EQ(submit_new(), wanted);
  fs::remove(fake.programs() / "squeue");
  test::FakeHost::put_program(fake.programs() / "login", "true");
  fake.host.environment["SHELL"] = (fake.programs() / "login").string();
  const std::vector<std::string> ids = add_array({0, 1});
  EXPECT_EQ(submit(ids), (Lines{ids[0] + " " + wanted, ids[1] + " " + wanted}));
  EXPECT_TRUE(calls().empty());
}

TEST_F(SlurmSubmitTest, ComesAfterOthers) {
  const std::string running = add_job("7");
  const std::string task = add_job("8_3");
  const std::string succeeded = add_job("6");
  put_job(succeeded, "journal.jsonl", test::format_end("exit 0 1700000000000 slurm\n"));
  const std::string id = add_after({running, succeeded, task});
  EXPECT_EQ(submit_one(id), "queued Slurm job 12");
  EXPECT_EQ(calls(), (Lines{"sbatch --parsable --job-name=remote-" + id +
                            " --dependency=afterok:7:8_3 --kill-on-invalid-dep=yes batch.sh"}));
  forget_calls();
  const std::string next = add_after({succeeded});
  EXPECT_EQ(submit_one(next), "queued Slurm job 12");
  EXPECT_EQ(calls(), (Lines{"sbatch --parsable --job-name=remote-" + next + " batch.sh"}));
}

TEST_F(SlurmSubmitTest, CannotComeAfterWhatDoesNotSucceed) {
  const auto submit_after = [&](const std::string& before) { return submit_one(add_after({before})); };
  const std::string before = add_job("7");
  put_job(before, "journal.jsonl", test::format_end("exit 3 1700000000000 slurm\n"));
  EXPECT_EQ(submit_after(before), "failed the job that it depends on has not succeeded (exit 3)");
  put_job(before, "journal.jsonl", test::format_end("signal 9 1700000000000 slurm\n"));
  EXPECT_EQ(submit_after(before), "failed the job that it depends on has not succeeded (signal 9)");
  put_job(before, "journal.jsonl", test::format_end("never 0 1700000000000 claim\n"));
  EXPECT_EQ(submit_after(before), "failed the job that it depends on has not succeeded (never 0)");

  const std::string gone(32, 'b');
  EXPECT_EQ(submit_after(gone), "failed the job that it depends on no longer exists (" + gone + ")");
  EXPECT_EQ(submit_after("../x\x1b"), "failed the job that it depends on no longer exists (../x\\x1b)");

  const std::string not_of_slurm = "failed the job that it depends on is not a Slurm job";
  EXPECT_EQ(submit_after(add_job("")), not_of_slurm);
  const std::string local = add_job("7");
  put_job(local, "backend", "local\n");
  EXPECT_EQ(submit_after(local), not_of_slurm);
  EXPECT_TRUE(calls().empty());
}

TEST_F(SlurmSubmitTest, AJobWhoseNumberCannotBeKeptIsQueued) {
  const std::string id = add_new();
  fs::create_directories(job_file(id, "slurm") / "x");
  EXPECT_EQ(submit_one(id), "queued Slurm job 12");
}

}  // namespace
}  // namespace remote::agent
