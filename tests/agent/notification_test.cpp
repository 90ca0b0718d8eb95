#include "agent/launch/notification.hpp"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/job_folders.hpp"
#include "agent/started.hpp"
#include "base/strings.hpp"
#include "wire/json_text.hpp"

namespace remote::agent {
namespace {

using rules::Seconds;

class NoActs : public rules::LaunchActs {
 public:
  void broadcast(const wire::LinkMessage& /*message*/) override {}
  void tell(const std::string& /*server*/, const wire::LinkMessage& /*message*/) override {}
  void record(const wire::LaunchEntry& /*entry*/) override {}
};

// The end of a launch as its coordinator "a" describes it.
class DescribeEnd : public ::testing::Test {
 protected:
  void start(const std::vector<std::string>& servers, bool ends_alone = false) {
    policy = std::make_unique<rules::LaunchPolicy>(rules::LaunchSetup{.own = "a",
                                                                      .servers = servers,
                                                                      .grace = Seconds(20),
                                                                      .timeout = Seconds(60),
                                                                      .ends_alone = ends_alone},
                                                   std::vector{rules::LaunchJob{.id = std::string(32, 'a')}},
                                                   Seconds(100), acts);
  }
  void hear(const std::string& server, const wire::LinkMessage& message, double now = 110) {
    policy->hear(server, message, Seconds(now));
  }
  // The servers except `lost` send until now, when the silence of `lost` is noticed.
  void lose(const std::vector<std::string>& others, const std::vector<std::string>& lost) {
    for (const std::string& server : others) {
      const bool is_lost = std::ranges::find(lost, server) != lost.end();
      hear(server, wire::Beat{}, is_lost ? 110 : 1000);
    }
    policy->notice_silence(Seconds(1000));
  }
  std::string describe(const std::vector<rules::JobResult>& results) {
    const Notification notification = describe_end(policy->verdict(results));
    return notification.state + ": " + notification.why;
  }
  static wire::JobFailed failure(int rank, wire::Ending ending, bool after_peer = false) {
    return {{.rank = rank, .server = "", .ending = ending, .after_peer = after_peer, .mark = ""}};
  }

