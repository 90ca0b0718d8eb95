#include "agent/slurm_host.hpp"

namespace remote::agent {
namespace {

using Calls = std::vector<std::string>;

class SlurmStopTest : public test::SlurmHost {
 protected:
  void stop(const std::vector<std::string>& ids) {
    targets.clear();
    std::vector<StopTarget*> pointers;
    for (const std::string& id : ids) {
      targets.push_back(std::make_unique<StopTarget>(StopTarget{record(id)}));
      pointers.push_back(targets.back().get());
    }
    stopper = backend->stop(pointers);
  }
  // The calls of scancel since the last call of this function.
  Calls take_calls() {
    Calls some = calls();
    std::erase(some, "squeue");
    forget_calls();
    return some;
  }
  bool has_members(bool quick = false) { return stopper->look(quick).has_members; }
  std::vector<std::string> survivors(const std::string& id) const {
    std::vector<std::string> names;
    for (const wire::Survivor& survivor : stopper->survivors(id)) {
      names.push_back(survivor.name);
      EXPECT_FALSE(survivor.pid);
    }
    return names;
  }

  std::unique_ptr<Backend> backend = make_slurm_backend(fake.host, folder);
  std::vector<std::unique_ptr<StopTarget>> targets;
  std::unique_ptr<Stopper> stopper;
};

TEST_F(SlurmStopTest, TakesQueuedJobsOutOfTheQueue) {
  const std::string id = add_job();
  set_rows(row("7", "PENDING"));
  stop({id});
  EXPECT_TRUE(has_members());
  stopper->signal(15);
  EXPECT_EQ(take_calls(), Calls{"scancel 7"});
  EXPECT_EQ(targets[0]->signalled, 1);
  stopper->signal(15);
  EXPECT_EQ(take_calls(), Calls()) << "it had its signal";
  set_rows(row("7", "CANCELLED"));
  EXPECT_FALSE(has_members());
  EXPECT_EQ(survivors(id), Calls());
  JobRecord job = record(id);
  test::append(job_file(id, ""), test::format_stop("15 user:ada 1700000000000"));
  EXPECT_EQ(backend->find_state(job, Look::brief).phase, wire::JobPhase::ended);
  EXPECT_EQ(job.end.value().how, wire::ProcessEnd::signalled(15));
}

TEST_F(SlurmStopTest, SignalsRunningJobsAndKillsThem) {
  const std::string id = add_job();
  set_rows(row("7", "RUNNING"));
  stop({id});
  EXPECT_TRUE(has_members());
  stopper->signal(2);
  EXPECT_EQ(take_calls(), Calls{"scancel --full --signal=2 7"});
  EXPECT_TRUE(has_members());
  stopper->signal(2);
  EXPECT_EQ(take_calls(), Calls());
  stopper->signal(9);
  EXPECT_EQ(take_calls(), (Calls{"scancel --full --signal=9 7", "scancel 7"}));
  EXPECT_EQ(targets[0]->signalled, 1);
  EXPECT_FALSE(targets[0]->last_signal);
  EXPECT_EQ(stopper->patience_after_kill(), std::chrono::seconds(25));
  set_rows(row("7", "COMPLETING"));
  EXPECT_TRUE(has_members());
  EXPECT_EQ(survivors(id), Calls{"Slurm job 7"});
  EXPECT_EQ(survivors("another"), Calls());
  EXPECT_TRUE(stopper->suspects(id).empty());
  EXPECT_FALSE(stopper->look(false).is_closing);
  set_rows("");
  EXPECT_FALSE(has_members());
}

TEST_F(SlurmStopTest, SignalsAgainWhatBeginsMeanwhile) {
  stop({add_job()});
  set_rows(row("7", "PENDING"));
  has_members();
  stopper->signal(15);
  set_rows(row("7", "RUNNING"));
  has_members();
  stopper->signal(15);
  EXPECT_EQ(take_calls(), (Calls{"scancel 7", "scancel --full --signal=15 7"}));
  EXPECT_EQ(targets[0]->signalled, 1);
}

TEST_F(SlurmStopTest, NoneIsGoneWithoutAnAnswer) {
  const std::string id = add_job();
  const std::string unknown = add_job("");
  set_rows("squeue: down\n", 1);
  stop({id, unknown});
  EXPECT_TRUE(has_members());
  EXPECT_EQ(survivors(id), Calls{"Slurm job 7"});
  EXPECT_EQ(survivors(unknown), Calls{"a Slurm job of unknown number"});
  stopper->signal(15);
  EXPECT_EQ(take_calls(), Calls{"scancel --full --signal=15 7"});
  EXPECT_EQ(targets[0]->signalled, 1);
  EXPECT_EQ(targets[1]->signalled, 0);
  // Slurm is available again.
  set_rows(row("7", "COMPLETED") + row("8", "PENDING", "None", "remote-" + unknown));
  EXPECT_TRUE(has_members());
  EXPECT_EQ(survivors(id), Calls());
  stopper->signal(15);
  EXPECT_EQ(take_calls(), Calls{"scancel 8"});
  EXPECT_EQ(targets[1]->signalled, 1);
}

TEST_F(SlurmStopTest, LooksSeldomBetween) {
  stop({add_job()});
  set_rows(row("7", "RUNNING"));
  has_members();
  set_rows("");
  EXPECT_TRUE(has_members(true)) << "the answer is young";
  EXPECT_FALSE(has_members());
}

TEST_F(SlurmStopTest, StopsManyByFewCalls) {
  std::vector<std::string> ids;
  std::string rows;
  for (int i = 0; i < 300; ++i) {
    ids.push_back(add_job("5_" + std::to_string(i)));
    rows += "5|" + std::to_string(i) + (i < 110 ? "|RUNNING" : "|PENDING") + "|n1|N/A|N/A|None|remote-x\n";
  }
  set_rows(rows);
  stop(ids);
  has_members();
  stopper->signal(15);
  const Calls sent = take_calls();
  EXPECT_EQ(sent.size(), 4U);
  EXPECT_EQ(sent[0].substr(0, 22), "scancel 5_110 5_111 5_");
  EXPECT_EQ(sent[2].substr(0, 38), "scancel --full --signal=15 5_0 5_1 5_2");
  for (const auto& target : targets) {
    EXPECT_EQ(target->signalled, 1);
  }
}

TEST_F(SlurmStopTest, TriesAgainIfSlurmIsSlow) {
  std::vector<std::string> ids;
  std::string rows;
  for (int i = 0; i < 101; ++i) {
    ids.push_back(add_job(std::to_string(100 + i)));
    rows += row(std::to_string(100 + i), "RUNNING");
  }
  set_rows(rows);
  add_program("scancel", "[ -e ~/quick ] || sleep 60");
  stop(ids);
  has_members();
  stopper->signal(15);
  EXPECT_EQ(take_calls().size(), 1U);
  put(fake.home() / "quick", "");
  stopper->signal(15);
  EXPECT_EQ(take_calls(), Calls{"scancel --full --signal=15 200"});
}

}  // namespace
}  // namespace remote::agent
