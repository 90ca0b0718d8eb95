// The events of --jsonl, which programs read: see docs/jsonl.md.

#include "cli/show/stream.hpp"

#include <gtest/gtest.h>

#include "base/files.hpp"
#include "base/strings.hpp"
#include "support/command_world.hpp"
#include "support/golden.hpp"
#include "support/instants.hpp"

namespace remote::cli {
namespace {

Job rank_two() {
  Job job;
  job.key = 7;
  job.id = *JobId::parse("9ac02c2a9ac02c2a9ac02c2a9ac02c2a");
  job.launch = JobId::parse("0123456789abcdef0123456789abcdef");
  job.server = "node-2";
  job.command = "python train.py";
  job.state = JobState::failed;
  job.result = ExitStatus::exited(3);
  job.rank = 2;
  job.world_size = 4;
  job.created_at = instant(1795333800);
  return job;
}

// The output, with each time replaced by TIME.
class Printed {
 public:
  EventStream& stream() { return stream_; }
  std::string text() const {
    std::string all;
    for (const std::string& line : split(capture_.text(), '\n')) {
      auto event = nlohmann::ordered_json::parse(line.empty() ? "{}" : line);
      if (event.contains("time")) {
        EXPECT_EQ(event["time"].get<std::string>().size(), std::string("2026-11-21T07:30:00.000Z").size());
        event["time"] = "TIME";
        if (event.contains("remote")) {
          EXPECT_EQ(event["remote"], REMOTE_VERSION);
          event["remote"] = "VERSION";
        }
        all += event.dump() + "\n";
      }
    }
    return all;
  }

 private:
  test::Capture capture_;
  ui::Terminal terminal_{{0, capture_.fd(), capture_.fd()}};
  EventStream stream_{terminal_};
};

TEST(EventStream, EveryEventIsAsDocumented) {
  Printed printed;
  EventStream& stream = printed.stream();
  stream.name_servers({"node-1", "node-2"});
  stream.begin("prepare");
  const Error error = Error("cannot connect", "refused", "is sshd running?").on("node-2");
  LaunchResult launched;
  launched.plan.run_id = "0123456789abcdef0123456789abcdef";
  launched.plan.launcher = Launcher::ranks;
  launched.plan.master_addr = "10.0.0.1";
  launched.plan.master_port = 20500;
  launched.plan.world_size = 4;
  launched.jobs = {rank_two()};
  Job waiting = rank_two();
  waiting.waits = {{"1.4121", 2, "train.py", 88, ""}};
  const std::vector<Event> events = {
      ConfigWarning{"configs.yaml:7:5: unknown key 'hostnme'"},
      NewHostKey{"node-1", "[127.0.0.1]:2222", "ssh-ed25519", "SHA256:abc", ""},
      LoginProblem{error},
      SlowLogin{"node-1"},
      StoreProblem{"a record cannot be read"},
      SilentServers{{error}},
      LinkLeftOut{"data", "/mnt/data", LinkLeftOut::Why::not_allowed},
      EnvironmentsLeftOut{{".venv", "tools/env"}},
      UselessPatterns{".remote/exclude.txt", {{"!keep", 2, UselessPattern::Why::negated}}},
      UnfetchedFiles{{"weights.pt"}, {"third"}},
      PartsFailed{{error}},  // reported only by error()
      LinkLost{"node-1", "timed out", true},
      LinkBack{"node-1"},
      NoLifeline{{{"node-1", NoLifeline::Cause::no_connection, "from node-2"}}, false},
      RankWaits{waiting, waiting.waits.front()},
      JobsQueued{{rank_two()}},
      GpuCountDiffers{"node-1", 8, 7},
      CheckWarned{{"node-1", "node-2"},
                  {"shm", CheckStatus::warn, "small", Fix{Fix::Where::server, "ls", false}}},
      CodeDiffers{"node-1", {"train.py"}},
      CodeChanged{{"node-1"}, {"train.py"}, false},
      LaunchCode{"1a2b3c4d", false, 1, {"libs/sub/"}, true, {"node-1"}, {"node-2"}, {}, 2},
      Launched{launched},
      SameLaunchRuns{3, {"node-1"}},
      EndingRanks{rank_two()},
      EndingRanks{},
      KeyMade{"/home/ada/.ssh/id_ed25519"},
      StepBegun{0, PrepareStep::setup},
      StepBegun{1, PrepareStep::shared, "node-1"},
      StepDetail{0, "Collecting numpy", 0.5},
      TransferNews{1, {1000, 50, 2000.5, std::chrono::seconds(1)}},
      ServerPrepared{0, {}},
      ServerFailed{1, error, "no space left", "/p/.remote/logs/1"}};
  for (const Event& event : events) {
    stream.take(event);
  }
  stream.error(error, "is sshd running?");
  stream.output({"node-1", 6, 0}, OutputStream::out, "step 1");
  stream.output({"node-1"}, OutputStream::err, "");
  stream.ended(rank_two());
  Verdict verdict;
  verdict.first = rank_two();
  verdict.ahead = std::chrono::milliseconds(210);
  verdict.last_lines = {"ValueError: x"};
  verdict.total = 4;
  verdict.aborted = 3;
  stream.verdict(verdict);
  Verdict ended_by_hand;
  ended_by_hand.killed_first = rank_two();
  ended_by_hand.total = 4;
  ended_by_hand.aborted = 3;
  stream.verdict(ended_by_hand);
  stream.result({{"a", 1}});
  stream.end(1);
  test::expect_golden("jsonl_events.txt", printed.text());
}

TEST(EventStream, EveryEventIsInTheDocumentation) {
  const std::string golden =
      read_file(std::filesystem::path(test::source_folder) / "tests/unit/golden/jsonl_events.txt");
  const std::string documentation = read_file(std::filesystem::path(test::source_folder) / "docs/jsonl.md");
  for (const std::string& line : split(golden, '\n')) {
    if (!line.empty()) {
      const auto event = nlohmann::ordered_json::parse(line);
      const std::string name = event["event"];
      EXPECT_NE(documentation.find("| `" + name + "` |"), std::string::npos) << name;
      const std::size_t row = documentation.find("| `" + name + "` |");
      const std::string text = documentation.substr(row, documentation.find('\n', row) - row);
      for (const auto& [field, value] : event.items()) {
        if (field != "event" && field != "time") {
          EXPECT_NE(text.find("`" + field + "`"), std::string::npos) << name << "." << field;
        }
      }
    }
  }
}

TEST(EventStream, ALineSaysItsRank) {
  Printed printed;
  printed.stream().output({"node-1", 6, 13}, OutputStream::out, "[1] step 1");
  EXPECT_NE(printed.text().find(R"("rank":13,"stream":"out","text":"[1] step 1")"), std::string::npos);
}

TEST(EventStream, AnyBytesBecomeOneLineOfUtf8) {
  Printed printed;
  printed.stream().output({"node-1"}, OutputStream::out, "\xff\x1b[31m \r \"x\" \\");
  EXPECT_NE(printed.text().find("\\u001b[31m \\r \\\"x\\\" \\\\"), std::string::npos) << printed.text();
}

}  // namespace
}  // namespace remote::cli
