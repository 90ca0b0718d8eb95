#include "agent/sweep/sweep_supervisor.hpp"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include "agent/free_lease.hpp"
#include "agent/job_folders.hpp"
#include "agent/launch/clock.hpp"
#include "agent/network/socket_address.hpp"
#include "agent/started.hpp"
#include "agent/tcp_pair.hpp"

namespace remote::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAreArray;
using wire::StartOutcome;

// Starts jobs in place of the agent. Thread-safe.
class FakeStarts {
 public:
  wire::StartedJob start(const wire::JobsToStart& jobs, int lease) {
    std::unique_lock lock(mutex_);
    requests_.push_back(jobs);
    leases_.push_back(lease);
    changed_.wait(lock, [this] { return !hangs_; });
    if (!refusal_.empty()) {
      throw std::runtime_error(refusal_);
    }
    wire::StartedJob result = result_;
    result.id = jobs.jobs.at(0).id;
    if (result.outcome == StartOutcome::started && on_start) {
      on_start(result.id);
    }
    return result;
  }
  void set(StartOutcome outcome, const std::string& reason = "") {
    const std::scoped_lock lock(mutex_);
    result_ = {.id = {}, .outcome = outcome, .pid = {}, .reason = reason};
    hangs_ = false;
    changed_.notify_all();
  }
  void refuse(const std::string& reason) {
    const std::scoped_lock lock(mutex_);
    refusal_ = reason;
    hangs_ = false;
    changed_.notify_all();
  }
  void hang() {
    const std::scoped_lock lock(mutex_);
    hangs_ = true;
  }
  std::vector<std::string> points() {
    const std::scoped_lock lock(mutex_);
    std::vector<std::string> ids;
    for (const wire::JobsToStart& request : requests_) {
      ids.push_back(request.jobs.at(0).id);
    }
    return ids;
  }
  wire::JobsToStart request(std::size_t i) {
    const std::scoped_lock lock(mutex_);
    return requests_.at(i);
  }
  std::vector<int> leases() {
    const std::scoped_lock lock(mutex_);
    return leases_;
  }

  std::function<void(const std::string&)> on_start;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  std::string refusal_;
  wire::StartedJob result_{.id = {}, .outcome = StartOutcome::exists, .pid = {}, .reason = {}};
  std::vector<wire::JobsToStart> requests_;
  std::vector<int> leases_;
};

// The folders and the supervisor of one server.
class SweepServer : public test::JobFolders {
 public:
  explicit SweepServer(std::size_t points) {
    for (std::size_t i = 0; i < points; ++i) {
      points_.own.push_back({.command = "echo " + std::to_string(i)});
    }
    points_.spec.activate = "h\n";
    points_.slots = 2;
    folder_.emplace(jobs(), new_id());
    folder_->make();
  }
  ~SweepServer() { starts.set(StartOutcome::exists); }

  void make(const wire::SweepRun& run) {
    SweepMeans means;
    means.start = [this](const wire::JobsToStart& jobs, int lease) { return starts.start(jobs, lease); };
    means.take_lease = take_lease;
    means.start_patience = Seconds(0.1);
    supervisor_ = std::make_unique<SweepSupervisor>(host(), own_jobs_, own_jobs_.jobs / ".bin/d1", *folder_,
                                                    points_, run, std::move(means));
  }
  // A sweep on this server alone.
  void make(const std::vector<std::string>& ids) {
    make({.own = "a",
          .servers = {"a"},
          .tokens = {},
          .address = "127.0.0.1",
          .port = 0,
          .points = ids,
          .busy = busy});
  }
  // Runs one round, late enough after the last one to query and lease again.
  bool step() {
    now_ += Seconds(61);
    return supervisor_->step(now_);
  }
  bool until(const std::function<bool()>& condition) {
    return test::eventually([&] {
      step();
      return condition();
    });
  }
  SweepDiary::Content journal() { return SweepDiary(*folder_).read(); }
  std::string note() {
    std::ifstream file(folder_->file("note").string());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  // Makes the jobs of started points. They run until they have a result.
  void run_jobs() {
    starts.on_start = [this](const std::string& id) {
      fs::create_directories(folder(id));
      put(id, "supervisor", this_process() + " " + read_boot_id(host()) + " -\n");
    };
    starts.set(StartOutcome::started);
  }
  void end_job(const std::string& id) {
    put(id, "journal.jsonl", test::format_end("exit 0 1700000000000 supervisor\n"));
  }

  FakeStarts starts;
  PointSlots::TakeLease take_lease;
  std::vector<std::string> busy;
  SweepSupervisor& supervisor() { return *supervisor_; }
  const SweepFolder& sweep() { return *folder_; }
  wire::SweepPoints& points() { return points_; }

 private:
  JobsFolder own_jobs_ = jobs();
  wire::SweepPoints points_;
  std::optional<SweepFolder> folder_;
  Seconds now_ = read_clock();
  std::unique_ptr<SweepSupervisor> supervisor_;
};

std::vector<std::string> make_ids(std::size_t count) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < count; ++i) {
    ids.push_back(test::JobFolders::new_id());
  }
  return ids;
}

