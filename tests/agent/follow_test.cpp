#include "agent/job/follow.hpp"

#include <atomic>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/job_folders.hpp"
#include "agent/serve/follower.hpp"
#include "agent/serve_client.hpp"
#include "agent/started.hpp"
#include "support/no_threads.hpp"
#include "wire/json_text.hpp"
#include "wire/start.hpp"

namespace remote::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

// Everything received on a stream.
struct Heard {
  std::optional<wire::FollowBegins> begins;
  std::string out;
  std::string err;
  std::string all;  // both, in order of arrival
  std::optional<wire::JobReport> job;
  std::string refusal;
  bool is_ended = false;
  std::size_t largest = 0;  // frame
  wire::ReceiveCredit credit;
};

void refuse_all(const wire::Request&, const std::string&, Stream&) {
  throw std::runtime_error("only following is tested");
}

// A client that follows jobs.
class FollowClient {
 public:
  explicit FollowClient(const Host& host) : client_(refuse_all, milliseconds(50), host) { client_.receive(); }

  std::uint32_t follow(const wire::FollowRequest& request) {
    const std::uint32_t stream = ++last_;
    streams_[stream];
    client_.ask_any(stream, request);
    client_.send(wire::FrameKind::end, stream);
    return stream;
  }
  void abort(std::uint32_t stream) { client_.send(wire::FrameKind::abort, stream); }
  Heard& heard(std::uint32_t stream) { return streams_.at(stream); }
  std::map<std::uint32_t, Heard>& streams() { return streams_; }
  int close() { return client_.close(); }
  bool grants_credit = true;

  void receive() { take(client_.receive()); }
  [[nodiscard]] bool receive_until(const std::function<bool()>& condition) {
    const auto limit = std::chrono::steady_clock::now() + seconds(20);
    while (!condition() && !::testing::Test::HasFailure()) {
      if (std::chrono::steady_clock::now() > limit) {
        return false;
      }
      receive();
    }
    return condition();
  }
  // Receives until the end of the stream.
  Heard& receive_all(std::uint32_t stream) {
    EXPECT_TRUE(receive_until([&] { return heard(stream).is_ended; }));
    return heard(stream);
  }

 private:
  void take(const wire::Frame& frame) {
    if (frame.stream == 0) {
      return;
    }
    Heard& heard = streams_.at(frame.stream);
    EXPECT_FALSE(heard.is_ended) << "a frame after the end";
    if (frame.kind == wire::FrameKind::end) {
      heard.is_ended = true;
    } else if (frame.kind == wire::FrameKind::data) {
      take_data(frame, heard);
    } else {
      wire::Reply reply = wire::decode<wire::Reply>(frame.payload);
      if (const auto* begins = std::get_if<wire::FollowBegins>(&reply)) {
        EXPECT_FALSE(heard.begins);
        heard.begins = *begins;
      } else if (const auto* refusal = std::get_if<wire::Refusal>(&reply)) {
        heard.refusal = refusal->reason;
      } else {
        EXPECT_TRUE(heard.begins);
        heard.job = std::get<wire::FollowEnds>(reply).job;
      }
    }
  }
  void take_data(const wire::Frame& frame, Heard& heard) {
    EXPECT_TRUE(heard.begins);
    EXPECT_FALSE(heard.job) << "output after the end";
    heard.largest = std::max(heard.largest, frame.payload.size());
    const std::string text(frame.payload.begin() + 1, frame.payload.end());
    EXPECT_FALSE(text.empty());
    (frame.payload[0] == 1 ? heard.out : heard.err) += text;
    heard.all += text;
    heard.credit.receive(frame.payload.size());  // throws if this exceeds the credit
    const std::uint32_t credit = grants_credit ? heard.credit.consume(frame.payload.size()) : 0;
    if (credit > 0) {
      wire::Bytes payload;
      for (int shift = 24; shift >= 0; shift -= 8) {
        payload.push_back(static_cast<std::uint8_t>(credit >> shift));
      }
      client_.send(wire::FrameKind::credit, frame.stream, payload);
    }
  }

  test::ServeClient client_;
  std::uint32_t last_ = 0;
  std::map<std::uint32_t, Heard> streams_;
};

