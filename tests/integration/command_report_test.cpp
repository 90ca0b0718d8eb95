// `remote report`: a page about one launch, and the page that --watch keeps up to date.

#include <map>

#include <fmt/format.h>

#include "base/strings.hpp"
#include "support/command_world.hpp"
#include "support/paths.hpp"
#include "support/waiting.hpp"

namespace remote::test {
namespace {

class CommandReport : public ::testing::Test {
 protected:
  CommandWorld world;

  nlohmann::json report(std::vector<std::string> words) {
    words.insert(words.begin(), "report");
    words.push_back("--json");
    const CommandResult result = world.run(words);
    EXPECT_EQ(result.code, 0) << result;
    return result.json();
  }
};

TEST_F(CommandReport, OfAFailedLaunchSaysTheCauseAndDrawsItsNumbers) {
  ASSERT_EQ(world
                .run({"launch", "--nproc-per-node", "2", "--failure-grace", "0", "--follow", "--cmd",
                      "for i in 1 2 3; do echo \"step $i loss 0.$RANK$i\"; done; [ $RANK != 3 ] || { echo "
                      "'because of <this>' >&2; exit 7; }; "
                      "exec sleep 1000"})
                .code,
            1);
  const CommandResult made = world.run({"report"});
  ASSERT_EQ(made.code, 0) << made;
  const fs::path file(trim(made.out));
  EXPECT_EQ(file, world.project() / ".remote/reports/launch-1.html");
  const std::string page = read_file(file);
  EXPECT_THAT(page, HasSubstr("because of \\u003cthis\\u003e"));

  const auto data = report({"--launch", "3"});
  EXPECT_EQ(data["state"], "failed");
  EXPECT_THAT(data["cause"]["title"].get<std::string>(), StartsWith("rank 3 on b failed first (exit 7"));
  EXPECT_EQ(data["cause"]["lines"][0], "because of <this>");
  EXPECT_EQ(data["jobs"].size(), 4U);
  EXPECT_EQ(data["curves"].size(), 4U);
  EXPECT_EQ(data["curves"][2]["name"], "loss");
  EXPECT_EQ(data["curves"][2]["rank"], 2);
  EXPECT_THAT(data["curves"][2]["values"].get<std::vector<double>>(), ElementsAre(0.21, 0.22, 0.23));
  EXPECT_THAT(data["curves"][2]["at"].get<std::vector<double>>(), ElementsAre(1, 2, 3));

  // If a server is gone, the local data is still shown.
  world.cut_off({"a", "b"});
  EXPECT_EQ(report({"--offline"})["curves"].size(), 4U);
}

// The fact or variable with this name in the report's description of the environment.
nlohmann::json named(const nlohmann::json& list, const std::string& name) {
  for (const auto& one : list) {
    if (one["name"] == name) {
      return one;
    }
  }
  return nullptr;
}

TEST_F(CommandReport, TellsTheEnvironmentOfALaunchAndWhereItsServersDiffer) {
  write_file_atomic(world.project() / "train.py", "print('fine')");
  const CommandResult python = world.run({"run", "--server", "a", "--", "python3", "-c",
                                          "import sys; print('python%d.%d' % sys.version_info[:2])"});
  ASSERT_THAT(python.out, StartsWith("python3.")) << python;
  for (const auto& [server, version] : {std::pair("a", "2.1.0"), std::pair("b", "2.2.0")}) {
    const fs::path folder =
        world.servers().home(server) / ".local/lib" / trim(python.out) / "site-packages/torch";
    fs::create_directories(folder);
    write_file_atomic(folder / "version.py",
                      std::string("__version__ = '") + version + "'\ncuda: Optional[str] = '12.1'\n");
  }
  ASSERT_EQ(world.run({"rsync"}).code, 0);
  const CommandResult launched = world.run({"launch", "--nproc-per-node", "1", "--env", "MODE=<fast>",
                                            "--env", "API_TOKEN=hunter2", "--follow", "--cmd", "echo fine"});
  ASSERT_EQ(launched.code, 0) << launched;
  const auto data = report({});
  EXPECT_THAT(data.dump(), Not(HasSubstr("hunter2")));
  const auto& facts = data["environment"]["facts"];
  EXPECT_EQ(data["environment"]["launcher"], "ranks");
  EXPECT_EQ(named(facts, "os")["differs"], false);
  EXPECT_EQ(named(facts, "cuda")["values"],
            nlohmann::json::parse(R"([{"value": "12.1", "servers": ["a", "b"]}])"));
  const auto torch = named(facts, "torch");
  EXPECT_EQ(torch["differs"], true);
  EXPECT_EQ(torch["values"], nlohmann::json::parse(R"([{"value": "2.1.0", "servers": ["a"]},
                                                       {"value": "2.2.0", "servers": ["b"]}])"));
  const auto code = named(facts, "code");
  EXPECT_EQ(code["differs"], false);
  EXPECT_THAT(code["values"][0]["value"].get<std::string>(), MatchesRegex("[0-9a-f]{64}"));
  EXPECT_TRUE(named(facts, "changed here").is_null());
  const auto& variables = data["environment"]["variables"];
  EXPECT_EQ(named(variables, "MODE")["values"][0]["value"], "<fast>");
  EXPECT_EQ(named(variables, "API_TOKEN")["values"][0]["value"], "********");
  EXPECT_EQ(named(variables, "WORLD_SIZE")["values"][0]["value"], "2");
  EXPECT_TRUE(named(variables, "RANK").is_null());

  // Values are not in the record, which stays. If the list of values is damaged, only the list is lost.
  const fs::path values = world.brought(world.stored(1), "variables.json");
  EXPECT_EQ(fs::status(values).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  write_file_atomic(values, R"({"version": 1, "servers": {"a": 7}})");
  const auto without = report({"--offline"});
  EXPECT_EQ(without["environment"]["variables"].size(), 0U);
  EXPECT_EQ(without["environment"]["facts"], facts);
  EXPECT_THAT(without["problems"].dump(), HasSubstr("variables.json"));

  // Only this user may read it. If it is damaged, only this part is lost.
  const fs::path record =
      world.project() / ".remote/jobs/launches" / world.stored(1).launch->text() / "launch.json";
  EXPECT_EQ(fs::status(record).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  write_file_atomic(record, R"({"version": 1, "servers": "no"})");
  const auto damaged = report({"--offline"});
  EXPECT_TRUE(damaged["environment"].is_null());
  EXPECT_THAT(damaged["problems"].dump(), HasSubstr("launch.json: 'key' is missing"));
  EXPECT_EQ(damaged["state"], "succeeded");
}

TEST_F(CommandReport, HasTheStepsOfTheBeginningAndWhatHappenedWhen) {
  // Rank 1 fails once rank 0 runs.
  const std::string go = (world.home() / "go").string();
  const std::string command =
      "echo 'remote: the workers begin anew (restart 1) at 2026-11-21T07:30:00.123Z' >&2; echo one; "
      "[ $RANK = 0 ] || { until test -e '" +
      go + "'; do sleep 0.01; done; exit 7; }; : >'" + go + "'; exec sleep 1000";
  ASSERT_EQ(
      world.run({"launch", "--nproc-per-node", "1", "--failure-grace", "0", "--follow", "--cmd", command})
          .code,
      1);
  const auto data = report({});
  const auto& steps = data["timeline"]["steps"];
  std::vector<std::string> names;
  for (const auto& step : steps) {
    names.push_back(step["name"].get<std::string>() + " " + step["server"].get<std::string>());
    EXPECT_LE(step["from_ms"], step["to_ms"]);
  }
  EXPECT_THAT(names, ElementsAre("connect a", "connect b", "look a", "look b", "start "));
  std::map<std::string, std::vector<nlohmann::json>> moments;
  for (const auto& one : data["timeline"]["moments"]) {
    moments[one["kind"]].push_back(one);
  }
  EXPECT_EQ(moments["restarted"].size(), 2U);
  EXPECT_EQ(moments["restarted"].front()["at_ms"], 1795246200123);
  ASSERT_EQ(moments["first_output"].size(), 1U) << "rank 0 alone is followed";
  EXPECT_GE(moments["first_output"].front()["at_ms"], steps.back()["from_ms"]);
  ASSERT_EQ(moments["failed"].size(), 1U) << data["timeline"] << data["jobs"];
  EXPECT_EQ(moments["failed"].front()["rank"], 1);
  EXPECT_EQ(moments["failed"].front()["text"], "exit 7");
  ASSERT_EQ(moments["killed"].size(), 1U);
  EXPECT_THAT(moments["killed"].front()["text"].get<std::string>(), HasSubstr("after rank 1"));
}

TEST_F(CommandReport, HasInstantsAsJobListHasThem) {
  world.ended_job("a", "echo fine");
  const auto listed = world.run({"job-list", "--stopped", "--json"}).json()[0];
  const auto data = report({});
  for (const char* name : {"created_at", "started_at", "ended_at"}) {
    EXPECT_EQ(data["jobs"][0][name], listed[name]) << name;
  }
  EXPECT_THAT(data["made_at"].get<std::string>(), MatchesRegex("[-0-9]+T[:0-9]+Z"));
  EXPECT_EQ(data["gpus"].size(), 0U);
  EXPECT_TRUE(data["bandwidth"].is_null());
}

TEST_F(CommandReport, DrawsWhatTopHasSeenOfTheGpus) {
  world.servers().add_nvidia_smi(fs::path(source_folder) / "tests/data/gpus/535");
  const Job job = world.job("a", "exec sleep 1000");
  ASSERT_EQ(world.run({"top", "--once"}).code, 0);
  const auto gpus = report({"--job", std::to_string(job.key)})["gpus"];
  ASSERT_EQ(gpus.size(), 2U) << "only those of its own server";
  EXPECT_EQ(gpus[0]["server"], "a");
  EXPECT_THAT(gpus[0]["name"].get<std::string>(), HasSubstr("A100"));
  EXPECT_EQ(gpus[0]["use"], nlohmann::json::parse("[97.0]"));
  EXPECT_EQ(gpus[0]["at"].size(), 1U);
  EXPECT_GT(gpus[0]["memory_total"], 1U << 30U);
}

TEST_F(CommandReport, OfOneJobIntoAGivenFile) {
  const Job job = world.ended_job("a", "echo fine");
  const fs::path file = world.project() / "my report.html";
  const CommandResult made = world.run({"report", "--job", std::to_string(job.key), "--out", file.string()});
  EXPECT_THAT(made, Ends(0, file.string() + "\n", IsEmpty()));
  EXPECT_THAT(read_file(file), HasSubstr("fine"));
  EXPECT_EQ(report({std::to_string(job.key)})["state"], "succeeded");
}

TEST_F(CommandReport, WithoutAnyJobSaysSo) {
  EXPECT_THAT(world.run({"report"}), Refused("no jobs"));
  EXPECT_THAT(world.run({"report", "--launch", "9"}), Refused("9"));
}

TEST_F(CommandReport, WatchWritesWhatTheLaunchDoesUntilItsEnd) {
  const Job job =
      world.job("a", "echo step 1 loss 3; until test -e go; do sleep 0.2; done; echo step 2 loss 2");
  const auto running = world.start({"report", "--watch", "--job", std::to_string(job.key)});
  until([&] { return running->out().ends_with("\n"); }, "the file");
  const fs::path file(trim(running->out()));
  EXPECT_THAT(read_file(file), AllOf(HasSubstr("\"running\""), HasSubstr("\"watch\":true")));
  write_file_atomic(world.there("a") / "go", "");
  EXPECT_EQ(running->wait().code, 0);
  EXPECT_THAT(read_file(file), AllOf(HasSubstr("\"state\":\"succeeded\""), HasSubstr("\"values\":[3.0,2.0]"),
                                     HasSubstr("\"watch\":false")));
}

TEST_F(CommandReport, AtCtrlCTheWatchedPageIsWrittenForTheLastTime) {
  const Job job = world.job("a", "exec sleep 1000");
  const fs::path file = world.project() / "page.html";
  const auto running =
      world.start({"report", "--watch", "--job", std::to_string(job.key), "--out", file.string()});
  until([&] { return running->out().ends_with("\n"); }, "the file");
  running->interrupt();
  const CommandResult result = running->wait();
  EXPECT_EQ(result.code, 130);
  EXPECT_THAT(result.err, ::testing::EndsWith(
                              "stopped watching; the page has the last state, and the ranks keep running\n"));
  EXPECT_THAT(read_file(file), AllOf(HasSubstr("\"running\""), HasSubstr("\"watch\":false")));
}

}  // namespace
}  // namespace remote::test