TEST(SweepPoints, RunInTurn) {
  const auto ids = make_ids(3);
  SweepServer server(3);
  server.run_jobs();
  server.make(ids);
  EXPECT_TRUE(server.until([&] { return server.starts.points().size() == 2; }));
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(server.step());
  }
  EXPECT_THAT(server.starts.points(), ElementsAre(ids[0], ids[1]));
  server.end_job(ids[1]);
  EXPECT_TRUE(server.until([&] { return server.starts.points().size() == 3; }));
  server.end_job(ids[0]);
  server.end_job(ids[2]);
  EXPECT_TRUE(test::eventually([&] { return server.step(); }));
  EXPECT_THAT(server.journal().begun, UnorderedElementsAreArray(ids));
  EXPECT_EQ(server.note(), "");
}

TEST(SweepPoints, StartWithAllOfTheirFiles) {
  const auto ids = make_ids(2);
  const test::FreeLeases leases;
  SweepServer server(2);
  server.points().retry = 2;
  server.take_lease = [&] { return leases.take("leased gpus=0 cpus=0 memory=0\n"); };
  server.make({"", ids[1]});
  EXPECT_TRUE(server.until([&] { return !server.starts.points().empty(); }));
  const wire::JobsToStart request = server.starts.request(0);
  EXPECT_EQ(request.place.project, server.jobs().project.string());
  EXPECT_EQ(request.place.jobs_folder, ".jobs");
  EXPECT_EQ(request.program.digest, "d1");
  EXPECT_EQ(request.spec.activate + request.jobs.at(0).spec.command, "h\necho 1");
  EXPECT_EQ(request.jobs[0].backend, "local");
  ASSERT_THAT(request.jobs[0].files, SizeIs(2));
  EXPECT_EQ(request.jobs[0].files[0].name + " " + request.jobs[0].files[0].text, "retry 2\n");
  EXPECT_EQ(request.jobs[0].files[1].name, "devices");
  EXPECT_EQ(request.jobs[0].files[1].text, "leased gpus=0 cpus=0 memory=0\n");
}

TEST(SweepPoints, BeforeOneStartsItsServerKnowsThat) {
  const auto ids = make_ids(1);
  SweepServer server(1);
  bool is_known = false;
  server.starts.on_start = [&](const std::string& id) {
    is_known = server.journal().begun.contains(id) && server.journal().given.at(id) == "a";
  };
  server.starts.set(StartOutcome::started);
  server.make(ids);
  EXPECT_TRUE(server.until([&] { return !server.starts.points().empty(); }));
  EXPECT_TRUE(is_known);
}

TEST(SweepPoints, ThoseThatBeganBeforeKeepTheirSlots) {
  const auto ids = make_ids(3);
  SweepServer server(3);
  const std::string old = server.make_running();
  const std::string older = server.make_running();
  server.busy = {old, older};
  server.make(ids);
  for (int i = 0; i < 10; ++i) {
    server.step();
  }
  EXPECT_THAT(server.starts.points(), IsEmpty());
  server.end_job(old);
  EXPECT_TRUE(server.until([&] { return server.starts.points().size() == 3; }));
  EXPECT_FALSE(server.step()) << "one still runs";
  server.end_job(older);
  EXPECT_TRUE(test::eventually([&] { return server.step(); }));
}