class Follow : public ::testing::Test {
 protected:
  // A job whose supervisor is also its main process.
  std::string make_running(const test::Started& supervisor, std::map<std::string, std::string> files = {}) {
    const ProcessId id = supervisor.id(folders.host());
    const std::string process = fmt::format("{} {}", id.pid, id.start);
    files.insert(
        {{"pid", process + "\n"}, {"supervisor", process + " " + read_boot_id(folders.host()) + " -\n"}});
    return folders.make_running(files);
  }
  void append(const std::string& id, const std::string& name, const std::string& text) {
    std::ofstream(folders.folder(id) / name, std::ios::app | std::ios::binary) << text << std::flush;
  }
  void end(const std::string& id, const std::string& how = "exit 0") {
    append(id, "journal.jsonl",
           test::format_end(fmt::format("{} {} supervisor\n", how, read_wall_clock().count())));
  }
  wire::FollowRequest request(const std::string& id) { return {.place = folders.place(), .id = id}; }
  // Reads all output of a job that has ended, or all output so far.
  Heard read(wire::FollowRequest wanted) {
    wanted.follow = false;
    FollowClient client(folders.host());
    Heard heard = client.receive_all(client.follow(wanted));
    EXPECT_EQ(client.close(), 0);
    return heard;
  }

  test::JobFolders folders;
};

void wait_long() {
  test::sleep_long();
}

TEST_F(Follow, EveryByteOnceUntilTheEnd) {
  test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor);
  FollowClient client(folders.host());
  const std::uint32_t stream = client.follow(request(id));
  std::string out;
  std::string err;
  std::thread writer([&] {
    unsigned random = 1;
    for (int i = 0; i < 20; ++i) {
      for (const auto& [name, all, size] :
           {std::tuple("job.out", &out, 50000), std::tuple("job.err", &err, 1000)}) {
        std::string text;
        for (int byte = 0; byte < size; ++byte) {
          random = random * 1103515245 + 12345;
          text += static_cast<char>(random >> 16U);
        }
        append(id, name, text);
        *all += text;
      }
      std::this_thread::sleep_for(milliseconds(5));  // so that the output arrives in pieces
    }
    append(id, "job.out", "end");
    out += "end";
    end(id, "exit 7");
    ::kill(supervisor.pid(), SIGKILL);
  });
  Heard& heard = client.receive_all(stream);
  writer.join();
  EXPECT_EQ(heard.begins->out_offset, 0U);
  EXPECT_TRUE(heard.out == out) << heard.out.size();
  EXPECT_TRUE(heard.err == err) << heard.err.size();
  EXPECT_LE(heard.largest, 65536U);
  ASSERT_TRUE(heard.job);
  EXPECT_EQ(heard.job->phase, wire::JobPhase::ended);
  EXPECT_EQ(heard.job->end->how, wire::ProcessEnd::exited(7));
  EXPECT_EQ(heard.job->out_size, out.size());

  // Starts in the middle, after the job has ended.
  wire::FollowRequest rest = request(id);
  rest.out_offset = 500000;
  rest.err_offset = 19999;
  Heard& again = client.receive_all(client.follow(rest));
  EXPECT_EQ(again.begins->out_offset, 500000U);
  EXPECT_EQ(again.begins->err_offset, 19999U);
  EXPECT_TRUE(again.out == out.substr(500000));
  EXPECT_EQ(again.err, err.substr(19999));
}

TEST_F(Follow, ALineWithoutNewlinePassesAndAnAbortEndsIt) {
  const test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor);
  FollowClient client(folders.host());
  const std::uint32_t stream = client.follow(request(id));
  Heard& heard = client.heard(stream);
  append(id, "job.out", "one");
  append(id, "job.err", "e\n");
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "one" && heard.err == "e\n"; }));
  append(id, "job.out", "two");
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "onetwo"; }));
  const std::uint32_t other = client.follow(request(id));
  ASSERT_TRUE(client.receive_until([&] { return client.heard(other).out == "onetwo"; }));
  client.abort(stream);
  client.receive_all(stream);
  EXPECT_FALSE(heard.job);
  append(id, "job.out", "three");
  ASSERT_TRUE(client.receive_until([&] { return client.heard(other).out == "onetwothree"; }));
  EXPECT_EQ(heard.out, "onetwo");
  EXPECT_EQ(client.close(), 0);
  EXPECT_TRUE(supervisor.lives());
}

