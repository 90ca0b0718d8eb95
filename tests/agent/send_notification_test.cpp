#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/fake_host.hpp"
#include "agent/host/files.hpp"
#include "agent/notify/compose.hpp"
#include "agent/notify/deliver.hpp"
#include "agent/notify/notify.hpp"
#include "agent/notify/send.hpp"
#include "agent/waiting.hpp"
#include "wire/json_text.hpp"

// The text of notifications, how they are sent, and how often.

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const Notification failure{"failed", "rank 3 on b (exit 1)", "one\ntwo"};

wire::NotifySpec make_notify_spec() {
  return {.launch = "5",
          .name = "night run",
          .project = "mnist",
          .ranks_command = "train.py",
          .servers = {"a", "b"},
          .ranks = 16,
          .began = 1700000000};
}

TEST(ComposeNotification, AsJson) {
  EXPECT_EQ(
      compose_json(make_notify_spec(), {"failed", "\"why\\\": a,b", "\xc3\xbc\ntwo"}, seconds(1700000060)),
      R"({"launch": "5", "name": "night run", "project": "mnist", "state": "failed", )"
      R"("text": "night run failed: \"why\\\": a,b", "command": "train.py", "servers": ["a", "b"], )"
      R"("ranks": 16, "began": 1700000000, "ended": 1700000060, "lines": ["\u00fc", "two"]})");
  EXPECT_EQ(compose_json({.launch = "5"}, {"killed", ""}, seconds(7)),
            R"({"launch": "5", "name": "", "project": "", "state": "killed", "text": "launch 5 killed", )"
            R"("command": "", "servers": [], "ranks": 0, "began": 0, "ended": 7, "lines": []})");
}

TEST(ComposeNotification, ForEachShape) {
  wire::NotifySpec spec = make_notify_spec();
  spec.url = "http://a/secret";
  Post post = compose_post(spec, failure, seconds(1));
  EXPECT_EQ(post.url, "http://a/secret");
  EXPECT_EQ(post.headers["Content-Type"], "application/json");
  EXPECT_EQ(post.headers["User-Agent"], "remote");
  EXPECT_EQ(post.body, compose_json(spec, failure, seconds(1)));
  EXPECT_EQ(post.body.find("secret"), std::string::npos);

  spec.shape = wire::NotifyShape::slack;
  post = compose_post(spec, {"failed", "a > b", "<!channel> & ```"}, seconds(1));
  EXPECT_EQ(post.headers["Content-Type"], "application/json");
  EXPECT_EQ(
      post.body,
      R"({"text": "*mnist*: night run failed: a &gt; b\u000a```\u000a&lt;!channel&gt; &amp; '''\u000a```"})");
  EXPECT_EQ(compose_post(spec, {"killed", ""}, seconds(1)).body, R"({"text": "*mnist*: night run killed"})");

  spec.shape = wire::NotifyShape::ntfy;
  spec.name = "n\xc3\xbc\n";
  post = compose_post(spec, failure, seconds(1));
  EXPECT_EQ(post.headers["Title"], "mnist: n?? failed: rank 3 on b (exit 1)");
  EXPECT_EQ(post.headers["Priority"], "high");
  EXPECT_EQ(post.headers["Tags"], "x");
  EXPECT_EQ(post.body, "one\ntwo");
  EXPECT_EQ(compose_post(spec, {"failed", ""}, seconds(1)).body, "train.py");
  spec.ranks_command = "";
  EXPECT_EQ(compose_post(spec, {"failed", ""}, seconds(1)).body, "n\xc3\xbc\n failed");
  for (const char* state : {"test", "succeeded"}) {  // no failure
    post = compose_post(spec, {state, ""}, seconds(1));
    EXPECT_EQ(post.headers["Priority"], "default");
    EXPECT_EQ(post.headers["Tags"], "white_check_mark");
  }
}

TEST(ComposeNotification, AnswersAreOneLine) {
  EXPECT_EQ(compose_line(" a\033[2J\n\tb\xe2\x80\xae"
                         "c \xff\xc3\xbc "),
            "a [2J b c \xef\xbf\xbd\xc3\xbc");
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text += "\xc3\xbc";
  }
  EXPECT_EQ(compose_line(text), text.substr(0, 1000));
}

// A job's folder with the file `notify`, and a simulated clock.
class DeliverNotification : public ::testing::Test {
 protected:
  DeliverNotification() {
    fs::create_directories(folder());
    put_spec();
  }
  fs::path folder() const { return fake.folder() / "job"; }
  void put_spec() const { fake.put(folder() / "notify", wire::to_json_bytes(make_notify_spec()) + "\n"); }
  std::string result(const std::string& name = "notify.result") const {
    return read_file(folder() / name).value_or("none");
  }
  // `answer` gets the time in seconds. Each attempt takes two seconds.
  std::string deliver(const std::function<SendResult(int)>& answer, bool is_about_hang = false) {
    tried.clear();
    milliseconds now{0};
    Delivery delivery{.folder = folder(), .is_about_hang = is_about_hang, .limit = seconds(3600)};
    delivery.send = [&](const wire::NotifySpec& spec) {
      EXPECT_EQ(spec.name, "night run");
      tried.push_back(static_cast<int>(now.count() / 1000));
      now += seconds(2);
      return answer(static_cast<int>(now.count() / 1000));
    };
    delivery.read_clock = [&] { return now; };
    delivery.sleep = [&](milliseconds pause) { now += pause; };
    deliver_notification(delivery);
    return result(is_about_hang ? "notify.hung.result" : "notify.result");
  }
  static SendResult refuse(int /*now*/) { return {Arrival::failed, "HTTP 503"}; }
  static SendResult accept(int /*now*/) { return {Arrival::sent, "HTTP 200"}; }