TEST(SweepPoints, DoNotStartAfterAStop) {
  SweepServer server(1);
  server.make(make_ids(1));
  test::JobFolders::put_file(fs::path(server.sweep().file("stopped").string()), "\n");
  for (int i = 0; i < 10; ++i) {
    server.step();
  }
  EXPECT_THAT(server.starts.points(), IsEmpty());
}

// Two points that share one GPU; the first start hangs.
class SlowStart : public testing::Test {
 protected:
  SlowStart() {
    server.take_lease = [this]() -> std::optional<TakenLease> {
      if (::fcntl(lease_, F_GETFD) >= 0 || is_inherited) {
        return std::nullopt;
      }
      TakenLease lease = leases.take("d\n");
      lease_ = lease.lease.fd();
      return lease;
    };
    server.starts.hang();
    server.make(ids);
    EXPECT_TRUE(server.until([&] { return server.supervisor().has_late_starts(); }));
    step_often();
    EXPECT_THAT(server.starts.points(), ElementsAre(ids[0])) << "the GPU is not free for the second one";
    EXPECT_THAT(server.starts.leases(), ElementsAre(lease_));
  }
  void step_often() {
    for (int i = 0; i < 5; ++i) {
      server.step();
    }
  }
  bool until_no_late_start() {
    return server.until([&] { return !server.supervisor().has_late_starts(); });
  }

  const std::vector<std::string> ids = make_ids(2);
  const test::FreeLeases leases;
  SweepServer server{2};
  std::atomic<bool> is_inherited = false;  // by the point
  int lease_ = -1;
};

TEST_F(SlowStart, KeepsWhatIsLeased) {
  is_inherited = true;
  server.run_jobs();
  EXPECT_TRUE(until_no_late_start());
  EXPECT_EQ(::fcntl(lease_, F_GETFD), -1) << "only the point has it";
  step_often();
  EXPECT_THAT(server.starts.points(), SizeIs(1));
  server.end_job(ids[0]);
  step_often();
  EXPECT_THAT(server.starts.points(), SizeIs(1)) << "a process still has the lease";
  is_inherited = false;
  EXPECT_TRUE(server.until([&] { return server.starts.points().size() == 2; }));
}

TEST_F(SlowStart, ThatFailsAfterAllIsGivenBack) {
  server.starts.set(StartOutcome::failed, "disk is full");
  EXPECT_TRUE(server.until([&] { return server.starts.points().size() >= 2; }));
  EXPECT_EQ(server.starts.points()[1], ids[1]);
  EXPECT_EQ(server.supervisor().trouble(), "cannot start a point: disk is full");
  server.step();
  EXPECT_EQ(server.note(), "cannot start a point: disk is full\n");
  EXPECT_FALSE(server.journal().begun.contains(ids[0]));
}

TEST_F(SlowStart, ThatIsRefusedIsGivenBack) {
  server.starts.refuse("no processes are left");
  EXPECT_TRUE(server.until([&] { return server.starts.points().size() >= 2; }));
  EXPECT_EQ(server.starts.points()[1], ids[1]);
  EXPECT_EQ(server.supervisor().trouble(), "cannot start a point: no processes are left");
}

TEST_F(SlowStart, OfAPointThatExistsFreesItsSlot) {
  server.starts.set(StartOutcome::exists);
  EXPECT_TRUE(server.until([&] { return server.starts.points().size() == 2; }));
  EXPECT_TRUE(server.until([&] { return server.step(); }));
  EXPECT_THAT(server.journal().begun, UnorderedElementsAreArray(ids));
}

TEST(SweepPoints, AServerWhereNothingStartsAsksNoMore) {
  SweepServer server(9);
  server.starts.set(StartOutcome::failed, "x");
  server.make(make_ids(9));
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(server.step());
  }
  EXPECT_THAT(server.starts.points(), SizeIs(3));
  EXPECT_THAT(server.journal().begun, IsEmpty());
  EXPECT_THAT(server.journal().given, IsEmpty());
}