TEST_F(Follow, EndsWithTheClient) {
  const test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor);
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    while (!is_over) {
      append(id, "job.out", "line\n");
    }
  });
  FollowClient client(folders.host());
  const std::uint32_t stream = client.follow(request(id));
  EXPECT_TRUE(client.receive_until([&] { return client.heard(stream).out.size() > 20; }));
  EXPECT_EQ(client.close(), 0);
  is_over = true;
  writer.join();
}

TEST_F(Follow, TheLastLines) {
  std::string all;
  for (int i = 0; i < 30000; ++i) {
    all += fmt::format("line {}\n", i);
  }
  all += "part";
  const std::string id = folders.make_ended("exit 0", {{"job.out", all}});
  for (const auto& [lines, text] : std::vector<std::pair<int, std::string>>{
           {0, ""}, {1, "part"}, {3, "line 29998\nline 29999\npart"}, {1000000, all}}) {
    wire::FollowRequest wanted = request(id);
    wanted.lines = lines;
    const Heard heard = read(wanted);
    EXPECT_TRUE(heard.out == text) << lines << heard.out.substr(0, 100);
    EXPECT_EQ(heard.begins->out_offset, all.size() - text.size());
    EXPECT_EQ(heard.begins->err_offset, 0U);
  }
  const std::string whole = folders.make_ended("exit 0", {{"job.out", "one\ntwo\n"}, {"job.err", "\n\n"}});
  wire::FollowRequest wanted = request(whole);
  wanted.lines = 1;
  EXPECT_EQ(read(wanted).out, "two\n");
  EXPECT_EQ(read(wanted).err, "\n");
}

TEST_F(Follow, SinceAMoment) {
  const auto now = std::chrono::floor<seconds>(read_wall_clock()).count();
  const std::string id = folders.make_ended(
      "exit 0", {{"job.out", "one\ntwo\nthree\n"},
                 {"job.err", "e\n"},
                 {"marks", fmt::format("{}000 4 0\nnonsense\n{}000 6 0\n1 2\n{}000 8 2\n{}000 99 99\n",
                                       now - 500, now - 400, now - 300, now - 200)}});
  const auto since = [&](int time) {
    wire::FollowRequest wanted = request(id);
    wanted.since = seconds(time);
    const Heard heard = read(wanted);
    EXPECT_EQ(heard.begins->out_offset + heard.out.size(), 14U);
    return heard.out + "|" + heard.err;
  };
  EXPECT_EQ(since(1000), "one\ntwo\nthree\n|e\n");
  EXPECT_EQ(since(450), "two\nthree\n|e\n");
  EXPECT_EQ(since(350), "two\nthree\n|e\n");  // in the middle of a line, which is shown completely
  EXPECT_EQ(since(250), "three\n|");
  EXPECT_EQ(since(150), "|");  // offsets beyond the current size of the files
  // Without time notes, only the time of the last write is known.
  fs::remove(folders.folder(id) / "marks");
  EXPECT_EQ(since(450), "one\ntwo\nthree\n|e\n");
  fs::last_write_time(folders.folder(id) / "job.out", fs::file_time_type::clock::now() - seconds(460));
  EXPECT_EQ(since(450), "|e\n");
}

TEST_F(Follow, WhatWasWrittenLastComesLast) {
  const test::Started supervisor(wait_long);
  for (const bool is_out_first : {true, false}) {
    const std::string first = is_out_first ? "job.out" : "job.err";
    const std::string last = is_out_first ? "job.err" : "job.out";
    const std::map<std::string, std::string> files{{first, "first\n"}, {last, "last\n"}};
    const std::string ended = folders.make_ended("exit 0", files);
    const std::string running = make_running(supervisor, files);
    FollowClient client(folders.host());
    for (const std::string& id : {ended, running}) {
      fs::last_write_time(folders.folder(id) / first, fs::file_time_type::clock::now() - milliseconds(10));
      fs::last_write_time(folders.folder(id) / last, fs::file_time_type::clock::now());
      Heard& heard = client.heard(client.follow(request(id)));
      EXPECT_TRUE(client.receive_until([&] { return heard.all.size() == 11; }));
      EXPECT_EQ(heard.all, "first\nlast\n");
    }
  }
}