  NoActs acts;
  std::unique_ptr<rules::LaunchPolicy> policy;
  const wire::Ending exit_1{wire::EndKind::exit, 1};
  const wire::EndLaunch end_of_2{wire::RankEnded{2}};
  const rules::JobResult succeeded{true, std::nullopt};
  const rules::JobResult failed{false, std::nullopt};
  const rules::JobResult ended_for_rank_1{false, wire::RankEnded{1}};
};

TEST_F(DescribeEnd, OfASuccessAndAKill) {
  start({"a", "b"});
  hear("b", wire::Bye{});
  EXPECT_EQ(describe({succeeded}), "succeeded: ");
  EXPECT_EQ(describe({succeeded, failed}), "killed: ");
}

TEST_F(DescribeEnd, WithoutAWordOfAnotherServer) {
  start({"a", "b", "c d"});
  EXPECT_EQ(describe({succeeded}), "unknown: nothing was heard of b, c d");
}

TEST_F(DescribeEnd, NamesTheRankThatFailed) {
  start({"a", "b"});
  hear("b", failure(3, exit_1));
  hear("b", wire::EndLaunch{wire::RankEnded{3}});
  EXPECT_EQ(describe({{false, wire::RankEnded{3}}}), "failed: rank 3 on b (exit 1)");
  for (const auto& [ending, text] :
       std::vector<std::pair<wire::Ending, std::string>>{{{wire::EndKind::signal, 11}, "signal 11"},
                                                         {{wire::EndKind::out_of_memory, 9}, "oom 9"},
                                                         {{wire::EndKind::gone, 0}, "gone 0"}}) {
    start({"a", "b"});
    hear("b", failure(3, ending));
    hear("b", wire::EndLaunch{wire::RankEnded{3}});
    EXPECT_EQ(describe({failed}), "failed: rank 3 on b (" + text + ")");
  }
}

TEST_F(DescribeEnd, NamesTheCauseOfOtherFailures) {
  for (const auto& [late, text] : std::vector<std::pair<double, std::string>>{{0.5, "rank 3 on b (signal 9)"},
                                                                              {9, "rank 2 on b (exit 1)"}}) {
    start({"a", "b"});
    hear("b", failure(2, exit_1, true));
    hear("b", end_of_2);
    hear("b", failure(3, {wire::EndKind::signal, 9}), 110 + late);
    EXPECT_EQ(describe({{false, wire::RankEnded{2}}}), "failed: " + text);
  }
}

TEST_F(DescribeEnd, NamesTheRankThatAUserStopped) {
  for (const auto& [stopped, after_peer] :
       std::vector<std::pair<double, bool>>{{110, false}, {110, true}, {100, true}}) {
    start({"a", "b"});
    hear("b", failure(2, exit_1, after_peer), 109.9);
    hear("b", end_of_2, 109.9);
    hear("b", wire::JobStopped{3, 300}, stopped);
    EXPECT_EQ(describe({failed}), "killed: rank 3 on b") << stopped << after_peer;
  }
  start({"a", "b"});
  hear("b", wire::JobStopped{1, 10});
  hear("b", wire::Bye{});
  EXPECT_EQ(describe({succeeded}), "killed: rank 1 on b");
  EXPECT_EQ(describe({failed}), "killed: ");
}

TEST_F(DescribeEnd, IgnoresStopsThatDidNotCauseTheFailure) {
  for (const int milliseconds : {100, 0}) {
    start({"a", "b"});
    hear("b", wire::JobStopped{3, 0}, 100);
    hear("b", failure(2, exit_1));
    hear("b", end_of_2);
    hear("b", wire::JobStopped{4, milliseconds}, 111);
    EXPECT_EQ(describe({{false, wire::RankEnded{2}}}), "failed: rank 2 on b (exit 1)");
  }
}

TEST_F(DescribeEnd, NamesTheServerThatWasLost) {
  start({"a", "b"});
  lose({"b"}, {"b"});
  EXPECT_EQ(describe({{false, wire::ServerLoss{"b"}}}), "lost: no report from server b");

  start({"a", "b", "c", "d"});
  lose({"b", "c", "d"}, {"c"});
  hear("c", wire::EndLaunch{wire::ServerLoss{"a"}}, 1010);
  hear("c", wire::Bye{}, 1010);
  EXPECT_EQ(describe({{false, wire::ServerLoss{"c"}}}), "lost: no report from server c") << "it is back";

  start({"a", "b", "c", "d"});
  hear("b", failure(1, exit_1, true));
  hear("b", wire::EndLaunch{wire::RankEnded{1}});
  lose({"b", "c", "d"}, {"c"});
  EXPECT_EQ(describe({ended_for_rank_1}), "lost: no report from server c")
      << "the failure followed from that";
}

TEST_F(DescribeEnd, NamesItselfIfItWasCutOff) {
  start({"a", "b", "c"});
  lose({"b", "c"}, {"b", "c"});
  EXPECT_EQ(describe({{false, wire::ServerLoss{"b"}}}), "lost: server a was cut off from all others");

  start({"a", "b", "c"});
  hear("b", wire::Beat{});
  hear("c", wire::EndLaunch{wire::ServerLoss{"a"}});
  EXPECT_EQ(describe({failed}), "lost: no report from server a") << "only c did not hear it";
}

TEST_F(DescribeEnd, AServerThatIsSilentAtTheEndMayHaveSucceeded) {
  start({"a", "b", "c"});
  policy->job(0).ended = true;
  hear("b", wire::Bye{}, 111);
  lose({"b", "c"}, {"c"});
  EXPECT_EQ(describe({succeeded}), "unknown: no report from server c at the end");
  start({"a", "b", "c"});
  policy->job(0).ended = true;
  lose({"b", "c"}, {"c"});
  EXPECT_EQ(describe({succeeded}), "lost: no report from server c") << "b still worked";
}

TEST_F(DescribeEnd, OfASupervisorThatWasStartedAgain) {
  start({"a", "b"});
  EXPECT_EQ(describe({{false, wire::RankEnded{3}}}), "failed: rank 3");
}

TEST_F(DescribeEnd, OfALaunchWhoseRanksAreLeftAlone) {
  start({"a", "b"}, true);
  hear("b", failure(1, {wire::EndKind::exit, 9}));
  hear("b", wire::EndLaunch{wire::RankEnded{1}});
  EXPECT_EQ(describe({succeeded}), "failed: rank 1 on b (exit 9)");
}

TEST_F(DescribeEnd, OfAHang) {
  for (const auto& [seconds, span] : std::vector<std::pair<int, std::string>>{
           {60, "60 s"}, {119, "119 s"}, {120, "2 min"}, {3599, "59 min"}}) {
    start({"a"});
    policy->end_hung({seconds}, false, Seconds(200));
    EXPECT_EQ(describe({failed}), "hung: no rank wrote or computed for " + span + "; its ranks were ended");
    const Notification left = describe_hang({seconds}, false);
    EXPECT_EQ(left.state, "hung");
    EXPECT_EQ(left.why, "no rank wrote or computed for " + span + "; it was left as it is");
    EXPECT_EQ(describe_hang({seconds}, true).why,
              "no rank wrote or computed for " + span + "; its ranks start again");
  }
}

class NotificationLines : public ::testing::Test {
 protected:
  std::string read(const std::string& text) {
    jobs.put(id, "job.err", text);
    return read_notification_lines(jobs.folder(id), {"nothing", "job.err", "job.out"});
  }