TEST(SweepPoints, WithoutTheirProgramSayWhere) {
  test::JobFolders jobs;
  const Path program = jobs.jobs().jobs / ".bin/d1";
  const SweepMeans means = SweepMeans::of(jobs.host(), program, {});
  EXPECT_FALSE(means.take_lease);
  const wire::StartedJob result = means.start({.place = jobs.place(), .program = {"d1", 0}}, -1);
  EXPECT_EQ(result.outcome, StartOutcome::failed);
  EXPECT_EQ(result.reason, "the program is missing in " + program.string());
}

TEST(SweepPoints, MustHaveTheirScripts) {
  SweepServer server(1);
  EXPECT_THROW(server.make(make_ids(2)), std::runtime_error);
}

// ---- Several servers

const std::string right_token = "0123456789abcdef";  // of the link between the two servers

class SweepServers : public testing::Test {
 protected:
  SweepServers() : port(find_free_port(false)) {}

  wire::SweepRun run(const std::string& own, const std::string& token = right_token) const {
    return {.own = own,
            .servers = {"a", "b é"},
            .tokens = {token},
            .address = "127.0.0.1",
            .port = port,
            .points = ids,
            .busy = {}};
  }

  const int port;
  const std::vector<std::string> ids = make_ids(20);
};

TEST_F(SweepServers, ShareThePoints) {
  SweepServer first(20);
  SweepServer second(20);
  SweepServer stranger(20);
  stranger.make(run("b é", "wrong"));
  second.make(run("b é"));
  first.make(run("a"));
  std::atomic<bool> is_over = false;
  std::thread strange([&] {
    while (!is_over) {
      stranger.supervisor().step(read_clock());
      stranger.supervisor().wait();
    }
  });
  // The first server is slower, so that the second one connects in time.
  first.starts.on_start = [](const std::string&) {};
  std::thread member([&] { second.supervisor().run(); });
  EXPECT_TRUE(test::eventually([&] {
    first.supervisor().wait();
    static_cast<void>(first.supervisor().step(read_clock()));
    return !second.journal().begun.empty();
  }));
  first.supervisor().run();
  member.join();
  is_over = true;
  strange.join();
  std::vector<std::string> begun;
  for (SweepServer* server : {&first, &second}) {
    const auto here = server->journal().begun;
    EXPECT_FALSE(here.empty());
    begun.insert(begun.end(), here.begin(), here.end());
  }
  EXPECT_THAT(begun, UnorderedElementsAreArray(ids));
  EXPECT_THAT(stranger.journal().begun, IsEmpty());
  const auto given = first.journal().given;
  EXPECT_EQ(given.size(), ids.size());
  for (const std::string& point : second.journal().begun) {
    EXPECT_EQ(given.at(point), "b é");
  }
}

TEST_F(SweepServers, CannotRunWithoutTheirPort) {
  SweepServer first(20);
  SweepServer other(20);
  first.make(run("a"));
  try {
    other.make(run("a"));
    FAIL() << "it listens at a port that is in use";
  } catch (const std::runtime_error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("cannot listen at port " + std::to_string(port) + ": Address already"));
  }
}

TEST_F(SweepServers, SayThatTheyDoNotReachTheFirstOne) {
  SweepServer second(20);
  second.make(run("b é"));
  EXPECT_TRUE(test::eventually([&] {
    second.supervisor().step(read_clock());
    second.supervisor().wait();
    return !second.note().empty();
  }));
  EXPECT_EQ(second.note(), "cannot reach a at port " + std::to_string(port) + ": Connection refused\n");
  EXPECT_THAT(second.starts.points(), IsEmpty());
}

TEST_F(SweepServers, AnIdleServerEndsIfTheFirstOneIsGone) {
  SweepServer second(20);
  second.make(run("b é"));
  EXPECT_FALSE(second.supervisor().step(read_clock() + Seconds(590)));
  EXPECT_TRUE(second.supervisor().step(read_clock() + Seconds(610)));
}