TEST_F(Follow, RefusesWhatIsNoJob) {
  FollowClient client(folders.host());
  const std::string none = test::JobFolders::new_id();
  EXPECT_EQ(client.receive_all(client.follow(request(none))).refusal, "the server has no job " + none);
  const std::string never = folders.make_ended("exit 0");
  folders.put(never, "journal.jsonl", test::format_end("never 0 1700000000000 kill\n"));
  EXPECT_EQ(client.receive_all(client.follow(request(never))).refusal, "job " + never + " was never started");
  const std::string empty = folders.make({});
  EXPECT_EQ(client.receive_all(client.follow(request(empty))).refusal, "job " + empty + " was never started");
  wire::FollowRequest wait = request(none);
  wait.wait_only = true;
  EXPECT_THAT(client.receive_all(client.follow(wait)).refusal, HasSubstr("has no job"));
  EXPECT_EQ(client.close(), 0);
}

TEST_F(Follow, ReadsOnlyRegularFiles) {
  FollowClient client(folders.host());
  const std::string id = folders.make_ended("exit 0");
  folders.put(id, "secret", "secret");
  fs::remove(folders.folder(id) / "job.out");
  fs::create_symlink("secret", folders.folder(id) / "job.out");
  EXPECT_THAT(client.receive_all(client.follow(request(id))).refusal,
              HasSubstr("job.out is not a regular file"));
  fs::remove(folders.folder(id) / "job.out");
  ASSERT_EQ(::mkfifo((folders.folder(id) / "job.out").c_str(), 0600), 0);
  EXPECT_THAT(client.receive_all(client.follow(request(id))).refusal,
              HasSubstr("job.out is not a regular file"));
}

TEST_F(Follow, AJobWhoseSupervisorDiedIsFollowedToItsEnd) {
  test::Started supervisor(wait_long);
  test::Started main(wait_long);
  const std::string id = make_running(supervisor);
  const ProcessId process = main.id(folders.host());
  folders.put(id, "pid", fmt::format("{} {}\n", process.pid, process.start));
  FollowClient client(folders.host());
  const std::uint32_t stream = client.follow(request(id));
  Heard& heard = client.heard(stream);
  append(id, "job.out", "one");
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "one"; }));
  ::kill(supervisor.pid(), SIGKILL);
  supervisor.wait();
  std::this_thread::sleep_for(milliseconds(500));  // long enough to notice its end
  append(id, "job.out", "two\n");
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "onetwo\n"; }));
  EXPECT_FALSE(heard.is_ended);
  append(id, "job.out", "three\n");
  ::kill(main.pid(), SIGKILL);
  main.wait();
  client.receive_all(stream);
  EXPECT_EQ(heard.out, "onetwo\nthree\n");
  EXPECT_EQ(heard.job->phase, wire::JobPhase::gone);
}

TEST_F(Follow, ReadsToTheEndOnceMore) {
  for (int i = 0; i < 20; ++i) {
    test::Started supervisor(wait_long);
    const std::string id = make_running(supervisor);
    FollowClient client(folders.host());
    const std::uint32_t stream = client.follow(request(id));
    EXPECT_TRUE(client.receive_until([&] { return client.heard(stream).begins.has_value(); }));
    const std::string text(300000, 'x');
    append(id, "job.out", text);
    append(id, "job.err", "last words\n");
    end(id, "exit 1");
    ::kill(supervisor.pid(), SIGKILL);
    EXPECT_EQ(client.receive_all(stream).out.size(), text.size());
    EXPECT_EQ(client.heard(stream).err, "last words\n");
    EXPECT_EQ(client.heard(stream).job->end->how, wire::ProcessEnd::exited(1));
  }
}

TEST_F(Follow, AResultEndsItAlsoIfTheSupervisorHangs) {
  const test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor);
  FollowClient client(folders.host());
  const std::uint32_t stream = client.follow(request(id));
  EXPECT_TRUE(client.receive_until([&] { return client.heard(stream).begins.has_value(); }));
  end(id, "signal 9");
  EXPECT_EQ(client.receive_all(stream).job->end->how, wire::ProcessEnd::signalled(9));
}

TEST_F(Follow, WithoutFollowingItStopsAtWhatWasThere) {
  const test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor, {{"job.out", "one\n"}});
  std::atomic<bool> is_over = false;
  std::thread writer([&] {
    while (!is_over) {
      append(id, "job.out", "more\n");
    }
  });
  const Heard heard = read(request(id));
  is_over = true;
  writer.join();
  EXPECT_TRUE(heard.out.starts_with("one\n"));
  EXPECT_EQ(heard.job->phase, wire::JobPhase::running);
}