  test::FakeHost fake;
  std::vector<int> tried;
};

TEST_F(DeliverNotification, SendsItOnce) {
  EXPECT_EQ(deliver(accept), "sent\n");
  EXPECT_EQ(tried, std::vector{0});
  EXPECT_FALSE(fs::exists(folder() / "notify"));  // the secret is gone
  EXPECT_EQ(fs::status(folder() / "notify.mark").permissions(), fs::perms(0600));
  EXPECT_EQ(deliver(accept), "sent\n");
  put_spec();
  EXPECT_EQ(deliver(accept), "sent\n");
  EXPECT_TRUE(tried.empty());
}

TEST_F(DeliverNotification, TriesForAnHour) {
  EXPECT_EQ(deliver(refuse), "not sent, tried for 3600 s: HTTP 503\n");
  std::vector<int> pauses;
  for (std::size_t i = 1; i < tried.size(); ++i) {
    pauses.push_back(tried[i] - tried[i - 1] - 2);
  }
  ASSERT_GT(pauses.size(), 9U);
  EXPECT_THAT(std::vector(pauses.begin(), pauses.begin() + 9),
              ElementsAre(5, 10, 20, 40, 80, 160, 320, 600, 600));
  EXPECT_LE(*std::ranges::max_element(pauses), 600);
  EXPECT_EQ(tried.back(), 3600);
  EXPECT_FALSE(fs::exists(folder() / "notify"));
  // The next lifeline does not try again.
  EXPECT_EQ(deliver(accept), "not sent, tried for 3600 s: HTTP 503\n");
  EXPECT_TRUE(tried.empty());
}

TEST_F(DeliverNotification, SendsItWhenTheReceiverReturns) {
  const auto answer = [](int now) { return now > 3590 ? accept(now) : refuse(now); };
  EXPECT_EQ(deliver(answer), "sent\n");
  EXPECT_EQ(tried.back(), 3600);
  EXPECT_EQ(std::ranges::count_if(tried, [](int at) { return at > 3588; }), 1);
}

TEST_F(DeliverNotification, DoesNotRepeatWhatMayHaveArrived) {
  const auto answer = [](int now) {
    return now < 1000 ? refuse(now) : SendResult{Arrival::unknown, "no answer; it may have arrived"};
  };
  EXPECT_EQ(deliver(answer), "no answer; it may have arrived\n");
  EXPECT_EQ(std::ranges::count_if(tried, [](int at) { return at > 998; }), 1);
}

TEST_F(DeliverNotification, DoesNotRepeatWhatIsImpossible) {
  EXPECT_EQ(deliver([](int /*now*/) { return SendResult{Arrival::impossible, "why"}; }), "not sent: why\n");
  EXPECT_EQ(tried.size(), 1U);
}

TEST_F(DeliverNotification, DoesNotFollowOneThatDiedMeanwhile) {
  fake.put(folder() / "notify.mark", "");
  EXPECT_EQ(deliver(accept), "not known whether it arrived: its process died meanwhile\n");
  EXPECT_TRUE(tried.empty());
}

TEST_F(DeliverNotification, EndsWithTheJobsFolder) {
  deliver([&](int now) {
    fs::remove_all(folder());
    return refuse(now);
  });
  EXPECT_EQ(tried.size(), 1U);
  EXPECT_FALSE(fs::exists(folder()));
}

TEST_F(DeliverNotification, ReportsEachHangAndThenTheEnd) {
  EXPECT_EQ(deliver(accept, true), "sent\n");
  EXPECT_EQ(deliver(accept, true), "sent\n");
  EXPECT_EQ(tried.size(), 1U);
  EXPECT_TRUE(fs::exists(folder() / "notify"));
  EXPECT_EQ(deliver(accept), "sent\n");
  EXPECT_EQ(tried.size(), 1U);
}