// A server that asks for one point.
class OneMember : public PeersHandler {
 public:
  OneMember(const Host& host, const std::string& name, int port,
            std::vector<std::string> servers = {"a", "b é"}, const std::string& token = right_token)
      : peers(host,
              {.own = name,
               .servers = std::move(servers),
               .tokens = {token},
               .address = "127.0.0.1",
               .port = port},
              *this) {}
  void greet(Link& link) override { link.send(wire::Hello{}); }
  void take(Link& link, const wire::LinkMessage& message) override {
    if (std::holds_alternative<wire::Welcome>(message)) {
      for (const wire::SweepMessage& each : says) {
        link.send(wire::SweepNote{each});
      }
      is_welcome = true;
    } else if (const auto* note = std::get_if<wire::SweepNote>(&message)) {
      if (const auto* give = std::get_if<wire::GivePoint>(&note->message)) {
        given.push_back(give->point);
      }
    }
  }
  void note_drop(const Link& /*link*/) override { ++drops; }
  void step() {
    peers.keep_connecting(read_clock(), Seconds(0.05));
    std::vector<pollfd> fds;
    peers.prepare(fds);
    ::poll(fds.data(), fds.size(), 1);
    peers.step(fds, read_clock());
    peers.flush();
  }

  Peers peers;
  std::vector<wire::SweepMessage> says{wire::ReportDone{}, wire::WantPoint{}};
  std::vector<std::string> given;
  bool is_welcome = false;
  int drops = 0;
};

TEST_F(SweepServers, TheFirstOneDoesNotWaitForALostOne) {
  SweepServer first(20);
  first.take_lease = []() -> std::optional<TakenLease> { return std::nullopt; };
  wire::SweepRun one = run("a");
  one.points.resize(1);
  first.make(one);
  OneMember member(first.host(), "b é", port);
  EXPECT_TRUE(test::eventually([&] {
    EXPECT_FALSE(first.supervisor().step(read_clock()));
    first.supervisor().wait();
    member.step();
    return !member.given.empty();
  }));
  EXPECT_THAT(member.given, ElementsAre(ids[0]));
  EXPECT_FALSE(first.supervisor().step(read_clock() + Seconds(50)));
  EXPECT_TRUE(first.supervisor().step(read_clock() + Seconds(61)));
  EXPECT_EQ(first.journal().given.at(ids[0]), "b é") << "no other server may run it";
}

TEST_F(SweepServers, AServerThatConnectsAgainGetsItsPointsAgain) {
  SweepServer first(20);
  first.take_lease = []() -> std::optional<TakenLease> { return std::nullopt; };
  first.make(run("a"));
  const auto step_until_given = [&](OneMember& member, std::size_t count) {
    return test::eventually([&] {
      first.supervisor().step(read_clock());
      first.supervisor().wait();
      member.step();
      return member.given.size() == count;
    });
  };
  {
    OneMember member(first.host(), "b é", port);
    EXPECT_TRUE(step_until_given(member, 1));
  }
  OneMember again(first.host(), "b é", port);
  EXPECT_TRUE(step_until_given(again, 2));
  EXPECT_THAT(again.given, ElementsAre(ids[0], ids[1])) << "the first one may never have arrived";
}

TEST_F(SweepServers, AReportThatIsCutStartsAgain) {
  SweepServer first(20);
  first.take_lease = []() -> std::optional<TakenLease> { return std::nullopt; };
  first.make(run("a"));
  const std::vector<std::vector<wire::SweepMessage>> visits{
      {wire::ReportDone{}, wire::WantPoint{}}, {wire::KnownPoints{{ids[0]}}}, {wire::ReportDone{}}};
  for (const auto& visit : visits) {
    OneMember member(first.host(), "b é", port);
    member.says = visit;
    const bool is_cut = visit.size() == 1 && std::holds_alternative<wire::KnownPoints>(visit.front());
    int rounds = 0;  // after the welcome
    EXPECT_TRUE(test::eventually([&] {
      first.supervisor().step(read_clock());
      first.supervisor().wait();
      member.step();
      rounds += member.is_welcome ? 1 : 0;
      return is_cut ? rounds == 5 : !member.given.empty();
    }));
    EXPECT_EQ(member.given.size(), is_cut ? 0U : 1U);
  }
}