TEST_F(Follow, WaitsForAQueuedJob) {
  test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor, {{"queue", "\n"}, {"pid", ""}});
  FollowClient client(folders.host());
  const std::uint32_t stream = client.follow(request(id));
  Heard& heard = client.heard(stream);
  ASSERT_TRUE(client.receive_until([&] { return heard.begins.has_value(); }));
  std::this_thread::sleep_for(milliseconds(300));  // long enough to notice a wrong end
  fs::remove(folders.folder(id) / "queue");
  append(id, "job.out", "first\n");
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "first\n"; }));
  append(id, "job.out", "last\n");
  end(id, "exit 3");
  ::kill(supervisor.pid(), SIGKILL);
  EXPECT_EQ(client.receive_all(stream).out, "first\nlast\n");
  EXPECT_EQ(heard.job->end->how, wire::ProcessEnd::exited(3));
}

TEST_F(Follow, OnlyWaits) {
  test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor, {{"job.out", "one\n"}, {"job.err", "two\n"}});
  FollowClient client(folders.host());
  wire::FollowRequest wanted = request(id);
  wanted.wait_only = true;
  const std::uint32_t stream = client.follow(wanted);
  EXPECT_TRUE(client.receive_until([&] { return client.heard(stream).begins.has_value(); }));
  append(id, "job.out", "three\n");
  end(id, "exit 4");
  ::kill(supervisor.pid(), SIGKILL);
  const Heard& heard = client.receive_all(stream);
  EXPECT_EQ(heard.all, "");
  EXPECT_EQ(heard.job->end->how, wire::ProcessEnd::exited(4));
}

TEST_F(Follow, ASlowReaderHoldsUpOnlyItsOwnJob) {
  const test::Started supervisor(wait_long);
  const std::string big = folders.make_ended("exit 0", {{"job.out", std::string(2'000'000, 'x')}});
  const std::string small = make_running(supervisor);
  FollowClient client(folders.host());
  client.grants_credit = false;
  const std::uint32_t slow = client.follow(request(big));
  ASSERT_TRUE(
      client.receive_until([&] { return client.heard(slow).out.size() > wire::initial_credit - 10; }));
  const std::uint32_t other = client.follow(request(small));
  append(small, "job.out", "here\n");
  ASSERT_TRUE(client.receive_until([&] { return client.heard(other).out == "here\n"; }));
  EXPECT_LE(client.heard(slow).out.size(), wire::initial_credit);
  client.abort(slow);
  client.receive_all(slow);
}

TEST_F(Follow, ManyJobsAtOnce) {
  constexpr std::size_t count = 300;
  std::vector<test::Started> supervisors;
  std::vector<std::string> ids;
  test::Started supervisor(wait_long);
  FollowClient client(folders.host());
  std::map<std::uint32_t, std::string> expected;
  for (std::size_t i = 0; i < count; ++i) {
    ids.push_back(make_running(supervisor, {{"job.out", fmt::format("begin {}\n", i)}}));
    expected[client.follow(request(ids.back()))] = fmt::format("begin {}\nend {}\n", i, i);
  }
  ASSERT_TRUE(client.receive_until([&] {
    return std::all_of(client.streams().begin(), client.streams().end(),
                       [](const auto& stream) { return !stream.second.out.empty(); });
  }));
  for (std::size_t i = 0; i < count; ++i) {
    append(ids[i], "job.out", fmt::format("end {}\n", i));
    end(ids[i]);
  }
  ::kill(supervisor.pid(), SIGKILL);
  for (const auto& [stream, text] : expected) {
    EXPECT_EQ(client.receive_all(stream).out, text);
    EXPECT_EQ(client.heard(stream).job->phase, wire::JobPhase::ended);
  }
}

TEST_F(Follow, WithoutThreadsTheAgentFollowsInItsMainLoop) {
  test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor);
  FollowClient client(folders.host());
  const remote::test::NoThreads none;
  const std::uint32_t stream = client.follow(request(id));
  Heard& heard = client.heard(stream);
  EXPECT_TRUE(client.receive_until([&] { return heard.begins.has_value(); }));
  append(id, "job.out", "one\n");
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "one\n"; }));
  append(id, "job.err", "two\n");
  ASSERT_TRUE(client.receive_until([&] { return heard.err == "two\n"; }));
  end(id, "exit 3");
  ::kill(supervisor.pid(), SIGKILL);
  EXPECT_EQ(client.receive_all(stream).job->end->how, wire::ProcessEnd::exited(3));
}