  test::JobFolders jobs;
  const std::string id = jobs.make({{"job.out", "from stdout\n"}});
};

TEST_F(NotificationLines, AreTheLastOnesWithText) {
  EXPECT_EQ(read("one\r\n\n  \t \n  two\t3\n\n"), "one\n  two 3");
  std::string text = "10%\r20%\n\n";
  std::string last;
  for (int i = 0; i < 20; ++i) {
    text += "line " + std::to_string(i) + "\n";
    last += i < 10 ? "" : (i == 10 ? "line " : "\nline ") + std::to_string(i);
  }
  EXPECT_EQ(read(text), last);
  EXPECT_EQ(read(""), "from stdout");
  EXPECT_EQ(read("\n \r\n"), "from stdout");
  EXPECT_EQ(read_notification_lines(jobs.folder(id), {"nothing"}), "");
  EXPECT_EQ(read(std::string(5000, 'x')), std::string(2000, 'x'));
}

TEST_F(NotificationLines, HaveNothingThatATerminalWouldObey) {
  EXPECT_EQ(read("a\033[0m\xc2\x9b\xe2\x80\xae\x7f|\xc3\xa9\xe2\x82\xac|\xff|?|"),
            "a?[0m???|é€|\xef\xbf\xbd|?|");
  EXPECT_EQ(clean_notification_lines("a\033\tb\n\nc\r"), "a??b\n\nc?");
}

TEST_F(NotificationLines, FitIntoAMessage) {
  EXPECT_LE(read(std::string(5000, '\xff')).size(), 4096U);
  EXPECT_EQ(clean_notification_lines(std::string(5000, 'x') + "é").size(), 4096U);
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    text += "€";
  }
  EXPECT_EQ(clean_notification_lines(text).size(), 4095U) << "without half a character";
}

TEST_F(NotificationLines, AreThoseOfTheLastAttempt) {
  const std::string divider =
      "remote: the ranks begin anew (restart 1) at 2026-11-24T11:58:19Z after rank 1 (exit 3)\n";
  EXPECT_EQ(read("a\n" + divider + "b\n"), "b");
  for (const std::string& text : {"a\n" + divider, divider, divider + "x\n" + divider}) {
    EXPECT_EQ(read(text), "from stdout");
  }
}

// The processes run this program: see main.cpp.
class NotifierTest : public ::testing::Test {
 protected:
  NotifierTest() {
    put_program("print('failed HTTP 500')");
    put_command("cat >>out");
  }
  void put_spec(const wire::NotifySpec& spec) { jobs.put(id, "notify", wire::to_json_bytes(spec) + "\n"); }
  // It runs in the job's folder.
  void put_command(const std::string& command) {
    put_spec({.command = command, .folder = jobs.folder(id).string(), .launch = "5", .name = "my run"});
  }
  // Replaces post.py.
  void put_program(const std::string& text) {
    test::JobFolders::put_file(jobs.path() / "program/python/post.py", text + "\n");
  }
  Notifier make() { return {jobs.host(), Path(jobs.path() / "program"), Path(jobs.folder(id)), activate}; }
  void send() { make().send_about_end(notification); }
  std::string read(const std::string& name) { return jobs.read(id, name); }
  bool has(const std::string& name) { return exists(jobs.folder(id) / name); }