TEST_F(SweepServers, OnlyAServerOfTheSweepIsWelcome) {
  SweepServer first(20);
  first.take_lease = []() -> std::optional<TakenLease> { return std::nullopt; };
  wire::SweepRun three = run("a");
  three.servers.emplace_back("c");
  three.tokens.emplace_back("of c");
  first.make(three);
  const auto is_refused = [&](const char* name, const std::vector<std::string>& servers) {
    OneMember member(first.host(), name, port, servers, "of c");
    EXPECT_TRUE(test::eventually([&] {
      first.supervisor().step(read_clock());
      first.supervisor().wait();
      member.step();
      return member.drops > 0 || member.is_welcome;
    }));
    return !member.is_welcome;
  };
  EXPECT_TRUE(is_refused("b é", three.servers)) << "with the token of c";
  EXPECT_TRUE(is_refused("d", {"a", "b é", "c", "d"}));
  EXPECT_TRUE(is_refused("a", {"c", "b é", "d", "a"}));
  EXPECT_FALSE(is_refused("c", three.servers));
}

// The first server of a sweep, which may be hostile.
class HostileGiver : public PeersHandler {
 public:
  HostileGiver(const Host& host, int port)
      : peers(host,
              {.own = "a",
               .servers = {"a", "b é"},
               .tokens = {right_token},
               .address = "127.0.0.1",
               .port = port},
              *this) {
    peers.listen();
  }
  void greet(Link& /*link*/) override {}
  void take(Link& link, const wire::LinkMessage& message) override {
    if (std::holds_alternative<wire::Hello>(message)) {
      link.send(wire::Welcome{});
    } else if (std::holds_alternative<wire::SweepNote>(message)) {
      for (const std::string& point : gives) {
        link.send(wire::SweepNote{wire::GivePoint{point}});
      }
      gives.clear();
    }
  }
  void note_drop(const Link& /*link*/) override {}
  void step() {
    std::vector<pollfd> fds;
    peers.prepare(fds);
    ::poll(fds.data(), fds.size(), 1);
    peers.step(fds, read_clock());
    peers.flush();
  }

  Peers peers;
  std::vector<std::string> gives;
};

TEST_F(SweepServers, OnlyPointsOfTheSweepAreStarted) {
  SweepServer second(20);
  HostileGiver giver(second.host(), port);
  giver.gives = {test::JobFolders::new_id(), "../a", "", ids[3]};
  second.make(run("b é"));
  EXPECT_TRUE(test::eventually([&] {
    second.supervisor().step(read_clock());
    giver.step();
    second.supervisor().wait();
    return !second.starts.points().empty();
  }));
  EXPECT_THAT(second.starts.points(), ElementsAre(ids[3]));
  EXPECT_THAT(second.journal().begun, ElementsAre(ids[3]));
}

TEST_F(SweepServers, AServerThatIsCutOffHoldsNoLease) {
  const test::FreeLeases leases;
  SweepServer second(20);
  int lease = -1;
  second.take_lease = [&] {
    TakenLease taken = leases.take("d\n");
    lease = taken.lease.fd();
    return taken;
  };
  auto giver = std::make_unique<HostileGiver>(second.host(), port);
  second.make(run("b é"));
  EXPECT_TRUE(test::eventually([&] {
    second.supervisor().step(read_clock());
    giver->step();
    second.supervisor().wait();
    return lease >= 0;
  }));
  EXPECT_GE(::fcntl(lease, F_GETFD), 0) << "it waits for an answer";
  giver.reset();
  EXPECT_TRUE(test::eventually([&] {
    second.supervisor().wait();
    second.supervisor().step(read_clock());
    return second.note() == "cannot reach a at port " + std::to_string(port) + ": Connection refused\n";
  }));
  EXPECT_EQ(::fcntl(lease, F_GETFD), -1);
}

}  // namespace
}  // namespace remote::agent