TEST_F(Follow, AFileThatIsCutOffBeginsAgain) {
  const test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor, {{"job.out", "a long line\n"}});
  FollowClient client(folders.host());
  Heard& heard = client.heard(client.follow(request(id)));
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "a long line\n"; }));
  folders.put(id, "job.out", "new\n");
  EXPECT_TRUE(client.receive_until([&] { return heard.out == "a long line\nnew\n"; }));
}

TEST_F(Follow, OffsetsBehindTheEndWait) {
  const test::Started supervisor(wait_long);
  const std::string id = make_running(supervisor, {{"job.out", "1234"}});
  wire::FollowRequest wanted = request(id);
  wanted.out_offset = 6;
  EXPECT_EQ(read(wanted).out, "");
  FollowClient client(folders.host());
  Heard& heard = client.heard(client.follow(wanted));
  ASSERT_TRUE(client.receive_until([&] { return heard.begins.has_value(); }));
  EXPECT_EQ(heard.begins->out_offset, 6U);
  append(id, "job.out", "5678");
  EXPECT_TRUE(client.receive_until([&] { return heard.out == "78"; }));
}

TEST_F(Follow, TheOutputOfARank) {
  const test::Started supervisor(wait_long);
  const std::string id =
      make_running(supervisor, {{"job.out", "not this\n"}, {"ranks/1.out", "one\n"}, {"ranks/1.err", ""}});
  FollowClient client(folders.host());
  wire::FollowRequest wanted = request(id);
  wanted.rank = 1;
  Heard& heard = client.heard(client.follow(wanted));
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "one\n"; }));
  // A rank that has not started will append to its files.
  wanted.rank = 7;
  Heard& later = client.heard(client.follow(wanted));
  ASSERT_TRUE(client.receive_until([&] { return later.begins.has_value(); }));
  append(id, "ranks/7.err", "seven\n");
  ASSERT_TRUE(client.receive_until([&] { return later.err == "seven\n"; }));

  const std::string ended = folders.make_ended("exit 0", {{"ranks/2.out", ""}});
  wanted.id = ended;
  EXPECT_EQ(client.receive_all(client.follow(wanted)).refusal, "rank 7 of job " + ended + " has not started");
  fs::create_symlink("2.out", folders.folder(ended) / "ranks/7.out");
  EXPECT_THAT(client.receive_all(client.follow(wanted)).refusal, HasSubstr("7.out is not a regular file"));

  // torchrun agents.
  folders.put(ended, "batch.sh", "#!/bin/sh\n[ $# != 0 ] || set -- agents 2 0 -\n");
  EXPECT_THAT(client.receive_all(client.follow(wanted)).refusal, HasSubstr("is not divided by ranks"));
  const auto start_with = [&](wire::StartupFiles files) {
    folders.put(ended, "spec.json", wire::to_json_text(wire::JobSpec{.startup_files = files}));
  };
  start_with(wire::StartupFiles::torch_agent);
  EXPECT_THAT(client.receive_all(client.follow(wanted)).refusal, HasSubstr("7.out is not a regular file"));
  start_with(wire::StartupFiles::python);
  EXPECT_THAT(client.receive_all(client.follow(wanted)).refusal, HasSubstr("is not divided by ranks"));
}

// For example, a Slurm job that was requeued.
TEST_F(Follow, GoesOnIfTheJobLivesAfterAll) {
  const test::Started supervisor(wait_long);
  test::Started survivor(wait_long);
  const ProcessId process = survivor.id(folders.host());
  const std::string id = folders.make_ended("signal 9", {{"job.out", "one\n"}});
  append(id, "journal.jsonl",
         test::format_survivors({{.process = wire::RecordedProcess{process.pid, process.start}}}));
  FollowClient client(folders.host());
  const std::uint32_t stream = client.follow(request(id));
  Heard& heard = client.heard(stream);
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "one\n"; }));
  std::this_thread::sleep_for(milliseconds(300));  // long enough to notice a wrong end
  append(id, "job.out", "two\n");
  ASSERT_TRUE(client.receive_until([&] { return heard.out == "one\ntwo\n"; }));
  EXPECT_FALSE(heard.job);
  ::kill(survivor.pid(), SIGKILL);
  survivor.wait();
  EXPECT_EQ(client.receive_all(stream).job->phase, wire::JobPhase::ended);
  EXPECT_EQ(heard.out, "one\ntwo\n");
}

}  // namespace
}  // namespace remote::agent