  test::JobFolders jobs;
  const std::string id = jobs.make({});
  std::string activate;
  const Notification notification{"failed", "rank 3 on b (exit 1)", "\"one\"\nzwei: ü"};
};

TEST_F(NotifierTest, RunsTheProcessAndWaitsForIt) {
  put_command(
      "tr '\\0' ' ' </proc/$PPID/cmdline >words; readlink /proc/$PPID/cwd >>words; sleep 0.2; cat >out");
  send();
  EXPECT_EQ(read("notify.result"), "sent\n");
  EXPECT_FALSE(has("notify"));
  const std::vector<std::string> lines = split(read("words"), '\n');
  ASSERT_GE(lines.size(), 1U);
  EXPECT_THAT(lines[0], testing::HasSubstr(" notify end " + jobs.folder(id).string() + " "));
  EXPECT_THAT(lines[0], testing::EndsWith(" " + jobs.jobs().jobs.string()));
  EXPECT_THAT(read("out"), testing::HasSubstr(R"text("text": "my run failed: rank 3 on b (exit 1)")text"));
  EXPECT_THAT(read("out"), testing::HasSubstr(R"("lines": ["\"one\"", "zwei: \u00fc"])"));
}

TEST_F(NotifierTest, DoesNothingWithoutARequestOrAfterAResult) {
  jobs.put(id, "notify.result", "sent\n");
  send();
  EXPECT_FALSE(has("out"));
  fs::remove(jobs.folder(id) / "notify.result");
  fs::remove(jobs.folder(id) / "notify");
  send();
  make().start_about_hang(notification);
  EXPECT_FALSE(has("out"));
  EXPECT_FALSE(has("notify.result"));
}

TEST_F(NotifierTest, RecordsThatTheProcessFailed) {
  jobs.put(id, "notify", "not JSON");
  send();
  EXPECT_EQ(read("notify.result"), "not sent: its program failed\n");
  EXPECT_FALSE(has("notify"));
  fs::remove(jobs.folder(id) / "notify.result");
  put_command("kill -9 $PPID");
  send();
  EXPECT_EQ(read("notify.result"), "not known whether it arrived: its program died meanwhile\n");
}

TEST_F(NotifierTest, FindsThePythonOfTheEnvironment) {
  const fs::path programs = jobs.path() / "programs";
  fs::create_directories(programs);
  fs::create_symlink("/bin/sh", programs / "sh");
  jobs.host().environment["PATH"] = programs;
  put_spec({.url = "http://127.0.0.1:1/"});
  send();
  EXPECT_EQ(read("notify.result"), "not sent: there is no Python 3.6 or newer\n");
  EXPECT_FALSE(has("notify"));
  fs::remove(jobs.folder(id) / "notify.result");
  fs::remove(jobs.folder(id) / "notify.mark");
  put_spec({.url = "http://127.0.0.1:1/"});
  put_program("print('sent HTTP 200')");
  activate = "PATH=$PATH:/usr/local/bin:/usr/bin:/bin";
  send();
  EXPECT_EQ(read("notify.result"), "sent\n");
}

TEST_F(NotifierTest, TheProcessOfAHangOutlivesThisOne) {
  put_command("while ! [ -e go ]; do sleep 0.01; done; cat >part; mv part out");
  make().start_about_hang(notification);
  EXPECT_FALSE(has("out"));
  jobs.put(id, "go", "");
  EXPECT_TRUE(test::eventually([&] { return read("notify.hung.result") == "sent\n"; }));
  EXPECT_THAT(read("out"), testing::HasSubstr(R"("state": "failed")"));
  EXPECT_FALSE(has("notify.result"));
}

TEST_F(NotifierTest, ACommandGetsEachNotification) {
  Notifier notifier = make();
  notifier.start_about_hang(describe_hang({60}, false));
  ASSERT_TRUE(test::eventually([&] { return read("notify.hung.result") == "sent\n"; }));
  notifier.send_about_end(notification);
  EXPECT_EQ(read("notify.result"), "sent\n");
  EXPECT_FALSE(has("notify"));
  const std::string text = read("out");
  EXPECT_THAT(text,
              testing::HasSubstr("my run hung: no rank wrote or computed for 60 s; it was left as it is"));
  EXPECT_THAT(text, testing::HasSubstr("my run failed: rank 3 on b (exit 1)"));
  notifier.send_about_end(notification);  // does nothing
  EXPECT_EQ(read("out"), text);
}

}  // namespace
}  // namespace remote::agent