TEST_F(DeliverNotification, WaitsForAnotherProcess) {
  std::atomic<bool> has_begun = false;
  std::atomic<bool> may_end = false;
  std::atomic<int> sent = 0;
  const auto run = [&] {
    Delivery delivery{.folder = folder(), .limit = seconds(1)};
    delivery.send = [&](const wire::NotifySpec& /*spec*/) -> SendResult {
      ++sent;
      has_begun = true;
      EXPECT_TRUE(test::eventually([&] { return may_end.load(); }));
      return {Arrival::sent, ""};
    };
    deliver_notification(delivery);
  };
  std::thread first(run);
  EXPECT_TRUE(test::eventually([&] { return has_begun.load(); }));
  std::thread second(run);
  ::usleep(200'000);  // time for the second one to start waiting; the test passes in any order
  EXPECT_EQ(result(), "none");
  may_end = true;
  first.join();
  second.join();
  EXPECT_EQ(result(), "sent\n");
  EXPECT_EQ(sent, 1);
}

class SendNotification : public ::testing::Test {
 protected:
  SendResult run(const std::string& command) {
    wire::NotifySpec spec = make_notify_spec();
    spec.command = command;
    return NotificationSender(fake.host, "", "").send(spec, failure);
  }
  SendResult post(const std::string& program) {
    wire::NotifySpec spec = make_notify_spec();
    spec.url = "http://a/secret";
    return NotificationSender(fake.host, "import os, sys\n" + program, activate).send(spec, failure);
  }

  test::FakeHost fake;
  std::string activate;
};

TEST_F(SendNotification, ACommandGetsItOnStdin) {
  const SendResult attempt =
      run("cat >'out'; tr '\\0' ' ' </proc/$$/cmdline >argv; pwd; echo \xff >&2; sleep 1000 & echo $! >left");
  EXPECT_EQ(::kill(std::stoi(read_file(fake.home() / "left").value()), SIGKILL), 0) << "it is not waited for";
  EXPECT_EQ(attempt.arrival, Arrival::sent);
  EXPECT_EQ(attempt.answer, "exit 0: " + fake.home().string() + "\n\xff");
  EXPECT_THAT(read_file(fake.home() / "out").value_or(""), HasSubstr(R"("lines": ["one", "two"]})"));
  EXPECT_THAT(read_file(fake.home() / "argv").value_or(""), Not(HasSubstr("cmdline")));
}

TEST_F(SendNotification, ACommandThatFailsIsTriedAgain) {
  SendResult attempt = run("echo why; exit 7");
  EXPECT_EQ(attempt.arrival, Arrival::failed);
  EXPECT_EQ(attempt.answer, "exit 7: why");
  attempt = run("yes | head -c 1000; false");
  EXPECT_EQ(attempt.answer.size(), std::string("exit 1: ").size() + 499);
  EXPECT_EQ(run("false").answer, "exit 1");
}

TEST_F(SendNotification, TheUrlIsInNoArgument) {
  const SendResult attempt = post(
      "text = sys.stdin.read()\n"
      "assert 'sec' 'ret' not in open('/proc/self/cmdline').read()\n"
      "print('sent ' + str('sec' 'ret' in text) + ' ' + os.readlink('/proc/self/fd/0').split(' ')[0])");
  EXPECT_EQ(attempt.arrival, Arrival::sent);
  EXPECT_EQ(attempt.answer, "True /memfd:text\n");
}

TEST_F(SendNotification, TheAnswersOfTheProgram) {
  SendResult attempt = post("print('failed HTTP 404', end='')");
  EXPECT_EQ(attempt.arrival, Arrival::failed);
  EXPECT_EQ(attempt.answer, "HTTP 404");
  attempt = post("print('unknown no answer', end='')");
  EXPECT_EQ(attempt.arrival, Arrival::unknown);
  EXPECT_EQ(attempt.answer, "no answer");
  attempt = post("raise ValueError('secret')");
  EXPECT_EQ(attempt.arrival, Arrival::failed);
  EXPECT_EQ(attempt.answer, "its program failed");
}

TEST_F(SendNotification, FindsThePythonOfTheEnvironment) {
  fs::create_symlink("/bin/sh", fake.programs() / "sh");
  fake.host.environment["PATH"] = fake.programs();
  EXPECT_EQ(post("print('sent')").arrival, Arrival::impossible);
  EXPECT_EQ(post("print('sent')").answer, "there is no Python 3.6 or newer");
  activate = "PATH=$PATH:/usr/local/bin:/usr/bin:/bin";
  EXPECT_EQ(post("print('sent it')").arrival, Arrival::sent);
}

TEST_F(SendNotification, ATrialIsSentOnce) {
  wire::NotificationToTry request{make_notify_spec(), "", "print('sent HTTP 200 thanks\\nx')"};
  request.spec.command = "cat >out; echo a; echo b";
  request.spec.name = "notification";
  wire::TryNotifyReply reply = try_notify(fake.host, request);
  EXPECT_TRUE(reply.is_sent);
  EXPECT_EQ(reply.answer, "exit 0: a b");
  EXPECT_THAT(read_file(fake.home() / "out").value_or(""),
              HasSubstr(R"("state": "test", "text": "notification test")"));
  EXPECT_THAT(read_file(fake.home() / "out").value_or(""), HasSubstr(R"("lines": ["this is a test"])"));
  request.spec.command = "false";
  reply = try_notify(fake.host, request);
  EXPECT_FALSE(reply.is_sent);
  EXPECT_EQ(reply.answer, "exit 1");
  request.spec.url = "http://a/secret";
  EXPECT_EQ(try_notify(fake.host, request).answer, "HTTP 200 thanks x");
}

}  // namespace
}  // namespace remote::agent
